//! K ≈ UΛUᵀ in single precision, for devices on which double precision is slow: an eigendecomposition is the one operation
//! of the spectral engine that grows with the cube of the rows.
//!
//! U and Λ only say which way a step goes. Its majorant is one of (P) if K ≤ UΛUᵀ, so Λ is made larger by a bound on the
//! error; and a step ends where θ = β, whatever U is, if the values f = Kβ and the coordinates U⁻¹θ are those of K and of this U.
//! So in double accuracy f is a product with K itself, and U⁻¹ is Uᵀ refined. The gap that ends the steps is computed
//! with K, too; the certificate knows neither U nor Λ.

use crate::device::basis::Basis;
use crate::device::matrix::Matrix;
use crate::device::{Decomposition, Device, Spectrum};
use crate::error::Result;
use crate::kernel::gram::Gram;
use crate::numeric::design::Accuracy;
use crate::numeric::entry::Entry;
use crate::numeric::simd::dot;
use crate::observe::Control;

/// Vectors and steps of the power method that finds ‖K − UΛUᵀ‖, and how many times that norm is allowed for: the method
/// finds some tenths less. More than that would shorten the steps.
const PROBES: usize = 4;

const PROBED: usize = 8;

const CAUTION: f64 = 2.0;

/// The decomposition, with eigenvalues so much larger that K ≤ UΛUᵀ.
pub(crate) fn decomposed<T: Entry>(device: &dyn Device, gram: &Gram<T>, control: &Control) -> Result<Decomposition> {
    let n = gram.n();
    let matrix = device.symmetric(n, &|i, row| gram.copy_row(i, 0, row), control)?;
    let (mut values, basis) = device.eigh_in_single(matrix, control)?;
    for v in &mut values {
        *v = v.max(0.0);
    }
    let error = error_norm(device, gram, (&values, &basis), control)?;
    for v in &mut values {
        *v += CAUTION * error;
    }
    let ones = device.upload(n, &[vec![1.0; n]])?;
    let ones = device.download(&device.times_in_double(&basis, &ones, true, control)?)?.remove(0);
    Ok(Decomposition { basis, spectrum: Spectrum { values, ones } })
}

/// ‖K − UΛUᵀ‖, by the power method.
fn error_norm<T: Entry>(
    device: &dyn Device,
    gram: &Gram<T>,
    (values, basis): (&[f64], &Matrix),
    control: &Control,
) -> Result<f64> {
    let (n, mut rng, mut largest) = (gram.n(), fastrand::Rng::with_seed(0), 0.0_f64);
    let mut probes: Vec<Vec<f64>> = (0..PROBES).map(|_| (0..n).map(|_| rng.f64() - 0.5).collect()).collect();
    for _ in 0..PROBED {
        for probe in &mut probes {
            let norm = dot(probe, probe).sqrt().max(f64::MIN_POSITIVE);
            for v in probe {
                *v /= norm;
            }
        }
        let uploaded = device.upload(n, &probes)?;
        let inside = device.scale_rows(values, &device.times_in_double(basis, &uploaded, true, control)?)?;
        let known = device.download(&device.times_in_double(basis, &inside, false, control)?)?;
        let products = gram.times(&references(&probes), control)?;
        let error = |(product, known): (&Vec<f64>, &Vec<f64>)| product.iter().zip(known).map(|(p, k)| p - k).collect();
        probes = products.iter().zip(&known).map(error).collect();
        largest = probes.iter().map(|probe| dot(probe, probe).sqrt()).fold(0.0, f64::max);
    }
    Ok(largest)
}

fn references(vectors: &[Vec<f64>]) -> Vec<&[f64]> {
    vectors.iter().map(|vector| &vector[..]).collect()
}

/// U in single precision, beside K itself.
pub(crate) struct InSingle<'a, T> {
    pub vectors: &'a Matrix,
    pub gram: &'a Gram<T>,
}

