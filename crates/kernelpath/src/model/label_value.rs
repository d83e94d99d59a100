//! The value of a label, whatever its type.

use std::fmt;

/// What a label is compared and sorted by: texts by their letters, numbers by size, `false` before `true`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LabelValue {
    /// Of a `bool`.
    Truth(bool),
    /// Of an integer, or of a float that is a whole number.
    Whole(i128),
    /// Of any other float. It is no class: training refuses it.
    Fraction(f64),
    /// Of a string.
    Text(String),
}

impl LabelValue {
    /// The order of values of different types.
    fn rank(&self) -> u8 {
        match self {
            Self::Truth(_) => 0,
            Self::Whole(_) => 1,
            Self::Fraction(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Ord for LabelValue {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Truth(a), Self::Truth(b)) => a.cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Fraction(a), Self::Fraction(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for LabelValue {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for LabelValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LabelValue {}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(value) => write!(f, "{value}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Fraction(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}
