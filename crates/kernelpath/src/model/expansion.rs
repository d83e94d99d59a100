//! Several functions over shared support vectors.

use faer::{Mat, MatRef};

use crate::data::rows::{Rows, RowsBuf};
use crate::data::sparse::CsrBuf;
use crate::device::place::Hardware;
use crate::error::{Error, Result};
use crate::kernel::plane::{Centre, Plane, intercepts_at_zero};
use crate::kernel::shape::{KernelFn, Shape};
use crate::model::decision::decision;
use crate::observe::Control;

/// f_m(x) = Σᵢ coef[i, m] k(x, vᵢ) + b_m: one kernel evaluation per row and vector serves all functions.
#[derive(Debug, Clone)]
pub(crate) struct Expansion {
    kernel: KernelFn,
    /// None if the kernel is precomputed.
    vectors: RowsBuf,
    /// For a precomputed kernel, the columns of the matrix that belong to the vectors.
    columns: Vec<usize>,
    /// The number of columns that rows must have.
    width: usize,
    coef: Mat<f64>,
    intercepts: Vec<f64>,
    centre: Option<Centre>,
    /// The functions as planes, if the kernel is linear and the planes are small.
    plane: Option<Plane>,
}

impl Expansion {
    /// Over rows `columns` of the training data, or over the vectors given. `coef` has one row for each of them.
    /// `width` is the number of columns of the training data.
    pub fn new(
        kernel: KernelFn,
        (vectors, columns): (RowsBuf, Vec<usize>),
        width: usize,
        coef: Mat<f64>,
        intercepts: Vec<f64>,
    ) -> Self {
        let mut expansion = Self { kernel, vectors, columns, width, coef, intercepts, centre: None, plane: None };
        expansion.plane = expansion.as_plane();
        expansion
    }

    /// With the point that the rows of a linear kernel were centred at, and the values there, which the intercepts follow
    /// from. Other kernels are not centred.
    pub fn centred(mut self, centre: Option<Centre>) -> Self {
        if self.kernel.shape == Shape::Linear && centre.is_some() {
            self.centre = centre;
            self.plane = self.as_plane();
            self.intercepts = match (&self.plane, &self.centre) {
                (Some(plane), _) => plane.intercepts(),
                (None, Some(centre)) => intercepts_at_zero(&self.vectors.view(), self.coef.as_ref(), centre),
                (None, None) => self.intercepts,
            };
        }
        self
    }

    fn as_plane(&self) -> Option<Plane> {
        let Self { kernel, vectors, coef, intercepts, centre, .. } = self;
        let (vectors, coef) = (vectors.view(), coef.as_ref());
        let has_plane = kernel.shape == Shape::Linear && Plane::is_small(&vectors, coef);
        // (Without the memory for weights, the vectors serve.)
        has_plane.then(|| Plane::new(&vectors, coef, intercepts, centre.as_ref()).ok()).flatten()
    }

    pub fn centre(&self) -> Option<&Centre> {
        self.centre.as_ref()
    }

    /// The functions as planes, if the kernel is linear and the planes are small.
    pub fn plane(&self) -> Option<&Plane> {
        self.plane.as_ref()
    }

    /// The same for rows with more columns, which the vectors have zeros in.
    pub fn widened(&self, columns: usize) -> Self {
        let vectors = RowsBuf::Csr(CsrBuf::widened(&self.vectors.view(), columns));
        let (coef, intercepts) = (self.coef.clone(), self.intercepts.clone());
        let centre = self.centre.clone().map(|mut centre| {
            centre.point.resize(columns, 0.0);
            centre
        });
        Self::new(self.kernel, (vectors, self.columns.clone()), columns, coef, intercepts).centred(centre)
    }

    /// The kernel with its bandwidth.
    pub fn kernel(&self) -> KernelFn {
        self.kernel
    }

    /// For a precomputed kernel, the columns of the vectors; else the training rows that the vectors are.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The number of columns that rows must have.
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn vectors(&self) -> Rows<'_> {
        self.vectors.view()
    }

    /// One row per vector, one column per function.
    pub fn coef(&self) -> MatRef<'_, f64> {
        self.coef.as_ref()
    }

    pub fn intercepts(&self) -> &[f64] {
        &self.intercepts
    }

    /// The values of all functions, row after row. For a precomputed kernel, `x` holds the kernel between the new rows
    /// and all training rows.
    pub fn values(&self, x: &Rows, hardware: Hardware) -> Result<Vec<f64>> {
        self.values_by(x, &self.columns, self.width, hardware)
    }

    /// The same, where a precomputed `x` has `width` columns, and `columns` are those of the vectors.
    pub fn values_by(&self, x: &Rows, columns: &[usize], width: usize, hardware: Hardware) -> Result<Vec<f64>> {
        if x.ncols() != width {
            return Err(Error::Features { got: x.ncols(), expected: width });
        }
        if let Some(plane) = &self.plane {
            return plane.decision(x, hardware.threads);
        }
        let control = Control::default();
        let of = |x: &Rows| {
            decision(x, &self.vectors.view(), self.coef.as_ref(), &self.intercepts, &self.kernel, hardware, &control)
        };
        if self.kernel.shape != Shape::Precomputed {
            return of(x);
        }
        let own = Mat::from_fn(x.nrows(), columns.len(), |i, j| x.get(i, columns[j]));
        of(&Rows::from(&own))
    }
}
