//! The tokens of texts without their order, for callers that keep an index of them.

use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError};
use crate::methods::{Counted, Measure, TokenBag};

impl Engine {
    /// The properties of a candidate's tokens that its score depends on, if they are so few that
    /// candidates which agree in them can be scored together.
    pub fn counted(&self, query: &Query) -> Option<Counted> {
        let plain = !query.truncate && !query.refuse_unscored && !query.coverage;
        let plain = plain && query.min_known <= 0.0;
        let counted = query.method.counted().filter(|_| plain)?;
        self.scorer(query.method).ok().map(|_| counted)
    }

    /// The scores of candidates by token counts. `each` passes on, for one candidate after the
    /// other, how often each token of the text occurs in it, in the order of their keys, and how
    /// many other tokens it has: different tokens if [counted](Engine::counted) once.
    pub fn counted_scores(
        &self,
        text: &str,
        query: &Query,
        each: impl FnOnce(&mut dyn FnMut(&[u32], usize)),
    ) -> Result<Vec<f32>, QueryError> {
        let scorer = self.scorer(query.method)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let (mut phrase, mut one) = (workspace.phrase(), TokenBag::default());
        self.read(&mut phrase, text, query, Place::Query)?;
        one.read(&phrase);
        let (mut scores, mut bag) = (Vec::new(), TokenBag::default());
        let mut prepared = scorer.against(Measure::Cosine, &phrase, workspace.scratch());
        each(&mut |times, others| {
            let held = one.tokens.iter().zip(times).map(|(&(key, _), &times)| (key, times));
            bag.imagine(held, others);
            scores.push(prepared.score_bag(&bag).unwrap_or(0.0));
        });
        prepared.give_back(workspace.scratch());
        drop(prepared);
        workspace.take_back([phrase]);
        Ok(scores)
    }

    /// Passes on the tokens of each text by their keys, in order, with how often each occurs; none
    /// for a text without tokens or that cannot be read.
    pub fn token_counts<T: AsRef<str>>(
        &self,
        texts: &[T],
        query: &Query,
        mut tell: impl FnMut(usize, &[(u64, u32)]),
    ) -> Result<(), QueryError> {
        let mut workspace = Workspace::with_memory(&self.model);
        let (mut phrase, mut bag) = (workspace.phrase(), TokenBag::default());
        for (index, text) in texts.iter().enumerate() {
            self.read_item(&mut phrase, text.as_ref(), query, Place::Text(index))?;
            bag.read(&phrase);
            tell(index, &bag.tokens);
        }
        workspace.take_back([phrase]);
        Ok(())
    }
}
