//! `cognate similarity`: the score of one pair, or of the pair in every row of files.

use std::sync::Arc;

use clap::Args;
use cognate::engine::{Measure, Query};
use cognate_rows::bulk::Task;

use crate::cli::ask::bulk::Files;
use crate::cli::ask::rank::{judged, threshold};
use crate::cli::ask::{Asked, CountedOpposites, note_files, opposed, pair_refused, verdict};
use crate::cli::choices::choice;
use crate::cli::{Failure, print};
use crate::http::api::similarity::SimilarityResponse;
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Threshold;

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
    /// Also tell whether the texts are related: their score is at or above this, a number or `calibrated`,
    /// and they do not say opposites, unless --opposites is ignore
    #[arg(long, value_name = "SCORE", conflicts_with = "input", value_parser = threshold)]
    threshold: Option<Threshold>,
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
    let model = args.asked.chosen.open()?;
    let query = Query { measure: args.measure, ..args.asked.chosen.query(&model.engine)? };
    let query = Query { opposes: args.return_opposes, ..args.opposites.of(query) };
    if args.files.are_given(&[("--a", &args.first), ("--b", &args.second)])? {
        let a = args.files.column(args.first, "a", 1);
        let b = args.files.column(args.second, "b", 2);
        return args.files.run(&model.engine, query, Task::Similarity { a, b }, args.asked.json);
    }
    let pair = [args.a, args.b].map(Option::unwrap_or_default);
    note_files(&pair);
    let pairs = [<(String, String)>::from(pair)];
    let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
    let (resolved, cutoff) = judged(resolved, args.threshold)?;
    let scored = model.engine.similarity(&pairs, &resolved.query).map_err(pair_refused)?;
    if args.asked.json {
        let response = SimilarityResponse::new(&scored, &resolved, cutoff.map(|it| it.number));
        return print(&serde_json::to_string(&response)?);
    }
    match (scored.scores.as_slice(), scored.reasons.as_slice()) {
        (_, [reason, ..]) => print(&format!("0 (not scored: {reason})")),
        ([score], []) => {
            let related = scored.related.first().map(|&related| verdict(related).to_owned());
            let opposes = scored.opposes.first().filter(|kinds| !kinds.is_empty());
            let opposes = opposes.map(|&kinds| format!("opposed by {}", opposed(kinds)));
            let told: Vec<String> = related.into_iter().chain(opposes).collect();
            match told.is_empty() {
                true => print(&score.to_string()),
                false => print(&format!("{score} ({})", told.join(", "))),
            }
        }
        _ => Err(anyhow::anyhow!("one pair has {} scores", scored.scores.len()).into()),
    }
}
