//! The two models of word2vec (Mikolov et al. 2013) with negative sampling and subsampling of
//! frequent words: the baselines for Siamese CBOW, trained on the same corpus by the same loop.
//!
//! Skip-gram predicts a word from each word of the window around it, CBOW from the mean of the
//! window; both learn to distinguish it from random words. As in the authors' program, windows are
//! shortened at random, the logistic function comes from a table that ends at ±6, and the rate
//! falls linearly with the words processed.

use std::ops::Range;

use cognate_kernels::random::Random;
use cognate_kernels::simd;

use crate::sampling;
use crate::sampling::Draw;
use crate::vectors::corpus::Corpus;
use crate::vectors::siamese::Tally;
use crate::vectors::tables::Table;

const CHUNK_WORDS: usize = 10_000;
/// Entries of the table of the logistic function, and the argument where it ends.
const STEPS: usize = 1000;
const END: f32 = 6.0;
const ORDER: u64 = 3;
const CHUNK: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    Cbow,
    SkipGram,
}

#[derive(Debug)]
pub struct Word2Vec<'c> {
    corpus: &'c Corpus,
    model: Model,
    dims: usize,
    window: usize,
    negatives: usize,
    seed: u64,
    keep: Vec<f32>,
    draw: Draw,
    logistic: Vec<(f32, f32)>,
    chunks: Vec<Range<usize>>,
    order: Vec<Range<usize>>,
    epoch: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub model: Model,
    pub dims: usize,
    pub window: usize,
    pub negatives: usize,
    /// Subsampling threshold: more frequent words are skipped at random; 0 disables it.
    pub sample: f64,
}

impl<'c> Word2Vec<'c> {
    /// Prepares to learn from a corpus whose words occur as often as `counts` says.
    pub fn new(corpus: &'c Corpus, counts: &[u64], shape: Shape, seed: u64) -> Self {
        let total = counts.iter().sum::<u64>() as f64;
        let keep = |&count: &u64| {
            let threshold = shape.sample * total / (count as f64).max(1.0);
            if shape.sample > 0.0 { (threshold.sqrt() + threshold) as f32 } else { 1.0 }
        };
        let logistic = |step: usize| {
            let at = ((step as f32 + 0.5) / STEPS as f32 * 2.0 - 1.0) * END;
            let probability = 1.0 / (1.0 + (-at).exp());
            (probability, probability.ln())
        };
        let mut made = Self {
            corpus,
            model: shape.model,
            dims: shape.dims,
            window: shape.window.max(1),
            negatives: shape.negatives,
            seed,
            keep: counts.iter().map(keep).collect(),
            draw: Draw::by(counts.iter().map(|&count| (count as f64).powf(0.75))),
            logistic: (0..STEPS).map(logistic).collect(),
            chunks: chunks(corpus),
            order: Vec::new(),
            epoch: 0,
        };
        made.begin(0);
        made
    }

    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.order.clone_from(&self.chunks);
        sampling::generator(self.seed, ORDER, [epoch, 0]).shuffle(&mut self.order);
    }

    pub fn chunks(&self) -> u64 {
        self.order.len() as u64
    }

    pub fn step(
        &self,
        number: u64,
        rate: f32,
        rows: &mut impl Table,
        outputs: &mut impl Table,
    ) -> Tally {
        let sentences = self.order.get(number as usize).cloned().unwrap_or_default();
        let mut random = sampling::generator(self.seed, CHUNK, [self.epoch, number]);
        let mut worker = Worker {
            of: self,
            rate,
            hidden: vec![0.0; self.dims],
            error: vec![0.0; self.dims],
            random_words: Vec::with_capacity(self.negatives),
            tally: Tally::default(),
        };
        worker.tally.words = self.corpus.words_in(sentences.clone()) as u64;
        let mut kept = Vec::new();
        for sentence in sentences {
            kept.clear();
            kept.extend(self.corpus.sentence(sentence).iter().copied().filter(|&word| {
                let keep = self.keep[word as usize];
                keep >= 1.0 || (sampling::share(&mut random) as f32) < keep
            }));
            for middle in 0..kept.len() {
                let reach = self.window - random.below(self.window);
                let from = middle.saturating_sub(reach);
                let to = (middle + reach + 1).min(kept.len());
                let around = kept[from..middle].iter().chain(&kept[middle + 1..to]).copied();
                match self.model {
                    Model::Cbow => {
                        worker.mean(kept[middle], around, rows, outputs, &mut random);
                    }
                    Model::SkipGram => {
                        for neighbour in around {
                            worker.pair(kept[middle], neighbour, rows, outputs, &mut random);
                        }
                    }
                }
            }
        }
        worker.tally
    }
}

