//! The settings that events and duplicates are found with where none are said. Those of events were chosen on
//! streams drawn from CrisisLex train, as `docs/measurements/events.md` tells. Thresholds that were found for a model
//! stand in its file and go before these.

use crate::choice::choice;
use crate::engine::{Engine, Opposites};
use crate::methods::Method;

/// The kind of a stream, which says what is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Topics of any size among posts that are about nothing else: a stream of posts by keyword, place or
    /// language.
    #[default]
    Topics,
    /// Stories of a few posts each, and hardly a post without one: headlines, posts with an address.
    Stories,
}

choice!(Preset { Topics = "topics", Stories = "stories" });

/// The least score of duplicates that a list or a file is searched for.
pub const DUPLICATES: f64 = 0.8;
/// How many earlier texts a text is compared with.
pub const LAST: usize = 2000;
/// The method whose vectors find the nearest.
pub const METHOD: &str = "avg-cos";
/// Number of nearest texts that vote.
pub const NEAREST: usize = 16;
/// Number of an event's texts whose scores are averaged into the event's score.
pub const VOTES: usize = 4;
/// The share of an event's score that its centre has.
pub const CENTRE: f32 = 0.0;
/// The least cosine of a text that votes: below it two texts are as alike as any.
pub const FLOOR: f32 = 0.2;
/// The opposites that are dropped where any are: posts of one event name different things.
pub const OPPOSITES: Opposites = Opposites::WithoutNames;
/// The method that tells topics from noise, where a model is fitted for it.
const SAME_EVENT: &str = "same-event";
/// What a text needs beyond the threshold to join an event of 1, 2 and 3 texts: most of those begin and end
/// in noise.
const STEPS: [f32; 3] = [0.25, 0.15, 0.07];

/// The method that scores the nearest texts a second time.
pub fn second(engine: &Engine, preset: Preset) -> &'static str {
    let is_fitted = || Method::named(SAME_EVENT).is_some_and(|it| engine.scorer(it).is_ok());
    match preset {
        Preset::Topics if is_fitted() => SAME_EVENT,
        Preset::Topics | Preset::Stories => "coverage",
    }
}

/// The threshold that was found for a method, where one was.
pub fn threshold(engine: &Engine, preset: Preset, method: Method) -> Option<f32> {
    let rules = engine.event_rules();
    let known = match preset {
        Preset::Topics => &rules.topics,
        Preset::Stories => &rules.stories,
    };
    let usual = || match (preset, method.name()) {
        (Preset::Topics, SAME_EVENT) => Some(0.6),
        (Preset::Topics, "coverage-blend" | "coverage") => Some(0.48),
        (Preset::Topics, "avg-cos") => Some(0.51),
        (Preset::Stories, "coverage") => Some(0.6),
        _ => None,
    };
    known.get(method.name()).map(|&found| found as f32).or_else(usual)
}

/// The steps of young events, which belong to the scale of the method that scores.
pub fn steps(preset: Preset, method: Method) -> [f32; 3] {
    if preset == Preset::Topics && method.name() == SAME_EVENT { STEPS } else { [0.0; 3] }
}

/// The score of a method for two texts of the same words: its highest. By methods whose scores have no
/// bound no text is a duplicate.
pub fn duplicate(method: Method) -> f32 {
    method.info().range.1
}
