//! Errors of single texts and fields: what is wrong, and its position in the body. A position
//! becomes words only when the answer is written.

use std::borrow::Cow;
use std::fmt;

use cognate::engine::fuse::FusedProblem;
use cognate::engine::{Place, QueryError};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Field(&'static str),
    /// A field by a name that the client chose.
    Key(Box<str>),
    Index(usize),
}

/// A position in a body, from the outside in; written as a JSON pointer (RFC 6901).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointer(Vec<Segment>);

impl Pointer {
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    pub(crate) fn field(self, name: &'static str) -> Self {
        self.then(Segment::Field(name))
    }

    pub(crate) fn index(self, index: usize) -> Self {
        self.then(Segment::Index(index))
    }

    pub(crate) fn then(mut self, segment: Segment) -> Self {
        self.0.push(segment);
        self
    }

    pub(crate) fn within(self, outer: impl Into<Self>) -> Self {
        let Self(mut segments) = outer.into();
        segments.extend(self.0);
        Self(segments)
    }

    /// The pointer for a body in which the field `from` has the name `to`.
    pub(crate) fn renamed(self, from: &str, to: impl Into<Self>) -> Self {
        match self.0.split_first() {
            Some((&Segment::Field(name), inner)) if name == from => Self(inner.to_vec()).within(to),
            _ => self,
        }
    }

    /// The index of a pair and the side of a text in it; the side may be a field.
    pub(crate) fn of_pair(&self) -> Option<(usize, &'static str)> {
        match *self.segments() {
            [Segment::Field("pairs"), Segment::Index(pair), Segment::Index(side)] => {
                Some((pair, if side == 0 { "/a" } else { "/b" }))
            }
            _ => None,
        }
    }

    pub(crate) fn parse(written: &str) -> Self {
        let segment = |part: &str| match part.parse::<usize>() {
            Ok(index) if index.to_string() == part => Segment::Index(index),
            _ => Segment::Key(part.replace("~1", "/").replace("~0", "~").into()),
        };
        Self(written.split('/').skip(1).map(segment).collect())
    }

    /// The position in a sentence: `candidates[3]`.
    pub(crate) fn in_words(&self) -> String {
        let mut words = String::new();
        for segment in &self.0 {
            let name = match segment {
                Segment::Index(index) => {
                    words.push_str(&format!("[{index}]"));
                    continue;
                }
                Segment::Field(name) => name,
                Segment::Key(name) => &**name,
            };
            if !words.is_empty() {
                words.push('.');
            }
            words.push_str(name);
        }
        words
    }
}

impl FromIterator<Segment> for Pointer {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

/// Fixed fields, such as `/fuse` or `/config/dimensions`.
impl From<&'static str> for Pointer {
    fn from(written: &'static str) -> Self {
        Self(written.split('/').skip(1).map(Segment::Field).collect())
    }
}

impl From<Place> for Pointer {
    fn from(place: Place) -> Self {
        match place {
            Place::Text(index) => Self::from("/texts").index(index),
            Place::Pair(index, side) => Self::from("/pairs").index(index).index(side),
            Place::Query => Self::from("/query"),
            Place::QueryOf(index) => Self::from("/queries").index(index),
            Place::Liked(index) => Self::from("/like").index(index),
            Place::Disliked(index) => Self::from("/unlike").index(index),
            Place::Candidate(index) => Self::from("/candidates").index(index),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Field(name) => write!(f, "/{name}"),
            Segment::Key(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => write!(f, "/{index}"),
        })
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The detail of an error: a sentence, which may begin with a position.
#[derive(Debug, Clone)]
pub struct Detail {
    /// The position that the sentence begins with.
    subject: Option<Pointer>,
    rest: Cow<'static, str>,
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject.as_ref().map(Pointer::segments) {
            None => f.write_str(&self.rest),
            // A text in an object is named by the object's position.
            Some([outer @ .., Segment::Index(index), Segment::Field("text")]) => {
                let outer = Pointer(outer.to_vec()).index(*index);
                write!(f, "{} {}", outer.in_words(), self.rest)
            }
            Some(segments) => write!(f, "{} {}", Pointer(segments.to_vec()).in_words(), self.rest),
        }
    }
}

impl Serialize for Detail {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Detail {
    fn from(sentence: T) -> Self {
        Self { subject: None, rest: sentence.into() }
    }
}

/// One fault of a request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Fault {
    /// Where it stands in the body, as a JSON pointer.
    #[schema(value_type = String)]
    pub pointer: Pointer,
    /// What it is.
    pub code: Code,
    /// The limit that was passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<u64>,
}

impl Fault {
    /// An error that its code describes in full.
    pub(crate) fn at(code: Code, pointer: impl Into<Pointer>) -> Self {
        Self { pointer: pointer.into(), code, limit: None, actual: None }
    }

