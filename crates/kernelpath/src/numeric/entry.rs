//! The numbers that matrices are stored in: f64, or f32 with a 16-bit correction for each.

use crate::numeric::memory::Zeroable;
use crate::numeric::remote::Numbers;

/// A precision the kernel matrix can be stored in. Solvers compute in f64 either way.
pub trait Entry: Zeroable + Default + Send + Sync + 'static {
    /// To double precision.
    fn wide(self) -> f64;
    /// From double precision.
    fn narrow(value: f64) -> Self;
    /// Whether this precision rounds so much that a stored number needs a correction in units far below its own rounding.
    const IS_ROUGH: bool;
    /// Stored numbers and their corrections, by their precision.
    fn numbers<'a>(values: &'a [Self], residues: &'a [i16]) -> Numbers<'a>;
}

/// Bits of a double's significand that a number in single precision and its [`residue`] together leave out.
const DROPPED_BITS: u32 = 13;

/// Error of a number in single precision with its correction, relative to the number. (One number in 2¹⁶ lies so close
/// to the middle of two stored ones that its residue does not fit and is cut off: its error is up to twice this.)
pub(crate) const STORAGE_ERROR: f64 = 1.0 / (1_u64 << 40) as f64;

/// What rounding took from a number, in 16 bits: how far the bits of the number as a double are from those of the
/// stored number, in units of 2¹³. The stored number and its residue together have 40 bits; [`corrected`] combines them
/// by one addition of integers.
#[inline(always)]
pub(crate) fn residue<T: Entry>(value: f64, stored: T) -> i16 {
    let stored = stored.wide();
    // (Rounding to single precision moves the bits by at most 2²⁸, which is 2¹⁵ units. Residues of exactly 2¹⁵, and
    // those of numbers too small for single precision, are cut off.)
    let moved = value.to_bits().wrapping_sub(stored.to_bits()) as i64;
    let units = (moved + (1 << (DROPPED_BITS - 1))) >> DROPPED_BITS;
    // The bits next to those of 0 can be those of a NaN.
    if stored == 0.0 { 0 } else { units.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16 }
}

/// A stored number with what rounding took from it.
#[inline(always)]
pub(crate) fn corrected<T: Entry>(stored: T, residue: i16) -> f64 {
    f64::from_bits(stored.wide().to_bits().wrapping_add_signed(i64::from(residue) << DROPPED_BITS))
}

impl Entry for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value as f32
    }
    const IS_ROUGH: bool = true;
    fn numbers<'a>(values: &'a [Self], residues: &'a [i16]) -> Numbers<'a> {
        Numbers::Single(values, residues)
    }
}

impl Entry for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(value: f64) -> Self {
        value
    }
    const IS_ROUGH: bool = false;
    fn numbers<'a>(values: &'a [Self], _: &'a [i16]) -> Numbers<'a> {
        Numbers::Double(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_single_precision_and_its_correction_have_forty_bits() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut cut = 0;
        for k in 0..1_000_000 {
            let value = (rng.f64() - 0.5) * 10_f64.powi(k % 60 - 30);
            let stored = f32::narrow(value);
            let error = (corrected(stored, residue(value, stored)) - value).abs();
            assert!(error <= 2.0 * STORAGE_ERROR * value.abs(), "{value}: {error}");
            cut += usize::from(error > STORAGE_ERROR * value.abs());
        }
        assert!(cut < 40, "{cut} of a million, where 8 are expected"); // half of 10⁶ / 2¹⁶ are far enough beyond
        for value in [0.0, 1.0, -1.0, 0.5, f64::from(f32::MIN_POSITIVE), 1e-320] {
            let stored = f32::narrow(value);
            assert!((corrected(stored, residue(value, stored)) - value).abs() <= 1e-45);
        }
    }
}
