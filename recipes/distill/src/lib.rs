//! `cognate-distill`: word vectors whose plain sum points where a sentence transformer puts the
//! whole text.
//!
//! [`texts`] makes texts of running text, [`teacher`] says where each of them lies, [`cache`] keeps
//! that on disk, [`space`] moves it to a few hundred dimensions, and [`student`] learns word vectors
//! from it, driven by [`run`]. The start are the teacher's vectors of single words, or the vectors of
//! a model that shall fit other texts.

pub mod blocks;
pub mod cache;
mod distilled;
pub mod generated;
mod lessons;
mod output;
pub mod pieces;
mod report;
pub mod run;
pub mod sources;
pub mod space;
mod start;
pub mod student;
pub mod teacher;
pub mod texts;
mod tune;
pub mod turn;
pub mod words;

use std::path::PathBuf;
use std::time::Duration;

use cognate::model::format::{Dtype, Limits};
use cognate::model::{Model, OpenOptions};
use cognate::text::Normalisation;
use cognate_train::checkpoint::Checkpoint;
use cognate_train::outputs::Outputs;
use cognate_train::{TrainError, outputs};
use serde::Serialize;

use crate::cache::Asked;
pub use crate::distilled::{Distilled, TeacherSaid};
use crate::generated::Wanted;
use crate::lessons::Lessons;
use crate::output::Output;
use crate::run::{Run, Schedule};
use crate::sources::{Line, Reader};
use crate::start::{Start, Trained};
use crate::student::Student;
use crate::texts::{Numbers, Texts};
pub use crate::tune::Tuned;
use crate::tune::Tuning;

/// What to distil and how.
#[derive(Debug, Clone)]
pub struct DistillOptions {
    /// Folders of sentence transformers.
    pub teachers: Vec<PathBuf>,
    /// Running text, a sentence a line.
    pub text: Vec<PathBuf>,
    /// Texts taken as they are, one a line.
    pub whole: Vec<PathBuf>,
    /// Texts that must not be learned from.
    pub apart: Vec<PathBuf>,
    /// The column of tables that holds the text.
    pub column: String,
    /// The words, the most frequent first; with a model to start from, its own.
    pub words: Option<PathBuf>,
    /// A model whose vectors are the start.
    pub start: Option<PathBuf>,
    /// Words of the texts that are added to those of that model.
    pub add_words: usize,
    /// The model file to write.
    pub output: PathBuf,
    /// A file for a page with the course of the loss.
    pub report: Option<PathBuf>,
    /// Where vectors of teachers are kept.
    pub cache: PathBuf,
    /// How many texts of each kind are made.
    pub numbers: Numbers,
    /// Families of texts that vectors are tuned on through the scores of pairs.
    pub families: usize,
    /// Words that are written; the others are only trained along.
    pub keep: Option<usize>,
    /// Pieces of words that are fitted for words that are not listed, at most.
    pub pieces: usize,
    /// Rare words that pieces are fitted to, beside words left out, misspellings and compounds.
    pub rare_words: Option<PathBuf>,
    /// Numbers a row; with a model to start from, its own.
    pub dims: usize,
    /// Rules that turn texts into words; with a model to start from, its own.
    pub normalisation: Normalisation,
    /// Element type of the vectors; unless told, that of the model to start from, or F32.
    pub dtype: Option<Dtype>,
    pub threads: usize,
    /// How the run goes.
    pub schedule: Schedule,
    /// Where the state of the unfinished run is kept.
    pub checkpoint: PathBuf,
    /// Whether a state that is there is forgotten.
    pub restart: bool,
    /// Terms under which the vectors may be used, kept in the file.
    pub licence: Option<String>,
    /// The method that `auto` stands for.
    pub auto_method: Option<String>,
}

/// Settings and files that fix every bit of the outcome of training.
#[derive(Serialize)]
struct Identity<'i> {
    version: &'static str,
    teachers: &'i [TeacherSaid],
    texts: &'i str,
    start: Option<&'i str>,
    dims: usize,
    epochs: u32,
    batch: usize,
    rate: u32,
    divergence: u32,
    seed: u64,
}

/// Distils word vectors and writes the model.
pub fn distill(options: &DistillOptions) -> Result<Distilled, TrainError> {
    check(options)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| TrainError::Options(format!("--threads: {error}")))?;
    pool.install(|| distill_here(options))
}

