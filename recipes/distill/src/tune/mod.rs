//! Tunes vectors on the scores of pairs.
//!
//! Vectors trained on sums make good averages. Methods that compare word with word improve as well
//! if the score itself is fitted to the teacher's cosine, on [`families`] of texts, at a small
//! rate: larger rates lose what sums had learned. [`score`] has the loss and its gradient.

mod families;
mod score;

use cognate::text::Normalisation;
use cognate_files::progress::Progress;
use cognate_kernels::random::Random;
use cognate_kernels::vector;
use cognate_train::{TrainError, sampling};
use rayon::prelude::*;
use serde::Serialize;

use crate::blocks;
use crate::generated::Wanted;
use crate::space::{Targets, Views};
use crate::student::Student;
use crate::texts::Texts;
use crate::tune::families::MEMBERS;
use crate::tune::score::{Block, Pull, Scales};
use crate::words::{Lookup, LookupMemory};

const ORDER: u64 = 17;
/// Families in a block; they are neighbours in the teacher's space.
const BLOCK: usize = 4;
/// For texts with at most this many words, the number of blocks in a step: short texts need less
/// work.
const STEPS: [(usize, usize); 2] = [(10, 16), (20, 8)];
/// The first rate, and the last one as a share of it.
const RATE: f64 = 2e-4;
const LAST_RATE: f64 = 0.02;
/// The rate of a_S and b_S, and their initial values: the least-squares solution for vectors that
/// were trained on sums.
const SCALE_RATE: f64 = 0.01;
const SCALES: [[f64; 2]; 3] = [[1.0, -0.03], [0.87, 0.08], [1.04, -0.08]];
/// Decay rates of Adam's running means.
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.99;
/// Share of the steps at each end whose error is reported.
const ENDS: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tuned {
    pub families: usize,
    /// Root mean square difference between scores and the teacher's cosines in the first steps.
    pub before: f64,
    /// The same in the last steps.
    pub after: f64,
}

pub(super) struct Tuning<'t> {
    pub(super) words: &'t [String],
    pub(super) rules: &'t Normalisation,
    pub(super) frozen: &'t [bool],
    pub(super) seed: u64,
}

/// The families of these texts, one after another.
pub(super) fn families(
    texts: &Texts,
    words: &[String],
    student: &Student,
    wanted: &Wanted<'_>,
) -> Vec<String> {
    families::families(texts, words, (&student.rows, student.dims), wanted)
}

