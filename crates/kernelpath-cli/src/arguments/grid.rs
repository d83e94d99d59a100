//! Lists of numbers, as they are written on the command line.

use kernelpath::{MOST_CS as MOST, logspace};

/// Values of C: numbers with commas between them, or LOW:HIGH:COUNT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid(pub Vec<f64>);

impl std::str::FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [low, high, count] => {
                let (low, high) = (positive(low)?, positive(high)?);
                let count = count.parse::<usize>().ok().filter(|count| (2..=MOST).contains(count));
                let count = count.ok_or_else(|| format!("the count must be a number from 2 to {MOST}"))?;
                logspace(low, high, count).map(Self).map_err(|error| error.to_string())
            }
            [_] => text.split(',').map(positive).collect::<Result<_, _>>().map(Self),
            _ => Err("give numbers with commas between them, or LOW:HIGH:COUNT".into()),
        }
    }
}

/// Values of γ: numbers with commas between them, or a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GammaChoice {
    Sigest,
    Scale,
    Auto,
    Values(Vec<f64>),
}

impl std::str::FromStr for GammaChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "sigest" => Self::Sigest,
            "scale" => Self::Scale,
            "auto-grid" => Self::Auto,
            _ => {
                let Grid(values) =
                    text.parse().map_err(|problem| format!("{problem}; the rules are sigest, scale and auto-grid"))?;
                Self::Values(values)
            }
        })
    }
}

/// How the columns are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ScaleChoice {
    /// To mean 0 and variance 1.
    Standard,
    /// To this range.
    Range(f64, f64),
}

impl std::str::FromStr for ScaleChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "standard" {
            return Ok(Self::Standard);
        }
        let range = text.split_once(':').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        match range {
            Some((low, high)) if f64::is_finite(low) && f64::is_finite(high) && low < high => {
                Ok(Self::Range(low, high))
            }
            _ => Err("give standard, or LOW:HIGH with LOW < HIGH, such as 0:1".into()),
        }
    }
}

/// A length in the unit of the labels, or a multiple of their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Length(pub kernelpath::Extent);

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(kernelpath::Extent::Auto));
        }
        text.parse().map(|value: f64| Self(value.into())).map_err(|_| "give a number, or auto".into())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| *value > 0.0 && value.is_finite());
    value.ok_or_else(|| format!("{text:?} is no finite number > 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_lists_or_ranges() {
        assert_eq!("0.5,2".parse(), Ok(Grid(vec![0.5, 2.0])));
        assert_eq!("1:100:3".parse::<Grid>().unwrap().0.len(), 3);
        assert_eq!("1:100:3".parse(), Ok(Grid(logspace(1.0, 100.0, 3).unwrap())));
        for bad in ["", "0", "-1", "1:2", "1:2:1", "nan", "1,,2", "1:10:1000000000"] {
            assert!(bad.parse::<Grid>().is_err(), "{bad}");
        }
        assert_eq!("sigest".parse(), Ok(GammaChoice::Sigest));
        assert_eq!("-1:1".parse(), Ok(ScaleChoice::Range(-1.0, 1.0)));
        assert!("1:1".parse::<ScaleChoice>().is_err() && "nan:1".parse::<ScaleChoice>().is_err());
    }
}