fn distill_here(options: &DistillOptions) -> Result<Distilled, TrainError> {
    let base = match &options.start {
        Some(path) => Some(Model::open(path, &OpenOptions::default())?),
        None => None,
    };
    let rules = base.as_ref().map_or(&options.normalisation, Model::normalisation);
    let mut reader = Reader::new(rules, &options.column);
    let apart = reader.apart(&options.apart)?;
    let running = reader.lines(&options.text, &apart)?;
    let whole = reader.lines(&options.whole, &apart)?;
    let kept_apart = running.apart + whole.apart;
    let lines: Vec<&Line> = running.lines.iter().chain(&whole.lines).collect();
    let start = Start::read(options, base.as_ref(), rules, &lines)?;
    drop(lines);
    let whole = whole.lines.into_iter().map(|line| line.text).collect();
    let words = (start.words.as_slice(), start.shares.as_slice());
    let (numbers, seed) = (&options.numbers, options.schedule.seed);
    let wanted = Wanted { most: numbers.generated, rules, apart: &apart, seed };
    let texts = Texts::make(&running.lines, whole, words, numbers, &wanted);
    drop(running.lines);
    if texts.is_empty() {
        let file = options.text.iter().chain(&options.whole).map(|file| file.display().to_string());
        let problem = "no text of at least two words".to_owned();
        return Err(TrainError::Data { file: file.collect::<Vec<_>>().join(", "), problem });
    }

    let dims = base.as_ref().map_or(options.dims, |model| model.vectors().dims());
    let mut lessons = Lessons::ask(options, &texts, &start, rules, dims)?;
    let rows = start.rows(base.as_ref(), &mut lessons);
    let mut student = Student::new(rows, dims);
    let teachers = std::mem::take(&mut lessons.teachers);
    let checkpoint = checkpoint(options, base.as_ref(), &teachers, &lessons.digest, dims)?;
    let run = Run {
        bags: &lessons.bags,
        targets: &lessons.targets,
        texts: &lessons.usable,
        frozen: &start.frozen,
        schedule: options.schedule,
        checkpoint: &checkpoint,
    };
    let course = run.go(&mut student)?;
    if base.is_none() {
        turn::to_principal_axes(&mut student, &lessons.bags, lessons.of_texts());
        start.mark_numbers(&mut student);
    }
    let wanted = Wanted { most: options.families, ..wanted };
    let tuned = tune(options, &start, &texts, &mut student, (&wanted, &mut lessons.asked))?;
    if let Some(number) = student.rows.iter().find(|number| !number.is_finite()) {
        let problem = format!("a vector holds {number}; try a smaller --rate");
        return Err(TrainError::Options(problem));
    }

    let listed = options.keep.unwrap_or(usize::MAX).min(start.words.len());
    let pieces = lessons.parts.as_ref().map(|parts| {
        let trained = Trained { start: &start, rows: &student.rows, listed, dims };
        trained.pieces(parts, options.pieces)
    });

    let output = Output {
        options,
        base: base.as_ref(),
        rules,
        start: &start,
        rows: &student.rows[..listed * dims],
        pieces: pieces.as_ref(),
        dims,
        teachers: &teachers,
        texts: texts.kinds().map(<[String]>::len),
        digest: &lessons.digest,
        last: course.points.last().copied(),
    };
    let written = output.write()?;
    checkpoint.remove()?;
    let seconds = lessons.asked.time.as_secs_f64();
    let distilled = Distilled {
        teachers,
        texts: texts.kinds().map(<[String]>::len),
        kept_apart,
        words: [start.words.len(), listed],
        pieces: pieces.map(|fitted| (fitted.pieces.len(), fitted.agreement)),
        tuned,
        left_out: start.left_out,
        added: start.added,
        dims,
        kept: lessons.kept,
        asked: lessons.asked.texts,
        asked_per_second: lessons.asked.texts as f64 / seconds.max(1e-9),
        cache: options.cache.clone(),
        seconds: course.time.as_secs_f64(),
        resumed_at: course.resumed_at,
        points: course.points,
        written,
    };
    if let Some(path) = &options.report {
        outputs::write(path, &report::html(&distilled, options))?;
    }
    Ok(distilled)
}

/// Tunes the vectors on families of the texts, if any are wanted.
fn tune(
    options: &DistillOptions,
    start: &Start,
    texts: &Texts,
    student: &mut Student,
    (wanted, asked): (&Wanted<'_>, &mut Asked),
) -> Result<Option<Tuned>, TrainError> {
    if wanted.most == 0 {
        return Ok(None);
    }
    let families = tune::families(texts, &start.words, student, wanted);
    let said = lessons::say(options, &families, asked)?;
    let (words, frozen) = (start.words.as_slice(), start.frozen.as_slice());
    let tuning = Tuning { words, rules: wanted.rules, frozen, seed: wanted.seed };
    Ok(Some(tuning.go(student, &families, &said)?))
}

/// Options that cannot be carried out are refused before anything is read.
fn check(options: &DistillOptions) -> Result<(), TrainError> {
    let refuse = |problem: &str| Err(TrainError::Options(problem.to_owned()));
    let pace = &options.schedule.pace;
    if !(pace.rate.is_finite() && pace.rate > 0.0) {
        return refuse("--rate: expected a number above 0");
    }
    if !(pace.divergence.is_finite() && pace.divergence >= 0.0) {
        return refuse("--divergence: expected a number from 0");
    }
    if options.teachers.is_empty() {
        return refuse("--teacher: expected a folder");
    }
    if options.text.is_empty() && options.whole.is_empty() {
        return refuse("--text: expected a file");
    }
    if options.words.is_none() == options.start.is_none() {
        return refuse("expected --words LIST or --start MODEL");
    }
    if options.dims as u64 > Limits::DEFAULT.dims {
        return refuse("--dims: more than a model file may have");
    }
    let written = Outputs {
        output: &options.output,
        checkpoint: Some(&options.checkpoint),
        beside: &[("--report", &options.report)],
    };
    let files = options.text.iter().chain(&options.whole).chain(&options.apart);
    let files = files.chain(&options.words).chain(&options.rare_words);
    written.check(files, options.start.as_ref())
}

fn checkpoint(
    options: &DistillOptions,
    base: Option<&Model>,
    teachers: &[TeacherSaid],
    texts: &str,
    dims: usize,
) -> Result<Checkpoint, TrainError> {
    let Schedule { epochs, batch, pace, seed, .. } = options.schedule;
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION"),
        teachers,
        texts,
        start: base.map(Model::fingerprint),
        dims,
        epochs,
        batch,
        rate: pace.rate.to_bits(),
        divergence: pace.divergence.to_bits(),
        seed,
    };
    Checkpoint::begin(&options.checkpoint, &identity, options.restart)
}

/// How often the state is kept unless told otherwise.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
