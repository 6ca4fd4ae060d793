//! `cognate rank`: candidates by how alike they are to a text, or those of every query of files.

use clap::Args;

use crate::bulk::Task;
use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::bulk::Files;
use crate::cli::ask::on_a_line;
use crate::cli::ask::refused;
use crate::cli::ask::texts;
use crate::cli::count;
use crate::cli::print;
use crate::cli::usage;
use crate::engine::Measure;
use crate::engine::RankOptions;
use crate::http::api::rank::RankResponse;
use crate::http::api::rank::RankedCandidate;
use crate::http::request::query::Fused;

#[derive(Debug, Args)]
pub(in crate::cli) struct RankArgs {
    /// The text to rank for
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    query: Option<String>,
    /// Candidates; `-` alone reads them from standard input, one a line
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    candidates: Vec<String>,
    /// Most candidates to print
    #[arg(long, value_name = "N", conflicts_with = "input",
          value_parser = count::<usize>(1, u64::from(u32::MAX)))]
    top_k: Option<usize>,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_enum)]
    measure: Option<Measure>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    files: Files,
    /// Column of queries, by name or number: rows with the same query stand together [default: query,
    /// or 1 without a header]
    #[arg(long = "query", value_name = "COLUMN", help_heading = "Rows of files")]
    of_query: Option<String>,
    /// Column of candidates [default: text, or 2 without a header]
    #[arg(long = "text", value_name = "COLUMN", help_heading = "Rows of files")]
    of_text: Option<String>,
}

/// For people: the score, or a dash where there is none, and the text.
fn line(score: Option<f32>, text: &str) -> String {
    let score = score.map_or("-".to_owned(), |score| score.to_string());
    format!("{score:<12} {}\n", on_a_line(text))
}

pub(in crate::cli) fn run(args: RankArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let resolved = args.asked.chosen.ranked_by(&model, args.measure)?;
    if args.files.are_given(&[("--query", &args.of_query), ("--text", &args.of_text)])? {
        if let Some(Fused { name, .. }) = &resolved.fused {
            return Err(usage(format!("{name}: rows of files are ranked by one method")));
        }
        let task = Task::Rank {
            query: args.files.column(args.of_query, "query", 1),
            text: args.files.column(args.of_text, "text", 2),
        };
        return args.files.run(&model.engine, resolved.query, task, args.asked.json);
    }
    let (asked, candidates) = (args.query.unwrap_or_default(), texts(args.candidates)?);
    let options = RankOptions { top_k: args.top_k, ..RankOptions::all(resolved.query) };
    let ranking = match &resolved.fused {
        None => model.engine.rank_best(&asked, &candidates, &options),
        Some(Fused { fusion, .. }) => {
            let none: &[Vec<f64>] = &[];
            model.engine.fuse(&asked, &candidates, (fusion, none), &options)
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
