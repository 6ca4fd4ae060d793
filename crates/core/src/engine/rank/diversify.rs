//! Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): of relevant candidates,
//! prefers those that are not like the ones before them.

use crate::engine::rank::panel::Panel;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, Ranked};
use crate::model::Phrase;

/// How much results should differ from each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Diversify {
    /// The factor of a candidate's score, against its similarity to the results before it: 1 leaves the
    /// order of scores as it is.
    pub lambda: f64,
    /// How many of the best are reordered; `None` means [`Diversify::POOL`] times the wanted
    /// results, or [`Diversify::MAX_POOL`] if all are wanted.
    pub pool: Option<usize>,
}

impl Diversify {
    /// How many candidates are reordered for each result wanted.
    pub const POOL: usize = 4;
    /// Most candidates that are reordered.
    pub const MAX_POOL: usize = 1000;
    /// The default factor of a score.
    pub const LAMBDA: f64 = 0.7;
}

impl Default for Diversify {
    fn default() -> Self {
        Self { lambda: Self::LAMBDA, pool: None }
    }
}

/// Most tokens of texts that are compared with each other: all of them are in memory at once.
pub(super) const MAX_TOKENS: usize = 1 << 16;

/// A candidate of the pool that has no place in the results yet.
struct Left {
    /// The candidate's index in the order of scores.
    place: usize,
    ranked: Ranked,
    /// The candidate's similarity to the most similar chosen candidate.
    nearest: Option<f32>,
}

impl Left {
    /// Returns the candidate's marginal relevance: the value of choosing this candidate next.
    fn value(&self, lambda: f64) -> f64 {
        let nearest = self.nearest.map_or(0.0, f64::from);
        lambda * f64::from(self.ranked.score) - (1.0 - lambda) * nearest
    }
}

impl Engine {
    /// Puts the first `wanted` of a pool of scored candidates, best first, into the order of
    /// maximal marginal relevance: each time the candidate for which `lambda` times its score, less
    /// `1 - lambda` times its highest similarity to a chosen one, is largest; of equals the one
    /// with the better score. The others follow by their scores. A `lambda` of 1 leaves the order
    /// as it is. `check` is called before each choice.
    pub fn diversify<T: AsRef<str>, E: From<QueryError>>(
        &self,
        pool: &mut [Ranked],
        candidates: &[T],
        (lambda, wanted): (f64, usize),
        query: &Query,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if lambda >= 1.0 || pool.len() < 2 {
            return Ok(());
        }
        let mut panel = Panel::new(self, query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let mut phrases = self.read_pool(pool, candidates, query)?;
        panel.fill(&phrases);
        let ranked = pool.iter().enumerate();
        let mut left: Vec<Left> =
            ranked.map(|(place, &ranked)| Left { place, ranked, nearest: None }).collect();
        let mut chosen = Vec::with_capacity(pool.len());
        let mut scores = Vec::new();
        while chosen.len() < wanted {
            check()?;
            let better = |a: &Left, b: &Left| {
                let (of_a, of_b) = (a.value(lambda), b.value(lambda));
                of_a > of_b || (of_a == of_b && a.place < b.place)
            };
            let best = left.iter().enumerate().reduce(|a, b| if better(b.1, a.1) { b } else { a });
            let Some((at, _)) = best else { break };
            let (one, phrase) = (left.swap_remove(at), phrases.swap_remove(at));
            panel.swap_out(at);
            chosen.push(one.ranked);
            let scratch = workspace.scratch();
            let mut visitor = panel.visitor(&phrase, scratch);
            visitor.score(&panel, &phrases, 0, &mut scores, scratch)?;
            visitor.leave(scratch);
            for (other, &score) in left.iter_mut().zip(&scores) {
                other.nearest = Some(other.nearest.map_or(score, |nearest| nearest.max(score)));
            }
        }
        left.sort_unstable_by_key(|one| one.place);
        chosen.extend(left.iter().map(|one| one.ranked));
        pool.copy_from_slice(&chosen);
        Ok(())
    }

    /// Looks up candidates that were scored before.
    fn read_pool<T: AsRef<str>>(
        &self,
        pool: &[Ranked],
        candidates: &[T],
        query: &Query,
    ) -> Result<Vec<Phrase<'_>>, QueryError> {
        let (mut phrases, mut tokens) = (Vec::with_capacity(pool.len()), 0);
        for ranked in pool {
            let mut phrase = Phrase::new(&self.model);
            let text = candidates.get(ranked.index).map_or("", AsRef::as_ref);
            self.read(&mut phrase, text, query, Place::Candidate(ranked.index))?;
            tokens += phrase.tokens_read();
            together(tokens)?;
            phrases.push(phrase);
        }
        Ok(phrases)
    }
}

pub(super) fn together(tokens: usize) -> Result<(), QueryError> {
    match tokens > MAX_TOKENS {
        true => Err(QueryError::TooMuchTogether { limit: MAX_TOKENS, actual: tokens }),
        false => Ok(()),
    }
}
