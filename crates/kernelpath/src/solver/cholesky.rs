//! A Cholesky factor in panels of columns: only the lower triangle takes memory.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use faer::linalg::cholesky::llt::factor::{self as llt, LltRegularization};
use faer::linalg::matmul::matmul;
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

/// L with A = LLᵀ.
pub(crate) struct Cholesky<R> {
    order: usize,
    /// Panel k holds columns k·PANEL and on, of the rows from k·PANEL down.
    panels: Vec<Mat<R>>,
}

impl<R: Working> Cholesky<R> {
    /// Factorises the matrix whose column `q` is written, from the diagonal down, by `fill`.
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
        let mut factor = Self { order, panels: Vec::with_capacity(order.div_ceil(PANEL)) };
        for start in (0..order).step_by(PANEL) {
            control.check()?;
            let width = PANEL.min(order - start);
            let mut panel = Mat::<R>::zeros(order - start, width);
            for c in 0..width {
                fill(start + c, &mut panel.col_as_slice_mut(c)[c..]);
            }
            for (k, done) in factor.panels.iter().enumerate() {
                let done = done.as_ref().subrows(start - k * PANEL, order - start);
                subtract_product(panel.as_mut(), done, done.subrows(0, width).transpose());
            }
            let (mut diagonal, below) = panel.as_mut().split_at_row_mut(width);
            let stack = faer::dyn_stack::MemStack::new(&mut memory);
            // With the regularisation no pivot is refused; NaN (from infinite kernels) shows in the gap.
            let _ = llt::cholesky_in_place(diagonal.rb_mut(), regularization, Par::Seq, stack, params);
            solve_lower_triangular_in_place(diagonal.rb(), below.transpose_mut(), Par::Seq);
            factor.panels.push(panel);
        }
        Ok(factor)
    }

    /// B ← L⁻ᵀL⁻¹B, the columns shared out among idle threads.
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

    /// The pivots: squares of the diagonal of L.
    pub fn pivots(&self) -> impl Iterator<Item = f64> {
        self.panels.iter().flat_map(|panel| {
            (0..panel.ncols()).map(|c| {
                let value = panel[(c, c)].wide();
                value * value
            })
        })
    }

    /// B ← L⁻¹B.
    pub fn solve_lower(&self, mut b: MatMut<R>) {
        if b.ncols() == 1
            && let Some(x) = b.rb_mut().col_mut(0).try_as_col_major_mut()
        {
            return self.solve_lower_vector(x.as_slice_mut());
        }
        for (k, panel) in self.panels.iter().enumerate() {
            let (diagonal, below) = panel.as_ref().split_at_row(panel.ncols());
            let (mut head, tail) =
                b.rb_mut().subrows_mut(k * PANEL, self.order - k * PANEL).split_at_row_mut(panel.ncols());
            solve_lower_triangular_in_place(diagonal, head.rb_mut(), Par::Seq);
            matmul(tail, Accum::Add, below, head.rb(), R::narrow(-1.0), Par::Seq);
        }
    }

    /// B ← L⁻ᵀB.
    pub fn solve_upper(&self, mut b: MatMut<R>) {
        if b.ncols() == 1
            && let Some(x) = b.rb_mut().col_mut(0).try_as_col_major_mut()
        {
            return self.solve_upper_vector(x.as_slice_mut());
        }
        for (k, panel) in self.panels.iter().enumerate().rev() {
            let (diagonal, below) = panel.as_ref().split_at_row(panel.ncols());
            let (mut head, tail) =
                b.rb_mut().subrows_mut(k * PANEL, self.order - k * PANEL).split_at_row_mut(panel.ncols());
            matmul(head.rb_mut(), Accum::Add, below.transpose(), tail.rb(), R::narrow(-1.0), Par::Seq);
            solve_upper_triangular_in_place(diagonal.transpose(), head, Par::Seq);
        }
    }

    /// Column k of L from the diagonal down.
    #[inline(always)]
    fn column(&self, k: usize) -> &[R] {
        let panel = &self.panels[k / PANEL];
        &panel.col_as_slice(k % PANEL)[k % PANEL..]
    }

    /// x ← L⁻¹x: one right-hand side gains nothing from blocks.
    fn solve_lower_vector(&self, x: &mut [R]) {
        vectorise(
            #[inline(always)]
            || {
                for k in 0..self.order {
                    let (column, x) = (self.column(k), &mut x[k..]);
                    let value = x[0] / column[0];
                    x[0] = value;
                    for (x, l) in x[1..].iter_mut().zip(&column[1..]) {
                        *x -= value * *l;
                    }
                }
            },
        );
    }

    /// x ← L⁻ᵀx.
    fn solve_upper_vector(&self, x: &mut [R]) {
        vectorise(
            #[inline(always)]
            || {
                for k in (0..self.order).rev() {
                    let (column, x) = (self.column(k), &mut x[k..]);
                    x[0] = (x[0] - dot_in_lanes(&column[1..], &x[1..])) / column[0];
                }
            },
        );
    }
}

/// C ← C − AB, bands of rows shared out among idle threads.
fn subtract_product<R: Working>(c: MatMut<R>, a: MatRef<R>, b: MatRef<R>) {
    if c.nrows() > 2 * PANEL {
        let half = c.nrows() / 2;
        let (top, bottom) = c.split_at_row_mut(half);
        let (a_top, a_bottom) = a.split_at_row(half);
        rayon::join(|| subtract_product(top, a_top, b), || subtract_product(bottom, a_bottom, b));
    } else {
        matmul(c, Accum::Add, a, b, R::narrow(-1.0), Par::Seq);
    }
}
