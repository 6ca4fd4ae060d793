//! `cognate train vectors`: learns word vectors from running text and writes them as a model file.
//!
//! [`siamese`] is the method, [`word2vec`] the baselines; [`corpus`] reads the text for all of them
//! and [`trainer`] runs their steps. Training starts from random vectors or from those of a given
//! model.

pub mod corpus;
pub mod siamese;
pub mod tables;
pub mod trainer;
pub mod word2vec;

use std::collections::HashMap;
use std::io;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognate::model::disk::LocalDisk;
use cognate::model::format::{AUTO_METHOD, Dtype, Limits};
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table, Target, Written};
use cognate::model::{Counts, Frequency, Model, OpenOptions, Unknown, disk};
use cognate::text::Normalisation;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use serde::Serialize;

use crate::run::{RunFiles, TRAINED_VECTORS, carry_weights, demand, demand_positive, json};
use crate::vectors::corpus::Corpus;
use crate::vectors::siamese::{Others, Siamese};
use crate::vectors::tables::Blocks;
use crate::vectors::trainer::{Learner, Schedule, Tables, VectorsTrainer};
use crate::vectors::word2vec::Word2Vec;
use crate::{Result, TrainError, run, sampling};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Vectors trained for averaging: neighbouring sentences against random sentences
    SiameseCbow,
    /// word2vec: predicts a word from the mean of its neighbours
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

    pub fn negatives(self) -> usize {
        match self {
            Self::SiameseCbow => 2,
            Self::Cbow | Self::SkipGram => 5,
        }
    }

    pub fn rate(self) -> f32 {
        match self {
            Self::SiameseCbow => 0.01,
            Self::Cbow => 0.05,
            Self::SkipGram => 0.025,
        }
    }
}