impl<T: Entry> Basis for InSingle<'_, T> {
    fn times(&self, device: &dyn Device, x: &Matrix, accuracy: Accuracy, control: &Control) -> Result<Matrix> {
        match accuracy {
            Accuracy::Working => device.times(self.vectors, x, control),
            Accuracy::Double => device.times_in_double(self.vectors, x, false, control),
        }
    }

    /// Uᵀ·V is off by as much as UᵀU is off I. One step of refinement leaves the square of that.
    fn transposed_times(
        &self,
        device: &dyn Device,
        v: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix> {
        let first = device.transposed_times(self.vectors, v, control)?;
        if accuracy == Accuracy::Working {
            return Ok(first);
        }
        let (plus, minus) = (vec![1.0; v.columns], vec![-1.0; v.columns]);
        let back = device.times_in_double(self.vectors, &first, false, control)?;
        let rest = device.combine(&[(v, &plus), (&back, &minus)])?;
        let second = device.transposed_times(self.vectors, &rest, control)?;
        device.combine(&[(&first, &plus), (&second, &plus)])
    }

    fn values(
        &self,
        device: &dyn Device,
        scaled: &Matrix,
        coordinates: &Matrix,
        accuracy: Accuracy,
        control: &Control,
    ) -> Result<Matrix> {
        if accuracy == Accuracy::Working {
            return self.times(device, scaled, accuracy, control);
        }
        let betas = device.download(&self.times(device, coordinates, accuracy, control)?)?;
        device.upload(self.gram.n(), &self.gram.times(&references(&betas), control)?)
    }

    fn squares(
        &self,
        device: &dyn Device,
        _: &Spectrum,
        known: &[(&[f64], &[f64])],
        control: &Control,
    ) -> Result<Vec<f64>> {
        let coordinates: Vec<Vec<f64>> = known.iter().map(|(coordinates, _)| coordinates.to_vec()).collect();
        let uploaded = device.upload(self.gram.n(), &coordinates)?;
        let betas = device.download(&self.times(device, &uploaded, Accuracy::Double, control)?)?;
        Ok(betas.iter().zip(known).map(|(beta, (_, f))| dot(beta, f)).collect())
    }

    fn squares_of(&self, _: &dyn Device, _: &Spectrum, vectors: &[Vec<f64>], control: &Control) -> Result<Vec<f64>> {
        let products = self.gram.times(&references(vectors), control)?;
        Ok(products.iter().zip(vectors).map(|(product, vector)| dot(product, vector)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::data::rows::Rows;
    use crate::device::cpu::Cpu;
    use crate::kernel::shape::{KernelFn, Shape};
    use crate::numeric::parallel;

    const N: usize = 90;

    fn gram() -> Gram<f64> {
        let x: Vec<f64> = (0..2 * N).map(|i| (0.37 * i as f64).sin()).collect();
        let (rows, all) = (Rows::from_slice(&x, 2).unwrap(), (0..N).collect::<Vec<usize>>());
        let kernel = KernelFn::new(Shape::Rbf, 2.0).unwrap();
        Gram::<f64>::compute(&rows, &all, &kernel, None, &Control::default()).unwrap()
    }

    fn random(seed: u64, columns: usize) -> Vec<Vec<f64>> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..columns).map(|_| (0..N).map(|_| 2.0 * rng.f64() - 1.0).collect()).collect()
    }

    /// Eigenvectors that are as far from those of K as a library that computes in single precision may leave them.
    fn blurred(gram: &Gram<f64>) -> (Vec<f64>, Matrix) {
        let fill = |i: usize, row: &mut [f64]| gram.copy_row(i, 0, row);
        let matrix = Cpu.symmetric(N, &fill, &Control::default()).unwrap();
        let (mut values, basis) = Cpu.eigh_in_single(matrix, &Control::default()).unwrap();
        let ones = Cpu.upload(N, &random(0, N)).unwrap();
        let wide = Cpu.times_in_double(&basis, &identity(), false, &Control::default()).unwrap();
        let basis = Cpu.combine(&[(&wide, &vec![1.0; N]), (&ones, &vec![1e-6; N])]).unwrap();
        for v in &mut values {
            *v += 1e-6;
        }
        (values, Cpu.narrow(&basis).unwrap())
    }

    fn identity() -> Matrix {
        let column = |j: usize| (0..N).map(|i| f64::from(u8::from(i == j))).collect();
        Cpu.upload(N, &(0..N).map(column).collect::<Vec<_>>()).unwrap()
    }

    fn far(got: &[Vec<f64>], want: &[Vec<f64>]) -> f64 {
        got.iter().flatten().zip(want.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn in_double_accuracy_products_are_those_of_the_matrix_itself() {
        let (gram, control) = (gram(), Control::default());
        let (values, vectors) = blurred(&gram);
        let spectrum = Spectrum { values, ones: Vec::new() };
        let basis = InSingle { vectors: &vectors, gram: &gram };
        let betas = random(1, 5);
        let up = Cpu.upload(N, &betas).unwrap();
        let (mut off, mut refined) = (Vec::new(), Vec::new());
        for accuracy in [Accuracy::Working, Accuracy::Double] {
            // U U⁻¹ β = β, and f = Kβ.
            let coordinates = basis.transposed_times(&Cpu, &up, accuracy, &control).unwrap();
            let back = basis.times(&Cpu, &coordinates, Accuracy::Double, &control).unwrap();
            let scaled = Cpu.scale_rows(&spectrum.values, &coordinates).unwrap();
            let f = Cpu.download(&basis.values(&Cpu, &scaled, &coordinates, accuracy, &control).unwrap()).unwrap();
            let back = Cpu.download(&back).unwrap();
            let want = gram.times(&references(&back), &control).unwrap();
            off.push(far(&back, &betas));
            refined.push(far(&f, &want));
        }
        assert!(off[0] > 1e-7 && off[1] < 1e-9, "{off:?}");
        assert!(refined[0] > 1e-7 && refined[1] < 1e-12, "{refined:?}");
        // βᵀKβ.
        let products = gram.times(&references(&betas), &control).unwrap();
        let want: Vec<f64> = products.iter().zip(&betas).map(|(product, beta)| dot(product, beta)).collect();
        let got = basis.squares_of(&Cpu, &spectrum, &betas, &control).unwrap();
        assert!(far(&[got], std::slice::from_ref(&want)) < 1e-12);
        let coordinates = basis.transposed_times(&Cpu, &up, Accuracy::Double, &control).unwrap();
        let coordinates = Cpu.download(&coordinates).unwrap();
        let known: Vec<(&[f64], &[f64])> = coordinates.iter().zip(&products).map(|(c, f)| (&c[..], &f[..])).collect();
        let got = basis.squares(&Cpu, &spectrum, &known, &control).unwrap();
        let largest = want.iter().fold(1.0, |a: f64, v| a.max(*v));
        assert!(far(&[got], &[want]) < 1e-8 * largest);
    }

    #[test]
    fn the_error_is_found_and_its_bound_makes_a_majorant() {
        let (gram, control) = (gram(), Control::default());
        let (values, vectors) = blurred(&gram);
        let error = error_norm(&Cpu, &gram, (&values, &vectors), &control).unwrap();
        // UΛUᵀ + 2 error − K has no negative eigenvalue, and with a hundredth of the error it has.
        let smallest = |allowed: f64| {
            let larger: Vec<f64> = values.iter().map(|v| v.max(0.0) + allowed).collect();
            let back = Cpu.times_in_double(&vectors, &identity(), true, &control).unwrap();
            let inside = Cpu.scale_rows(&larger, &back).unwrap();
            let known = Cpu.download(&Cpu.times_in_double(&vectors, &inside, false, &control).unwrap()).unwrap();
            let mut rows = known.clone();
            parallel::for_each(rows.iter_mut().enumerate(), |(i, row)| {
                let mut of_k = vec![0.0; N];
                gram.copy_row(i, 0, &mut of_k);
                for (j, (row, k)) in row.iter_mut().zip(of_k).enumerate() {
                    *row = 0.5 * (known[i][j] + known[j][i]) - k;
                }
            });
            let matrix = faer::Mat::from_fn(N, N, |i, j| rows[j][i]);
            crate::numeric::eigen::eigenvalues(matrix, &control).unwrap()[0]
        };
        assert!(error > 1e-7 && error < 1e-3, "{error}");
        assert!(smallest(CAUTION * error) >= 0.0 && smallest(0.01 * error) < 0.0);
        let made = decomposed(&Cpu, &gram, &control).unwrap();
        assert!(made.spectrum.values.iter().all(|v| *v > 0.0));
    }
}
