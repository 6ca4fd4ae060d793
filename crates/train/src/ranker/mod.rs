//! `cognate train ranker`: a network that predicts how well a post answers a query, learned from
//! judged posts (Shi, Rao and Lin 2019, "samCNN").
//!
//! A convolution encodes query and post separately; with attention, the post is encoded once more
//! for every word of the query, with its words weighted by their similarity to that word.
//! [`network`] is the computation, [`pool`] its fused pooling step, [`data`] the input, [`trainer`]
//! the epochs up to the best state. The outcome is a model file with fine-tuned vectors and the
//! network as its section `ranker`.
//!
//! Where the paper and its authors' program differ, the paper is followed: the joint layer is
//! rectified, then normalised; the encoders' layers are rectified, too; dropout comes before the
//! last layer alone. Momentum and the falling rate are the program's.

pub mod data;
pub mod network;
pub mod pool;
pub mod trainer;

use std::path::PathBuf;
use std::time::Duration;

use candle_core::Device;
use cognate::methods::Fitted;
use cognate::methods::lexical::ql::QueryLikelihood;
pub use cognate::methods::ranker::Encoder;
use cognate::methods::ranker::{MAX_WEIGHT, SECTION, Settings, Shape};
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table, Written};
use cognate::model::{Counts, Model, OpenOptions, Phrase};
use cognate_files::topics::Topic;
use cognate_kernels::random::Random;
use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::ranking::JudgedRanking;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::ranker::data::{Data, Grouping};
use crate::ranker::trainer::{Course, Epoch, Pace, Run, State};
use crate::run::{RunFiles, demand, demand_positive};
use crate::{Result, TrainError, run, sampling};

const START: u64 = 3;
/// Numbers of a new word's vector are drawn between this and its negative.
const NEW_WORD: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Map,
    /// Precision among the first thirty
    P30,
}

impl Goal {
    fn figure(self, map: f64, p30: f64) -> f64 {
        match self {
            Self::Map => map,
            Self::P30 => p30,
        }
    }
}

/// What to train and how. The serialised fields, the topics and the model determine every bit of the
/// outcome.
#[derive(Debug, Clone, Serialize)]
pub struct RankerOptions {
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    #[serde(skip)]
    pub valid: Vec<PathBuf>,
    pub valid_share: f64,
    #[serde(skip)]
    pub model: PathBuf,
    #[serde(skip)]
    pub run: RunFiles,
    pub encoder: Encoder,
    pub kernel: usize,
    pub filters: usize,
    pub hidden: usize,
    pub joint: usize,
    pub epochs: u32,
    pub patience: u32,
    pub goal: Goal,
    pub batch: usize,
    pub grouping: Grouping,
    /// Step size and regularisation of the first epoch.
    pub pace: Pace,
    /// Factor by which the learning rate is multiplied, and the number of epochs between two changes.
    pub slowing: (f64, u32),
    pub least: u64,
    pub seed: u64,
    #[serde(skip)]
    pub every: Duration,
    #[serde(skip)]
    pub licence: Option<String>,
}

impl RankerOptions {
    fn pace(&self, epoch: usize) -> Pace {
        let (factor, every) = self.slowing;
        let times = epoch as u32 / every.max(1);
        Pace { rate: self.pace.rate * factor.powi(times as i32), ..self.pace }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    pub encoder: Encoder,
    pub queries: [usize; 2],
    pub judges: Vec<String>,
    pub examples: usize,
    pub words: [usize; 2],
    pub epochs: Vec<Epoch>,
    pub best_epoch: usize,
    pub resumed_at: Option<(usize, usize)>,
    /// Seconds of training and of validation in this process.
    pub seconds: [f64; 2],
    pub with_ql: Option<WithQl>,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [trained_on, judges] = self.queries;
        let [words, new] = self.words;
        writeln!(f, "{}", self.written.path.display())?;
        writeln!(f, "  {}, {} bytes", self.encoder.name(), self.written.bytes)?;
        let examples = self.examples;
        writeln!(f, "  {examples} posts of {trained_on} queries, judged by {judges} queries")?;
        writeln!(f, "  {words} words in the texts, {new} of them new")?;
        if let Some((epochs, batches)) = self.resumed_at {
            writeln!(f, "  resumed after {epochs} epochs and {batches} batches")?;
        }
        for (at, epoch) in self.epochs.iter().enumerate() {
            let Epoch { loss, map, p30 } = epoch;
            let mark = if at + 1 == self.best_epoch { "  best" } else { "" };
            writeln!(f, "  epoch {:2}  loss {loss:.4}  MAP {map:.4}  P30 {p30:.4}{mark}", at + 1)?;
        }
        if let Some(WithQl { alpha, map, p30 }) = self.with_ql {
            writeln!(f, "  with {alpha} × ql  MAP {map:.4}  P30 {p30:.4}")?;
        }
        let [training, judging] = self.seconds;
        writeln!(f, "  {training:.1} s training, {judging:.1} s judging")?;
        write!(f, "{}", self.written)
    }
}

