//! A document with arrays, and the bytes of a safetensors file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, Metadata, SafeTensors, View};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::model::attributes::{Array, Entries};

/// The key of the document among the metadata.
const KEY: &str = "kernelpath";

/// The largest header that is read. Names and shapes of a few hundred arrays take some 20 kB.
const LARGEST_HEADER: usize = 16 << 20;

/// The most values that the header, or the document in it, is read with. A value such as a `0` in a list takes 2 bytes
/// there, and up to 200 once it is read: this bounds it all to some hundred megabytes.
const MOST_VALUES: usize = 1 << 20;

/// Bytes of a text that any number of entries of an array may have in common: more than any name of a loss or a status.
/// Longer texts occur once, or twice.
const LONG_TEXT: usize = 64;

/// Bytes in front of the header, which hold its length.
pub(crate) const LENGTH_BYTES: usize = 8;

/// A document, and arrays by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Container {
    pub document: Map<String, Value>,
    pub arrays: BTreeMap<String, Array>,
}

/// What a header says of an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described {
    pub name: String,
    pub dtype: &'static str,
    pub shape: Vec<usize>,
    /// Where the array ends in the body.
    pub end: usize,
}

/// An error about a file that is not what it should be. Who knows the file's name puts it in front.
pub(crate) fn wrong<T>(problem: impl Into<String>) -> Result<T> {
    Err(not_a_model(problem))
}

pub(crate) fn not_a_model(problem: impl Into<String>) -> Error {
    Error::File { file: String::new(), problem: problem.into() }
}

impl Container {
    pub fn insert(&mut self, name: &str, array: Array) {
        self.arrays.insert(name.into(), array);
    }

    /// The file's bytes, which depend on nothing but the contents.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut document = self.document.clone();
        let texts = self.arrays.iter().filter_map(|(name, array)| match &array.entries {
            Entries::Text { names, .. } => Some((name.clone(), json!(names))),
            _ => None,
        });
        document.insert("texts".into(), Value::Object(texts.collect()));
        let text = Value::Object(document).to_string();
        check_values(text.as_bytes())?;
        if let Some((name, _)) = self.arrays.iter().find(|(_, array)| !array.is_consistent()) {
            return wrong(format!("the array {name:?} has not as many entries as its shape says"));
        }
        let tensors = self.arrays.iter().map(|(name, array)| (name, Stored(array)));
        let bytes = safetensors::serialize(tensors, Some(HashMap::from([(KEY.to_string(), text)])))
            .or_else(|error| wrong(format!("it cannot be written: {error}")))?;
        match header_length(&bytes) {
            Ok(_) => Ok(bytes),
            Err(_) => wrong(format!(
                "the names and parameters of the model take more than {} MB; shorten them",
                LARGEST_HEADER >> 20
            )),
        }
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (header, body) = split(bytes)?;
        let (mut document, described) = read_header(header)?;
        // The reader below adds up these places, which could overflow.
        for Described { name, end, .. } in &described {
            let found = body.len();
            if *end > found {
                return wrong(format!(
                    "the array {name:?} ends at byte {end}, but the file has {found}; it was cut off"
                ));
            }
        }
        let tensors = SafeTensors::deserialize(bytes)
            .or_else(|error| wrong(format!("its arrays do not fit together ({error}); it is damaged")))?;
        let Some(Value::Object(mut texts)) = document.remove("texts") else {
            return wrong("its document has no \"texts\"");
        };
        let mut arrays = BTreeMap::new();
        for (name, tensor) in tensors.iter() {
            let names = texts.remove(name);
            let entries = entries(name, tensor.dtype(), tensor.data(), names)?;
            let array = Array { shape: tensor.shape().to_vec(), entries };
            if !array.is_consistent() {
                return wrong(format!("the array {name:?} names a text that is not there"));
            }
            arrays.insert(name.to_string(), array);
        }
        Ok(Self { document, arrays })
    }
}

/// The length of the header that the first bytes of a file state.
pub(crate) fn header_length(start: &[u8]) -> Result<usize> {
    let Some(length) = start.first_chunk::<LENGTH_BYTES>() else {
        return wrong(format!("a model file has at least {LENGTH_BYTES} bytes, not {}", start.len()));
    };
    let length = u64::from_le_bytes(*length);
    match usize::try_from(length) {
        Ok(length) if length <= LARGEST_HEADER => Ok(length),
        _ => wrong(format!("this is not a model file: its header would take {length} bytes")),
    }
}

/// The header of a file, and what follows it.
pub(crate) fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let length = header_length(bytes)?;
    let rest = &bytes[LENGTH_BYTES..];
    rest.split_at_checked(length).ok_or_else(|| {
        let found = rest.len();
        not_a_model(format!("the file ends inside its header: {length} bytes were written, {found} are there"))
    })
}

