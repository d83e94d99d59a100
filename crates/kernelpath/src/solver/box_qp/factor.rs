//! The equality-constrained solve of an active-set round, with a factor that survives changes.
//!
//! For the free set F the round needs
//!
//! ```text
//! [K_FF + ρI  1] [x]   [r]
//! [1ᵀ         0] [b] = [s]
//! ```
//!
//! Given the Cholesky factor K + ρI = RᵀR on a base set F₀, the rows N that entered F and the positions B that left it
//! make this a bordered system: columns U = [1, K_{F₀N}, E_B], V = R⁻ᵀU, and the small matrix S = D − VᵀV with D = [0
//! 1ᵀ 0; 1 K_NN+ρI 0; 0 0 0]. Columns are kept once computed, so a change of F costs one triangular solve. When the
//! border is wide, the rows that entered are taken into the base set: their columns of V become columns of R. The
//! factor is in single precision: each round recomputes its residual in f64, so the rounds themselves are the iterative
//! refinement.

use faer::Mat;
use faer::linalg::solvers::Solve;

use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::cholesky::{Cholesky, Working};
use crate::numeric::entry::Entry;
use crate::numeric::{memory, skinny};
use crate::observe::Control;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Border {
    Ones,
    Enter(usize),
    Leave(usize),
}

/// A factor on a base set with its border.
pub(crate) struct KktFactor<R> {
    base: Vec<usize>,
    /// Position of each Gram row in `base`, or `ABSENT`.
    position: Vec<u32>,
    cholesky: Cholesky<R>,
    border: Vec<Border>,
    /// Border column of each Gram row (entering or leaving), or `ABSENT`.
    column: Vec<u32>,
    /// V, column after column, each as long as the base set. The column after the border holds a right-hand side.
    v: Vec<R>,
    vtv: Mat<R>,
    ridge: f64,
    /// A pivot below this belongs to a row that depends on earlier ones.
    tiny: f64,
}

const ABSENT: u32 = u32::MAX;

/// What errors call the border.
const BORDER: &str = "the border of a factor";

/// A border wider than this share of the base set costs more than growing the base set.
const WIDEST_BORDER: f64 = 0.1;

/// When more than this share of the base set has left, a new factor is made.
const MOST_LEFT: f64 = 0.1;

impl<R: Working> KktFactor<R> {
    /// A factor that makes solves on the rows `free` cheap: the old one, the old one grown, or a new one. The ridge of
    /// a new factor is at least `least` times the largest diagonal entry: with a smaller ridge than its precision
    /// needs, it breaks down.
    pub fn of<T: Entry>(
        old: Option<Self>,
        gram: &Gram<T>,
        free: &[usize],
        ridge: f64,
        least: f64,
        control: &Control,
    ) -> Result<Self> {
        match old {
            Some(mut old) if old.is_near(free) => {
                if old.is_wide(free) {
                    old.grow(gram, free, control)?;
                }
                Ok(old)
            }
            far => {
                drop(far); // frees its memory for the new one
                Self::new(gram, free, ridge, least, control)
            }
        }
    }

    /// Factorises K + ρI on the given rows, with ρ at least `least` times the largest diagonal entry.
    fn new<T: Entry>(gram: &Gram<T>, rows: &[usize], ridge: f64, least: f64, control: &Control) -> Result<Self> {
        let m = rows.len();
        let scale = rows.iter().map(|&i| gram.get(i, i)).fold(f64::MIN_POSITIVE, f64::max);
        // In double precision the ridge is above the rounding error of the pivots, so no true pivot is much below the
        // ridge.
        let tiny = least * scale * if R::IS_ROUGH { 1.0 } else { 0.01 };
        let ridge = ridge.max(least * scale);
        let cholesky = Cholesky::new(m, tiny, control, |q, column| {
            for (value, &j) in column.iter_mut().zip(rows) {
                *value = gram.entry(rows[q], j);
            }
            column[q] += R::narrow(ridge);
        })?;
        let mut position = vec![ABSENT; gram.n()];
        for (q, &i) in rows.iter().enumerate() {
            position[i] = q as u32;
        }
        let mut factor = Self {
            base: rows.to_vec(),
            position,
            cholesky,
            border: Vec::new(),
            column: vec![ABSENT; gram.n()],
            v: Vec::new(),
            vtv: Mat::zeros(0, 0),
            ridge,
            tiny,
        };
        factor.extend(gram, &[Border::Ones], None)?;
        Ok(factor)
    }

    /// Forgets all changes of the set since the factorisation.
    pub fn reset(&mut self) {
        for border in self.border.drain(1..) {
            match border {
                Border::Enter(i) => self.column[i] = ABSENT,
                Border::Leave(q) => self.column[self.base[q]] = ABSENT,
                Border::Ones => {}
            }
        }
    }

