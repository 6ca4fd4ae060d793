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
//! steps become a run is `trainer`'s part.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cognate_kernels::random::Random;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};
use rayon::prelude::*;

use crate::sampling;
use crate::vectors::corpus::Corpus;
use crate::vectors::tables::{Blocks, Update};

/// Sentences of a run that are centres.
const RUN: usize = 20;
/// Attempts to draw a sentence of another document.
const DRAWS: usize = 16;
/// Purposes of random numbers.
const ORDER: u64 = 1;
const OTHERS: u64 = 2;

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

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    pub loss: f64,
    pub examples: u64,
    /// Words of the text gone through.
    pub words: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.examples += other.examples;
        self.words += other.words;
    }
}

/// Examples of one step, with its buffers.
#[derive(Debug, Default)]
pub struct Batch {
    /// The sentence in each slot, and its number of words.
    pub(super) sentences: Vec<usize>,
    sizes: Vec<usize>,
    /// The slot of each example's centre, and the slots of its run.
    pub(super) centres: Vec<u32>,
    pub(super) runs: Vec<Range<usize>>,
    pub(super) relations: Vec<Relation>,
    /// A row a slot: first the mean of the words' rows, then that divided by its length.
    means: Vec<f32>,
    lengths: Vec<f32>,
    /// A row a slot: what is to be added to the row of every word of the sentence, but for the rate.
    gradients: Vec<f32>,
    mentions: Vec<Vec<(u32, u32)>>,
}

/// A sentence that an example's centre is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relation {
    pub(super) example: u32,
    pub(super) other: u32,
    pub(super) neighbour: bool,
}

impl Batch {
    /// Empties the batch and keeps its buffers.
    pub(super) fn clear(&mut self) {
        self.sentences.clear();
        self.sizes.clear();
        self.centres.clear();
        self.runs.clear();
        self.relations.clear();
    }

    /// Adds a sentence after the other as centres, with their neighbours.
    pub(super) fn add(&mut self, centres: Range<usize>, corpus: &Corpus) {
        let (first, end) = (centres.start, centres.end);
        let from =
            if first > 0 && corpus.same_document(first - 1, first) { first - 1 } else { first };
        let to = if corpus.same_document(end - 1, end) { end + 1 } else { end };
        let slot_of = |at: usize, slots: usize| (slots + at - from) as u32;
        let slots = self.sentences.len();
        for at in first..end {
            let example = self.centres.len() as u32;
            self.centres.push(slot_of(at, slots));
            self.runs.push(slots..slots + to - from);
            let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            for neighbour in neighbours.filter(|near| (from..to).contains(near)) {
                let other = slot_of(neighbour, slots);
                self.relations.push(Relation { example, other, neighbour: true });
            }
        }
        for at in from..to {
            self.sentences.push(at);
            self.sizes.push(corpus.sentence(at).len());
        }
    }

    /// Learns from the batch, whose rows nobody else touches. The bits do not depend on how many
    /// threads share the work.
    pub fn step(
        &mut self,
        corpus: &Corpus,
        blocks: &Blocks,
        rows: &mut [f32],
        squares: &mut [f32],
        update: Update,
    ) -> Tally {
        let dims = blocks.dims();
        self.resize(dims);
        let table: &[f32] = rows;
        let means = self.means.par_chunks_mut(dims).zip(&self.sentences);
        means.for_each(|(mean, &sentence)| {
            let words = corpus.sentence(sentence);
            let weight = 1.0 / words.len() as f32;
            let rows = words.iter().map(|&word| {
                let from = word as usize * dims;
                (weight, Row::F32(&table[from..from + dims]))
            });
            vector::add_all(mean, rows);
        });
        let tally = self.differentiate(dims);
        self.mentions.iter_mut().for_each(Vec::clear);
        self.mentions.resize_with(blocks.len(), Vec::new);
        for (slot, &sentence) in self.sentences.iter().enumerate() {
            for &word in corpus.sentence(sentence) {
                self.mentions[blocks.of(word)].push((word, slot as u32));
            }
        }
        let gradients = &self.gradients;
        let gradient = |slot: u32| &gradients[slot as usize * dims..(slot as usize + 1) * dims];
        let tables = blocks.split(rows).into_iter().zip(blocks.split(squares));
        let work: Vec<_> = tables.zip(&mut self.mentions).enumerate().collect();
        work.into_par_iter().for_each(|(block, ((rows, squares), mentions))| {
            let first = blocks.first(block);
            update.prepare(mentions);
            for same in mentions.chunk_by(|a, b| a.0 == b.0) {
                let at = (same[0].0 as usize - first) * dims;
                let squares = squares.get_mut(at..at + dims).unwrap_or_default();
                let slots = same.iter().map(|(_, slot)| gradient(*slot));
                update.apply(&mut rows[at..at + dims], squares, slots);
            }
        });
        tally
    }

