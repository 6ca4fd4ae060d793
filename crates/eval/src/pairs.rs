//! Scores against labels, related or not: areas, divergence, and how one threshold does.
//!
//! Areas and divergence need no threshold and are of all pairs. A threshold is the one of lowest
//! split error (De Boom et al. 2016) on pairs that it is not judged by: those of another file, or
//! one half of the file's pairs, drawn by a seed from either label.

use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_kernels::random::Random;
use cognate_stats::classification::{Confusion, average_precision, roc_auc, roc_auc_interval};
use cognate_stats::divergence::jensen_shannon;
use cognate_stats::significance::sign_test;
use cognate_stats::threshold::{Criterion, best_threshold};
use serde::Serialize;

use crate::contenders::{Choice, Field};
use crate::datasets::pairs;
use crate::datasets::pairs::PairSet;
use crate::report::Figures;
use crate::scoring::Scored;
use crate::{EvalError, Report, contenders, datasets, scoring};

/// What `cognate eval pairs` measures.
#[derive(Debug, Clone)]
pub struct PairsOptions {
    /// Files, or folders of files.
    pub files: Vec<PathBuf>,
    /// The file that thresholds are found on; without one, the first half of a seeded split of each.
    pub threshold_from: Option<PathBuf>,
    pub choice: Choice,
    pub seed: u64,
}

/// Figures of all files.
#[derive(Debug, Clone, Serialize)]
pub struct PairsFigures {
    /// The file that thresholds were found on; `null` if on a seeded half of each file.
    pub threshold_from: Option<String>,
    pub files: Vec<PairFile>,
}

impl Figures for PairsFigures {
    const TASK: &'static str = "pairs";
}

/// Figures of a file.
#[derive(Debug, Clone, Serialize)]
pub struct PairFile {
    pub name: String,
    pub pairs: usize,
    /// Related ones among them.
    pub related: usize,
    /// Pairs that thresholds were found on.
    pub threshold_pairs: usize,
    /// Pairs that figures at the threshold are of.
    pub judged_pairs: usize,
    pub results: Vec<PairResult>,
    /// Whether each pair is related, for plots.
    #[serde(skip)]
    pub labels: Vec<bool>,
}

/// Figures of a method on a file.
#[derive(Debug, Clone, Serialize)]
pub struct PairResult {
    /// The method's name in the list of methods.
    pub method: String,
    /// Area under the ROC curve.
    pub roc_auc: f64,
    pub roc_auc_interval: [f64; 2],
    pub average_precision: f64,
    /// Jensen-Shannon divergence between the scores of related and of unrelated pairs, base 2, over
    /// 100 equal bins of their joint range.
    pub js_divergence: f64,
    /// Scores of at least this count as related.
    pub threshold: f64,
    /// Share of judged pairs on the wrong side of the threshold.
    pub split_error: f64,
    /// Share of pairs above it that are related.
    pub precision: f64,
    /// Share of related pairs that are above it.
    pub recall: f64,
    pub f1: f64,
    /// Pairs without a score, which count as 0.
    pub unscored: usize,
    /// Pairs of which a text was cut short.
    pub truncated: usize,
    /// Whether it errs less than the baseline; none for the baseline.
    pub sign_test: Option<SignTest>,
    #[serde(skip)]
    pub scores: Vec<f64>,
}

/// The two-tailed sign test over the judged pairs that a method and the baseline, each at its own
/// threshold, put on different sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SignTest {
    /// Pairs that the method has right and the baseline wrong.
    pub wins: u32,
    /// Pairs that the baseline has right and the method wrong.
    pub losses: u32,
    /// The chance of a split as uneven.
    pub p: f64,
}

/// Pairs that thresholds come from, and pairs that they are judged by.
struct Split {
    found_on: Vec<usize>,
    judged_by: Vec<usize>,
}

/// Measures methods against labels.
pub fn eval_pairs(
    engine: &Engine,
    options: &PairsOptions,
) -> Result<Report<PairsFigures>, EvalError> {
    let field = contenders::choose(engine, &options.choice, &[Kind::Similarity], &[])?;
    let sources = datasets::sources(&options.files)?;
    let mut sets = sources.iter().map(pairs::read).collect::<Result<Vec<_>, _>>()?;
    let from = match &options.threshold_from {
        Some(path) => {
            datasets::sources(std::slice::from_ref(path))?.first().map(pairs::read).transpose()?
        }
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

/// Each contender's threshold of lowest split error on these pairs, or on all.
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

/// Readers refuse files without both labels and scores are finite, so this is a defect.
fn no_value(file: &str) -> EvalError {
    let problem = "the labels and scores have no figures".to_owned();
    EvalError::Data { file: file.to_owned(), problem }
}

/// Half of the pairs of either label, and the other half.
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
