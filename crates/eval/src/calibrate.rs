//! `cognate eval calibrate`: finds thresholds of methods on labelled pairs and writes them into the
//! model file.

use std::path::PathBuf;

use cognate::engine::calibration::{BINS, Threshold};
use cognate::engine::{Calibration, Calibrations, Engine, Measure, Query};
use cognate::model::update::Update;
use cognate::model::writer::{Draft, clash};
use cognate_files::input::Input;
use cognate_stats::classification::{Confusion, Weights, of_label};
use cognate_stats::distribution::{equal_edges, histogram, percentiles};
use cognate_stats::threshold::{Criterion, best_weighted_threshold};
use serde::Serialize;

use crate::contenders::Scores;
use crate::datasets::{self, PairSet, Source};
use crate::scoring::Scored;
use crate::{EvalError, Result, contenders, scoring};

#[derive(Debug, Clone)]
pub struct CalibrateOptions {
    pub file: PathBuf,
    pub methods: Vec<String>,
    /// Measures for vector methods; if empty, each method's own.
    pub measures: Vec<Measure>,
    pub aim: Criterion,
    /// The expected share of related pairs in use; if absent, that of the file.
    pub prior: Option<f64>,
    /// Whether opposed pairs count as unrelated, whatever their scores: for callers that do not
    /// join opposed texts either.
    pub drop_opposed: bool,
    pub output: PathBuf,
}

#[derive(Debug, Clone, Serialize)]
pub struct Calibrated {
    pub thresholds: Vec<CalibratedThreshold>,
    /// Names of methods that never reach the aim, and so have no threshold.
    pub not_reached: Vec<String>,
    pub path: PathBuf,
    pub fingerprint: String,
    pub digest: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct CalibratedThreshold {
    pub method: &'static str,
    pub measure: &'static str,
    #[serde(flatten)]
    pub threshold: Threshold,
    /// The 95 % interval of its precision; `None` if a prior other than the file's applies, as no
    /// counted share is then that precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_interval: Option<[f64; 2]>,
    pub recall_interval: [f64; 2],
}

impl std::fmt::Display for Calibrated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for found in &self.thresholds {
            let Threshold { threshold, precision, recall, f1, aim, prior, .. } = &found.threshold;
            let prior = prior.map_or(String::new(), |prior| format!(" of {prior} related"));
            let told = |[low, high]: [f64; 2]| format!(" ({low:.3}–{high:.3})");
            let around = found.precision_interval.map_or(String::new(), told);
            writeln!(
                f,
                "{:<20} {:<9}  threshold {threshold:>7.4} for {aim}{prior}  precision \
                 {precision:.3}{around}  recall {recall:.3}{}  F1 {f1:.3}",
                found.method,
                found.measure,
                told(found.recall_interval)
            )?;
        }
        for name in &self.not_reached {
            writeln!(f, "{name:<20} never reaches what is wanted: no threshold")?;
        }
        write!(
            f,
            "{}\n  fingerprint {}\n  digest {}",
            self.path.display(),
            self.fingerprint,
            self.digest
        )
    }
}

