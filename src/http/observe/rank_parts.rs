//! What rankings are asked for beyond an order, as the counters label it.

use metrics::Counter;

/// A part of a question to `/rank`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankPart {
    Queries,
    Like,
    Exclude,
    Boost,
    Collapse,
    Diversify,
    Explain,
    Offset,
    Collection,
    Shortlist,
}

impl RankPart {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Queries, "queries"),
        (Self::Like, "like"),
        (Self::Exclude, "exclude"),
        (Self::Boost, "boost"),
        (Self::Collapse, "collapse"),
        (Self::Diversify, "diversify"),
        (Self::Explain, "explain"),
        (Self::Offset, "offset"),
        (Self::Collection, "collection"),
        (Self::Shortlist, "shortlist"),
    ];
}

/// How many rankings were asked for with each part.
pub(super) struct RankPartCounters(Vec<Counter>);

impl RankPartCounters {
    /// Counters by the label of each part.
    pub(super) fn new(counter: impl FnMut(&'static str) -> Counter) -> Self {
        Self(RankPart::ALL.map(|(_, name)| name).map(counter).into())
    }

    pub(super) fn count(&self, part: RankPart) {
        if let Some(counter) = self.0.get(part as usize) {
            counter.increment(1);
        }
    }
}
