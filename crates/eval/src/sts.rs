//! Measures scores against gold scores: Pearson and Spearman correlations per subtask, per year and
//! overall.
//!
//! A difference from the baseline is tested in two ways. *Within a subtask:* could it be due to the
//! choice of sentences? The BCa bootstrap interval of the difference of Pearson correlations over
//! resampled pairs answers this, as in the DynaMax paper. *Across subtasks:* is the method better
//! on data sets of this kind? Wilcoxon's signed-rank test over the subtasks' differences of Pearson
//! correlations answers this (Demšar, "Statistical comparisons of classifiers over multiple data
//! sets", 2006). Errors of single pairs are not tested: they need scores on the scale of the gold
//! scores, hence a fit for each method, and a method with smaller errors on most pairs may still
//! correlate worse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_stats::bootstrap::Bootstrap;
use cognate_stats::correlation::{pearson, spearman};
use cognate_stats::significance::signed_rank;
use serde::Serialize;

use crate::contenders::{Choice, Field};

use crate::report::{Difference, Figures};
use crate::scoring::Scored;
use crate::{EvalError, Report, contenders, datasets, scoring};

#[derive(Debug, Clone)]
pub struct StsOptions {
    /// Files, or folders of files.
    pub files: Vec<PathBuf>,
    /// What counts as one subtask.
    pub view: View,
    pub choice: Choice,
    /// How intervals are computed.
    pub bootstrap: Bootstrap,
}

/// What correlations are computed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// Each file, as in the papers; a year's figure is the mean over its files.
    #[default]
    Files,
    /// All pairs of a year as one list, as in the MTEB benchmark (Muennighoff et al. 2023) and
    /// published model comparisons, which use Spearman's correlation.
    Mteb,
}

#[derive(Debug, Clone, Serialize)]
pub struct StsFigures {
    /// What correlations were computed over.
    pub view: View,
    /// One for each file, or in [`View::Mteb`] one for each year.
    pub subtasks: Vec<Subtask>,
    /// One for each year from 2012 to 2016 that a file name begins with.
    pub years: Vec<Year>,
    /// The mean over the years; without years, over the files.
    pub overall: Overall,
}

impl Figures for StsFigures {
    const TASK: &'static str = "sts";
}

/// Figures of a file, or in [`View::Mteb`] of a year.
#[derive(Debug, Clone, Serialize)]
pub struct Subtask {
    pub name: String,
    /// Its year, if it has one.
    pub year: Option<u16>,
    pub pairs: usize,
    pub results: Vec<SubtaskResult>,
    /// Gold scores; for plots.
    #[serde(skip)]
    pub gold: Vec<f64>,
}

