//! `cognate-distill`: word vectors whose plain sum approximates a sentence transformer's vector of
//! the whole text.
//!
//! [`texts`] prepares texts from running text, [`teacher`] embeds them, [`cache`] stores the
//! vectors on disk, [`space`] reduces them to a few hundred dimensions, and [`student`] learns word
//! vectors from them, driven by [`trainer`]. Training starts from the teacher's vectors of single
//! words, or from a model that is to be adapted to other texts.

pub mod blocks;
pub mod cache;
mod distilled;
pub mod generated;
pub mod languages;
mod lessons;
mod output;
pub mod pieces;
pub mod sources;
pub mod space;
mod start;
pub mod student;
pub mod teacher;
pub mod texts;
pub mod trainer;
mod tune;
pub mod turn;
pub mod words;

use std::path::PathBuf;
use std::time::Duration;

use cognate::model::format::{Dtype, Limits};
use cognate::model::{Model, OpenOptions};
use cognate::text::Normalisation;
use cognate_train::run::RunFiles;
use cognate_train::{TrainError, run};

use crate::cache::EmbeddingCount;
pub use crate::distilled::{Distilled, TeacherInfo};
use crate::generated::grammar::Patterns;
use crate::generated::{Grammar, Wanted};
use crate::languages::{Folder, Words};
use crate::lessons::Lessons;
use crate::output::Output;
use crate::sources::{Line, Lines, Reader};
use crate::start::Start;
use crate::student::{Student, Work};
use crate::texts::{Numbers, Texts};
use crate::trainer::{Point, Schedule, StudentTrainer};
pub use crate::tune::Tuned;
use crate::tune::Tuning;

/// What to distil and how.
#[derive(Debug, Clone)]
pub struct DistillOptions {
    /// Folders with sentence transformers.
    pub teachers: Vec<PathBuf>,
    /// Files of running text, a sentence a line.
    pub text: Vec<PathBuf>,
    /// Folders of languages, each with words and running text, instead of the two.
    pub languages: Vec<PathBuf>,
    /// Files of texts to use unchanged, one a line.
    pub whole: Vec<PathBuf>,
    /// Files of texts that training must not use.
    pub apart: Vec<PathBuf>,
    /// The text column of tables.
    pub column: String,
    /// File of the words, the most frequent first; with a base model, its words are used.
    pub words: Option<PathBuf>,
    /// The base model, if training starts from its vectors.
    pub start: Option<PathBuf>,
    /// Number of words that are added to the base model from the texts.
    pub add_words: usize,
    pub run: RunFiles,
    /// Folder for the teachers' vectors.
    pub cache: PathBuf,
    /// How many texts of each kind to prepare.
    pub numbers: Numbers,
    /// Number of text families for tuning on the scores of pairs.
    pub families: usize,
    /// Number of words to write; the others are only trained along.
    pub keep: Option<usize>,
    /// Maximum pieces to fit for words that are not listed.
    pub pieces: usize,
    /// File of rare words to fit pieces to, in addition to omitted words, misspellings and
    /// compounds.
    pub rare_words: Option<PathBuf>,
    /// Dimensions; those of the base model, if there is one.
    pub dims: usize,
    /// Rules that turn texts into words; those of the base model, if there is one.
    pub normalisation: Normalisation,
    /// Element type of the vectors; default: that of the base model, or F32.
    pub dtype: Option<Dtype>,
    pub threads: usize,
    /// Epochs, batches, rates and checkpoints.
    pub schedule: Schedule,
    /// Licence of the vectors, stored in the file.
    pub licence: Option<String>,
    /// The method that `auto` resolves to.
    pub auto_method: Option<String>,
}

/// Distils word vectors and writes the model.
pub fn distill(options: &DistillOptions) -> Result<Distilled, TrainError> {
    check(options)?;
    run::pool(options.threads)?.install(|| distill_here(options))
}

