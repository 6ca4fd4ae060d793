//! The state of a stream, from which another resumes: JSON objects, one on each line,
//! with a digest of all preceding lines in the last one.
//!
//! A file of it is replaced whole, so after a crash the previous state remains. It states the model and
//! the settings, and only a stream with the same ones can resume: another model would find other
//! neighbours.

use std::fmt::Write;
use std::ops::Deref;
use std::path::Path;

use cognate::engine::{Engine, Opposites};
use cognate::model::disk;
use cognate::window::stream::{Item, Settings};
use cognate_files::input::Input;
use serde::{Deserialize, Serialize};

use crate::events::checkpoint::Checkpoint;
use crate::events::output::Order;
use crate::events::source::Tweet;
use crate::events::{EventsError, NamedStream};

const FORMAT: &str = "cognate-events-2";
const LINE_BYTES: usize = 16 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    fingerprint: String,
    /// The settings that decide which texts belong together, as text.
    settings: String,
    next: u64,
    texts: usize,
    events: usize,
    /// Of a run with checkpoints, how far it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Checkpoint>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    time: i64,
    text: String,
    id: Option<String>,
    event: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    event: u64,
    id: Option<String>,
    size: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    blake3: String,
}

fn described(settings: &Settings) -> String {
    let Settings { method, second, nearest, floor, drop_opposed, rule, limits } = settings;
    let second = second.map_or("none", |method| method.name());
    let opposed = match drop_opposed {
        None => "",
        Some(Opposites::WithoutNames) => ", without opposed texts",
        Some(_) => ", without opposed texts and names",
    };
    format!(
        "method {}, second {second}, nearest {nearest}, floor {floor}, threshold {}, votes {}, \
         steps {:?}, centre {}, last {}, within {:?} ms{opposed}",
        method.name(),
        rule.threshold,
        rule.votes,
        rule.steps,
        rule.centre,
        limits.last,
        limits.within
    )
}

impl<E: Deref<Target = Engine>> NamedStream<E> {
    /// The state, in the format of `cognate events --state`.
    pub fn save(&self) -> String {
        written(self, None, &[])
    }

    /// A stream that continues from the [saved](Self::save) state of another with the same model
    /// and settings, or from a finished run of `cognate events`.
    pub fn restored(engine: E, settings: Settings, saved: Vec<u8>) -> Result<Self, EventsError> {
        let mut restored = Self::new(engine, settings)?;
        let name = Path::new("state");
        check(&mut Input::from_bytes(name, saved.clone())?)?;
        let (checkpoint, _) = read(&mut Input::from_bytes(name, saved)?, &mut restored)?;
        match checkpoint.is_none_or(|checkpoint| checkpoint.ended) {
            true => Ok(restored),
            false => {
                let problem =
                    "the run of `cognate events` that wrote it was interrupted".to_owned();
                Err(EventsError::State { path: name.to_owned(), problem })
            }
        }
    }
}

pub(super) fn save(
    path: &Path,
    named: &NamedStream<&Engine>,
    order: &Order,
    checkpoint: Option<Checkpoint>,
) -> Result<(), EventsError> {
    let out = written(named, checkpoint, &order.waiting());
    let failed = |source| EventsError::Write { path: path.to_owned(), source };
    disk::replace_by(path, out.as_bytes()).map_err(failed)
}

/// The lines of a state; with checkpoints, also the positions and the waiting texts.
fn written<E: Deref<Target = Engine>>(
    named: &NamedStream<E>,
    checkpoint: Option<Checkpoint>,
    waiting: &[&Tweet],
) -> String {
    let NamedStream { stream, names } = named;
    let (window, events) = (stream.window(), stream.events());
    let all = events.all();
    let kept = window.kept().filter(|&number| window.text(number).is_some());
    let kept: Vec<u64> = kept.filter(|&number| events.of(number).is_some()).collect();
    let mut out = String::new();
    let head = Head {
        format: FORMAT.to_owned(),
        fingerprint: stream.engine().model().fingerprint().to_owned(),
        settings: described(stream.settings()),
        next: stream.next(),
        texts: kept.len(),
        events: all.len(),
        checkpoint,
    };
    add(&mut out, &head);
    for number in kept {
        let text = Text {
            time: window.text(number).map_or(0, |text| text.time),
            text: stream.text(number).unwrap_or_default().to_owned(),
            id: names.of_text(number).map(str::to_owned),
            event: events.of(number).unwrap_or(number),
        };
        add(&mut out, &text);
    }
    for (event, size) in all {
        let id = names.of_event(event).map(str::to_owned);
        add(&mut out, &Event { event, id, size });
    }
    waiting.iter().for_each(|tweet| add(&mut out, tweet));
    let digest = blake3::hash(out.as_bytes()).to_hex().to_string();
    add(&mut out, &End { blake3: digest });
    out
}

