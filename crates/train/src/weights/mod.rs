//! `cognate train weights`: learns weights for the words of a text by the rank of their idf, from
//! couples of texts that are related or not (De Boom et al. 2016).
//!
//! [`learned_idf`](cognate::methods::means::learned_idf) applies the weights. Departures from the paper:
//!
//! - distances are measured in units of their median under the initial weights, so that learning
//!   rate, κ and λ mean the same for word vectors of any length;
//! - weights can be trained for the cosine, too, as `1 − cosine`.
//!
//! Weights mostly fall with the rank. If texts differ in length, the second and third may still be the
//! largest: only long texts use them, and the means of long texts are closer together than those of
//! short ones, which the median loss evens out. The first is lower if the rarest words have poor vectors.
//!
//! Weights for the Euclidean distance are stored with a factor that makes the median distance of the
//! training couples 1, so that its score `1 / (1 + distance)` is a half, whatever size λ and κ gave the
//! weights. Weights for the cosine are stored as trained, because a factor does not change it.

mod couples;
mod descent;
mod forms;
mod set;
#[cfg(test)]
mod tests;
mod trainer;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use cognate::methods::Measure;
use cognate::model::Model;
use cognate::model::provenance::Separation;
use cognate::model::writer::Written;
use cognate_stats::classification::of_label;
use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::page::table::{Better, Cell, Column, Table};
use cognate_stats::page::{Head, Page};
pub use descent::Tried;
pub use forms::KEPT_BYTES;
use serde::Serialize;
pub use set::{Exported, ImportOptions, Imported, MAX_RANKS, NamedSet, Use, export_stored, import};

use crate::run::{RunFiles, demand};
use crate::weights::trainer::Run;
use crate::{Result, run};

const ORDER_OF_BATCHES: u64 = 1;
const ORDER_OF_COUPLES: u64 = 2;
const HELD_OUT: u64 = 0;
const SEARCHED: u64 = 1;
const HALF: usize = 50;
const FOLDS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Couples shall lie on their side of the batch's median distance
    Median,
    /// Related couples shall be near, others far
    Contrastive,
}

impl Loss {
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Contrastive => "contrastive",
        }
    }
}

/// The steepness κ of the median loss, in multiples of 1 / median distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Kappa {
    Searched,
    Given(f64),
}

/// What to train and how. The serialised fields, the couples and the model determine every bit of the
/// outcome.
#[derive(Debug, Clone, Serialize)]
pub struct WeightsOptions {
    #[serde(skip)]
    pub couples: Vec<PathBuf>,
    #[serde(skip)]
    pub validation: Option<PathBuf>,
    #[serde(skip)]
    pub model: PathBuf,
    #[serde(skip)]
    pub run: RunFiles,
    #[serde(skip)]
    pub set: Option<String>,
    #[serde(skip)]
    pub usage: Use,
    pub loss: Loss,
    pub measure: Measure,
    pub max_length: usize,
    pub lambda: f64,
    pub kappa: Kappa,
    pub seed: u64,
    pub epochs: usize,
    #[serde(skip)]
    pub threads: Option<NonZeroUsize>,
    #[serde(skip)]
    pub export: Option<PathBuf>,
    /// Maximum bytes of what is computed of the couples once; what does not fit is computed at each
    /// use, which changes no bit.
    #[serde(skip)]
    pub memory: usize,
}

pub fn train(options: &WeightsOptions) -> Result<Trained> {
    train_until(options, &|| Ok(()))
}

