//! Pairs from tweets: two tweets that share hashtags (or an event) within minutes are related; two
//! that share none are not.
//!
//! The rules are those of De Boom et al. (2016, section 4.2): #breaking, #update and #news do not
//! count; each tweet has at least five words besides hashtags, names and addresses; the Jaccard
//! similarity of their hashtags is at least 0.5 (0 for non-related pairs), that of their words
//! below 0.5. Where the paper is silent: a leading `RT` is not part of the text, so a retweet is a
//! repeat; a tweet without a hashtag is left out, because its subject is unknown.

mod pairing;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cognate::text::Normalisation;
use cognate_files::input::{Input, shown};
use cognate_files::progress::Progress;
use cognate_files::records::json_object;
use cognate_files::{Place, ReadError, instant};
use cognate_kernels::random::Random;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::pairs::tweets::pairing::{Key, Outcome, Pairing, Reader, Tweets};
use crate::pairs::{Label, Output, Rows};
use crate::{Result, TrainError};

#[derive(Debug, Clone)]
pub struct TweetOptions {
    pub files: Vec<PathBuf>,
    pub output: PathBuf,
    pub columns: Columns,
    pub minutes: u32,
    pub per_tweet: u32,
    pub rows: Option<u64>,
    pub seed: u64,
    pub normalisation: Normalisation,
    pub texts: Texts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// As in the tweets, without shared hashtags and line breaks: what a service receives.
    AsTheyAre,
    /// As normalised words, without shared and general hashtags and a leading `RT`.
    Normalised,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TweetsMade {
    #[serde(flatten)]
    pub written: Rows,
    pub wanted: Option<u64>,
    pub tweets: u64,
    pub filtered: u64,
    pub too_short: u64,
    pub too_long: u64,
    /// Tweets without a hashtag, or without an event if tweets are grouped by event.
    pub without_key: u64,
    /// Tweets whose normalised text equals that of an earlier tweet.
    pub repeated: u64,
    pub kept: u64,
    pub unmatched: u64,
    pub related_rejected: Rejections,
    pub non_related_rejected: Rejections,
}

/// Counts of rejected candidate pairs by reason; a pair counts under the first reason that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rejections {
    /// A tweet has reached its maximum number of pairs for this label.
    pub used_up: u64,
    /// The two tweets are a pair already.
    pub repeated: u64,
    /// They share too few hashtags for a related pair, or one for a non-related pair.
    pub hashtags: u64,
    pub words: u64,
}

impl std::fmt::Display for TweetsMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.written, self.reading())?;
        if let Some(wanted) = self.wanted.filter(|&wanted| wanted > self.written.rows) {
            write!(f, "\n  the tweets give no more; {wanted} rows were requested")?;
        }
        Ok(())
    }
}

