//! The fields of bodies: strings borrowed from the body, lists of bounded length, numbers within a
//! range. Only strings with escapes are copied.
//!
//! The document's description of a field is at its type: the type that parses is the one that is
//! described.

mod candidate;
mod forms;
mod fuse;
mod liked;
mod list;
mod method;
mod number;
mod opposites;
mod shortlist;
mod texts;

pub(crate) use candidate::{CallersData, CallersScores, Candidate, CandidateId};
pub(crate) use forms::{described, forms};
pub(crate) use fuse::FusePart;
pub(crate) use liked::{DislikedText, LikedText};
pub(crate) use list::List;
pub(crate) use method::{ExplainMethod, MeasureName, PairMethod, RankMethod, VectorMethod};
pub(crate) use number::{Count, Items, Offset, Pool, Score, Share, Weight, only, whole, within};
pub(crate) use opposites::OpposedPolicy;
pub(crate) use shortlist::ShortlistLength;
pub(crate) use texts::{CutText, ModelName, NonEmptyText, Pair, Text, Texts, TwoTexts};
