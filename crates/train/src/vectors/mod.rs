//! `cognate train vectors`: word vectors learned from running text, and a model file made of them.
//!
//! [`siamese`] is the method, [`word2vec`] the baselines; [`corpus`] reads for all of them and
//! [`trainer`] takes their steps. The start is random, or the vectors of a model that shall know more.

pub mod corpus;
pub mod output;
pub mod siamese;
pub mod tables;
pub mod trainer;
pub mod word2vec;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use cognate::model::format::Limits;
use cognate::model::writer::Written;
use cognate::model::{Model, OpenOptions};
use cognate::text::Normalisation;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::Serialize;

use crate::run::RunFiles;
use crate::vectors::corpus::Corpus;
use crate::vectors::output::Output;
use crate::vectors::siamese::{Others, Siamese};
use crate::vectors::tables::Blocks;
use crate::vectors::trainer::{Learner, Schedule, Tables, VectorsTrainer};
use crate::vectors::word2vec::Word2Vec;
use crate::{TrainError, run, sampling};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Vectors made for being averaged: neighbouring sentences against others
    SiameseCbow,
    /// word2vec: a word from the mean of its neighbours
    Cbow,
    /// word2vec: a word from each of its neighbours
    SkipGram,
}

impl Objective {
    pub fn name(self) -> &'static str {
        match self {
            Self::SiameseCbow => "siamese-cbow",
            Self::Cbow => "cbow",
            Self::SkipGram => "skip-gram",
        }
    }

    /// Default number of negative samples.
    pub fn negatives(self) -> usize {
        match self {
            Self::SiameseCbow => 2,
            Self::Cbow | Self::SkipGram => 5,
        }
    }

    /// Default rate of the first step.
    pub fn rate(self) -> f32 {
        match self {
            Self::SiameseCbow => 0.01,
            Self::Cbow => 0.05,
            Self::SkipGram => 0.025,
        }
    }
}

/// What to train and how. What is serialised fixes the bits of the outcome, with the text and the model.
#[derive(Debug, Clone, Serialize)]
pub struct VectorsOptions {
    /// Running text: a sentence a line, an empty line after a paragraph, two after a document.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    #[serde(skip)]
    pub run: RunFiles,
    /// A file for the vectors in word2vec's text format.
    #[serde(skip)]
    pub text: Option<PathBuf>,
    pub objective: Objective,
    /// A model whose vectors training starts from.
    #[serde(skip)]
    pub from: Option<PathBuf>,
    /// Rules that turn texts into words; with a model to start from, its own.
    #[serde(skip)]
    pub normalisation: Normalisation,
    /// Dimensions; with a model to start from, its own.
    pub dims: usize,
    /// Minimum count of a word.
    pub least: u64,
    pub batch: usize,
    /// Negative samples.
    pub negatives: usize,
    pub others: Others,
    /// Maximum words on each side, for word2vec.
    pub window: usize,
    /// word2vec's subsampling threshold.
    pub sample: f64,
    pub seed: u64,
    pub schedule: Schedule,
    /// Licence that the model states.
    #[serde(skip)]
    pub licence: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    pub objective: Objective,
    pub words: usize,
    pub dims: usize,
    /// Words of the text, and how many of them are in the vocabulary.
    pub tokens: [u64; 2],
    pub sentences: usize,
    /// Seconds of training.
    pub seconds: f64,
    pub words_per_second: f64,
    /// The share of the run restored from a checkpoint.
    pub resumed_at: Option<f64>,
    /// Mean loss at each hundredth of the run, with the share of the run gone.
    pub losses: Vec<(f64, f64)>,
    /// The ten words of smallest norm among the thousand most frequent, the smallest first.
    pub smallest: Vec<(String, f32)>,
    /// The ten of largest norm among them, the largest first.
    pub largest: Vec<(String, f32)>,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.written.path.display())?;
        writeln!(
            f,
            "  {} words × {} dimensions, {} bytes",
            self.words, self.dims, self.written.bytes
        )?;
        let [read, known] = self.tokens;
        let sentences = self.sentences;
        writeln!(f, "  {read} words of text, {known} in the vocabulary, {sentences} sentences")?;
        if let Some(share) = self.resumed_at {
            writeln!(f, "  went on at {:.1} %", 100.0 * share)?;
        }
        let rate = self.words_per_second / 1e6;
        writeln!(f, "  {:.1} s, {rate:.2} million words a second", self.seconds)?;
        if let (Some((_, first)), Some((_, last))) = (self.losses.first(), self.losses.last()) {
            writeln!(f, "  loss {first:.4} at the beginning, {last:.4} at the end")?;
        }
        let names = |words: &[(String, f32)]| -> String {
            words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
        };
        writeln!(f, "  smallest norms: {}", names(&self.smallest))?;
        writeln!(f, "  largest norms: {}", names(&self.largest))?;
        write!(f, "{}", self.written)
    }
}

