//! `cognate explain`: why two texts got their score.

use std::fmt::Write as _;
use std::io;
use std::io::Write as _;
use std::sync::Arc;

use clap::Args;
use cognate::engine::{ExplainedWord, Explanation, Measure, Query, UnknownToken};
use cognate::model::phrase::Found;

use crate::cli::ask::{Asked, CountedOpposites, heat, on_a_line, pair_refused};
use crate::cli::choices::choice;
use crate::cli::{Failure, print};
use crate::http::api::explain::ExplainResponse;
use crate::http::request::query::Resolved;

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// The first text; for a method that only ranks, the query
    a: String,
    /// The second text; for a method that only ranks, the candidate
    b: String,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_parser = choice::<Measure>())]
    measure: Option<Measure>,
    #[command(flatten)]
    opposites: CountedOpposites,
    #[command(flatten)]
    asked: Asked,
}

pub(in crate::cli) fn run(args: ExplainArgs) -> Result<(), Failure> {
    let model = args.asked.chosen.open()?;
    let query = Query { measure: args.measure, ..args.asked.chosen.query(&model.engine)? };
    let query = args.opposites.of(query);
    let explained = model.engine.explain(&args.a, &args.b, &query).map_err(pair_refused)?;
    if args.asked.json {
        let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
        return print(&serde_json::to_string(&ExplainResponse::new(&explained, &resolved))?);
    }
    paint(&for_people(&explained, [&args.a, &args.b], query.method.name()))
}

/// Prints to standard output, in colour on a terminal that wants it; a closed reader is no failure.
fn paint(text: &str) -> Result<(), Failure> {
    match writeln!(anstream::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// The summary, each text and its words, and the cosines between the words.
fn for_people(explained: &Explanation, texts: [&str; 2], method: &str) -> String {
    let mut told = explained.sentence(method) + "\n";
    let most = heat::largest_share(explained);
    for (name, text, words, unknown) in [
        ("A", texts[0], &explained.one, &explained.one_unknown),
        ("B", texts[1], &explained.other, &explained.other_unknown),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(told, "\n{name}\n  {}", heat::painted(text, words, most));
        for word in words {
            told.push_str(&line(&word.token, word.share, most, &how(word)));
        }
        for UnknownToken { token, share } in unknown {
            told.push_str(&line(token, *share, most, "no vector"));
        }
    }
    if explained.shares.is_none() && !explained.unscored {
        let _ = writeln!(told, "\nThe score of {method} has no shares of single words.");
    }
    told + &heat::map(explained)
}

fn line(token: &str, share: Option<f32>, most: f32, note: &str) -> String {
    let style = heat::of_share(share.unwrap_or_default(), most);
    let share = share.map_or(String::new(), |share| format!("{share:.4}"));
    let rest = format!("  {:<20} {note}", on_a_line(token));
    format!("  {style}{share:>8}{style:#}{}\n", rest.trim_end())
}

fn how(ExplainedWord { token, word, found, pieces, .. }: &ExplainedWord) -> String {
    let word = word.as_deref().unwrap_or_default();
    match found {
        Found::Listed if word == token => String::new(),
        Found::Listed => format!("as {word}"),
        Found::Shortened => format!("shortened to {word}"),
        Found::Stem => format!("by its stem {word}"),
        Found::Part => format!("by its part {word}"),
        Found::NGrams => "from its n-grams".to_owned(),
        Found::Pieces => format!("from its pieces {}", pieces.join(" ")),
        Found::Hash => "not listed: a vector from its hash".to_owned(),
    }
}
