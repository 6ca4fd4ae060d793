//! `cognate eval events --fit`: fits what a model needs to follow streams on labelled ones, and
//! writes it into the model file.
//!
//! `same-event` is fitted by a logistic regression on pairs of a text and one of its nearest:
//! whether both belong to one event. A pair has the weight of one over the root of its event's
//! number of texts, so that the largest event does not dominate. Thresholds are chosen on streams
//! drawn from the events, and on those of another file if given, since a threshold that holds on
//! the fitted data may not hold elsewhere; of thresholds within a point of the best, which differ
//! by chance alone, the middle one is taken.

use std::fmt;
use std::path::{Path, PathBuf};

use cognate::engine::{Engine, EventRules};
use cognate::methods::Method;
use cognate::methods::sets::same_event::{Weights, shared};
use cognate::model::Phrase;
use cognate::model::update::Update;
use cognate::model::writer::Draft;
use cognate::window::usual::Preset;
use cognate::window::{Near, usual};
use cognate_kernels::elementary;
use cognate_stats::clustering;
use rayon::prelude::*;
use serde::Serialize;

use crate::events::draws::Labelled;
use crate::events::neighbours::{Contender, best};
use crate::events::{EventsOptions, PreparedStream, tried, worth};
use crate::{EvalError, Result};

/// Least coverage of a fitted pair: others are no neighbours.
const MIN_COVERAGE: f32 = 0.2;
/// The penalty on half of the square of a weight, for standardised numbers, relative to the mean
/// loss of a pair.
const RIDGE: f64 = 0.008;
/// Newton's steps: half as many are enough.
const STEPS: usize = 20;
/// A difference in the mean of four figures that is due to chance.
const CHANCE: f64 = 0.01;

#[derive(Debug, Clone, Serialize)]
pub struct EventsFit {
    /// The weights of `same-event`, if topics were fitted.
    pub weights: Option<Weights>,
    /// For each method its threshold, and the mean of F1, B³ F, AMI and ARI there.
    pub thresholds: Vec<(&'static str, f64, f64)>,
    pub path: PathBuf,
    pub fingerprint: String,
    pub digest: String,
}

impl fmt::Display for EventsFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Weights { coverage, rare, constant }) = self.weights {
            writeln!(
                f,
                "same-event: {coverage} · coverage + {rare} · rarest shared word + {constant}"
            )?;
        }
        for (method, threshold, mean) in &self.thresholds {
            writeln!(f, "{method:<20} threshold {threshold}, mean {:.1}", 100.0 * mean)?;
        }
        let Self { path, fingerprint, digest, .. } = self;
        write!(f, "{}\n  fingerprint {fingerprint}\n  digest {digest}", path.display())
    }
}

/// Fits what a model needs for a kind of stream, and writes it into a model file, which may be the
/// same.
pub fn fit_events(
    engine: &Engine,
    preset: Preset,
    options: &EventsOptions,
    output: &Path,
) -> Result<EventsFit> {
    let mut drawn = Labelled::draw(&options.file, options)?;
    if let Some(path) = &options.choose_on {
        drawn.extend(Labelled::draw(path, options)?);
    }
    let coverage = Contender::Second(Method::Coverage);
    let mut thresholds = Vec::new();
    let mut find = |contender: Contender, weights: Option<&Weights>| -> Result<()> {
        let rules: Vec<_> = contender.rules(preset, usual::VOTES, usual::CENTRE).collect();
        let prepare = |stream| match weights {
            Some(weights) => weighed(engine, stream, options, weights),
            None => PreparedStream::new(engine, contender, stream, options),
        };
        let mut means = Vec::new();
        for (rule, each) in tried(&rules, &drawn, prepare)? {
            means.extend(clustering::mean(&each).map(|mean| (rule.threshold, worth(&mean))));
        }
        let highest = means.iter().map(|&(_, mean)| mean).fold(0.0, f64::max);
        means.retain(|&(_, mean)| mean >= highest - CHANCE);
        let Some(&(threshold, mean)) = means.get(means.len() / 2) else { return Ok(()) };
        // From its decimal digits, not as the nearest single-precision number.
        let threshold = threshold.to_string().parse().unwrap_or(f64::from(threshold));
        thresholds.push((contender.method().name(), threshold, mean));
        Ok(())
    };
    let weights = match preset {
        Preset::Topics => Some(fitted(engine, drawn.first(), options)?),
        Preset::Stories => None,
    };
    if weights.is_some() {
        find(Contender::Second(Method::SameEvent), weights.as_ref())?;
        find(Contender::Vectors, None)?;
    }
    find(coverage, None)?;
    let update = Update::new(engine.model(), output)?;
    let mut rules = EventRules::read(update.model())?;
    let of_preset = match preset {
        Preset::Topics => &mut rules.topics,
        Preset::Stories => &mut rules.stories,
    };
    of_preset.extend(thresholds.iter().map(|&(name, threshold, _)| (name.to_owned(), threshold)));
    let sections: Vec<_> = weights.iter().map(Weights::fitted).chain([rules.fitted()]).collect();
    let mut draft = Draft::from_model(update.model());
    sections.iter().for_each(|section| section.put_into(&mut draft));
    let written = update.write(draft)?;
    let (path, fingerprint, digest) = (written.path, written.fingerprint, written.digest);
    Ok(EventsFit { weights, thresholds, path, fingerprint, digest })
}

