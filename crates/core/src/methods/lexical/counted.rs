//! What scores depend on of the tokens of a candidate, beside those of the query.

use crate::methods::Method;

/// The part of a candidate's tokens that a score depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// How often each token of the query occurs, and the number of tokens.
    Occurrences,
    /// Which tokens of the query occur, and the number of different tokens.
    Kinds,
}

impl Method {
    /// The part of a candidate's tokens that its score depends on, if it is this small: two candidates
    /// that agree in it have the same score for the query.
    pub fn counted(self) -> Option<Counted> {
        match self {
            Self::Bm25 | Self::Ql | Self::JaccardBag => Some(Counted::Occurrences),
            Self::Jaccard => Some(Counted::Kinds),
            _ => None,
        }
    }
}
