//! `cognate explain`: why two texts scored as they did.

use std::fmt::Write;
use std::sync::Arc;

use clap::Args;

use crate::cli::Failure;
use crate::cli::ask::Asked;
use crate::cli::ask::on_a_line;
use crate::cli::ask::pair_refused;
use crate::cli::print;
use crate::engine::ExplainedWord;
use crate::engine::Explanation;
use crate::engine::Measure;
use crate::engine::Query;
use crate::engine::UnknownToken;
use crate::http::api::explain::ExplainResponse;
use crate::http::request::query::Resolved;
use crate::model::phrase::Found;

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// The first text; for a method that only ranks, the query
    a: String,
    /// The second text; for a method that only ranks, the candidate
    b: String,
    /// Measure of a vector method [default: the method's own]
    #[arg(long, value_enum)]
    measure: Option<Measure>,
    #[command(flatten)]
    asked: Asked,
}

pub(in crate::cli) fn run(args: ExplainArgs) -> Result<(), Failure> {
    let model = args.asked.open()?;
    let query = Query { measure: args.measure, ..args.asked.query(&model.engine)? };
    let explained = model.engine.explain(&args.a, &args.b, &query).map_err(pair_refused)?;
    if args.asked.json {
        let resolved = Resolved { model: Arc::clone(&model), query };
        return print(&serde_json::to_string(&ExplainResponse::of(&explained, &resolved))?);
    }
    print(&for_people(&explained, query.method.name()))
}

/// The summary, and each text word by word.
fn for_people(explained: &Explanation, method: &str) -> String {
    let mut told = explained.sentence(method) + "\n";
    for (name, words, unknown) in [
        ("A", &explained.one, &explained.one_unknown),
        ("B", &explained.other, &explained.other_unknown),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(told, "\n{name}");
        for word in words {
            told.push_str(&line(&word.token, word.share, &how(word)));
        }
        for UnknownToken { token, share } in unknown {
            told.push_str(&line(token, *share, "no vector"));
        }
    }
    if explained.shares.is_none() && !explained.unscored {
        let _ = writeln!(told, "\nThe score of {method} has no shares of single words.");
    }
    told
}

fn line(token: &str, share: Option<f32>, note: &str) -> String {
    let share = share.map_or(String::new(), |share| format!("{share:.4}"));
    format!("{}\n", format!("  {share:>8}  {:<20} {note}", on_a_line(token)).trim_end())
}

/// How a word was found, where it is not simply listed.
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