/// A text and one of its nearest: the coverage, the idf of the rarest common word, and the number
/// of the near text.
type Pair = (f32, f32, u64);

/// For each text of a stream its pairs, and the stream with its nearest by coverage.
fn pairs<'s>(
    engine: &Engine,
    stream: &'s Labelled,
    options: &EventsOptions,
) -> Result<(PreparedStream<'s>, Vec<Vec<Pair>>)> {
    let contender = Contender::Second(Method::Coverage);
    let prepared = PreparedStream::new(engine, contender, stream, options)?;
    let read = |number: usize| {
        let mut phrase = Phrase::new(engine.model());
        phrase.read(stream.texts.get(number).map_or("", String::as_str));
        phrase
    };
    let each = prepared.near.par_iter().enumerate().map(|(number, near)| {
        let one = read(number);
        let pair = |near: &Near| {
            let other = read(usize::try_from(near.number).unwrap_or(usize::MAX));
            let rare = shared(&one, &other).first().map_or(0.0, |(_, idf)| *idf);
            (near.score, rare, near.number)
        };
        near.iter().map(pair).collect()
    });
    let each = each.collect();
    Ok((prepared, each))
}

/// The stream with its nearest rescored by these weights.
fn weighed<'s>(
    engine: &Engine,
    stream: &'s Labelled,
    options: &EventsOptions,
    weights: &Weights,
) -> Result<PreparedStream<'s>> {
    let (mut prepared, pairs) = pairs(engine, stream, options)?;
    let near = pairs.into_iter().map(|pairs| {
        let near = pairs
            .into_iter()
            .map(|(covered, rare, number)| Near { number, score: weights.score(covered, rare) });
        best(near.collect(), options.nearest)
    });
    prepared.near = near.collect();
    Ok(prepared)
}

/// The two numbers of a pair and a 1, whether it belongs to one event, and its weight.
type Sample = ([f64; 3], f64, f64);

fn fitted(engine: &Engine, stream: Option<&Labelled>, options: &EventsOptions) -> Result<Weights> {
    let mut samples: Vec<Sample> = Vec::new();
    if let Some(stream) = stream {
        let (_, pairs) = pairs(engine, stream, options)?;
        let labels = stream.gold.iter().zip(&stream.beside).zip(pairs);
        for ((&gold, &beside), pairs) in labels {
            samples.extend(pairs.into_iter().filter(|pair| pair.0 > MIN_COVERAGE).map(
                |(covered, rare, number)| {
                    let other = usize::try_from(number).ok().and_then(|at| stream.gold.get(at));
                    let same = if other == Some(&gold) { 1.0 } else { 0.0 };
                    (
                        [covered.into(), rare.into(), 1.0],
                        same,
                        (beside.max(1) as f64).sqrt().recip(),
                    )
                },
            ));
        }
    }
    let all: f64 = samples.iter().map(|(.., count)| count).sum();
    samples.iter_mut().for_each(|(.., count)| *count /= all);
    let related: f64 = samples.iter().map(|(_, same, count)| same * count).sum();
    let [coverage, rare, constant] = regression(&mut samples);
    let sound = [coverage, rare].iter().all(|weight| weight.is_finite() && *weight > 0.0);
    if !(sound && constant.is_finite() && related > 0.0 && related < 1.0) {
        let problem = "its pairs do not tell what posts of one event share".to_owned();
        return Err(EvalError::Data { file: options.file.display().to_string(), problem });
    }
    // Four digits are as many as the data supports.
    let rounded = |number: f64| (number * 1e4).round() / 1e4;
    Ok(Weights { coverage: rounded(coverage), rare: rounded(rare), constant: rounded(constant) })
}

