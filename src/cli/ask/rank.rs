//! `cognate rank`: candidates by how alike they are to a text, or to liked texts and not to disliked
//! ones; or those of every query of files.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::{Duration, Instant};

use clap::Args;
use cognate::engine::{Boosts, Measure, RankOptions, UnscoredLikes};
use cognate_rows::bulk::Task;

use crate::cli::ask::bulk::Files;
use crate::cli::ask::{Asked, on_a_line, refused, texts};
use crate::cli::choices::choice;
use crate::cli::{Failure, count, print, usage};
use crate::http::api::rank::{
    Asked as RankAsked, Diversify, LikeStrategy, Page, RankRequest, RankResponse,
};
use crate::http::request::fields::{
    Candidate, Count, DislikedText, LikedText, List, Offset, Share, Text,
};
use crate::http::request::query::{Fused, Resolved};
use crate::http::request::threshold::Threshold;
use crate::http::work::pool::JobContext;

/// Longer than anybody waits: nobody else waits for this process.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Args)]
pub(in crate::cli) struct RankArgs {
    /// The text to rank for, unless --like is given, then candidates; `-` in the place of these reads
    /// them from standard input, one a line
    #[arg(
        required_unless_present = "input",
        conflicts_with = "input",
        value_name = "QUERY CANDIDATE"
    )]
    texts: Vec<String>,
    /// Rank for texts that are liked, not for a query; may stand more than once
    #[arg(long, value_name = "TEXT", conflicts_with = "input")]
    like: Vec<String>,
    /// And against texts that are disliked; may stand more than once
    #[arg(long, value_name = "TEXT", requires = "like")]
    unlike: Vec<String>,
    /// What the scores with several liked texts come to [default: best]
    #[arg(long, value_parser = choice::<LikeStrategy>(), requires = "like")]
    strategy: Option<LikeStrategy>,
    /// Most candidates to print
    #[arg(long, value_name = "N", conflicts_with = "input",
          value_parser = count::<usize>(1, 100_000))]
    top_k: Option<usize>,
    /// Pass over the first candidates
    #[arg(long, value_name = "N", conflicts_with = "input",
          value_parser = count::<usize>(0, 100_000))]
    offset: Option<usize>,
    /// Fold candidates at least so much like a better one into it: a number or `calibrated`
    #[arg(long, value_name = "SCORE", conflicts_with = "input", value_parser = threshold)]
    collapse: Option<Threshold>,
    /// Make the best differ: what a score counts against likeness to those before, from 0 to 1
    #[arg(long, value_name = "LAMBDA", conflicts_with = "input", value_parser = share)]
    diversify: Option<Share>,
    /// Print the words with the largest shares of the first twenty scores
    #[arg(long, conflicts_with = "input")]
    explain: bool,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
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

fn threshold(written: &str) -> Result<Threshold, String> {
    Threshold::parse(written, "").map_err(|_| "expected a number or `calibrated`".to_owned())
}

fn share(written: &str) -> Result<Share, String> {
    crate::cli::share(written).map(Share)
}

impl RankArgs {
    /// The question as the service would be asked it.
    fn request<'r>(&'r self, query: Option<&'r str>, candidates: &'r [String]) -> RankRequest<'r> {
        let text = |text: &'r str| Text(Cow::Borrowed(text));
        let liked = |one: &'r String| LikedText::of(text(one));
        let items: Vec<_> = candidates.iter().map(|one| Candidate::Text(text(one))).collect();
        let candidates = List { length: items.len(), items };
        let like: Vec<_> = self.like.iter().map(liked).collect();
        let unlike: Vec<_> = self.unlike.iter().map(|one| DislikedText(liked(one))).collect();
        RankRequest {
            query: query.map(text),
            like: query.is_none().then_some(List { length: like.len(), items: like }),
            unlike: Some(List { length: unlike.len(), items: unlike })
                .filter(|list| list.length > 0),
            strategy: self.strategy,
            top_k: self.top_k.map(Count),
            offset: self.offset.map(Offset),
            collapse: self.collapse,
            diversify: self.diversify.map(|lambda| Diversify { lambda: Some(lambda), pool: None }),
            explain: Some(self.explain),
            return_text: Some(true),
            ..RankRequest::of(text(""), candidates)
        }
    }
}

