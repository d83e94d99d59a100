//! What `train` can be asked for.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser as Names;
use clap::{Args, ValueEnum};
use kernelpath::{Landmarks, Method, Missing, Precision, Scoring, Shape, Solver};

use crate::arguments::data::DataArguments;
use crate::arguments::grid::{GammaChoice, Grid, Length, ScaleChoice};

#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// File of rows and labels: LIBSVM, CSV or TSV, plain or packed; - is standard input.
    pub data: PathBuf,
    /// Where the model goes: NAME.kpath, or NAME.model for LIBSVM, or NAME.onnx.
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// What is learned.
    #[arg(long, value_enum, default_value_t = Task::Svm)]
    pub task: Task,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Show no progress and no notes.
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub data_options: DataArguments,
    #[command(flatten)]
    pub table: TableArguments,
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub tuning: TuningArguments,
    #[command(flatten)]
    pub work: WorkArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Support vector machine, which tells classes apart.
    Svm,
    /// Support vector machine with squared hinge loss.
    SquaredSvm,
    /// Logistic regression, with probabilities of classes.
    Logistic,
    /// Distance-weighted discrimination, for more columns than rows.
    Dwd,
    /// Quantiles of a number (--tau).
    Quantile,
    /// Support vector regression (--epsilon).
    Svr,
    /// Ridge regression: the mean.
    Ridge,
    /// Huber regression: the mean despite outliers (--delta).
    Huber,
    /// Expectiles (--tau).
    Expectile,
}

impl Task {
    /// Whether it tells classes apart; else it predicts numbers.
    pub fn is_of_classes(self) -> bool {
        matches!(self, Self::Svm | Self::SquaredSvm | Self::Logistic | Self::Dwd)
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
    }
}

