//! What messages are made of.

use std::fmt;

/// What bounds the memory of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The free memory of the machine.
    Machine,
    /// The limit on the address space of the process (`ulimit -v`).
    AddressSpace,
    /// The limit on the data of the process (`ulimit -d`).
    Data,
    /// The limit of the container, or of another control group.
    Container,
}

impl fmt::Display for Limit {
    /// The text that follows "are available".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "",
            Self::AddressSpace => " under the limit on the address space of this process (ulimit -v)",
            Self::Data => " under the limit on the data of this process (ulimit -d)",
            Self::Container => " under the memory limit of this container (control group)",
        })
    }
}

/// One number of a matrix and its place, for messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Which matrix.
    pub what: &'static str,
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// The number.
    pub value: f64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}, {}] = {:?}", self.what, self.row, self.column, self.value)
    }
}

pub(crate) fn human(bytes: u64) -> String {
    let b = bytes as f64;
    if b >= 1e9 { format!("{:.1} GB", b / 1e9) } else { format!("{:.1} MB", b / 1e6) }
}

/// Why `need` bytes are too many. An allocation can fail although there seems to be enough.
pub(super) fn shortage(need: u64, available: u64, limit: Limit) -> String {
    match available {
        u64::MAX => "which could not be allocated".into(),
        _ if need > available => format!("but only {} are available{limit}", human(available)),
        _ => format!("which could not be allocated, though {} seemed to be available{limit}", human(available)),
    }
}

/// The number that is to blame for a kernel value.
pub(super) fn largest(cell: Option<&Cell>) -> String {
    cell.map_or_else(String::new, |cell| format!(" (the largest number is {cell})"))
}

/// The fit at low rank as a way out, with the memory it takes.
pub(super) fn at_low_rank(bytes: Option<u64>, need: u64, available: u64) -> String {
    match bytes {
        None => "`.low_rank(…)`".into(),
        Some(bytes) if bytes >= need => "`.low_rank(…)` with fewer landmarks".into(),
        Some(bytes) if bytes > available => {
            format!("`.low_rank(…)` (about {}, less with fewer landmarks)", human(bytes))
        }
        Some(bytes) => format!("`.low_rank(…)` (about {})", human(bytes)),
    }
}

pub(super) fn more_memory(limit: Limit) -> &'static str {
    if limit == Limit::Machine { "or a machine with more memory" } else { "or raise the limit" }
}
