//! Labels, which keep their type.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::error::Failure;
use crate::join;
use crate::number;

/// One label a row. All have the narrowest type that fits every one of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// Whole numbers, written without a point.
    Integers(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// `true` and `false`, also with capitals.
    Booleans(Vec<bool>),
    /// Any text. Equal texts share their memory.
    Strings(Vec<Arc<str>>),
}

/// One label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelRef<'a> {
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Any text.
    Text(&'a str),
}

impl fmt::Display for LabelRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl Labels {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(labels) => labels.len(),
            Self::Floats(labels) => labels.len(),
            Self::Booleans(labels) => labels.len(),
            Self::Strings(labels) => labels.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label of row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, i: usize) -> LabelRef<'_> {
        match self {
            Self::Integers(labels) => LabelRef::Integer(labels[i]),
            Self::Floats(labels) => LabelRef::Float(labels[i]),
            Self::Booleans(labels) => LabelRef::Boolean(labels[i]),
            Self::Strings(labels) => LabelRef::Text(&labels[i]),
        }
    }

    /// The labels of some rows.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn among(&self, rows: &[usize]) -> Self {
        match self {
            Self::Integers(labels) => Self::Integers(rows.iter().map(|row| labels[*row]).collect()),
            Self::Floats(labels) => Self::Floats(rows.iter().map(|row| labels[*row]).collect()),
            Self::Booleans(labels) => Self::Booleans(rows.iter().map(|row| labels[*row]).collect()),
            Self::Strings(labels) => Self::Strings(rows.iter().map(|row| labels[*row].clone()).collect()),
        }
    }

    /// The labels as numbers; `None` if they are texts or truth values.
    pub fn to_floats(&self) -> Option<Vec<f64>> {
        match self {
            Self::Integers(labels) => Some(labels.iter().map(|label| *label as f64).collect()),
            Self::Floats(labels) => Some(labels.clone()),
            Self::Booleans(_) | Self::Strings(_) => None,
        }
    }
}

/// The labels of a block, as they are written, and which types fit all of them.
#[derive(Debug)]
pub(crate) struct WrittenLabels {
    text: String,
    /// Where each ends in `text`.
    ends: Vec<usize>,
    fits: Fits,
}

#[derive(Debug, Clone, Copy)]
struct Fits {
    booleans: bool,
    integers: bool,
    floats: bool,
}

impl Fits {
    const ANY: Self = Self { booleans: true, integers: true, floats: true };

    fn and(self, other: Self) -> Self {
        Self {
            booleans: self.booleans && other.booleans,
            integers: self.integers && other.integers,
            floats: self.floats && other.floats,
        }
    }
}

impl WrittenLabels {
    pub fn new() -> Self {
        Self { text: String::new(), ends: Vec::new(), fits: Fits::ANY }
    }

    pub fn push(&mut self, label: &str) {
        let bytes = label.as_bytes();
        let fits = &mut self.fits;
        fits.booleans = fits.booleans && boolean(label).is_some();
        fits.integers = fits.integers && number::integer(bytes).is_some();
        fits.floats = fits.floats && number::number(bytes).is_ok();
        self.text.push_str(label);
        self.ends.push(self.text.len());
    }

    /// Bytes that the labels take.
    pub fn size(&self) -> usize {
        self.text.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

fn boolean(label: &str) -> Option<bool> {
    match label {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The labels of all blocks.
pub(crate) fn joined(parts: &[WrittenLabels]) -> Result<Labels, Failure> {
    let fits = parts.iter().fold(Fits::ANY, |fits, part| fits.and(part.fits));
    let rows = parts.iter().map(|part| part.ends.len()).sum();
    let all = || parts.iter().flat_map(WrittenLabels::iter);
    let number = |label: &str| number::number(label.as_bytes()).unwrap_or(f64::NAN);
    Ok(if fits.booleans {
        Labels::Booleans(join::collected(rows, all().map(|label| boolean(label) == Some(true)))?)
    } else if fits.integers {
        Labels::Integers(join::collected(rows, all().map(|label| number::integer(label.as_bytes()).unwrap_or(0)))?)
    } else if fits.floats {
        Labels::Floats(join::collected(rows, all().map(number))?)
    } else {
        let mut known: HashSet<Arc<str>> = HashSet::new();
        let mut shared = |label: &str| {
            known.get(label).cloned().unwrap_or_else(|| {
                let label: Arc<str> = label.into();
                known.insert(label.clone());
                label
            })
        };
        Labels::Strings(join::collected(rows, all().map(&mut shared))?)
    })
}
