//! `cognate rank`: candidates by how alike they are to a text.

use clap::Args;
use serde::Serialize;
use serde::Serializer;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::on_a_line;
use crate::cli::ask::refused;
use crate::cli::ask::texts;
use crate::cli::count;
use crate::cli::print;
use crate::engine::Measure;
use crate::engine::Query;
use crate::engine::RankOptions;
use crate::engine::Ranked;
use crate::engine::Reason;

#[derive(Debug, Args)]
pub(in crate::cli) struct RankArgs {
    /// The text to rank for
    query: String,
    /// Candidates; `-` alone reads them from standard input, one a line
    #[arg(required = true)]
    candidates: Vec<String>,
    /// Most candidates to print
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, u64::from(u32::MAX)))]
    top_k: Option<usize>,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_enum)]
    measure: Option<Measure>,
    #[command(flatten)]
    asked: Asked,
}

/// As `POST /rank` answers with `return_text`.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    model: &'a str,
    method: &'static str,
    measure: &'static str,
    fingerprint: &'a str,
    results: Vec<Candidate<'a>>,
    unscored: &'a [usize],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasons: &'a [Reason],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [usize],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    query_truncated: bool,
}

#[derive(Debug, Serialize)]
struct Candidate<'a> {
    index: usize,
    #[serde(serialize_with = "or_zero")]
    score: Option<f32>,
    text: &'a str,
}

impl Candidate<'_> {
    /// For people: the score, or a dash where there is none, and the text.
    fn line(&self) -> String {
        let score = self.score.map_or("-".to_owned(), |score| score.to_string());
        format!("{score:<12} {}\n", on_a_line(self.text))
    }
}

fn or_zero<S: Serializer>(score: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f32(score.unwrap_or(0.0))
}

pub(in crate::cli) fn run(args: RankArgs) -> Result<(), Failure> {
    let candidates = texts(args.candidates)?;
    let model = args.asked.open()?;
    let query = Query { measure: args.measure, ..args.asked.query(&model.engine)? };
    let options = RankOptions { top_k: args.top_k, ..RankOptions::all(query) };
    let ranking = model.engine.rank_best(&args.query, &candidates, &options).map_err(refused)?;
    let best = ranking.results.iter().map(|&Ranked { index, score }| (index, Some(score)));
    // As in the service: what cannot be scored comes last, with score 0.
    let unscored = ranking.unscored.iter().map(|&index| (index, None));
    let all = best.chain(unscored).take(args.top_k.unwrap_or(usize::MAX));
    let all = all.filter_map(|(index, score)| {
        Some(Candidate { index, score, text: candidates.get(index)? })
    });
    if !args.asked.json {
        return print(&all.map(|candidate| candidate.line()).collect::<String>());
    }
    print(&serde_json::to_string(&Answer {
        model: &model.name,
        method: query.method.name(),
        measure: ranking.measure.name(),
        fingerprint: model.engine.model().fingerprint(),
        results: all.collect(),
        unscored: &ranking.unscored,
        reasons: &ranking.reasons,
        truncated: &ranking.truncated,
        query_truncated: ranking.query_truncated,
    })?)
}
