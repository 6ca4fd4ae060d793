//! `cognate rank`: candidates by how alike they are to a text.

use clap::Args;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::on_a_line;
use crate::cli::ask::refused;
use crate::cli::ask::texts;
use crate::cli::count;
use crate::cli::print;
use crate::engine::Measure;
use crate::engine::RankOptions;
use crate::http::api::rank::RankResponse;
use crate::http::api::rank::RankedCandidate;
use crate::http::request::query::Fused;

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

/// For people: the score, or a dash where there is none, and the text.
fn line(score: Option<f32>, text: &str) -> String {
    let score = score.map_or("-".to_owned(), |score| score.to_string());
    format!("{score:<12} {}\n", on_a_line(text))
}

pub(in crate::cli) fn run(args: RankArgs) -> Result<(), Failure> {
    let candidates = texts(args.candidates)?;
    let model = args.asked.open()?;
    let resolved = args.asked.ranked_by(&model, args.measure)?;
    let options = RankOptions { top_k: args.top_k, ..RankOptions::all(resolved.query) };
    let ranking = match &resolved.fused {
        None => model.engine.rank_best(&args.query, &candidates, &options),
        Some(Fused { fusion, .. }) => {
            let none: &[Vec<f64>] = &[];
            model.engine.fuse(&args.query, &candidates, (fusion, none), &options)
        }
    };
    let ranking = ranking.map_err(refused)?;
    let listed = ranking.listed(&options);
    let all = listed.filter_map(|(index, score)| Some((index, score, candidates.get(index)?)));
    if !args.asked.json {
        return print(&all.map(|(_, score, text)| line(score, text)).collect::<String>());
    }
    let results = all.map(|(index, score, text)| RankedCandidate::of(index, score, Some(text)));
    let results = results.collect();
    print(&serde_json::to_string(&RankResponse::of(&ranking, results, &resolved))?)
}
