//! Upper bounds on what a model file may hold. How they are checked is not known here.

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
