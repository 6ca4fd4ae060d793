//! The Gaussian error linear unit (Hendrycks and Gimpel 2016), x Φ(x), of many numbers.
//!
//! candle computes erf with a scalar library, which takes a sixth of the time of a small encoder,
//! and splits each call into threads, although every thread already has its own batch. So on a CPU
//! it is computed here.

use candle_core::{CpuStorage, CustomOp1, Layout, Shape, Tensor};

type Result<T> = std::result::Result<T, candle_core::Error>;

pub(super) fn gelu(numbers: &Tensor) -> Result<Tensor> {
    if numbers.device().is_cpu() { numbers.apply_op1_no_bwd(&Gelu) } else { numbers.gelu_erf() }
}

struct Gelu;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let numbers = storage.as_slice::<f32>()?;
        let Some((from, to)) = layout.contiguous_offsets() else {
            candle_core::bail!("gelu of a tensor that is not contiguous");
        };
        let done = numbers[from..to].iter().map(|&x| unit(x)).collect();
        Ok((CpuStorage::F32(done), layout.shape().clone()))
    }
}

#[inline]
fn unit(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function as a quotient of polynomials, accurate to 5e-7: the one of Eigen and XLA,
/// which the compiler can vectorise.
#[inline]
fn erf(x: f32) -> f32 {
    const ABOVE: [f32; 7] = [
        -2.726_142_4e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const BELOW: [f32; 5] =
        [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2];
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let polynomial = |coefficients: &[f32]| {
        coefficients.iter().fold(0.0, |sum, coefficient| sum * square + coefficient)
    };
    x * polynomial(&ABOVE) / polynomial(&BELOW)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn units_are_those_of_the_library() {
        let numbers: Vec<f32> = (-60_000..=60_000).map(|at| at as f32 / 10_000.0).collect();
        let numbers = Tensor::from_vec(numbers, (120_001,), &Device::Cpu).unwrap();
        let found = gelu(&numbers).unwrap().to_vec1::<f32>().unwrap();
        let expected = numbers.gelu_erf().unwrap().to_vec1::<f32>().unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 2e-6, "{found} {expected}");
        }
        assert!(unit(f32::NAN).is_nan(), "what is no number stays seen");
    }
}
