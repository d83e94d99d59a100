//! The one door into the library: borrow arrays, release the GIL, poll signals, map errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use faer::MatRef;
use kernelpath::{Control, Csr, Error, Indices, Phase, Rows, Values, Watch};
use numpy::ndarray::{ArrayView, Dimension, Ix1, Ix2, IxDyn};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

/// How often a running fit is asked for its progress, and Python for signals.
const POLL: Duration = Duration::from_millis(50);

/// What the library calls settings, and the keywords of Python for them.
const KEYWORDS: [(&str, &str); 9] = [
    ("`.low_rank(…)`", "low_rank=True"),
    ("`.precision(Precision::Single)`", "dtype=\"float32\""),
    ("`.precision(Precision::Double)`", "dtype=\"float64\""),
    ("`.cv(10)`", "cv=10"),
    ("(cs[", "(Cs["),
    ("cs is empty", "Cs is empty"),
    ("gamma by ", "gamma="),
    ("the rank is ", "rank="),
    ("the time budget of ", "time_budget="),
];

/// Every error of the library as the Python exception a caller would expect.
fn exception(error: &Error) -> PyErr {
    let message = KEYWORDS.iter().fold(error.to_string(), |text, (setting, keyword)| text.replace(setting, keyword));
    match error {
        Error::Memory { .. } | Error::FeatureMemory { .. } | Error::Allocation { .. } | Error::DeviceMemory { .. } => {
            PyMemoryError::new_err(message)
        }
        Error::Disk { .. } => PyOSError::new_err(message),
        // The subclass of OSError for this kind of failure.
        Error::FileAccess { kind, .. } => std::io::Error::new(*kind, message).into(),
        Error::TimeBudget { .. } => PyTimeoutError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(message),
        Error::Threads { .. }
        | Error::Device { .. }
        | Error::DeviceFailed { .. }
        | Error::DeviceForked { .. }
        | Error::DeviceKernels { .. } => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// A copy of the numbers, if there is memory for it.
pub fn copied<T>(values: impl ExactSizeIterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut out = Vec::new();
    let full = |_| PyMemoryError::new_err(format!("no memory for a copy of {} numbers", values.len()));
    out.try_reserve_exact(values.len()).map_err(full)?;
    for value in values {
        out.push(value?);
    }
    Ok(out)
}

/// The value, or the error as a Python exception.
pub fn unwrap<T>(result: kernelpath::Result<T>) -> PyResult<T> {
    result.map_err(|e| exception(&e))
}

/// A numpy array that enters: kept alive and read-only while borrowed, and safe to read where it lies.
///
/// Rust reads numbers at aligned places, and counts strides in numbers. Numpy needs neither: the fields of a structured
/// array may lie at any byte, and so may a view of a buffer. Such an array is copied here. `PyReadonlyArray` does not
/// look, and reads wrong places; so no other file names it.
pub struct Readable<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

/// An array of one dimension.
pub type Vector<'py, T> = Readable<'py, T, Ix1>;

/// An array of two dimensions.
pub type Table<'py, T> = Readable<'py, T, Ix2>;

/// An array of any number of dimensions.
pub type Tensor<'py, T> = Readable<'py, T, IxDyn>;

impl<'py, T: Element, D: Dimension> Readable<'py, T, D> {
    /// The array itself, or if it `must_move` a copy of it.
    fn new(
        array: &Bound<'py, PyArray<T, D>>,
        must_move: impl FnOnce(&Bound<'py, PyArray<T, D>>) -> bool,
    ) -> PyResult<Self> {
        let readable = if must_move(array) {
            // A plain array with a block of memory of its own.
            array.py().import("numpy")?.call_method1("array", (array,))?.cast_into()?
        } else {
            array.clone()
        };
        Ok(Self(readable.try_readonly()?))
    }

    /// The numbers where they lie.
    pub fn view(&self) -> ArrayView<'_, T, D> {
        self.0.as_array()
    }

    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }
}

/// Whether a number of the array lies at a place where Rust does not read numbers of its type.
fn is_odd<T: Element, D: Dimension>(array: &Bound<'_, PyArray<T, D>>) -> bool {
    let size = size_of::<T>() as isize;
    !array.data().is_aligned() || array.strides().iter().any(|stride| stride % size != 0)
}

impl<'a, 'py, T: Element, D: Dimension> FromPyObject<'a, 'py> for Readable<'py, T, D> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::new(&*object.cast()?, is_odd)
    }
}

