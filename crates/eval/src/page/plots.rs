//! The plots of a report, each a drawing of numbers that were computed elsewhere.

use cognate_stats::curve::{precision_recall, roc};
use cognate_stats::distribution::{equal_edges, histogram};
use cognate_stats::page::frame::{Axis, Frame, MIDDLE, SMALL, WIDE};

use crate::pairs::{PairFile, PairResult};
use crate::sts::{Subtask, SubtaskResult};

/// Most points of a curve or cloud: more could not be distinguished.
const POINTS: usize = 800;
/// Bins of a drawn histogram; the divergence has its own.
const BINS: usize = 50;

/// Scores against gold scores.
pub(super) fn scatter(subtask: &Subtask, result: &SubtaskResult, class: &str) -> String {
    let x = Axis::over(subtask.gold.iter().copied(), "gold score");
    let y = Axis::over(result.scores.iter().copied(), "score");
    let what = format!("Scores of {} against gold scores of {}", result.method, subtask.name);
    let mut frame = Frame::new(SMALL, x, y, &what);
    let every = subtask.gold.len().div_ceil(POINTS).max(1);
    let points = subtask.gold.iter().copied().zip(result.scores.iter().copied());
    frame.dots(class, points.step_by(every));
    frame.finish()
}

/// Scores of related and of unrelated pairs, with the threshold.
pub(super) fn histograms(file: &PairFile, result: &PairResult) -> String {
    let mut x = Axis::over(result.scores.iter().copied(), "score");
    x.low = x.low.min(result.threshold);
    x.high = x.high.max(result.threshold);
    let edges = equal_edges(x.low, x.high, BINS);
    let shares = |wanted: bool| -> Vec<f64> {
        let pairs = file.labels.iter().zip(&result.scores);
        let numbers: Vec<f64> =
            pairs.filter(|(label, _)| **label == wanted).map(|(_, score)| *score).collect();
        let counts = histogram(&numbers, &edges).unwrap_or_default();
        counts.into_iter().map(|count| 100.0 * count as f64 / numbers.len().max(1) as f64).collect()
    };
    let (related, unrelated) = (shares(true), shares(false));
    let highest = related.iter().chain(&unrelated).copied().fold(0.1, f64::max);
    let y = Axis { low: 0.0, high: 1.05 * highest, label: "% of pairs" };
    let what = format!("Scores of {} for related and unrelated pairs", result.method);
    let mut frame = Frame::new(MIDDLE, x, y, &what);
    frame.steps("c1", &edges, &unrelated);
    frame.steps("c0", &edges, &related);
    frame.mark("threshold", result.threshold);
    frame.finish()
}

/// The results drawn in colour: the baseline and the best of the others, each with its class. The
/// rest are grey, because a dozen colours cannot be distinguished.
pub(super) fn coloured(file: &PairFile) -> Vec<(usize, &'static str)> {
    let mut order: Vec<usize> = (0..file.results.len()).collect();
    order.sort_by(|&a, &b| file.results[b].roc_auc.total_cmp(&file.results[a].roc_auc));
    let base = order.iter().position(|&place| file.results[place].sign_test.is_none());
    let baseline = base.map(|place| order.remove(place));
    let mut colours = ["c0", "c2", "c3", "c4"].into_iter();
    let best = order.iter().map(|&place| (place, colours.next().unwrap_or("rest")));
    baseline.map(|place| (place, "c1")).into_iter().chain(best).collect()
}

/// ROC curves of all methods.
pub(super) fn roc_curves(file: &PairFile) -> String {
    let x = Axis::share("unrelated pairs accepted");
    let y = Axis::share("related pairs accepted");
    let mut frame = Frame::new(WIDE, x, y, &format!("ROC curves on {}", file.name));
    frame.curve("chance", [(0.0, 0.0), (1.0, 1.0)].into_iter());
    // The coloured ones are drawn last, over the others.
    for (place, class) in coloured(file).into_iter().rev() {
        let points = roc(&file.labels, &file.results[place].scores, 120).unwrap_or_default();
        let points = points.iter().map(|at| (at.false_positive_rate, at.true_positive_rate));
        frame.curve(class, points);
    }
    frame.finish()
}

/// Precision-recall curves of all methods.
pub(super) fn precision_recall_curves(file: &PairFile) -> String {
    let (x, y) = (Axis::share("recall"), Axis::share("precision"));
    let mut frame = Frame::new(WIDE, x, y, &format!("Precision-recall curves on {}", file.name));
    for (place, class) in coloured(file).into_iter().rev() {
        let scores = &file.results[place].scores;
        let points = precision_recall(&file.labels, scores, 120).unwrap_or_default();
        frame.curve(class, points.iter().map(|at| (at.recall, at.precision)));
    }
    frame.finish()
}

/// The difference to the baseline of each query's average precision, the largest gain first.
pub(super) fn by_query(method: &str, one: &[f64], baseline: &[f64]) -> String {
    let mut gains: Vec<f64> = one.iter().zip(baseline).map(|(one, other)| one - other).collect();
    gains.sort_unstable_by(|a, b| b.total_cmp(a));
    let x = Axis { low: 0.0, high: gains.len().max(1) as f64, label: "queries" };
    let y = Axis::over(gains.iter().copied().chain([0.0]), "gain in average precision");
    let what = format!("Gain of {method} over the baseline by query");
    let mut frame = Frame::new(MIDDLE, x, y, &what);
    let zero = frame.up(0.0);
    for (place, &gain) in gains.iter().enumerate() {
        let at = frame.across(place as f64 + 0.5);
        let class = if gain >= 0.0 { "stick c0" } else { "stick c1" };
        let to = frame.up(gain);
        frame.line(class, [at, zero], [at, to]);
    }
    frame.finish()
}