    /// The error of a text, if a text is at fault.
    pub(crate) fn from_query(error: &QueryError) -> Option<Self> {
        let pointer = error.place()?.into();
        let (code, limit, actual) = match *error {
            QueryError::EmptyText { .. } => (Code::EmptyText, None, None),
            QueryError::AllUnknown { .. } => (Code::AllOov, None, None),
            QueryError::TextTooLong { limit, actual, .. } => {
                (Code::TextTooLong, Some(limit as u64), Some(actual as u64))
            }
            QueryError::TooManyTokens { limit, actual, .. } => {
                (Code::TooManyTokens, Some(limit as u64), Some(actual as u64))
            }
            _ => return None,
        };
        Some(Self { pointer, code, limit, actual })
    }
}

impl ApiError {
    /// An error at a position in the body, with a sentence that begins with the position: `rest`
    /// follows.
    pub(crate) fn about(code: Code, place: Pointer, rest: impl Into<Cow<'static, str>>) -> Self {
        Self::at(code, place.clone(), Detail { subject: Some(place), rest: rest.into() })
    }

    /// This error with positions renamed by `name`.
    pub(crate) fn renamed(mut self, name: impl Fn(Pointer) -> Pointer) -> Self {
        for fault in &mut self.faults {
            fault.pointer = name(std::mem::take(&mut fault.pointer));
        }
        self.detail.subject = self.detail.subject.map(name);
        self
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        if let Some(fault) = Fault::from_query(&error) {
            let refusal = Self::about(fault.code, fault.pointer.clone(), error.problem());
            return Self { faults: vec![fault], ..refusal };
        }
        let detail = error.to_string();
        if let QueryError::TooMuchTogether { limit, actual } = error {
            let what = "tokens in texts that are compared with each other";
            return Self::beyond(Code::TooManyTokensTotal, "", what, limit, actual);
        }
        let (code, field) = match error {
            QueryError::UnknownMethod { .. } => (Code::UnknownMethod, "/method"),
            QueryError::MethodUnavailable { .. } => (Code::MethodUnavailable, "/method"),
            QueryError::CannotEmbed { .. } => (Code::MethodCannotEmbed, "/method"),
            QueryError::OnlyRanks { .. } => (Code::MethodOnlyRanks, "/method"),
            QueryError::Fused { problem, .. } => match problem {
                FusedProblem::Unknown(_) => (Code::UnknownMethod, "/method"),
                FusedProblem::OnlyRanks => (Code::MethodOnlyRanks, "/method"),
                FusedProblem::Measured => (Code::MeasureNotSupported, "/measure"),
                FusedProblem::NotCalibrated => (Code::NotCalibrated, "/threshold"),
                FusedProblem::Unavailable(_) => (Code::MethodUnavailable, "/method"),
            },
            QueryError::MeasureNotSupported { .. } => (Code::MeasureNotSupported, "/measure"),
            QueryError::NotCalibrated { .. } => (Code::NotCalibrated, "/threshold"),
            QueryError::OppositesNotCounted { .. } => (Code::MethodUnavailable, "/opposites"),
            QueryError::OppositesUnknown { .. } => (Code::MethodUnavailable, "/opposes"),
            QueryError::OpposedToNoQuery { dropped: true } => (Code::InvalidField, "/opposes"),
            QueryError::OpposedToNoQuery { dropped: false } => {
                (Code::InvalidField, "/return_opposes")
            }
            QueryError::NoShares { .. } => (Code::MethodUnavailable, "/explain"),
            // The others have a place and are errors of a text.
            _ => return Self::new(Code::NonFiniteScore, "a score is not a finite number"),
        };
        Self::at(code, field, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_renamed_and_what_looks_like_one_in_a_text_is_not() {
        let place = Pointer::from("/candidates").index(3);
        let said = "has no number `candidates[3]` under `scores`";
        let refusal = ApiError::about(Code::InvalidField, place, said);
        let renamed = refusal.renamed(|pointer| pointer.renamed("candidates", "/documents"));
        assert_eq!(renamed.detail.to_string(), format!("documents[3] {said}"));
        assert_eq!(renamed.faults[0].pointer.to_string(), "/documents/3");
        let plain = ApiError::at(Code::InvalidField, "/query", "candidates[3] and query[0]");
        let renamed = plain.renamed(|pointer| pointer.renamed("query", "/text_1"));
        assert_eq!(renamed.detail.to_string(), "candidates[3] and query[0]");
        assert_eq!(renamed.faults[0].pointer.to_string(), "/text_1");
    }

    #[test]
    fn a_pointer_is_written_and_read() {
        let key = Segment::Key("a/b~".into());
        let pointer = Pointer::from("/filter").index(0).then(key).field("x");
        assert_eq!(pointer.to_string(), "/filter/0/a~1b~0/x");
        assert_eq!(pointer.in_words(), "filter[0].a/b~.x");
        for written in ["", "/any/10/a~1b~0", "/01", "/"] {
            assert_eq!(Pointer::parse(written).to_string(), written);
        }
    }
}
