//! What a query is worked on in: what was prepared of it, the words it met, and numbers on their way
//! from one layer to the next.

use crate::methods::ranker::layers::known;
use crate::methods::ranker::layers::read_rows;
use crate::methods::ranker::words::Met;
use crate::model::Phrase;
use crate::model::WordId;

/// Numbers of memory that is kept for the next question.
const KEPT_NUMBERS: usize = 1 << 20;

/// What a query is worked on in.
#[derive(Default)]
pub(crate) struct Memory {
    pub(super) query: Query,
    /// Words that the network does not keep.
    pub(super) met: Met,
    /// Words times each word of the query, under the kernels of `qatt`.
    pub(super) crossed: Met,
    pub(super) work: Work,
}

/// A query prepared.
#[derive(Default)]
pub(super) struct Query {
    /// The network it was prepared by; 0 is none.
    pub(super) network: u64,
    pub(super) ids: Vec<WordId>,
    /// Vectors of its words, and their lengths.
    pub(super) rows: Vec<f32>,
    pub(super) norms: Vec<f32>,
    /// What the joint layer reads of it, with that layer's offset.
    pub(super) joint: Vec<f32>,
}

/// Numbers on the way from one layer to the next.
#[derive(Default)]
pub(super) struct Work {
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

impl Memory {
    /// Forgets the query and the words met, and gives back what only a long question needed.
    pub(crate) fn forget(&mut self) {
        if self.query.network == 0 {
            return;
        }
        self.query.network = 0;
        (self.met, self.crossed) = (Met::default(), Met::default());
        let work = &self.work;
        let lists = [&work.rows, &work.scaled, &work.products, &work.pooled, &work.attended];
        if lists.iter().map(|list| list.capacity()).sum::<usize>() > KEPT_NUMBERS {
            self.work = Work::default();
        }
    }
}

impl Work {
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
