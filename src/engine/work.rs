//! A scorer at work, in memory that a thread uses again and again: once it has seen texts of some
//! length, questions about such texts allocate next to nothing.

use std::cell::Cell;

use crate::engine::Measure;
use crate::methods::Embed;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::Shares;
use crate::methods::common::cosine;
use crate::methods::ranker::Attention;
use crate::model::Model;
use crate::model::Phrase;
use crate::model::phrase::PhraseMemory;

/// Phrases a thread keeps the memory of: a pair, or a block of candidates.
const KEPT_PHRASES: usize = 40;

thread_local! {
    /// What the thread's last question worked in.
    static KEPT: Cell<Option<Box<Memory>>> = const { Cell::new(None) };
}

/// What scoring works in, whatever the model.
#[derive(Default)]
struct Memory {
    phrases: Vec<PhraseMemory>,
    one: Vec<f32>,
    other: Vec<f32>,
    scratch: Scratch,
}

/// A scorer at work: the one text's vector, and memory that is used again.
pub(super) struct Work<'s, 'm> {
    pub(super) scorer: &'s Scorer,
    pub(super) measure: Measure,
    model: &'m Model,
    memory: Box<Memory>,
}

impl Drop for Work<'_, '_> {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        memory.scratch.forget();
        KEPT.set(Some(memory));
    }
}

impl<'s, 'm> Work<'s, 'm> {
    pub(super) fn new(scorer: &'s Scorer, measure: Measure, model: &'m Model) -> Self {
        let mut memory = KEPT.take().unwrap_or_default();
        let dims = match scorer {
            Scorer::Embed(embedder) => embedder.dims(model.vectors().dims()),
            Scorer::Compare(_) | Scorer::RankList(_) => 0,
        };
        memory.one.resize(dims, 0.0);
        memory.other.resize(dims, 0.0);
        Self { scorer, measure, model, memory }
    }

    /// A phrase to read texts into.
    pub(super) fn phrase(&mut self) -> Phrase<'m> {
        Phrase::with(self.model, self.memory.phrases.pop().unwrap_or_default())
    }

    /// Keeps the memory of phrases that are done with.
    pub(super) fn take_back(&mut self, phrases: impl IntoIterator<Item = Phrase<'m>>) {
        let room = KEPT_PHRASES.saturating_sub(self.memory.phrases.len());
        self.memory.phrases.extend(phrases.into_iter().take(room).map(Phrase::into_memory));
    }

    /// Prepares the one text, before any number of calls to [`Work::score`] with it.
    pub(super) fn prepare(&mut self, one: &Phrase<'_>) {
        if let Scorer::Embed(embedder) = self.scorer {
            embed_into(embedder.as_ref(), one, &mut self.memory.one);
        }
    }

    /// Writes what scores cannot be above, if that is cheaper to know than the scores.
    pub(super) fn bounds(
        &mut self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
    ) -> bool {
        match self.scorer {
            Scorer::Compare(method) => method.bounds(one, many, out, &mut self.memory.scratch),
            Scorer::Embed(_) | Scorer::RankList(_) => false,
        }
    }

    pub(super) fn score(&mut self, one: &Phrase<'_>, many: &[Phrase<'_>], out: &mut [f32]) {
        match self.scorer {
            Scorer::Embed(embedder) => {
                for (other, score) in many.iter().zip(out) {
                    if one.same_bag(other) {
                        *score = 1.0;
                        continue;
                    }
                    embed_into(embedder.as_ref(), other, &mut self.memory.other);
                    *score = self.measure.score(&self.memory.one, &self.memory.other);
                }
            }
            Scorer::Compare(method) => method.compare(one, many, out, &mut self.memory.scratch),
            Scorer::RankList(method) => method.rank(one, many, out, &mut self.memory.scratch),
        }
    }

    /// What each word of the one text was read from in the other.
    pub(super) fn attention(
        &mut self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
    ) -> Option<Vec<Attention>> {
        match self.scorer {
            Scorer::Compare(method) => method.attention(one, other, &mut self.memory.scratch),
            Scorer::Embed(_) | Scorer::RankList(_) => None,
        }
    }

    /// What each word adds to the score.
    pub(super) fn shares(&mut self, one: &Phrase<'_>, other: &Phrase<'_>) -> Option<Shares> {
        match self.scorer {
            Scorer::Compare(method) => method.shares(one, other, &mut self.memory.scratch),
            Scorer::RankList(_) => None,
            Scorer::Embed(embedder) => {
                if self.measure != Measure::Cosine {
                    return None;
                }
                embed_into(embedder.as_ref(), other, &mut self.memory.other);
                let vectors = [self.memory.one.as_slice(), self.memory.other.as_slice()];
                cosine::shares(embedder.as_ref(), [one, other], vectors)
            }
        }
    }
}

fn embed_into(embedder: &dyn Embed, phrase: &Phrase<'_>, out: &mut [f32]) {
    out.fill(0.0);
    embedder.embed(phrase, out);
}