/// The weights of both numbers and the constant, by Newton's method on standardised numbers.
fn regression(samples: &mut [Sample]) -> [f64; 3] {
    let (mut means, mut scales) = ([0.0; 3], [1.0; 3]);
    for at in [0, 1] {
        means[at] = samples.iter().map(|(x, _, count)| x[at] * count).sum();
        let square = |(x, _, count): &Sample| (x[at] - means[at]).powi(2) * count;
        scales[at] = samples.iter().map(square).sum::<f64>().sqrt();
    }
    for (x, ..) in samples.iter_mut() {
        (0..3).for_each(|at| x[at] = (x[at] - means[at]) / scales[at]);
    }
    let mut weights = [0.0; 3];
    for _ in 0..STEPS {
        // The gradient, then the curvature, whose rows form the equations to solve.
        let mut rows = [[0.0; 4]; 3];
        for (x, same, count) in samples.iter() {
            let line: f64 = weights.iter().zip(x).map(|(weight, x)| weight * x).sum();
            let said = 1.0 / (1.0 + elementary::exp(-line));
            for (row, one) in rows.iter_mut().zip(x) {
                row[3] += count * (same - said) * one;
                let curve = count * said * (1.0 - said) * one;
                row.iter_mut().zip(x).for_each(|(number, other)| *number += curve * other);
            }
        }
        for at in [0, 1] {
            rows[at][at] += RIDGE;
            rows[at][3] -= RIDGE * weights[at];
        }
        let step = solved(rows);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
    }
    let own = [weights[0] / scales[0], weights[1] / scales[1]];
    [own[0], own[1], weights[2] - own[0] * means[0] - own[1] * means[1]]
}

/// The solution of three equations, by elimination: their matrix is symmetric and positive.
fn solved(mut rows: [[f64; 4]; 3]) -> [f64; 3] {
    for at in 0..3 {
        let pivot = rows[at].map(|number| number / rows[at][at]);
        rows[at] = pivot;
        for (_, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at];
            row.iter_mut().zip(pivot).for_each(|(number, pivot)| *number -= factor * pivot);
        }
    }
    rows.map(|row| row[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regression_finds_the_line_that_the_samples_were_made_by() {
        let line = |a: f64, b: f64| 6.0 * a + 0.3 * b - 4.0;
        let mut samples: Vec<Sample> = Vec::new();
        for a in 0..20 {
            for b in 0..20 {
                let (a, b) = (f64::from(a) / 20.0, f64::from(b));
                let share = 1.0 / (1.0 + elementary::exp(-line(a, b)));
                samples.push(([a, b, 1.0], 1.0, share / 400.0));
                samples.push(([a, b, 1.0], 0.0, (1.0 - share) / 400.0));
            }
        }
        let [a, b, constant] = regression(&mut samples);
        // The penalty flattens the curve; the point where it crosses one half stays.
        assert!((3.0..6.0).contains(&a) && (0.2..0.3).contains(&b), "{a} {b} {constant}");
        let middle = |b: f64| (4.0 - 0.3 * b) / 6.0;
        for b in [2.0, 10.0] {
            assert!((a * middle(b) + 0.3 / 6.0 * a * b + constant).abs() < 0.6, "{a} {b}");
        }
    }
}
