//! A Cholesky factor in panels of columns: only the upper triangle takes memory, and the factor can grow.

use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, MatRef, Par, Spec};
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::error::Result;
use crate::numeric::memory::Zeroable;
use crate::numeric::simd::{dot_in_lanes, vectorise};
use crate::numeric::skinny::Lane;
use crate::numeric::{memory, skinny};
use crate::observe::Control;

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

/// Columns of U whose part above the diagonal is subtracted in one product.
const FACTOR_COLUMNS: usize = 32;

/// U with A = UᵀU.
///
/// Right-hand sides are slices of columns that lie `stride` apart.
pub(crate) struct Cholesky<R> {
    panels: Vec<Panel<R>>,
}

/// Columns from `start` on, each down to the end of the panel's diagonal block, one after the other.
struct Panel<R> {
    start: usize,
    width: usize,
    values: Vec<R>,
}

impl<R> Panel<R> {
    fn new(start: usize, width: usize) -> Result<Self>
    where
        R: Zeroable,
    {
        Ok(Self { start, width, values: memory::zeros((start + width) * width, "a factor of the kernel matrix")? })
    }

    /// The row where the panel ends, which is also the length of its columns.
    fn end(&self) -> usize {
        self.start + self.width
    }

    fn column(&self, c: usize) -> &[R] {
        &self.values[c * self.end()..(c + 1) * self.end()]
    }

    fn column_mut(&mut self, c: usize) -> &mut [R] {
        let end = self.end();
        &mut self.values[c * end..(c + 1) * end]
    }

