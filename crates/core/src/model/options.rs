//! What opening a model file is told: how its bytes are held, and the upper bounds of what it may claim.

use crate::choice::choice;

/// How a model file's bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// Mapped: shared between processes, loaded as touched, at the mercy of other writers.
    #[default]
    Map,
    /// Copied once into memory of this process alone: nothing outside can change it any more.
    Copy,
}

choice!(Storage { Map = "map", Copy = "copy" });

/// The longest a vector may be. Products and sums of such vectors stay far within 32-bit floats, so
/// that no length, distance or membership becomes infinite; vectors of words are nowhere near it.
pub const LONGEST: f32 = 1e15;

/// Limits of what a file may claim.
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
