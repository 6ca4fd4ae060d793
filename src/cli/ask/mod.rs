//! `cognate similarity`, `rank`, `embed` and `explain`: one question, or one for every row of
//! files, answered by the engine without a service. Models, limits and settings are those that
//! `cognate serve` would have here.

mod bulk;
pub(super) mod embed;
pub(super) mod explain;
mod heat;
pub(super) mod rank;
pub(super) mod similarity;

use std::io;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use cognate::Method;
use cognate::engine::fuse::{FusedProblem, Ranker};
use cognate::engine::{Engine, Measure, Opposites, Oppositions, Page, Place, Query, QueryError};

use crate::cli::choices::choice;
use crate::cli::{Failure, machine, serve, share, usage};
use crate::http::registry::models::LoadedModel;
use crate::http::request::fields::OpposedPolicy;
use crate::http::request::query::{Fused, Resolved};
use crate::http::{Models, Settings};

const MAX_INPUT_BYTES: u64 = 256 << 20;
const STANDARD_INPUT: &str = "-";

/// The model and the method that answer.
#[derive(Debug, Args)]
pub(super) struct Chosen {
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
    /// Method, or `auto` for the model's choice
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: String,
    /// Cut a text that is too long rather than refuse it
    #[arg(long)]
    truncate: bool,
}

/// What every question may say.
#[derive(Debug, Args)]
pub(super) struct Asked {
    #[command(flatten)]
    chosen: Chosen,
    /// Print as JSON, as the service answers; of rows of files the report
    #[arg(long)]
    json: bool,
}

/// How well known a query has to be.
#[derive(Debug, Args)]
pub(super) struct KnownQuery {
    /// Least share of the query's words, from 0 to 1, that the model has to list: a query with fewer ranks
    /// nothing
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_known: Option<f64>,
}

impl KnownQuery {
    /// The ranking with these flags.
    pub(super) fn of(&self, resolved: Resolved) -> Resolved {
        let query = Query { min_known: self.min_known.unwrap_or(0.0) as f32, ..resolved.query };
        Resolved { query, ..resolved }
    }
}

/// Warns on standard error if words of a query are unknown.
pub(super) fn tell_query(page: &Page) {
    if let Some(known) = page.ranking.query_known.filter(|known| *known < 1.0) {
        note(&format!("{:.0} % of the query's words are known", 100.0 * known));
    }
}

/// Prints a note on standard error. If that is closed, this is no reason to fail.
pub(super) fn note(told: &str) {
    let _ = writeln!(io::stderr(), "{}", on_a_line(told));
}

/// Whether opposites count.
#[derive(Debug, Args)]
pub(super) struct CountedOpposites {
    /// Whether opposed meaning lowers the score and makes texts not related [default: lowers the score as the
    /// method does, and makes them not related]
    #[arg(long, value_parser = choice::<Opposites>())]
    opposites: Option<Opposites>,
}

impl CountedOpposites {
    /// The query with these flags, by the method that scores then.
    pub(super) fn of(&self, query: Query) -> Query {
        query.with_opposites(self.opposites)
    }
}

/// What a ranking does with texts that say the opposite of its query.
#[derive(Debug, Args)]
pub(super) struct OpposedResults {
    #[command(flatten)]
    counted: CountedOpposites,
    /// What becomes of texts that say the opposite of the query [default: they stay]
    #[arg(long, value_name = "POLICY", value_parser = choice::<OpposedPolicy>())]
    opposes: Option<OpposedPolicy>,
    /// Print how each result is opposed to the query
    #[arg(long)]
    return_opposes: bool,
}

impl OpposedResults {
    /// The ranking with these flags.
    pub(super) fn of(&self, resolved: Resolved) -> Resolved {
        let query = Query { opposes: self.return_opposes, ..self.counted.of(resolved.query) };
        Resolved { query, ..resolved }
    }

    pub(super) fn are_dropped(&self) -> bool {
        self.opposes == Some(OpposedPolicy::Drop)
    }

    /// The first given flag that only the results of one query allow, if any.
    fn of_one_query(&self) -> Option<&'static str> {
        let own =
            [("--opposes", self.opposes.is_some()), ("--return-opposes", self.return_opposes)];
        own.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

pub(super) fn verdict(related: bool) -> &'static str {
    if related { "related" } else { "not related" }
}

