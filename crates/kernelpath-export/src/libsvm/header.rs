//! What stands above the vectors of a model file.

use kernelpath::{KernelFn, Shape};

use crate::error::Result;
use crate::libsvm::lines::{Line, Lines, wrong};

/// What the model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Classes,
    Number,
}

/// The lines above the vectors, checked.
pub(crate) struct Header {
    pub kind: Kind,
    pub kernel: KernelFn,
    /// Lines of vectors.
    pub vectors: usize,
    /// ρ of each machine.
    pub rho: Vec<f64>,
    /// The labels of classes; none for numbers.
    pub labels: Vec<i32>,
    /// A and B of each machine, if there are.
    pub sigmoids: Option<Vec<(f64, f64)>>,
    /// Vectors of each class; none for numbers.
    pub of_class: Vec<usize>,
}

/// The lines as they come, each with its place.
#[derive(Default)]
struct Raw<'a> {
    known: Vec<(&'static str, Line<'a>)>,
}

/// All names that such a line can begin with.
const NAMES: [&str; 13] = [
    "svm_type",
    "kernel_type",
    "degree",
    "gamma",
    "coef0",
    "nr_class",
    "total_sv",
    "rho",
    "label",
    "probA",
    "probB",
    "prob_density_marks",
    "nr_sv",
];

impl Header {
    /// Reads up to the line `SV`.
    pub fn read(lines: &mut Lines) -> Result<Self> {
        let mut raw = Raw::default();
        loop {
            let Some(line) = lines.next() else {
                return wrong(
                    lines.number(),
                    "the file ends before the line \"SV\"; it is not a whole model of LIBSVM",
                );
            };
            let line = line?;
            match line.name() {
                "" => {}
                "SV" => return raw.header(line.number),
                name => {
                    let Some(known) = NAMES.iter().find(|known| **known == name) else {
                        return wrong(line.number, format!("{name:?} is no word of a LIBSVM model file"));
                    };
                    if raw.known.iter().any(|(other, _)| other == known) {
                        return wrong(line.number, format!("{name:?} is there a second time"));
                    }
                    raw.known.push((known, line));
                }
            }
        }
    }
}

impl Raw<'_> {
    fn line(&self, name: &str) -> Option<&Line<'_>> {
        self.known.iter().find(|(known, _)| *known == name).map(|(_, line)| line)
    }

    /// The line, which must be there; `end` is that of `SV`.
    fn needed(&self, name: &str, end: usize) -> Result<&Line<'_>> {
        match self.line(name) {
            Some(line) => Ok(line),
            None => wrong(end, format!("there is no line {name:?} above \"SV\"")),
        }
    }

    fn header(&self, end: usize) -> Result<Header> {
        let kind = self.kind(end)?;
        let kernel = self.kernel(end)?;
        let count = self.needed("total_sv", end)?;
        let vectors = count.one::<usize>("a number of support vectors")?;
        let rho = self.needed("rho", end)?;
        let rho_line = rho.number;
        let rho = rho.numbers()?;
        let (labels, of_class) = match kind {
            Kind::Number => (Vec::new(), Vec::new()),
            Kind::Classes => self.classes(vectors, end)?,
        };
        let machines = if kind == Kind::Number { 1 } else { labels.len() * (labels.len() - 1) / 2 };
        if rho.len() != machines {
            return wrong(rho_line, format!("{} values of rho, where there are {machines} machines", rho.len()));
        }
        let sigmoids = if kind == Kind::Number { None } else { self.sigmoids(machines)? };
        Ok(Header { kind, kernel, vectors, rho, labels, sigmoids, of_class })
    }

    fn kind(&self, end: usize) -> Result<Kind> {
        let line = self.needed("svm_type", end)?;
        match line.one::<String>("a type")?.as_str() {
            "c_svc" | "nu_svc" => Ok(Kind::Classes),
            "epsilon_svr" | "nu_svr" => Ok(Kind::Number),
            "one_class" => wrong(
                line.number,
                "the model is of the type one_class, which kernelpath does not have; it reads c_svc, nu_svc, epsilon_svr \
                 and nu_svr",
            ),
            other => wrong(line.number, format!("{other:?} is no type of LIBSVM's models")),
        }
    }

    fn kernel(&self, end: usize) -> Result<KernelFn> {
        let line = self.needed("kernel_type", end)?;
        let number = |name: &str| self.needed(name, end)?.one::<f64>("a number");
        let name = line.one::<String>("a kernel")?;
        let shape = match name.as_str() {
            "linear" => Shape::Linear,
            "rbf" => Shape::Rbf,
            "precomputed" => Shape::Precomputed,
            "sigmoid" => Shape::Sigmoid { coef0: number("coef0")? },
            "polynomial" => {
                let degree = self.needed("degree", end)?.one::<u32>("an integer")?;
                Shape::Poly { degree, coef0: number("coef0")? }
            }
            other => return wrong(line.number, format!("{other:?} is no kernel of LIBSVM's models")),
        };
        let gamma = if shape.uses_gamma() { number("gamma")? } else { 1.0 };
        KernelFn::new(shape, gamma).or_else(|error| wrong(line.number, format!("a kernel that cannot be: {error}")))
    }

    /// The labels, and the number of vectors of each.
    fn classes(&self, vectors: usize, end: usize) -> Result<(Vec<i32>, Vec<usize>)> {
        let line = self.needed("label", end)?;
        let labels = line.all::<i32>("an integer")?;
        let count = self.needed("nr_class", end)?;
        let classes = count.one::<usize>("a number of classes")?;
        if classes < 2 {
            return wrong(count.number, format!("the model has {classes} classes, and takes two to tell apart"));
        }
        if labels.len() != classes {
            return wrong(line.number, format!("{} labels, where nr_class is {classes}", labels.len()));
        }
        let mut sorted = labels.clone();
        sorted.sort_unstable();
        if let Some([label, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(line.number, format!("the label {label} is there twice"));
        }
        let line = self.needed("nr_sv", end)?;
        let of_class = line.all::<usize>("a number of support vectors")?;
        let total = of_class.iter().try_fold(0_usize, |sum, count| sum.checked_add(*count));
        if of_class.len() != classes || total != Some(vectors) {
            return wrong(line.number, format!("these are not the {vectors} support vectors in {classes} classes"));
        }
        Ok((labels, of_class))
    }

    fn sigmoids(&self, machines: usize) -> Result<Option<Vec<(f64, f64)>>> {
        let (a, b) = match (self.line("probA"), self.line("probB")) {
            (None, None) => return Ok(None),
            (Some(a), Some(b)) => (a, b),
            (Some(line), None) | (None, Some(line)) => {
                return wrong(line.number, "one of probA and probB is missing");
            }
        };
        let mut parts = Vec::new();
        for line in [a, b] {
            let numbers = line.numbers()?;
            if numbers.len() != machines {
                let problem = format!("{} values, where there are {machines} machines", numbers.len());
                return wrong(line.number, problem);
            }
            parts.push(numbers);
        }
        Ok(Some(parts[0].iter().copied().zip(parts[1].iter().copied()).collect()))
    }
}
