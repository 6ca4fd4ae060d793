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

pub(crate) use candidate::Candidate;
pub(crate) use candidate::CandidateId;
pub(crate) use data::CallersData;
pub(crate) use fuse::FusePart;
pub(crate) use fuse::FuseRule;
pub(crate) use liked::DislikedText;
pub(crate) use liked::LikedText;
pub(crate) use list::List;
pub(crate) use list::ListVisitor;
pub(crate) use measure::MeasureName;
pub(crate) use method::ExplainMethod;
pub(crate) use method::PairMethod;
pub(crate) use method::RankMethod;
pub(crate) use method::VectorMethod;
pub(crate) use number::Count;
pub(crate) use number::EXPECTED;
pub(crate) use number::Items;
pub(crate) use number::OUT_OF_RANGE;
pub(crate) use number::Offset;
pub(crate) use number::Pool;
pub(crate) use number::Score;
pub(crate) use number::Share;
pub(crate) use number::Weight;
pub(crate) use number::WholeVisitor;
pub(crate) use pair::Pair;
pub(crate) use pair::PairVisitor;
pub(crate) use scores::CallersScores;
pub(crate) use shortlist::ShortlistLength;
pub(crate) use text::ModelName;
pub(crate) use text::NonEmptyText;
pub(crate) use text::Text;
pub(crate) use texts::Texts;
