//! Word id to row, borrowed from the mapping and never copied.

use cognate_kernels::simd;
use cognate_kernels::vector::Row;
use half::f16;

use crate::model::tensor::Dtype;
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

impl Frequency {
    /// As the file and the command line spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::InNorm => "in-norm",
        }
    }
}

impl std::str::FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "in-norm" => Ok(Self::InNorm),
            other => Err(format!("expected none or in-norm, got `{other}`")),
        }
    }
}

/// A matrix of rows, borrowed from the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'m> {
    data: Data<'m>,
    dims: usize,
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
        Some(Self { data, dims })
    }

    pub(crate) fn empty(dims: usize) -> Self {
        Self { data: Data::F32(&[]), dims }
    }

    /// Number of dimensions of every row.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let values = match self.data {
            Data::F32(values) => values.len(),
            Data::F16(values) => values.len(),
            Data::I8(values, _) => values.len(),
        };
        values.checked_div(self.dims).unwrap_or(0)
    }

    /// Whether there are no rows; an accepted model has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether rows are bytes, each with a scale.
    #[inline]
    pub fn are_bytes(&self) -> bool {
        matches!(self.data, Data::I8(..))
    }

    /// Asks for a row, which will be read soon.
    #[inline]
    pub fn prefetch(&self, id: WordId) {
        match self.row(id) {
            Some(Row::F32(row)) => simd::prefetch(row),
            Some(Row::F16(row)) => simd::prefetch(row),
            Some(Row::I8(row, _)) => simd::prefetch(row),
            None => {}
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
