//! One accelerated proximal step, for all columns of a block.

use crate::device::matrix::Matrix;
use crate::device::{Block, Device, Spectrum};
use crate::error::Result;

/// Takes the step from `ahead`, given Uᵀθ there, for curvatures C·M. Then adds the momentum, which is restarted where it
/// points uphill. Returns ½(θ − β)ᵀK(θ − β) at `ahead`: the gap there, apart from what Σθ ≠ 0 adds.
///
/// A device may take the step as one operation. What it must do is what [`step_by_parts`] does.
pub(crate) fn take_step(
    device: &dyn Device,
    block: &mut Block,
    pulls: &Matrix,
    spectrum: &Spectrum,
    curvature: &[f64],
) -> Result<Vec<f64>> {
    match device.fused_step(block, pulls, spectrum, curvature)? {
        Some(gaps) => Ok(gaps),
        None => step_by_parts(device, block, pulls, spectrum, curvature),
    }
}

/// The step in elementary operations. With q = 1 / (1 + CMλ) and r = Uᵀθ − ahead, in each column
///
/// ```text
/// Δb = (Σ o (q r + ahead)) / (CM Σ o² q),     new = ahead + q (r − CM Δb o),     o = Uᵀ1,     so that Σβ = 0
/// ```
pub(crate) fn step_by_parts(
    device: &dyn Device,
    block: &mut Block,
    pulls: &Matrix,
    spectrum: &Spectrum,
    curvature: &[f64],
) -> Result<Vec<f64>> {
    let Spectrum { values, ones } = spectrum;
    let columns = curvature.len();
    let (plus, minus) = (vec![1.0; columns], vec![-1.0; columns]);
    let q = device.resolvent(values, curvature)?;
    let r = device.combine(&[(pulls, &plus), (&block.ahead, &minus)])?;
    let gaps =
        device.column_dots(&device.scale_rows(values, &r)?, &r)?.into_iter().map(|square| 0.5 * square).collect();
    let q_r = device.hadamard(&q, &r)?;
    let o_q = device.scale_rows(ones, &q)?;
    let all_ones = device.upload(ones.len(), &vec![ones.clone(); columns])?;
    let up = device.column_dots(&all_ones, &device.combine(&[(&q_r, &plus), (&block.ahead, &plus)])?)?;
    let down = device.column_dots(&all_ones, &o_q)?;
    let shift = |c: usize| if down[c] > 0.0 { up[c] / (curvature[c] * down[c]) } else { 0.0 };
    let shifts: Vec<f64> = (0..columns).map(shift).collect();
    let back: Vec<f64> = shifts.iter().zip(curvature).map(|(shift, cm)| -cm * shift).collect();
    let new = device.combine(&[(&block.ahead, &plus), (&q_r, &plus), (&o_q, &back)])?;
    let moved = device.combine(&[(&new, &plus), (&block.coordinates, &minus)])?;
    let away = device.combine(&[(&block.ahead, &plus), (&new, &minus)])?;
    let uphill = device.column_dots(&device.scale_rows(values, &away)?, &moved)?;
    let mut carries = vec![0.0; columns];
    for c in 0..columns {
        let b_new = block.b_ahead[c] + shifts[c];
        let next = 0.5 * (1.0 + (1.0 + 4.0 * block.momentum[c] * block.momentum[c]).sqrt());
        let restarts = uphill[c] > 0.0;
        carries[c] = if restarts { 0.0 } else { (block.momentum[c] - 1.0) / next };
        block.b_ahead[c] = b_new + carries[c] * (b_new - block.b[c]);
        block.b[c] = b_new;
        block.momentum[c] = if restarts { 1.0 } else { next };
    }
    block.ahead = device.combine(&[(&new, &plus), (&moved, &carries)])?;
    block.coordinates = new;
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::device::place::DeviceChoice;

    /// Ten steps with the device's own operation beside ten of the definition.
    fn beside(device: &dyn Device) {
        let mut rng = fastrand::Rng::with_seed(5);
        let (n, columns) = (37, 3);
        let mut random = |scale: f64| -> Vec<f64> { (0..n).map(|_| scale * (rng.f64() - 0.3)).collect() };
        let spectrum = Spectrum { values: random(4.0).iter().map(|v| v.abs()).collect(), ones: random(1.0) };
        let curvature = [0.5, 3.0, 40.0];
        let start: Vec<Vec<f64>> = (0..columns).map(|_| random(1.0)).collect();
        let block = || Block {
            coordinates: device.upload(n, &start).unwrap(),
            ahead: device.upload(n, &start).unwrap(),
            b: vec![0.1; columns],
            b_ahead: vec![0.1; columns],
            momentum: vec![1.0; columns],
        };
        let (mut fused, mut parts, mut restarted) = (block(), block(), false);
        for step in 0..10 {
            // Pulls that change direction, so that the momentum is restarted now and then.
            let pulls: Vec<Vec<f64>> = (0..columns).map(|_| random(if step % 4 < 2 { 1.0 } else { -500.0 })).collect();
            let pulls = device.upload(n, &pulls).unwrap();
            let want = step_by_parts(device, &mut parts, &pulls, &spectrum, &curvature).unwrap();
            let Some(got) = device.fused_step(&mut fused, &pulls, &spectrum, &curvature).unwrap() else { return };
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
            assert!(close(&got, &want), "step {step}: {got:?} is not {want:?}");
            for (got, want) in [(&fused.coordinates, &parts.coordinates), (&fused.ahead, &parts.ahead)] {
                let (got, want) = (device.download(got).unwrap(), device.download(want).unwrap());
                assert!(got.iter().zip(&want).all(|(got, want)| close(got, want)), "step {step}");
            }
            assert!(close(&fused.b, &parts.b) && close(&fused.b_ahead, &parts.b_ahead), "step {step}");
            assert!(close(&fused.momentum, &parts.momentum), "step {step}");
            restarted |= parts.momentum.contains(&1.0);
        }
        assert!(restarted);
    }

    #[test]
    fn a_fused_step_is_the_step_in_parts() {
        beside(&*DeviceChoice::Cpu.open().unwrap());
    }
}
