//! Flags of `cognate pairs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cognate::text::Normalisation;
use cognate_train::pairs;
use cognate_train::pairs::{Columns, Filter, Lengths, TextOptions, Texts, TweetOptions};

use crate::cli::choices::normalisation;
use crate::cli::train::refused;
use crate::cli::{Failure, count, show};

#[derive(Debug, Subcommand)]
pub(super) enum PairsCommand {
    /// From running text: chunks of one paragraph against chunks of two documents
    ///
    /// Two chunks of a paragraph with two words between them are related, two chunks of two
    /// documents are not; as far as documents allow, a chunk stands once under either label. Text
    /// streams through in constant memory. Rows come in its order, some thousands of non-related
    /// ones after the last related one, so shuffle them where order matters.
    Text(TextArgs),
    /// From tweets: those that share hashtags, or an event, within minutes against those that do not
    ///
    /// Related: a hashtag Jaccard of 0.5 or more within minutes; non-related: no common hashtag, at
    /// any time. Either text has 5 words besides hashtags, names, addresses and a leading RT, and
    /// word Jaccard is below 0.5. #breaking, #update, #news, tweets without a hashtag and repeated
    /// texts are dropped; hashtags that both texts have are removed from both. Apart from these, texts
    /// are written as they are, so that thresholds are found on what a service will see. All tweets that can
    /// be used are held in memory, with their pairs about 500 bytes each.
    Tweets(TweetArgs),
}

#[derive(Debug, Args)]
struct Shared {
    /// File to write: a header, then label, text1, text2 a row; packed if its name ends in .gz
    #[arg(short, long)]
    output: PathBuf,
    /// Rows to write, half of them related; fewer where there are not so many [default: all]
    #[arg(long, value_name = "N", value_parser = even)]
    rows: Option<u64>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rules that turn texts into words
    #[arg(long, value_name = "PRESET", default_value = "deboom", value_parser = normalisation())]
    normalisation: Normalisation,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct TextArgs {
    /// Running text, a sentence a line; an empty line ends a paragraph, two end a document; .gz and
    /// .zst are read directly
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// Words of a chunk: a number, or the range that each chunk's is drawn from
    #[arg(long, value_name = "WORDS", default_value = "10-30")]
    length: Lengths,
    /// Words between the starts of two related pairs in a paragraph. Less than a pair's words
    /// makes pairs overlap, so that a text's words stand in several [default: none overlap]
    #[arg(long, value_name = "WORDS", value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct TweetArgs {
    /// Tweets: rows split at tabs under a header, or a JSON object a line if the name ends in
    /// .ndjson or .jsonl; .gz and .zst are read directly
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// Column of what a tweet is about: takes the place of its hashtags; non-related tweets still
    /// have no hashtag in common
    #[arg(long, value_name = "NAME")]
    event_column: Option<String>,
    /// Column of texts
    #[arg(long, value_name = "NAME", default_value = "text")]
    text: String,
    /// Column of times: RFC 3339, `YYYY-MM-DD HH:MM:SS`, seconds or milliseconds since 1970, or as
    /// Twitter writes it [default: the first of time, time_utc, created_at, timestamp]
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// Take only rows whose column has this value; all must hold when given again
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    filters: Vec<Filter>,
    /// Write the words that --normalisation makes of texts, without #breaking, #update, #news and a
    /// leading RT, instead of texts as they are
    #[arg(long)]
    normalised: bool,
    /// Maximum minutes between related tweets
    #[arg(long, value_name = "N", default_value_t = 15)]
    minutes: u32,
    /// Maximum number of pairs of each label that a tweet appears in
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::<u32>(1, 1_000_000))]
    per_tweet: u32,
}

/// As many pairs of either label make an even number.
fn even(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|&rows: &u64| rows >= 2 && rows.is_multiple_of(2));
    count.ok_or_else(|| "expected an even number above 0: half of the rows are related".to_owned())
}

pub(super) fn run(command: PairsCommand) -> Result<(), Failure> {
    match command {
        PairsCommand::Text(args) => {
            let options = TextOptions {
                files: args.files,
                output: args.shared.output,
                rows: args.shared.rows,
                lengths: args.length,
                stride: args.stride.map(|words| words as usize),
                seed: args.shared.seed,
                normalisation: args.shared.normalisation,
            };
            show(&pairs::from_text(&options).map_err(refused)?, args.shared.json)
        }
        PairsCommand::Tweets(args) => {
            let options = TweetOptions {
                files: args.files,
                output: args.shared.output,
                columns: Columns {
                    text: args.text,
                    time: args.time,
                    event: args.event_column,
                    filters: args.filters,
                },
                minutes: args.minutes,
                per_tweet: args.per_tweet,
                rows: args.shared.rows,
                seed: args.shared.seed,
                normalisation: args.shared.normalisation,
                texts: if args.normalised { Texts::Normalised } else { Texts::AsTheyAre },
            };
            show(&pairs::from_tweets(&options).map_err(refused)?, args.shared.json)
        }
    }
}
