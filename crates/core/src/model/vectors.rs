//! Word id to row, borrowed from the mapping and never copied.

use std::io;
use std::io::Write;
use std::ops::Range;

use cognate_kernels::simd;
use cognate_kernels::simd::{Picked, bytes, sums};
use cognate_kernels::vector::Row;
use half::f16;

use crate::choice::choice;
use crate::model::vocabulary::WordId;

/// Whether a word's vector already carries the weight of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frequency {
    /// It does not: methods that weight by frequency do so themselves.
    #[default]
    None,
    /// Its length is the weight: weighting again would count frequency twice.
    InNorm,
}

choice!(Frequency { None = "none", InNorm = "in-norm" });

/// A matrix of rows, borrowed from the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'m> {
    data: Data<'m>,
    dims: usize,
    /// Number of rows, so that nobody divides for it.
    rows: usize,
}

#[derive(Debug, Clone, Copy)]
enum Data<'m> {
    F32(&'m [f32]),
    F16(&'m [f16]),
    I8(&'m [i8], &'m [f32]),
}

impl<'m> Vectors<'m> {
    /// Rows of `dims` numbers over checked bytes; `None` unless they fit.
    pub(crate) fn new(
        dtype: Dtype,
        bytes: &'m [u8],
        scales: &'m [u8],
        dims: usize,
    ) -> Option<Self> {
        use crate::model::bytes::numbers;
        let data = match dtype {
            Dtype::F32 => Data::F32(numbers(bytes)?),
            Dtype::F16 => Data::F16(numbers(bytes)?),
            Dtype::I8 => Data::I8(numbers(bytes)?, numbers(scales)?),
            Dtype::U8 | Dtype::U32 | Dtype::U64 => return None,
        };
        let values = match data {
            Data::F32(values) => values.len(),
            Data::F16(values) => values.len(),
            Data::I8(values, _) => values.len(),
        };
        Some(Self { data, dims, rows: values.checked_div(dims).unwrap_or(0) })
    }

    pub(crate) fn empty(dims: usize) -> Self {
        Self { data: Data::F32(&[]), dims, rows: 0 }
    }

    /// Number of dimensions of every row.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Never: an accepted model has at least one row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether rows are bytes, each with a scale.
    #[inline]
    pub fn are_bytes(&self) -> bool {
        matches!(self.data, Data::I8(..))
    }

    /// Asks for a row and its scale, which will be read soon.
    #[inline]
    pub fn prefetch(&self, id: WordId) {
        let start = (id as usize).wrapping_mul(self.dims);
        let range = start..start.wrapping_add(self.dims);
        match self.data {
            Data::F32(values) => simd::prefetch(values.get(range).unwrap_or_default()),
            Data::F16(values) => simd::prefetch(values.get(range).unwrap_or_default()),
            Data::I8(values, scales) => {
                simd::prefetch(values.get(range).unwrap_or_default());
                let id = id as usize;
                simd::prefetch(scales.get(id..=id).unwrap_or_default());
            }
        }
    }

    /// Rows picked by their numbers; numbers behind the last row pick from `made`, or of bytes from
    /// `made_bytes`. `None` if the rows would be of two types.
    pub(crate) fn pick<'r>(
        &self,
        numbers: &'r [WordId],
        made: &'r [f32],
        made_bytes: &'r [i8],
    ) -> Option<sums::Rows<'r>>
    where
        'm: 'r,
    {
        let dims = self.dims;
        Some(match self.data {
            Data::F32(rows) => sums::Rows::F32(Picked { tables: [rows, made], numbers, dims }),
            Data::F16(_) if !made.is_empty() => return None,
            Data::F16(rows) => sums::Rows::F16(Picked { tables: [rows, &[]], numbers, dims }),
            Data::I8(rows, _) => {
                sums::Rows::I8(Picked { tables: [rows, made_bytes], numbers, dims })
            }
        })
    }

    /// Multiplies each weight by the scale of its row, if rows have scales; those of rows behind the last
    /// are `made`.
    pub(crate) fn scale(&self, numbers: &[WordId], made: &[f32], weights: &mut [f32]) {
        let Data::I8(_, scales) = self.data else { return };
        for (weight, &number) in weights.iter_mut().zip(numbers) {
            let listed = scales.get(number as usize);
            let scale = listed.or_else(|| made.get((number as usize).wrapping_sub(scales.len())));
            *weight *= scale.copied().unwrap_or_default();
        }
    }

    /// The row of a word. `None` for an id that is not in the vocabulary.
    #[inline]
    pub fn row(&self, id: WordId) -> Option<Row<'m>> {
        let start = (id as usize).checked_mul(self.dims)?;
        let range = start..start.checked_add(self.dims)?;
        Some(match self.data {
            Data::F32(values) => Row::F32(values.get(range)?),
            Data::F16(values) => Row::F16(values.get(range)?),
            Data::I8(values, scales) => Row::I8(values.get(range)?, *scales.get(id as usize)?),
        })
    }
}

/// Writes rows as elements of one type, and collects the scales.
#[derive(Debug)]
pub struct Quantiser {
    dtype: Dtype,
    /// One scale for each row, for I8 alone.
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

/// The element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// Signed byte.
    I8,
    /// Byte.
    U8,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

impl Dtype {
    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::F16 => 2,
            Self::F32 | Self::U32 => 4,
            Self::U64 => 8,
        }
    }

    /// The name in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::I8 => "I8",
            Self::U8 => "U8",
            Self::U32 => "U32",
            Self::U64 => "U64",
        }
    }
}

/// One tensor of an accepted header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The tensor's name.
    pub name: String,
    /// The tensor's element type.
    pub dtype: Dtype,
    /// The tensor's shape.
    pub shape: Vec<u64>,
    /// The tensor's bytes, counted from the start of the file.
    pub range: Range<usize>,
    /// BLAKE3 of its bytes, as the header has it.
    pub digest: String,
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
        let mut out = Vec::new();
        quantiser.write(&[1.0, -0.5], &mut out).unwrap();
        assert_eq!(out, [0x00, 0x3c, 0x00, 0xb8]);
    }
}
