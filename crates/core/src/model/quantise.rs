//! Rows of f32 as the element type a model stores.

use std::io;
use std::io::Write;

use cognate_kernels::simd::bytes;
use half::f16;

use crate::model::format::Dtype;

/// Writes rows as elements of one type, and keeps what the type needs besides.
#[derive(Debug)]
pub struct Quantiser {
    dtype: Dtype,
    /// One scale a row, for I8 alone.
    pub scales: Vec<f32>,
    bytes: Vec<u8>,
}

impl Quantiser {
    /// A quantiser to F32, F16 or I8.
    pub fn new(dtype: Dtype) -> Self {
        Self { dtype, scales: Vec::new(), bytes: Vec::new() }
    }

    /// Writes one row; an int8 row by [`bytes::quantise`].
    pub fn write(&mut self, row: &[f32], out: &mut dyn Write) -> io::Result<()> {
        self.bytes.clear();
        match self.dtype {
            Dtype::F16 => {
                for &value in row {
                    let half = f16::from_f32(value);
                    if !half.is_finite() {
                        let problem = format!("{value} does not fit F16; choose --dtype f32");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                    }
                    self.bytes.extend_from_slice(&half.to_le_bytes());
                }
            }
            Dtype::I8 => {
                self.bytes.resize(row.len(), 0);
                self.scales.push(bytes::quantise(row, bytemuck::cast_slice_mut(&mut self.bytes)));
            }
            _ => self.bytes.extend_from_slice(bytemuck::cast_slice(row)),
        }
        out.write_all(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn int8_is_within_half_a_step(row in prop::collection::vec(-1e3_f32..1e3, 1..50)) {
            let mut quantiser = Quantiser::new(Dtype::I8);
            let mut bytes = Vec::new();
            quantiser.write(&row, &mut bytes).unwrap();
            let scale = quantiser.scales[0];
            for (value, byte) in row.iter().zip(bytes) {
                let back = f32::from(byte as i8) * scale;
                prop_assert!((back - value).abs() <= scale * 0.5001, "{value} {back} {scale}");
            }
        }
    }

    #[test]
    fn a_value_too_large_for_half_precision_is_an_error() {
        let mut quantiser = Quantiser::new(Dtype::F16);
        let error = quantiser.write(&[1.0, 1e6], &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("--dtype f32"), "{error}");
    }
}