pub fn train(options: &VectorsOptions) -> Result<Trained, TrainError> {
    check(options)?;
    let base = match &options.from {
        Some(path) => Some(Model::open(path, &OpenOptions::default())?),
        None => None,
    };
    let rules = base.as_ref().map_or(&options.normalisation, Model::normalisation);
    let mut corpus = Corpus::read(&options.files, rules, options.least)?;
    let start = Start::new(&mut corpus, base.as_ref(), options);
    let bytes = size_of_val(start.tables.rows.as_slice()) as u64;
    if bytes > Limits::DEFAULT.model_bytes {
        let (words, dims) = (start.words.len(), start.dims);
        let problem = format!(
            "{words} words of {dims} dimensions are more than a model file may hold; try fewer \
             --dims or a larger --min-count"
        );
        return Err(TrainError::Options(problem));
    }
    // Threads that work apart change the bits of word2vec.
    let apart = options.objective != Objective::SiameseCbow && !options.schedule.hogwild;
    let threads = if apart { options.schedule.threads } else { 0 };
    let data = (&corpus.digest, base.as_ref().map(Model::fingerprint), threads);
    let checkpoint = options.run.checkpoint(options, &data)?;
    let blocks = Blocks::of_words(&start.busy, start.dims);
    let learner = match options.objective.shape(options, start.dims) {
        None => {
            let others = (options.others, options.negatives);
            let siamese = Siamese::new(&corpus, options.batch, others, options.seed);
            if siamese.is_empty() {
                let problem = "no sentence has a neighbour; neighbours are lines without two empty \
                               lines between them";
                return Err(run::unfit(&options.files, problem));
            }
            Learner::Siamese(siamese)
        }
        Some(shape) => Learner::Word2Vec(Word2Vec::new(&corpus, &start.busy, shape, options.seed)),
    };
    let Schedule { epochs, every, threads, .. } = options.schedule;
    let mut trainer =
        VectorsTrainer::new(&corpus, &blocks, options.schedule, learner, start.tables);
    let course =
        run::pool(threads)?.install(|| run::drive(&mut trainer, epochs, every, &checkpoint))?;
    let tables = trainer.tables;
    run::check_finite(&tables.rows)?;
    let losses = course.curves.into_iter().next().unwrap_or_default();
    let output = Output {
        options,
        base: base.as_ref(),
        corpus: &corpus,
        words: &start.words,
        rows: &tables.rows,
        dims: start.dims,
        loss: losses.last().map(|(_, loss)| *loss),
    };
    let written = output.write()?;
    let [smallest, largest] = by_norm(&start.words, &start.busy, &tables.rows, start.dims);
    let seconds = course.time.as_secs_f64();
    let trained = Trained {
        objective: options.objective,
        words: start.words.len(),
        dims: start.dims,
        tokens: [corpus.tokens, corpus.len() as u64],
        sentences: corpus.sentences(),
        seconds,
        words_per_second: course.units as f64 / seconds.max(1e-9),
        resumed_at: course.resumed_at,
        losses,
        smallest,
        largest,
        written,
    };
    options.run.finish(&checkpoint, || html(&trained, options))?;
    Ok(trained)
}

impl Objective {
    fn shape(self, options: &VectorsOptions, dims: usize) -> Option<word2vec::Shape> {
        let model = match self {
            Self::SiameseCbow => return None,
            Self::Cbow => word2vec::Model::Cbow,
            Self::SkipGram => word2vec::Model::SkipGram,
        };
        let VectorsOptions { window, negatives, sample, .. } = *options;
        Some(word2vec::Shape { model, dims, window, negatives, sample })
    }
}

/// Refuses invalid options before anything is read.
fn check(options: &VectorsOptions) -> Result<(), TrainError> {
    let refuse = |problem: &str| Err(TrainError::Options(problem.to_owned()));
    let schedule = &options.schedule;
    if schedule.adagrad && options.objective != Objective::SiameseCbow {
        return refuse("--optimiser adagrad: only Siamese CBOW is trained by it");
    }
    if !(schedule.rate.is_finite() && schedule.rate > 0.0) {
        return refuse("--rate: expected a number above 0");
    }
    if !(options.sample >= 0.0 && options.sample <= 1.0) {
        return refuse("--sample: expected a share of the text, from 0 to 1");
    }
    let most = Limits::DEFAULT.dims;
    if options.dims as u64 > most {
        let problem = format!("--dims: expected at most {most}, got {}", options.dims);
        return Err(TrainError::Options(problem));
    }
    options.run.check(&[("--text", &options.text)], &options.files, options.from.as_ref())
}

/// Words that are frequent enough for their norm to mean something, by their norms.
const FREQUENT: usize = 1000;

