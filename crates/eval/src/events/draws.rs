//! Streams of labelled texts: the files' own streams, and streams drawn from their events.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cognate::window::Limits;
use cognate_files::instant;
use cognate_files::progress::Progress;
use cognate_files::records::Records;
use cognate_kernels::random::Random;

use crate::events::EventsOptions;
use crate::{EvalError, Result};

/// The span within which the events of a drawn stream begin.
const SPAN_MS: usize = 5 * 86_400_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Labelled {
    pub(super) texts: Vec<String>,
    pub(super) times: Vec<i64>,
    /// For each text the index of its event in `names`; texts without an event have higher numbers.
    pub(super) gold: Vec<u64>,
    pub(super) names: Vec<String>,
    /// For each text the number of texts collected with its event, related or not.
    pub(super) beside: Vec<usize>,
}

#[derive(Clone)]
struct Row {
    text: String,
    time: i64,
    event: String,
    related: bool,
}

impl Labelled {
    /// Whether the window before a text has an earlier text.
    pub(super) fn keeps(&self, earlier: usize, text: usize, limits: Limits) -> bool {
        let time = |at: usize| self.times.get(at).copied().unwrap_or(0);
        let within = |most: i64| time(text).saturating_sub(time(earlier)) <= most;
        earlier + limits.last >= text && limits.within.is_none_or(within)
    }

    /// Returns the stream of a file, and the requested number of streams drawn from it: each has every
    /// second text of half of the events, from a random moment on.
    pub(super) fn draw(path: &Path, options: &EventsOptions) -> Result<Vec<Self>> {
        let mut rows = rows(path, options)?;
        if options.interleave {
            let mut begin: BTreeMap<&str, i64> = BTreeMap::new();
            for row in &rows {
                let first = begin.entry(&row.event).or_insert(row.time);
                *first = row.time.min(*first);
            }
            let begin = rows.iter().map(|row| begin.get(&*row.event).copied().unwrap_or(0));
            let begin: Vec<i64> = begin.collect();
            rows.iter_mut().zip(begin).for_each(|(row, begin)| row.time -= begin);
        }
        let streams = if options.interleave { options.streams.max(1) } else { 1 };
        let events: BTreeSet<String> = rows.iter().map(|row| row.event.clone()).collect();
        let drawn = (1..streams).map(|number| {
            let mut random = Random::seeded(number as u64);
            let mut taken: Vec<&String> = events.iter().collect();
            random.shuffle(&mut taken);
            taken.truncate(events.len().div_ceil(1 + number % 2));
            let begin = taken.into_iter().map(|event| (event, random.below(SPAN_MS) as i64));
            let begin: BTreeMap<&String, i64> = begin.collect();
            let moved = rows.iter().filter_map(|row| {
                let time = row.time + begin.get(&row.event)?;
                Some(Row { time, ..row.clone() })
            });
            Self::new(moved.collect())
        });
        let drawn: Vec<Self> = drawn.filter(|stream| !stream.names.is_empty()).collect();
        let whole = Self::new(rows);
        if whole.names.is_empty() {
            return Err(none(path, options));
        }
        Ok(std::iter::once(whole).chain(drawn).collect())
    }

    fn new(mut rows: Vec<Row>) -> Self {
        // Texts with equal times keep the order of the file.
        rows.sort_by_key(|row| row.time);
        let (mut counts, mut beside) = (BTreeMap::<&str, usize>::new(), BTreeMap::new());
        for row in &rows {
            *beside.entry(&*row.event).or_insert(0_usize) += 1;
            if row.related && !row.event.is_empty() {
                *counts.entry(&row.event).or_default() += 1;
            }
        }
        let names = counts.iter().filter(|&(_, &count)| count > 1);
        let names: Vec<String> = names.map(|(name, _)| (*name).to_owned()).collect();
        let beside = rows.iter().map(|row| beside.get(&*row.event).copied().unwrap_or(1));
        let mut stream = Self { names, beside: beside.collect(), ..Self::default() };
        let mut alone = stream.names.len() as u64;
        for row in rows {
            let place = stream.names.binary_search(&row.event).ok().filter(|_| row.related);
            stream.gold.push(place.map_or(alone, |place| place as u64));
            alone += u64::from(place.is_none());
            stream.texts.push(row.text);
            stream.times.push(row.time);
        }
        stream
    }
}

pub(super) fn none(path: &Path, options: &EventsOptions) -> EvalError {
    EvalError::Data {
        file: path.display().to_string(),
        problem: format!("no event of the field `{}` has two texts", options.gold),
    }
}

fn rows(path: &Path, options: &EventsOptions) -> Result<Vec<Row>> {
    let mut records = Records::open(path, options.records)?;
    let names = records.peek_names()?;
    let usual = instant::FIELDS.into_iter().find(|name| names.iter().any(|known| known == name));
    let time = records.column(options.time.as_deref().or(usual).unwrap_or(instant::FIELDS[0]))?;
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
