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

/// The temperature τ: how sharply neighbours are distinguished.
const TEMPERATURE: f32 = 0.1;
/// Decay rates of Adam's running means.
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.99;
/// Added to the root of the squares, to keep the first steps finite.
const SMALLEST: f32 = 1e-8;
/// Added to the length of a sum of vectors.
const SHORTEST: f32 = 1e-6;
/// Rows of a matrix that a thread processes at a time.
const STRIPE: usize = 32;

/// The words of texts as indices, one text after another.
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

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The words of a text.
    ///
    /// # Panics
    ///
    /// If there is no such text.
    pub fn text(&self, at: usize) -> &[u32] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.words[from..self.ends[at]]
    }
}

/// The loss of a batch before its step.
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

/// Word vectors with the state of Adam.
#[derive(Debug, Clone, PartialEq)]
pub struct Student {
    pub dims: usize,
    pub rows: Vec<f32>,
    /// Running means of the gradients.
    pub first: Vec<f32>,
    /// Running means of the squared gradients.
    pub second: Vec<f32>,
    pub steps: Vec<u32>,
}

/// The learning rate, and the weight of the divergence.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pace {
    pub rate: f32,
    /// The weight λ of the divergence.
    pub divergence: f32,
}

/// Buffers for the matrices of a batch.
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
    /// A student with these initial vectors.
    pub fn new(rows: Vec<f32>, dims: usize) -> Self {
        let (first, second) = (vec![0.0; rows.len()], vec![0.0; rows.len()]);
        let steps = vec![0; rows.len().checked_div(dims).unwrap_or(0)];
        Self { dims, rows, first, second, steps }
    }

    /// Takes a step on a batch of texts. Words in `frozen` keep their vectors.
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

    /// Makes an Adam step for every mentioned word, in the order of words. A mention is a word and the
    /// index of a row in `gradients`; a word's gradient is the sum over its mentions.
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

/// A row, its two running means, its number of steps, and its mentions.
type Job<'j> = (&'j mut [f32], &'j mut [f32], &'j mut [f32], &'j mut u32, &'j [(u32, u32)]);

/// A step of Adam (Kingma and Ba 2015). Slices of equal length let the compiler vectorise the loop.
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
    /// Computes the unit sums of texts, and collects their targets.
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

    /// Computes the loss; leaves R - Q in `gram`.
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

    /// Computes the gradient with respect to each text's sum of word vectors.
    fn descend(&mut self, dims: usize, texts: usize, weight: f32) {
        let gram = &self.gram;
        // (R - Q) + (R - Q)': the sum of the entries i, j and j, i.
        let stripes = self.wanted_gram.par_chunks_mut(STRIPE * texts).enumerate();
        stripes.for_each(|(stripe, pulls)| {
            let first = stripe * STRIPE;
            let rows = pulls.len() / texts;
            // Along the rows of the transposed matrix, so that memory is read sequentially.
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

    /// Lists the words of the batch with the texts that contain them, in a fixed order.
    fn mention(&mut self, batch: &[u32], bags: &Bags, frozen: &[bool]) {
        self.mentions.clear();
        for (place, &text) in batch.iter().enumerate() {
            let words = bags.text(text as usize).iter().filter(|&&word| !frozen[word as usize]);
            self.mentions.extend(words.map(|&word| (word, place as u32)));
        }
        self.mentions.sort_unstable();
    }
}

/// Replaces a row of cosines by its softmax minus that of `other`, without the text itself, and
/// returns the divergence KL(other || row).
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

/// Divides a row by the temperature, removes the text itself, and returns the logarithm of the sum
/// of exponentials.
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
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    const DIMS: usize = 5;
    const WORDS: usize = 9;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::seeded(seed);
        (0..count).map(|_| sampling::normal(&mut random) as f32).collect()
    }

    /// Texts of one to four words; one of them repeats a word.
    fn texts(count: usize) -> (Bags, Targets) {
        let mut bags = Bags::default();
        for text in 0..count as u32 {
            let words: Vec<u32> =
                (0..1 + text % 4).map(|at| (text * 5 + at * 3) % WORDS as u32).collect();
            bags.push(&words);
        }
        bags.push(&[2, 2, 7]);
        (bags, Targets::of(numbers((count + 1) * DIMS, 2), DIMS))
    }

    fn loss(student: &Student, batch: &[u32], of: (&Bags, &Targets), weight: f32) -> f64 {
        let mut work = Work::default();
        work.sum(student, batch, of.0, of.1);
        let loss = work.differ(DIMS, batch.len());
        loss.apart + f64::from(weight) * loss.divergence
    }

    #[test]
    fn gradients_are_slopes_of_the_loss() {
        let (bags, targets) = texts(7);
        let batch: Vec<u32> = (0..8).collect();
        let student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
        let weight = 0.05;
        let mut work = Work::default();
        work.sum(&student, &batch, &bags, &targets);
        work.differ(DIMS, batch.len());
        work.descend(DIMS, batch.len(), weight / TEMPERATURE);
        work.mention(&batch, &bags, &[false; WORDS]);
        for word in 0..WORDS {
            for column in 0..DIMS {
                let of_word = work.mentions.iter().filter(|(found, _)| *found as usize == word);
                let slope: f32 =
                    of_word.map(|(_, text)| work.gradients[*text as usize * DIMS + column]).sum();
                let at = |step: f32| {
                    let mut moved = student.clone();
                    moved.rows[word * DIMS + column] += step;
                    loss(&moved, &batch, (&bags, &targets), weight)
                };
                let measured = (at(2e-3) - at(-2e-3)) / 4e-3;
                let apart = (measured - f64::from(slope)).abs();
                assert!(apart < 5e-3 + 0.01 * measured.abs(), "{word} {column} {measured} {slope}");
            }
        }
    }

    #[test]
    fn steps_lower_the_loss_and_leave_frozen_words() {
        let (bags, targets) = texts(60);
        let batch: Vec<u32> = (0..61).collect();
        let mut student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
        let before = (student.clone(), loss(&student, &batch, (&bags, &targets), 0.08));
        let mut frozen = [false; WORDS];
        frozen[4] = true;
        let pace = Pace { rate: 0.02, divergence: 0.08 };
        let mut work = Work::default();
        for _ in 0..50 {
            student.step(&batch, (&bags, &targets, &frozen), pace, &mut work);
        }
        let after = loss(&student, &batch, (&bags, &targets), 0.08);
        assert!(after < 0.9 * before.1, "{after} {}", before.1);
        let frozen = 4 * DIMS..5 * DIMS;
        assert_eq!(student.rows[frozen.clone()], before.0.rows[frozen]);
        assert_eq!(student.steps, [50, 50, 50, 50, 0, 50, 50, 50, 50]);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (bags, targets) = texts(300);
        let batch: Vec<u32> = (0..301).collect();
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut student = Student::new(numbers(WORDS * DIMS, 1), DIMS);
                let (mut work, pace) = (Work::default(), Pace { rate: 0.01, divergence: 0.08 });
                for _ in 0..5 {
                    student.step(&batch, (&bags, &targets, &[false; WORDS]), pace, &mut work);
                }
                student
            })
        };
        assert_eq!(with(1), with(4));
    }
}
