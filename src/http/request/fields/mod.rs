//! What bodies are made of: strings borrowed from the body, lists that cannot grow without bound,
//! numbers that must fit. Strings with escapes are the only ones that are copied.
//!
//! What the document says of a field stands at its type: the type that parses is the one that is
//! described.

mod candidate;
mod list;
mod measure;
mod method;
mod number;
mod pair;
mod text;
mod texts;

pub use candidate::Candidate;
pub use candidate::CandidateId;
pub use list::List;
pub use measure::MeasureName;
pub use method::ExplainMethod;
pub use method::PairMethod;
pub use method::RankMethod;
pub use method::VectorMethod;
pub use number::Count;
pub use number::OUT_OF_RANGE;
pub use number::Score;
pub use pair::Pair;
pub use pair::PairVisitor;
pub use text::ModelName;
pub use text::Text;
pub use texts::Texts;
