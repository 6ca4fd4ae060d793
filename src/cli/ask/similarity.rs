//! `cognate similarity`: the score of one pair, or of that of every row of files.

use std::sync::Arc;

use clap::Args;
use cognate::engine::{Measure, Query};
use cognate_rows::bulk::Task;

use crate::cli::ask::bulk::Files;
use crate::cli::ask::{Asked, CountedOpposites, note_files, opposed, pair_refused};
use crate::cli::choices::choice;
use crate::cli::{Failure, print};
use crate::http::api::similarity::SimilarityResponse;
use crate::http::request::query::Resolved;

#[derive(Debug, Args)]
pub(in crate::cli) struct SimilarityArgs {
    /// The first text
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    a: Option<String>,
    /// The second text
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    b: Option<String>,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
    measure: Option<Measure>,
    #[command(flatten)]
    opposites: CountedOpposites,
    /// Print how the texts are opposed
    #[arg(long, conflicts_with = "input")]
    return_opposes: bool,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    files: Files,
    /// Column of the first text, by name or number [default: a, or 1 without a header]
    #[arg(long = "a", value_name = "COLUMN", help_heading = "Rows of files")]
    first: Option<String>,
    /// Column of the second text [default: b, or 2 without a header]
    #[arg(long = "b", value_name = "COLUMN", help_heading = "Rows of files")]
    second: Option<String>,
}

pub(in crate::cli) fn run(args: SimilarityArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let query = Query { measure: args.measure, ..args.asked.query(&model.engine)? };
    let query = Query { opposes: args.return_opposes, ..args.opposites.of(query) };
    if args.files.are_given(&[("--a", &args.first), ("--b", &args.second)])? {
        let a = args.files.column(args.first, "a", 1);
        let b = args.files.column(args.second, "b", 2);
        return args.files.run(&model.engine, query, Task::Similarity { a, b }, args.asked.json);
    }
    let pair = [args.a, args.b].map(Option::unwrap_or_default);
    note_files(&pair);
    let pairs = [<(String, String)>::from(pair)];
    let scored = model.engine.similarity(&pairs, &query).map_err(pair_refused)?;
    if args.asked.json {
        let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
        return print(&serde_json::to_string(&SimilarityResponse::of(&scored, &resolved))?);
    }
    match (scored.scores.as_slice(), scored.reasons.as_slice()) {
        (_, [reason, ..]) => print(&format!("0 (not scored: {reason})")),
        ([score], []) => match scored.opposes.first().filter(|kinds| !kinds.is_empty()) {
            None => print(&score.to_string()),
            Some(&kinds) => print(&format!("{score} (opposed by {})", opposed(kinds))),
        },
        _ => Err(anyhow::anyhow!("one pair has {} scores", scored.scores.len()).into()),
    }
}