fn chunks(corpus: &Corpus) -> Vec<Range<usize>> {
    let (mut chunks, mut first, mut words) = (Vec::new(), 0, 0);
    for at in 0..corpus.sentences() {
        words += corpus.sentence(at).len();
        if words >= CHUNK_WORDS || at + 1 == corpus.sentences() {
            chunks.push(first..at + 1);
            (first, words) = (at + 1, 0);
        }
    }
    chunks
}

struct Worker<'w, 'c> {
    of: &'w Word2Vec<'c>,
    rate: f32,
    hidden: Vec<f32>,
    error: Vec<f32>,
    random_words: Vec<u32>,
    tally: Tally,
}

impl Worker<'_, '_> {
    fn pair(
        &mut self,
        middle: u32,
        neighbour: u32,
        rows: &mut impl Table,
        outputs: &mut impl Table,
        random: &mut Random,
    ) {
        rows.read(neighbour, |row| self.hidden.copy_from_slice(row));
        self.tell_apart(middle, outputs, random);
        rows.change(neighbour, |row| simd::add_scaled(row, [1.0], [&self.error]));
    }

    fn mean(
        &mut self,
        middle: u32,
        around: impl Iterator<Item = u32> + Clone,
        rows: &mut impl Table,
        outputs: &mut impl Table,
        random: &mut Random,
    ) {
        let count = around.clone().count();
        if count == 0 {
            return;
        }
        self.hidden.fill(0.0);
        let share = 1.0 / count as f32;
        for word in around.clone() {
            rows.read(word, |row| simd::add_scaled(&mut self.hidden, [share], [row]));
        }
        self.tell_apart(middle, outputs, random);
        for word in around {
            rows.change(word, |row| simd::add_scaled(row, [1.0], [&self.error]));
        }
    }

    /// One prediction: raises the product of the hidden layer with the word's row and lowers those
    /// with random words' rows. Changes the rows; leaves the gradient of the hidden layer in
    /// `error`.
    fn tell_apart(&mut self, middle: u32, outputs: &mut impl Table, random: &mut Random) {
        self.error.fill(0.0);
        let mut random_words = std::mem::take(&mut self.random_words);
        random_words.clear();
        // Rows of random words are scattered in memory; prefetching them together hides the
        // latency.
        outputs.prefetch(middle);
        for _ in 0..self.of.negatives {
            let word = self.of.draw.next(random);
            if word != middle {
                outputs.prefetch(word);
                random_words.push(word);
            }
        }
        self.towards(middle, 1.0, outputs);
        random_words.iter().for_each(|&word| self.towards(word, 0.0, outputs));
        self.random_words = random_words;
        self.tally.examples += 1;
    }

    #[inline]
    fn towards(&mut self, word: u32, label: f32, outputs: &mut impl Table) {
        let Self { of, rate, hidden, error, tally, .. } = self;
        outputs.change(word, |row| {
            let product = simd::dot(hidden, row);
            if product.abs() >= END {
                return;
            }
            let step = ((product + END) * (STEPS as f32 / (2.0 * END))) as usize;
            let step = step.min(STEPS - 1);
            let probability = of.logistic[step].0;
            // The logistic function of −x is 1 minus that of x.
            let right = if label > 0.0 { step } else { STEPS - 1 - step };
            tally.loss -= f64::from(of.logistic[right].1);
            let slope = (label - probability) * *rate;
            simd::exchange(slope, row, hidden, error);
        });
    }
}