/// Figures of a method on a file.
#[derive(Debug, Clone, Serialize)]
pub struct SubtaskResult {
    /// The method's name as listed in the report's `methods`.
    pub method: String,
    /// Pearson's correlation; 0 if all scores are equal.
    pub pearson: f64,
    /// Spearman's correlation; 0 if all scores are equal.
    pub spearman: f64,
    /// Number of pairs without a score; they count as 0.
    pub unscored: usize,
    /// Number of pairs with a truncated text.
    pub truncated: usize,
    /// The difference in Pearson correlation from the baseline, with its BCa interval; `null` for
    /// the baseline, or if a correlation has no value.
    pub difference: Option<Difference>,
    #[serde(skip)]
    pub scores: Vec<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Year {
    pub year: u16,
    pub subtasks: usize,
    pub results: Vec<MeanResult>,
}

/// Unweighted means of a method's figures.
#[derive(Debug, Clone, Serialize)]
pub struct MeanResult {
    /// The method's name as listed in the report's `methods`.
    pub method: String,
    /// Mean of Pearson's correlations.
    pub pearson: f64,
    /// Mean of Spearman's correlations.
    pub spearman: f64,
    /// An approximate 95 % interval of the mean of Pearson's correlations: the standard error of
    /// each is taken as (1 − r²) / √(n − 1), and subtasks as independent.
    pub interval: [f64; 2],
}

#[derive(Debug, Clone, Serialize)]
pub struct Overall {
    /// What the means are over: `years` or `files`.
    pub over: &'static str,
    pub results: Vec<OverallResult>,
}

/// The overall figures of a method.
#[derive(Debug, Clone, Serialize)]
pub struct OverallResult {
    #[serde(flatten)]
    pub mean: MeanResult,
    /// Whether the method is better than the baseline across the averaged subtasks; `null` for the
    /// baseline.
    pub wilcoxon: Option<Wilcoxon>,
}

/// Wilcoxon's signed-rank test over the subtasks' differences in Pearson's correlation.
#[derive(Debug, Clone, Serialize)]
pub struct Wilcoxon {
    pub statistic: f64,
    /// The probability of a statistic at least as extreme by chance.
    pub p: f64,
    /// Whether the probability was computed exactly.
    pub exact: bool,
    /// Number of subtasks on which the method is better.
    pub wins: usize,
    /// Number of subtasks on which the baseline is better.
    pub losses: usize,
}

/// Measures methods on pairs with gold scores.
pub fn eval_sts(engine: &Engine, options: &StsOptions) -> Result<Report<StsFigures>, EvalError> {
    let field = contenders::choose(engine, &options.choice, &[Kind::Similarity], &[])?;
    let sources = datasets::sources(&options.files)?;
    let mut sets = sources.iter().map(datasets::read_sts).collect::<Result<Vec<_>, _>>()?;
    if options.view == View::Mteb {
        sets = datasets::joined_by_year(sets);
    }
    let texts: Vec<_> = sets.iter().map(|set| (set.name.as_str(), set.texts.as_slice())).collect();
    let scored = scoring::pairs(engine, &field.contenders, &texts)?;
    let mut subtasks = Vec::new();
    for (set, scored) in sets.into_iter().zip(scored) {
        subtasks.push(subtask(set, scored, &field));
    }
    add_differences(&mut subtasks, field.baseline, &options.bootstrap);
    let figures = StsFigures {
        view: options.view,
        years: years(&subtasks),
        overall: overall(&subtasks, field.baseline),
        subtasks,
    };
    let draws = (options.bootstrap.seed, options.bootstrap.resamples);
    Ok(Report::new(engine, &field, figures, draws))
}

fn subtask(set: datasets::Subtask, scored: Vec<Scored>, field: &Field) -> Subtask {
    let results = field.contenders.iter().zip(scored).map(|(contender, scored)| SubtaskResult {
        method: contender.name.clone(),
        pearson: pearson(&set.gold, &scored.scores).unwrap_or(0.0),
        spearman: spearman(&set.gold, &scored.scores).unwrap_or(0.0),
        unscored: scored.unscored,
        truncated: scored.truncated,
        difference: None,
        scores: scored.scores,
    });
    let results = results.collect();
    Subtask { name: set.name, year: set.year, pairs: set.gold.len(), results, gold: set.gold }
}

/// Adds the intervals of differences; they take the most time, so they use every core.
fn add_differences(subtasks: &mut [Subtask], baseline: usize, bootstrap: &Bootstrap) {
    let mut jobs = Vec::new();
    for (place, subtask) in subtasks.iter().enumerate() {
        let others = (0..subtask.results.len()).filter(|&other| other != baseline);
        jobs.extend(others.map(|other| (place, other)));
    }
    let differences = scoring::map("intervals", &jobs, |&(place, other)| {
        let subtask = &subtasks[place];
        let [first, second] = [other, baseline].map(|method| &subtask.results[method].scores);
        let interval = bootstrap.of_pearson_difference(&subtask.gold, first, second)?;
        Some(Difference {
            estimate: interval.estimate,
            low: interval.low,
            high: interval.high,
            significant: interval.excludes_zero(),
        })
    });
    for ((place, other), difference) in jobs.into_iter().zip(differences) {
        subtasks[place].results[other].difference = difference;
    }
}

fn years(subtasks: &[Subtask]) -> Vec<Year> {
    let mut by_year: BTreeMap<u16, Vec<&Subtask>> = BTreeMap::new();
    for subtask in subtasks {
        if let Some(year) = subtask.year {
            by_year.entry(year).or_default().push(subtask);
        }
    }
    by_year
        .into_iter()
        .map(|(year, of)| Year { year, subtasks: of.len(), results: means(&[of]) })
        .collect()
}

fn overall(subtasks: &[Subtask], baseline: usize) -> Overall {
    let yearly: Vec<&Subtask> = subtasks.iter().filter(|of| of.year.is_some()).collect();
    let over = if yearly.is_empty() { "files" } else { "years" };
    // STS Benchmark consists of pairs from the yearly sets, so together they would count pairs
    // twice.
    let counted = if yearly.is_empty() { subtasks.iter().collect() } else { yearly };
    let groups: Vec<Vec<&Subtask>> = match over {
        "files" => vec![counted.clone()],
        _ => {
            let mut by_year: BTreeMap<Option<u16>, Vec<&Subtask>> = BTreeMap::new();
            counted.iter().for_each(|of| by_year.entry(of.year).or_default().push(of));
            by_year.into_values().collect()
        }
    };
    let pearsons = |method: usize| counted.iter().map(move |of| of.results[method].pearson);
    let test = |method: usize| {
        let differences: Vec<f64> =
            pearsons(method).zip(pearsons(baseline)).map(|(one, other)| one - other).collect();
        let found = signed_rank(&differences)?;
        Some(Wilcoxon {
            statistic: found.statistic,
            p: found.p,
            exact: found.exact,
            wins: differences.iter().filter(|&&difference| difference > 0.0).count(),
            losses: differences.iter().filter(|&&difference| difference < 0.0).count(),
        })
    };
    let results = means(&groups).into_iter().enumerate().map(|(method, mean)| OverallResult {
        mean,
        wilcoxon: if method == baseline { None } else { test(method) },
    });
    Overall { over, results: results.collect() }
}

/// For each method, the mean over groups of the mean over a group's subtasks.
fn means(groups: &[Vec<&Subtask>]) -> Vec<MeanResult> {
    let Some(first) = groups.first().and_then(|group| group.first()) else { return Vec::new() };
    let mean = |method: usize, figure: &dyn Fn(&Subtask, &SubtaskResult) -> f64| {
        let of_group = |group: &Vec<&Subtask>| {
            let figures = group.iter().map(|of| figure(of, &of.results[method]));
            figures.sum::<f64>() / group.len() as f64
        };
        groups.iter().map(of_group).sum::<f64>() / groups.len() as f64
    };
    let deviation = |method: usize| {
        let variance = |of: &Subtask| {
            let left = 1.0 - of.results[method].pearson.powi(2);
            left * left / (of.pairs as f64 - 1.0)
        };
        let of_group = |group: &Vec<&Subtask>| {
            group.iter().map(|of| variance(of)).sum::<f64>() / (group.len() as f64).powi(2)
        };
        (groups.iter().map(of_group).sum::<f64>()).sqrt() / groups.len() as f64
    };
    (0..first.results.len())
        .map(|method| {
            let pearson = mean(method, &|_, result| result.pearson);
            // 1.96 deviations hold 95 % of a normal distribution.
            let half = 1.96 * deviation(method);
            MeanResult {
                method: first.results[method].method.clone(),
                pearson,
                spearman: mean(method, &|_, result| result.spearman),
                interval: [(pearson - half).max(-1.0), (pearson + half).min(1.0)],
            }
        })
        .collect()
}
