//! Memory that a thread reuses: after texts of some length, questions about texts of that length
//! allocate next to nothing. The memory holds no answers, so no question can see another's answer.

use std::cell::Cell;

use crate::methods::Scratch;
use crate::model::phrase::PhraseMemory;
use crate::model::{Model, Phrase};

/// Phrases whose memory a thread keeps: a pair, or a block of candidates.
const KEPT_PHRASES: usize = 40;

thread_local! {
    static KEPT: Cell<Option<Box<WorkspaceBuffers>>> = const { Cell::new(None) };
}

#[derive(Default)]
struct WorkspaceBuffers {
    #[expect(clippy::vec_box, reason = "a phrase takes the box, not what is in it")]
    phrases: Vec<Box<PhraseMemory>>,
    scratch: Scratch,
}

/// A question's memory, which goes back to the thread on drop.
pub(super) struct Workspace<'m> {
    model: &'m Model,
    /// `None` only while the value is dropped.
    memory: Option<Box<WorkspaceBuffers>>,
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        KEPT.set(self.memory.take());
    }
}

impl<'m> Workspace<'m> {
    pub(super) fn with_memory(model: &'m Model) -> Self {
        Self { model, memory: Some(KEPT.take().unwrap_or_default()) }
    }

    pub(super) fn phrase(&mut self) -> Phrase<'m> {
        Phrase::with(self.model, self.memory().phrases.pop().unwrap_or_default())
    }

    /// Takes finished phrases back, so that their memory is used again.
    pub(super) fn take_back(&mut self, phrases: impl IntoIterator<Item = Phrase<'m>>) {
        let kept = &mut self.memory().phrases;
        let room = KEPT_PHRASES.saturating_sub(kept.len());
        kept.extend(phrases.into_iter().take(room).map(Phrase::into_memory));
    }

    pub(super) fn scratch(&mut self) -> &mut Scratch {
        &mut self.memory().scratch
    }

    fn memory(&mut self) -> &mut WorkspaceBuffers {
        self.memory.get_or_insert_default()
    }
}
