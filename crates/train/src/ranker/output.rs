//! What the ranker's run writes: the given model with fine-tuned vectors, new words and the network; the
//! best weight of query likelihood beside it; and the report page.
//!
//! Counts and weights learned for ranks are kept: they hold for other vectors, too. What was fitted to
//! the old vectors (components, universes, thresholds) is left out.

use cognate::methods::Fitted;
use cognate::methods::lexical::ql::QueryLikelihood;
use cognate::methods::ranker::{MOST_WEIGHT, SECTION, Settings, Shape};
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table, Written};
use cognate::model::{Counts, Model, Phrase};
use cognate_files::topics::Topic;
use cognate_stats::page::frame::{Axis, Frame, WIDE};
use cognate_stats::ranking::JudgedRanking;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::ranker::data::Data;
use crate::ranker::trainer::{Course, Epoch, Run, State};
use crate::ranker::{Goal, RankerOptions, Trained};
use crate::{TrainError, run};

/// Weights of query likelihood that are tried: the authors' grid, 0 to 0.2.
const ALPHAS: u32 = 2000;
/// How many of them make 1.
const FINE: f64 = 10_000.0;

/// Query likelihood beside the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WithQl {
    pub alpha: f64,
    /// Mean average precision of the queries that judge.
    pub map: f64,
    /// Their mean precision among the first thirty.
    pub p30: f64,
}

/// A query's candidates: how relevant, the network's score, and query likelihood's. The candidates
/// are numbered as ties are broken.
struct Scored(Vec<(u32, f64, f64)>);

impl Scored {
    fn of(topic: &Topic, network: &[f64], likelihoods: &[f64]) -> Self {
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

    /// Average precision, and precision among the first thirty, with this weight.
    fn judged(&self, alpha: f64) -> Option<[f64; 2]> {
        let rows = || (0_u32..).zip(&self.0);
        let run = rows().map(|(at, (_, score, likelihood))| (at, score + alpha * likelihood));
        let grades = rows().map(|(at, (grade, ..))| (at, *grade)).collect();
        let judged = JudgedRanking::of_run(run.collect(), &grades)?;
        Some([judged.average_precision(), judged.precision_at(30)])
    }
}

/// Finds the weight of query likelihood that is best for the queries that judge. Nothing where the
/// model has no counts.
pub fn with_ql(
    run: &Run<'_>,
    model: &Model,
    state: &mut State,
) -> Result<Option<WithQl>, TrainError> {
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
        scored.push(Scored::of(topic, &run.scores(state, examples)?, &likelihoods));
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
    let figure = |with: &WithQl| match run.options.goal {
        Goal::Map => with.map,
        Goal::P30 => with.p30,
    };
    Ok(tried
        .into_iter()
        .reduce(|best, next| if figure(&next) > figure(&best) { next } else { best }))
}

pub struct Output<'o> {
    pub options: &'o RankerOptions,
    pub model: &'o Model,
    pub data: &'o Data,
    pub shape: Shape,
    /// How the run went.
    pub course: &'o Course,
}

impl Output<'_> {
    pub fn write(&self, state: &State, with_ql: Option<&WithQl>) -> Result<Written, TrainError> {
        let (model, new) = (self.model, &self.data.words.new);
        let dims = model.vectors().dims();
        let vocabulary = model.vocabulary();
        let words: Vec<&str> = vocabulary.words().chain(new.iter().map(String::as_str)).collect();
        let tables = VocabularyTables::build(words.into_iter());
        let rows = self.rows(state);
        let network = state.network.stored()?;
        let sound = |number: &f32| number.abs() <= MOST_WEIGHT;
        let numbers = network.iter().flat_map(|(.., numbers)| numbers);
        if !rows.iter().all(|number| number.is_finite()) || !numbers.into_iter().all(sound) {
            let problem = "the numbers grew beyond what can be served; try a smaller --rate";
            return Err(TrainError::Options(problem.to_owned()));
        }
        let settings = self.settings(with_ql)?;
        let section = Fitted { section: SECTION, settings, tensors: network };
        let counts = self.counts();
        let mut draft = Draft { metadata: self.metadata()?, tables: Vec::new() };
        let count = rows.len() / dims.max(1);
        draft.tables.push(Table::of("vectors", Dtype::F32, &[count, dims], &rows));
        draft.push_vocabulary(&tables);
        draft.push_counts(&counts);
        run::carry_weights(model, &mut draft);
        section.put_into(&mut draft);
        Ok(draft.write(&self.options.run.output)?)
    }

    /// The vectors of all words: fine-tuned where a text holds the word, else as they were.
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

    /// What the model's corpus says of its words; new ones did not occur in it.
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

    fn metadata(&self) -> Result<std::collections::BTreeMap<String, String>, TrainError> {
        let mut metadata = Draft::of(self.model).metadata;
        metadata.retain(|key, _| !key.starts_with("section."));
        // Parts of words have vectors that were not trained along.
        let unknown = run::without_pieces(self.model.unknown());
        metadata.insert("unknown".to_owned(), run::json(&unknown)?);
        metadata.insert("created_by".to_owned(), run::created_by());
        if let Some(licence) = &self.options.licence {
            metadata.insert("licence".to_owned(), licence.clone());
        }
        Ok(metadata)
    }

    fn settings(&self, with_ql: Option<&WithQl>) -> Result<String, TrainError> {
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

/// What is drawn of an epoch.
type Figure = fn(&Epoch) -> f64;

pub(super) fn html(trained: &Trained, options: &RankerOptions) -> String {
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
    page.figure("Mean loss of the posts of each epoch, as they were met.", &drawing);
    page.end_section();
    page.section("Queries that judge");
    page.legend(&[("c0", "mean average precision"), ("c1", "precision among the first thirty")]);
    let curves: [(&str, Figure); 2] = [("c0", |epoch| epoch.map), ("c1", |epoch| epoch.p30)];
    let drawing = plot("The figures by epoch", "mean over queries", &curves);
    page.figure("After each epoch; the line marks the one that was kept.", &drawing);
    page.end_section();
    page.finish()
}