impl TweetsMade {
    /// What was read and why there are not more pairs.
    fn reading(&self) -> String {
        let mut said = format!("  read: {} tweets, of which {} are used", self.tweets, self.kept);
        let [related, other] = [self.related_rejected, self.non_related_rejected];
        let left_out = [
            (self.filtered, "tweets left out by --where"),
            (self.too_short, "tweets left out: fewer than 5 words"),
            (self.too_long, "tweets left out: longer than 8192 bytes"),
            (self.without_key, "tweets left out: no hashtag, or no event where events count"),
            (self.repeated, "tweets left out: repeats of one before"),
            (related.words, "draws of related tweets rejected: half the words are the same"),
            (related.hashtags, "draws of related tweets rejected: too few hashtags are the same"),
            (related.used_up, "draws of related tweets rejected: one is used up"),
            (related.repeated, "draws of related tweets rejected: a pair already"),
            (other.words, "draws of other tweets rejected: half the words are the same"),
            (other.hashtags, "draws of other tweets rejected: they share a hashtag or event"),
            (other.used_up, "draws of other tweets rejected: one is used up"),
            (other.repeated, "draws of other tweets rejected: a pair already"),
            (self.unmatched, "related pairs left out for want of non-related ones"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            said += &format!("\n  {count} {what}");
        }
        said
    }
}

pub fn from_tweets(options: &TweetOptions) -> Result<TweetsMade> {
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
    if output.written.rows == 0 {
        let related = made.unmatched;
        let found = format!("found {related} related pairs and no non-related one");
        return Err(TrainError::TooLittle(format!("{found}\n{}", made.reading())));
    }
    made.written = output.finish()?;
    Ok(made)
}

fn read(options: &TweetOptions, key: Key, made: &mut TweetsMade) -> Result<Tweets> {
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

const ROW_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct Columns {
    pub text: String,
    pub time: Option<String>,
    pub event: Option<String>,
    pub filters: Vec<Filter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    column: String,
    value: String,
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.is_empty() => {
                Ok(Self { column: column.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected a column, `=` and a value".to_owned()),
        }
    }
}

struct Row<'r> {
    text: Cow<'r, str>,
    time: i64,
    event: Cow<'r, str>,
}

impl Columns {
    /// Passes every row of a file to `take`; `None` for a row that the filters leave out. An error
    /// of `take` is reported with file and line.
    fn each(
        &self,
        path: &Path,
        mut take: impl FnMut(Option<Row<'_>>) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let progress = Progress::bytes("tweets");
        let table = if is_objects(path) { None } else { Some(Table::new(self, &mut input)?) };
        while let Some(line) = input.read_line_bounded(ROW_BYTES)? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let outcome = match (std::str::from_utf8(line), &table) {
                (Err(_), _) => Err("the row is not UTF-8".to_owned()),
                (Ok(line), Some(table)) => table.row(self, line).and_then(&mut take),
                (Ok(line), None) => {
                    json_object(line).and_then(|object| self.row_of(&object).and_then(&mut take))
                }
            };
            outcome.map_err(|problem| input.malformed(Place::Line(input.lines()), problem))?;
            progress.follow(&input);
        }
        Ok(())
    }

    fn row_of<'r>(&self, object: &'r Map<String, Value>) -> Result<Option<Row<'r>>, String> {
        let meant = |filter: &Filter| {
            scalar(object.get(&filter.column)) == Some(filter.value.as_str().into())
        };
        if !self.filters.iter().all(meant) {
            return Ok(None);
        }
        let named = |name: &str| object.get(name).map(|value| (name.to_owned(), value));
        let (name, time) = match &self.time {
            Some(name) => named(name).ok_or_else(|| format!("expected a field `{name}` (--time)")),
            None => instant::FIELDS.iter().find_map(|name| named(name)).ok_or_else(|| {
                format!(
                    "expected a field with the time (--time), one of {}",
                    instant::FIELDS.join(", ")
                )
            }),
        }?;
        let time = scalar(Some(time)).unwrap_or_default();
        let time = milliseconds(&name, &time)?;
        let text = match object.get(&self.text) {
            Some(Value::String(text)) => Cow::from(text),
            Some(_) => return Err(format!("`{}`: expected a string", self.text)),
            None => return Err(format!("expected a field `{}` (--text)", self.text)),
        };
        let event = self.event.as_ref().and_then(|name| scalar(object.get(name)));
        Ok(Some(Row { text, time, event: event.unwrap_or_default() }))
    }
}

struct Table {
    columns: usize,
    text: usize,
    time: usize,
    time_name: String,
    event: Option<usize>,
    filters: Vec<usize>,
}

impl Table {
    fn new(columns: &Columns, input: &mut Input) -> Result<Self, ReadError> {
        let header = input.read_line_bounded(ROW_BYTES)?.unwrap_or_default();
        let header = String::from_utf8_lossy(header).into_owned();
        let names: Vec<&str> = header.split('\t').collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let missing = |what: String| {
            let found = shown(header.as_bytes());
            let problem = format!("expected {what} in the header, found {found}");
            input.malformed(Place::Line(1), problem)
        };
        let find = |name: &str, flag: &str| {
            place(name).ok_or_else(|| missing(format!("a column `{name}` ({flag})")))
        };
        let time = match &columns.time {
            Some(name) => find(name, "--time")?,
            None => instant::FIELDS.iter().find_map(|name| place(name)).ok_or_else(|| {
                missing(format!(
                    "a column with the time (--time), one of {}",
                    instant::FIELDS.join(", ")
                ))
            })?,
        };
        let event = columns.event.as_ref().map(|name| find(name, "--event-column")).transpose()?;
        let filters = columns.filters.iter().map(|filter| find(&filter.column, "--where"));
        Ok(Self {
            columns: names.len(),
            text: find(&columns.text, "--text")?,
            time,
            time_name: names[time].to_owned(),
            event,
            filters: filters.collect::<Result<_, _>>()?,
        })
    }

    fn row<'r>(&self, columns: &Columns, line: &'r str) -> Result<Option<Row<'r>>, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != self.columns {
            return Err(format!("expected {} columns, found {}", self.columns, fields.len()));
        }
        let mut filters = columns.filters.iter().zip(&self.filters);
        if !filters.all(|(filter, &place)| fields[place] == filter.value) {
            return Ok(None);
        }
        let time = milliseconds(&self.time_name, fields[self.time])?;
        let event = self.event.map_or("", |place| fields[place]);
        Ok(Some(Row { text: fields[self.text].into(), time, event: event.into() }))
    }
}

fn milliseconds(column: &str, value: &str) -> Result<i64, String> {
    instant::milliseconds(value).ok_or_else(|| {
        let found = shown(value.as_bytes());
        format!("`{column}`: expected {}, found {found}", instant::FORMS)
    })
}

fn scalar(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value? {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_objects(path: &Path) -> bool {
    let unpacked = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz" | "zst") => path.with_extension(""),
        _ => PathBuf::from(path),
    };
    unpacked.extension().is_some_and(|ending| ending == "ndjson" || ending == "jsonl")
}
