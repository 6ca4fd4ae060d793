//! The state of a stream in a file, from which another run resumes: JSON objects, one on each line,
//! with a digest of all preceding lines in the last one.
//!
//! The file is replaced whole, so after a crash the previous state remains. It states the model and
//! the settings, and only a run with the same ones can resume: another model would find other
//! neighbours.

use std::fmt::Write;
use std::path::Path;

use cognate::model::disk;
use cognate::window::stream::{Item, Settings};
use cognate_files::input::Input;
use serde::{Deserialize, Serialize};

use crate::events::checkpoint::Checkpoint;
use crate::events::output::Order;
use crate::events::source::Tweet;
use crate::events::{EventsError, Run};

/// Name and version of the format.
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

/// A text that was read and waits to be put in order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting {
    time: i64,
    text: String,
    id: Option<String>,
    raw: String,
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
    let opposed = if *drop_opposed { ", without opposed texts" } else { "" };
    format!(
        "method {}, second {second}, nearest {nearest}, floor {floor}, threshold {}, votes {}, \
         centre {}, last {}, within {:?} ms{opposed}",
        method.name(),
        rule.threshold,
        rule.votes,
        rule.centre,
        limits.last,
        limits.within
    )
}

pub(super) fn save(
    path: &Path,
    run: &Run<'_>,
    order: &Order,
    checkpoint: Option<Checkpoint>,
) -> Result<(), EventsError> {
    let (window, events) = (run.stream.window(), run.stream.events());
    let all = events.all();
    let kept = window.kept().filter(|&number| window.text(number).is_some());
    let kept: Vec<u64> = kept.filter(|&number| events.of(number).is_some()).collect();
    let mut out = String::new();
    let head = Head {
        format: FORMAT.to_owned(),
        fingerprint: run.engine.model().fingerprint().to_owned(),
        settings: described(run.stream.settings()),
        next: run.stream.next(),
        texts: kept.len(),
        events: all.len(),
        checkpoint,
    };
    add(&mut out, &head);
    for number in kept {
        let text = Text {
            time: window.text(number).map_or(0, |text| text.time),
            text: run.stream.text(number).unwrap_or_default().to_owned(),
            id: run.names.id(number).map(str::to_owned),
            event: events.of(number).unwrap_or(number),
        };
        add(&mut out, &text);
    }
    for (event, size) in all {
        let id = run.names.events.get(&event).map(|id| id.to_string());
        add(&mut out, &Event { event, id, size });
    }
    for tweet in order.waiting() {
        let Tweet { raw, text, id, time } = tweet;
        let id = id.as_deref().map(str::to_owned);
        add(&mut out, &Waiting { time: *time, text: text.to_string(), id, raw: raw.to_string() });
    }
    let digest = blake3::hash(out.as_bytes()).to_hex().to_string();
    add(&mut out, &End { blake3: digest });
    let failed = |source| EventsError::Write { path: path.to_owned(), source };
    disk::replace_by(path, out.as_bytes()).map_err(failed)
}

fn add(out: &mut String, line: &impl Serialize) {
    // Every key is a string and every number an integer, so serialising cannot fail.
    let _ = writeln!(out, "{}", serde_json::to_string(line).unwrap_or_default());
}

/// Restores the state of an earlier run, if the file exists. Returns how far that was if it had
/// checkpoints.
pub(super) fn resume(
    path: &Path,
    run: &mut Run<'_>,
    order: &mut Order,
) -> Result<Option<Checkpoint>, EventsError> {
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |problem: String| EventsError::State { path: path.to_owned(), problem };
    check(path)?;
    let mut input = Input::open(path)?;
    let head: Head = line(&mut input, path)?;
    if head.format != FORMAT {
        return Err(wrong(format!("expected a state in the format {FORMAT}, found another")));
    }
    if head.fingerprint != run.engine.model().fingerprint() {
        return Err(wrong("the state was made with another model".to_owned()));
    }
    let settings = described(run.stream.settings());
    if head.settings != settings {
        let before = head.settings;
        return Err(wrong(format!("the state was made with {before}; this run has {settings}")));
    }
    let damaged = || wrong("the state is damaged".to_owned());
    let first = head.next.checked_sub(head.texts as u64).ok_or_else(damaged)?;
    run.stream.begin_at(first);
    run.names.first = first;
    for _ in 0..head.texts {
        let text: Text = line(&mut input, path)?;
        let item = Item { time: text.time, text: &text.text };
        run.stream.remember(item, text.event)?;
        run.names.ids.push_back(text.id.map(String::into_boxed_str));
    }
    for _ in 0..head.events {
        let event: Event = line(&mut input, path)?;
        run.stream.events_mut().set_size(event.event, event.size);
        if let Some(id) = event.id {
            run.names.events.insert(event.event, id.into());
        }
    }
    if let Some(checkpoint) = &head.checkpoint {
        order.begin_at(checkpoint.newest);
        for _ in 0..checkpoint.waiting {
            let Waiting { time, text, id, raw } = line(&mut input, path)?;
            let id = id.map(String::into_boxed_str);
            order.wait(Tweet { raw: raw.into(), text: text.into(), id, time });
        }
    }
    Ok(head.checkpoint)
}

/// Refuses a file whose last line is not the digest of the preceding lines.
fn check(path: &Path) -> Result<(), EventsError> {
    let mut input = Input::open(path)?;
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
            path: path.to_owned(),
            problem: "not a whole state: its digest is not that of its lines".to_owned(),
        }),
    }
}

fn line<T: for<'de> Deserialize<'de>>(input: &mut Input, path: &Path) -> Result<T, EventsError> {
    let line = input.read_line_bounded(LINE_BYTES)?.unwrap_or_default();
    serde_json::from_slice(line).map_err(|error| EventsError::State {
        path: path.to_owned(),
        problem: format!("line {}: {error}", input.lines()),
    })
}
