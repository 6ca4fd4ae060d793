//! `cognate similarity`: the score of one pair.

use std::sync::Arc;

use clap::Args;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::of_a_text;
use crate::cli::ask::pair_refused;
use crate::cli::print;
use crate::engine::Measure;
use crate::engine::Query;
use crate::http::api::similarity::SimilarityResponse;
use crate::http::request::query::Resolved;

#[derive(Debug, Args)]
pub(in crate::cli) struct SimilarityArgs {
    /// The first text
    a: String,
    /// The second text
    b: String,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_enum)]
    measure: Option<Measure>,
    #[command(flatten)]
    asked: Asked,
}

pub(in crate::cli) fn run(args: SimilarityArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let query = Query { measure: args.measure, ..args.asked.query(&model.engine)? };
    let pairs = [(&args.a, &args.b)];
    let scored = model.engine.similarity(&pairs, &query).map_err(pair_refused)?;
    if args.asked.json {
        let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
        return print(&serde_json::to_string(&SimilarityResponse::of(&scored, &resolved))?);
    }
    match (scored.scores.as_slice(), scored.reasons.as_slice()) {
        (_, [reason, ..]) => print(&format!("0 (not scored: {})", of_a_text(*reason))),
        ([score], []) => print(&score.to_string()),
        _ => Err(anyhow::anyhow!("one pair has {} scores", scored.scores.len()).into()),
    }
}
