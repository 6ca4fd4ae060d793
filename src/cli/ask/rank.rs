//! `cognate rank`: candidates by their similarity to a text, or to liked and not to disliked texts;
//! or for every query of files.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use clap::Args;
use cognate::engine::rank::{Asked, Pages, Question};
use cognate::engine::{
    Candidates, Cutoff, Diversify, Likes, Measure, Oppositions, Page, PageOptions, PageResult,
    Strategy, WordShare,
};
use cognate_rows::bulk::Task;

use crate::cli::ask::bulk::Files;
use crate::cli::ask::{
    KnownQuery, OpposedResults, on_a_line, opposed, refused, tell_query, texts, verdict,
};
use crate::cli::choices::choice;
use crate::cli::{Failure, ask, count, print, usage};
use crate::http::api::rank::{RankResponse, RankedCandidate};
use crate::http::request::fields::Share;
use crate::http::request::query::{Fused, Resolved};
use crate::http::request::threshold::Threshold;

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
    /// How scores with several liked texts are combined [default: best]
    #[arg(long, value_parser = choice::<Strategy>(), requires = "like")]
    strategy: Option<Strategy>,
    /// Most candidates to print; of rows of files, the best of each query to write
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, 100_000))]
    top_k: Option<usize>,
    /// Pass over the first candidates
    #[arg(long, value_name = "N", conflicts_with = "input",
          value_parser = count::<usize>(0, 100_000))]
    offset: Option<usize>,
    /// Also print whether each candidate is related: its score reaches this number, or `calibrated`, and it
    /// does not say the opposite of the query, unless --opposites is ignore
    #[arg(long, value_name = "SCORE", conflicts_with = "input", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// Fold candidates at least so much like a better one into it: a number or `calibrated`
    #[arg(long, value_name = "SCORE", conflicts_with = "input", value_parser = threshold)]
    collapse: Option<Threshold>,
    /// Make the best differ: what a score counts against likeness to those before, from 0 to 1
    #[arg(long, value_name = "LAMBDA", conflicts_with = "input", value_parser = share)]
    diversify: Option<Share>,
    /// Print the words with the largest shares of the first twenty scores, and whether they stand in the
    /// query (or what is liked), the candidate or both
    #[arg(long, conflicts_with = "input")]
    explain: bool,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
    measure: Option<Measure>,
    #[command(flatten)]
    known: KnownQuery,
    #[command(flatten)]
    opposites: OpposedResults,
    #[command(flatten)]
    asked: ask::Asked,
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

pub(in crate::cli) fn threshold(written: &str) -> Result<Threshold, String> {
    Threshold::parse(written, "").map_err(|error| error.detail.to_string())
}

pub(in crate::cli) fn share(written: &str) -> Result<Share, String> {
    crate::cli::share(written).map(Share)
}

/// Options of a page with near-duplicates left out and varied results.
pub(in crate::cli) fn varied(
    collapse: Option<Threshold>,
    diversify: Option<Share>,
    resolved: &Resolved,
) -> Result<PageOptions, Failure> {
    let resolve = |threshold: Threshold| threshold.resolve(resolved, "/collapse");
    let collapse = collapse.map(resolve).transpose().map_err(|error| usage(error.detail))?;
    let diversify = diversify.map(|Share(lambda)| Diversify { lambda, ..Diversify::default() });
    Ok(PageOptions {
        collapse: collapse.map(|cutoff| cutoff.least),
        diversify,
        ..PageOptions::default()
    })
}

impl RankArgs {
    fn page(&self, resolved: &Resolved) -> Result<PageOptions, Failure> {
        Ok(PageOptions {
            offset: self.offset.unwrap_or(0),
            top_k: self.top_k,
            explain: self.explain,
            drop_opposed: self.opposites.are_dropped(),
            ..varied(self.collapse, self.diversify, resolved)?
        })
    }

    fn likes(&self) -> Likes<'_> {
        Likes {
            disliked: self.unlike.iter().map(Into::into).collect(),
            strategy: self.strategy.unwrap_or_default(),
            ..Likes::any_of(self.like.iter().map(String::as_str))
        }
    }
}

