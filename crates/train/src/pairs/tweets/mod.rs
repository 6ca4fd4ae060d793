//! Pairs from tweets: two that share hashtags, or an event, within minutes are related; two that
//! share none are not.
//!
//! The rules are those of De Boom et al. (2016, section 4.2): #breaking, #update and #news do not
//! count; either tweet has at least five words besides hashtags, names and addresses; the Jaccard
//! similarity of their hashtags is 0.5 or more (0 for non-related ones), that of their words below
//! 0.5. Where the paper is silent: a leading `RT` belongs to no text, so a retweet is a repeat; a
//! tweet without a hashtag is in no pair, because nobody knows what it is about.

pub(super) mod columns;
mod pairing;
mod store;

use std::path::PathBuf;

use cognate::text::Normalisation;
use cognate_kernels::random::Random;
use serde::Serialize;

use crate::pairs::output::{Label, Output};
use crate::pairs::tweets::pairing::Pairing;
use crate::pairs::tweets::store::{Key, Outcome, Reader, Tweets};
use crate::pairs::{Columns, PairsError, Rows};

/// What `cognate pairs tweets` does.
#[derive(Debug, Clone)]
pub struct TweetOptions {
    /// Files of tweets: rows under a header, or JSON objects if the name ends in .ndjson or .jsonl.
    pub files: Vec<PathBuf>,
    pub output: PathBuf,
    /// Which columns hold what.
    pub columns: Columns,
    /// Most minutes between related tweets.
    pub minutes: u32,
    /// How often a tweet may stand under a label.
    pub per_tweet: u32,
    /// Rows to write, half of them related; without it, as many as the tweets give.
    pub rows: Option<u64>,
    pub seed: u64,
    /// The rules that tell which texts are the same, and how they are written if normalised.
    pub normalisation: Normalisation,
    /// How texts are written.
    pub texts: Texts,
}

/// How the texts of pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// As the tweets have them, but for the hashtags of both and for breaks: what a service sees.
    AsTheyAre,
    /// As the words that rules make of them, but for the hashtags of both, general ones and a leading
    /// `RT`.
    Normalised,
}

/// What was made of tweets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TweetsMade {
    #[serde(flatten)]
    pub written: Rows,
    /// Rows that were asked for.
    pub wanted: Option<u64>,
    /// Rows read, those that the filters leave out included.
    pub tweets: u64,
    /// Rows that the filters left out.
    pub filtered: u64,
    /// Tweets of fewer than five words.
    pub too_short: u64,
    /// Tweets of more bytes than anything reads.
    pub too_long: u64,
    /// Tweets without a hashtag, or without an event where events count.
    pub without_key: u64,
    /// Tweets that say what one before said, as normalised.
    pub repeated: u64,
    /// Tweets that pairs were drawn from.
    pub kept: u64,
    /// Related pairs that found no non-related ones beside them, and were not written.
    pub unmatched: u64,
    /// Two tweets that were looked at and make no related pair.
    pub related_rejected: Rejections,
    /// Two tweets that were looked at and make no non-related pair.
    pub non_related_rejected: Rejections,
}

/// Why two tweets that were drawn make no pair; the first reason that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rejections {
    /// One stands under the label as often as it may.
    pub used_up: u64,
    /// They are a pair already.
    pub repeated: u64,
    /// They share too few hashtags to be related, or any to be non-related.
    pub hashtags: u64,
    /// Half of their words or more are the same.
    pub words: u64,
}

impl std::fmt::Display for TweetsMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.written, Reading(self))?;
        if let Some(wanted) = self.wanted.filter(|&wanted| wanted > self.written.rows) {
            write!(f, "\n  the tweets give no more; {wanted} rows were asked for")?;
        }
        Ok(())
    }
}

/// What was read, and why there are not more pairs.
struct Reading<'m>(&'m TweetsMade);