impl Tuning<'_> {
    /// Tunes on all families once. `said` holds the teachers' vectors of the families' texts.
    pub(super) fn go(
        &self,
        student: &mut Student,
        families: &[String],
        said: &Views,
    ) -> Result<Tuned, TrainError> {
        let bags = self.bags(families);
        let steps = self.steps(&bags, said);
        let mut fresh = Student::new(std::mem::take(&mut student.rows), student.dims);
        let (mut scales, mut moments) = (SCALES, [[[0.0_f64; 2]; 2]; 3]);
        let ends = ((steps.len() as f64 * ENDS) as usize).max(1);
        let mut squares = [[0.0; 2]; 2];
        let progress = Progress::run("tuning");
        for (at, step) in steps.iter().enumerate() {
            let gone = at as f64 / steps.len() as f64;
            let left = 1.0 - (1.0 - LAST_RATE) * gone;
            let narrow = scales.map(|pair| pair.map(|number| number as f32));
            let pulls = self.pulls(step, &bags, said, (&fresh, &narrow));
            let loss: f64 = pulls.iter().map(|pull| pull.loss).sum();
            if !loss.is_finite() {
                let problem = "--families: the loss is no longer a number";
                return Err(TrainError::Options(problem.to_owned()));
            }
            for (end, holds) in [at < ends, at + ends >= steps.len()].into_iter().enumerate() {
                if holds {
                    squares[end][0] += loss;
                    squares[end][1] += 1.0;
                }
            }
            self.follow(&mut fresh, &pulls, (RATE * left) as f32);
            for (which, pair) in scales.iter_mut().enumerate() {
                for (part, number) in pair.iter_mut().enumerate() {
                    let slope = pulls.iter().map(|pull| f64::from(pull.scales[which][part])).sum();
                    let moments = &mut moments[which][part];
                    *number -= SCALE_RATE * left * adam(moments, slope, at + 1);
                }
            }
            progress.at((gone * 1e6) as u64, 1_000_000);
            progress.say(format!("{:.4} from the teacher", loss.sqrt()));
        }
        student.rows = fresh.rows;
        let [before, after] = squares.map(|[sum, count]| (sum / f64::max(count, 1.0)).sqrt());
        Ok(Tuned { families: families.len() / MEMBERS, before, after })
    }

    fn bags(&self, texts: &[String]) -> Vec<Vec<u32>> {
        let lookup = Lookup::new(self.words, self.rules);
        let mut memory = LookupMemory::default();
        let of_text = |text: &String| {
            let mut found = Vec::new();
            lookup.read(text, &mut memory, &mut found);
            found
        };
        texts.iter().map(of_text).collect()
    }

    /// The blocks of each step, in random order. Families with an empty or overlong text are left
    /// out.
    fn steps(&self, bags: &[Vec<u32>], said: &Views) -> Vec<Vec<Vec<u32>>> {
        let mut random = sampling::generator(self.seed, ORDER, [0, 0]);
        let mut means = vec![0.0; bags.len() / MEMBERS * said.width()];
        let rows = means.par_chunks_mut(said.width().max(1)).enumerate();
        rows.for_each_init(Vec::new, |row, (family, mean)| {
            row.resize(mean.len(), 0.0);
            for text in family * MEMBERS..(family + 1) * MEMBERS {
                said.fill(text, row);
                mean.iter_mut().zip(&*row).for_each(|(sum, number)| *sum += number);
            }
        });
        let means = Targets::of(means, said.width());
        let lengths = bags.chunks_exact(MEMBERS).map(|family| {
            let lengths = family.iter().map(Vec::len);
            (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0))
        });
        let lengths: Vec<(usize, usize)> = lengths.collect();
        let (mut steps, mut longer) = (Vec::new(), 0);
        for (kind, (most, size)) in STEPS.into_iter().enumerate() {
            let fits = |family: &u32| {
                let (least, longest) = lengths[*family as usize];
                least > 0 && longest > longer && longest <= most
            };
            let fitting: Vec<u32> = (0..lengths.len() as u32).filter(fits).collect();
            longer = most;
            let near = blocks::Neighbours { targets: &means, least: BLOCK, seed: self.seed };
            let mut near = near.of(fitting, kind as u64);
            near.iter_mut().for_each(|block| block.truncate(BLOCK));
            random.shuffle(&mut near);
            steps.extend(near.chunks(size).map(<[Vec<u32>]>::to_vec));
        }
        shuffled(steps, &mut random)
    }

    /// The gradients of every block of a step.
    fn pulls(
        &self,
        step: &[Vec<u32>],
        bags: &[Vec<u32>],
        said: &Views,
        (student, scales): (&Student, &Scales),
    ) -> Vec<Pull> {
        let block = |families: &Vec<u32>| {
            let texts = families.iter().flat_map(|&family| {
                let first = family as usize * MEMBERS;
                first..first + MEMBERS
            });
            let mut rows = vec![0.0; families.len() * MEMBERS * said.width()];
            for (text, row) in texts.clone().zip(rows.chunks_exact_mut(said.width().max(1))) {
                said.fill(text, row);
            }
            let mut wanted = Vec::new();
            vector::gram(&rows, said.width(), &mut wanted);
            Block { texts: texts.map(|text| bags[text].as_slice()).collect(), wanted }
        };
        let blocks: Vec<Block<'_>> = step.par_iter().map(block).collect();
        let weight: f64 = blocks.iter().map(Block::weight).sum();
        let share = (1.0 / weight.max(f64::MIN_POSITIVE)) as f32;
        let pull = |block: &Block<'_>| block.pull(&student.rows, student.dims, scales, share);
        blocks.par_iter().map(pull).collect()
    }

    /// An Adam step for every word's vector.
    fn follow(&self, student: &mut Student, pulls: &[Pull], rate: f32) {
        let words = pulls.iter().flat_map(|pull| &pull.words);
        let gradients: Vec<f32> = pulls.iter().flat_map(|pull| &pull.gradients).copied().collect();
        let mentions = words.zip(0..).filter(|(word, _)| !self.frozen[**word as usize]);
        let mut mentions: Vec<(u32, u32)> = mentions.map(|(&word, at)| (word, at)).collect();
        mentions.sort_unstable();
        student.follow(&mentions, &gradients, rate);
    }
}