/// For people: the score, or a dash, and the text; below it the words and the duplicates.
pub(in crate::cli) fn show_result<'t>(
    out: &mut dyn Write,
    (score, text): (Option<f32>, &str),
    (related, opposes): (Option<bool>, Option<Oppositions>),
    words: &[WordShare],
    mut duplicates: impl Iterator<Item = &'t str>,
) -> fmt::Result {
    let score = score.map_or("-".to_owned(), |score| score.to_string());
    writeln!(out, "{score:<12} {text}")?;
    if let Some(related) = related {
        writeln!(out, "{:<12}   {}", "", verdict(related))?;
    }
    if !words.is_empty() {
        let words: Vec<String> = words.iter().map(|word| on_a_line(&word.to_string())).collect();
        writeln!(out, "{:<12}   by {}", "", words.join(", "))?;
    }
    if let Some(kinds) = opposes.filter(|kinds| !kinds.is_empty()) {
        writeln!(out, "{:<12}   opposed by {}", "", opposed(kinds))?;
    }
    duplicates.try_for_each(|same| writeln!(out, "{:<12}   like {}", "", on_a_line(same)))
}

fn told(page: &Page, candidates: &[String]) -> String {
    let mut told = String::new();
    let text = |index: usize| candidates.get(index).map_or("", String::as_str);
    for PageResult { index, score, duplicates, reason, opposes, related } in page.results() {
        let words = reason.map_or(&[][..], |reason| &reason.words);
        let same = duplicates.iter().map(|duplicate| text(duplicate.ranked.index));
        let text = on_a_line(text(index));
        // Writing to a string cannot fail.
        let _ = show_result(&mut told, (score, &text), (related, opposes), words, same);
    }
    told
}

/// The question with a threshold, and its value.
pub(in crate::cli) fn judged(
    mut resolved: Resolved,
    threshold: Option<Threshold>,
) -> Result<(Resolved, Option<Cutoff>), Failure> {
    let cutoff = Threshold::ask(threshold, &mut resolved).map_err(|error| usage(error.detail))?;
    Ok((resolved, cutoff))
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
    let model = args.asked.chosen.open()?;
    let resolved = args.opposites.of(args.asked.chosen.ranked_by(&model, args.measure)?);
    let (resolved, _) = judged(args.known.of(resolved), args.threshold)?;
    let asked = asked.as_deref().map_or_else(|| args.likes().into(), Asked::from);
    let question = question(&resolved, asked, args.page(&resolved)?)?;
    let made = rank(&resolved, &question, &Candidates::new(&candidates))?;
    let Some(page) = made.one() else { return Ok(()) };
    if !args.asked.json {
        tell_query(page);
        return print(&told(page, &candidates));
    }
    let text = |index: usize| (candidates.get(index).map(String::as_str), None);
    let results = RankedCandidate::all(page, text);
    let response = RankResponse::new(page, results, &made.unscored, &resolved);
    print(&serde_json::to_string(&response)?)
}

/// The question for a page; refuses options that the method does not support.
pub(in crate::cli) fn question<'t>(
    resolved: &Resolved,
    asked: Asked<'t>,
    page: PageOptions,
) -> Result<Question<'t>, Failure> {
    let fusion = resolved.fused.as_ref().map(|fused| Arc::clone(&fused.fusion));
    let question = Question { fusion, page, ..Question::new(asked, resolved.query) };
    resolved.check_page(&question).map_err(|error| usage(error.detail))?;
    resolved.check_reach(&question, true).map_err(|error| usage(error.detail))?;
    Ok(question)
}

pub(in crate::cli) fn rank<T: AsRef<str>>(
    resolved: &Resolved,
    question: &Question<'_>,
    candidates: &Candidates<'_, T>,
) -> Result<Pages, Failure> {
    resolved.model.engine.rank_pages(question, candidates, || Ok(())).map_err(refused)
}

/// Ranks the candidates of every query of files.
fn rank_files(args: RankArgs) -> Result<(), Failure> {
    if let Some(flag) = args.opposites.of_one_query() {
        return Err(usage(format!("{flag} is for candidates of one query, not for rows of files")));
    }
    let model = args.asked.chosen.open()?;
    let resolved = args.opposites.of(args.asked.chosen.ranked_by(&model, args.measure)?);
    let resolved = args.known.of(resolved);
    if let Some(Fused { name, .. }) = &resolved.fused {
        return Err(usage(format!("{name}: rows of files are ranked by one method")));
    }
    let task = Task::Rank {
        query: args.files.column(args.of_query, "query", 1),
        text: args.files.column(args.of_text, "text", 2),
        top_k: args.top_k,
    };
    args.files.run(&model.engine, resolved.query, task, args.asked.json)
}
