//! Finds the weights of scores that rank best on given queries: coordinate ascent on mean average
//! precision (Metzler & Croft 2007, section 3.2).
//!
//! Scores are standardised within each query, as in `engine/fuse/combine.rs`, so that their scales
//! agree and every query counts the same. Weights are shares: none is negative, and they add up to
//! 1, so a score that is high for documents that are *not* relevant cannot help. They are whole
//! millionths, which a file or a request carries without loss. Ascent may end at a local maximum,
//! so it starts from equal weights and from some random ones; scores and seed fix the outcome.
//! Files and contenders are not known here.

use cognate::engine::fuse::standardised;
use cognate_kernels::random::Random;

use crate::datasets::{Judged, Topic};
use crate::scoring;
use crate::scoring::Scored;

const DRAWN: u64 = 5;
/// Distance between the first shares tried for a weight; later distances are halves of it.
const STEP: f64 = 0.1;
const HALVINGS: usize = 3;
const ROUNDS: usize = 50;

pub(super) struct TrainingQuery {
    /// By contender, then by candidate. Candidates are in trec_eval's order of ties.
    columns: Vec<Vec<f64>>,
    scored: Vec<bool>,
    relevant: Vec<bool>,
    total: usize,
}

impl TrainingQuery {
    /// The query of a topic; `None` if the topic does not count.
    pub(super) fn new(topic: &Topic, scored: &[&Scored], judged: &Judged) -> Option<Self> {
        let grades = judged.grades(topic)?;
        let mut order: Vec<usize> = (0..topic.documents.len()).collect();
        order.sort_unstable_by(|a, b| topic.documents[*b].cmp(&topic.documents[*a]));
        let columns = scored.iter().map(|scored| standardised(&scored.scores));
        let in_order = |column: Vec<f64>| order.iter().map(|&at| column[at]).collect();
        let known = known(scored);
        let grade = |at: &usize| grades.get(&topic.documents[*at]).copied().unwrap_or(0);
        Some(Self {
            columns: columns.map(in_order).collect(),
            scored: order.iter().map(|&at| known[at]).collect(),
            relevant: order.iter().map(|at| grade(at) > 0).collect(),
            total: grades.values().filter(|&&grade| grade > 0).count(),
        })
    }

    fn average_precision(&self, scores: &[f64], found: &mut Vec<(f64, usize)>) -> f64 {
        let numbered = || scores.iter().copied().zip(0..).zip(self.relevant.iter().copied());
        let before = |one: &(f64, usize), other: &(f64, usize)| {
            other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
        };
        found.clear();
        found.extend(numbered().filter(|&(_, relevant)| relevant).map(|(ranked, _)| ranked));
        found.sort_unstable_by(before);
        // For each relevant candidate: how many non-relevant ones rank between it and the relevant
        // one before it.
        let mut between = vec![0_u32; found.len() + 1];
        for (ranked, _) in numbered().filter(|&(_, relevant)| !relevant) {
            let at = found.partition_point(|relevant| before(relevant, &ranked).is_lt());
            if let Some(count) = between.get_mut(at) {
                *count += 1;
            }
        }
        let (mut rank, mut sum) = (0.0, 0.0);
        for (place, count) in (1_u32..).zip(between.iter().take(found.len())) {
            rank += f64::from(*count) + 1.0;
            sum += f64::from(place) / rank;
        }
        if self.total == 0 { 0.0 } else { sum / self.total as f64 }
    }
}

fn known(scored: &[&Scored]) -> Vec<bool> {
    let candidates = scored.first().map_or(0, |first| first.scores.len());
    let any = |at: usize| {
        scored.iter().any(|scored| scored.scores.get(at).is_some_and(|score| score.is_finite()))
    };
    (0..candidates).map(any).collect()
}

fn sums<'a>(columns: &'a [Vec<f64>], weights: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    let candidates = columns.first().map_or(0, Vec::len);
    (0..candidates).map(move |at| {
        let weighted = columns.iter().zip(weights);
        weighted.fold(0.0, |sum, (column, weight)| sum + weight * column[at])
    })
}

/// The weighted sums, and minus infinity for candidates that no contender scores.
fn last_unless<'a>(
    known: &'a [bool],
    sums: impl Iterator<Item = f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    known.iter().zip(sums).map(|(&known, sum)| if known { sum } else { f64::NEG_INFINITY })
}