impl<'py, T: Element> Vector<'py, T> {
    /// An array without gaps, or a copy that has none.
    fn without_gaps(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(object.cast()?, |array| is_odd(array) || !array.is_contiguous())
    }

    /// The numbers of an array [without gaps](Self::without_gaps).
    fn slice(&self) -> PyResult<&[T]> {
        Ok(self.0.as_slice()?)
    }

    pub fn to_vec(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.view().to_vec()
    }
}

impl<T: Element> Table<'_, T> {
    /// The array as a matrix, read where it lies.
    pub fn matrix(&self) -> MatRef<'_, T> {
        let (shape, strides) = (self.shape(), self.0.strides());
        let size = size_of::<T>() as isize;
        // SAFETY: the borrow lives as long as the view, `is_odd` has checked places and strides, and numpy's flags keep
        // Rust from writing to the array. What another Python thread writes is read as numbers, which are not used as
        // indices.
        unsafe { MatRef::from_raw_parts(self.0.data(), shape[0], shape[1], strides[0] / size, strides[1] / size) }
    }
}

/// A numpy matrix of either precision, or a sparse matrix.
pub enum Matrix<'py> {
    F32(Table<'py, f32>),
    F64(Table<'py, f64>),
    Csr(CsrMatrix<'py>),
}

impl<'py> Matrix<'py> {
    pub fn borrow(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        if object.cast::<PyArray2<f64>>().is_ok() {
            return Ok(Self::F64(object.extract()?));
        }
        if object.cast::<PyArray2<f32>>().is_ok() {
            return Ok(Self::F32(object.extract()?));
        }
        if object.getattr("format").is_ok_and(|format| format.eq("csr").unwrap_or(false)) {
            return Ok(Self::Csr(CsrMatrix::borrow(object, name)?));
        }
        Err(PyTypeError::new_err(format!(
            "{name} must be a two-dimensional numpy array or a scipy CSR matrix of float32 or float64, got {}",
            object.get_type().name()?
        )))
    }

    /// The rows. The structure of a sparse matrix is checked first.
    pub fn rows(&self) -> PyResult<Rows<'_>> {
        match self {
            Self::F32(array) => Ok(Rows::F32(array.matrix())),
            Self::F64(array) => Ok(Rows::F64(array.matrix())),
            Self::Csr(matrix) => Ok(Rows::Csr(matrix.view()?)),
        }
    }
}

/// The arrays of a scipy CSR matrix.
pub struct CsrMatrix<'py> {
    shape: (usize, usize),
    indptr: Integers<'py>,
    indices: Integers<'py>,
    data: Floats<'py>,
}

