//! Siamese CBOW (Kenter et al. 2016, section 2): word vectors made for being averaged.
//!
//! A sentence is the mean of its words' vectors. Each sentence should have a larger cosine with the
//! sentences before and after it than with others: with `S⁺` the one or two neighbours and `S⁻` some
//! random sentences, `p(j) = e^{cos(s, s_j)} / Σ_{S⁺ ∪ S⁻} e^{cos(s, s')}`, and the loss of a
//! sentence is the cross-entropy of `p` against `1/|S⁺|` on the neighbours (equations 1 to 3). Only
//! the word vectors are trained; all sentences share them.
//!
//! Departures. A batch consists of runs of consecutive sentences, drawn from all over the text: a
//! sentence is then averaged once for all its roles (centre, neighbour, negative), and its gradient is
//! applied to its words once. By default the negative sentences are those of the same run
//! ([`Others::Document`]): against sentences of other documents, as in the paper, neighbours can be
//! recognised by the subject of their document alone, and all words of one subject become similar. The
//! loop over steps is in `trainer`.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cognate_kernels::random::Random;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};
use rayon::prelude::*;

use crate::sampling;
use crate::vectors::corpus::Corpus;
use crate::vectors::tables::{Blocks, Update};

const RUN: usize = 20;
const DRAWS: usize = 16;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// The same document, near but not next to the centre: neighbours then differ from these in what
    /// sentences say, not in what the document is about
    Document,
    /// Other documents, as in the paper: what a document is about is enough to tell neighbours from
    /// these, in novels as in an encyclopaedia
    Text,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    first: usize,
    examples: usize,
}

impl<'c> Siamese<'c> {
    /// Examples for every sentence with a neighbour in its document, in batches of at most `batch`
    /// examples with `negatives` negative sentences each.
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

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

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

    /// Number of batches of this epoch; it varies a little with the order of the runs.
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
        // The relations of an example are adjacent, its neighbours first.
        batch.relations.sort_by_key(|relation| relation.example);
    }

    /// Returns a random slot with a sentence of another document than `centre`. If `DRAWS` draws meet no
    /// such slot, returns the last drawn slot that holds neither the centre's sentence nor its neighbours.
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

/// Returns a random slot of `run` that is neither `centre` nor next to it; `None` if there is none.
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
    pub words: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.loss += other.loss;
        self.examples += other.examples;
        self.words += other.words;
    }
}

#[derive(Debug, Default)]
pub struct Batch {
    /// The sentence of each slot, and its number of words.
    pub(super) sentences: Vec<usize>,
    sizes: Vec<usize>,
    /// The slot of each example's centre, and its run's range of slots.
    pub(super) centres: Vec<u32>,
    pub(super) runs: Vec<Range<usize>>,
    pub(super) relations: Vec<Relation>,
    /// A row for each slot: the mean of the words' rows, later divided by its length.
    means: Vec<f32>,
    lengths: Vec<f32>,
    /// A row for each slot: the change of every word of the sentence, before the rate is applied.
    gradients: Vec<f32>,
    mentions: Vec<Vec<(u32, u32)>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Relation {
    pub(super) example: u32,
    pub(super) other: u32,
    pub(super) neighbour: bool,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.sentences.clear();
        self.sizes.clear();
        self.centres.clear();
        self.runs.clear();
        self.relations.clear();
    }

    /// Adds these sentences as centres, together with their neighbours.
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

    /// Learns from the batch, with exclusive access to the rows. The bits do not depend on the
    /// number of threads.
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
    /// is read or changed, and changes by others in between are not lost.
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

