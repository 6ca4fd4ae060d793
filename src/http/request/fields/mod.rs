//! What bodies are made of: strings borrowed from the body, lists that cannot grow without bound,
//! numbers that must fit. Strings with escapes are the only ones that are copied.
//!
//! What the document says of a field stands at its type: the type that parses is the one that is
//! described.

mod candidate;
mod data;
mod fuse;
mod liked;
mod list;
mod measure;
mod method;
mod number;
mod pair;
mod scores;
mod shortlist;
mod text;
mod texts;

pub(crate) use candidate::{Candidate, CandidateId};
pub(crate) use data::CallersData;
pub(crate) use fuse::{FusePart, FuseRule};
pub(crate) use liked::{DislikedText, LikedText};
pub(crate) use list::{List, ListVisitor};
pub(crate) use measure::MeasureName;
pub(crate) use method::{ExplainMethod, PairMethod, RankMethod, VectorMethod};
pub(crate) use number::{
    Count, EXPECTED, Items, OUT_OF_RANGE, Offset, Pool, Score, Share, Weight, WholeVisitor,
};
pub(crate) use pair::{Pair, PairVisitor};
pub(crate) use scores::CallersScores;
pub(crate) use shortlist::ShortlistLength;
pub(crate) use text::{ModelName, NonEmptyText, Text};
pub(crate) use texts::Texts;
