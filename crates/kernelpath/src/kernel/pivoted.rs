//! K ≈ FFᵀ by randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), and the preconditioner for I + S½KS½ that
//! F gives by Woodbury's formula. Everything is in f64: the formula subtracts nearly equal numbers.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::cholesky::Cholesky;
use crate::numeric::entry::Entry;
use crate::numeric::parallel;
use crate::numeric::simd::vectorise;
use crate::numeric::{memory, skinny};
use crate::observe::Control;

/// What errors call F.
const PRECONDITIONER: &str = "the preconditioner";

/// Rows of F that are worked on by one thread.
const PIVOT_ROWS: usize = 512;

/// F. It may have fewer columns than asked for, if little of K is left.
pub(crate) struct LowRank {
    n: usize,
    /// Row after row.
    values: Vec<f64>,
}

impl LowRank {
    /// F itself, row after row.
    pub fn of_rows(n: usize, values: Vec<f64>) -> Self {
        Self { n, values }
    }

    /// Draws each pivot with probability proportional to what is left of the diagonal.
    pub fn new<T: Entry>(gram: &Gram<T>, rank: usize, control: &Control) -> Result<Self> {
        let mut rng = fastrand::Rng::with_seed(0);
        Self::pivoted(gram, rank, control, |left| {
            let mut target = rng.f64() * left.iter().sum::<f64>();
            let drawn = left.iter().position(|d| {
                target -= d;
                target <= 0.0 && *d > 0.0
            });
            drawn.or_else(|| largest(left.iter().copied()))
        })
    }

    /// For curvatures of about S: each pivot is the row for which most is left of the diagonal of S½KS½.
    pub fn curved<T: Entry>(gram: &Gram<T>, curvature: &[f64], rank: usize, control: &Control) -> Result<Self> {
        Self::pivoted(gram, rank, control, |left| largest(left.iter().zip(curvature).map(|(left, s)| left * s)))
    }

    fn pivoted<T: Entry>(
        gram: &Gram<T>,
        rank: usize,
        control: &Control,
        mut choose: impl FnMut(&[f64]) -> Option<usize>,
    ) -> Result<Self> {
        let n = gram.n();
        let mut left: Vec<f64> = (0..n).map(|i| gram.get(i, i).max(0.0)).collect();
        // Beside the row's own length: one long row must not hide what is left of the others.
        let whole = left.clone();
        let share = |(left, whole): (&f64, &f64)| if *whole > 0.0 { left / whole } else { 0.0 };
        let nothing = 1e-7 * whole.iter().filter(|d| **d > 0.0).count() as f64;
        let mut columns: Vec<f64> = memory::with_room(n * rank.min(n), PRECONDITIONER)?;
        for rank in 0..rank.min(n) {
            control.check()?;
            if left.iter().zip(&whole).map(share).sum::<f64>() <= nothing {
                break;
            }
            let Some(pivot) = choose(&left) else { break };
            let across = Mat::<f64>::from_fn(rank, 1, |j, _| columns[j * n + pivot]);
            let mut column: Vec<f64> = gram.row(pivot)[..n].iter().map(|value| value.wide()).collect();
            matmul(
                MatMut::from_column_major_slice_mut(&mut column, n, 1),
                Accum::Add,
                MatRef::from_column_major_slice(&columns, n, rank),
                across.as_ref(),
                -1.0,
                Par::Seq,
            );
            let scale = 1.0 / left[pivot].sqrt();
            for (value, left) in column.iter_mut().zip(&mut left) {
                *value *= scale;
                *left = (*left - *value * *value).max(0.0);
            }
            left[pivot] = 0.0;
            columns.append(&mut column);
        }
        let rank = columns.len() / n;
        let mut values: Vec<f64> = memory::zeros(n * rank, PRECONDITIONER)?;
        parallel::for_each(values.chunks_mut((PIVOT_ROWS * rank).max(1)).enumerate(), |(band, rows)| {
            for (q, column) in columns.chunks_exact(n).enumerate() {
                for (row, value) in rows.chunks_exact_mut(rank).zip(&column[band * PIVOT_ROWS..]) {
                    row[q] = *value;
                }
            }
        });
        Ok(Self { n, values })
    }

    fn rank(&self) -> usize {
        self.values.len() / self.n
    }