    /// Computes losses and gradients from the means. With `û` a mean divided by its length, a
    /// relation whose cosine has the derivative `c` pulls `a` along `c (û_b − cos û_a) / |a|`, and
    /// `b` likewise.
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

/// The loss of an example and its derivative by each of its cosines.
fn cross_entropy(relations: &[Relation], cosines: &[f32], slopes: &mut Vec<f32>) -> f64 {
    let neighbours = relations.iter().filter(|to| to.neighbour).count() as f64;
    // Cosines are at most 1, so the exponentials cannot overflow.
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
mod tests {
    use cognate::text::Normalisation;
    use cognate_kernels::random::Random;

    use super::*;
    use crate::vectors::tables::{Blocks, Update};

    const DIMS: usize = 7;

    fn corpus() -> Corpus {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text.txt");
        let mut random = Random::seeded(11);
        let mut text = String::new();
        for document in 0..12 {
            for _ in 0..4 {
                for _ in 0..1 + random.below(6) {
                    text.push_str(&format!("w{} ", (document * 3 + random.below(9)) % 40));
                }
                text.push('\n');
            }
            text.push_str("\n\n");
        }
        std::fs::write(&file, text).unwrap();
        Corpus::read(&[file], &Normalisation::preset("plain").unwrap(), 1).unwrap()
    }

    fn rows(words: usize) -> Vec<f32> {
        let mut random = Random::seeded(5);
        (0..words * DIMS).map(|_| (random.below(2000) as f32 - 1000.0) / 1000.0).collect()
    }

    fn loss(corpus: &Corpus, batch: &Batch, rows: &[f64]) -> f64 {
        let mean = |slot: u32| -> Vec<f64> {
            let words = corpus.sentence(batch.sentences[slot as usize]);
            let at = |dim: usize| words.iter().map(move |&word| rows[word as usize * DIMS + dim]);
            (0..DIMS).map(|dim| at(dim).sum::<f64>() / words.len() as f64).collect()
        };
        let cosine = |a: &[f64], b: &[f64]| {
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
        };
        let mut loss = 0.0;
        for example in 0..batch.centres.len() {
            let of = |to: &&Relation| to.example as usize == example;
            let relations: Vec<&Relation> = batch.relations.iter().filter(of).collect();
            let centre = mean(batch.centres[example]);
            let weights: Vec<f64> =
                relations.iter().map(|to| cosine(&centre, &mean(to.other)).exp()).collect();
            let total: f64 = weights.iter().sum();
            let neighbours = relations.iter().filter(|to| to.neighbour).count() as f64;
            for (to, weight) in relations.iter().zip(weights) {
                if to.neighbour {
                    loss -= (weight / total).ln() / neighbours;
                }
            }
        }
        loss
    }

    fn step(siamese: &Siamese<'_>, rows: &mut [f32], squares: &mut [f32], update: Update) -> Tally {
        let mut batch = Batch::default();
        siamese.gather(0, &mut batch);
        let blocks = Blocks::of_words(&siamese.corpus.counts, DIMS);
        batch.step(siamese.corpus, &blocks, rows, squares, update)
    }

    #[test]
    fn a_step_goes_down_the_gradient() {
        let corpus = corpus();
        let siamese = Siamese::new(&corpus, 20, (Others::Text, 3), 9);
        let before = rows(corpus.words.len());
        let mut batch = Batch::default();
        siamese.gather(0, &mut batch);
        let exact: Vec<f64> = before.iter().map(|&value| f64::from(value)).collect();
        let mut after = before.clone();
        let tally = step(&siamese, &mut after, &mut [], Update::Descend(1.0));
        assert!((tally.loss - loss(&corpus, &batch, &exact)).abs() < 1e-4);
        let mut largest = 0.0_f64;
        for at in 0..before.len() {
            let moved = |by: f64| {
                let mut rows = exact.clone();
                rows[at] += by;
                loss(&corpus, &batch, &rows)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let gradient = f64::from(before[at] - after[at]);
            assert!((difference - gradient).abs() < 1e-4, "{at}: {difference} {gradient}");
            largest = largest.max(gradient.abs());
        }
        assert!(largest > 0.01, "nothing was learned: {largest}");
    }

    #[test]
    fn neighbours_are_of_the_document_and_others_are_not() {
        let corpus = corpus();
        let mut siamese = Siamese::new(&corpus, 20, (Others::Text, 3), 9);
        siamese.begin(1);
        let mut centres = Vec::new();
        for number in 0..siamese.batches() {
            let mut batch = Batch::default();
            siamese.gather(number, &mut batch);
            assert!(batch.centres.len() <= 20);
            for to in &batch.relations {
                let centre = batch.sentences[batch.centres[to.example as usize] as usize];
                let other = batch.sentences[to.other as usize];
                assert_eq!(to.neighbour, corpus.same_document(centre, other));
                assert!(!to.neighbour || centre.abs_diff(other) == 1);
            }
            centres.extend(batch.centres.iter().map(|&slot| batch.sentences[slot as usize]));
        }
        // Every sentence is a centre once an epoch, because each document here has several
        // sentences.
        centres.sort_unstable();
        assert_eq!(centres, (0..corpus.sentences()).collect::<Vec<_>>());
    }

    #[test]
    fn others_of_the_document_are_not_beside_the_centre() {
        let corpus = corpus();
        let siamese = Siamese::new(&corpus, 20, (Others::Document, 3), 9);
        let mut batch = Batch::default();
        siamese.gather(0, &mut batch);
        for to in batch.relations.iter().filter(|to| !to.neighbour) {
            let centre = batch.sentences[batch.centres[to.example as usize] as usize];
            let other = batch.sentences[to.other as usize];
            assert!(corpus.same_document(centre, other) && centre.abs_diff(other) > 1);
        }
        let mut random = Random::seeded(3);
        let mut seen = [0; 9];
        (0..600).for_each(|_| seen[near(4, 2..9, &mut random).unwrap()] += 1);
        assert_eq!(
            seen.map(|count| count > 100),
            [0, 0, 1, 0, 0, 0, 1, 1, 1].map(|here| here == 1)
        );
        for (centre, run) in [(0, 0..2), (1, 0..3), (5, 5..6)] {
            assert_eq!(near(centre, run, &mut random), None);
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let corpus = corpus();
        let siamese = Siamese::new(&corpus, 40, (Others::Document, 2), 9);
        for update in [Update::Descend(0.1), Update::Adagrad(0.1)] {
            let trained = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut rows = rows(corpus.words.len());
                let mut squares = vec![0.0; rows.len()];
                pool.install(|| step(&siamese, &mut rows, &mut squares, update));
                rows
            };
            let one = trained(1);
            assert_eq!(one, trained(4));
            assert_ne!(one, rows(corpus.words.len()));
        }
    }

    #[test]
    fn adagrad_divides_by_the_root_of_the_squares_so_far() {
        let (mut row, mut squares) = (vec![1.0_f32; 2], vec![0.0_f32, 9.0]);
        let gradients = [[3.0_f32, 1.0], [1.0, 3.0]];
        let update = Update::Adagrad(0.5);
        update.apply(&mut row, &mut squares, gradients.iter().map(<[f32; 2]>::as_slice));
        assert_eq!(squares, [16.0, 25.0]);
        assert!((row[0] - 0.5).abs() < 1e-6 && (row[1] - (1.0 - 0.5 * 4.0 / 5.0)).abs() < 1e-6);
    }
}