/// The document, and the arrays.
pub(crate) fn read_header(header: &[u8]) -> Result<(Map<String, Value>, Vec<Described>)> {
    check_values(header)?;
    let metadata: Metadata = serde_json::from_slice(header)
        .or_else(|error| wrong(format!("this is not a model file: its header is not that of one ({error})")))?;
    let text = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let Some(text) = text else {
        return wrong("this is a safetensors file, but not a model of kernelpath: its header lacks \"kernelpath\"");
    };
    check_values(text.as_bytes())?;
    let Ok(Value::Object(document)) = serde_json::from_str(text) else {
        return wrong("the document in its header is not JSON; it is damaged");
    };
    let mut described: Vec<_> = metadata
        .tensors()
        .into_iter()
        .map(|(name, info)| {
            let (dtype, end) = (type_name(info.dtype), info.data_offsets.1);
            Described { name, dtype, shape: info.shape.clone(), end }
        })
        .collect();
    described.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((document, described))
}

/// Refuses JSON with more than [`MOST_VALUES`] values: each has a comma, a colon or a bracket before it.
fn check_values(json: &[u8]) -> Result<()> {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for &c in json {
        match c {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    if count > MOST_VALUES {
        return wrong(format!("its names and parameters are more than {MOST_VALUES} values; shorten them"));
    }
    Ok(())
}

/// NumPy's name of a type; that of the format if no array of ours has it.
fn type_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F64 => "float64",
        Dtype::F32 => "float32",
        Dtype::I64 => "int64",
        Dtype::I32 => "int32",
        Dtype::U32 => "text",
        Dtype::U8 => "uint8",
        Dtype::BOOL => "bool",
        _ => "unknown",
    }
}

/// The numbers in `data`, from which `N` bytes make one.
fn numbers<const N: usize, T>(data: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    data.as_chunks::<N>().0.iter().map(|bytes| read(*bytes)).collect()
}

fn entries(name: &str, dtype: Dtype, data: &[u8], texts: Option<Value>) -> Result<Entries> {
    Ok(match dtype {
        Dtype::F64 => Entries::F64(numbers(data, f64::from_le_bytes)),
        Dtype::F32 => Entries::F32(numbers(data, f32::from_le_bytes)),
        Dtype::I64 => Entries::I64(numbers(data, i64::from_le_bytes)),
        Dtype::I32 => Entries::I32(numbers(data, i32::from_le_bytes)),
        Dtype::U8 => Entries::U8(data.to_vec()),
        Dtype::BOOL => match data.iter().find(|byte| **byte > 1) {
            None => Entries::Bool(data.iter().map(|byte| *byte == 1).collect()),
            Some(byte) => return wrong(format!("the array {name:?} of truth values has a byte {byte}")),
        },
        Dtype::U32 => {
            let Some(Ok(names)) = texts.map(serde_json::from_value::<Vec<String>>) else {
                return wrong(format!("the texts of the array {name:?} are missing"));
            };
            let codes = numbers(data, u32::from_le_bytes);
            // Who uses the array may write every entry out, so that few bytes of a file could become many.
            let written =
                |codes: &[u32]| codes.iter().filter_map(|code| names.get(*code as usize)).map(String::len).sum();
            let (written, once): (usize, usize) = (written(&codes), names.iter().map(String::len).sum());
            if written > 2 * once + LONG_TEXT * codes.len() {
                return wrong(format!("the texts of the array {name:?} would take {written} bytes; it is damaged"));
            }
            Entries::Text { names, codes }
        }
        other => return wrong(format!("the array {name:?} has the type {other:?}, which no model has")),
    })
}

/// An array on its way into a file.
struct Stored<'a>(&'a Array);

impl View for Stored<'_> {
    fn dtype(&self) -> Dtype {
        match &self.0.entries {
            Entries::F64(_) => Dtype::F64,
            Entries::F32(_) => Dtype::F32,
            Entries::I64(_) => Dtype::I64,
            Entries::I32(_) => Dtype::I32,
            Entries::U8(_) => Dtype::U8,
            Entries::Bool(_) => Dtype::BOOL,
            Entries::Text { .. } => Dtype::U32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match &self.0.entries {
            Entries::F64(entries) => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            Entries::F32(entries) => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            Entries::I64(entries) => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            Entries::I32(entries) => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            Entries::U8(entries) => Cow::Borrowed(entries),
            Entries::Bool(entries) => entries.iter().map(|entry| u8::from(*entry)).collect(),
            Entries::Text { codes, .. } => codes.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
        }
    }

    fn data_len(&self) -> usize {
        self.dtype().bitsize() / 8 * self.0.entries.len()
    }
}
