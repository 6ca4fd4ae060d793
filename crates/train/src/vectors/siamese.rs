//! Siamese CBOW (Kenter et al. 2016, section 2): word vectors made for being averaged.
//!
//! A sentence is the mean of its words' vectors. Each sentence should have a larger cosine with the
//! sentences before and after it than with others: with `S⁺` the one or two neighbours and `S⁻` some
//! random sentences, `p(j) = e^{cos(s, s_j)} / Σ_{S⁺ ∪ S⁻} e^{cos(s, s')}`, and the loss of a
//! sentence is the cross-entropy of `p` against `1/|S⁺|` on the neighbours (equations 1 to 3). Only
//! the word vectors are trained; all sentences share them.
//!
//! Departures. A batch is made of runs of neighbouring sentences, drawn from all over the text: a
//! sentence is then averaged once for all its parts (centre, neighbour, other), and its gradient is
//! handed to its words once. And the random others are by default those of the same run
//! ([`Others::Document`]): against sentences of other documents, as in the paper, neighbours can be
//! told by the subject of their document alone, and all words of one subject end up alike. How
//! steps become a run is `run`'s part.

use std::ops::Range;

use cognate_kernels::random::Random;

use crate::sampling;
use crate::vectors::batch::{Batch, Relation};
use crate::vectors::corpus::Corpus;

/// Sentences of a run that are centres.
const RUN: usize = 20;
/// How often an other is drawn again that is of the same document.
const DRAWS: usize = 16;
/// What random choices are for.
const ORDER: u64 = 1;
const OTHERS: u64 = 2;

/// What is learned from.
#[derive(Debug)]
pub struct Siamese<'c> {
    corpus: &'c Corpus,
    runs: Vec<Run>,
    batch: usize,
    negatives: usize,
    others: Others,
    seed: u64,
    epoch: u64,
    order: Vec<Run>,
    starts: Vec<usize>,
}

/// Where the random others are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// The same document, near but not next to the centre: what tells neighbours from these is what
    /// sentences say, not what the document is about
    Document,
    /// Other documents, as in the paper: what a document is about is enough to tell neighbours from
    /// these, in novels as in an encyclopaedia
    Text,
}

/// Neighbouring sentences, each the centre of one example.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: usize,
    examples: usize,
}

impl<'c> Siamese<'c> {
    /// Examples of every sentence that has a neighbour in its document, in batches of `batch`
    /// examples at most, each with `negatives` random others.
    pub fn new(
        corpus: &'c Corpus,
        batch: usize,
        (others, negatives): (Others, usize),
        seed: u64,
    ) -> Self {
        let longest = RUN.min(batch.max(1));
        let mut runs: Vec<Run> = Vec::new();
        for at in 0..corpus.sentences() {
            let alone =
                !corpus.same_document(at, at + 1) && (at == 0 || !corpus.same_document(at - 1, at));
            if alone {
                continue;
            }
            match runs.last_mut() {
                Some(run)
                    if run.first + run.examples == at
                        && run.examples < longest
                        && corpus.same_document(at - 1, at) =>
                {
                    run.examples += 1;
                }
                _ => runs.push(Run { first: at, examples: 1 }),
            }
        }
        let (order, starts) = (Vec::new(), Vec::new());
        let mut made = Self {
            corpus,
            runs,
            batch: batch.max(1),
            negatives,
            others,
            seed,
            epoch: 0,
            order,
            starts,
        };
        made.begin(0);
        made
    }

    /// Whether there is nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Puts the runs into this epoch's order.
    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.order.clone_from(&self.runs);
        sampling::generator(self.seed, ORDER, [epoch, 0]).shuffle(&mut self.order);
        self.starts.clear();
        let mut room = 0;
        for (at, run) in self.order.iter().enumerate() {
            if run.examples > room {
                self.starts.push(at);
                room = self.batch;
            }
            room -= run.examples;
        }
    }

    /// Batches of this epoch. Epochs may differ by a few, as runs fall into batches.
    pub fn batches(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Gathers the examples of a batch.
    pub fn gather(&self, number: u64, batch: &mut Batch) {
        let number = number as usize;
        let from = self.starts.get(number).copied().unwrap_or(self.order.len());
        let to = self.starts.get(number + 1).copied().unwrap_or(self.order.len());
        batch.clear();
        for run in &self.order[from..to] {
            batch.add(run.first..run.first + run.examples, self.corpus);
        }
        let place = [self.epoch, number as u64];
        let mut random = sampling::generator(self.seed, OTHERS, place);
        for example in 0..batch.centres.len() {
            let centre = batch.centres[example] as usize;
            let run = batch.runs[example].clone();
            for _ in 0..self.negatives {
                let near = match self.others {
                    Others::Document => near(centre, run.clone(), &mut random),
                    Others::Text => None,
                };
                let other = near.or_else(|| self.far(centre, &batch.sentences, &mut random));
                batch.relations.extend(other.map(|other| Relation {
                    example: example as u32,
                    other: other as u32,
                    neighbour: false,
                }));
            }
        }
        // Each example's relations lie together, its neighbours first.
        batch.relations.sort_by_key(|relation| relation.example);
    }

    /// A random slot whose sentence is of another document than that of `centre`. Where there is
    /// hardly any, as in a text of one document, any but the centre and its neighbours.
    fn far(&self, centre: usize, sentences: &[usize], random: &mut Random) -> Option<usize> {
        let document = self.corpus.document_of(sentences[centre]);
        let mut far = None;
        for _ in 0..DRAWS {
            let slot = random.below(sentences.len());
            if self.corpus.document_of(sentences[slot]) != document {
                return Some(slot);
            }
            if sentences[slot].abs_diff(sentences[centre]) > 1 {
                far = Some(slot);
            }
        }
        far
    }
}

/// A random slot of a run that is neither `centre` nor beside it, if there is one.
fn near(centre: usize, run: Range<usize>, random: &mut Random) -> Option<usize> {
    let before = run.start..centre.saturating_sub(1).max(run.start);
    let after = (centre + 2).min(run.end)..run.end;
    let drawn = random.below(before.len() + after.len());
    if drawn < before.len() {
        Some(before.start + drawn)
    } else {
        Some(after.start + drawn - before.len()).filter(|slot| after.contains(slot))
    }
}

#[cfg(test)]
mod tests;