pub fn train(options: &RankerOptions) -> Result<Trained> {
    let model = Model::open(&options.model, &OpenOptions::default())?;
    let shape = shape(options, &model)?;
    let data = Data::read(&model, options)?;
    let device = Device::cuda_if_available(0)?;
    let checkpoint = options.run.checkpoint(options, &(model.fingerprint(), &data.files))?;
    let mut random = sampling::generator(options.seed, START, [0, 0]);
    let rows = rows(&model, &data, &mut random);
    let mut state = State::new(shape, rows, device, &mut random)?;
    let run = Run { options, data: &data, checkpoint: &checkpoint };
    let course = run.go(&mut state)?;
    let with_ql = self::with_ql(&run, &model, &mut state)?;
    let output = Output { options, model: &model, data: &data, shape, course: &course };
    let written = output.write(&state, with_ql.as_ref())?;
    let trained = Trained {
        encoder: options.encoder,
        queries: [data.queries, data.judges.len()],
        judges: data.judges.iter().map(|(topic, _)| topic.id.clone()).collect(),
        examples: data.examples.len(),
        words: [data.words.ids.len(), data.words.new.len()],
        best_epoch: course.best + 1,
        epochs: course.epochs,
        resumed_at: course.resumed_at,
        seconds: course.seconds,
        with_ql,
        written,
    };
    options.run.finish(&checkpoint, || html(&trained, options))?;
    Ok(trained)
}

/// Returns the sizes of the network; refuses invalid options.
fn shape(options: &RankerOptions, model: &Model) -> Result<Shape> {
    let Pace { rate, momentum, decay, dropout, .. } = options.pace;
    demand_positive("--rate", rate)?;
    for (flag, share) in [("--momentum", momentum), ("--dropout", dropout)] {
        let problem = format!("{flag}: expected a share from 0, below 1");
        demand((0.0..1.0).contains(&share), problem)?;
    }
    demand_positive("--slow-by", options.slowing.0)?;
    demand(decay.is_finite() && decay >= 0.0, "--decay: expected a number from 0")?;
    let holds = options.valid_share > 0.0 && options.valid_share < 1.0;
    demand(holds, "--valid-share: expected a share above 0, below 1")?;
    options.run.check(&[], options.files.iter().chain(&options.valid), Some(&options.model))?;
    let RankerOptions { encoder, kernel, filters, hidden, joint, .. } = *options;
    let dims = model.dims();
    let shape = Shape { encoder, dims, kernel, filters, hidden, joint };
    shape.check().map_err(TrainError::Options)?;
    Ok(shape)
}

/// Returns the initial vector of each word: the model's vector, or a random one within [`NEW_WORD`] of 0.
/// The first row is padding.
fn rows(model: &Model, data: &Data, random: &mut Random) -> Vec<f32> {
    let dims = model.dims();
    let mut rows = vec![0.0; (data.words.ids.len() + 1) * dims];
    for (&id, row) in data.words.ids.iter().zip(rows.chunks_exact_mut(dims).skip(1)) {
        match model.vectors().row(id) {
            Some(stored) => stored.copy_to(row),
            None => row.fill_with(|| ((2.0 * sampling::share(random) - 1.0) * NEW_WORD) as f32),
        }
    }
    rows
}

const ALPHAS: u32 = 2000;
const FINE: f64 = 10_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WithQl {
    pub alpha: f64,
    pub map: f64,
    pub p30: f64,
}

/// For each candidate of a query: relevance, the network's score, the query-likelihood score.
/// Candidates are ordered as ties are broken.
struct Scored(Vec<(u32, f64, f64)>);

impl Scored {
    fn new(topic: &Topic, network: &[f64], likelihoods: &[f64]) -> Self {
        let mut rows: Vec<(&String, (u32, f64, f64))> = topic
            .documents
            .iter()
            .zip(&topic.grades)
            .zip(network.iter().zip(likelihoods))
            .map(|((document, &grade), (&score, &likelihood))| {
                (document, (grade, score, likelihood))
            })
            .collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(b.0));
        Self(rows.into_iter().map(|(_, row)| row).collect())
    }

    fn judged(&self, alpha: f64) -> Option<[f64; 2]> {
        let rows = || (0_u32..).zip(&self.0);
        let run = rows().map(|(at, (_, score, likelihood))| (at, score + alpha * likelihood));
        let grades = rows().map(|(at, (grade, ..))| (at, *grade)).collect();
        let judged = JudgedRanking::of_run(run.collect(), &grades)?;
        Some([judged.average_precision(), judged.precision_at(30)])
    }
}

