//! The settings that events are found with where none are said, and where they come from: chosen on
//! the interleaved stream of CrisisLex train, as `docs/events.md` tells.

use crate::methods::Method;

/// Texts that are looked back at.
pub const LAST: usize = 2000;
/// The method whose vectors find the nearest.
pub const METHOD: &str = "avg-cos";
/// The method that scores the nearest once more.
pub const SECOND: &str = "coverage";
/// Number of nearest texts that vote.
pub const NEAREST: usize = 16;
/// Texts of an event that must speak for it.
pub const VOTES: usize = 4;
/// The share of an event's centre.
pub const CENTRE: f32 = 0.0;
/// The least cosine of a text that votes: below it two texts are as alike as any.
pub const FLOOR: f32 = 0.2;

/// The threshold that was found for a method, where one was.
pub fn threshold(method: Method) -> Option<f32> {
    match method.name() {
        "coverage-blend" | "coverage" => Some(0.48),
        "avg-cos" => Some(0.51),
        _ => None,
    }
}

/// The score of a method for two texts of the same words: its highest. By methods whose scores have no
/// bound no text is a duplicate.
pub fn duplicate(method: Method) -> f32 {
    method.info().range.1
}