    /// The rows above the diagonal block, and the diagonal block itself.
    fn split(&self) -> (MatRef<'_, R>, MatRef<'_, R>) {
        MatRef::from_column_major_slice(&self.values, self.end(), self.width).split_at_row(self.start)
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
            let mut panel = Panel::new(start, width)?;
            for c in 0..width {
                fill(start + c, &mut panel.column_mut(c)[..=start + c]);
            }
            let end = panel.end();
            factor.solve_lower_shared(&mut panel.values, end);
            let (above, mut diagonal) =
                MatMut::from_column_major_slice_mut(&mut panel.values, end, width).split_at_row_mut(start);
            // The diagonal block is factorised as a lower triangle, whose columns are contiguous, as SIMD wants them.
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
            factor.panels.push(panel);
        }
        Ok(factor)
    }

    fn order(&self) -> usize {
        self.panels.last().map_or(0, Panel::end)
    }

    /// Makes UᵀU into [UᵀU A; Aᵀ B], given the columns of U⁻ᵀA and the factor of B − AᵀU⁻¹U⁻ᵀA.
    pub fn append<'a>(&mut self, column: impl Fn(usize) -> &'a [R], corner: Self) -> Result<()>
    where
        R: 'a,
    {
        let order = self.order();
        for old in corner.panels {
            let mut panel = Panel::new(order + old.start, old.width)?;
            for c in 0..old.width {
                let (above, below) = panel.column_mut(c).split_at_mut(order);
                above.copy_from_slice(column(old.start + c));
                below.copy_from_slice(old.column(c));
            }
            self.panels.push(panel);
        }
        Ok(())
    }

    /// B ← U⁻¹U⁻ᵀB, the columns shared out among idle threads.
    pub fn solve(&self, b: &mut [R], stride: usize) {
        let columns = b.len() / stride.max(1);
        if columns > 4 {
            let (left, right) = b.split_at_mut(columns / 2 * stride);
            rayon::join(|| self.solve(left, stride), || self.solve(right, stride));
        } else {
            self.solve_lower(b, stride);
            self.solve_upper(b, stride);
        }
    }

    /// The pivots: squares of the diagonal of U.
    pub fn pivots(&self) -> impl Iterator<Item = f64> {
        self.panels.iter().flat_map(|panel| {
            (0..panel.width).map(|c| {
                let value = panel.column(c)[panel.start + c].wide();
                value * value
            })
        })
    }

    /// B ← U⁻ᵀB, the columns shared out among idle threads.
    fn solve_lower_shared(&self, b: &mut [R], stride: usize) {
        let columns = b.len() / stride;
        if self.order() > 2 * PANEL && columns > PANEL / 4 {
            let (left, right) = b.split_at_mut(columns / 2 * stride);
            rayon::join(|| self.solve_lower_shared(left, stride), || self.solve_lower_shared(right, stride));
        } else {
            self.solve_lower(b, stride);
        }
    }

    /// B ← U⁻ᵀB.
    pub fn solve_lower(&self, b: &mut [R], stride: usize) {
        if b.len() == stride {
            return self.solve_lower_vector(b);
        }
        for panel in &self.panels {
            for first in (0..panel.width).step_by(FACTOR_COLUMNS) {
                let (at, height) = (panel.start + first, FACTOR_COLUMNS.min(panel.width - first));
                let known =
                    skinny::product_of(&panel.values[first * panel.end()..], panel.end(), height, b, stride, 0..at);
                let triangle = Triangle::new(panel, first, height);
                vectorise(
                    #[inline(always)]
                    || triangle.solve(&known, b, stride, at),
                );
            }
        }
    }

    /// B ← U⁻¹B.
    pub fn solve_upper(&self, b: &mut [R], stride: usize) {
        if b.len() == stride {
            return self.solve_upper_vector(b);
        }
        let columns = b.len() / stride.max(1);
        let mut b = MatMut::from_column_major_slice_mut(b, stride, columns);
        for panel in self.panels.iter().rev() {
            let (above, diagonal) = panel.split();
            let (top, rest) = b.rb_mut().split_at_row_mut(panel.start);
            let mut head = rest.subrows_mut(0, panel.width);
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
                    for c in 0..panel.width {
                        let (k, column) = (panel.start + c, panel.column(c));
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
                    for c in (0..panel.width).rev() {
                        let (k, column) = (panel.start + c, panel.column(c));
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

/// A block of the diagonal of U, ready to be solved with.
struct Triangle<R> {
    height: usize,
    /// The rows of U right of the diagonal; zeros elsewhere.
    rows: [[R; FACTOR_COLUMNS]; FACTOR_COLUMNS],
    inverse: [R; FACTOR_COLUMNS],
}

/// Right-hand sides that a triangle is solved with at once.
const AT_ONCE: usize = 4;

impl<R: Working> Triangle<R> {
    fn new(panel: &Panel<R>, first: usize, height: usize) -> Self {
        let mut triangle = Self {
            height,
            rows: [[R::default(); FACTOR_COLUMNS]; FACTOR_COLUMNS],
            inverse: [R::default(); FACTOR_COLUMNS],
        };
        for c in 0..height {
            let column = &panel.column(first + c)[panel.start + first..];
            for (row, value) in triangle.rows.iter_mut().zip(&column[..c]) {
                row[c] = *value;
            }
            triangle.inverse[c] = R::narrow(1.0) / column[c];
        }
        triangle
    }

    /// Solves for the rows of B from `at` on. `known` is what the rows above contribute, which is subtracted first.
    #[inline(always)]
    fn solve(&self, known: &[R], b: &mut [R], stride: usize, at: usize) {
        let mut known = known.chunks_exact(self.height);
        for group in b.chunks_mut(AT_ONCE * stride) {
            let mut x = [[R::default(); FACTOR_COLUMNS]; AT_ONCE];
            for (x, b) in x.iter_mut().zip(group.chunks_exact(stride)) {
                let known = known.next().unwrap_or(&[]);
                for ((x, b), known) in x.iter_mut().zip(&b[at..at + self.height]).zip(known) {
                    *x = *b - *known;
                }
            }
            for c in 0..self.height {
                let row = &self.rows[c];
                for x in &mut x {
                    let value = x[c] * self.inverse[c];
                    for l in 0..FACTOR_COLUMNS {
                        x[l] -= value * row[l];
                    }
                    x[c] = value;
                }
            }
            for (x, b) in x.iter().zip(group.chunks_exact_mut(stride)) {
                b[at..at + self.height].copy_from_slice(&x[..self.height]);
            }
        }
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

    /// The largest error in the solution of A x = b, with b made from a known x; for one and for several columns.
    fn error(factor: &Cholesky<f64>, n: usize) -> f64 {
        let expected = |i: usize, c: usize| ((i * (c + 1)) % 7) as f64 - 3.0;
        let b = |i: usize, c: usize| (0..n).map(|j| entry(i, j) * expected(j, c)).sum::<f64>();
        let mut worst = 0.0_f64;
        for columns in [1, 3, 4, 11] {
            let at = |k: usize| (k % n, k / n);
            let mut x: Vec<f64> = (0..n * columns).map(at).map(|(i, c)| b(i, c)).collect();
            factor.solve(&mut x, n);
            for (k, x) in x.into_iter().enumerate() {
                let (i, c) = at(k);
                worst = worst.max((x - expected(i, c)).abs());
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
            let mut columns: Vec<f64> = (m..n).flat_map(|j| (0..m).map(move |i| entry(i, j))).collect();
            grown.solve_lower(&mut columns, m);
            let control = Control::default();
            let corner = Cholesky::new(n - m, 1e-12, &control, |q, column| {
                for (p, value) in column.iter_mut().enumerate() {
                    let known: f64 = (0..m).map(|i| columns[p * m + i] * columns[q * m + i]).sum();
                    *value = entry(m + p, m + q) - known;
                }
            });
            grown.append(|c| &columns[c * m..(c + 1) * m], corner.unwrap()).unwrap();
            assert_eq!(grown.pivots().count(), n);
            assert!(error(&grown, n) < 1e-9, "{m} to {n}");
        }
    }
}
