//! The letters of LIBSVM's programs, and the numbers in their messages.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::Failure;

/// What `svm-train` lists without arguments.
pub(crate) const TRAIN_USAGE: &str = "\
Usage: kernelpath svm-train [options] training_set_file [model_file]
options:
-s svm_type : 0 -- C-SVC, 3 -- epsilon-SVR (default 0)
-t kernel_type : 0 -- linear, 1 -- polynomial, 2 -- radial basis function, 3 -- sigmoid,
    4 -- precomputed kernel (default 2)
-d degree : degree in the kernel function (default 3)
-g gamma : gamma in the kernel function (default 1/num_features)
-r coef0 : coef0 in the kernel function (default 0)
-c cost : C of C-SVC and epsilon-SVR (default: chosen by cross validation among 50 values)
-p epsilon : epsilon in the loss function of epsilon-SVR (default 0.1)
-e epsilon : tolerance; models are solved to a relative duality gap of epsilon/1000 (default 0.001)
-b probability_estimates : 0 or 1 (default 0); 1 for C-SVC only
-wi weight : the C of class i is weight*C, for C-SVC (default 1)
-v n : n-fold cross validation
-q : quiet
-m, -h : read, and of no effect
The model is written in LIBSVM's format, or as .kpath if the name of its file ends so.
";

/// What `svm-predict` lists without arguments.
pub(crate) const PREDICT_USAGE: &str = "\
Usage: kernelpath svm-predict [options] test_file model_file output_file
options:
-b probability_estimates : 0 or 1 (default 0)
-q : quiet
";

/// What `svm-train` is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainLetters {
    pub is_regression: bool,
    /// 0 linear, 1 polynomial, 2 rbf, 3 sigmoid, 4 precomputed.
    pub kernel: u8,
    pub degree: u32,
    pub gamma: Option<f64>,
    pub coef0: f64,
    pub c: Option<f64>,
    pub epsilon: f64,
    pub tolerance: f64,
    pub has_probability: bool,
    pub weights: Vec<(i32, f64)>,
    pub folds: Option<usize>,
    pub is_quiet: bool,
    /// ν, which no type here has.
    pub nu: Option<f64>,
    pub data: PathBuf,
    /// The model file, if it is named.
    pub model: Option<PathBuf>,
}

/// What `svm-predict` is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PredictLetters {
    pub has_probability: bool,
    pub is_quiet: bool,
    pub test: PathBuf,
    pub model: PathBuf,
    pub output: PathBuf,
}

/// Options with their values, and the files behind them.
type Words = (Vec<(String, String)>, Vec<PathBuf>);

/// The way to the models of ν-SVC, and of ν-SVR.
const NU_SVC: &str =
    "use -s 0 (C-SVC): each nu has a C with the same decisions, which -c gives, or cross validation finds";
const NU_SVR: &str = "use -s 3 (epsilon-SVR): each nu has an epsilon with the same model, which -p gives";

fn not_solved(what: &str, way_out: &str) -> Failure {
    Failure::input(format!("{what} is not solved here; {way_out}"))
}

/// Options come first, each but `-q` with a value.
fn split(words: &[OsString]) -> Result<Words, Failure> {
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(option) = words.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        if option.len() < 2 {
            break;
        }
        if option == "-q" {
            options.push((option.to_string(), String::new()));
            at += 1;
            continue;
        }
        let value = words.get(at + 1).and_then(|word| word.to_str());
        let value = value.ok_or_else(|| Failure::input(format!("{option} needs a value")))?;
        options.push((option.to_string(), value.to_string()));
        at += 2;
    }
    Ok((options, words[at..].iter().map(PathBuf::from).collect()))
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, Failure> {
    value.parse().map_err(|_| Failure::input(format!("{option} {value}: this is no number that {option} can have")))
}

fn switch(option: &str, value: &str) -> Result<bool, Failure> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Failure::input(format!("{option} {value}: it must be 0 or 1"))),
    }
}

