//! A batch of Siamese CBOW: from the means of sentences to losses, from losses to gradients, from
//! gradients to the rows of words. Which sentences stand in it is `siamese`'s part.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};
use rayon::prelude::*;

use crate::vectors::corpus::Corpus;
use crate::vectors::rows::{Blocks, Update};

/// How a step went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Sum of the losses.
    pub loss: f64,
    /// Examples that they are of.
    pub examples: u64,
    /// Words of the text that were gone through.
    pub words: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.examples += other.examples;
        self.words += other.words;
    }
}

/// Examples that are learned from together, and room to do so.
#[derive(Debug, Default)]
pub struct Batch {
    /// The sentence in each slot, and how many words it has.
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
    /// Empties it and keeps its room.
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
