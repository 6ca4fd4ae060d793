//! What is asked of a stream: options that may be left out, and what they come to for a model.

pub use crate::engine::Least;
use crate::engine::{Engine, Opposites, Query, QueryError, least_score};
use crate::methods::{Info, Kind, Method};
use crate::window::events::Rule;
use crate::window::stream::Settings;
use crate::window::usual::Preset;
use crate::window::{Limits, usual};

/// The name that says that there is no second method.
pub const NO_SECOND: &str = "none";
/// Largest window of one process: its vectors alone are a gigabyte for each million texts and 256
/// dimensions.
pub const MAX_LAST: usize = 10_000_000;
/// Maximum of the options `nearest` and `votes`.
pub const MAX_NEAREST: usize = 1000;

/// Options of a stream; those that are left out are as [`usual`] has them for the preset.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options<'o> {
    /// The kind of the stream.
    pub preset: Option<Preset>,
    /// The name of a method with vectors, by whose cosine the nearest are found.
    pub method: Option<&'o str>,
    /// The name of a method that scores the nearest once more, or [`NO_SECOND`].
    pub second: Option<&'o str>,
    /// Number of preceding texts that each text is compared with.
    pub last: Option<usize>,
    /// How much earlier or later near texts may be, in milliseconds; at any time where this is left out.
    pub within: Option<i64>,
    /// The least score at which a text is near another and belongs to its event.
    pub threshold: Option<Least>,
    /// Number of nearest texts that are asked for their events.
    pub nearest: Option<usize>,
    /// Number of texts of an event that must speak for it on average.
    pub votes: Option<usize>,
    /// The share of an event's score that is the cosine to the mean of its last texts.
    pub centre: Option<f64>,
    /// The least score at which a text is a duplicate of its nearest text.
    pub duplicate_score: Option<f64>,
    /// Whether opposed texts are left out of a text's nearest texts.
    pub drop_opposed: bool,
    /// Which opposites those are.
    pub opposites: Option<Opposites>,
}

/// An option that was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{option}`: {problem}")]
pub struct OptionError {
    /// The name of the option.
    pub option: &'static str,
    /// Why it cannot be had.
    pub problem: OptionProblem,
}

/// Why an option cannot be had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OptionProblem {
    /// The model or the method does not admit it.
    #[error(transparent)]
    Query(QueryError),
    /// The value is outside its range.
    #[error("expected a number from {least} to {most}{}", of_scores(*.scores_of))]
    OutOfRange {
        /// The least that it may be.
        least: f64,
        /// The most that it may be.
        most: f64,
        /// The method whose scores are in this range, where it is a score.
        scores_of: Option<&'static str>,
    },
    /// It says which opposed texts are dropped, and none are.
    #[error("expected count or without_names, where opposed texts are dropped")]
    NoneDropped,
    /// The request has no threshold, and the method has no known default.
    #[error("no usual threshold is known for {method}: say one, or \"calibrated\"")]
    NoUsual {
        /// The method that scores.
        method: &'static str,
    },
}

fn of_scores(method: Option<&str>) -> String {
    method.map(|name| format!(", as scores of {name} are")).unwrap_or_default()
}

impl Options<'_> {
    /// The settings that these options come to, with a window of at most `max_last` texts.
    pub fn resolve(&self, engine: &Engine, max_last: usize) -> Result<Settings, OptionError> {
        let refused = |option, problem| Err(OptionError { option, problem });
        let by = |option| move |error| OptionError { option, problem: OptionProblem::Query(error) };
        let method = engine.embedding_method(self.method.unwrap_or(usual::METHOD));
        let method = method.map_err(by("method"))?;
        engine.embedding_dims(method).map_err(by("method"))?;
        let preset = self.preset.unwrap_or_default();
        let second = match self.second.unwrap_or_else(|| usual::second(engine, preset)) {
            NO_SECOND => None,
            name => Some(engine.method(name).map_err(by("second"))?),
        };
        if let Some(second) = second {
            if second.info().kind == Kind::Ranker {
                return Err(by("second")(QueryError::OnlyRanks { method: second.name() }));
            }
            engine.check(&Query::new(second)).map_err(by("second"))?;
        }
        if self.drop_opposed {
            let unknown = |reason| by("opposes")(QueryError::OppositesUnknown { reason });
            engine.knows_opposites().map_err(unknown)?;
        }
        if self.opposites.is_some_and(|kinds| kinds == Opposites::Ignore || !self.drop_opposed) {
            return refused("opposites", OptionProblem::NoneDropped);
        }
        let scoring = second.unwrap_or(method);
        let score = |option, score| within_scores(option, score, scoring);
        let threshold = match self.threshold {
            Some(Least::Number(number)) => score("threshold", number)?,
            Some(least @ Least::Calibrated) => {
                least.resolve(engine, &Query::new(scoring)).map_err(by("threshold"))?.least
            }
            None => match usual::threshold(engine, preset, scoring) {
                Some(threshold) => threshold,
                None => {
                    let method = scoring.name();
                    return refused("threshold", OptionProblem::NoUsual { method });
                }
            },
        };
        let duplicate = self.duplicate_score.map(|number| score("duplicate_score", number));
        let centre = self.centre.map(|centre| within("centre", centre, (0.0, 1.0), None));
        let count = |option, asked: Option<usize>, usual: usize, most: usize| {
            let count = asked.unwrap_or(usual);
            within(option, count as f64, (1.0, most as f64), None).map(|_| count)
        };
        Ok(Settings {
            method,
            second,
            nearest: count("nearest", self.nearest, usual::NEAREST, MAX_NEAREST)?,
            floor: usual::FLOOR,
            drop_opposed: self.drop_opposed.then(|| self.opposites.unwrap_or(usual::OPPOSITES)),
            rule: Rule {
                threshold,
                votes: count("votes", self.votes, usual::VOTES, MAX_NEAREST)?,
                steps: usual::steps(preset, scoring),
                centre: centre.transpose()?.unwrap_or(usual::CENTRE),
                duplicate: duplicate.transpose()?.unwrap_or(usual::duplicate(scoring)),
            },
            limits: Limits {
                last: count("last", self.last, usual::LAST, max_last)?,
                within: self.within,
            },
        })
    }
}

/// A score that a method can give.
fn within_scores(option: &'static str, score: f64, method: Method) -> Result<f32, OptionError> {
    let Info { name, range: (least, most), .. } = method.info();
    within(option, score, (f64::from(*least), f64::from(*most)), Some(*name))
}

fn within(
    option: &'static str,
    number: f64,
    (least, most): (f64, f64),
    scores_of: Option<&'static str>,
) -> Result<f32, OptionError> {
    match (least..=most).contains(&number) {
        true => Ok(least_score(number)),
        false => Err(OptionError {
            option,
            problem: OptionProblem::OutOfRange { least, most, scores_of },
        }),
    }
}