/// The weights rounded to whole millionths that add up to one.
fn in_millionths(weights: &[f64]) -> Vec<f64> {
    let mut rounded: Vec<i64> = weights.iter().map(|share| (share * 1e6).round() as i64).collect();
    let missing = 1_000_000 - rounded.iter().sum::<i64>();
    // The first of the largest weights absorbs the rounding, a few millionths.
    let largest = (0..rounded.len()).rev().max_by_key(|&at| rounded[at]);
    if let Some(largest) = largest.and_then(|at| rounded.get_mut(at)) {
        *largest += missing;
    }
    rounded.into_iter().map(|share| share as f64 / 1e6).collect()
}

pub(super) fn ascend(lessons: &[TrainingQuery], width: usize, seed: u64) -> (Vec<f64>, f64) {
    let starts: Vec<u64> = (0..=DRAWN).collect();
    let found = scoring::map("combining", &starts, |&number| {
        let mut random = Random::seeded(seed.wrapping_add(number));
        let start = if number == 0 { vec![1.0; width] } else { drawn(width, &mut random) };
        Ascent::new(lessons, &start).climb(&mut random)
    });
    // Of equal results the first wins.
    let higher = |best: (Vec<f64>, f64), next: (Vec<f64>, f64)| {
        if next.1 > best.1 { next } else { best }
    };
    let (weights, _) = found.into_iter().reduce(higher).unwrap_or_default();
    let weights = in_millionths(&weights);
    let height = Ascent::new(lessons, &weights).height;
    (weights, height)
}

fn drawn(width: usize, random: &mut Random) -> Vec<f64> {
    // Below 2^20, so that every share is the same number on every machine.
    (0..width).map(|_| (1 + random.below((1 << 20) - 1)) as f64).collect()
}

struct Ascent<'l> {
    lessons: &'l [TrainingQuery],
    weights: Vec<f64>,
    height: f64,
    others: Vec<Vec<f64>>,
    scores: Vec<f64>,
    found: Vec<(f64, usize)>,
}

impl<'l> Ascent<'l> {
    fn new(lessons: &'l [TrainingQuery], start: &[f64]) -> Self {
        let sum: f64 = start.iter().sum();
        let weights = start.iter().map(|weight| weight / sum).collect();
        let (scores, found) = (Vec::new(), Vec::new());
        let mut ascent = Self { lessons, weights, height: 0.0, others: Vec::new(), scores, found };
        ascent.height = ascent.measure();
        ascent
    }

    fn measure(&mut self) -> f64 {
        let mut sum = 0.0;
        for lesson in self.lessons {
            self.scores.clear();
            let sums = sums(&lesson.columns, &self.weights);
            self.scores.extend(last_unless(&lesson.scored, sums));
            sum += lesson.average_precision(&self.scores, &mut self.found);
        }
        sum / self.lessons.len() as f64
    }

    /// Changes one weight after the other, in random order, until no change improves the result.
    fn climb(mut self, random: &mut Random) -> (Vec<f64>, f64) {
        let mut order: Vec<usize> = (0..self.weights.len()).collect();
        for _ in 0..ROUNDS {
            let before = self.height;
            random.shuffle(&mut order);
            for &at in &order {
                self.turn(at);
            }
            if self.height <= before {
                break;
            }
        }
        (self.weights, self.height)
    }

    /// Finds the best share for one contender while the others keep their proportions.
    fn turn(&mut self, at: usize) {
        let rest = 1.0 - self.weights[at];
        let equal = 1.0 / (self.weights.len() - 1) as f64;
        let share = |(place, &weight): (usize, &f64)| match place {
            _ if place == at => 0.0,
            _ if rest > 1e-9 => weight / rest,
            // If this contender had the whole weight, the others have no proportions to keep.
            _ => equal,
        };
        let others: Vec<f64> = self.weights.iter().enumerate().map(share).collect();
        self.others.clear();
        for lesson in self.lessons {
            self.others.push(sums(&lesson.columns, &others).collect());
        }
        let mut tried = (self.weights[at], self.height);
        let coarse = (0..=(1.0 / STEP).round() as u32).map(|step| f64::from(step) * STEP);
        for share in coarse {
            tried = self.better(at, share.min(1.0), tried);
        }
        let mut step = STEP;
        for _ in 0..HALVINGS {
            step /= 2.0;
            let middle = tried.0;
            for share in [middle - step, middle + step] {
                if (0.0..=1.0).contains(&share) {
                    tried = self.better(at, share, tried);
                }
            }
        }
        if tried.1 > self.height {
            let mixed = others
                .iter()
                .enumerate()
                .map(|(place, other)| if place == at { tried.0 } else { (1.0 - tried.0) * other });
            let before = (std::mem::replace(&mut self.weights, mixed.collect()), self.height);
            self.height = self.measure();
            // Summing in another order may change the last bit of a score, and so create or break a
            // tie.
            if self.height <= before.1 {
                (self.weights, self.height) = before;
            }
        }
    }