    /// Whether few rows of the base set are not in `free`.
    fn is_near(&self, free: &[usize]) -> bool {
        let stay = free.iter().filter(|&&i| self.position[i] != ABSENT).count();
        ((self.base.len() - stay) as f64) < MOST_LEFT * self.base.len().min(free.len()) as f64 + 24.0
    }

    /// Whether the border for `free` would be wide.
    fn is_wide(&self, free: &[usize]) -> bool {
        let new = self.changes(free).iter().filter(|b| self.column_of(**b).is_none()).count();
        ((self.border.len() + new) as f64) > WIDEST_BORDER * self.base.len() as f64 + 24.0
    }

    /// Takes all of `free` into the base set, and drops the border columns that are no longer needed.
    fn grow<T: Entry>(&mut self, gram: &Gram<T>, free: &[usize], control: &Control) -> Result<()> {
        let (enter, stay): (Vec<Border>, Vec<Border>) =
            self.changes(free).into_iter().partition(|border| matches!(border, Border::Enter(_)));
        let new: Vec<Border> = enter.iter().chain(&stay).copied().filter(|b| self.column_of(*b).is_none()).collect();
        self.extend(gram, &new, None)?;
        let rows: Vec<usize> = free.iter().copied().filter(|&i| self.position[i] == ABSENT).collect();
        let columns_of = |borders: &[Border]| borders.iter().filter_map(|b| self.column_of(*b)).collect::<Vec<_>>();
        let (entered, stayed) = (columns_of(&enter), columns_of(&stay));

        let corner = Cholesky::new(rows.len(), self.tiny, control, |q, column| {
            for (p, value) in column.iter_mut().enumerate() {
                *value = gram.entry::<R>(rows[q], rows[p]) - self.vtv[(entered[p], entered[q])];
            }
            column[q] += R::narrow(self.ridge);
        })?;
        // The new lower rows of V, for the border columns that stay.
        let mut below: Vec<R> = memory::with_room(rows.len() * stay.len(), BORDER)?;
        for (border, &c) in stay.iter().zip(&stayed) {
            let direct = R::narrow(if *border == Border::Ones { 1.0 } else { 0.0 });
            below.extend(entered.iter().map(|&p| direct - self.vtv[(p, c)]));
        }
        let k = rows.len();
        corner.solve_lower(&mut below, k);
        let mut added = skinny::product(&below, k, stay.len(), &below, k);
        added.resize(stay.len() * stay.len(), R::default()); // it is empty if k is 0
        let vtv =
            Mat::from_fn(stay.len(), stay.len(), |a, b| self.vtv[(stayed[a], stayed[b])] + added[b * stay.len() + a]);
        let m = self.base.len();
        let mut v = memory::with_room((m + k) * stay.len(), BORDER)?;
        for (c, &old) in stayed.iter().enumerate() {
            v.extend_from_slice(self.v_column(old));
            v.extend_from_slice(&below[c * k..(c + 1) * k]);
        }
        let column = |c: usize| &self.v[entered[c] * m..(entered[c] + 1) * m];
        self.cholesky.append(column, corner)?;

        self.reset();
        self.border = stay;
        for (c, &border) in self.border.iter().enumerate() {
            if let Border::Leave(q) = border {
                self.column[self.base[q]] = c as u32;
            }
        }
        for (q, &i) in rows.iter().enumerate() {
            self.position[i] = (m + q) as u32;
        }
        self.base.extend(rows);
        (self.v, self.vtv) = (v, vtv);
        Ok(())
    }

    fn v_column(&self, c: usize) -> &[R] {
        let m = self.base.len();
        &self.v[c * m..(c + 1) * m]
    }

    fn column_of(&self, border: Border) -> Option<usize> {
        let row = match border {
            Border::Ones => return Some(0),
            Border::Enter(i) => i,
            Border::Leave(q) => self.base[q],
        };
        (self.column[row] != ABSENT).then(|| self.column[row] as usize)
    }

    fn changes(&self, free: &[usize]) -> Vec<Border> {
        let mut stays = vec![false; self.base.len()];
        let mut changes = vec![Border::Ones];
        for &i in free {
            match self.position[i] {
                ABSENT => changes.push(Border::Enter(i)),
                q => stays[q as usize] = true,
            }
        }
        changes.extend((0..self.base.len()).filter(|&q| !stays[q]).map(Border::Leave));
        changes
    }

