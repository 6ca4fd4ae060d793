//! `cognate embed`: the vectors of texts.

use clap::Args;
use serde::Serialize;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::refused;
use crate::cli::ask::texts;
use crate::cli::print;
use crate::engine::Reason;

#[derive(Debug, Args)]
pub(in crate::cli) struct EmbedArgs {
    /// Texts; `-` alone reads them from standard input, one a line
    #[arg(required = true)]
    texts: Vec<String>,
    #[command(flatten)]
    asked: Asked,
}

/// As `POST /embed` answers.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    model: &'a str,
    method: &'static str,
    measure: &'static str,
    fingerprint: &'a str,
    dimensions: usize,
    embeddings: &'a [Option<Vec<f32>>],
    tokens: &'a [usize],
    known: &'a [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unscored: &'a [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasons: &'a [Reason],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [usize],
}

pub(in crate::cli) fn run(args: EmbedArgs) -> Result<(), Failure> {
    let texts = texts(args.texts)?;
    let model = args.asked.open()?;
    let engine = &model.engine;
    let mut query = args.asked.query(engine)?;
    if args.asked.method.trim().eq_ignore_ascii_case("auto") {
        // The model's choice for scores need not have vectors.
        query.method = engine.auto_embedding();
    }
    let embedded = engine.embed(&texts, &query).map_err(refused)?;
    if args.asked.json {
        return print(&serde_json::to_string(&Answer {
            model: &model.name,
            method: query.method.name(),
            measure: engine.default_measure(query.method).name(),
            fingerprint: engine.model().fingerprint(),
            dimensions: embedded.dims,
            embeddings: &embedded.vectors,
            tokens: &embedded.tokens,
            known: &embedded.known,
            unscored: &embedded.unscored,
            reasons: &embedded.reasons,
            truncated: &embedded.truncated,
        })?);
    }
    let line = |vector: &Option<Vec<f32>>| match vector {
        Some(vector) => vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ") + "\n",
        None => "-\n".to_owned(),
    };
    print(&embedded.vectors.iter().map(line).collect::<String>())
}