    /// The first `rank` columns of F, or all if F has fewer.
    pub fn columns(&self, rank: usize) -> MatRef<'_, f64> {
        MatRef::from_row_major_slice(&self.values, self.n, self.rank()).subcols(0, rank.min(self.rank()))
    }

    /// The preconditioner for columns with these curvatures. A single curvature, at least as large as that of every
    /// column, serves them all.
    pub(crate) fn precondition(&self, curvatures: &[Vec<f64>], control: &Control) -> Result<Woodbury<'_>> {
        let inner = parallel::try_map(curvatures, |curvature| self.inner(curvature, control))?;
        Ok(Woodbury { factor: self, inner })
    }

    /// The factor of I + FᵀSF.
    fn inner(&self, curvature: &[f64], control: &Control) -> Result<Cholesky<f64>> {
        let rank = self.rank();
        let mut sum = Mat::<f64>::zeros(rank, rank);
        let mut weighted = vec![0.0; PIVOT_ROWS * rank];
        for (rows, curvature) in self.values.chunks((PIVOT_ROWS * rank).max(1)).zip(curvature.chunks(PIVOT_ROWS)) {
            let weighted = &mut weighted[..rows.len()];
            vectorise(
                #[inline(always)]
                || {
                    for (k, s) in curvature.iter().enumerate() {
                        let row = k * rank..(k + 1) * rank;
                        for (weighted, f) in weighted[row.clone()].iter_mut().zip(&rows[row]) {
                            *weighted = s * f;
                        }
                    }
                },
            );
            triangular_matmul(
                sum.as_mut(),
                BlockStructure::TriangularUpper,
                Accum::Add,
                MatRef::from_column_major_slice(rows, rank, curvature.len()),
                BlockStructure::Rectangular,
                MatRef::from_row_major_slice(weighted, curvature.len(), rank),
                BlockStructure::Rectangular,
                1.0,
                Par::Seq,
            );
        }
        Cholesky::new(rank, 1e-14, control, |q, column| {
            column.copy_from_slice(&sum.col_as_slice(q)[..=q]);
            column[q] += 1.0;
        })
    }
}

/// The position of the first of the largest values, if that value is above 0.
fn largest(values: impl Iterator<Item = f64>) -> Option<usize> {
    let best = |best: (Option<usize>, f64), (i, value): (usize, f64)| {
        if value > best.1 { (Some(i), value) } else { best }
    };
    values.enumerate().fold((None, 0.0), best).0
}

/// A vector, the column that it belongs to, and the S½ of that column.
pub(crate) struct Of<'a> {
    pub column: usize,
    pub root: &'a [f64],
    pub vector: &'a [f64],
}

/// I − S½F(I + FᵀS̄F)⁻¹FᵀS½, which is definite for S ≤ S̄ and the inverse of I + S½FFᵀS½ for S = S̄.
pub(crate) struct Woodbury<'a> {
    factor: &'a LowRank,
    /// One factor for each column, or one for all.
    inner: Vec<Cholesky<f64>>,
}

impl Woodbury<'_> {
    /// Applies the preconditioner to the vectors of some columns.
    pub fn apply(&self, vectors: &[Of]) -> Vec<Vec<f64>> {
        let (n, rank) = (self.factor.n, self.factor.rank());
        if rank == 0 {
            return vectors.iter().map(|of| of.vector.to_vec()).collect();
        }
        let mut scaled = vec![0.0; n * vectors.len()];
        parallel::for_each(scaled.chunks_mut(n).zip(vectors), |(scaled, of)| {
            scaled.iter_mut().zip(of.root).zip(of.vector).for_each(|((scaled, s), v)| *scaled = s * v);
        });
        // FᵀS½v, band by band.
        let bands = self.factor.values.chunks(PIVOT_ROWS * rank).enumerate();
        let parts = parallel::map(bands, |(band, rows)| {
            skinny::transposed(rows, rank, rows.len() / rank, band * PIVOT_ROWS, &scaled, n)
        });
        let mut inner = vec![0.0; rank * vectors.len()];
        for part in parts {
            inner.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        if let [one] = &self.inner[..] {
            one.solve(&mut inner, rank);
        } else {
            parallel::for_each(inner.chunks_mut(rank).zip(vectors), |(part, of)| {
                self.inner[of.column].solve(part, rank);
            });
        }
        let rows = self.factor.values.chunks(PIVOT_ROWS * rank);
        let tiles = parallel::map(rows, |part| skinny::product(part, rank, part.len() / rank, &inner, rank));
        let product = stacked(&tiles, vectors.len());
        let result = |(of, product): (&Of, &[f64])| {
            of.vector.iter().zip(of.root).zip(product).map(|((v, s), p)| v - s * p).collect()
        };
        parallel::map(vectors.iter().zip(product.chunks(n)), result)
    }
}

/// Stacks tiles with `columns` columns each one below the other. The result is column after column.
fn stacked(tiles: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(tiles.iter().map(Vec::len).sum());
    for c in 0..columns {
        for piece in skinny::column(tiles, c, columns) {
            out.extend_from_slice(piece);
        }
    }
    out
}
