//! A table of the events of a stream: time, number of texts, rate, the words and phrases that tell an
//! event apart from the rest of the stream, and its most central text.
//!
//! A row is written when its event has ended, that is, when none of its texts is left in the
//! window; the data kept until then is bounded by the window. A large event is represented by a
//! sample of its texts; when there are too many distinct terms in an event or the stream, the rare
//! ones are dropped.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use cognate::engine::Engine;
use cognate::model::disk;
use cognate::window::events::Decision;
use cognate::window::naming;
use cognate::window::naming::{TermCounts, Terms};
use cognate::window::usual::Preset;
use cognate_files::instant;
use cognate_files::records::Added;
use serde::Serialize;

use crate::events::source::Tweet;
use crate::events::{EventsError, Names, called};

const TEXTS: usize = 24;
/// With fewer texts the kind of a stream cannot be judged.
const TELLING: u64 = 500;
/// Followed as topics, streams of crises have up to a tenth of their texts in events of 2 to 16, streams of stories a third.
const SMALL_SHARE: f64 = 0.2;
/// Followed as stories, the largest event of a stream of crises has at least a twentieth of the texts, that
/// of a stream of stories a two-hundredth.
const LARGEST_SHARE: f64 = 0.02;
const NAMED: usize = 6;
/// Maximum distinct terms counted for an event, and for the stream.
const TERMS: [usize; 2] = [1 << 11, 1 << 19];

const HEADER: &str = "event\tstart\tend\ttexts\tper_hour\twords\tcentral\tchatter\n";

/// Sizes of events, by which the kind of a stream is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub texts: u64,
    /// Texts in events of 2 to 16.
    pub in_small: u64,
    /// Texts of the largest event.
    pub largest: u64,
}

impl Sizes {
    fn count(&mut self, size: u64) {
        self.texts += size;
        self.in_small += if (2..=16).contains(&size) { size } else { 0 };
        self.largest = self.largest.max(size);
    }

    /// The kind that the stream looks like, if it is not the one by which it was followed.
    pub fn look_like(&self, followed: Preset) -> Option<Preset> {
        let share = |texts: u64| texts as f64 / self.texts as f64;
        let other = match followed {
            Preset::Topics => (share(self.in_small) > SMALL_SHARE).then_some(Preset::Stories),
            Preset::Stories => (share(self.largest) > LARGEST_SHARE).then_some(Preset::Topics),
        };
        other.filter(|_| self.texts >= TELLING)
    }
}

pub(super) struct Summary {
    path: PathBuf,
    sizes: Sizes,
    least: u64,
    rows: String,
    events: HashMap<u64, Event>,
    stream: TermCounts,
    terms: Terms,
}

/// The data of an event that has not ended.
struct Event {
    start: i64,
    end: i64,
    size: u64,
    terms: TermCounts,
    texts: Vec<Box<str>>,
}

impl Summary {
    pub(super) fn create(path: &Path, least: u64) -> Self {
        Self {
            path: path.to_owned(),
            sizes: Sizes::default(),
            least,
            rows: HEADER.to_owned(),
            events: HashMap::new(),
            stream: TermCounts::default(),
            terms: Terms::default(),
        }
    }

    pub(super) fn take(
        &mut self,
        tweet: &Tweet,
        number: u64,
        decision: &Decision,
        engine: &Engine,
    ) {
        self.terms.read(engine, &tweet.text);
        let event = self.events.entry(decision.event).or_insert_with(|| Event {
            start: tweet.time,
            end: tweet.time,
            size: 0,
            terms: TermCounts::default(),
            texts: Vec::new(),
        });
        event.start = event.start.min(tweet.time);
        event.end = event.end.max(tweet.time);
        event.size += 1;
        event.terms.add(&self.terms, TERMS[0]);
        if event.texts.len() < TEXTS {
            event.texts.push(tweet.text.clone());
        } else if (event.size - 1).is_multiple_of(event.size.div_ceil(TEXTS as u64)) {
            // The more texts an event has, the less often a text replaces another in the sample.
            event.texts[(number % TEXTS as u64) as usize] = tweet.text.clone();
        }
        self.stream.add(&self.terms, TERMS[1]);
    }

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
            let event = self.events.remove(&number);
            self.sizes.count(event.as_ref().map_or(0, |event| event.size));
            if let Some(event) = event.filter(|event| event.size >= self.least) {
                self.row(called(names.of_event(number), number), &event, engine)?;
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
        // In a stream without times all are 0.
        let written = |time| if time == 0 { String::new() } else { instant::written(time) };
        let (start, end) = (written(event.start), written(event.end));
        let size = event.size;
        let words = naming::names(&event.terms, &self.stream, NAMED).join(", ");
        let central = event.texts.get(naming::central(engine, &event.texts)?);
        let central = on_a_line(central.map_or("", AsRef::as_ref));
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.rows,
            "{name}\t{start}\t{end}\t{size}\t{rate}\t{words}\t{central}\t{:.2}",
            event.terms.chatter()
        );
        Ok(())
    }

    pub(super) fn finish(mut self, names: &Names, engine: &Engine) -> Result<Sizes, EventsError> {
        self.end(names, engine, |_| true)?;
        let failed = |source| EventsError::Write { path: self.path.clone(), source };
        disk::replace_by(&self.path, self.rows.as_bytes()).map_err(failed)?;
        Ok(self.sizes)
    }
}

fn on_a_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_told_that_looks_like_the_other_kind() {
        let told = |followed, [texts, in_small, largest]: [u64; 3]| {
            Sizes { texts, in_small, largest }.look_like(followed)
        };
        let (topics, stories) = (Preset::Topics, Preset::Stories);
        // Stories, then a crisis, as either preset found them: docs/measurements/events.md.
        assert_eq!(told(topics, [9079, 3347, 281]), Some(stories));
        assert_eq!(told(stories, [9079, 3640, 42]), None);
        assert_eq!(told(topics, [9958, 433, 5099]), None);
        assert_eq!(told(stories, [1158, 574, 59]), Some(topics));
        assert_eq!(told(topics, [10, 8, 4]), None, "too few to tell");
    }
}
