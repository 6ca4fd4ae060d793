//! What scores depend on of the tokens of a candidate, beside those of the query.

use crate::methods::Method;

/// What of a candidate's tokens a score depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// How often each token of the query occurs, and how many tokens there are.
    Occurrences,
    /// Which tokens of the query occur, and how many different tokens there are.
    Kinds,
}

impl Method {
    /// What of a candidate's tokens its score depends on, where it is so little: two candidates that agree
    /// in it have the same score for the query.
    pub fn counted(self) -> Option<Counted> {
        match self {
            Self::Bm25 | Self::Ql | Self::JaccardBag => Some(Counted::Occurrences),
            Self::Jaccard => Some(Counted::Kinds),
            _ => None,
        }
    }
}
