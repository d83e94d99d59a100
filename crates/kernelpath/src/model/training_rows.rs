//! The rows that a model was trained on, by their digests: enough to tell whether other rows are the same.
//!
//! ```text
//! values   SHA-256 over blocks of rows, in their order: row, column and float64 value of every entry that is not 0
//! labels   SHA-256 over the labels, in their order: numbers as float64, texts as their letters
//! weights  SHA-256 over the weights, in their order; 1 where there are none
//! ```
//!
//! Zeros are left out and all numbers are float64, so that the same rows have the same digests whether they came from
//! CSV, LIBSVM, a sparse matrix or an array, in either precision that holds them. It is no signature: who changes a file
//! can change the digests in it, too.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::data::rows::Rows;
use crate::model::label_value::LabelValue;
use crate::numeric::parallel;

/// Rows that are hashed by one thread at a time. The digest depends on it.
const HASHED_ROWS: usize = 1024;

/// What stands before a number, and before a text, among labels.
const NUMBER: [u8; 1] = [0];
const TEXT: [u8; 1] = [1];

/// A digest.
type Hash = [u8; 32];

/// What is true of rows.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Truth<'a> {
    /// A label for each row.
    Labels(&'a [LabelValue]),
    /// `columns` numbers for each row, row after row.
    Numbers {
        /// Numbers of each row.
        columns: usize,
        /// The numbers.
        values: &'a [f64],
    },
}

/// The digests of the rows that a model was trained on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingRows {
    rows: usize,
    values: Hash,
    labels: Hash,
    weights: Hash,
}

impl TrainingRows {
    /// The digests of these rows. `weights` are all 1 if they are not given.
    pub fn of<'a>(x: impl Into<Rows<'a>>, truth: Truth<'_>, weights: Option<&[f64]>) -> Self {
        let x = x.into();
        let rows = x.nrows();
        let weight = |row: usize| weights.and_then(|weights| weights.get(row)).copied().unwrap_or(1.0);
        let mut of_weights = Sha256::new();
        (0..rows).for_each(|row| of_weights.update(bytes(weight(row))));
        Self { rows, values: of_values(&x), labels: of_truth(truth), weights: of_weights.finalize().into() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether rows have these values, whatever is true of them.
    pub fn are_values_of<'a>(&self, x: impl Into<Rows<'a>>) -> bool {
        let x = x.into();
        x.nrows() == self.rows && of_values(&x) == self.values
    }

    /// What differs between these rows and those of a fit, in words; `None` if nothing does.
    pub fn difference(&self, trained: &Self) -> Option<String> {
        if self.rows != trained.rows {
            return Some(format!("the model was trained on {} rows, and these are {}", trained.rows, self.rows));
        }
        let parts = [
            ("values", self.values == trained.values),
            ("labels", self.labels == trained.labels),
            ("weights", self.weights == trained.weights),
        ];
        let differing: Vec<&str> = parts.iter().filter(|(_, is_same)| !is_same).map(|(name, _)| *name).collect();
        let names = differing.join(" and their ");
        (!differing.is_empty()).then(|| format!("their {names} are not those of the fit"))
    }

    /// As a model file holds it.
    pub fn to_json(&self) -> Value {
        json!({ "rows": self.rows, "values": hex(&self.values), "labels": hex(&self.labels), "weights": hex(&self.weights) })
    }

    /// What [`to_json`](Self::to_json) wrote; `None` if it is something else.
    pub fn of_json(value: &Value) -> Option<Self> {
        let part = |name: &str| of_hex(value.get(name)?.as_str()?);
        let rows = usize::try_from(value.get("rows")?.as_u64()?).ok()?;
        Some(Self { rows, values: part("values")?, labels: part("labels")?, weights: part("weights")? })
    }
}

/// A number, so that equal numbers have equal bytes: −0 is 0.
fn bytes(value: f64) -> [u8; 8] {
    (value + 0.0).to_le_bytes()
}

/// The digest of the digests of blocks of rows.
fn of_values(x: &Rows) -> Hash {
    let rows = x.nrows();
    let block = |first: usize| -> Hash {
        let (mut hasher, mut of_row) = (Sha256::new(), Vec::new());
        for row in first..(first + HASHED_ROWS).min(rows) {
            // One call a row: a call for each number would take longer than the hash.
            of_row.clear();
            x.for_each_nonzero(row, |column, value| {
                of_row.extend((row as u64).to_le_bytes());
                of_row.extend((column as u64).to_le_bytes());
                of_row.extend(bytes(value));
            });
            hasher.update(&of_row);
        }
        hasher.finalize().into()
    };
    let mut all = Sha256::new();
    for block in parallel::map((0..rows).step_by(HASHED_ROWS), block) {
        all.update(block);
    }
    all.finalize().into()
}