impl TrainLetters {
    pub fn parse(words: &[OsString]) -> Result<Self, Failure> {
        let (options, files) = split(words)?;
        let [data, rest @ ..] = &files[..] else {
            return Err(Failure::input("svm-train needs a file of data; without arguments it lists its options"));
        };
        if let [_, extra, ..] = rest {
            return Err(Failure::input(format!("{}: there is a file too many", extra.display())));
        }
        let mut letters = Self {
            is_regression: false,
            kernel: 2,
            degree: 3,
            gamma: None,
            coef0: 0.0,
            c: None,
            epsilon: 0.1,
            tolerance: 1e-3,
            has_probability: false,
            weights: Vec::new(),
            folds: None,
            is_quiet: false,
            nu: None,
            data: data.clone(),
            model: rest.first().cloned(),
        };
        for (option, value) in &options {
            letters.set(option, value)?;
        }
        letters.check()?;
        Ok(letters)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), Failure> {
        match option {
            "-s" => {
                self.is_regression = match value {
                    "0" => false,
                    "3" => true,
                    "1" => return Err(not_solved("-s 1: nu-SVC", NU_SVC)),
                    "2" => return Err(not_solved("-s 2: one-class SVM", "LIBSVM's own svm-train has it")),
                    "4" => return Err(not_solved("-s 4: nu-SVR", NU_SVR)),
                    _ => return Err(Failure::input(format!("-s {value}: unknown svm type; use 0 or 3"))),
                }
            }
            "-t" => self.kernel = number(option, value)?,
            "-d" => self.degree = number(option, value)?,
            "-g" => self.gamma = Some(number(option, value)?),
            "-r" => self.coef0 = number(option, value)?,
            "-c" => self.c = Some(number(option, value)?),
            "-p" => self.epsilon = number(option, value)?,
            "-e" => self.tolerance = number(option, value)?,
            "-b" => self.has_probability = switch(option, value)?,
            "-v" => self.folds = Some(number(option, value)?),
            "-q" => self.is_quiet = true,
            // The size of a cache, and shrinking: there is neither.
            "-m" | "-h" => drop(number::<f64>(option, value)?),
            "-n" => self.nu = Some(number(option, value)?),
            _ => match option.strip_prefix("-w") {
                Some(class) => self.weights.push((number(option, class)?, number(option, value)?)),
                None => return Err(Failure::input(format!("Unknown option: {option}"))),
            },
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        let wrong = [
            (self.nu.is_some(), "-n: nu is for -s 1, 2 and 4, which are not solved here; leave it out".to_string()),
            (self.kernel > 4, "unknown kernel type: use -t 0 to 4".into()),
            (self.c.is_some_and(|c| !is_positive(c)), "C <= 0: use -c with a number > 0".into()),
            (self.gamma.is_some_and(|gamma| !is_positive(gamma)), "gamma <= 0: use -g with a number > 0".into()),
            (!(is_positive(self.tolerance) && self.tolerance < 1.0), "-e must be between 0 and 1".into()),
            (self.folds.is_some_and(|folds| folds < 2), "n-fold cross validation: n must >= 2".into()),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, message)) => Err(Failure::input(message)),
            None => Ok(()),
        }
    }

    /// The model file: unless it is named, that of the data in the current folder, with `.model`.
    pub fn model_file(&self) -> Result<PathBuf, Failure> {
        match (&self.model, self.data.file_name()) {
            (Some(model), _) => Ok(model.clone()),
            (None, Some(name)) if name != "-" => {
                let mut name = name.to_os_string();
                name.push(".model");
                Ok(name.into())
            }
            _ => Err(Failure::input("the data has no name to call the model by; name a model file")),
        }
    }
}

impl PredictLetters {
    pub fn parse(words: &[OsString]) -> Result<Self, Failure> {
        let (options, files) = split(words)?;
        let [test, model, output] = &files[..] else {
            let message = "svm-predict needs three files: test data, a model, and where the predictions go";
            return Err(Failure::input(message));
        };
        let (mut has_probability, mut is_quiet) = (false, false);
        for (option, value) in &options {
            match option.as_str() {
                "-b" => has_probability = switch(option, value)?,
                "-q" => is_quiet = true,
                _ => return Err(Failure::input(format!("Unknown option: {option}"))),
            }
        }
        Ok(Self { has_probability, is_quiet, test: test.clone(), model: model.clone(), output: output.clone() })
    }
}

/// A number as C's printf has it for %.`digits`g.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".into()
        } else if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}"))
}

/// The mean squared error of predictions, and the squared correlation with the truth, by LIBSVM's formulas.
pub(crate) fn errors(truth: &[f64], predicted: &[f64]) -> (f64, f64) {
    let n = truth.len() as f64;
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 { truth.iter().zip(predicted).map(|(y, v)| of(*y, *v)).sum() };
    let (sum_y, sum_v) = (sum(&|y, _| y), sum(&|_, v| v));
    let (yy, vv, vy) = (sum(&|y, _| y * y), sum(&|_, v| v * v), sum(&|y, v| v * y));
    let covariance = n * vy - sum_v * sum_y;
    let squared = covariance * covariance / ((n * vv - sum_v * sum_v) * (n * yy - sum_y * sum_y));
    (sum(&|y, v| (v - y) * (v - y)) / n, squared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_printf() {
        for (value, digits, text) in [
            (95.0, 6, "95"),
            (78.333_333_333, 6, "78.3333"),
            (0.000_012_345_678, 6, "1.23457e-05"),
            (1e6, 6, "1e+06"),
            (999_999.5, 6, "1e+06"),
            (0.1, 17, "0.10000000000000001"),
            (-1.0, 17, "-1"),
            (0.0, 6, "0"),
            (f64::NAN, 6, "nan"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn letters_are_read_as_libsvm_reads_them() {
        let parse = |text: &str| TrainLetters::parse(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        let letters = parse("-s 0 -t 2 -c 1 -g 0.1 -v 5 -b 1 -w1 2 -w-1 0.5 -m 200 -h 0 data model").unwrap();
        assert_eq!((letters.c, letters.gamma, letters.folds), (Some(1.0), Some(0.1), Some(5)));
        assert_eq!((&letters.weights[..], letters.has_probability), (&[(1, 2.0), (-1, 0.5)][..], true));
        assert_eq!(parse("-q some/data").unwrap().model_file().unwrap(), PathBuf::from("data.model"));
        for bad in ["-s 1 d", "-s 9 d", "-x 1 d", "-c 0 d", "-v 1 d", "-c", "-t 5 d", "-b 2 d", "d m more", "-n 0.1 d"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
