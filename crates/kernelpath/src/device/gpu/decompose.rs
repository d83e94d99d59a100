//! Eigendecompositions on a device: by a library of its vendor where there is one, else by the processor.

use faer::Mat;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::device::gpu::accelerator::Accelerator;
use crate::device::gpu::launcher::{Launcher, Width};
use crate::device::gpu::machine::Decomposing;
use crate::device::gpu::panels::Panels;
use crate::device::matrix::Matrix;
use crate::error::{Error, Result};
use crate::numeric::eigen::eigen;
use crate::numeric::memory;
use crate::observe::Control;

impl<L: Launcher> Accelerator<L> {
    /// Rows of the largest matrix that the device decomposes itself: in one block, by a library of the vendor.
    pub(super) fn own_eigen_rows(&self) -> usize {
        self.machine.launcher.eigen_rows().min((self.machine.largest() / 8).isqrt() as usize)
    }

    /// The eigendecomposition by a library of the vendor, which takes the matrix in one block, in its precision.
    ///
    /// It cannot be interrupted, so it runs in a thread of its own. When the fit is interrupted, the thread is left behind:
    /// its memory is given back when it ends.
    pub(super) fn eigen_on_device(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        let (rows, machine) = (k.rows, self.machine.clone());
        let failed = move |reason: String| Error::Eigen { rows, reason };
        let (send, receive) = channel();
        let decompose = move || {
            let panels: &Panels<L> = k.of();
            let (width, matrix) = (panels.width, panels.blocks[0].block());
            let bytes = machine.launcher.eigen_space(width, rows).map_err(|failure| machine.command_error(failure))?;
            let space = machine.allocate::<f64>(bytes.div_ceil(8) as usize)?;
            let values = machine.allocate::<f64>(rows)?;
            let done = machine.launcher.eigen(width, rows, matrix, values.block(), space.block());
            done.map_err(|failure| machine.error(failure, bytes))?;
            let values = match width {
                Width::Single => machine.download::<f32>(&values, rows)?.into_iter().map(f64::from).collect(),
                Width::Double => machine.download::<f64>(&values, rows)?,
            };
            Ok((values, k))
        };
        let decomposing = Decomposing::begin(&self.machine);
        std::thread::Builder::new()
            .spawn(move || {
                // If nobody waits any more, the result is dropped here, before the end is counted.
                let _ = send.send(decompose());
                drop(decomposing);
            })
            .map_err(|error| failed(error.to_string()))?;
        loop {
            match receive.recv_timeout(Duration::from_millis(50)) {
                Ok(decomposition) => return decomposition,
                Err(RecvTimeoutError::Timeout) => control.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(failed("its thread ended".into())),
            }
        }
    }

    /// The eigendecomposition by the processor, in double precision.
    pub(super) fn eigen_on_host(&self, k: Matrix, control: &Control) -> Result<(Vec<f64>, Matrix)> {
        let n = k.rows;
        let panels: &Panels<L> = k.of();
        let mut host = memory::matrix(n, n, "the kernel matrix in double precision", |_, _| 0.0)?;
        panels.read(&self.machine, |range, part| {
            range.zip(part.chunks(n)).for_each(|(j, part)| host.col_as_slice_mut(j).copy_from_slice(part));
            control.check()
        })?;
        drop(k);
        let (values, basis): (Vec<f64>, Mat<f64>) = eigen(host, control)?;
        let out = Panels::new(&self.machine, Width::Double, n, n)?;
        out.fill(&self.machine, |range, part| {
            range.zip(part.chunks_mut(n)).for_each(|(j, part)| part.copy_from_slice(basis.col_as_slice(j)));
            control.check()
        })?;
        Ok((values, out.wrap()))
    }
}
