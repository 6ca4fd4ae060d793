//! Errors of questions, and the text at fault.

use crate::engine::answers::Reason;
use crate::engine::fuse::FusedProblem;
use crate::methods::{Measure, Method, Unavailable};

/// The text of a question that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A text of `embed`.
    Text(usize),
    /// One side of a pair, 0 or 1.
    Pair(usize, usize),
    /// The query of `rank`.
    Query,
    /// One of several queries of `rank`.
    QueryOf(usize),
    /// A liked text of `rank`.
    Liked(usize),
    /// A disliked text of `rank`.
    Disliked(usize),
    /// A candidate of `rank`.
    Candidate(usize),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(index) => write!(f, "texts[{index}]"),
            Self::Pair(index, side) => write!(f, "pairs[{index}][{side}]"),
            Self::Query => write!(f, "query"),
            Self::QueryOf(index) => write!(f, "queries[{index}]"),
            Self::Liked(index) => write!(f, "like[{index}]"),
            Self::Disliked(index) => write!(f, "unlike[{index}]"),
            Self::Candidate(index) => write!(f, "candidates[{index}]"),
        }
    }
}

/// A question that cannot be answered. None of the messages repeats the text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// No method has that name.
    #[error("no such method `{name}`; the nearest names are {}", nearest.join(", "))]
    UnknownMethod {
        /// The requested name, cut if it is long.
        name: String,
        /// The three method names most like the requested name.
        nearest: [&'static str; 3],
    },
    /// The model has nothing for the method.
    #[error("{method} cannot be used with this model: {reason}")]
    MethodUnavailable {
        /// The method.
        method: &'static str,
        /// What the model lacks, and the command that adds it.
        reason: Unavailable,
    },
    /// The method compares two texts and has no vector of a single text.
    #[error("{method} compares two texts and has no vector of one")]
    CannotEmbed {
        /// The method.
        method: &'static str,
    },
    /// The method only ranks.
    #[error("{method} only ranks candidates for a query")]
    OnlyRanks {
        /// The method.
        method: &'static str,
    },
    /// A method fused of others cannot answer.
    #[error("{name} {problem}")]
    Fused {
        /// The requested name.
        name: String,
        /// Why it cannot.
        problem: FusedProblem,
    },
    /// The method has its own way of comparing.
    #[error("{method} is not a vector method and cannot use {}", measure.name())]
    MeasureNotSupported {
        /// The method.
        method: &'static str,
        /// The requested measure.
        measure: Measure,
    },
    /// The model has no threshold of the method under the measure.
    #[error("the model has no threshold for {method} by {}; `cognate eval calibrate` finds one", measure.name())]
    NotCalibrated {
        /// The method.
        method: &'static str,
        /// The measure.
        measure: Measure,
    },
    /// The method does not count opposites.
    #[error("{method} does not count opposites; {}", counting_methods())]
    OppositesNotCounted {
        /// The method.
        method: &'static str,
    },
    /// The model has no section of opposites.
    #[error("the model does not tell opposites: {reason}")]
    OppositesUnknown {
        /// What the model lacks, and the command that adds it.
        reason: Unavailable,
    },
    /// Opposites are dropped or returned where there is no query that texts could be opposed to.
    #[error("texts are opposed to a query, not to liked texts together or to boosts")]
    OpposedToNoQuery {
        /// Whether they are dropped.
        dropped: bool,
    },
    /// A text of white space.
    #[error("{place} is empty")]
    EmptyText {
        /// The empty text.
        place: Place,
    },
    /// A text beyond the limit.
    #[error("{place} has {actual} {unit}; the limit is {limit}")]
    TextTooLong {
        /// The text beyond the limit.
        place: Place,
        /// The unit of the limit and the count.
        unit: &'static str,
        /// The limit.
        limit: usize,
        /// The count found.
        actual: usize,
    },
    /// A text with too many tokens.
    #[error("{place} has {actual} tokens; the limit is {limit}")]
    TooManyTokens {
        /// The text with too many tokens.
        place: Place,
        /// The limit.
        limit: usize,
        /// The count found.
        actual: usize,
    },
    /// A text without a known word, where that is an error.
    #[error("{place} has no known word")]
    AllUnknown {
        /// The text without a known word.
        place: Place,
    },
    /// Texts that are compared with each other are too long in all.
    #[error("texts that are compared with each other have {actual} tokens; the limit is {limit}")]
    TooMuchTogether {
        /// The limit.
        limit: usize,
        /// The count found.
        actual: usize,
    },
    /// The words of a score by this method have no shares of it.
    #[error("what {method} scores does not divide into words")]
    NoShares {
        /// The method.
        method: &'static str,
    },
    /// A score that is not a number: a defect, or a damaged model.
    #[error("{method} gave a score that is not a finite number")]
    NonFinite {
        /// The method.
        method: &'static str,
    },
}

