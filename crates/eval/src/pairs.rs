//! Measures scores on labelled pairs: areas, divergence, and the errors at a threshold.
//!
//! Areas and divergence need no threshold and use all pairs. The threshold is the one of lowest
//! split error (De Boom et al. 2016), chosen on pairs that it is not evaluated on: those of another
//! file, or a random half of each label's pairs.

use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_kernels::random::Random;
use cognate_stats::classification::{
    Confusion, Curve, average_precision, of_label, precision_recall, roc, roc_auc, roc_auc_interval,
};
use cognate_stats::distribution::jensen_shannon;
use cognate_stats::page::Page;
use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::{Axis, Frame, MIDDLE, WIDE};
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::significance::sign_test;
use cognate_stats::threshold::{Criterion, best_threshold};
use indicatif::HumanCount;
use serde::Serialize;

use crate::contenders::{Choice, Field};
use crate::datasets::PairSet;
use crate::report::{Figures, SIGNIFICANT, compare};
use crate::scoring::Scored;
use crate::{EvalError, Report, Result, contenders, datasets, scoring};

#[derive(Debug, Clone)]
pub struct PairsOptions {
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

#[derive(Debug, Clone, Serialize)]
pub struct PairFile {
    pub name: String,
    pub pairs: usize,
    pub related: usize,
    pub threshold_pairs: usize,
    /// Number of pairs that the figures at the threshold are computed on.
    pub judged_pairs: usize,
    pub results: Vec<PairResult>,
    #[serde(skip)]
    pub labels: Vec<bool>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PairResult {
    pub method: String,
    pub roc_auc: f64,
    pub roc_auc_interval: [f64; 2],
    pub average_precision: f64,
    /// Jensen-Shannon divergence between the scores of related and of unrelated pairs, base 2, over
    /// 100 equal bins of their joint range.
    pub js_divergence: f64,
    /// Pairs with at least this score count as related.
    pub threshold: f64,
    pub split_error: f64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
    /// Number of pairs without a score; they count as 0.
    pub unscored: usize,
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

pub fn eval_pairs(engine: &Engine, options: &PairsOptions) -> Result<Report<PairsFigures>> {
    let field = contenders::choose(engine, &options.choice, &[Kind::Similarity], &[])?;
    let mut sets = datasets::read_all(&options.files, datasets::read_pairs)?;
    let files = sets.len();
    if let Some(path) = &options.threshold_from {
        let from = datasets::sources(std::slice::from_ref(path))?;
        sets.extend(from.first().map(datasets::read_pairs).transpose()?);
    }
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
    Ok(Report::new(&field, figures, (options.seed, 0)))
}

/// For each contender, the threshold of lowest split error on the pairs `on`, or on all.
fn find(set: &PairSet, scored: &[Scored], on: Option<&[usize]>) -> Result<Vec<f64>> {
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
    field: &Field<'_>,
    split: &Split,
    thresholds: &[f64],
    threshold_pairs: usize,
) -> Result<PairFile> {
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
        let [related, others] = [true, false].map(|wanted| of_label(labels, scores, wanted));
        let at_judged: Vec<f64> = split.judged_by.iter().map(|&pair| scores[pair]).collect();
        let confusion = Confusion::at(thresholds[method], &judged, &at_judged)?;
        Some(PairResult {
            method: field.contenders[method].name.clone(),
            roc_auc: roc_auc(labels, scores)?,
            roc_auc_interval: roc_auc_interval(labels, scores)?,
            average_precision: average_precision(labels, scores)?,
            js_divergence: jensen_shannon(&related, &others)?,
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

impl Figures for PairsFigures {
    const TASK: &'static str = "pairs";
    const TITLE: &'static str = "Related and unrelated pairs";

    fn tables(&self) -> Vec<Table> {
        let rule = match &self.threshold_from {
            Some(file) => format!("Thresholds of lowest split error, found on {file}."),
            None => "Thresholds of lowest split error, found on a seeded half of the pairs and \
                     judged by the other half."
                .to_owned(),
        };
        self.files.iter().map(|file| file.table(&rule)).collect()
    }

    fn fill(&self, page: &mut Page, tables: Vec<Table>, _: &str) {
        self.files.iter().zip(tables).for_each(|(file, table)| file.fill(page, table));
    }

    fn criterion(&self) -> &'static str {
        "split error in %, the lowest"
    }

    fn figure(&self, place: usize) -> Option<f64> {
        mean(self.files.iter().map(|file| Some(-file.results.get(place)?.split_error)))
    }

    fn show(&self, figure: f64) -> String {
        format!("{:.2}", -100.0 * figure)
    }
}

pub(crate) fn mean(figures: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let figures = figures.collect::<Option<Vec<f64>>>()?;
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

impl PairFile {
    fn table(&self, rule: &str) -> Table {
        let rows = self.results.iter().map(|result| {
            let test = result.sign_test.as_ref();
            let mark = test.map_or(Mark::None, |test| {
                Mark::from_difference(
                    test.p < SIGNIFICANT,
                    f64::from(test.wins) - f64::from(test.losses),
                )
            });
            let cells = vec![
                Cell::share(result.roc_auc, Mark::None),
                Cell::share(result.average_precision, Mark::None),
                Cell::fine(result.js_divergence, Mark::None),
                Cell {
                    text: format!("{:.2}", 100.0 * result.split_error),
                    ..Cell::share(result.split_error, mark)
                },
                Cell::chance(test.map(|test| test.p)),
                Cell::share(result.threshold, Mark::None),
                Cell::share(result.precision, Mark::None),
                Cell::share(result.recall, Mark::None),
                Cell::share(result.f1, Mark::None),
                Cell::count(result.unscored),
            ];
            (result.method.clone(), cells)
        });
        let columns = [
            ("AUC", Better::Higher),
            ("AP", Better::Higher),
            ("JS", Better::Higher),
            ("split error %", Better::Lower),
            ("p", Better::Neither),
            ("threshold", Better::Neither),
            ("precision", Better::Higher),
            ("recall", Better::Higher),
            ("F1", Better::Higher),
            ("unscored", Better::Neither),
        ];
        let (pairs, related) = (HumanCount(self.pairs as u64), HumanCount(self.related as u64));
        Table {
            title: format!("{}: {pairs} pairs, {related} related", self.name),
            stub: "method",
            columns: columns.map(|(name, better)| Column::new(name, better)).into(),
            rows: rows.collect(),
            notes: vec![
                rule.to_owned(),
                format!(
                    "Split error, precision, recall and F1 over {} pairs. p: two-tailed sign test \
                     against the baseline; + errs less often.",
                    self.judged_pairs
                ),
                "JS: Jensen-Shannon divergence, base 2, 100 equal bins over the joint range."
                    .to_owned(),
            ],
        }
    }

    fn fill(&self, page: &mut Page, table: Table) {
        let dots = self.results.iter().map(|result| Dot {
            name: result.method.clone(),
            value: result.roc_auc,
            interval: Some(result.roc_auc_interval),
            baseline: result.sign_test.is_none(),
        });
        let drawing = Drawing { digits: 3, label: "Area under the ROC curve" };
        let whiskers = "Whiskers: 95 % intervals after DeLong";
        compare(page, table, &dots.collect::<Vec<_>>(), drawing, whiskers);
        page.put("<h3>Curves</h3>");
        let coloured = self.coloured().into_iter().filter(|(_, class)| *class != "rest");
        let names = coloured.map(|(place, class)| (class, self.results[place].method.as_str()));
        let others = (self.results.len() > 5).then_some(("rest", "others"));
        page.legend(&names.chain(others).collect::<Vec<_>>());
        page.put("<div class=\"grid two\">");
        let name = &self.name;
        let (x, y) =
            (Axis::share("unrelated pairs accepted"), Axis::share("related pairs accepted"));
        let mut frame = Frame::new(WIDE, x, y, &format!("ROC curves on {name}"));
        frame.curve("chance", [(0.0, 0.0), (1.0, 1.0)].into_iter());
        page.figure("ROC", &self.curves(frame, roc));
        let (x, y) = (Axis::share("recall"), Axis::share("precision"));
        let frame = Frame::new(WIDE, x, y, &format!("Precision-recall curves on {name}"));
        page.figure("Precision and recall", &self.curves(frame, precision_recall));
        page.put("</div><h3>Scores</h3>");
        page.legend(&[("c0", "related"), ("c1", "unrelated"), ("line", "threshold")]);
        page.put("<div class=\"grid\">");
        for PairResult { method, scores, threshold, js_divergence, .. } in &self.results {
            let mut x = Axis::over(scores.iter().copied(), "score");
            (x.low, x.high) = (x.low.min(*threshold), x.high.max(*threshold));
            let [related, others] =
                [true, false].map(|wanted| of_label(&self.labels, scores, wanted));
            let what = format!("Scores of {method} for related and unrelated pairs");
            let frame = Frame::of_groups(MIDDLE, x, &what, [&related, &others], *threshold);
            page.figure(&format!("{method}, divergence {js_divergence:.4}"), &frame.finish());
        }
        page.put("</div>");
    }

    /// The indices of the coloured results (the baseline and the best other method) with their CSS
    /// classes. All others are grey, because a dozen colours cannot be distinguished.
    fn coloured(&self) -> Vec<(usize, &'static str)> {
        let mut order: Vec<usize> = (0..self.results.len()).collect();
        order.sort_by(|&a, &b| self.results[b].roc_auc.total_cmp(&self.results[a].roc_auc));
        let base = order.iter().position(|&place| self.results[place].sign_test.is_none());
        let baseline = base.map(|place| order.remove(place));
        let mut colours = ["c0", "c2", "c3", "c4"].into_iter();
        let best = order.iter().map(|&place| (place, colours.next().unwrap_or("rest")));
        baseline.map(|place| (place, "c1")).into_iter().chain(best).collect()
    }

    /// A curve of each method; coloured ones are drawn last, on top of the others.
    fn curves(&self, mut frame: Frame, points: Curve) -> String {
        for (place, class) in self.coloured().into_iter().rev() {
            let points = points(&self.labels, &self.results[place].scores, 120);
            frame.curve(class, points.unwrap_or_default().into_iter());
        }
        frame.finish()
    }
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