fn by_norm(words: &[String], busy: &[u64], rows: &[f32], dims: usize) -> [Vec<(String, f32)>; 2] {
    let mut places: Vec<usize> = (0..words.len()).filter(|&word| busy[word] > 0).collect();
    places.sort_by_key(|&word| std::cmp::Reverse(busy[word]));
    places.truncate(FREQUENT);
    let norm = |word: usize| vector::norm(Row::F32(&rows[word * dims..(word + 1) * dims]));
    let mut found: Vec<(String, f32)> =
        places.into_iter().map(|word| (words[word].clone(), norm(word))).collect();
    found.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let smallest = found.iter().take(10).cloned().collect();
    let largest = found.iter().rev().take(10).cloned().collect();
    [smallest, largest]
}

/// How often the state is kept unless told otherwise.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

fn html(trained: &Trained, options: &VectorsOptions) -> String {
    let schedule = &options.schedule;
    let facts = [
        ("objective", trained.objective.name().to_owned()),
        ("vectors", format!("{} × {}", trained.words, trained.dims)),
        ("words of text", trained.tokens[0].to_string()),
        ("sentences", trained.sentences.to_string()),
        ("epochs", schedule.epochs.to_string()),
        ("rate", schedule.rate.to_string()),
        ("optimiser", if schedule.adagrad { "adagrad" } else { "sgd" }.to_owned()),
        ("seed", options.seed.to_string()),
        ("fingerprint", trained.written.fingerprint.clone()),
    ];
    let mut page = run::page(["cognate train vectors", "Word vectors"], &trained.written, &facts);
    let words = ["Loss", "The loss over the run", "Mean loss of each hundredth of the run."];
    run::put_curve(&mut page, words, "mean loss of an example", schedule.epochs, &trained.losses);
    page.section("Lengths of vectors");
    let words = |list: &[(String, f32)]| {
        let shown = list.iter().map(|(word, norm)| format!("{word} {norm:.3}"));
        shown.collect::<Vec<_>>().join(", ")
    };
    page.note(&format!("Shortest of the thousand most frequent: {}.", words(&trained.smallest)));
    page.note(&format!("Longest of them: {}.", words(&trained.largest)));
    page.end_section();
    page.finish()
}

/// Deviation of the first numbers of Siamese CBOW (section 3 of the paper).
const DEVIATION: f64 = 0.01;
/// Purposes of random numbers.
const START: u64 = 0;

/// Words and their first numbers.
#[derive(Debug)]
pub struct Start {
    /// All words of the model to be.
    pub words: Vec<String>,
    /// How often each occurs in the text.
    pub busy: Vec<u64>,
    pub dims: usize,
    pub tables: Tables,
}

impl Start {
    /// The words of the corpus with random vectors; with a model to start from, the model's words
    /// with theirs, then those that are new. The corpus gets the numbers of these words.
    pub fn new(corpus: &mut Corpus, base: Option<&Model>, options: &VectorsOptions) -> Self {
        let dims = base.map_or(options.dims, |model| model.vectors().dims());
        let mut words: Vec<String> = Vec::new();
        let mut rows: Vec<f32> = Vec::new();
        if let Some(model) = base {
            words.extend(model.vocabulary().words().map(str::to_owned));
            rows.resize(words.len() * dims, 0.0);
            for (word, row) in rows.chunks_exact_mut(dims).enumerate() {
                if let Some(stored) = model.vectors().row(word as u32) {
                    stored.copy_to(row);
                }
            }
        }
        let deviation = match rows.len() {
            0 => DEVIATION,
            // New words are as long as the known ones are in the mean.
            count => {
                let squares: f64 = rows.iter().map(|&value| f64::from(value).powi(2)).sum();
                (squares / count as f64).sqrt()
            }
        };
        let numbers = Self::number(corpus, &mut words);
        let random = rows.len()..words.len() * dims;
        let mut draws = sampling::generator(options.seed, START, [0, 0]);
        rows.extend(random.map(|_| match options.objective {
            Objective::SiameseCbow => (deviation * sampling::normal(&mut draws)) as f32,
            Objective::Cbow | Objective::SkipGram => {
                ((sampling::share(&mut draws) - 0.5) / dims as f64) as f32
            }
        }));
        let mut busy = vec![0; words.len()];
        for (&number, &count) in numbers.iter().zip(&corpus.counts) {
            busy[number as usize] = count;
        }
        corpus.renumber(numbers);
        let beside = match options.objective {
            Objective::SiameseCbow if !options.schedule.adagrad => Vec::new(),
            _ => vec![0.0; rows.len()],
        };
        Self { words, busy, dims, tables: Tables { rows, beside } }
    }

    /// The number of each word of the corpus among all words, new ones added.
    fn number(corpus: &Corpus, words: &mut Vec<String>) -> Vec<u32> {
        let known: HashMap<&str, u32> =
            words.iter().enumerate().map(|(number, word)| (word.as_str(), number as u32)).collect();
        let mut next = words.len() as u32;
        let mut numbers = Vec::with_capacity(corpus.words.len());
        let mut new = Vec::new();
        for word in &corpus.words {
            numbers.push(known.get(word.as_str()).copied().unwrap_or_else(|| {
                new.push(word.clone());
                next += 1;
                next - 1
            }));
        }
        words.extend(new);
        numbers
    }
}