/// For people: the score, or a dash where there is none, and the text; below it what speaks for it
/// and what it stands for.
fn told(page: &Page, candidates: &[String], offset: usize) -> String {
    let mut told = String::new();
    let text = |index: usize| candidates.get(index).map_or("", String::as_str);
    for (index, score, words, duplicates) in page.lines(offset) {
        let score = score.map_or("-".to_owned(), |score| score.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(told, "{score:<12} {}", on_a_line(text(index)));
        if !words.is_empty() {
            let words: Vec<String> =
                words.iter().map(|word| on_a_line(&word.to_string())).collect();
            let _ = writeln!(told, "{:<12}   by {}", "", words.join(", "));
        }
        for duplicate in duplicates {
            let same = on_a_line(text(duplicate.ranked.index));
            let _ = writeln!(told, "{:<12}   like {same}", "");
        }
    }
    told
}

pub(in crate::cli) fn run(mut args: RankArgs) -> Result<(), Failure> {
    if args.files.are_given(&[("--query", &args.of_query), ("--text", &args.of_text)])? {
        return rank_files(args);
    }
    let mut given = std::mem::take(&mut args.texts);
    let asked = args.like.is_empty().then(|| given.remove(0));
    if given.is_empty() {
        return Err(usage("there are no candidates"));
    }
    let candidates = texts(given)?;
    let model = args.asked.open()?;
    let resolved = args.asked.chosen.ranked_by(&model, args.measure)?;
    let request = args.request(asked.as_deref(), &candidates);
    let (page, passed) = rank(&resolved, &request, &candidates)?;
    if !args.asked.json {
        return print(&told(&page, &candidates, args.offset.unwrap_or(0)));
    }
    let response = RankResponse::of(&page.ranking, page.results(&request), &resolved);
    print(&serde_json::to_string(&response.passing(&passed))?)
}

/// Ranks candidates as a request asks, which has no more than one query.
pub(in crate::cli) fn rank<T: AsRef<str> + Sync>(
    resolved: &Resolved,
    request: &RankRequest<'_>,
    candidates: &[T],
) -> Result<(Page, UnscoredLikes), Failure> {
    let wrong = |error: crate::http::error::ApiError| usage(error.detail);
    request.check_method(resolved).map_err(wrong)?;
    let options = RankOptions { top_k: request.needed(), ..RankOptions::all(resolved.query) };
    let asked = request.asked().map_err(wrong)?;
    let engine = &resolved.model.engine;
    let (ranking, passed) = match &asked {
        RankAsked::Likes(likes) => {
            let none = Boosts::default();
            let ranking = engine.rank_liked(likes, candidates, &none, &options, || true);
            (ranking.map_err(refused)?, engine.passed_likes(likes, &options).map_err(refused)?)
        }
        RankAsked::Query(text) => {
            let ranking = match &resolved.fused {
                None => engine.rank_best(text.as_ref(), candidates, &options),
                Some(Fused { fusion, .. }) => {
                    let none: &[Vec<f64>] = &[];
                    engine.fuse(text.as_ref(), candidates, (fusion, none), &options)
                }
            };
            (ranking.map_err(refused)?, UnscoredLikes::default())
        }
        RankAsked::Queries(_) => return Err(usage("one query at a time")),
    };
    let work = JobContext::inline(Instant::now() + PATIENCE);
    let page = request.page(ranking, options, &asked, resolved, &work).map_err(wrong)?;
    Ok((page, passed))
}

/// Ranks the candidates of every query of files.
fn rank_files(args: RankArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let resolved = args.asked.chosen.ranked_by(&model, args.measure)?;
    if let Some(Fused { name, .. }) = &resolved.fused {
        return Err(usage(format!("{name}: rows of files are ranked by one method")));
    }
    let task = Task::Rank {
        query: args.files.column(args.of_query, "query", 1),
        text: args.files.column(args.of_text, "text", 2),
    };
    args.files.run(&model.engine, resolved.query, task, args.asked.json)
}
