//! Word vectors being trained: the loss of a batch of texts, its gradients, and the steps of Adam.
//!
//! With s the sum of a text's word vectors, u = s / |s|, t its target, and over the other texts j of
//! the batch R_ij = softmax(u_i · u_j / τ), Q_ij = softmax(t_i · t_j / τ), the loss is the sum over
//! the texts of -u_i · t_i + λ KL(Q_i || R_i). Its gradient is dL/dU = -T + λ/τ ((R - Q) + (R - Q)') U.
//!
//! Rows of a matrix are shared out among threads, and each number is computed by one of them in a
//! fixed order, so that bits do not depend on threads.

use cognate_kernels::simd;
use cognate_kernels::simd::Packed;
use rayon::prelude::*;
use serde::Serialize;

use crate::space::Targets;

/// τ: how sharply neighbours are told from each other.
const TEMPERATURE: f32 = 0.1;
/// Adam's means go by these shares.
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.99;
/// Keeps the first steps finite.
const SMALLEST: f32 = 1e-8;
/// Added to the length of a sum of vectors.
const SHORTEST: f32 = 1e-6;
/// Rows of a matrix that a thread takes at a time.
const STRIPE: usize = 32;

/// The words of texts by their places, one text after another.
#[derive(Debug, Clone, Default)]
pub struct Bags {
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Bags {
    pub fn push(&mut self, words: &[u32]) {
        self.words.extend_from_slice(words);
        self.ends.push(self.words.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The words of a text.
    ///
    /// # Panics
    ///
    /// Where there is no such text.
    pub fn text(&self, at: usize) -> &[u32] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.words[from..self.ends[at]]
    }
}

/// What a batch was worth before its step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loss {
    /// Sum over the texts of 1 - u · t.
    pub apart: f64,
    /// Sum over the texts of KL(Q || R).
    pub divergence: f64,
    pub texts: u64,
}

impl std::ops::AddAssign for Loss {
    fn add_assign(&mut self, other: Self) {
        self.apart += other.apart;
        self.divergence += other.divergence;
        self.texts += other.texts;
    }
}

/// Word vectors and what Adam remembers of their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct Student {
    pub dims: usize,
    pub rows: Vec<f32>,
    /// Running means of gradients.
    pub first: Vec<f32>,
    /// Running means of their squares.
    pub second: Vec<f32>,
    /// Steps that each row took.
    pub steps: Vec<u32>,
}

/// How far a step goes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pace {
    pub rate: f32,
    /// λ: what the divergence counts beside the distance.
    pub divergence: f32,
}

/// Memory for the matrices of a batch.
#[derive(Debug, Default)]
pub struct Work {
    units: Vec<f32>,
    norms: Vec<f32>,
    wanted: Vec<f32>,
    turned: Vec<f32>,
    gram: Vec<f32>,
    wanted_gram: Vec<f32>,
    gradients: Vec<f32>,
    mentions: Vec<(u32, u32)>,
}

impl Student {
    /// A student that begins with these vectors.
    pub fn new(rows: Vec<f32>, dims: usize) -> Self {
        let (first, second) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
        let steps = vec![0; rows.len().checked_div(dims).unwrap_or(0)];
        Self { dims, rows, first, second, steps }
    }

    /// Takes a step by a batch of texts. Words that `frozen` says keep their vectors.
    pub fn step(
        &mut self,
        batch: &[u32],
        (bags, targets, frozen): (&Bags, &Targets, &[bool]),
        pace: Pace,
        work: &mut Work,
    ) -> Loss {
        work.sum(self, batch, bags, targets);
        let loss = work.differ(self.dims, batch.len());
        work.descend(self.dims, batch.len(), pace.divergence / TEMPERATURE);
        work.mention(batch, bags, frozen);
        self.follow(&work.mentions, &work.gradients, pace.rate);
        loss
    }

