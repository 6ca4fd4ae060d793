//! `cognate embed`: the vectors of texts.

use std::sync::Arc;

use clap::Args;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::refused;
use crate::cli::ask::texts;
use crate::cli::print;
use crate::http::api::embed::EmbedResponse;
use crate::http::api::embed::Vector;
use crate::http::request::query::Resolved;

#[derive(Debug, Args)]
pub(in crate::cli) struct EmbedArgs {
    /// Texts; `-` alone reads them from standard input, one a line
    #[arg(required = true)]
    texts: Vec<String>,
    #[command(flatten)]
    asked: Asked,
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
    let mut embedded = engine.embed(&texts, &query).map_err(refused)?;
    if args.asked.json {
        let vectors = std::mem::take(&mut embedded.vectors).into_iter();
        let vectors = vectors.map(|vector| vector.map(Vector::Numbers)).collect();
        let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
        let response = EmbedResponse::of(&embedded, vectors, &resolved);
        return print(&serde_json::to_string(&response)?);
    }
    let line = |vector: &Option<Vec<f32>>| match vector {
        Some(vector) => vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ") + "\n",
        None => "-\n".to_owned(),
    };
    print(&embedded.vectors.iter().map(line).collect::<String>())
}