enum Integers<'py> {
    I32(Vector<'py, i32>),
    I64(Vector<'py, i64>),
}

enum Floats<'py> {
    F32(Vector<'py, f32>),
    F64(Vector<'py, f64>),
}

impl<'py> CsrMatrix<'py> {
    fn borrow(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        let part = |part: &str| object.getattr(part);
        let wrong = |part: &str, expected: &str| PyTypeError::new_err(format!("{name}.{part} must be {expected}"));
        let integers = |name: &str| {
            let array = part(name)?;
            if array.cast::<PyArray1<i32>>().is_ok() {
                Ok(Integers::I32(Vector::without_gaps(&array)?))
            } else if array.cast::<PyArray1<i64>>().is_ok() {
                Ok(Integers::I64(Vector::without_gaps(&array)?))
            } else {
                Err(wrong(name, "an int32 or int64 array"))
            }
        };
        let data = part("data")?;
        let data = if data.cast::<PyArray1<f32>>().is_ok() {
            Floats::F32(Vector::without_gaps(&data)?)
        } else if data.cast::<PyArray1<f64>>().is_ok() {
            Floats::F64(Vector::without_gaps(&data)?)
        } else {
            return Err(wrong("data", "a float32 or float64 array"));
        };
        Ok(Self { shape: part("shape")?.extract()?, indptr: integers("indptr")?, indices: integers("indices")?, data })
    }

    fn view(&self) -> PyResult<Csr<'_>> {
        let data: Values = match &self.data {
            Floats::F32(array) => array.slice()?.into(),
            Floats::F64(array) => array.slice()?.into(),
        };
        let (indptr, indices) = (self.indptr.view()?, self.indices.view()?);
        let csr = unwrap(Csr::new(self.shape.1, indptr, indices, data))?;
        if csr.nrows() != self.shape.0 {
            let (found, rows) = (csr.nrows() + 1, self.shape.0);
            return Err(PyValueError::new_err(format!("indptr has {found} entries for {rows} rows, not one more")));
        }
        Ok(csr)
    }
}

impl Integers<'_> {
    fn view(&self) -> PyResult<Indices<'_>> {
        match self {
            Self::I32(array) => Ok(array.slice()?.into()),
            Self::I64(array) => Ok(array.slice()?.into()),
        }
    }
}

/// The number of threads as joblib counts: −1 is one per core that the process may use, −2 one less; 0 is the library's
/// default.
pub fn threads(n: i64) -> usize {
    let below = |_| kernelpath::threads::cores().saturating_sub((n + 1).unsigned_abs() as usize).max(1);
    usize::try_from(n).unwrap_or_else(below)
}

/// A pool of that many threads.
pub fn pool(n_threads: i64) -> PyResult<rayon::ThreadPool> {
    unwrap(kernelpath::memory::pool(threads(n_threads)))
}

/// A matrix with `columns` numbers per row, from a flat vector.
pub fn matrix<T: Element>(py: Python<'_>, values: Vec<T>, columns: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    values.into_pyarray(py).reshape([rows, columns])
}

/// Runs `work`, which must be short, on this thread, without the GIL.
pub fn run_here<R: Send>(py: Python<'_>, work: impl FnOnce() -> kernelpath::Result<R> + Send) -> PyResult<R> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => unwrap(result),
        Err(panic) => Err(panicked(panic.as_ref())),
    }
}

/// A panic as an exception. The only cause that a caller can influence is data that change while they are read.
fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let said = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing");
    PyRuntimeError::new_err(format!(
        "the computation failed: {said}. If another thread changed X meanwhile, pass a copy of it; if not, please report it"
    ))
}

/// Runs `work` on a thread of its own, without the GIL, while this thread polls signals.
pub fn run<R: Send>(
    py: Python<'_>,
    control: &Control,
    work: impl FnOnce() -> kernelpath::Result<R> + Send,
) -> PyResult<R> {
    run_watched(py, control, None, |_| work())
}

/// What the working thread sends to the thread that called it.
enum Message<R> {
    /// The fit with the γ at this place begins.
    Begin {
        at: usize,
        gammas: Vec<f64>,
        reply: Sender<bool>,
    },
    /// The fit with one γ ended.
    End {
        reply: Sender<bool>,
    },
    Done(std::thread::Result<kernelpath::Result<R>>),
}

/// The working thread's end of the channel to the thread that called it, which alone speaks to Python.
struct ToCaller<R>(Sender<Message<R>>);

impl<R: Send> ToCaller<R> {
    /// Sends a message and waits for the answer; an exception of Python interrupts the work.
    fn ask(&self, message: impl FnOnce(Sender<bool>) -> Message<R>) -> kernelpath::Result<bool> {
        let (reply, answer) = channel();
        let sent = self.0.send(message(reply));
        sent.ok().and_then(|()| answer.recv().ok()).ok_or(Error::Interrupted)
    }
}

impl<R: Send> Watch for ToCaller<R> {
    fn begin(&self, at: usize, gammas: &[f64]) -> kernelpath::Result<()> {
        self.ask(|reply| Message::Begin { at, gammas: gammas.to_vec(), reply }).map(|_| ())
    }

    fn end(&self) -> kernelpath::Result<bool> {
        self.ask(|reply| Message::End { reply })
    }
}