/// What to train and how. The serialised fields, the text and the model determine every bit of the
/// outcome.
#[derive(Debug, Clone, Serialize)]
pub struct VectorsOptions {
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    #[serde(skip)]
    pub run: RunFiles,
    #[serde(skip)]
    pub text: Option<PathBuf>,
    pub objective: Objective,
    #[serde(skip)]
    pub from: Option<PathBuf>,
    #[serde(skip)]
    pub normalisation: Normalisation,
    pub dims: usize,
    pub least: u64,
    pub batch: usize,
    pub negatives: usize,
    pub others: Others,
    /// Maximum words on each side, for word2vec.
    pub window: usize,
    pub sample: f64,
    pub seed: u64,
    pub schedule: Schedule,
    #[serde(skip)]
    pub licence: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    pub objective: Objective,
    pub words: usize,
    pub dims: usize,
    pub tokens: [u64; 2],
    pub sentences: usize,
    pub seconds: f64,
    pub words_per_second: f64,
    pub resumed_at: Option<f64>,
    pub losses: Vec<(f64, f64)>,
    /// Of the thousand most frequent words, the ten of smallest norm, the smallest first.
    pub smallest: Vec<(String, f32)>,
    /// The ten words of largest norm, largest first.
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
            writeln!(f, "  resumed at {:.1} %", 100.0 * share)?;
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

pub fn train(options: &VectorsOptions) -> Result<Trained> {
    check(options)?;
    let open = |path: &PathBuf| Model::open(path, &OpenOptions::default());
    let base = options.from.as_ref().map(open).transpose()?;
    let rules = base.as_ref().map_or(&options.normalisation, Model::normalisation);
    let mut corpus = Corpus::read(&options.files, rules, options.least)?;
    let start = Start::new(&mut corpus, base.as_ref(), options);
    let bytes = size_of_val(start.tables.rows.as_slice()) as u64;
    let (words, dims) = (start.words.len(), start.dims);
    let problem = format!(
        "{words} words of {dims} dimensions are more than a model file may hold; try fewer --dims \
         or a larger --min-count"
    );
    demand(bytes <= Limits::DEFAULT.model_bytes, problem)?;
    // With word2vec, unsynchronised threads change the bits of the outcome.
    let apart = options.objective != Objective::SiameseCbow && !options.schedule.hogwild;
    let threads = if apart { options.schedule.threads } else { 0 };
    let data = (&corpus.digest, base.as_ref().map(Model::fingerprint), threads);
    let checkpoint = options.run.checkpoint(options, &data)?;
    let blocks = Blocks::of_words(&start.busy, dims);
    let learner = match options.objective.shape(options, dims) {
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
        dims,
        loss: losses.last().map(|(_, loss)| *loss),
    };
    let written = output.write()?;
    let [smallest, largest] = by_norm(&start.words, &start.busy, &tables.rows, dims);
    let seconds = course.time.as_secs_f64();
    let trained = Trained {
        objective: options.objective,
        words,
        dims,
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

fn check(options: &VectorsOptions) -> Result<()> {
    let VectorsOptions { schedule, sample, dims, run, .. } = options;
    let by_sgd = !schedule.adagrad || options.objective == Objective::SiameseCbow;
    demand(by_sgd, "--optimiser adagrad: only Siamese CBOW is trained by it")?;
    demand_positive("--rate", schedule.rate.into())?;
    let problem = "--sample: expected a share of the text, from 0 to 1";
    demand((0.0..=1.0).contains(sample), problem)?;
    let most = Limits::DEFAULT.dims;
    demand(*dims as u64 <= most, format!("--dims: expected at most {most}, got {dims}"))?;
    run.check(&[("--text", &options.text)], &options.files, options.from.as_ref())
}

/// Number of most frequent words whose norms are reported; norms of rare words say little.
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
    // A short run has no example in some hundredths.
    let caption = format!("Mean loss at {} points of the run.", trained.losses.len());
    let words = ["Loss", "The loss over the run", &caption];
    run::put_curve(&mut page, words, "mean loss of an example", schedule.epochs, &trained.losses);
    page.section("Lengths of vectors");
    let words = |list: &[(String, f32)]| {
        let shown = list.iter().map(|(word, norm)| format!("{word} {norm:.3}"));
        shown.collect::<Vec<_>>().join(", ")
    };
    page.note(&format!("Shortest of the thousand most frequent: {}.", words(&trained.smallest)));
    page.note(&format!("Longest of them: {}.", words(&trained.largest)));
    page.finish()
}

/// Standard deviation of the initial numbers of Siamese CBOW (section 3 of the paper).
const DEVIATION: f64 = 0.01;
const START: u64 = 0;

#[derive(Debug)]
pub struct Start {
    pub words: Vec<String>,
    pub busy: Vec<u64>,
    pub dims: usize,
    pub tables: Tables,
}

impl Start {
    /// The corpus's words with random vectors; with a base model, its words and vectors followed by
    /// the new words. Renumbers the words of the corpus accordingly.
    pub fn new(corpus: &mut Corpus, base: Option<&Model>, options: &VectorsOptions) -> Self {
        let dims = base.map_or(options.dims, |model| model.dims());
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
            // Vectors of new words get the mean length of the known ones.
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

#[derive(Debug)]
pub struct Output<'o> {
    pub options: &'o VectorsOptions,
    pub base: Option<&'o Model>,
    pub corpus: &'o Corpus,
    pub words: &'o [String],
    pub rows: &'o [f32],
    pub dims: usize,
    pub loss: Option<f64>,
}

#[derive(Debug, serde::Serialize)]
struct Settings<'s> {
    objective: Objective,
    from: Option<&'s str>,
    text_digest: &'s str,
    tokens: u64,
    sentences: usize,
    epochs: u32,
    rate: f32,
    optimiser: &'static str,
    negatives: usize,
    least: u64,
    seed: u64,
    /// Whether the same command gives the same bits.
    repeatable: bool,
    /// Number of threads, if the bits depend on it.
    threads: Option<usize>,
    loss: Option<f64>,
}

impl Output<'_> {
    /// Writes the text file, if requested, and then the model: an existing model means that
    /// everything was written.
    pub fn write(&self) -> Result<Written> {
        if let Some(path) = &self.options.text {
            self.write_text(path)
                .map_err(|source| TrainError::Write { path: path.clone(), source })?;
        }
        let tables = VocabularyTables::build(self.words.iter().map(String::as_str));
        let counts = self.counts();
        let mut draft = Draft::default();
        self.describe(&mut draft)?;
        let shape = [self.words.len(), self.dims];
        draft.tables.push(Table::new("vectors", Dtype::F32, &shape, self.rows));
        draft.push_vocabulary(&tables);
        draft.push_counts(&counts);
        draft.set_section(TRAINED_VECTORS, self.settings()?, Vec::new());
        if let Some(base) = self.base {
            carry_weights(base, &mut draft);
        }
        Ok(draft.write(&self.options.run.output)?)
    }

    fn describe(&self, draft: &mut Draft<'_>) -> Result<()> {
        let rules = self.base.map_or(&self.options.normalisation, Model::normalisation);
        // Rules with tables of their own do not fit the new vectors.
        let unknown = self.base.map_or(Unknown::Skip, |base| run::without_pieces(base.unknown()));
        let frequency = match (self.base, self.options.objective) {
            (Some(base), _) => base.frequency(),
            // Siamese CBOW gives uninformative words short vectors, so means need no other weights.
            (None, Objective::SiameseCbow) => Frequency::InNorm,
            (None, _) => Frequency::None,
        };
        let mut set = |key: &str, value: String| draft.metadata.insert(key.to_owned(), value);
        set("dim", self.dims.to_string());
        set("normalisation", json(rules)?);
        set("unknown", json(&unknown)?);
        set("frequency", frequency.name().to_owned());
        set("created_by", run::created_by());
        set("source_digest", self.corpus.digest.clone());
        let licence = self.options.licence.as_ref();
        if let Some(licence) = licence.or(self.base.and_then(|base| base.metadata().get("licence")))
        {
            set("licence", licence.clone());
        }
        let named = self.base.and_then(|base| base.metadata().get(AUTO_METHOD).cloned());
        let made_for = (self.options.objective == Objective::SiameseCbow).then_some("avg-cos");
        if let Some(method) = named.or(made_for.map(str::to_owned)) {
            set(AUTO_METHOD, method);
        }
        Ok(())
    }

    fn settings(&self) -> Result<String> {
        let schedule = &self.options.schedule;
        let apart = self.options.objective == Objective::SiameseCbow || schedule.threads == 1;
        json(&Settings {
            objective: self.options.objective,
            from: self.base.map(Model::fingerprint),
            text_digest: &self.corpus.digest,
            tokens: self.corpus.tokens,
            sentences: self.corpus.sentences(),
            epochs: schedule.epochs,
            rate: schedule.rate,
            optimiser: if schedule.adagrad { "adagrad" } else { "sgd" },
            negatives: self.options.negatives,
            least: self.options.least,
            seed: self.options.seed,
            repeatable: !schedule.hogwild,
            threads: if apart { None } else { Some(schedule.threads) },
            loss: self.loss,
        })
    }

    /// Returns the counts of words in the text plus their counts in the base model.
    fn counts(&self) -> Counts {
        let words = self.words.len();
        let (mut occurrences, mut documents) = (vec![0_u64; words], vec![0_u32; words]);
        for (at, &word) in self.corpus.numbers.iter().enumerate() {
            occurrences[word as usize] = self.corpus.counts[at];
            documents[word as usize] = self.corpus.lines_with[at];
        }
        let mut tokens = self.corpus.tokens;
        let counted = |documents, lines, occurrences, tokens| Counts {
            occurrences: Some(occurrences),
            tokens: Some(tokens),
            ..Counts::of_documents(documents, lines)
        };
        let Some(before) = self.base.map(Model::vocabulary) else {
            return counted(documents, self.corpus.lines, occurrences, tokens);
        };
        for (sum, count) in occurrences.iter_mut().zip(before.counts.unwrap_or_default()) {
            *sum = sum.saturating_add(*count);
        }
        tokens = tokens.saturating_add(before.corpus.tokens.unwrap_or(0));
        match (before.document_frequencies, before.corpus.documents) {
            (Some(of_base), Some(total)) => {
                for (sum, count) in documents.iter_mut().zip(of_base) {
                    *sum = sum.saturating_add(*count);
                }
                let total = total.saturating_add(self.corpus.lines);
                counted(documents, total, occurrences, tokens)
            }
            _ => {
                let smallest = occurrences.iter().copied().filter(|&count| count > 0).min();
                let unseen = smallest.unwrap_or(1) as f64 / 2.0;
                Counts::of_occurrences(occurrences, tokens, unseen)
            }
        }
    }

    /// Writes word2vec's text format: a line with the numbers of words and dimensions, then a line
    /// for each word with its numbers.
    fn write_text(&self, path: &Path) -> io::Result<()> {
        let target = Target::follow(path)?;
        let mut size = Counted(0);
        self.lines(&mut size)?;
        disk::replace(&LocalDisk, &target, size.0, |file| {
            let mut out = BufWriter::new(file);
            self.lines(&mut out)?;
            out.flush()
        })
    }

    fn lines(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{} {}", self.words.len(), self.dims)?;
        for (word, row) in self.words.iter().zip(self.rows.chunks_exact(self.dims)) {
            out.write_all(word.as_bytes())?;
            for value in row {
                write!(out, " {value}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