fn of_truth(truth: Truth) -> Hash {
    let mut hasher = Sha256::new();
    let number = |hasher: &mut Sha256, value: f64| {
        hasher.update(NUMBER);
        hasher.update(bytes(value));
    };
    match truth {
        Truth::Numbers { values, .. } => values.iter().for_each(|value| number(&mut hasher, *value)),
        Truth::Labels(labels) => {
            for label in labels {
                match label {
                    LabelValue::Truth(value) => number(&mut hasher, f64::from(u8::from(*value))),
                    LabelValue::Whole(value) => number(&mut hasher, *value as f64),
                    LabelValue::Fraction(value) => number(&mut hasher, *value),
                    LabelValue::Text(text) => {
                        hasher.update(TEXT);
                        hasher.update((text.len() as u64).to_le_bytes());
                        hasher.update(text.as_bytes());
                    }
                }
            }
        }
    }
    hasher.finalize().into()
}

fn hex(hash: &Hash) -> String {
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

fn of_hex(text: &str) -> Option<Hash> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| 16 * pair[0] + pair[1]).collect();
    bytes.try_into().ok().filter(|_| digits.len() == 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sparse::CsrBuf;
    use faer::Mat;

    const X: [f64; 6] = [0.0, 1.5, -0.0, 2.0, 0.0, 0.0];
    const Y: Truth = Truth::Numbers { columns: 1, values: &[1.0, 0.0, 3.0] };

    fn of<'a>(x: impl Into<Rows<'a>>) -> TrainingRows {
        TrainingRows::of(x, Y, None)
    }

    #[test]
    fn every_container_of_the_same_rows_has_the_same_digests() {
        let dense = of(Rows::from_slice(&X, 2).unwrap());
        let single = Mat::from_fn(3, 2, |i, j| X[2 * i + j] as f32);
        assert_eq!(of(single.as_ref()), dense);
        let wider = Mat::from_fn(3, 4, |i, j| if j < 2 { X[2 * i + j] } else { 0.0 });
        assert_eq!(of(&wider), dense, "columns of zeros are no entries");
        let sparse = CsrBuf::new(2, vec![0, 2, 3, 3], vec![0, 1, 1], vec![0.0, 1.5, 2.0]).unwrap();
        assert_eq!(of(Rows::Csr(sparse.view())), dense);
        let labels = [true, false].map(LabelValue::Truth).into_iter().chain([LabelValue::Whole(3)]).collect::<Vec<_>>();
        let labelled = TrainingRows::of(Rows::from_slice(&X, 2).unwrap(), Truth::Labels(&labels), Some(&[1.0; 3]));
        assert_eq!(labelled, dense);
        assert_eq!(TrainingRows::of_json(&dense.to_json()), Some(dense));
    }

    #[test]
    fn what_differs_is_named() {
        let known = of(Rows::from_slice(&X, 2).unwrap());
        let mut other = X;
        other.swap(1, 3); // the same numbers, in other places
        assert_eq!(
            of(Rows::from_slice(&other, 2).unwrap()).difference(&known).unwrap(),
            "their values are not those of the fit"
        );
        let x = Rows::from_slice(&X, 2).unwrap();
        let twice =
            TrainingRows::of(x, Truth::Numbers { columns: 1, values: &[1.0, 0.0, 4.0] }, Some(&[1.0, 2.0, 1.0]));
        let told = twice.difference(&known).unwrap();
        assert_eq!(told, "their labels and their weights are not those of the fit");
        let fewer = of(Rows::from_slice(&X[..4], 2).unwrap()).difference(&known).unwrap();
        assert_eq!(fewer, "the model was trained on 3 rows, and these are 2");
        assert_eq!(known.difference(&known), None);
        // The lengths of texts keep them apart.
        let text =
            |parts: [&str; 2]| TrainingRows::of(x, Truth::Labels(&parts.map(|t| LabelValue::Text(t.into()))), None);
        assert_ne!(text(["ab", "c"]), text(["a", "bc"]));
    }

    #[test]
    fn digests_do_not_depend_on_threads_and_see_every_block() {
        let x: Vec<f64> = (0..5000).map(|i| f64::from(i).sin()).collect();
        let whole = |x: &[f64]| TrainingRows::of(Rows::from_slice(x, 1).unwrap(), Y, None).values;
        let alone = whole(&x);
        let shared = crate::numeric::memory::pool(2).unwrap().install(|| whole(&x));
        assert_eq!(alone, shared);
        for row in [0, 1023, 1024, 4999] {
            let mut other = x.clone();
            other[row] += 1e-9;
            assert_ne!(whole(&other), alone, "row {row}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let known = of(Rows::from_slice(&X, 2).unwrap()).to_json();
        for (name, bad) in
            [("rows", json!(-1)), ("values", json!("ab")), ("labels", json!(7)), ("weights", json!("x".repeat(64)))]
        {
            let mut other = known.clone();
            other[name] = bad;
            assert_eq!(TrainingRows::of_json(&other), None, "{name}");
        }
    }
}