    /// Appends border columns: V gains their R⁻ᵀU, and VᵀV the new products. A right-hand side r goes the same way:
    /// R⁻ᵀr is put in the column of V after the border, and VᵀR⁻ᵀr is returned.
    fn extend<T: Entry>(&mut self, gram: &Gram<T>, new: &[Border], right: Option<&[R]>) -> Result<Vec<R>> {
        let columns = new.len() + usize::from(right.is_some());
        if columns == 0 {
            return Ok(Vec::new());
        }
        let (m, old, total) = (self.base.len(), self.border.len(), self.border.len() + new.len());
        let length = (total + 1) * m;
        let more = length.saturating_sub(self.v.len());
        memory::reserve(&mut self.v, more, BORDER)?;
        self.v.resize(length, R::default());
        if self.vtv.ncols() < total {
            let capacity = (total + total / 5).max(64);
            memory::check_block(capacity * capacity * size_of::<R>(), BORDER)?;
            self.vtv.resize_with(capacity, capacity, |_, _| R::default());
        }
        for (c, &border) in new.iter().enumerate() {
            let column = &mut self.v[(old + c) * m..(old + c + 1) * m];
            match border {
                Border::Ones => column.fill(R::narrow(1.0)),
                Border::Enter(i) => {
                    for (value, &j) in column.iter_mut().zip(&self.base) {
                        *value = gram.entry(i, j);
                    }
                    self.column[i] = (old + c) as u32;
                }
                Border::Leave(q) => {
                    column.fill(R::default());
                    column[q] = R::narrow(1.0);
                    self.column[self.base[q]] = (old + c) as u32;
                }
            }
        }
        if let Some(right) = right {
            self.v[total * m..].copy_from_slice(right);
        }
        self.border.extend_from_slice(new);
        self.cholesky.solve_lower(&mut self.v[old * m..(old + columns) * m], m);
        let mut products = skinny::product(&self.v, m, total, &self.v[old * m..(old + columns) * m], m);
        for c in 0..new.len() {
            for r in 0..total {
                let value = products[c * total + r];
                self.vtv[(r, old + c)] = value;
                self.vtv[(old + c, r)] = value;
            }
        }
        Ok(products.split_off(new.len() * total))
    }

    /// Solves for the free set: returns x (in the order of `free`) and b.
    pub fn solve<T: Entry>(&mut self, gram: &Gram<T>, free: &[usize], r: &[f64], s: f64) -> Result<(Vec<f64>, f64)> {
        let active = self.changes(free);
        let new: Vec<Border> = active.iter().copied().filter(|b| self.column_of(*b).is_none()).collect();

        // The right-hand side is scaled to 1, so that single precision neither overflows nor loses small residuals.
        let size = r.iter().fold(s.abs(), |a, v| a.max(v.abs()));
        let scale = if size > 0.0 { size } else { 1.0 };
        let mut right = vec![R::default(); self.base.len()];
        let mut small = Mat::<f64>::zeros(active.len(), 1);
        small[(0, 0)] = s / scale;
        let mut entered = 1;
        for (&i, &value) in free.iter().zip(r) {
            match self.position[i] {
                ABSENT => {
                    small[(entered, 0)] = value / scale;
                    entered += 1;
                }
                q => right[q as usize] = R::narrow(value / scale),
            }
        }
        let products = self.extend(gram, &new, Some(&right))?;
        let columns: Vec<usize> = active.iter().filter_map(|b| self.column_of(*b)).collect();
        for (a, &c) in columns.iter().enumerate() {
            small[(a, 0)] -= products[c].wide();
        }
        // Room for the matrix itself, and twice as much again for its factors.
        memory::check_block(3 * 8 * columns.len().pow(2), BORDER)?;
        let schur = Mat::from_fn(columns.len(), columns.len(), |a, b| {
            let direct = match (active[a], active[b]) {
                (Border::Enter(_), Border::Ones) | (Border::Ones, Border::Enter(_)) => 1.0,
                (Border::Enter(i), Border::Enter(j)) => gram.get(i, j) + if i == j { self.ridge } else { 0.0 },
                _ => 0.0,
            };
            direct - self.vtv[(columns[a], columns[b])].wide()
        });
        schur.partial_piv_lu().solve_in_place(small.as_mut());

        let (m, width) = (self.base.len(), self.border.len());
        let mut z = vec![R::default(); width];
        for (a, &c) in columns.iter().enumerate() {
            z[c] = R::narrow(small[(a, 0)]);
        }
        let mut w = self.v_column(width).to_vec();
        let moved = skinny::transposed(&self.v, m, width, 0, &z, width);
        w.iter_mut().zip(moved).for_each(|(w, moved)| *w -= moved);
        self.cholesky.solve_upper(&mut w, m);

        let mut entered = 1;
        let x = free
            .iter()
            .map(|&i| match self.position[i] {
                ABSENT => {
                    entered += 1;
                    small[(entered - 1, 0)] * scale
                }
                q => w[q as usize].wide() * scale,
            })
            .collect();
        Ok((x, small[(0, 0)] * scale))
    }
}