pub(super) fn opposed(kinds: Oppositions) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

impl Chosen {
    /// Opens the model, with the limits that the service would have.
    pub(super) fn open(&self) -> Result<Arc<LoadedModel>, Failure> {
        open_model(self.model.as_ref())
    }

    /// What ranks candidates with this model: a method, or several fused ones.
    pub(super) fn ranked_by(
        &self,
        model: &Arc<LoadedModel>,
        measure: Option<Measure>,
    ) -> Result<Resolved, Failure> {
        let engine = &model.engine;
        let model = Arc::clone(model);
        let fused = match engine.ranker(&self.method).map_err(refused)? {
            Ranker::Method(_) => {
                let query = Query { measure, ..self.query(engine)? };
                return Ok(Resolved { model, query, fused: None });
            }
            Ranker::Fused(fused) => fused,
        };
        let name = Arc::clone(fused.name());
        let fusion = engine.fusion(fused).map_err(refused)?;
        if measure.is_some() {
            let (name, problem) = (name.to_string(), FusedProblem::Measured);
            return Err(refused(QueryError::Fused { name, problem }));
        }
        if let Some((_, run)) = fusion.runs().next() {
            return Err(usage(format!(
                "{name} needs a number `{run}` of each candidate, which only a request to the \
                 service can bring"
            )));
        }
        let method = fusion.reading(engine.auto());
        let query = Query { truncate: self.truncate, ..Query::new(method) };
        Ok(Resolved { model, query, fused: Some(Fused { name, fusion }) })
    }

    /// The query for this model.
    pub(super) fn query(&self, engine: &Engine) -> Result<Query, Failure> {
        let method = engine.method(&self.method).map_err(refused)?;
        Ok(Query { truncate: self.truncate, ..Query::new(method) })
    }

    /// Whether the choice is left to the model.
    pub(super) fn is_auto(&self) -> bool {
        Method::is_auto(&self.method)
    }

    /// [`Chosen::query`] for vectors: the model's choice for scores need not have them.
    fn vectors(&self, engine: &Engine) -> Result<Query, Failure> {
        let method = engine.embedding_method(&self.method).map_err(refused)?;
        Ok(Query { method, ..self.query(engine)? })
    }
}

/// Opens the named model, or the first that a service would take, with the limits that the service
/// would have.
pub(super) fn open_model(model: Option<&String>) -> Result<Arc<LoadedModel>, Failure> {
    let given = model.map(|model| ("model".to_owned(), vec![model.clone()]));
    let loaded = machine::settings(None, given.into_iter().collect(), &[]);
    serve::refuse(&loaded.problems)?;
    let mut model = loaded.settings.model;
    model.truncate(1);
    // Whether this process could write to the file matters only to a service.
    let settings = Settings { model, strict: false, ..loaded.settings };
    let models = Models::open(&settings)?;
    models.choose(None).cloned().map_err(|error| usage(error.detail))
}

/// Turns the engine's refusal of a query into the failure of a command.
pub(super) fn refused(error: QueryError) -> Failure {
    match error {
        QueryError::NonFinite { .. } => error.into(),
        error => usage(error),
    }
}

/// A question about one pair that cannot be answered: the message names its texts as the arguments
/// are named.
fn pair_refused(error: QueryError) -> Failure {
    match error.place() {
        Some(Place::Pair(_, side)) => {
            usage(format!("{} {}", if side == 0 { "A" } else { "B" }, error.problem()))
        }
        _ => refused(error),
    }
}

/// Notes a text that is the name of a file, which may have been meant.
fn note_files(texts: &[String]) {
    if let Some(name) = texts.iter().find(|text| Path::new(text).is_file()) {
        note(&format!(
            "`{name}` is read as a text; a file of this name exists: --input reads the rows of files, and `-` \
             as the only text reads lines of standard input"
        ));
    }
}

fn texts(given: Vec<String>) -> Result<Vec<String>, Failure> {
    if given != [STANDARD_INPUT] {
        note_files(&given);
        return Ok(given);
    }
    let mut text = String::new();
    let input = io::stdin().lock();
    input.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text).context("standard input")?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(usage("standard input has more than 256 MiB"));
    }
    Ok(text.lines().map(str::to_owned).collect())
}

/// A text on one line: without characters that end lines or control terminals.
pub(super) fn on_a_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