    /// A step of Adam for every word that is mentioned, words in their order: by the sum of the
    /// gradients, a row each, of the places beside it.
    pub fn follow(&mut self, mentions: &[(u32, u32)], gradients: &[f32], rate: f32) {
        let dims = self.dims;
        let mut rows = self.rows.chunks_exact_mut(dims);
        let mut means = self.first.chunks_exact_mut(dims).zip(self.second.chunks_exact_mut(dims));
        let mut steps = self.steps.iter_mut();
        let (mut jobs, mut next) = (Vec::new(), 0);
        for mentions in mentions.chunk_by(|a, b| a.0 == b.0) {
            let word = mentions[0].0 as usize;
            let skip = word - next;
            next = word + 1;
            let (row, means, steps) = (rows.nth(skip), means.nth(skip), steps.nth(skip));
            if let (Some(row), Some((first, second)), Some(steps)) = (row, means, steps) {
                jobs.push((row, first, second, steps, mentions));
            }
        }
        let job = |gradient: &mut Vec<f32>, (row, first, second, steps, mentions): Job<'_>| {
            gradient.clear();
            gradient.resize(dims, 0.0);
            for (_, place) in mentions {
                let from = *place as usize * dims;
                simd::add_scaled(gradient, [1.0], [&gradients[from..from + dims]]);
            }
            *steps += 1;
            let unbias = |share: f64| (1.0 / (1.0 - share.powi(*steps as i32))) as f32;
            adam([row, first, second], gradient, rate, [unbias(FIRST), unbias(SECOND)]);
        };
        jobs.into_par_iter().with_min_len(STRIPE).for_each_init(Vec::new, job);
    }
}

/// A row, its two means, its steps, and where it is mentioned.
type Job<'j> = (&'j mut [f32], &'j mut [f32], &'j mut [f32], &'j mut u32, &'j [(u32, u32)]);

/// A step of Adam (Kingma and Ba 2015). Of lists of one length the compiler makes vector code.
fn adam([row, first, second]: [&mut [f32]; 3], gradient: &[f32], rate: f32, unbias: [f32; 2]) {
    let dims = row.len();
    let (first, second) = (&mut first[..dims], &mut second[..dims]);
    let gradient = &gradient[..dims];
    let (keep, more) = (FIRST as f32, (1.0 - FIRST) as f32);
    let (keep_square, more_square) = (SECOND as f32, (1.0 - SECOND) as f32);
    for at in 0..dims {
        let slope = gradient[at];
        first[at] = keep * first[at] + more * slope;
        second[at] = keep_square * second[at] + more_square * slope * slope;
        let root = (second[at] * unbias[1]).sqrt() + SMALLEST;
        row[at] -= rate * (first[at] * unbias[0]) / root;
    }
}

impl Work {
    /// The unit sums of texts, and their targets.
    fn sum(&mut self, student: &Student, batch: &[u32], bags: &Bags, targets: &Targets) {
        let dims = student.dims;
        for table in [&mut self.units, &mut self.wanted] {
            table.clear();
            table.resize(batch.len() * dims, 0.0);
        }
        self.norms.clear();
        self.norms.resize(batch.len(), 0.0);
        let rows = self.units.par_chunks_mut(dims).zip(self.wanted.par_chunks_mut(dims));
        let rows = rows.zip(&mut self.norms).zip(batch).with_min_len(STRIPE);
        rows.for_each(|(((unit, wanted), norm), &text)| {
            for &word in bags.text(text as usize) {
                let from = word as usize * dims;
                simd::add_scaled(unit, [1.0], [&student.rows[from..from + dims]]);
            }
            *norm = simd::dot(unit, unit).sqrt() + SHORTEST;
            unit.iter_mut().for_each(|number| *number /= *norm);
            for (to, from) in wanted.iter_mut().zip(targets.row(text as usize)) {
                *to = from.to_f32();
            }
        });
    }

    /// How far sums are from what is wanted. Leaves R - Q in `gram`.
    fn differ(&mut self, dims: usize, texts: usize) -> Loss {
        for gram in [&mut self.gram, &mut self.wanted_gram] {
            gram.clear();
            gram.resize(texts * texts, 0.0);
        }
        let (units, wanted) = (&self.units, &self.wanted);
        let stripes = self.gram.par_chunks_mut(STRIPE * texts);
        let stripes = stripes.zip(self.wanted_gram.par_chunks_mut(STRIPE * texts)).enumerate();
        let of_stripe = |(stripe, (gram, wanted_gram)): (usize, (&mut [f32], &mut [f32]))| {
            let (mut apart, mut divergence) = (0.0, 0.0);
            let first = stripe * STRIPE;
            let last = texts.min(first + STRIPE);
            let part = |rows: &[f32], gram: &mut [f32]| {
                let rows = [&rows[first * dims..last * dims], rows];
                let [some, all] = rows.map(|values| Packed { values, dims });
                simd::products(some, all, dims, gram);
            };
            part(units, gram);
            part(wanted, wanted_gram);
            let rows = gram.chunks_exact_mut(texts).zip(wanted_gram.chunks_exact_mut(texts));
            for (text, (row, wanted_row)) in (first..last).zip(rows) {
                divergence += difference(row, wanted_row, text);
                let of_text = text * dims..(text + 1) * dims;
                let cosine = simd::dot(&units[of_text.clone()], &wanted[of_text]);
                apart += 1.0 - f64::from(cosine);
            }
            (apart, divergence)
        };
        let sums: Vec<(f64, f64)> = stripes.map(of_stripe).collect();
        let mut loss = Loss { texts: texts as u64, ..Loss::default() };
        for (apart, divergence) in sums {
            loss.apart += apart;
            loss.divergence += divergence;
        }
        loss
    }

