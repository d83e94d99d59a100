//! Why a command ends early, and with which exit status.

use std::io::{self, ErrorKind};

use kernelpath::Error;
use kernelpath_data::Problem;

use crate::output;

/// The exit status of what failed although the input is right: reading, writing, memory, devices.
pub(crate) const FAILED: u8 = 1;

/// The exit status of wrong arguments and wrong data.
pub(crate) const BAD_INPUT: u8 = 2;

/// The exit status if the model did not reach the tolerance.
pub(crate) const NOT_CERTIFIED: u8 = 3;

/// The exit status after an interruption, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub status: u8,
    /// What is wrong, and what to do; empty if there is nobody to tell.
    pub message: String,
    is_closed_pipe: bool,
}

/// What the library calls settings in its messages, and the options that set them.
const OPTIONS: [(&str, &str); 19] = [
    (".low_rank(…)", "--low-rank"),
    (".precision(Precision::Single)", "--dtype float32"),
    (".precision(Precision::Double)", "--dtype float64"),
    (".probability(Method::Sigmoid)", "--probability"),
    (".folds(Folds::None)", "--folds 0"),
    (".selection(Selection::Best)", "--selection best"),
    (".tune(Tune::Each)", "--tune each"),
    (".cs([1.0])", "--cs 1"),
    (".gammas([0.1])", "--gamma 0.1"),
    (".cv(10)", "--folds 10"),
    (".cv(5)", "--folds 5"),
    ("use Regressor", "use --task ridge, or another regression"),
    ("Classifier::logistic()", "--task logistic --multi-class ovo"),
    ("Classifier::multinomial()", "--multi-class multinomial"),
    ("Scoring::R2", "r2"),
    ("Scoring::Accuracy", "accuracy"),
    ("Scoring::BalancedAccuracy", "balanced_accuracy"),
    ("Extent::Auto", "auto"),
    ("the device \"cpu\"", "--device cpu"),
];

/// The options that stand for calls of the builders.
const CALLS: [(&str, &str); 19] = [
    (".cs(", "--cs"),
    (".n_cs(", "--n-cs"),
    (".gammas(", "--gamma"),
    (".cv(", "--folds"),
    (".folds(", "--folds"),
    (".leave_one_out(", "--loo"),
    (".scoring(", "--scoring"),
    (".selection(", "--selection"),
    (".tune(", "--tune"),
    (".tol(", "--tol"),
    (".max_iter(", "--max-iter"),
    (".probability(", "--probability"),
    (".multi_class(", "--multi-class"),
    (".class_weight(", "--class-weight"),
    ("Regressor::svr(", "--epsilon"),
    ("Regressor::huber(", "--delta"),
    ("Regressor::expectile(", "--tau"),
    ("Quantiles::at(", "--tau"),
    ("encoding", "--one-hot"),
];

/// The message of an error in the words of the command line.
fn in_options(error: &Error) -> String {
    let text = match error {
        Error::Setting { call, problem } => {
            let option = CALLS.iter().find(|(start, _)| call.starts_with(start));
            format!("{}: {problem}", option.map_or("the data", |(_, option)| option))
        }
        other => other.to_string(),
    };
    let text = text.replace('`', "");
    OPTIONS.iter().fold(text, |text, (setting, option)| text.replace(setting, option))
}

impl Failure {
    pub fn new(status: u8, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_closed_pipe: false }
    }

    /// Of wrong arguments or data.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(BAD_INPUT, message)
    }

    pub fn is_closed_pipe(&self) -> bool {
        self.is_closed_pipe
    }

    /// Tells standard error.
    pub fn report(&self) {
        if !self.message.is_empty() {
            output::tell(&format!("error: {}", self.message));
        }
    }
}

/// An exit status of clap, which has 0 for help and 2 for errors.
pub(crate) fn status(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(FAILED)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Interrupted => INTERRUPTED,
            Error::TimeBudget { .. } => NOT_CERTIFIED,
            Error::FileAccess { .. }
            | Error::Memory { .. }
            | Error::FeatureMemory { .. }
            | Error::Allocation { .. }
            | Error::Disk { .. }
            | Error::Threads { .. }
            | Error::Device { .. }
            | Error::DeviceMemory { .. }
            | Error::DeviceKernels { .. }
            | Error::DeviceFailed { .. } => FAILED,
            _ => BAD_INPUT,
        };
        Self::new(status, in_options(&error))
    }
}

impl From<kernelpath_data::Error> for Failure {
    fn from(error: kernelpath_data::Error) -> Self {
        match error {
            kernelpath_data::Error::Library(error) => error.into(),
            kernelpath_data::Error::Io { source, file } => {
                // Input that one waits for is interrupted through an error of the system.
                let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
                inner.map_or_else(|| Self::new(FAILED, format!("{file}: {source}")), |inner| inner.clone().into())
            }
            kernelpath_data::Error::Memory { .. } => Self::new(FAILED, error.to_string()),
            kernelpath_data::Error::Line { problem: Problem::Number { .. }, .. } => {
                let way_out = "write decimals with a point";
                Self::input(error.to_string().replace(way_out, &format!("{way_out}, or give --decimal ,")))
            }
            _ => Self::input(error.to_string()),
        }
    }
}

impl From<kernelpath_export::Error> for Failure {
    fn from(error: kernelpath_export::Error) -> Self {
        match error {
            kernelpath_export::Error::Library(error) => error.into(),
            _ => Self::input(error.to_string()),
        }
    }
}

impl From<&io::Error> for Failure {
    /// Of standard output.
    fn from(error: &io::Error) -> Self {
        let is_closed_pipe = error.kind() == ErrorKind::BrokenPipe;
        Self { is_closed_pipe, ..Self::new(FAILED, format!("cannot write to standard output: {error}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_speak_of_options() {
        let error = Error::Setting { call: ".fit(x, y)".into(), problem: "for targets use `Regressor`".into() };
        let failure = Failure::from(error);
        assert_eq!(
            (failure.status, &*failure.message),
            (2, "the data: for targets use --task ridge, or another regression")
        );
        assert_eq!(Failure::from(Error::Interrupted).status, 130);
    }
}