/// Finds the weight of query likelihood that is best on the validation queries; `None` if the model
/// has no counts.
pub fn with_ql(run: &Run<'_>, model: &Model, state: &mut State) -> Result<Option<WithQl>> {
    let Ok(likelihood) = QueryLikelihood::new(model) else { return Ok(None) };
    let (mut query, mut post) = (Phrase::new(model), Phrase::new(model));
    let mut scored = Vec::new();
    for (topic, examples) in &run.data.judges {
        query.read(&topic.query);
        let mut prepared = likelihood.prepare(&query);
        let likelihood_of = |text: &String| {
            post.read(text);
            prepared.log_likelihood(&post)
        };
        let likelihoods: Vec<f64> = topic.texts.iter().map(likelihood_of).collect();
        scored.push(Scored::new(topic, &run.scores(state, examples)?, &likelihoods));
    }
    let try_alpha = |step: u32| {
        let alpha = f64::from(step) / FINE;
        let mut sums = [0.0; 2];
        for topic in &scored {
            for (sum, figure) in sums.iter_mut().zip(topic.judged(alpha)?) {
                *sum += figure;
            }
        }
        let [map, p30] = sums.map(|sum| sum / scored.len() as f64);
        Some(WithQl { alpha, map, p30 })
    };
    let tried: Vec<WithQl> = (0..=ALPHAS).into_par_iter().filter_map(try_alpha).collect();
    let figure = |with: &WithQl| run.options.goal.figure(with.map, with.p30);
    Ok(tried
        .into_iter()
        .reduce(|best, next| if figure(&next) > figure(&best) { next } else { best }))
}

pub struct Output<'o> {
    pub options: &'o RankerOptions,
    pub model: &'o Model,
    pub data: &'o Data,
    pub shape: Shape,
    pub course: &'o Course,
}

