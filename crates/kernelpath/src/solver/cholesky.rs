//! A Cholesky factor in panels of columns: only the upper triangle takes memory, and it can grow.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use faer::linalg::cholesky::llt::factor::{self as llt, LltRegularization};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par, Spec};

use crate::error::Result;
use crate::observe::Control;
use crate::simd::{dot_in_lanes, vectorise};
use crate::skinny::Lane;

/// Columns of a panel; an interruption is seen between panels.
const PANEL: usize = 256;

/// The precision of a factor.
pub(crate) trait Working:
    Lane
    + faer::traits::RealField
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
{
    /// Ridge, relative to the largest diagonal entry.
    const RIDGE: f64;
}

impl Working for f32 {
    const RIDGE: f64 = 1e-6;
}

impl Working for f64 {
    const RIDGE: f64 = 1e-9;
}

/// U with A = UᵀU.
pub(crate) struct Cholesky<R> {
    panels: Vec<Panel<R>>,
}

/// Columns from `start` on, each down to the end of the panel's diagonal block.
struct Panel<R> {
    start: usize,
    values: Mat<R>,
}

impl<R> Panel<R> {
    /// What is above the diagonal block, and this.
    fn split(&self) -> (MatRef<'_, R>, MatRef<'_, R>) {
        self.values.as_ref().split_at_row(self.start)
    }
}

impl<R: Working> Cholesky<R> {
    /// Factorises the matrix whose column `q` is written, down to the diagonal, by `fill`.
    ///
    /// A pivot below `tiny` belongs to a row that depends on earlier ones: it is made huge, so that this
    /// row does not move.
    pub fn new(order: usize, tiny: f64, control: &Control, mut fill: impl FnMut(usize, &mut [R])) -> Result<Self> {
        let regularization = LltRegularization {
            dynamic_regularization_delta: R::narrow(tiny * 1e16),
            dynamic_regularization_epsilon: R::narrow(tiny * 0.5),
        };
        let params = Spec::default();
        let mut memory = faer::dyn_stack::MemBuffer::new(llt::cholesky_in_place_scratch::<R>(PANEL, Par::Seq, params));
        let mut factor = Self { panels: Vec::with_capacity(order.div_ceil(PANEL)) };
        for start in (0..order).step_by(PANEL) {
            control.check()?;
            let width = PANEL.min(order - start);
            let mut values = Mat::<R>::zeros(start + width, width);
            for c in 0..width {
                fill(start + c, &mut values.col_as_slice_mut(c)[..=start + c]);
            }
            let (mut above, mut diagonal) = values.as_mut().split_at_row_mut(start);
            factor.solve_lower_shared(above.rb_mut());
            // Of the diagonal block the lower triangle is factorised, column after column as SIMD wants it.
            let mut lower = diagonal.rb().transpose().to_owned();
            triangular_matmul(
                lower.as_mut(),
                BlockStructure::TriangularLower,
                Accum::Add,
                above.rb().transpose(),
                BlockStructure::Rectangular,
                above.rb(),
                BlockStructure::Rectangular,
                R::narrow(-1.0),
                Par::Seq,
            );
            let stack = faer::dyn_stack::MemStack::new(&mut memory);
            // With the regularisation no pivot is refused; NaN (from infinite kernels) shows in the gap.
            let _ = llt::cholesky_in_place(lower.as_mut(), regularization, Par::Seq, stack, params);
            diagonal.copy_from_triangular_upper(lower.transpose());
            factor.panels.push(Panel { start, values });
        }
        Ok(factor)
    }

    fn order(&self) -> usize {
        self.panels.last().map_or(0, |panel| panel.values.nrows())
    }

