//! The writer of LIBSVM files.

use std::io::{self, Write};

use kernelpath::Rows;

use crate::labels::{LabelRef, Labels};

/// Writes rows and labels as a LIBSVM file, indices from 1. Zeros are left out. Numbers have the fewest digits that
/// read back as the same number (17 at most).
///
/// Labels must be numbers: the format has no others.
pub fn write_libsvm(rows: &Rows, labels: &Labels, to: &mut impl Write) -> io::Result<()> {
    let refuse = |text: String| -> io::Result<()> { Err(io::Error::new(io::ErrorKind::InvalidInput, text)) };
    if labels.len() != rows.nrows() {
        return refuse(format!("{} labels for {} rows", labels.len(), rows.nrows()));
    }
    for i in 0..rows.nrows() {
        match labels.get(i) {
            LabelRef::Integer(label) => write!(to, "{label}")?,
            LabelRef::Float(label) if label.is_finite() => number(label, to)?,
            label => return refuse(format!("a LIBSVM file cannot hold the label {label} of row {i}: use numbers")),
        }
        let mut entry = |j: usize, value: f64| {
            if !value.is_finite() {
                refuse(format!("the value {value} in row {i}, column {j} is not finite: remove or impute it"))?;
            }
            if value != 0.0 {
                write!(to, " {}:", j + 1)?;
                number(value, to)?;
            }
            Ok::<_, io::Error>(())
        };
        match rows {
            Rows::Csr(rows) => rows.row(i).try_for_each(|(j, value)| entry(j, value))?,
            _ => (0..rows.ncols()).try_for_each(|j| entry(j, rows.entry(i, j).unwrap_or(f64::NAN)))?,
        }
        to.write_all(b"\n")?;
    }
    Ok(())
}

/// The shortest digits that read back as the value; with an exponent where zeros would be many.
fn number(value: f64, to: &mut impl Write) -> io::Result<()> {
    if value.fract() == 0.0 && value.abs() < 1e16 { write!(to, "{value}") } else { write!(to, "{value:?}") }
}