fn add(out: &mut String, line: &impl Serialize) {
    // Every key is a string and every number an integer, so serialising cannot fail.
    let _ = writeln!(out, "{}", serde_json::to_string(line).unwrap_or_default());
}

/// Restores the state of an earlier run, if the file exists. Returns its positions if it had
/// checkpoints.
pub(super) fn resume(
    path: &Path,
    named: &mut NamedStream<&Engine>,
    order: &mut Order,
) -> Result<Option<Checkpoint>, EventsError> {
    if !path.exists() {
        return Ok(None);
    }
    check(&mut Input::open(path)?)?;
    let (checkpoint, waiting) = read(&mut Input::open(path)?, named)?;
    if let Some(checkpoint) = &checkpoint {
        order.newest = checkpoint.newest;
        waiting.into_iter().for_each(|tweet| order.wait(tweet));
    }
    Ok(checkpoint)
}

/// Restores a [checked](check) state in a new stream. Returns what a run with checkpoints added.
fn read<E: Deref<Target = Engine>>(
    input: &mut Input,
    named: &mut NamedStream<E>,
) -> Result<(Option<Checkpoint>, Vec<Tweet>), EventsError> {
    let path = input.path().to_owned();
    let wrong = |problem: String| EventsError::State { path: path.clone(), problem };
    let head: Head = line(input)?;
    if head.format != FORMAT {
        return Err(wrong(format!("expected a state in the format {FORMAT}, found another")));
    }
    let NamedStream { stream, names } = named;
    if head.fingerprint != stream.engine().model().fingerprint() {
        return Err(wrong("the state was made with another model".to_owned()));
    }
    let settings = described(stream.settings());
    if head.settings != settings {
        let before = head.settings;
        return Err(wrong(format!("the state was made with {before}; this run has {settings}")));
    }
    let damaged = || wrong("the state is damaged".to_owned());
    let first = head.next.checked_sub(head.texts as u64).ok_or_else(damaged)?;
    stream.begin_at(first);
    names.first = first;
    for _ in 0..head.texts {
        let text: Text = line(input)?;
        let item = Item { time: text.time, text: &text.text };
        stream.remember(item, text.event)?;
        names.ids.push_back(text.id.map(String::into_boxed_str));
    }
    for _ in 0..head.events {
        let event: Event = line(input)?;
        stream.events_mut().set_size(event.event, event.size);
        if let Some(id) = event.id {
            names.events.insert(event.event, id.into());
        }
    }
    let mut waiting = Vec::new();
    for _ in 0..head.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.waiting) {
        waiting.push(line(input)?);
    }
    Ok((head.checkpoint, waiting))
}

fn check(input: &mut Input) -> Result<(), EventsError> {
    let mut hasher = blake3::Hasher::new();
    let mut before: Option<Vec<u8>> = None;
    while let Some(line) = input.read_line_bounded(LINE_BYTES)? {
        if let Some(before) = before.replace(line.to_vec()) {
            hasher.update(&before);
            hasher.update(b"\n");
        }
    }
    let end: Option<End> = before.and_then(|line| serde_json::from_slice(&line).ok());
    match end.is_some_and(|end| end.blake3 == hasher.finalize().to_hex().as_str()) {
        true => Ok(()),
        false => Err(EventsError::State {
            path: input.path().to_owned(),
            problem: "not a whole state: its digest is not that of its lines".to_owned(),
        }),
    }
}

fn line<T: for<'de> Deserialize<'de>>(input: &mut Input) -> Result<T, EventsError> {
    let line = input.read_line_bounded(LINE_BYTES)?.unwrap_or_default();
    serde_json::from_slice(line).map_err(|error| EventsError::State {
        path: input.path().to_owned(),
        problem: format!("line {}: {error}", input.lines()),
    })
}