    /// Makes UᵀU into [UᵀU A; Aᵀ B], given the columns of U⁻ᵀA and the factor of B − AᵀU⁻¹U⁻ᵀA.
    pub fn append<'a>(&mut self, column: impl Fn(usize) -> &'a [R], corner: Self)
    where
        R: 'a,
    {
        let order = self.order();
        for panel in corner.panels {
            let mut values = Mat::<R>::zeros(order + panel.values.nrows(), panel.values.ncols());
            for c in 0..values.ncols() {
                let (above, below) = values.col_as_slice_mut(c).split_at_mut(order);
                above.copy_from_slice(column(panel.start + c));
                below.copy_from_slice(panel.values.col_as_slice(c));
            }
            self.panels.push(Panel { start: order + panel.start, values });
        }
    }

    /// B ← U⁻¹U⁻ᵀB, the columns shared out among idle threads.
    pub fn solve(&self, b: MatMut<R>) {
        if b.ncols() > 4 {
            let half = b.ncols() / 2;
            let (left, right) = b.split_at_col_mut(half);
            rayon::join(|| self.solve(left), || self.solve(right));
        } else {
            let mut b = b;
            self.solve_lower(b.rb_mut());
            self.solve_upper(b);
        }
    }

    /// The pivots: squares of the diagonal of U.
    pub fn pivots(&self) -> impl Iterator<Item = f64> {
        self.panels.iter().flat_map(|panel| {
            (0..panel.values.ncols()).map(|c| {
                let value = panel.values[(panel.start + c, c)].wide();
                value * value
            })
        })
    }

    /// B ← U⁻ᵀB, the columns shared out among idle threads.
    fn solve_lower_shared(&self, b: MatMut<R>) {
        if b.nrows() > 2 * PANEL && b.ncols() > PANEL / 4 {
            let half = b.ncols() / 2;
            let (left, right) = b.split_at_col_mut(half);
            rayon::join(|| self.solve_lower_shared(left), || self.solve_lower_shared(right));
        } else {
            self.solve_lower(b);
        }
    }

    /// B ← U⁻ᵀB.
    pub fn solve_lower(&self, mut b: MatMut<R>) {
        if b.ncols() == 1
            && let Some(x) = b.rb_mut().col_mut(0).try_as_col_major_mut()
        {
            return self.solve_lower_vector(x.as_slice_mut());
        }
        for panel in &self.panels {
            let (above, diagonal) = panel.split();
            let (top, rest) = b.rb_mut().split_at_row_mut(panel.start);
            let mut head = rest.subrows_mut(0, diagonal.ncols());
            matmul(head.rb_mut(), Accum::Add, above.transpose(), top.rb(), R::narrow(-1.0), Par::Seq);
            solve_lower_triangular_in_place(diagonal.transpose(), head, Par::Seq);
        }
    }

    /// B ← U⁻¹B.
    pub fn solve_upper(&self, mut b: MatMut<R>) {
        if b.ncols() == 1
            && let Some(x) = b.rb_mut().col_mut(0).try_as_col_major_mut()
        {
            return self.solve_upper_vector(x.as_slice_mut());
        }
        for panel in self.panels.iter().rev() {
            let (above, diagonal) = panel.split();
            let (top, rest) = b.rb_mut().split_at_row_mut(panel.start);
            let mut head = rest.subrows_mut(0, diagonal.ncols());
            solve_upper_triangular_in_place(diagonal, head.rb_mut(), Par::Seq);
            matmul(top, Accum::Add, above, head.rb(), R::narrow(-1.0), Par::Seq);
        }
    }

    /// x ← U⁻ᵀx: one right-hand side gains nothing from blocks.
    fn solve_lower_vector(&self, x: &mut [R]) {
        vectorise(
            #[inline(always)]
            || {
                for panel in &self.panels {
                    for c in 0..panel.values.ncols() {
                        let (k, column) = (panel.start + c, panel.values.col_as_slice(c));
                        x[k] = (x[k] - dot_in_lanes(&column[..k], &x[..k])) / column[k];
                    }
                }
            },
        );
    }

    /// x ← U⁻¹x.
    fn solve_upper_vector(&self, x: &mut [R]) {
        vectorise(
            #[inline(always)]
            || {
                for panel in self.panels.iter().rev() {
                    for c in (0..panel.values.ncols()).rev() {
                        let (k, column) = (panel.start + c, panel.values.col_as_slice(c));
                        let value = x[k] / column[k];
                        x[k] = value;
                        for (x, u) in x[..k].iter_mut().zip(&column[..k]) {
                            *x -= value * *u;
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A definite matrix, entry by entry.
    fn entry(i: usize, j: usize) -> f64 {
        let distance = i as f64 - j as f64;
        (-0.01 * distance * distance).exp() + if i == j { 0.1 } else { 0.0 }
    }

    fn factor(rows: std::ops::Range<usize>) -> Cholesky<f64> {
        let control = Control::default();
        Cholesky::new(rows.len(), 1e-12, &control, |q, column| {
            for (i, value) in column.iter_mut().enumerate() {
                *value = entry(rows.start + i, rows.start + q);
            }
        })
        .unwrap()
    }

    /// Of A x = b with b = A·(1, 2, …) over the rows `order`, the largest error; with one and with several columns.
    fn error(factor: &Cholesky<f64>, n: usize) -> f64 {
        let expected = |i: usize, c: usize| ((i * (c + 1)) % 7) as f64 - 3.0;
        let b = |i: usize, c: usize| (0..n).map(|j| entry(i, j) * expected(j, c)).sum::<f64>();
        let mut worst = 0.0_f64;
        for columns in [1, 3] {
            let mut x = Mat::from_fn(n, columns, b);
            factor.solve(x.as_mut());
            for c in 0..columns {
                for i in 0..n {
                    worst = worst.max((x[(i, c)] - expected(i, c)).abs());
                }
            }
        }
        worst
    }

    #[test]
    fn solves_across_panels() {
        for n in [1, 2, 100, PANEL, PANEL + 1, 3 * PANEL + 5] {
            assert!(error(&factor(0..n), n) < 1e-9, "{n}");
        }
    }

    #[test]
    fn grows() {
        for (m, n) in [(1, 2), (100, 130), (PANEL, PANEL + 1), (PANEL - 3, 3 * PANEL)] {
            let mut grown = factor(0..m);
            let mut columns = Mat::from_fn(m, n - m, |i, j| entry(i, m + j));
            grown.solve_lower(columns.as_mut());
            let control = Control::default();
            let corner = Cholesky::new(n - m, 1e-12, &control, |q, column| {
                for (p, value) in column.iter_mut().enumerate() {
                    let known: f64 = (0..m).map(|i| columns[(i, p)] * columns[(i, q)]).sum();
                    *value = entry(m + p, m + q) - known;
                }
            });
            grown.append(|c| columns.col_as_slice(c), corner.unwrap());
            assert_eq!(grown.pivots().count(), n);
            assert!(error(&grown, n) < 1e-9, "{m} to {n}");
        }
    }
}