    /// Learns from the batch while other threads learn from theirs: a row is locked only while it
    /// is read or changed, and what others add in between is lost to nobody.
    pub fn step_among_others(
        &mut self,
        corpus: &Corpus,
        dims: usize,
        rows: &[Mutex<(&mut [f32], &mut [f32])>],
        update: Update,
    ) -> Tally {
        self.resize(dims);
        let lock = |word: u32| rows[word as usize].lock().unwrap_or_else(PoisonError::into_inner);
        for (mean, &sentence) in self.means.chunks_exact_mut(dims).zip(&self.sentences) {
            let words = corpus.sentence(sentence);
            for &word in words {
                simd::add_scaled(mean, [1.0 / words.len() as f32], [&*lock(word).0]);
            }
        }
        let tally = self.differentiate(dims);
        for (gradient, &sentence) in self.gradients.chunks_exact(dims).zip(&self.sentences) {
            for &word in corpus.sentence(sentence) {
                let mut row = lock(word);
                let (row, squares) = &mut *row;
                update.apply(row, squares, std::iter::once(gradient));
            }
        }
        tally
    }

    fn resize(&mut self, dims: usize) {
        let slots = self.sentences.len();
        for rows in [&mut self.means, &mut self.gradients] {
            rows.clear();
            rows.resize(slots * dims, 0.0);
        }
        self.lengths.clear();
        self.lengths.resize(slots, 0.0);
    }

    /// From means to losses and gradients. With `û` a mean divided by its length, a relation whose
    /// cosine has the derivative `c` pulls `a` along `c (û_b − cos û_a) / |a|`, and `b` likewise.
    fn differentiate(&mut self, dims: usize) -> Tally {
        let Self { means, lengths, gradients, sizes, centres, relations, .. } = self;
        for (mean, length) in means.chunks_exact_mut(dims).zip(lengths.iter_mut()) {
            *length = vector::norm(Row::F32(mean));
            if *length > 0.0 {
                let inverse = 1.0 / *length;
                mean.iter_mut().for_each(|value| *value *= inverse);
            }
        }
        let unit = |slot: usize| &means[slot * dims..(slot + 1) * dims];
        let mut own = vec![0.0_f32; sizes.len()];
        let mut tally = Tally::default();
        let (mut cosines, mut slopes) = (Vec::new(), Vec::new());
        for of_example in relations.chunk_by(|a, b| a.example == b.example) {
            let centre = centres[of_example[0].example as usize] as usize;
            cosines.clear();
            cosines.extend(
                of_example.iter().map(|to| simd::dot(unit(centre), unit(to.other as usize))),
            );
            tally.loss += cross_entropy(of_example, &cosines, &mut slopes);
            tally.examples += 1;
            tally.words += sizes[centre] as u64;
            for ((to, &cosine), &slope) in of_example.iter().zip(&cosines).zip(&slopes) {
                let other = to.other as usize;
                own[centre] += slope * cosine;
                own[other] += slope * cosine;
                let at = centre * dims;
                simd::add_scaled(&mut gradients[at..at + dims], [slope], [unit(other)]);
                let at = other * dims;
                simd::add_scaled(&mut gradients[at..at + dims], [slope], [unit(centre)]);
            }
        }
        for (slot, gradient) in gradients.chunks_exact_mut(dims).enumerate() {
            simd::add_scaled(gradient, [-own[slot]], [unit(slot)]);
            let scale = lengths[slot] * sizes[slot] as f32;
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            gradient.iter_mut().for_each(|value| *value *= inverse);
        }
        tally
    }
}

/// The loss of an example and its derivative by each cosine.
fn cross_entropy(relations: &[Relation], cosines: &[f32], slopes: &mut Vec<f32>) -> f64 {
    let neighbours = relations.iter().filter(|to| to.neighbour).count() as f64;
    // Cosines are at most 1, so nothing can overflow.
    let total: f64 = cosines.iter().map(|&cosine| f64::from(cosine).exp()).sum();
    let mut loss = 0.0;
    slopes.clear();
    slopes.extend(relations.iter().zip(cosines).map(|(to, &cosine)| {
        let probability = f64::from(cosine).exp() / total;
        let wanted = if to.neighbour { 1.0 / neighbours } else { 0.0 };
        loss -= wanted * probability.ln();
        (probability - wanted) as f32
    }));
    loss
}

#[cfg(test)]
mod tests;