impl Output<'_> {
    pub fn write(&self, state: &State, with_ql: Option<&WithQl>) -> Result<Written> {
        let (model, new) = (self.model, &self.data.words.new);
        let dims = model.dims();
        let vocabulary = model.vocabulary();
        let words: Vec<&str> = vocabulary.words().chain(new.iter().map(String::as_str)).collect();
        let tables = VocabularyTables::build(words.into_iter());
        let rows = self.rows(state);
        let network = state.network.stored()?;
        let sound = |number: &f32| number.abs() <= MAX_WEIGHT;
        let numbers = network.iter().flat_map(|(.., numbers)| numbers);
        let holds = rows.iter().all(|number| number.is_finite()) && numbers.into_iter().all(sound);
        let problem = "the numbers grew beyond what can be served; try a smaller --rate";
        demand(holds, problem)?;
        let settings = self.settings(with_ql)?;
        let section = Fitted { section: SECTION, settings, tensors: network, bytes: Vec::new() };
        let counts = self.counts();
        let mut draft = Draft { metadata: self.metadata()?, tables: Vec::new() };
        let count = rows.len() / dims.max(1);
        draft.tables.push(Table::new("vectors", Dtype::F32, &[count, dims], &rows));
        draft.push_vocabulary(&tables);
        draft.push_counts(&counts);
        run::carry_weights(model, &mut draft);
        section.put_into(&mut draft);
        Ok(draft.write(&self.options.run.output)?)
    }

    fn rows(&self, state: &State) -> Vec<f32> {
        let vectors = self.model.vectors();
        let dims = vectors.dims();
        let listed = self.model.vocabulary().len();
        let mut rows = vec![0.0; (listed + self.data.words.new.len()) * dims];
        for (id, row) in (0..).zip(rows.chunks_exact_mut(dims).take(listed)) {
            if let Some(stored) = vectors.row(id) {
                stored.copy_to(row);
            }
        }
        for (&id, trained) in self.data.words.ids.iter().zip(state.rows.chunks_exact(dims).skip(1))
        {
            let from = id as usize * dims;
            rows[from..from + dims].copy_from_slice(trained);
        }
        rows
    }

    /// The counts of the model's corpus; new words have none.
    fn counts(&self) -> Counts {
        let (vocabulary, new) = (self.model.vocabulary(), self.data.words.new.len());
        let unseen = vocabulary.corpus.idf_unknown.unwrap_or(0.0);
        Counts {
            occurrences: vocabulary.counts.map(|counts| extended(counts, 0, new)),
            documents: vocabulary.document_frequencies.map(|counts| extended(counts, 0, new)),
            idf: vocabulary.idf.map(|idf| extended(idf, unseen, new)).unwrap_or_default(),
            tokens: vocabulary.corpus.tokens,
            document_total: vocabulary.corpus.documents,
            idf_unknown: unseen,
            skipped_lines: 0,
        }
    }

    fn metadata(&self) -> Result<std::collections::BTreeMap<String, String>> {
        let mut metadata = Draft::from_model(self.model).metadata;
        metadata.retain(|key, _| !key.starts_with("section."));
        // Training changed the words' vectors and not the pieces' vectors, so the pieces no longer fit.
        let unknown = run::without_pieces(self.model.unknown());
        metadata.insert("unknown".to_owned(), run::json(&unknown)?);
        metadata.insert("created_by".to_owned(), run::created_by());
        if let Some(licence) = &self.options.licence {
            metadata.insert("licence".to_owned(), licence.clone());
        }
        Ok(metadata)
    }

    fn settings(&self, with_ql: Option<&WithQl>) -> Result<String> {
        let RankerOptions { pace, batch, seed, goal, .. } = self.options;
        let trained = json!({
            "queries": [self.data.queries, self.data.judges.len()],
            "examples": self.data.examples.len(),
            "epochs": self.course.epochs,
            "best_epoch": self.course.best + 1,
            "goal": goal,
            "with_ql": with_ql,
            "rate": pace.rate,
            "momentum": pace.momentum,
            "decay": pace.decay,
            "dropout": pace.dropout,
            "batch": batch,
            "seed": seed,
            "from": self.model.fingerprint(),
            "files": self.data.files,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let Shape { encoder, kernel, filters, hidden, joint, .. } = self.shape;
        let alpha = with_ql.map_or(0.0, |with| with.alpha);
        let trained = trained.as_object().cloned();
        run::json(&Settings { encoder, kernel, filters, hidden, joint, alpha, trained })
    }
}

fn extended<T: Copy>(numbers: &[T], with: T, more: usize) -> Vec<T> {
    numbers.iter().copied().chain(std::iter::repeat_n(with, more)).collect()
}

type Figure = fn(&Epoch) -> f64;

fn html(trained: &Trained, options: &RankerOptions) -> String {
    let [trained_on, judges] = trained.queries;
    let mut facts = vec![
        ("encoder", trained.encoder.name().to_owned()),
        ("posts", trained.examples.to_string()),
        ("queries", format!("{trained_on}, judged by {judges}")),
        ("best epoch", trained.best_epoch.to_string()),
        ("rate", options.pace.rate.to_string()),
        ("momentum", options.pace.momentum.to_string()),
        ("seed", options.seed.to_string()),
        ("fingerprint", trained.written.fingerprint.clone()),
    ];
    if let Some(with) = trained.with_ql {
        facts.push((
            "with ql",
            format!("α {}: MAP {:.4}, P30 {:.4}", with.alpha, with.map, with.p30),
        ));
    }
    let mut page =
        run::page(["cognate train ranker", "A ranker of posts"], &trained.written, &facts);
    let plot = |what: &str, label: &'static str, curves: &[(&str, Figure)]| {
        let last = trained.epochs.len() as f64;
        let x = Axis { low: 1.0, high: last.max(2.0), label: "epoch" };
        let numbers = curves.iter().flat_map(|(_, figure)| trained.epochs.iter().map(figure));
        let y = Axis::over(numbers, label);
        let mut frame = Frame::new(WIDE, x, y, what);
        for (class, figure) in curves {
            let points = trained.epochs.iter().enumerate();
            frame.curve(class, points.map(|(at, epoch)| (at as f64 + 1.0, figure(epoch))));
        }
        frame.mark("threshold", trained.best_epoch as f64);
        frame.finish()
    };
    page.section("Loss");
    let drawing = plot("The loss by epoch", "mean loss of a post", &[("c0", |epoch| epoch.loss)]);
    page.figure("Mean loss of the posts of each epoch, each measured before its step.", &drawing);
    page.section("Queries that judge");
    page.legend(&[("c0", "mean average precision"), ("c1", "precision among the first thirty")]);
    let curves: [(&str, Figure); 2] = [("c0", |epoch| epoch.map), ("c1", |epoch| epoch.p30)];
    let drawing = plot("The figures by epoch", "mean over queries", &curves);
    page.figure("After each epoch; the line marks the best one, which was stored.", &drawing);
    page.finish()
}