fn train_until(
    options: &WeightsOptions,
    go_on: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Trained> {
    check(options)?;
    let usual = || format!("{}-{}", options.loss.name(), options.measure.name());
    let name = options.set.clone().unwrap_or_else(usual);
    set::check_name(&name)?;
    let model = set::open(&options.model)?;
    let pool = run::pool(options.threads.map_or(0, NonZeroUsize::get))?;
    let run = Run { options, model: &model, go_on };
    let (course, checkpoint) = pool.install(|| run.go(&name))?;
    if let Some(path) = &options.export {
        set::export(&course.set, path)?;
    }
    let (written, in_use) = course.set.write_into(&model, options.usage, &options.run.output)?;
    options.run.finish(&checkpoint, || html(&course, &model))?;
    Ok(Trained { course, in_use, written })
}

fn check(options: &WeightsOptions) -> Result<()> {
    let WeightsOptions { max_length, lambda, kappa, loss, epochs, run, .. } = options;
    let problem = format!("--max-length: expected 1 to {MAX_RANKS} weights");
    demand((1..=MAX_RANKS).contains(max_length), problem)?;
    let problem = "--lambda: expected a number that is not below 0";
    demand(lambda.is_finite() && *lambda >= 0.0, problem)?;
    if let Kappa::Given(kappa) = kappa {
        demand(*loss == Loss::Median, "--kappa: only the median loss has one")?;
        let problem = "--kappa: expected auto or a number above 0";
        demand(kappa.is_finite() && *kappa > 0.0, problem)?;
    }
    demand(*epochs > 0, "--epochs: expected at least 1")?;
    let read = options.couples.iter().chain(&options.validation);
    run.check(&[("--export", &options.export)], read, Some(&options.model))
}

fn html(course: &Course, model: &Model) -> String {
    let set = &course.set;
    let facts = facts(course, model);
    let (kicker, title) = ("cognate train weights", "Weights by rank of idf");
    let mut page = Page::new(&Head { kicker, title, subject: &set.set, facts: &facts });
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
    }
    page.section("Pairs not trained on");
    let sides = [("before", &course.judged.before), ("after", &course.judged.after)];
    let rows = sides.map(|(name, side)| {
        let Separation { split_error, js_divergence } = side.parting;
        let figures = [format!("{:.2} %", 100.0 * split_error), format!("{js_divergence:.4}")];
        (name.to_owned(), Vec::from(figures.map(Cell::plain)))
    });
    let columns = ["split error", "JS divergence"].map(|name| Column::new(name, Better::Neither));
    let note = "Split error at the threshold that is best for the pairs trained on; Jensen-Shannon \
                divergence to base 2, over 100 equal bins of the joint range. Before: the same weight \
                for every rank.";
    page.table(&Table {
        stub: "weights",
        columns: columns.into(),
        rows: rows.into(),
        notes: vec![note.to_owned()],
        ..Table::default()
    });
    page.legend(&[("c0", "related"), ("c1", "unrelated"), ("line", "threshold")]);
    page.put("<div class=\"grid two\">");
    let related = &course.judged.related;
    for (name, ValidationSide { distances, threshold, .. }) in sides {
        let x = Axis::over(distances.iter().copied().chain([*threshold]), "distance");
        let [near, far] = [true, false].map(|wanted| of_label(related, distances, wanted));
        let what = "Distances of related and unrelated pairs";
        let frame = Frame::of_groups(WIDE, x, what, [&near, &far], *threshold);
        page.figure(&format!("Distances {name} training"), &frame.finish());
    }
    page.put("</div>");
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
        let files: Vec<&str> = trained.files.iter().map(|file| file.name.as_str()).collect();
        facts.extend([
            ("unit of distance", format!("{:.4}", trained.unit)),
            ("λ", trained.lambda.to_string()),
            ("pairs", trained.couples.to_string()),
            ("left out", trained.left_out.to_string()),
            ("epochs", trained.epochs.to_string()),
            ("seed", trained.seed.to_string()),
            ("files", files.join(", ")),
            ("vectors", trained.vectors.clone()),
        ]);
    }
    facts
}

fn curve(
    what: &str,
    [across, up]: [&'static str; 2],
    low: Option<f64>,
    points: impl Iterator<Item = (f64, f64)>,
) -> String {
    let points: Vec<_> = points.collect();
    let x = Axis::over(points.iter().map(|point| point.0), across);
    let mut frame = Frame::of_curve(what, x, up, low, &points);
    frame.dots("c0", points.into_iter());
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
    pub tried: Vec<Tried>,
    pub losses: Vec<f64>,
    pub bytes: [usize; 2],
    pub resumed: Resumed,
    pub seconds: Seconds,
    #[serde(skip)]
    pub judged: ValidationDistances,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resumed {
    pub runs: usize,
    pub epochs: usize,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    pub reading: f64,
    pub forms: f64,
    pub search: f64,
    pub training: f64,
    pub judging: f64,
}

#[derive(Debug, Clone, Default)]
pub struct ValidationDistances {
    pub related: Vec<bool>,
    pub before: ValidationSide,
    pub after: ValidationSide,
}

#[derive(Debug, Clone, Default)]
pub struct ValidationSide {
    pub distances: Vec<f64>,
    pub threshold: f64,
    pub parting: Separation,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Course { set, resumed, seconds, losses, judged, bytes: [each, kept], .. } =
            &self.course;
        writeln!(f, "{}\n{}", self.written.path.display(), set.said(self.in_use))?;
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
                write!(f, "  κ {kappa}")?;
                match self.course.tried.len() {
                    0 => writeln!(f)?,
                    tried => writeln!(f, ", the best of {tried}")?,
                }
            }
        }
        if *resumed != Resumed::default() {
            let Resumed { runs, epochs } = resumed;
            writeln!(f, "  resumed after {runs} runs of the search and {epochs} epochs")?;
        }
        if let (epochs, Some(first), Some(last)) = (losses.len(), losses.first(), losses.last()) {
            let first = format!("mean loss {first:.5} in the first");
            writeln!(f, "  {epochs} epochs, {first}, {last:.5} in the last")?;
        }
        let Seconds { forms, search, training, .. } = seconds;
        writeln!(f, "  {forms:.1} s for forms, {search:.1} s for κ, {training:.1} s for epochs")?;
        match kept {
            0 => writeln!(
                f,
                "  {each} bytes of each couple, computed at each use: --memory has no room"
            )?,
            kept => {
                writeln!(f, "  {each} bytes of each couple kept, {} MiB", kept.div_ceil(1 << 20))?
            }
        }
        writeln!(f, "            split error   JS divergence")?;
        for (name, side) in [("before", &judged.before), ("after", &judged.after)] {
            let Separation { split_error, js_divergence } = side.parting;
            writeln!(f, "  {name:6}    {:9.2} %   {js_divergence:13.4}", 100.0 * split_error)?;
        }
        let shown: Vec<_> = set.weights.iter().map(|weight| format!("{weight:.3}")).collect();
        writeln!(f, "  weights {}", shown.join(" "))?;
        write!(f, "{}", self.written)
    }
}
