//! Whether texts are related: the verdict by their score, a threshold, and how they are opposed.
//! How a threshold is requested, and where a verdict is written, is not known here.

use crate::engine::{Engine, Opposites, Query, QueryError};

impl Query {
    /// Whether two texts of this score are related, if there is a threshold: their score reaches
    /// it, and they are not opposed, unless opposites are ignored. `are_opposed` is called only
    /// where that decides.
    pub fn related(&self, score: f32, are_opposed: impl FnOnce() -> bool) -> Option<bool> {
        let ignores = self.opposites == Some(Opposites::Ignore);
        self.threshold.map(|least| score >= least && (ignores || !are_opposed()))
    }
}

impl Engine {
    /// Whether each of many texts is related to one text, by their scores; `None` without a
    /// threshold. Opposites do not count where the scores are not those with one text, or where the
    /// model has no opposites.
    pub(super) fn related_each(
        &self,
        text: Option<&str>,
        others: &[(f32, &str)],
        query: &Query,
    ) -> Result<Option<Vec<bool>>, QueryError> {
        // Texts for which the opposites decide.
        let mut open = Vec::new();
        for (score, other) in others {
            query.related(*score, || {
                open.push(*other);
                false
            });
        }
        let kinds = match text.filter(|_| !open.is_empty() && self.knows_opposites().is_ok()) {
            Some(text) => self.opposes_each(text, &open, query)?,
            None => Vec::new(),
        };
        let mut kinds = kinds.into_iter();
        let mut are_opposed = || kinds.next().is_some_and(|kinds| !kinds.is_empty());
        let related = others.iter().map(|(score, _)| query.related(*score, &mut are_opposed));
        Ok(related.collect())
    }
}
