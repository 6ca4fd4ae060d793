//! Measures scores on labelled pairs: areas, divergence, and the errors at a threshold.
//!
//! Areas and divergence need no threshold and use all pairs. The threshold is the one of lowest
//! split error (De Boom et al. 2016), chosen on pairs that it is not evaluated on: those of another
//! file, or a random half of each label's pairs.

use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_kernels::random::Random;
use cognate_stats::classification::{Confusion, average_precision, roc_auc, roc_auc_interval};
use cognate_stats::distribution::jensen_shannon;
use cognate_stats::significance::sign_test;
use cognate_stats::threshold::{Criterion, best_threshold};
use serde::Serialize;

use crate::contenders::{Choice, Field};
use crate::datasets::PairSet;
use crate::report::Figures;
use crate::scoring::Scored;
use crate::{EvalError, Report, contenders, datasets, scoring};

#[derive(Debug, Clone)]
pub struct PairsOptions {
    /// Files, or folders of files.
    pub files: Vec<PathBuf>,
    /// The file to choose thresholds on; if absent, a random half of each file.
    pub threshold_from: Option<PathBuf>,
    pub choice: Choice,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct PairsFigures {
    /// The file that thresholds were chosen on; `null` if a random half of each file.
    pub threshold_from: Option<String>,
    pub files: Vec<PairFile>,
}

impl Figures for PairsFigures {
    const TASK: &'static str = "pairs";
}

#[derive(Debug, Clone, Serialize)]
pub struct PairFile {
    pub name: String,
    pub pairs: usize,
    /// How many of the pairs are related.
    pub related: usize,
    pub threshold_pairs: usize,
    /// Number of pairs that the figures at the threshold are computed on.
    pub judged_pairs: usize,
    pub results: Vec<PairResult>,
    /// Whether each pair is related; for plots.
    #[serde(skip)]
    pub labels: Vec<bool>,
}

/// Figures of a method on a file.
#[derive(Debug, Clone, Serialize)]
pub struct PairResult {
    /// The method's name as listed in the report's `methods`.
    pub method: String,
    /// Area under the ROC curve.
    pub roc_auc: f64,
    pub roc_auc_interval: [f64; 2],
    pub average_precision: f64,
    /// Jensen-Shannon divergence between the scores of related and of unrelated pairs, base 2, over
    /// 100 equal bins of their joint range.
    pub js_divergence: f64,
    /// Pairs with at least this score count as related.
    pub threshold: f64,
    /// Share of evaluated pairs on the wrong side of the threshold.
    pub split_error: f64,
    /// Share of pairs with at least this score that are related.
    pub precision: f64,
    /// Share of related pairs with at least this score.
    pub recall: f64,
    pub f1: f64,
    /// Number of pairs without a score; they count as 0.
    pub unscored: usize,
    /// Number of pairs with a truncated text.
    pub truncated: usize,
    /// Whether it makes fewer errors than the baseline; `null` for the baseline.
    pub sign_test: Option<SignTest>,
    #[serde(skip)]
    pub scores: Vec<f64>,
}

/// The two-tailed sign test over the evaluated pairs that are right for one of method and baseline
/// and wrong for the other, each at its own threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SignTest {
    /// Pairs that the method gets right and the baseline wrong.
    pub wins: u32,
    /// Pairs that the baseline gets right and the method wrong.
    pub losses: u32,
    /// The probability of a split at least as uneven by chance.
    pub p: f64,
}

/// Indices of the pairs for choosing thresholds, and of those for evaluating them.
struct Split {
    found_on: Vec<usize>,
    judged_by: Vec<usize>,
}

/// Measures methods on labelled pairs.
pub fn eval_pairs(
    engine: &Engine,
    options: &PairsOptions,
) -> Result<Report<PairsFigures>, EvalError> {
    let field = contenders::choose(engine, &options.choice, &[Kind::Similarity], &[])?;
    let sources = datasets::sources(&options.files)?;
    let mut sets = sources.iter().map(datasets::read_pairs).collect::<Result<Vec<_>, _>>()?;
    let from = match &options.threshold_from {
        Some(path) => datasets::sources(std::slice::from_ref(path))?
            .first()
            .map(datasets::read_pairs)
            .transpose()?,
        None => None,
    };
    let files = sets.len();
    sets.extend(from);
    let texts: Vec<_> = sets.iter().map(|set| (set.name.as_str(), set.texts.as_slice())).collect();
    let mut scored = scoring::pairs(engine, &field.contenders, &texts)?;
    let finders = scored.split_off(files);
    let finder = sets.get(files).zip(finders.first());
    let thresholds = match finder {
        Some((set, scored)) => Some(find(set, scored, None)?),
        None => None,
    };
    let threshold_from = sets.get(files).map(|set| set.name.clone());
    let threshold_pairs = sets.get(files).map(|set| set.labels.len());
    sets.truncate(files);
    let mut done = Vec::new();
    for (set, scored) in sets.into_iter().zip(scored) {
        let all: Vec<usize> = (0..set.labels.len()).collect();
        let (split, thresholds) = match &thresholds {
            Some(known) => (Split { found_on: Vec::new(), judged_by: all }, known.clone()),
            None => {
                let split = halves(&set.labels, options.seed);
                let thresholds = find(&set, &scored, Some(&split.found_on))?;
                (split, thresholds)
            }
        };
        let found_on = threshold_pairs.unwrap_or(split.found_on.len());
        done.push(file(set, scored, &field, &split, &thresholds, found_on)?);
    }
    let figures = PairsFigures { threshold_from, files: done };
    Ok(Report::new(engine, &field, figures, (options.seed, 0)))
}