/// What becomes of the columns; the model keeps it.
#[derive(Debug, Args)]
#[command(next_help_heading = "How the data is read")]
pub(crate) struct TableArguments {
    /// Number of columns of a LIBSVM file (default: its largest index).
    #[arg(long, value_name = "COUNT")]
    pub columns: Option<usize>,
    /// Missing values of a CSV file: an error (the default), the mean of their column, or drop, which leaves their rows
    /// out. The model keeps the rule.
    #[arg(long, value_name = "RULE", value_parser = Names::new(Missing::NAMES))]
    pub missing: Option<String>,
    /// Turn text columns of a CSV file into one column of 0 and 1 for each of their values. The model keeps the values.
    #[arg(long)]
    pub one_hot: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The model")]
pub(crate) struct ModelArguments {
    /// Kernel.
    #[arg(long, default_value = "rbf", value_parser = Names::new(Shape::NAMES))]
    pub kernel: String,
    /// Bandwidth: sigest, scale, one or several numbers (0.1,1,10), or auto-grid, six numbers around sigest. Of several
    /// the scores choose one.
    #[arg(long, value_name = "GAMMA")]
    pub gamma: Option<GammaChoice>,
    /// Degree of the polynomial kernel.
    #[arg(long, default_value_t = 3)]
    pub degree: u32,
    /// Constant of the polynomial and the sigmoid kernel.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub coef0: f64,
    /// Scale the columns, to mean 0 and variance 1 (standard) or to a range (LOW:HIGH), and drop those of equal values.
    /// The scaling is learned from all rows, before the folds: held-out rows have a part in it. The model keeps it.
    #[arg(long, value_name = "standard|LOW:HIGH", allow_hyphen_values = true)]
    pub scale: Option<ScaleChoice>,
    /// Calibrate probabilities of classes.
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "sigmoid",
        value_parser = Names::new(Method::NAMES))]
    pub probability: Option<String>,
    /// Several classes: a machine for each pair (ovo, the default), one for each class (ovr), or one for all
    /// (multinomial, for logistic regression).
    #[arg(long, value_enum)]
    pub multi_class: Option<MultiClassChoice>,
    /// Weights of classes in the loss: balanced, or LABEL=WEIGHT with commas between them. A label with a comma or an
    /// equals sign stands in double quotes.
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true)]
    pub class_weight: Option<String>,
    /// Level of a quantile (several: 0.1,0.5,0.9) or an expectile (default: 0.5).
    #[arg(long, visible_alias = "taus", value_name = "TAU", value_delimiter = ',')]
    pub tau: Vec<f64>,
    /// Sort the predicted quantiles of each row, so that none crosses another.
    #[arg(long)]
    pub noncrossing: bool,
    /// Half the width of the tube of support vector regression, in the unit of the labels; auto is 0.1 times their spread
    /// (the default).
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    pub epsilon: Option<Length>,
    /// Where the Huber loss turns linear, in the unit of the labels; auto is their spread (the default).
    #[arg(long, value_name = "DELTA", allow_hyphen_values = true)]
    pub delta: Option<Length>,
    /// Use a kernel at low rank, for many rows.
    #[arg(long)]
    pub low_rank: bool,
    /// How the landmarks of a low rank are chosen.
    #[arg(long, value_name = "RULE", requires = "low_rank", value_parser = Names::new(Landmarks::NAMES))]
    pub landmarks: Option<String>,
    /// Most landmarks (default: 2000).
    #[arg(long, value_name = "COUNT", requires = "low_rank")]
    pub n_landmarks: Option<usize>,
    /// Most features of a row (default: one for each landmark).
    #[arg(long, value_name = "COUNT", requires = "low_rank")]
    pub rank: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MultiClassChoice {
    Ovo,
    Ovr,
    Multinomial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelectionChoice {
    /// The highest mean score.
    Best,
    /// The smallest C within one standard error of it.
    #[value(name = "1se")]
    OneStandardError,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneChoice {
    Joint,
    Each,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Tuning")]
pub(crate) struct TuningArguments {
    /// Values of C: 0.1,1,10 or LOW:HIGH:COUNT (default: 50 values from 0.001 to 1000).
    #[arg(long, value_name = "VALUES", conflicts_with = "n_cs")]
    pub cs: Option<Grid>,
    /// Number of values of the default grid, at most 10000.
    #[arg(long, value_name = "COUNT")]
    pub n_cs: Option<usize>,
    /// Number of folds (default: 5); 0 for none, which needs one C.
    #[arg(long, value_name = "COUNT", conflicts_with = "loo")]
    pub folds: Option<usize>,
    /// Hold out each row once, exactly.
    #[arg(long)]
    pub loo: bool,
    /// Score that chooses (default: accuracy of classes, the mean loss of numbers).
    #[arg(long, value_parser = Names::new(Scoring::NAMES))]
    pub scoring: Option<String>,
    /// How the scores choose.
    #[arg(long, value_enum, default_value_t = SelectionChoice::Best)]
    pub selection: SelectionChoice,
    /// Whether the machines of several classes choose one C together or one each.
    #[arg(long, value_enum)]
    pub tune: Option<TuneChoice>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The work")]
pub(crate) struct WorkArguments {
    /// Largest relative duality gap of a model that counts as solved.
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tol: f64,
    /// Most steps of a solve (default: a million).
    #[arg(long, value_name = "STEPS")]
    pub max_iter: Option<usize>,
    /// Solver.
    #[arg(long, default_value = "auto", value_parser = Names::new(Solver::NAMES))]
    pub solver: String,
    /// Precision of the kernel matrix.
    #[arg(long, default_value = "auto", value_parser = Names::new(Precision::NAMES))]
    pub dtype: String,
    /// Device: cpu, auto, opencl, cuda, or one of several, such as opencl:1; see kernelpath devices.
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// Number of threads, at most 256; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Time that training may take. When it ends, the best of the models fitted by then is chosen.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time_budget: Option<f64>,
    /// Seed of folds, bandwidth and landmarks.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}
