//! Everything that can go wrong, with the offending value and the way out.

mod texts;

pub use texts::{Cell, Limit};

pub(crate) use texts::human;
use texts::{at_low_rank, largest, more_memory, shortage};

/// An error of the library. Running out of steps or time is not an error but a [`Status`](crate::Status).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// NaN or infinity in the data.
    #[error("{what} contains {value} at row {row}, column {column}: remove or impute such values")]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// The value found.
        value: f64,
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// A sparse matrix whose parts do not fit together.
    #[error("not a sparse matrix in compressed rows (CSR): {problem}")]
    Sparse {
        /// What is wrong with it, and where.
        problem: String,
    },
    /// Two lengths that must agree do not.
    #[error("{what} has length {got}, but {expected} is needed ({why})")]
    Length {
        /// Which array.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The length it should have.
        expected: usize,
        /// Where the expected length comes from.
        why: &'static str,
    },
    /// No rows or no columns.
    #[error("X has {rows} rows and {columns} columns: at least one of each is needed")]
    Empty {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// Something that needs the whole kernel matrix.
    #[error("{what} needs the whole kernel matrix, which `.low_rank(…)` does without: use {instead}")]
    LowRank {
        /// What was asked for.
        what: &'static str,
        /// What can be used instead.
        instead: &'static str,
    },
    /// A label other than -1 and +1.
    #[error("labels must be -1 or +1, got {value} at row {row}")]
    Label {
        /// The label found.
        value: f64,
        /// Its row.
        row: usize,
    },
    /// A class that is not a whole number from 0 on.
    #[error("classes must be whole numbers from 0 on, got {value} at row {row}")]
    Class {
        /// The class found.
        value: f64,
        /// Its row.
        row: usize,
    },
    /// A weight that is negative or not finite.
    #[error("weights must be finite and at least 0, got {value} at row {row}")]
    Weight {
        /// The weight found.
        value: f64,
        /// Its row.
        row: usize,
    },
    /// No row with a weight.
    #[error("no row to learn from: all weights are 0; give some rows a weight > 0")]
    NoWeight,
    /// A list of rows that is out of order or out of range.
    #[error("a task must name its rows in rising order, but row {row} {problem}")]
    Rows {
        /// The row found.
        row: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A training set with one class only.
    #[error(
        "{}: all {rows} training rows have the same class, and two are needed; {}",
        .fold.map_or_else(|| "the data".to_string(), |k| format!("fold {k}")),
        if .fold.is_some() {
            "use stratified folds with at least 2 rows of each class, or add rows of another class"
        } else {
            "add rows of another class"
        }
    )]
    OneClass {
        /// The fold (the row that is left out, if that is one by one), or `None` for the whole data.
        fold: Option<usize>,
        /// Number of training rows.
        rows: usize,
    },
    /// A class without a row.
    #[error(
        "the data: no training row of class {class} of {classes} has a weight; leave the class out, or add rows of it"
    )]
    NoClass {
        /// The class, counted from 0.
        class: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// Leave-one-out for a loss that does not have it.
    #[error("the multinomial loss has no leave-one-out; use folds, or machines of two classes")]
    NoLeaveOneOut,
    /// A fold without training or test rows, or with an index out of range.
    #[error("fold {fold}: {problem}")]
    Fold {
        /// Which fold.
        fold: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Scores that cannot be turned into probabilities.
    #[error("calibration: {problem}")]
    Calibration {
        /// What is wrong with them.
        problem: String,
    },
    /// No loss.
    #[error("no loss given: give at least one")]
    NoLoss,
    /// A solver that cannot minimise this loss.
    #[error("solver {solver:?} does not fit the {loss} loss, {why}; what fits: {}", .fitting.join(", "))]
    Solver {
        /// The solver asked for.
        solver: &'static str,
        /// The loss.
        loss: &'static str,
        /// What the solver misses.
        why: &'static str,
        /// The solvers that fit.
        fitting: Vec<&'static str>,
    },
    /// The eigendecomposition of the kernel matrix failed.
    #[error("the eigendecomposition of the kernel matrix of {rows} rows failed: {reason}; use another solver")]
    Eigen {
        /// Rows of the matrix.
        rows: usize,
        /// Why.
        reason: String,
    },
    /// No value of C.
    #[error("cs is empty: give at least one value of C")]
    NoCs,
    /// A value of C that is not a positive number.
    #[error("C must be a finite number > 0, got {value} (cs[{index}])")]
    BadC {
        /// The value found.
        value: f64,
        /// Its position.
        index: usize,
    },
    /// A value of C whose products with weights, targets and the kernel no double can hold.
    #[error(
        "C = {value:e} (cs[{index}]) times {} gives an objective that double precision cannot represent: {}",
        if *.value < *.low { format!("the smallest weight ({:e})", .weight) } else { format!("the sum of the weights ({:e})", .weight) },
        if *.low <= *.high && *.high > 0.0 {
            format!("with these weights, targets and kernel values C must be between {:.1e} and {:.1e}", .low, .high)
        } else {
            "no C fits these weights, targets and kernel values; scale y, the weights or X".to_string()
        }
    )]
    ExtremeC {
        /// The value found.
        value: f64,
        /// Its position.
        index: usize,
        /// The weight that C is too small or too large for.
        weight: f64,
        /// The smallest C that works.
        low: f64,
        /// The largest C that works.
        high: f64,
    },
    /// A parameter out of its range.
    #[error("{name} must be {expected}, got {value}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// The values it takes.
        expected: &'static str,
        /// The value found.
        value: f64,
    },
    /// A setting of a builder that cannot be used.
    #[error("`{call}`: {problem}")]
    Setting {
        /// The setting, as it is written.
        call: String,
        /// What is wrong with it, and the way out.
        problem: String,
    },
    /// A name that is not known.
    #[error("unknown {what} {name:?}: known are {}", .known.join(", "))]
    Unknown {
        /// What kind of thing is named.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names that exist.
        known: &'static [&'static str],
    },
    /// A precomputed kernel matrix that is not square.
    #[error("a precomputed kernel matrix must be square, got {rows} x {columns}")]
    NotSquare {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
    },
    /// A precomputed kernel matrix that is not symmetric.
    #[error(
        "a precomputed kernel matrix must be symmetric, but K[{row}, {column}] = {value} and K[{column}, {row}] = {mirrored}"
    )]
    NotSymmetric {
        /// Row of the first entry found.
        row: usize,
        /// Column of the first entry found.
        column: usize,
        /// The entry.
        value: f64,
        /// The entry opposite.
        mirrored: f64,
    },
    /// The kernel matrix does not fit into memory.
    #[error(
        "{rows} rows need {} for the kernel matrix, the solver and the models kept, {}; use {}, fewer rows or values of C{}, {}",
        human(*.need), shortage(*.need, *.available, *.limit), at_low_rank(*.low_rank, *.need, *.available),
        if *.could_halve { ", `.precision(Precision::Single)` (half the need)" } else { "" }, more_memory(*.limit)
    )]
    Memory {
        /// Distinct rows of the data.
        rows: usize,
        /// Bytes the plan asks for.
        need: u64,
        /// Bytes available; `u64::MAX` where the system does not tell.
        available: u64,
        /// What bounds them.
        limit: Limit,
        /// Bytes that a fit at low rank is planned to take, if that is known.
        low_rank: Option<u64>,
        /// Whether single precision is a way out.
        could_halve: bool,
    },
    /// A block of memory that cannot be had.
    #[error("{} are needed for {what}, {}; {way_out}", human(*.need), shortage(*.need, *.available, *.limit))]
    Allocation {
        /// What it is for.
        what: &'static str,
        /// Bytes needed.
        need: u64,
        /// Bytes available; `u64::MAX` where the system does not tell.
        available: u64,
        /// What bounds them.
        limit: Limit,
        /// What to do.
        way_out: &'static str,
    },
    /// Landmarks that cannot be had, or make no sense.
    #[error("landmarks: {problem}")]
    Landmarks {
        /// What is wrong, and what fits.
        problem: String,
    },
    /// Low-rank features that do not fit into memory.
    #[error(
        "{rank} features of {rows} rows need {}, {}; use a smaller rank{}{}",
        human(*.need), shortage(*.need, *.available, *.limit),
        if *.could_halve { ", `.precision(Precision::Single)` (half the need)" } else { "" },
        if *.could_spill { ", or let them be kept in a file" } else { "" }
    )]
    FeatureMemory {
        /// Rows of the data.
        rows: usize,
        /// Features of a row.
        rank: usize,
        /// Bytes needed.
        need: u64,
        /// Bytes available; `u64::MAX` where the system does not tell.
        available: u64,
        /// What bounds them.
        limit: Limit,
        /// Whether single precision is a way out.
        could_halve: bool,
        /// Whether a file is a way out.
        could_spill: bool,
    },
    /// No file for what does not fit into memory.
    #[error(
        "cannot keep {} in a temporary file in {folder}: {reason}; name another folder in TMPDIR, or use a smaller rank",
        human(*.need)
    )]
    Disk {
        /// Bytes needed.
        need: u64,
        /// The folder of temporary files.
        folder: String,
        /// What the system said.
        reason: String,
    },
    /// Rows from which a bandwidth cannot be estimated.
    #[error(
        "gamma by {rule:?} needs rows that differ by numbers in the range of doubles, but {found}; give gamma as a number"
    )]
    Bandwidth {
        /// The rule.
        rule: &'static str,
        /// What was found.
        found: String,
    },
    /// New data with another number of columns than the training data.
    #[error("X has {got} features, but the model was fitted with {expected}")]
    Features {
        /// Columns found.
        got: usize,
        /// Columns of the training data.
        expected: usize,
    },
    /// A kernel value that the precision cannot hold.
    #[error(
        "the kernel of rows {row} and {column} is {value:e} in {precision}: scale the features{} or the kernel's constants{}",
        largest(.cell.as_ref()), if *.precision == "float32" { ", or use `.precision(Precision::Double)`" } else { "" }
    )]
    Overflow {
        /// One row.
        row: usize,
        /// The other.
        column: usize,
        /// The value found.
        value: f64,
        /// The precision.
        precision: &'static str,
        /// The largest number of the two rows; `None` if the kernel matrix was given.
        cell: Option<Cell>,
    },
    /// A sum of kernel values that double precision cannot hold.
    #[error("{what} of row {row} is {value:e} in {precision}: scale the features{} or the kernel's constants", largest(.cell.as_ref()))]
    SumOverflow {
        /// What is summed.
        what: &'static str,
        /// The row.
        row: usize,
        /// The value found.
        value: f64,
        /// The precision.
        precision: &'static str,
        /// The largest number of the row; `None` if the kernel matrix was given.
        cell: Option<Cell>,
    },
    /// The time budget ended before there was any model.
    #[error("the time budget of {budget} s ended before {what}; raise it or use fewer rows (there are {rows})")]
    TimeBudget {
        /// Seconds allowed.
        budget: f64,
        /// What was not complete by then.
        what: &'static str,
        /// Distinct rows.
        rows: usize,
    },
    /// A device that is not there, or cannot be used.
    #[error("device {name:?} cannot be used: {problem}; available are {}", .available.join(", "))]
    Device {
        /// The device asked for.
        name: String,
        /// What is missing, and what to do about it.
        problem: String,
        /// The devices that can be used, by their names.
        available: Vec<String>,
    },
    /// The memory of a device does not suffice.
    #[error(
        "{} are needed on device {device:?}, but only {} of its memory can be had; use `.low_rank(…)`, fewer rows, a smaller rank, or the device \"cpu\"",
        human(*.need), human(*.free)
    )]
    DeviceMemory {
        /// The device.
        device: String,
        /// Bytes of the block that could not be had.
        need: u64,
        /// Bytes that can be had.
        free: u64,
    },
    /// More rows or columns than a device can count.
    #[error("a device counts at most 2147483647 rows or columns, got {size}; use the device \"cpu\"")]
    DeviceSize {
        /// The number found.
        size: usize,
    },
    /// The driver of a device does not compile the kernels.
    #[error("the kernels do not compile for device {device:?}: {log}; update its driver, or use the device \"cpu\"")]
    DeviceKernels {
        /// The device.
        device: String,
        /// What the compiler said.
        log: String,
    },
    /// A call of a driver failed.
    #[error("device {device:?} failed in {call}: {reason}; try again, or use the device \"cpu\"")]
    DeviceFailed {
        /// The device.
        device: String,
        /// The call.
        call: String,
        /// What the driver said.
        reason: String,
    },
    /// A device in a process that was forked after the device had been used.
    #[error(
        "a forked process cannot use device {device:?}, which its parent used; start processes with \"spawn\", or use the device \"cpu\""
    )]
    DeviceForked {
        /// The device.
        device: String,
    },
    /// A file that is no model, or a damaged one.
    #[error("{}: {problem}", if .file.is_empty() { "model file" } else { .file })]
    File {
        /// The file, as the caller named it; empty for bytes that were in memory.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that cannot be read or written.
    #[error("cannot {doing} {file:?}: {reason}")]
    FileAccess {
        /// The file, as the caller named it.
        file: String,
        /// "read" or "write".
        doing: &'static str,
        /// What the system said.
        reason: String,
        /// What kind of failure that is.
        kind: std::io::ErrorKind,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Worker threads could not be started.
    #[error("could not start {threads} worker threads: {reason}")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

/// `Result` with this library's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The value of that name, where `names` are those of `values`.
pub(crate) fn named<V: Copy>(
    what: &'static str,
    name: &str,
    names: &'static [&'static str],
    values: &[V],
) -> Result<V> {
    let known = names.iter().zip(values).find(|(known, _)| **known == name);
    known.map(|(_, value)| *value).ok_or_else(|| Error::Unknown { what, name: name.into(), known: names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_below_what_is_available_is_no_reason() {
        let error = |need, available, limit| {
            let low_rank = Some(500 << 20);
            Error::Memory { rows: 40_000, need, available, limit, low_rank, could_halve: true }.to_string()
        };
        let short = error(8 << 30, 1 << 30, Limit::Machine);
        assert!(
            short.contains("40000 rows need 8.6 GB") && short.contains("but only 1.1 GB are available; "),
            "{short}"
        );
        assert!(
            short.contains("use `.low_rank(…)` (about 524.3 MB), fewer") && short.contains("Precision::Single"),
            "{short}"
        );
        assert!(short.contains("fewer rows") && short.contains("a machine with more memory"), "{short}");
        let limited = error(8 << 30, 1 << 30, Limit::AddressSpace);
        assert!(limited.contains("(ulimit -v)") && limited.contains("raise the limit"), "{limited}");
        for available in [24 << 30, u64::MAX] {
            let failed = error(8 << 30, available, Limit::Machine);
            assert!(failed.contains("could not be allocated") && !failed.contains("only"), "{failed}");
        }
    }

    #[test]
    fn the_size_of_a_fit_at_low_rank_is_named_where_it_helps() {
        let said = |low_rank: Option<u64>, available| {
            let (rows, need, limit) = (500, 1 << 30, Limit::Machine);
            Error::Memory { rows, need, available, limit, low_rank, could_halve: false }.to_string()
        };
        for (low_rank, available, expected) in [
            (Some(300 << 20), 1 << 29, "use `.low_rank(…)` (about 314.6 MB), fewer rows"),
            (Some(300 << 20), 1 << 20, "use `.low_rank(…)` (about 314.6 MB, less with fewer landmarks), fewer rows"),
            (Some(2 << 30), 1 << 20, "use `.low_rank(…)` with fewer landmarks, fewer rows"),
            (None, 1 << 20, "use `.low_rank(…)`, fewer rows"),
        ] {
            let said = said(low_rank, available);
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn blocks_name_their_use() {
        let (what, way_out) = ("the kernel matrix", "use fewer rows");
        let (need, available, limit) = (2 << 20, 1 << 20, Limit::Container);
        let message = Error::Allocation { what, need, available, limit, way_out }.to_string();
        let start = "2.1 MB are needed for the kernel matrix, but only 1.0 MB are available under";
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains("container") && message.ends_with("; use fewer rows"), "{message}");
    }
}
