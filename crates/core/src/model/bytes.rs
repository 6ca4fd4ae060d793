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

/// Sixty-four bytes, aligned to sixty-four: the unit of a model's memory.
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
    /// As many zeros, if there is enough memory.
    pub fn zeroed(length: usize) -> Result<Self, TryReserveError> {
        let mut blocks = Vec::new();
        let count = length.div_ceil(size_of::<Block>());
        blocks.try_reserve_exact(count)?;
        blocks.resize(count, Block([0; 64]));
        Ok(Self { blocks, length })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        bytemuck::cast_slice::<Block, u8>(&self.blocks).get(..self.length).unwrap_or_default()
    }

    /// The bytes, to be written.
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
    #[cfg(unix)]
    File(Mapping),
    Memory(AlignedBytes),
    Program(&'static [u8]),
}

impl Bytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            #[cfg(unix)]
            Self::File(mapping) => mapping.as_slice(),
            Self::Memory(bytes) => bytes.as_slice(),
            Self::Program(bytes) => bytes,
        }
    }

    /// Brings the missing parts of `range` into memory now.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "only files lie elsewhere"))]
    pub(super) fn populate(&self, range: std::ops::Range<usize>) -> std::io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::File(mapping) => mapping.populate(range),
            Self::Memory(_) | Self::Program(_) => Ok(()),
        }
    }
}

/// The bytes seen as numbers; `None` unless length and address fit.
pub fn numbers<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Option<&[T]> {
    bytemuck::try_cast_slice(bytes).ok()
}

/// The path given for a model that was never a file.
pub(crate) fn in_memory() -> PathBuf {
    PathBuf::from("(in memory)")
}