    fn better(&mut self, at: usize, share: f64, tried: (f64, f64)) -> (f64, f64) {
        let mut sum = 0.0;
        for (lesson, others) in self.lessons.iter().zip(&self.others) {
            self.scores.clear();
            let own = lesson.columns[at].iter();
            let sums = own.zip(others).map(|(own, rest)| share * own + (1.0 - share) * rest);
            self.scores.extend(last_unless(&lesson.scored, sums));
            sum += lesson.average_precision(&self.scores, &mut self.found);
        }
        let height = sum / self.lessons.len() as f64;
        if height > tried.1 { (share, height) } else { tried }
    }
}

#[cfg(test)]
mod tests {
    use cognate::engine::fuse::{FuseBy, combine};
    use cognate_stats::ranking::JudgedRanking;
    use proptest::prelude::*;

    use super::*;

    fn scored(scores: &[f64]) -> Scored {
        Scored { scores: scores.to_vec(), ..Scored::default() }
    }

    fn topic(grades: &[u32]) -> Topic {
        let documents = (0..grades.len()).map(|at| format!("{at:03}")).collect();
        Topic { documents, grades: grades.to_vec(), ..Topic::default() }
    }

    fn no_labels() -> Judged {
        Judged::read(&[]).unwrap()
    }

    proptest! {
        /// Scores with few distinct values, so that many tie, and some missing.
        #[test]
        fn average_precision_is_that_of_the_measure(
            list in prop::collection::vec((0u32..2, 0u8..5, 0u8..5), 2..40),
            share in 0u8..=4,
        ) {
            let grades: Vec<u32> = list.iter().map(|row| row.0).collect();
            let of = |value: u8| if value == 0 { f64::NEG_INFINITY } else { f64::from(value) };
            let columns = [
                scored(&list.iter().map(|row| of(row.1)).collect::<Vec<_>>()),
                scored(&list.iter().map(|row| of(row.2)).collect::<Vec<_>>()),
            ];
            let (topic, both) = (topic(&grades), [&columns[0], &columns[1]]);
            let Some(lesson) = TrainingQuery::new(&topic, &both, &no_labels()) else { return Ok(()) };
            let weights = [f64::from(share) / 4.0, 1.0 - f64::from(share) / 4.0];
            let scores = both.map(|scored| &scored.scores);
            let together = combine(FuseBy::Zscore, &scores, &weights);
            prop_assert!(together.iter().all(|score| !score.is_nan()));
            let run = topic.documents.iter().cloned().zip(together).collect();
            let judged = no_labels().grades(&topic).unwrap();
            let expected = JudgedRanking::of_run(run, &judged).unwrap().average_precision();
            let mut ascent = Ascent::new(std::slice::from_ref(&lesson), &[0.5, 0.5]);
            ascent.weights = weights.to_vec();
            prop_assert!((ascent.measure() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_score_without_worth_gets_no_share() {
        let relevant = |at: usize| u32::from(at < 10);
        let mut random = Random::seeded(3);
        let mut lessons = Vec::new();
        for _ in 0..20 {
            let grades: Vec<u32> = (0..50).map(relevant).collect();
            let mut noise = || -> Vec<f64> { (0..50).map(|_| random.below(100) as f64).collect() };
            let tell = |noise: Vec<f64>| -> Vec<f64> {
                (0..50).map(|at| f64::from(relevant(at)) * 70.0 + noise[at]).collect()
            };
            let columns = [scored(&tell(noise())), scored(&noise()), scored(&tell(noise()))];
            let columns: Vec<&Scored> = columns.iter().collect();
            lessons.extend(TrainingQuery::new(&topic(&grades), &columns, &no_labels()));
        }
        let (weights, map) = ascend(&lessons, 3, 1);
        assert!(weights[1] < 0.1 && weights[0] > 0.3 && weights[2] > 0.3, "{weights:?}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let alone = |at: usize| {
            let mut one = [0.0; 3];
            one[at] = 1.0;
            Ascent::new(&lessons, &one).height
        };
        assert!(map > alone(0).max(alone(2)) + 0.02, "{map}");
        assert_eq!(ascend(&lessons, 3, 1), (weights, map), "the same bits every time");
    }
}
