//! The bytes of a model in memory, of a file or not, and the view of them as numbers.
//!
//! Which bytes mean what is not known here, and how a file's get into memory is `mapped`'s part.

use std::collections::TryReserveError;
use std::path::PathBuf;

#[cfg(unix)]
use crate::model::mapped::Mapping;

#[cfg(not(target_endian = "little"))]
compile_error!(
    "model files are little endian and used as they lie; big-endian machines are not served"
);

/// Sixty-four bytes at a multiple of sixty-four: what ordinary memory for a model is made of.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// Bytes of ordinary memory, the first at an address that is a multiple of 64, as the tables of a model
/// need it.
#[derive(Debug)]
pub struct AlignedBytes {
    blocks: Vec<Block>,
    length: usize,
}

impl AlignedBytes {
    /// As many zeros, to be written over, if there is so much memory.
    pub fn zeroed(length: usize) -> Result<Self, TryReserveError> {
        let mut blocks = Vec::new();
        let count = length.div_ceil(size_of::<Block>());
        blocks.try_reserve_exact(count)?;
        blocks.resize(count, Block([0; 64]));
        Ok(Self { blocks, length })
    }

    /// All of them.
    pub fn as_slice(&self) -> &[u8] {
        bytemuck::cast_slice::<Block, u8>(&self.blocks).get(..self.length).unwrap_or_default()
    }

    /// All of them, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let bytes = bytemuck::cast_slice_mut::<Block, u8>(&mut self.blocks);
        bytes.get_mut(..self.length).unwrap_or_default()
    }
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> Self {
        let blocks = vec![Block([0; 64]); bytes.len().div_ceil(size_of::<Block>())];
        let mut copy = Self { blocks, length: bytes.len() };
        copy.as_mut_slice().copy_from_slice(bytes);
        copy
    }
}

/// A model's bytes, the first at an address that is a multiple of 64.
#[derive(Debug)]
pub(super) enum Bytes {
    /// Of a file.
    #[cfg(unix)]
    File(Mapping),
    /// That never were a file.
    Memory(AlignedBytes),
}

impl Bytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            #[cfg(unix)]
            Self::File(mapping) => mapping.as_slice(),
            Self::Memory(bytes) => bytes.as_slice(),
        }
    }

    /// Brings `range` into memory now, where it is not there yet.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "only files lie elsewhere"))]
    pub(super) fn populate(&self, range: std::ops::Range<usize>) -> std::io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::File(mapping) => mapping.populate(range),
            Self::Memory(_) => Ok(()),
        }
    }
}

/// How a model file's bytes are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// Mapped: shared between processes, loaded as touched, at the mercy of other writers.
    Map,
    /// Copied once into memory of this process alone: nothing outside can change it any more.
    Copy,
    /// Copied up to 64 MiB, mapped above.
    #[default]
    Auto,
}

impl std::str::FromStr for Storage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "map" => Ok(Self::Map),
            "copy" => Ok(Self::Copy),
            "auto" => Ok(Self::Auto),
            other => Err(format!("expected map, copy or auto, got `{other}`")),
        }
    }
}

/// The bytes seen as numbers; `None` unless length and address fit.
pub fn numbers<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Option<&[T]> {
    bytemuck::try_cast_slice(bytes).ok()
}

/// Where a test or an error message says a model came from when it never was a file.
pub(crate) fn in_memory() -> PathBuf {
    PathBuf::from("(in memory)")
}

/// The longest a vector may be. Products and sums of such vectors stay far within 32-bit floats, so
/// that no length, distance or membership becomes infinite; vectors of words are nowhere near it.
pub const LONGEST: f32 = 1e15;

/// Upper bounds on what a file may claim.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest file.
    pub model_bytes: u64,
    /// Most words.
    pub words: u64,
    /// Most dimensions.
    pub dims: u64,
    /// Longest header.
    pub header_bytes: u64,
    /// Longest probe sequence of the vocabulary's index.
    pub max_probe: u32,
}

impl Limits {
    /// The limits in force unless the operator sets others.
    pub const DEFAULT: Self = Self {
        model_bytes: 4 << 30,
        words: 5_000_000,
        dims: 4096,
        header_bytes: 1 << 20,
        max_probe: 64,
    };
}