/// Who watches a fit in Python: called with (done, total, phase), and told of each γ by `begin_gamma(at, gammas)` and
/// `end_gamma()`, which returns whether to try no other.
struct Watcher<'a, 'py> {
    watch: Option<&'a Bound<'py, PyAny>>,
    control: &'a Control,
    reported: Option<(Phase, usize, usize)>,
    stopped_by: Option<PyErr>,
}

impl Watcher<'_, '_> {
    /// Keeps the first exception, and stops the work.
    fn note<T>(&mut self, result: PyResult<T>) -> Option<T> {
        result
            .map_err(|error| {
                self.control.cancel();
                self.stopped_by.get_or_insert(error);
            })
            .ok()
    }

    /// Reports progress, if there is any since the last report.
    fn report(&mut self) {
        let now = self.control.progress();
        if let Some(watch) = self.watch
            && self.stopped_by.is_none()
            && now.2 > 0
            && self.reported.replace(now) != Some(now)
        {
            let name = if now.0 == Phase::Kernel { "kernel" } else { "path" };
            let called = watch.call1((now.1, now.2, name));
            self.note(called);
        }
    }

    /// Answers a message of the working thread. Without an answer, the work is interrupted.
    fn answer<R>(&mut self, message: Message<R>) -> Option<std::thread::Result<kernelpath::Result<R>>> {
        match message {
            Message::Done(outcome) => return Some(outcome),
            Message::Begin { at, gammas, reply } => {
                self.reported = None;
                let called =
                    self.watch.map_or(Ok(()), |watch| watch.call_method1("begin_gamma", (at, gammas)).map(drop));
                if self.note(called).is_some() {
                    let _ = reply.send(true);
                }
            }
            Message::End { reply } => {
                self.report();
                let asked = |watch: &Bound<'_, PyAny>| watch.call_method0("end_gamma")?.is_truthy();
                let stops = self.watch.filter(|_| self.stopped_by.is_none()).map_or(Ok(false), asked);
                if let Some(stops) = self.note(stops) {
                    let _ = reply.send(!stops);
                }
            }
        }
        None
    }
}

/// As [`run`], while this thread also speaks for the work with `watch`: see [`Watcher`]. An exception there, or a
/// signal, stops the work and is raised.
pub fn run_watched<R: Send>(
    py: Python<'_>,
    control: &Control,
    watch: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Watch) -> kernelpath::Result<R> + Send,
) -> PyResult<R> {
    unwrap(kernelpath::memory::check_thread())?;
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            let caller = ToCaller(sender);
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&caller)));
            // The receiver waits until this arrives, so sending cannot fail.
            let _ = caller.0.send(Message::Done(outcome));
        });
        if let Err(error) = worker {
            return Err(exception(&Error::Threads { threads: 1, reason: error.to_string() }));
        }
        let mut watcher = Watcher { watch, control, reported: None, stopped_by: None };
        let outcome = loop {
            // A receiver is not shared between threads; only its use crosses the closure.
            let receiver = &mut *std::panic::AssertUnwindSafe(&receiver);
            match wait(py, receiver) {
                Ok(message) => {
                    if let Some(outcome) = watcher.answer(message) {
                        break outcome;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the worker thread ended without an answer"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let signals = py.check_signals();
                    watcher.note(signals);
                    watcher.report();
                }
            }
        };
        match (watcher.stopped_by, outcome) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => unwrap(result),
            (None, Err(panic)) => Err(panicked(panic.as_ref())),
        }
    })
}

/// Waits without the GIL.
fn wait<T: Send>(py: Python<'_>, receiver: &std::sync::mpsc::Receiver<T>) -> Result<T, RecvTimeoutError> {
    struct Wait<'a, T>(&'a std::sync::mpsc::Receiver<T>);
    // SAFETY: `detach` runs its closure on this same thread; the receiver never leaves it.
    unsafe impl<T> Send for Wait<'_, T> {}
    let wait = Wait(receiver);
    py.detach(move || {
        let wait = wait;
        wait.0.recv_timeout(POLL)
    })
}
