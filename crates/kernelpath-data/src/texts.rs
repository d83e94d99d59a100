//! Features that are texts: numbers for them, the places of the texts in a list.

use std::collections::{BTreeSet, HashMap};

use crate::cells::{is_missing, is_missing_label};
use crate::error::{Failure, Problem};
use crate::layout::Layout;
use crate::number::NotNumber;

/// What a text becomes that is not in the list.
const UNKNOWN: f64 = -1.0;

/// What the fields of a feature are.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Numbers.
    Number,
    /// Numbers or texts; the whole column says which.
    Any,
    /// Texts, with their places in the list.
    Text(HashMap<String, f64>),
}

impl Kind {
    /// Texts of this list.
    pub fn of(list: &[String]) -> Self {
        Self::Text(list.iter().enumerate().map(|(place, text)| (text.clone(), place as f64)).collect())
    }
}

/// The fields of a feature in a block, as they are written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    text: String,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    /// Whether a field is neither a number nor missing.
    has_text: bool,
    /// A field that is missing in a column of numbers, and may be a text in one of texts, such as "none".
    doubtful: Option<String>,
}

impl Written {
    /// Bytes that the fields take.
    pub fn size(&self) -> usize {
        self.text.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    /// Adds a field, and returns what it is in a column of numbers.
    pub fn push(&mut self, content: &[u8], read: Result<f64, NotNumber>) -> Result<f64, Refused> {
        let field = std::str::from_utf8(content).map_err(|_| Refused::Encoding)?;
        let value = match read {
            Ok(value) => value,
            Err(_) if is_missing(content) => {
                if !is_missing_label(content) && self.doubtful.is_none() {
                    self.doubtful = Some(field.into());
                }
                f64::NAN
            }
            Err(NotNumber::Text) => {
                self.has_text = true;
                f64::NAN
            }
            // What was meant as a number is no category.
            Err(why) => return Err(Refused::Number(why)),
        };
        self.text.push_str(field);
        self.ends.push(self.text.len());
        Ok(value)
    }

    fn fields(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

/// Why a field is refused.
pub(crate) enum Refused {
    Encoding,
    Number(NotNumber),
}

/// Gives texts their numbers in `values`, row after row, and returns the list of each feature that is one of texts.
/// `blocks` have the fields of all features, block after block.
pub(crate) fn listed(
    blocks: &[Vec<Written>],
    values: &mut [f64],
    layout: &Layout,
) -> Result<Vec<Option<Vec<String>>>, Failure> {
    let width = layout.features;
    let mut lists = Vec::with_capacity(width);
    for feature in 0..width {
        let own = || blocks.iter().filter_map(|block| block.get(feature));
        if !own().any(|written| written.has_text) {
            let doubtful = own().find_map(|written| written.doubtful.clone()).filter(|_| !layout.missing_as_nan);
            if let Some(value) = doubtful {
                return Err(Problem::Missing { column: layout.called_feature(feature), value }.into());
            }
            lists.push(None);
            continue;
        }
        let fields = || own().flat_map(Written::fields);
        let known: BTreeSet<&str> = fields().filter(|field| !is_missing_label(field.as_bytes())).collect();
        let places: HashMap<&str, usize> = known.iter().enumerate().map(|(place, text)| (*text, place)).collect();
        for (row, field) in fields().enumerate() {
            values[row * width + feature] = places.get(field).map_or(f64::NAN, |place| *place as f64);
        }
        lists.push(Some(known.into_iter().map(String::from).collect()));
    }
    Ok(lists)
}

/// The number of a text in a list that is known.
pub(crate) fn place(content: &[u8], list: &HashMap<String, f64>) -> Result<f64, Refused> {
    let field = std::str::from_utf8(content).map_err(|_| Refused::Encoding)?;
    Ok(list.get(field).copied().unwrap_or(UNKNOWN))
}
