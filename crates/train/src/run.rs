//! The frame of a training run, shared by all trainers: output files, the checkpoint and what it is
//! bound to, the loop over epochs with the curve of the loss, and common parts of models and report
//! pages.
//!
//! What a step learns is not known here: trainers hold the mathematics.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cognate::methods::means::learned_idf;
use cognate::model::provenance::TrainingFile;
use cognate::model::unknown::Fallback;
use cognate::model::writer::{Draft, Written, clash};
use cognate::model::{Model, Unknown, disk};
use cognate_files::ReadError;
use cognate_files::progress::Progress;
use cognate_stats::page::frame::{Axis, Frame};
use cognate_stats::page::{Head, Page};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::{Result, TrainError};

const POINTS: usize = 100;
/// The section of a model that records how its vectors were trained.
pub const TRAINED_VECTORS: &str = "trained-vectors";

#[derive(Debug, Clone)]
pub struct RunFiles {
    pub output: PathBuf,
    pub report: Option<PathBuf>,
    pub checkpoint: PathBuf,
    pub restart: bool,
}

impl RunFiles {
    /// Refuses to overwrite a file that the run reads, except that the output may be the base
    /// model. `beside` lists further output files with their flags.
    pub fn check<'p>(
        &self,
        beside: &[(&'static str, &Option<PathBuf>)],
        read: impl IntoIterator<Item = &'p PathBuf>,
        model: Option<&'p PathBuf>,
    ) -> Result<()> {
        let mut written = vec![("--checkpoint", self.checkpoint.as_path())];
        for (flag, path) in beside.iter().chain(&[("--report", &self.report)]) {
            written.extend(path.as_deref().map(|path| (*flag, path)));
        }
        check_outputs(&self.output, &written, read, model)
    }

    /// Returns the checkpoint of this run. Runs with the same `options` and digests in `data` have the
    /// same outcome, bit for bit.
    pub fn checkpoint(
        &self,
        options: &impl Serialize,
        data: &impl Serialize,
    ) -> Result<Checkpoint> {
        let identity = (env!("CARGO_PKG_VERSION"), options, data);
        Checkpoint::begin(&self.checkpoint, &identity, self.restart)
    }

    /// Ends a run after its model was written: removes the checkpoint, writes the report.
    pub fn finish(&self, checkpoint: &Checkpoint, page: impl FnOnce() -> String) -> Result<()> {
        checkpoint.remove()?;
        self.report.as_ref().map_or(Ok(()), |path| write(path, &page()))
    }
}

pub(crate) fn demand(holds: bool, problem: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(TrainError::Options(problem.into())) }
}

/// Refuses a number that is not finite and above 0.
pub(crate) fn demand_positive(flag: &str, number: f64) -> Result<()> {
    let holds = number.is_finite() && number > 0.0;
    demand(holds, format!("{flag}: expected a number above 0"))
}

/// Refuses to overwrite an input file, and two outputs with the same path.
pub(crate) fn check_outputs<'p>(
    output: &Path,
    beside: &[(&str, &Path)],
    read: impl IntoIterator<Item = &'p PathBuf>,
    model: Option<&'p PathBuf>,
) -> Result<()> {
    let taken = clash(beside, model.map(PathBuf::as_path));
    let all = [&[("-o", output)], beside].concat();
    match clash(&all, read.into_iter().map(PathBuf::as_path)).or(taken) {
        Some(problem) => Err(TrainError::Options(problem)),
        None => Ok(()),
    }
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    disk::replace_by(path, text.as_bytes())
        .map_err(|source| TrainError::Write { path: path.to_owned(), source })
}

/// The name of a training file, without its folder, and the digest of its bytes.
pub(crate) fn trained_on(path: &Path) -> Result<TrainingFile> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut hasher = blake3::Hasher::new();
    if path.metadata().map_err(failed)?.is_file() {
        hasher.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
    }
    Ok(TrainingFile { name, digest: hasher.finalize().to_hex().to_string() })
}

pub fn unfit<'p>(files: impl IntoIterator<Item = &'p PathBuf>, problem: &str) -> TrainError {
    let files: Vec<String> = files.into_iter().map(|file| file.display().to_string()).collect();
    TrainError::Data { file: files.join(", "), problem: problem.to_owned() }
}

pub(crate) fn unfit_data(files: &[Vec<TrainingFile>; 2], problem: &str) -> TrainError {
    let names: Vec<&str> = files.iter().flatten().map(|file| file.name.as_str()).collect();
    TrainError::Data { file: names.join(", "), problem: problem.to_owned() }
}

pub fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| TrainError::Options(format!("--threads: {error}")))
}

pub fn check_finite(rows: &[f32]) -> Result<()> {
    let wrong = rows.iter().find(|number| !number.is_finite());
    let shown = wrong.map(f32::to_string).unwrap_or_default();
    demand(wrong.is_none(), format!("a vector holds {shown}; try a smaller --rate"))
}

#[derive(Debug, Clone, Default)]
pub struct StepLoss {
    pub sums: Vec<f64>,
    pub examples: u64,
    /// Words or texts processed, for the displayed rate.
    pub units: u64,
}

pub trait Trainer {
    const PARTS: usize;

    fn begin(&mut self, epoch: u32) -> u64;

    /// Steps between two checks of the clock.
    fn span(&self) -> u64 {
        1
    }

    /// Takes steps; `gone` is the share of the run that was done before a step.
    fn step(&mut self, steps: Range<u64>, gone: &(dyn Fn(u64) -> f64 + Sync)) -> StepLoss;

    /// Returns the progress line after some steps; `units` and `time` count this process alone.
    fn describe(&self, loss: &StepLoss, units: u64, time: Duration) -> String;