/// Adam's step for a gradient, at a rate of 1.
fn adam([first, second]: &mut [f64; 2], slope: f64, step: usize) -> f64 {
    *first = FIRST * *first + (1.0 - FIRST) * slope;
    *second = SECOND * *second + (1.0 - SECOND) * slope * slope;
    let unbias = |share: f64| 1.0 / (1.0 - share.powi(step as i32));
    *first * unbias(FIRST) / ((*second * unbias(SECOND)).sqrt() + 1e-8)
}

fn shuffled<T>(mut list: Vec<T>, random: &mut Random) -> Vec<T> {
    random.shuffle(&mut list);
    list
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::cache::Embeddings;

    #[test]
    fn scores_come_nearer_to_the_teacher_and_frozen_words_stay() {
        let (dims, count, families) = (6, 40, 2400);
        let mut random = Random::seeded(3);
        let words: Vec<String> = (0..count)
            .map(|at| {
                format!("q{}{}", char::from(b'a' + at as u8 / 8), char::from(b'a' + at as u8 % 8))
            })
            .collect();
        let mut normal = |count: usize| -> Vec<f32> {
            (0..count).map(|_| sampling::normal(&mut random) as f32).collect()
        };
        let (of_teacher, noise) = (normal(count * dims), normal(count * dims));
        let mut random = Random::seeded(5);
        let texts: Vec<String> = (0..families * MEMBERS)
            .map(|_| {
                let word = |_| words[random.below(count)].as_str();
                (0..4).map(word).collect::<Vec<_>>().join(" ")
            })
            .collect();
        let rules = Normalisation::preset("plain").unwrap();
        let mut frozen = vec![false; count];
        frozen[7] = true;
        let tuning = Tuning { words: &words, rules: &rules, frozen: &frozen, seed: 1 };
        let mut said = Vec::new();
        for bag in tuning.bags(&texts) {
            let mut sum = vec![0.0; dims];
            for word in bag {
                let row = &of_teacher[word as usize * dims..][..dims];
                sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
            }
            crate::space::unit(&mut sum);
            said.extend(sum.into_iter().map(f16::from_f32));
        }
        let said = Views::new(vec![Embeddings { rows: said, width: dims }]);
        let begun: Vec<f32> =
            of_teacher.iter().zip(&noise).map(|(x, noise)| 0.01 * (x + 0.5 * noise)).collect();
        let go = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut student = Student::new(begun.clone(), dims);
            let tuned = pool.install(|| tuning.go(&mut student, &texts, &said)).unwrap();
            (student, tuned)
        };
        let (student, tuned) = go(1);
        assert_eq!(tuned.families, families);
        assert!(tuned.after < 0.9 * tuned.before, "{tuned:?}");
        assert_eq!(student.rows[7 * dims..8 * dims], begun[7 * dims..8 * dims]);
        assert_ne!(student.rows[8 * dims..9 * dims], begun[8 * dims..9 * dims]);
        assert_eq!(go(3), (student, tuned));
        let none =
            tuning.go(&mut Student::new(begun.clone(), dims), &[], &Views::default()).unwrap();
        assert_eq!((none.families, none.before, none.after), (0, 0.0, 0.0));
    }
}
