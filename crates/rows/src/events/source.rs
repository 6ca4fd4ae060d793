//! Reads records as texts with times and ids.

use cognate_files::input::shown;
use cognate_files::records::{Column, Record, Records};
use cognate_files::{ReadError, instant};
use serde::{Deserialize, Serialize};

use crate::bad_rows::BadRows;
use crate::events::{EventsError, EventsOptions};
use crate::{LeftOut, STANDARD, columnar};

/// Default names of the id field; the first that exists is used.
const IDS: [&str; 3] = ["id_str", "id", "tweet_id"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    pub text: String,
    pub time: Option<String>,
    /// The id; if it is one of Twitter's, the time can be computed from it.
    pub id: Option<String>,
}

/// A text of a stream; as it stands here it is a line of the state while it waits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tweet {
    /// Milliseconds since 1970 began.
    pub(super) time: i64,
    pub(super) text: Box<str>,
    pub(super) id: Option<Box<str>>,
    pub(super) raw: Box<str>,
}

/// Where the times of texts come from.
enum Times {
    Field(Column),
    Snowflake(Column),
    /// Times from ids, if the first id is a Twitter id; else nowhere.
    Ids(Column),
    /// Nowhere: all times are 0, and the window is bounded only by its number of texts.
    None,
}

pub(super) struct Source {
    pub(super) records: Records,
    bad: BadRows,
    pub(super) standard_input: bool,
    text: Column,
    pub(super) id: Option<Column>,
    times: Times,
    pub(super) count: u64,
    pub(super) first: Option<blake3::Hash>,
    pub(super) all: blake3::Hasher,
}

impl Source {
    pub(super) fn open(options: &EventsOptions) -> Result<Self, EventsError> {
        let columns = &options.columns;
        let needed = [Some(&columns.text), columns.time.as_ref(), columns.id.as_ref()];
        let needed: Vec<&str> = needed.into_iter().flatten().map(String::as_str).collect();
        let mut records = columnar::records(&options.input, options.records, &needed)?;
        let bad = BadRows::create(&options.bad_rows)?;
        let names = records.peek_names()?;
        let there = |name: &&str| names.iter().any(|known| known == name);
        let named = |given: &Option<String>, usual: &[&'static str]| match given {
            Some(name) => records.column(name).map(Some),
            None => usual.iter().copied().find(there).map(|name| records.column(name)).transpose(),
        };
        let (time, id) = (named(&columns.time, &instant::FIELDS)?, named(&columns.id, &IDS)?);
        let needs_time = options.settings.limits.within.is_some() || options.slack > 0;
        let times = match (time, &id) {
            (Some(time), _) => Times::Field(time),
            (None, Some(id)) if columns.id.is_some() || id.name() == "tweet_id" => {
                let column = id.clone();
                if needs_time { Times::Snowflake(column) } else { Times::Ids(column) }
            }
            _ if needs_time => {
                return Err(EventsError::Options(format!(
                    "no field with the time is there, which --within and --slack need: name it \
                     (--time), one of {}, or the id of tweets (--id)",
                    instant::FIELDS.join(", ")
                )));
            }
            _ => Times::None,
        };
        let standard_input = options.input.as_os_str() == STANDARD;
        let (text, all) = (records.column(&columns.text)?, blake3::Hasher::new());
        Ok(Self { records, bad, standard_input, text, id, times, count: 0, first: None, all })
    }

    pub(super) fn refuse_fields(&mut self, added: &[String]) -> Result<(), EventsError> {
        let names = self.records.peek_names()?;
        match added.iter().find(|name| names.contains(name)) {
            Some(name) => Err(EventsError::Options(format!(
                "the records have a field `{name}` already: --prefix gives the added ones other \
                 names"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn read(&mut self) -> Result<Option<Tweet>, ReadError> {
        let Self { records, bad, text, id, times, .. } = self;
        let read = bad.next(records, |record| tweet(record, text, id.as_ref(), times))?;
        if let Some(tweet) = &read {
            self.count += 1;
            self.first.get_or_insert_with(|| blake3::hash(tweet.raw.as_bytes()));
            self.all.update(tweet.raw.as_bytes()).update(b"\n");
        }
        Ok(read)
    }

    pub(super) fn finish(self) -> Result<LeftOut, ReadError> {
        self.bad.finish()
    }
}

fn tweet(
    record: &Record<'_>,
    text: &Column,
    id: Option<&Column>,
    times: &mut Times,
) -> Result<Tweet, String> {
    if let Times::Ids(column) = times {
        // The first id decides; records before it have none.
        if let Some(id) = record.field(column)?.filter(|id| !id.is_empty()) {
            let is_tweet = instant::of_snowflake(&id).is_some();
            *times = if is_tweet { Times::Snowflake(column.clone()) } else { Times::None };
        }
    }
    let time = match times {
        Times::None | Times::Ids(_) => 0,
        Times::Field(column) => {
            let time = record.needed(column)?;
            instant::milliseconds(&time).ok_or_else(|| {
                let found = shown(time.as_bytes());
                format!("`{}`: expected {}, found {found}", column.name(), instant::FORMS)
            })?
        }
        Times::Snowflake(column) => {
            let id = record.needed(column)?;
            instant::of_snowflake(&id).ok_or_else(|| {
                let found = shown(id.as_bytes());
                format!(
                    "`{}`: expected the id of a tweet, to read the time from, found {found}",
                    column.name()
                )
            })?
        }
    };
    let id = match id {
        Some(column) => record.field(column)?.map(|id| id.as_ref().into()),
        None => None,
    };
    let text = record.field(text)?.unwrap_or_default().as_ref().into();
    Ok(Tweet { raw: record.raw().into(), text, id, time })
}