    fn tables(&mut self) -> Vec<(&'static str, &mut [u8])>;
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Position {
    epoch: u32,
    step: u64,
    /// For each hundredth of the run: the sums of losses as bits, and the number of examples.
    losses: Vec<(Vec<u64>, u64)>,
}

#[derive(Debug)]
pub struct Course {
    /// For each part of the loss: the share of the run done, and the mean loss there.
    pub curves: Vec<Vec<(f64, f64)>>,
    pub units: u64,
    pub time: Duration,
    /// The share of the run that was restored from a checkpoint.
    pub resumed_at: Option<f64>,
}

/// Runs a trainer from its checkpoint to the end; writes a checkpoint whenever `every` has passed.
pub fn drive<T: Trainer>(
    trainer: &mut T,
    epochs: u32,
    every: Duration,
    checkpoint: &Checkpoint,
) -> Result<Course> {
    let losses = vec![(vec![0; T::PARTS], 0); POINTS];
    let mut at = Position { epoch: 0, step: 0, losses };
    let (mut resumed, mut resumed_at) = (false, None);
    if let Some(state) = checkpoint.load::<Position>()? {
        for (name, table) in trainer.tables() {
            let kept = state.tables.get(name).map(Vec::as_slice).unwrap_or_default();
            if kept.len() != table.len() || state.position.losses.len() != POINTS {
                let problem = format!("its table `{name}` has another size; remove it");
                return Err(checkpoint.problem(problem));
            }
            table.copy_from_slice(kept);
        }
        at = state.position;
        resumed = true;
    }
    let progress = Progress::run("training");
    let (begun, mut kept, mut units) = (Instant::now(), Instant::now(), 0);
    while at.epoch < epochs {
        let steps = trainer.begin(at.epoch);
        let epoch = f64::from(at.epoch);
        let gone = |step: u64| (epoch + step as f64 / steps as f64) / f64::from(epochs);
        while at.step < steps {
            let span = at.step..steps.min(at.step + trainer.span());
            let share = gone(span.start);
            if std::mem::take(&mut resumed) {
                resumed_at = Some(share);
            }
            at.step = span.end;
            let loss = trainer.step(span, &gone);
            units += loss.units;
            let (sums, examples) =
                &mut at.losses[((share * POINTS as f64) as usize).min(POINTS - 1)];
            for (sum, loss) in sums.iter_mut().zip(&loss.sums) {
                *sum = (f64::from_bits(*sum) + loss).to_bits();
            }
            *examples += loss.examples;
            progress.at((gone(at.step) * 1e6) as u64, 1_000_000);
            progress.say(trainer.describe(&loss, units, begun.elapsed()));
            let problem = "the loss is no longer a number; try a smaller --rate";
            demand(loss.sums.iter().sum::<f64>().is_finite(), problem)?;
            if kept.elapsed() >= every {
                let tables = trainer.tables();
                let tables: Vec<_> = tables.iter().map(|(name, table)| (*name, &**table)).collect();
                checkpoint.save(&at, &tables)?;
                kept = Instant::now();
            }
        }
        at = Position { epoch: at.epoch + 1, step: 0, ..at };
    }
    let curve = |part: usize| {
        let points = at.losses.iter().enumerate().filter(|(_, (_, examples))| *examples > 0);
        let mean = |(point, (sums, examples)): (usize, &(Vec<u64>, u64))| {
            let loss = f64::from_bits(sums[part]) / *examples as f64;
            ((point as f64 + 0.5) / POINTS as f64, loss)
        };
        points.map(mean).collect()
    };
    let curves = (0..T::PARTS).map(curve).collect();
    Ok(Course { curves, units, time: begun.elapsed(), resumed_at })
}

pub fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| TrainError::Options(error.to_string()))
}

pub fn created_by() -> String {
    concat!("cognate ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Returns a model's rule for unlisted words, without the parts whose vectors the training did not
/// change.
pub(crate) fn without_pieces(unknown: &Unknown) -> Unknown {
    match unknown {
        Unknown::Fallback(rules) => {
            Unknown::Fallback(Fallback { piece_norm: None, ..rules.clone() })
        }
        Unknown::Subword | Unknown::Skip => Unknown::Skip,
    }
}

/// Learned idf weights also fit other vectors; everything else fitted to the old vectors does not.
pub(crate) fn carry_weights<'a>(base: &'a Model, draft: &mut Draft<'a>) {
    carry_section(base, learned_idf::SECTION, draft);
}

pub fn carry_section<'a>(base: &'a Model, name: &str, draft: &mut Draft<'a>) {
    let prefix = format!("section.{name}");
    let of_base = Draft::from_model(base);
    draft.metadata.extend(of_base.metadata.into_iter().filter(|(key, _)| *key == prefix));
    let dotted = format!("{prefix}.");
    draft.tables.extend(of_base.tables.into_iter().filter(|table| table.name.starts_with(&dotted)));
}

/// Returns the page about a run that wrote a model; it begins with `facts`.
pub fn page(head: [&str; 2], written: &Written, facts: &[(&str, String)]) -> Page {
    let [kicker, title] = head;
    let subject = written.path.file_stem().unwrap_or_default().to_string_lossy();
    Page::new(&Head { kicker, title, subject: &subject, facts })
}

pub fn put_curve(
    page: &mut Page,
    [title, drawing, caption]: [&str; 3],
    label: &'static str,
    epochs: u32,
    points: &[(f64, f64)],
) {
    page.section(title);
    let epochs = f64::from(epochs);
    let x = Axis { low: 0.0, high: epochs, label: "epochs" };
    let points: Vec<_> = points.iter().map(|(share, loss)| (share * epochs, *loss)).collect();
    page.figure(caption, &Frame::of_curve(drawing, x, label, None, &points).finish());
}
