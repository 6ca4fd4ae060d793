//! A tensor of a model file: its element type, and where the header says that it lies.

use std::ops::Range;

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

    /// As the header spells it.
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
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its bytes, counted from the start of the file.
    pub range: Range<usize>,
    /// BLAKE3 of its bytes, as the header has it.
    pub digest: String,
}
