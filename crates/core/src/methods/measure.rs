//! What two vectors are compared by. It does not know which texts they stand for.

use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};

/// What two vectors are compared by.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The cosine of their angle.
    #[default]
    Cosine,
    /// `1 / (1 + distance)`, so that larger is always more alike.
    Euclidean,
}

impl Measure {
    /// Every measure.
    pub const ALL: [Self; 2] = [Self::Cosine, Self::Euclidean];

    /// As requests and flags spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Euclidean => "euclidean",
        }
    }

    /// How alike two vectors are, larger for more alike.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::Cosine => vector::cosine(Row::F32(a), Row::F32(b)),
            Self::Euclidean => match simd::squared_distance(a, b) {
                // Too far to be told is not the same as infinitely far.
                f32::INFINITY => f32::NAN,
                square => 1.0 / (1.0 + square.sqrt()),
            },
        }
    }
}
