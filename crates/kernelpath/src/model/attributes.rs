//! What a fit found out, by the names under which the documentation has it: C_, gaps_, scores_ and so on.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// What a fit found out, by name.
pub type Attributes = BTreeMap<String, Attribute>;

/// One thing that a fit found out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// Something small: a number, a text, a list. Floats that JSON cannot hold are texts in an object:
    /// `{"float": "nan"}`, `"inf"` or `"-inf"`.
    Value(Value),
    /// An array.
    Array(Array),
}

/// An array of any shape, its last axis running fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The entries.
    pub entries: Entries,
}

/// The entries of an [`Array`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Entries {
    /// Floats in double precision.
    F64(Vec<f64>),
    /// Floats in single precision.
    F32(Vec<f32>),
    /// Integers of 64 bits.
    I64(Vec<i64>),
    /// Integers of 32 bits.
    I32(Vec<i32>),
    /// Small integers.
    U8(Vec<u8>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts: entry i is `names[codes[i]]`.
    Text {
        /// The texts that occur.
        names: Vec<String>,
        /// Which of them each entry is.
        codes: Vec<u32>,
    },
}

impl Entries {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(entries) => entries.len(),
            Self::F32(entries) => entries.len(),
            Self::I64(entries) => entries.len(),
            Self::I32(entries) => entries.len(),
            Self::U8(entries) => entries.len(),
            Self::Bool(entries) => entries.len(),
            Self::Text { codes, .. } => codes.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as doubles; `None` for texts.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        Some(match self {
            Self::F64(entries) => entries.clone(),
            Self::F32(entries) => entries.iter().map(|v| f64::from(*v)).collect(),
            Self::I64(entries) => entries.iter().map(|v| *v as f64).collect(),
            Self::I32(entries) => entries.iter().map(|v| f64::from(*v)).collect(),
            Self::U8(entries) => entries.iter().map(|v| f64::from(*v)).collect(),
            Self::Bool(entries) => entries.iter().map(|v| f64::from(u8::from(*v))).collect(),
            Self::Text { .. } => return None,
        })
    }
}

impl Array {
    /// An array of doubles; its last axis runs fastest.
    pub fn of_f64(shape: impl Into<Vec<usize>>, entries: Vec<f64>) -> Self {
        Self { shape: shape.into(), entries: Entries::F64(entries) }
    }

    /// An array of texts.
    pub fn of_texts<'a>(shape: impl Into<Vec<usize>>, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut names, mut codes) = (Vec::<String>::new(), Vec::new());
        let mut known = HashMap::new();
        for text in texts {
            codes.push(*known.entry(text).or_insert_with(|| {
                names.push(text.into());
                (names.len() - 1) as u32
            }));
        }
        Self { shape: shape.into(), entries: Entries::Text { names, codes } }
    }

    /// Whether the shape has as many entries as there are, and every code of a text has its text.
    pub fn is_consistent(&self) -> bool {
        let product = self.shape.iter().try_fold(1_usize, |product, axis| product.checked_mul(*axis));
        let known = match &self.entries {
            Entries::Text { names, codes } => codes.iter().all(|code| (*code as usize) < names.len()),
            _ => true,
        };
        product == Some(self.entries.len()) && known
    }
}

impl From<Array> for Attribute {
    fn from(array: Array) -> Self {
        Self::Array(array)
    }
}

impl From<Value> for Attribute {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// A float as JSON holds it.
pub fn json_of_float(value: f64) -> Value {
    let special = || {
        if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
    };
    serde_json::Number::from_f64(value).map_or_else(|| serde_json::json!({ "float": special() }), Value::Number)
}

/// The float that [`json_of_float`] wrote; `None` if it is something else.
pub fn float_of_json(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Object(object) if object.len() == 1 => match object.get("float")?.as_str()? {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}
