//! The outcome of a run, as text, as JSON and as one HTML page: the weights by rank, the loss by epoch,
//! κ against the split error, and the distances of pairs not trained on.

use cognate::model::Model;
use cognate::model::provenance::Separation;
use cognate::model::writer::Written;
use cognate_stats::distribution::{equal_edges, histogram};
use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::page::{Cell, Head, Page, Table};
use serde::Serialize;

use crate::weights::{NamedSet, Tried};

/// Bins of a drawn histogram; the divergence has its own.
const BINS: usize = 50;

pub(super) fn html(course: &Course, model: &Model) -> String {
    let set = &course.set;
    let facts = facts(course, model);
    let mut page = Page::new(&Head {
        kicker: "cognate train weights",
        title: "Weights by rank of idf",
        subject: &set.set,
        facts: &facts,
    });
    page.section("Weights");
    let ranks = set.weights.iter().enumerate();
    let points = ranks.map(|(rank, &weight)| (rank as f64 + 1.0, f64::from(weight)));
    page.put("<div class=\"grid two\">");
    let caption = "What each rank counts; the word of the highest idf has the first. Texts of \
                   another length spread these weights over their words.";
    let drawing = curve("Weights by rank", ["rank by idf", "weight"], Some(0.0), points);
    page.figure(caption, &drawing);
    let epochs = course.losses.iter().enumerate();
    let points = epochs.map(|(epoch, &loss)| (epoch as f64 + 1.0, loss));
    let caption = "Mean loss of each epoch, the penalty included.";
    page.figure(caption, &curve("Loss by epoch", ["epoch", "mean loss"], None, points));
    page.put("</div>");
    page.end_section();
    if !course.tried.is_empty() {
        page.section("κ");
        page.put("<div class=\"grid two\">");
        let tried = course.tried.iter();
        let points = tried.map(|tried| (tried.kappa.log2(), 100.0 * tried.split_error));
        let caption = "Mean split error of five-fold cross-validation on the pairs trained on; κ in \
                       multiples of one over the median distance.";
        let labels = ["κ, as a power of two", "split error, %"];
        page.figure(caption, &curve("Split error by κ", labels, None, points));
        page.put("</div>");
        page.end_section();
    }
    judged(&mut page, course);
    page.finish()
}

fn facts(course: &Course, model: &Model) -> Vec<(&'static str, String)> {
    let set = &course.set;
    let stem = model.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut facts = vec![
        ("model", stem),
        ("set", set.set.clone()),
        ("measure", set.measure.name().to_owned()),
        ("weights", set.weights.len().to_string()),
    ];
    if let Some(trained) = &set.trained {
        facts.push(("loss", trained.loss.clone()));
        facts.extend(trained.kappa.map(|kappa| ("κ", kappa.to_string())));
        facts.push(("unit of distance", format!("{:.4}", trained.unit)));
        facts.push(("λ", trained.lambda.to_string()));
        facts.push(("pairs", trained.couples.to_string()));
        facts.push(("left out", trained.left_out.to_string()));
        facts.push(("epochs", trained.epochs.to_string()));
        facts.push(("seed", trained.seed.to_string()));
        let files = trained.files.iter().map(|file| file.name.as_str());
        facts.push(("files", files.collect::<Vec<_>>().join(", ")));
        facts.push(("vectors", trained.vectors.clone()));
    }
    facts
}

fn judged(page: &mut Page, course: &Course) {
    let judged = &course.judged;
    page.section("Pairs not trained on");
    let sides = [("before", &judged.before), ("after", &judged.after)];
    let figures = sides.map(|(name, side)| {
        let Separation { split_error, js_divergence } = side.parting;
        (name, [format!("{:.2} %", 100.0 * split_error), format!("{js_divergence:.4}")])
    });
    let rows = figures
        .iter()
        .map(|(name, figures)| (*name, figures.iter().map(|figure| Cell::plain(figure)).collect()));
    page.table(&Table {
        stub: "weights",
        columns: vec!["split error", "JS divergence"],
        rows: rows.collect(),
        notes: vec![
            "Split error at the threshold that is best for the pairs trained on; Jensen-Shannon \
             divergence to base 2, over 100 equal bins of the joint range. Before: the same weight \
             for every rank.",
        ],
    });
    page.legend(&[("c0", "related"), ("c1", "unrelated"), ("line", "threshold")]);
    page.put("<div class=\"grid two\">");
    for (name, side) in sides {
        page.figure(&format!("Distances {name} training"), &distances(&judged.related, side));
    }
    page.put("</div>");
    page.end_section();
}

