//! Memory that a thread uses again and again: once it has seen texts of some length, questions
//! about such texts allocate next to nothing. It holds no answers, so no question can see another's.

use std::cell::Cell;

use crate::methods::Scratch;
use crate::model::phrase::PhraseMemory;
use crate::model::{Model, Phrase};

/// Phrases a thread keeps the memory of: a pair, or a block of candidates.
const KEPT_PHRASES: usize = 40;

thread_local! {
    /// Working memory of the thread's last question.
    static KEPT: Cell<Option<Box<Memory>>> = const { Cell::new(None) };
}

/// Working memory of a question, for any model.
#[derive(Default)]
struct Memory {
    phrases: Vec<PhraseMemory>,
    scratch: Scratch,
}

/// A question's memory; the thread gets it back when it is dropped.
pub(super) struct Workspace<'m> {
    model: &'m Model,
    memory: Box<Memory>,
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        KEPT.set(Some(std::mem::take(&mut self.memory)));
    }
}

impl<'m> Workspace<'m> {
    pub(super) fn of(model: &'m Model) -> Self {
        Self { model, memory: KEPT.take().unwrap_or_default() }
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

    /// Working memory of the scorers.
    pub(super) fn scratch(&mut self) -> &mut Scratch {
        &mut self.memory.scratch
    }
}
