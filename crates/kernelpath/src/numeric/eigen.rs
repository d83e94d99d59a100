//! Eigendecompositions, in threads of their own so that a fit that is interrupted need not wait for them.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Mat, Par, Side, Spec};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::numeric::memory;
use crate::observe::Control;

/// What errors call the decomposition.
const DECOMPOSITION: &str = "the eigendecomposition";

fn work_space(n: usize) -> StackReq {
    self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default())
}

/// Bytes that the eigenvectors of a matrix of order `n` and the space to find them take, beside the matrix.
pub(crate) fn eigen_bytes(n: usize) -> u64 {
    8 * n as u64 * n as u64 + work_space(n).size_bytes() as u64 + memory::space_of_thread()
}

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors.
pub(crate) fn eigen(k: Mat<f64>, control: &Control) -> Result<(Vec<f64>, Mat<f64>)> {
    let rows = k.nrows();
    // All memory is taken here, where a lack of it is an error.
    memory::check_block(eigen_bytes(rows) as usize, DECOMPOSITION)?;
    let mut basis = memory::matrix(rows, rows, DECOMPOSITION, |_, _| 0.0)?;
    let mut space =
        MemBuffer::try_new(work_space(rows)).map_err(|_| memory::out_of_memory(eigen_bytes(rows), DECOMPOSITION))?;
    left_behind(rows, control, move || {
        let mut values = Diag::<f64>::zeros(rows);
        let stack = MemStack::new(&mut space);
        let (u, s) = (basis.as_mut(), values.as_mut());
        self_adjoint_evd(k.as_ref(), s, Some(u), Par::Seq, stack, Spec::default()).ok()?;
        Some((values.column_vector().iter().copied().collect(), basis))
    })
}

/// The eigenvalues of a symmetric matrix, ascending.
pub(crate) fn eigenvalues(k: Mat<f64>, control: &Control) -> Result<Vec<f64>> {
    memory::check_block(eigen_bytes(k.nrows()) as usize, DECOMPOSITION)?;
    left_behind(k.nrows(), control, move || k.self_adjoint_eigenvalues(Side::Lower).ok())
}

/// Runs `decompose` on a matrix of `rows` rows. It returns `None` if it does not converge.
///
/// It runs in a thread of its own, since it cannot be interrupted: when the fit is interrupted, the thread is left
/// behind.
fn left_behind<R: Send + 'static>(
    rows: usize,
    control: &Control,
    decompose: impl FnOnce() -> Option<R> + Send + 'static,
) -> Result<R> {
    let failed = |reason: &str| Error::Eigen { rows, reason: reason.to_string() };
    let (send, receive) = channel();
    std::thread::Builder::new()
        .spawn(move || {
            let _ = send.send(decompose());
        })
        .map_err(|error| failed(&error.to_string()))?;
    loop {
        match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(Some(decomposition)) => return Ok(decomposition),
            Ok(None) => return Err(failed("it did not converge")),
            Err(RecvTimeoutError::Timeout) => control.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(failed("its thread ended")),
        }
    }
}