/// A curve with dots; its upward axis reaches down to `low`, if that is given.
fn curve(
    what: &str,
    [across, up]: [&'static str; 2],
    low: Option<f64>,
    points: impl Iterator<Item = (f64, f64)>,
) -> String {
    let points: Vec<_> = points.collect();
    let x = Axis::over(points.iter().map(|point| point.0), across);
    let y = Axis::over(points.iter().map(|point| point.1).chain(low), up);
    let mut frame = Frame::new(WIDE, x, y, what);
    frame.curve("c0", points.iter().copied());
    frame.dots("c0", points.into_iter());
    frame.finish()
}

fn distances(related: &[bool], side: &Side) -> String {
    let numbers = side.distances.iter().copied().chain([side.threshold]);
    let x = Axis::over(numbers, "distance");
    let edges = equal_edges(x.low, x.high, BINS);
    let shares = |wanted: bool| -> Vec<f64> {
        let couples = related.iter().zip(&side.distances);
        let of: Vec<f64> =
            couples.filter(|(label, _)| **label == wanted).map(|(_, distance)| *distance).collect();
        let counts = histogram(&of, &edges).unwrap_or_default();
        counts.into_iter().map(|count| 100.0 * count as f64 / of.len().max(1) as f64).collect()
    };
    let (related, others) = (shares(true), shares(false));
    let highest = related.iter().chain(&others).copied().fold(0.1, f64::max);
    let y = Axis { low: 0.0, high: 1.05 * highest, label: "% of pairs" };
    let mut frame = Frame::new(WIDE, x, y, "Distances of related and unrelated pairs");
    frame.steps("c1", &edges, &others);
    frame.steps("c0", &edges, &related);
    frame.mark("threshold", side.threshold);
    frame.finish()
}

#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    #[serde(flatten)]
    pub course: Course,
    pub in_use: bool,
    #[serde(flatten)]
    pub written: Written,
}

#[derive(Debug, Clone, Serialize)]
pub struct Course {
    #[serde(flatten)]
    pub set: NamedSet,
    /// Each κ of the search.
    pub tried: Vec<Tried>,
    pub losses: Vec<f64>,
    /// Progress restored from the checkpoint.
    pub resumed: Resumed,
    /// Time of the parts of this process.
    pub seconds: Seconds,
    /// The distances behind the figures, for plots.
    #[serde(skip)]
    pub judged: Judged,
}

/// Progress restored from the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resumed {
    pub runs: usize,
    pub epochs: usize,
}

/// Time of the parts of a run, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Couples read and looked up.
    pub reading: f64,
    pub forms: f64,
    pub search: f64,
    pub training: f64,
    /// The split errors before and after.
    pub judging: f64,
}

/// Couples not trained on, as the untrained and the trained weights see them.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    pub related: Vec<bool>,
    /// Under the weights that training began with.
    pub before: Side,
    /// Under the trained weights.
    pub after: Side,
}

/// Couples under some weights.
#[derive(Debug, Clone, Default)]
pub struct Side {
    pub distances: Vec<f64>,
    /// The distance that best parts the couples trained on.
    pub threshold: f64,
    /// How well the distances separate the labels.
    pub parting: Separation,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Course { set, resumed, seconds, losses, judged, .. } = &self.course;
        writeln!(f, "{}", self.written.path.display())?;
        let usage = if self.in_use { "in use" } else { "not in use" };
        let count = set.weights.len();
        writeln!(f, "  set {} ({usage}): {count} weights for {}", set.set, set.measure.name())?;
        if let Some(trained) = &set.trained {
            let out = trained.left_out;
            let judged = judged.related.len();
            writeln!(
                f,
                "  {} couples trained on, {judged} judged by, {out} left out for a text without a \
                 known word",
                trained.couples
            )?;
            if let Some(kappa) = trained.kappa {
                let tried = self.course.tried.len();
                let found =
                    if tried > 0 { format!(", the best of {tried}") } else { String::new() };
                writeln!(f, "  κ {kappa}{found}")?;
            }
        }
        if *resumed != Resumed::default() {
            let Resumed { runs, epochs } = resumed;
            writeln!(f, "  went on after {runs} runs of the search and {epochs} epochs")?;
        }
        if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
            let epochs = losses.len();
            writeln!(
                f,
                "  {epochs} epochs, mean loss {first:.5} in the first, {last:.5} in the last"
            )?;
        }
        let Seconds { forms, search, training, .. } = seconds;
        writeln!(f, "  {forms:.1} s for forms, {search:.1} s for κ, {training:.1} s for epochs")?;
        writeln!(f, "            split error   JS divergence")?;
        for (name, side) in [("before", &judged.before), ("after", &judged.after)] {
            let Separation { split_error, js_divergence } = side.parting;
            writeln!(f, "  {name:6}    {:9.2} %   {js_divergence:13.4}", 100.0 * split_error)?;
        }
        let shown = |weights: &[f32]| -> String {
            weights.iter().map(|weight| format!("{weight:.3}")).collect::<Vec<_>>().join(" ")
        };
        writeln!(f, "  weights {}", shown(&set.weights))?;
        write!(f, "{}", self.written)
    }
}
