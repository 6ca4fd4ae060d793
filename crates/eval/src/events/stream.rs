//! A labelled stream: texts in the order of their times, each with the event that it is of.

use std::collections::BTreeMap;
use std::path::Path;

use cognate_files::instant;
use cognate_files::progress::Progress;
use cognate_files::records::Records;

use crate::EvalError;
use crate::events::EventsOptions;

/// Names of the field that holds the time, where none is said.
const TIMES: [&str; 4] = ["time", "time_utc", "created_at", "timestamp"];

#[derive(Debug, Clone, Default)]
pub(super) struct Labelled {
    pub(super) texts: Vec<String>,
    /// Milliseconds, from low to high.
    pub(super) times: Vec<i64>,
    /// The place of the event of each text among the names; a text alone has one of its own beyond.
    pub(super) gold: Vec<u64>,
    pub(super) names: Vec<String>,
}

/// A text as it is read.
struct Row {
    text: String,
    time: i64,
    event: String,
    related: bool,
}

impl Labelled {
    pub(super) fn read(path: &Path, options: &EventsOptions) -> Result<Self, EvalError> {
        let mut rows = rows(path, options)?;
        if options.interleave {
            let mut begin: BTreeMap<String, i64> = BTreeMap::new();
            for row in &rows {
                let first = begin.entry(row.event.clone()).or_insert(row.time);
                *first = row.time.min(*first);
            }
            for row in &mut rows {
                row.time -= begin.get(&row.event).copied().unwrap_or(0);
            }
        }
        // Texts of one time stay in the order of the file.
        rows.sort_by_key(|row| row.time);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.related && !row.event.is_empty()) {
            *counts.entry(&row.event).or_default() += 1;
        }
        let names: Vec<String> = counts
            .iter()
            .filter(|&(_, &count)| count > 1)
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let mut stream = Self { names, ..Self::default() };
        let mut alone = stream.names.len() as u64;
        for row in rows {
            let place = stream.names.binary_search(&row.event).ok().filter(|_| row.related);
            stream.gold.push(place.map_or(alone, |place| place as u64));
            alone += u64::from(place.is_none());
            stream.texts.push(row.text);
            stream.times.push(row.time);
        }
        if stream.names.is_empty() {
            return Err(EvalError::Data {
                file: path.display().to_string(),
                problem: format!("no event of the field `{}` has two texts", options.gold),
            });
        }
        Ok(stream)
    }
}

fn rows(path: &Path, options: &EventsOptions) -> Result<Vec<Row>, EvalError> {
    let mut records = Records::open(path, options.records)?;
    let names = records.peek_names()?;
    let usual = TIMES.into_iter().find(|name| names.iter().any(|known| known == name));
    let time = records.column(options.time.as_deref().or(usual).unwrap_or(TIMES[0]))?;
    let (text, gold) = (records.column(&options.text)?, records.column(&options.gold)?);
    let flags = match options.interleave {
        true => Some((records.column("related")?, records.column("english")?)),
        false => None,
    };
    let progress = Progress::bytes("stream");
    let mut rows = Vec::new();
    loop {
        records.follow(&progress);
        let Some(record) = records.read()? else { return Ok(rows) };
        let read = || -> Result<Option<Row>, String> {
            let mut related = true;
            if let Some((of_event, english)) = &flags {
                related = record.needed(of_event)? == "1";
                if record.needed(english)? != "1" {
                    return Ok(None);
                }
            }
            let at = record.needed(&time)?;
            let time = instant::milliseconds(&at)
                .ok_or_else(|| format!("`{}`: expected {}", time.name(), instant::FORMS))?;
            let event = record.field(&gold)?.unwrap_or_default().into_owned();
            Ok(Some(Row { text: record.needed(&text)?.into_owned(), time, event, related }))
        };
        match read() {
            Ok(row) => rows.extend(row),
            Err(problem) => return Err(records.wrong(problem).into()),
        }
    }
}