/// Says which methods count opposites.
fn counting_methods() -> String {
    let counting = Method::ALL.iter().filter(|method| method.info().ignoring_opposites.is_some());
    let names: Vec<&str> = counting.map(|method| method.name()).collect();
    format!("those that do are {}", names.join(", "))
}

impl Place {
    /// This place in the whole question, if the part began at item `first`.
    pub fn moved(self, first: usize) -> Self {
        match self {
            Self::Text(index) => Self::Text(index + first),
            Self::Pair(index, side) => Self::Pair(index + first, side),
            Self::Query | Self::QueryOf(_) | Self::Liked(_) | Self::Disliked(_) => self,
            Self::Candidate(index) => Self::Candidate(index + first),
        }
    }
}

impl QueryError {
    /// Says that no method has this name.
    pub(crate) fn unknown_method(name: &str) -> Self {
        // Names are short; a long name is not repeated whole.
        let short = name.trim().chars().take(64).collect();
        Self::UnknownMethod { name: short, nearest: Method::nearest(name) }
    }

    /// The text at fault, if a text is.
    pub fn place(&self) -> Option<Place> {
        self.clone().place_mut().map(|place| *place)
    }

    /// The problem without the text's place; the whole message if no text is at fault.
    pub fn problem(&self) -> String {
        let message = self.to_string();
        let place = self.place().map(|place| format!("{place} "));
        let problem = place.and_then(|place| message.strip_prefix(&place).map(str::to_owned));
        problem.unwrap_or(message)
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::EmptyText { place }
            | Self::TextTooLong { place, .. }
            | Self::TooManyTokens { place, .. }
            | Self::AllUnknown { place } => Some(place),
            Self::UnknownMethod { .. }
            | Self::MethodUnavailable { .. }
            | Self::CannotEmbed { .. }
            | Self::OnlyRanks { .. }
            | Self::Fused { .. }
            | Self::MeasureNotSupported { .. }
            | Self::NotCalibrated { .. }
            | Self::OppositesNotCounted { .. }
            | Self::OppositesUnknown { .. }
            | Self::OpposedToNoQuery { .. }
            | Self::TooMuchTogether { .. }
            | Self::NoShares { .. }
            | Self::NonFinite { .. } => None,
        }
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::EmptyText { .. } => Some(Reason::Empty),
            Self::TextTooLong { .. } | Self::TooManyTokens { .. } => Some(Reason::TooLong),
            Self::AllUnknown { .. } => Some(Reason::Unknown),
            _ => None,
        }
    }

    /// This error in the whole question, if the part began at item `first`.
    pub fn moved(mut self, first: usize) -> Self {
        if let Some(place) = self.place_mut() {
            *place = place.moved(first);
        }
        self
    }

    /// This error with another place, if a text is at fault.
    pub fn placed(mut self, at: Place) -> Self {
        if let Some(place) = self.place_mut() {
            *place = at;
        }
        self
    }
}