pub fn calibrate(engine: &Engine, options: &CalibrateOptions) -> Result<Calibrated> {
    if let Criterion::Precision(wanted) = options.aim
        && !(wanted > 0.0 && wanted <= 1.0)
    {
        let problem = format!("--aim: expected a precision above 0, at most 1, got {wanted}");
        return Err(EvalError::Options(problem));
    }
    if let Some(prior) = options.prior
        && !(prior > 0.0 && prior < 1.0)
    {
        let problem = format!("--prior: expected a share between 0 and 1, got {prior}");
        return Err(EvalError::Options(problem));
    }
    if let Some(problem) = clash(&[("-o", &options.output)], [options.file.as_path()]) {
        return Err(EvalError::Options(problem));
    }
    let field = contenders::methods(engine, &options.methods, &options.measures)?;
    if field.is_empty() {
        return Err(EvalError::Options("--methods: expected at least one method".to_owned()));
    }
    let source = Source { path: options.file.clone(), name: options.file.display().to_string() };
    let set = datasets::read_pairs(&source)?;
    let file_digest = Input::open(&options.file)?.digest()?;
    let texts = [(set.name.as_str(), set.texts.as_slice())];
    let scored = scoring::pairs(engine, &field, &texts)?.pop().unwrap_or_default();
    let opposed = if options.drop_opposed { opposed(engine, &set)? } else { Vec::new() };
    let (mut thresholds, mut not_reached) = (Vec::new(), Vec::new());
    let mut made = Vec::new();
    for (contender, scored) in field.iter().zip(&scored) {
        let Scores::Method(query) = contender.scores else { continue };
        let (method, measure) = (query.method, query.measure.unwrap_or_default());
        let Some((mut calibration, at)) = of(&set.labels, scored, &opposed, options) else {
            not_reached.push(contender.name.clone());
            continue;
        };
        calibration.threshold.file_digest.clone_from(&file_digest);
        let threshold = calibration.threshold.clone();
        thresholds.push(CalibratedThreshold {
            method: method.name(),
            measure: measure.name(),
            threshold,
            precision_interval: options.prior.is_none().then(|| at.precision_interval()),
            recall_interval: at.recall_interval(),
        });
        made.push((method, measure, calibration));
    }
    if thresholds.is_empty() {
        let problem = "no method's scores reach what is wanted; nothing was written";
        return Err(EvalError::Data { file: set.name, problem: problem.to_owned() });
    }
    let update = Update::new(engine.model(), &options.output)?;
    let mut calibrations = Calibrations::read(update.model())?;
    for (method, measure, calibration) in made {
        calibrations.insert(method, measure, calibration);
    }
    let tensors = calibrations.tensors();
    let mut draft = Draft::from_model(update.model());
    calibrations.put(&mut draft, &tensors);
    let written = update.write(draft)?;
    Ok(Calibrated {
        thresholds,
        not_reached,
        path: written.path,
        fingerprint: written.fingerprint,
        digest: written.digest,
    })
}

/// Whether the texts of each pair are opposed.
fn opposed(engine: &Engine, set: &PairSet) -> Result<Vec<bool>> {
    let unknown = |reason| EvalError::Options(format!("--opposes drop: {reason}"));
    engine.knows_opposites().map_err(unknown)?;
    let query = Query { opposes: true, ..contenders::query(engine.auto(), Measure::Cosine) };
    let told = engine.similarity(&set.texts, &query);
    let told = told.map_err(|source| EvalError::Query { file: set.name.clone(), source })?;
    Ok(told.opposes.iter().map(|kinds| !kinds.is_empty()).collect())
}

/// The threshold and calibration of a method, and the pairs that it accepts; `None` if it never
/// reaches the aim. No threshold accepts `opposed` pairs.
fn of(
    labels: &[bool],
    scored: &Scored,
    opposed: &[bool],
    options: &CalibrateOptions,
) -> Option<(Calibration, Confusion)> {
    let (scores, aim) = (&scored.scores, options.aim);
    let weights = match options.prior {
        Some(prior) => Weights::of_prior(labels, prior)?,
        None => Weights::EVEN,
    };
    let opposed = opposed.iter().copied().chain(std::iter::repeat(false));
    let accepted = scores.iter().zip(opposed);
    let accepted: Vec<f64> =
        accepted.map(|(&score, opposed)| if opposed { f64::NEG_INFINITY } else { score }).collect();
    let threshold = best_weighted_threshold(labels, &accepted, aim, weights)?;
    let at = Confusion::at(threshold, labels, &accepted)?;
    let quantiles = percentiles(scores)?;
    let (low, high) = (*quantiles.first()?, *quantiles.last()?);
    let edges = equal_edges(low, high.max(low.next_up()), BINS);
    let bins = |wanted: bool| {
        let counts = histogram(&of_label(labels, scores, wanted), &edges)?;
        Some(counts.into_iter().map(|count| count as f32).collect())
    };
    let aim = match aim {
        Criterion::F1 => "f1".to_owned(),
        Criterion::Accuracy => "accuracy".to_owned(),
        Criterion::Precision(wanted) => format!("precision={wanted}"),
        Criterion::Recall(wanted) => format!("recall={wanted}"),
    };
    let calibration = Calibration {
        threshold: Threshold {
            threshold,
            // Readers of the file must know that the figures do not hold where opposed pairs are
            // kept.
            aim: if options.drop_opposed { aim + " without opposed pairs" } else { aim },
            prior: options.prior,
            precision: at.weighted_precision(weights),
            recall: at.recall(),
            f1: at.weighted_f1(weights),
            pairs: labels.len() as u64,
            unscored: scored.unscored as u64,
            file_digest: String::new(),
            low,
            high,
        },
        quantiles: quantiles.into_iter().map(|quantile| quantile as f32).collect(),
        related: bins(true)?,
        unrelated: bins(false)?,
    };
    Some((calibration, at))
}