fn distill_here(options: &DistillOptions) -> Result<Distilled, TrainError> {
    let base = match &options.start {
        Some(path) => Some(Model::open(path, &OpenOptions::default())?),
        None => None,
    };
    let rules = base.as_ref().map_or(&options.normalisation, Model::normalisation);
    let mut reader = Reader::new(rules, &options.column);
    let apart = reader.apart(&options.apart)?;
    let folders: Vec<Folder> =
        options.languages.iter().map(|folder| Folder::read(folder)).collect::<Result<_, _>>()?;
    let files: Vec<&[PathBuf]> = match folders.as_slice() {
        [] => vec![&options.text],
        folders => folders.iter().map(|folder| folder.text.as_slice()).collect(),
    };
    let running: Vec<Lines> =
        files.iter().map(|files| reader.lines(files, &apart)).collect::<Result<_, _>>()?;
    let whole = reader.lines(&options.whole, &apart)?;
    let kept_apart = whole.apart + running.iter().map(|lines| lines.apart).sum::<usize>();
    let lines = running.iter().flat_map(|lines| &lines.lines);
    let lines: Vec<&Line> = lines.chain(&whole.lines).collect();
    let words = Words::read(&folders, rules)?;
    let start = Start::read(options, base.as_ref(), words, rules, &lines)?;
    drop(lines);
    let mut whole: Vec<String> = whole.lines.into_iter().map(|line| line.text).collect();
    let (numbers, seed) = (options.numbers.among(running.len()), options.schedule.seed);
    let wanted =
        Wanted { most: numbers.generated, rules, apart: &apart, seed, grammar: Grammar::English };
    let texts: Vec<Texts> = running
        .iter()
        .enumerate()
        .map(|(at, lines)| {
            let words = (start.words.as_slice(), start.shares_of(at));
            let grammar = match folders.get(at) {
                Some(folder) if !folder.is_english() => {
                    let patterns = folder.grammar.as_deref().map(Patterns::read).transpose()?;
                    start.grammar_of(at, patterns)
                }
                _ => Grammar::English,
            };
            let wanted = Wanted { grammar, ..wanted.clone() };
            let whole = std::mem::take(&mut whole);
            Ok(Texts::make(&lines.lines, whole, words, &numbers, &wanted))
        })
        .collect::<Result<_, TrainError>>()?;
    drop(running);
    if texts.iter().all(Texts::is_empty) {
        let files = options.text.iter().chain(&options.whole).chain(&options.languages);
        return Err(run::unfit(files, "no text of at least two words"));
    }

    let dims = base.as_ref().map_or(options.dims, |model| model.dims());
    let mut lessons = Lessons::ask(options, &texts, &start, rules, dims)?;
    let rows = lessons.rows(&start, base.as_ref());
    let teachers = std::mem::take(&mut lessons.teachers);
    let data = (&teachers, &lessons.digest, base.as_ref().map(Model::fingerprint), dims);
    let checkpoint = options.run.checkpoint(&options.schedule, &data)?;
    let mut trainer = StudentTrainer {
        student: Student::new(rows, dims),
        bags: &lessons.bags,
        targets: &lessons.targets,
        texts: &lessons.usable,
        frozen: &start.frozen,
        schedule: options.schedule,
        order: Vec::new(),
        work: Work::default(),
    };
    let Schedule { epochs, every, .. } = options.schedule;
    let course = run::drive(&mut trainer, epochs, every, &checkpoint)?;
    let points = Point::of(&course);
    let mut student = trainer.student;
    if base.is_none() {
        turn::to_principal_axes(&mut student, &lessons.bags, lessons.of_texts());
        start.mark_numbers(&mut student);
    }
    let wanted = Wanted { most: options.families, ..wanted };
    // Options allow families of one language alone.
    let tuned = tune(options, &start, &texts[0], &mut student, (&wanted, &mut lessons.asked))?;
    run::check_finite(&student.rows)?;

    let listed = options.keep.unwrap_or(usize::MAX).min(start.words.len());
    let pieces = lessons
        .parts
        .as_ref()
        .map(|parts| parts.fit(&start, &student.rows, [listed, options.pieces]));

    let output = Output {
        options,
        base: base.as_ref(),
        rules,
        start: &start,
        rows: &student.rows[..listed * dims],
        pieces: pieces.as_ref(),
        dims,
        teachers: &teachers,
        texts: texts::numbers(&texts),
        digest: &lessons.digest,
        last: points.last().copied(),
    };
    let written = output.write()?;
    let seconds = lessons.asked.time.as_secs_f64();
    let distilled = Distilled {
        teachers,
        texts: texts::numbers(&texts),
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
        points,
        written,
    };
    options.run.finish(&checkpoint, || distilled::html(&distilled, options))?;
    Ok(distilled)
}

/// Tunes the vectors on families of texts, if the options ask for it.
fn tune(
    options: &DistillOptions,
    start: &Start,
    texts: &Texts,
    student: &mut Student,
    (wanted, asked): (&Wanted<'_>, &mut EmbeddingCount),
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

/// Refuses invalid options before anything is read.
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
    let several = !options.languages.is_empty();
    if options.text.is_empty() && options.whole.is_empty() && !several {
        return refuse("--text: expected a file");
    }
    let (words, start) = (options.words.is_some(), options.start.is_some());
    if [words, start, several].into_iter().filter(|&given| given).count() != 1 {
        return refuse("expected one of --words LIST, --start MODEL and --language FOLDER");
    }
    if several && !(options.text.is_empty() && options.whole.is_empty()) {
        return refuse("--language: the texts stand in its folder, not after --text or --whole");
    }
    if several && options.families > 0 {
        return refuse("--families: only for one language");
    }
    if options.dims as u64 > Limits::DEFAULT.dims {
        return refuse("--dims: more than a model file may have");
    }
    let files = options.text.iter().chain(&options.whole).chain(&options.apart);
    let files = files.chain(&options.words).chain(&options.rare_words);
    options.run.check(&[], files, options.start.as_ref())
}

/// Default interval between checkpoints.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
