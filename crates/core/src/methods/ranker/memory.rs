//! What is prepared of a query, the words it met, and numbers on their way from one layer to the
//! next.

use crate::methods::ranker::layers::{known, read_rows};
use crate::methods::ranker::words::Met;
use crate::model::{Phrase, WordId};

/// Numbers of memory that is kept for the next question.
const KEPT_NUMBERS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Memory {
    pub(super) query: Query,
    /// Words that the network does not keep.
    pub(super) met: Met,
    /// Words times each word of the query, under the kernels of `qatt`.
    pub(super) crossed: Met,
    pub(super) work: Work,
}

#[derive(Default)]
pub(super) struct Query {
    pub(super) ids: Vec<WordId>,
    /// Vectors of its words, and their lengths.
    pub(super) rows: Vec<f32>,
    pub(super) norms: Vec<f32>,
    /// What the joint layer reads of it, with that layer's offset.
    pub(super) joint: Vec<f32>,
}

/// Numbers on the way from one layer to the next.
#[derive(Default)]
pub(crate) struct Work {
    pub(super) ids: Vec<WordId>,
    pub(super) rows: Vec<f32>,
    pub(super) scaled: Vec<f32>,
    pub(super) products: Vec<f32>,
    pub(super) cosines: Vec<f32>,
    pub(super) norms: Vec<f32>,
    pub(super) ones: Vec<f32>,
    pub(super) pooled: Vec<f32>,
    pub(super) attended: Vec<f32>,
    pub(super) encoded: Vec<f32>,
    pub(super) joint: Vec<f32>,
}

impl Work {
    /// Gives back what only a long question needed.
    pub(super) fn trim(&mut self) {
        let lists = [&self.rows, &self.scaled, &self.products, &self.pooled, &self.attended];
        if lists.iter().map(|list| list.capacity()).sum::<usize>() > KEPT_NUMBERS {
            *self = Self::default();
        }
    }

    /// Reads the vectors of a text's words into `rows`.
    pub(super) fn read(&mut self, text: &Phrase<'_>, dims: usize) {
        self.ids.clear();
        self.ids.extend(known(text));
        read_rows(text, &self.ids, dims, &mut self.rows);
    }

    /// Replaces the ids by those of texts' words that are wanted, each once.
    pub(super) fn gather(&mut self, texts: &[Phrase<'_>], wanted: impl Fn(WordId) -> bool) {
        self.ids.clear();
        self.ids.extend(texts.iter().flat_map(known).filter(|id| wanted(*id)));
        self.ids.sort_unstable();
        self.ids.dedup();
    }
}
