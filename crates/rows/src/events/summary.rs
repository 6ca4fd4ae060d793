//! A table of the events of a stream: time, number of texts, rate, the words that distinguish an
//! event from the rest of the stream, and its most central text.
//!
//! A row is written when its event has ended, that is, when none of its texts is left in the
//! window; the data kept until then is bounded by the window. A large event is represented by a
//! sample of its texts; when there are too many distinct words in an event or the stream, the rare
//! ones are dropped.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use cognate::engine::{Engine, Measure, Query};
use cognate::model::disk;
use cognate::text;
use cognate::text::{Kind, Normalisation, Tokens};
use cognate::window::events::Decision;
use cognate_files::instant;
use cognate_files::records::Added;

use crate::events::source::Tweet;
use crate::events::{EventsError, Names};

/// Maximum texts in the sample of an event.
const TEXTS: usize = 24;
/// Number of words in a row.
const NAMED: usize = 6;
/// Maximum distinct words counted for an event, and for the stream.
const WORDS: [usize; 2] = [1 << 10, 1 << 18];

const HEADER: &str = "event\tstart\tend\ttexts\tper_hour\twords\tcentral\n";

pub(super) struct Summary {
    path: PathBuf,
    least: u64,
    rows: String,
    events: HashMap<u64, Event>,
    stream: Words,
    tokens: Tokens,
}

/// Words with the number of texts that contain them.
#[derive(Default)]
struct Words {
    texts: u64,
    counts: HashMap<Box<str>, u32>,
}

impl Words {
    fn take<'w>(&mut self, words: impl Iterator<Item = &'w str>, most: usize) {
        self.texts += 1;
        for word in words {
            match self.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(word.into(), 1)),
            }
        }
        let mut floor = 1;
        while self.counts.len() > most {
            self.counts.retain(|_, &mut count| count > floor);
            floor *= 2;
        }
    }

    fn count(&self, word: &str) -> u32 {
        self.counts.get(word).copied().unwrap_or(0)
    }
}

/// The data of an event that has not ended.
struct Event {
    start: i64,
    end: i64,
    size: u64,
    words: Words,
    texts: Vec<Box<str>>,
}

impl Summary {
    pub(super) fn create(path: &Path, least: u64) -> Self {
        Self {
            path: path.to_owned(),
            least,
            rows: HEADER.to_owned(),
            events: HashMap::new(),
            stream: Words::default(),
            tokens: Tokens::new(),
        }
    }

    /// Adds a text that was assigned to an event.
    pub(super) fn take(
        &mut self,
        tweet: &Tweet,
        number: u64,
        decision: &Decision,
        rules: &Normalisation,
    ) {
        text::tokenise(rules, &tweet.text, &mut self.tokens);
        let words = self.tokens.iter();
        let words = words.filter(|(_, token)| matches!(token.kind, Kind::Word | Kind::Hashtag));
        let mut words: Vec<&str> =
            words.map(|(word, _)| word).filter(|word| word.chars().count() > 2).collect();
        words.sort_unstable();
        words.dedup();
        let event = self.events.entry(decision.event).or_insert_with(|| Event {
            start: tweet.time,
            end: tweet.time,
            size: 0,
            words: Words::default(),
            texts: Vec::new(),
        });
        event.start = event.start.min(tweet.time);
        event.end = event.end.max(tweet.time);
        event.size += 1;
        event.words.take(words.iter().copied(), WORDS[0]);
        if event.texts.len() < TEXTS {
            event.texts.push(tweet.text.clone());
        } else if (event.size - 1).is_multiple_of(event.size.div_ceil(TEXTS as u64)) {
            // The more texts an event has, the less often one replaces another in the sample.
            event.texts[(number % TEXTS as u64) as usize] = tweet.text.clone();
        }
        self.stream.take(words.into_iter(), WORDS[1]);
    }

    /// Writes the rows of events that have ended.
    pub(super) fn end(
        &mut self,
        names: &Names,
        engine: &Engine,
        ended: impl Fn(u64) -> bool,
    ) -> Result<(), EventsError> {
        let mut done: Vec<u64> =
            self.events.keys().copied().filter(|&event| ended(event)).collect();
        done.sort_unstable();
        for number in done {
            if let Some(event) = self.events.remove(&number)
                && event.size >= self.least
            {
                self.row(names.of_event(number), &event, engine)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, name: Added<'_>, event: &Event, engine: &Engine) -> Result<(), EventsError> {
        let name = match name {
            Added::Text(id) => on_a_line(id),
            Added::Count(number) => number.to_string(),
            _ => String::new(),
        };
        let hours = (event.end - event.start) as f64 / 3_600_000.0;
        let rate =
            if hours > 0.0 { format!("{:.1}", event.size as f64 / hours) } else { "".into() };
        let (start, end) = (instant::written(event.start), instant::written(event.end));
        let (size, words) = (event.size, self.telling(event).join(" "));
        let central = on_a_line(central(event, engine)?);
        // Writing to a string cannot fail.
        let _ = writeln!(self.rows, "{name}\t{start}\t{end}\t{size}\t{rate}\t{words}\t{central}");
        Ok(())
    }

    /// The words that distinguish an event: those in a far higher share of its texts than elsewhere
    /// in the stream.
    fn telling(&self, event: &Event) -> Vec<String> {
        let share = event.words.texts as f64 / self.stream.texts.max(1) as f64;
        let mut words: Vec<(f64, &str)> = Vec::with_capacity(event.words.counts.len());
        for (word, &count) in &event.words.counts {
            let expected = f64::from(self.stream.count(word).max(count)) * share;
            let count = f64::from(count);
            words.push((count * (count / expected.max(0.01)).ln(), word));
        }
        words.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        words.into_iter().take(NAMED).map(|(_, word)| word.to_owned()).collect()
    }

    /// Writes the rows of all remaining events, and the table.
    pub(super) fn finish(mut self, names: &Names, engine: &Engine) -> Result<(), EventsError> {
        self.end(names, engine, |_| true)?;
        let failed = |source| EventsError::Write { path: self.path.clone(), source };
        disk::replace_by(&self.path, self.rows.as_bytes()).map_err(failed)
    }
}

/// The text most similar to the mean of an event's sample.
fn central<'t>(event: &'t Event, engine: &Engine) -> Result<&'t str, EventsError> {
    let first = event.texts.first().map_or("", AsRef::as_ref);
    let method = engine.auto_embedding();
    let query = Query { truncate: true, ..Query::new(method) };
    let vectors = engine.embed(&event.texts, &query)?.vectors;
    let mut middle: Vec<f32> = Vec::new();
    for vector in vectors.iter().flatten() {
        middle.resize(vector.len(), 0.0);
        middle.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    let likeness = |vector: &Option<Vec<f32>>| {
        vector.as_ref().map_or(f32::NEG_INFINITY, |vector| Measure::Cosine.score(vector, &middle))
    };
    let all = vectors.iter().map(likeness).zip(&event.texts);
    let best = all.fold((f32::NEG_INFINITY, first), |best, (score, text)| {
        if score > best.0 { (score, text.as_ref()) } else { best }
    });
    Ok(best.1)
}

/// A text without line breaks and tabs.
fn on_a_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