impl std::fmt::Display for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(made) = self;
        write!(f, "  read: {} tweets, of which {} are used", made.tweets, made.kept)?;
        let [related, other] = [made.related_rejected, made.non_related_rejected];
        let left_out = [
            (made.filtered, "tweets left out by --where"),
            (made.too_short, "tweets left out: fewer than 5 words"),
            (made.too_long, "tweets left out: longer than 8192 bytes"),
            (made.without_key, "tweets left out: no hashtag, or no event where events count"),
            (made.repeated, "tweets left out: repeats of one before"),
            (related.words, "draws of related tweets rejected: half the words are the same"),
            (related.hashtags, "draws of related tweets rejected: too few hashtags are the same"),
            (related.used_up, "draws of related tweets rejected: one is used up"),
            (related.repeated, "draws of related tweets rejected: a pair already"),
            (other.words, "draws of other tweets rejected: half the words are the same"),
            (other.hashtags, "draws of other tweets rejected: they share a hashtag or event"),
            (other.used_up, "draws of other tweets rejected: one is used up"),
            (other.repeated, "draws of other tweets rejected: a pair already"),
            (made.unmatched, "related pairs left out for want of non-related ones"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "\n  {count} {what}")?;
        }
        Ok(())
    }
}

/// Makes pairs of tweets and writes them.
pub fn from_tweets(options: &TweetOptions) -> Result<TweetsMade, PairsError> {
    let mut output = Output::create(&options.output, &options.files)?;
    let key = if options.columns.event.is_some() { Key::Event } else { Key::Hashtags };
    let mut made = TweetsMade { wanted: options.rows, ..TweetsMade::default() };
    let tweets = read(options, key, &mut made)?;

    let wanted = options.rows.map_or(u64::MAX, |rows| rows / 2);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let milliseconds = i64::from(options.minutes) * 60_000;
    let mut random = Random::seeded(options.seed);
    let mut pairing = Pairing::new(&tweets, key, milliseconds, options.per_tweet);
    let related = pairing.related(wanted, &mut random);
    let non_related = pairing.non_related(&related, &mut random);
    made.related_rejected = pairing.related_rejected;
    made.non_related_rejected = pairing.non_related_rejected;
    made.unmatched = (related.len() - non_related.len()) as u64;

    let mut texts = [String::new(), String::new()];
    let mut write = |label, [one, other]: [u32; 2]| {
        let [first, second] = &mut texts;
        tweets.write_text(one, other, first);
        tweets.write_text(other, one, second);
        output.push(label, [first.as_str(), second.as_str()])
    };
    for (related, non_related) in related.into_iter().zip(non_related) {
        write(Label::Related, related)?;
        write(Label::NonRelated, non_related)?;
    }
    if output.written().rows == 0 {
        let related = made.unmatched;
        let found = format!("found {related} related pairs and no non-related one");
        return Err(PairsError::TooLittle(format!("{found}\n{}", Reading(&made))));
    }
    made.written = output.finish()?;
    Ok(made)
}

/// Reads the tweets that pairs are drawn from.
fn read(options: &TweetOptions, key: Key, made: &mut TweetsMade) -> Result<Tweets, PairsError> {
    let mut reader = Reader::new(key, &options.normalisation, options.texts);
    let mut tweets = Tweets::default();
    for path in &options.files {
        options.columns.each(path, |row| {
            made.tweets += 1;
            let count = match row.map(|row| reader.read(&row, &mut tweets)).transpose()? {
                None => &mut made.filtered,
                Some(Outcome::Kept) => &mut made.kept,
                Some(Outcome::TooShort) => &mut made.too_short,
                Some(Outcome::TooLong) => &mut made.too_long,
                Some(Outcome::WithoutKey) => &mut made.without_key,
                Some(Outcome::Repeated) => &mut made.repeated,
            };
            *count += 1;
            Ok(())
        })?;
    }
    Ok(tweets)
}