/// For each contender, the threshold of lowest split error on the pairs `on`, or on all.
fn find(set: &PairSet, scored: &[Scored], on: Option<&[usize]>) -> Result<Vec<f64>, EvalError> {
    let all: Vec<usize> = (0..set.labels.len()).collect();
    let on = on.unwrap_or(&all);
    let labels: Vec<bool> = on.iter().map(|&pair| set.labels[pair]).collect();
    let best = |scored: &Scored| {
        let scores: Vec<f64> = on.iter().map(|&pair| scored.scores[pair]).collect();
        best_threshold(&labels, &scores, Criterion::Accuracy)
    };
    scored.iter().map(|scored| best(scored).ok_or_else(|| no_value(&set.name))).collect()
}

/// The error for a measure without a value. Readers ensure both labels and finite scores, so it
/// indicates a defect.
fn no_value(file: &str) -> EvalError {
    let problem = "the labels and scores have no figures".to_owned();
    EvalError::Data { file: file.to_owned(), problem }
}

/// Splits the pairs of each label into two random halves.
fn halves(labels: &[bool], seed: u64) -> Split {
    let mut random = Random::seeded(seed);
    let mut split = Split { found_on: Vec::new(), judged_by: Vec::new() };
    for wanted in [true, false] {
        let mut pairs: Vec<usize> =
            (0..labels.len()).filter(|&pair| labels[pair] == wanted).collect();
        random.shuffle(&mut pairs);
        let (first, second) = pairs.split_at(pairs.len() / 2);
        split.found_on.extend(first);
        split.judged_by.extend(second);
    }
    split
}

fn file(
    set: PairSet,
    scored: Vec<Scored>,
    field: &Field,
    split: &Split,
    thresholds: &[f64],
    threshold_pairs: usize,
) -> Result<PairFile, EvalError> {
    let judged: Vec<bool> = split.judged_by.iter().map(|&pair| set.labels[pair]).collect();
    let at = |method: usize, pair: usize| scored[method].scores[pair] >= thresholds[method];
    let right = |method: usize, pair: usize| at(method, pair) == set.labels[pair];
    let test = |method: usize| {
        let won = |one: usize, other: usize| {
            let pairs = split.judged_by.iter();
            let count = pairs.filter(|&&pair| right(one, pair) && !right(other, pair)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let (wins, losses) = (won(method, field.baseline), won(field.baseline, method));
        SignTest { wins, losses, p: sign_test(wins, losses) }
    };
    let places: Vec<usize> = (0..scored.len()).collect();
    let results = scoring::map("measuring", &places, |&method| {
        let (labels, scores) = (&set.labels, &scored[method].scores);
        let of = |wanted: bool| -> Vec<f64> {
            let pairs = labels.iter().zip(scores).filter(|(label, _)| **label == wanted);
            pairs.map(|(_, score)| *score).collect()
        };
        let at_judged: Vec<f64> = split.judged_by.iter().map(|&pair| scores[pair]).collect();
        let confusion = Confusion::at(thresholds[method], &judged, &at_judged)?;
        Some(PairResult {
            method: field.contenders[method].name.clone(),
            roc_auc: roc_auc(labels, scores)?,
            roc_auc_interval: roc_auc_interval(labels, scores)?,
            average_precision: average_precision(labels, scores)?,
            js_divergence: jensen_shannon(&of(true), &of(false))?,
            threshold: thresholds[method],
            split_error: confusion.split_error(),
            precision: confusion.precision(),
            recall: confusion.recall(),
            f1: confusion.f1(),
            unscored: scored[method].unscored,
            truncated: scored[method].truncated,
            sign_test: (method != field.baseline).then(|| test(method)),
            scores: scores.clone(),
        })
    });
    let results = results.into_iter().collect::<Option<Vec<_>>>();
    Ok(PairFile {
        pairs: set.labels.len(),
        related: set.labels.iter().filter(|&&label| label).count(),
        threshold_pairs,
        judged_pairs: judged.len(),
        results: results.ok_or_else(|| no_value(&set.name))?,
        name: set.name,
        labels: set.labels,
    })
}

#[cfg(test)]
mod tests {
    use super::halves;

    #[test]
    fn halves_share_no_pair_and_hold_both_labels() {
        let labels: Vec<bool> = (0..101).map(|pair| pair % 4 == 0).collect();
        let split = halves(&labels, 7);
        let mut all = [split.found_on.clone(), split.judged_by.clone()].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..101));
        for half in [&split.found_on, &split.judged_by] {
            let related = half.iter().filter(|&&pair| labels[pair]).count();
            assert!((12..=14).contains(&related), "{related}");
        }
        assert_eq!(split.found_on, halves(&labels, 7).found_on, "the same seed, the same split");
        assert_ne!(split.found_on, halves(&labels, 8).found_on);
    }
}