    /// The gradient by each text's sum.
    fn descend(&mut self, dims: usize, texts: usize, weight: f32) {
        let gram = &self.gram;
        // What R - Q is for i and j, and for j and i.
        let stripes = self.wanted_gram.par_chunks_mut(STRIPE * texts).enumerate();
        stripes.for_each(|(stripe, pulls)| {
            let first = stripe * STRIPE;
            let rows = pulls.len() / texts;
            // Along the rows of what is turned, so that near memory is read together.
            for (column, turned) in gram.chunks_exact(texts).enumerate() {
                for (row, turned) in turned[first..first + rows].iter().enumerate() {
                    let own = gram[(first + row) * texts + column];
                    pulls[row * texts + column] = weight * (own + turned);
                }
            }
        });
        self.turned.clear();
        self.turned.resize(texts * dims, 0.0);
        for (text, unit) in self.units.chunks_exact(dims).enumerate() {
            for (column, &number) in unit.iter().enumerate() {
                self.turned[column * texts + text] = number;
            }
        }
        self.gradients.clear();
        self.gradients.resize(texts * dims, 0.0);
        let (units, wanted, norms) = (&self.units, &self.wanted, &self.norms);
        let (pulls, turned) = (&self.wanted_gram, &self.turned);
        let stripes = self.gradients.par_chunks_mut(STRIPE * dims).enumerate();
        stripes.for_each(|(stripe, gradients)| {
            let first = stripe * STRIPE;
            let last = texts.min(first + STRIPE);
            let pulls = Packed { values: &pulls[first * texts..last * texts], dims: texts };
            simd::products(pulls, Packed { values: turned, dims: texts }, texts, gradients);
            for (text, gradient) in (first..last).zip(gradients.chunks_exact_mut(dims)) {
                let of_text = text * dims..(text + 1) * dims;
                let unit = &units[of_text.clone()];
                simd::add_scaled(gradient, [-1.0], [&wanted[of_text]]);
                let along = simd::dot(gradient, unit);
                simd::add_scaled(gradient, [-along], [unit]);
                gradient.iter_mut().for_each(|number| *number /= norms[text]);
            }
        });
    }

    /// Lists the words of the batch with the texts that hold them, in a fixed order.
    fn mention(&mut self, batch: &[u32], bags: &Bags, frozen: &[bool]) {
        self.mentions.clear();
        for (place, &text) in batch.iter().enumerate() {
            let words = bags.text(text as usize).iter().filter(|&&word| !frozen[word as usize]);
            self.mentions.extend(words.map(|&word| (word, place as u32)));
        }
        self.mentions.sort_unstable();
    }
}

/// Replaces a row of cosines by what their softmax has more than that of another row, the text itself
/// left out, and gives back how far the first softmax is from the other: KL(other || first).
fn difference(row: &mut [f32], other: &mut [f32], own: usize) -> f64 {
    let [log, other_log] = [softmax(row, own), softmax(other, own)];
    let mut divergence = 0.0;
    for (share, other) in row.iter_mut().zip(&*other) {
        let (r, q) = ((*share - log).exp(), (*other - other_log).exp());
        if q > 0.0 {
            divergence += f64::from(q) * f64::from((*other - other_log) - (*share - log));
        }
        *share = r - q;
    }
    divergence
}

/// Divides a row by the temperature, takes the text itself out, and gives back the logarithm of the
/// sum of exponentials.
fn softmax(row: &mut [f32], own: usize) -> f32 {
    let mut most = f32::MIN;
    for (place, number) in row.iter_mut().enumerate() {
        *number = if place == own { f32::MIN / 2.0 } else { *number / TEMPERATURE };
        most = most.max(*number);
    }
    let sum: f64 = row.iter().map(|number| f64::from((number - most).exp())).sum();
    most + sum.ln() as f32
}

#[cfg(test)]
mod tests;
