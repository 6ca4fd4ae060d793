//! `cognate similarity`: the score of one pair.

use clap::Args;
use serde::Serialize;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::of_a_text;
use crate::cli::ask::pair_refused;
use crate::cli::print;
use crate::engine::Measure;
use crate::engine::Query;
use crate::engine::Reason;

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

/// As `POST /similarity` answers.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    model: &'a str,
    method: &'static str,
    measure: &'static str,
    fingerprint: &'a str,
    scores: &'a [f32],
    unscored: &'a [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasons: &'a [Reason],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [usize],
}

pub(in crate::cli) fn run(args: SimilarityArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let query = Query { measure: args.measure, ..args.asked.query(&model.engine)? };
    let pairs = [(&args.a, &args.b)];
    let scored = model.engine.similarity(&pairs, &query).map_err(pair_refused)?;
    if args.asked.json {
        return print(&serde_json::to_string(&Answer {
            model: &model.name,
            method: query.method.name(),
            measure: scored.measure.name(),
            fingerprint: model.engine.model().fingerprint(),
            scores: &scored.scores,
            unscored: &scored.unscored,
            reasons: &scored.reasons,
            truncated: &scored.truncated,
        })?);
    }
    match (scored.scores.as_slice(), scored.reasons.as_slice()) {
        (_, [reason, ..]) => print(&format!("0 (not scored: {})", of_a_text(*reason))),
        ([score], []) => print(&score.to_string()),
        _ => Err(anyhow::anyhow!("one pair has {} scores", scored.scores.len()).into()),
    }
}
