//! An item of a collection: a text with a name, a time, and a caller's attributes and data.

use std::fmt;
use std::mem::size_of;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::events::{MAX_COUNTED, Move};
use crate::incoming::YEARS;
use crate::settings::allocated;
use crate::{Attribute, Attributes, Readable};

pub const ID_BYTES: usize = 256;
pub const ATTRIBUTE_NAME_BYTES: usize = 64;
pub const ATTRIBUTE_BYTES: usize = 1024;
/// Most bytes of an item's data, as written.
pub const DATA_BYTES: usize = 4096;
/// Names with a meaning of their own in filters, which attributes cannot have.
pub const FILTER_WORDS: [&str; 3] = ["any", "not", "time"];
/// Bytes of an item's entries in the indexes of its collection: a number and a pointer in a chunk,
/// and an entry of a map by name, which allocates from 8/7 to 16/7 of the entries that it uses.
const PLACES: usize = 16 + (size_of::<(usize, u64)>() + 1) * 16 / 7;

/// A text with its id, its time, and the caller's attributes and data.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub id: Box<str>,
    pub text: Box<str>,
    /// When it was written, or else added, in milliseconds since 1970.
    pub time: i64,
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
    /// The caller's JSON object, which this crate does not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// The event that it belongs to, if events were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// The event that an item belongs to, and the rest of the answer to its match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The name of the item that it began with.
    pub id: Box<str>,
    /// The event's number of items when this item joined, with this item.
    pub size: u64,
    /// The score of the event, or of the best event that the item did not join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<Box<str>>,
    /// The event of this item before the last merge or split that changed its event or its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<Box<str>>,
    /// When that event was merged into this event, in milliseconds since 1970. Of several events that are
    /// merged at once each has a later time than the event before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_at: Option<i64>,
    /// Whether the event began to burst with this item.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bursts: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(told: &bool) -> bool {
    !*told
}

impl Event {
    /// Whether the event began with this item when it was matched, and the item is still in it.
    pub fn is_new(&self) -> bool {
        self.size == 1 && self.moved_from.is_none()
    }

    fn bytes(&self) -> usize {
        let names = [Some(&self.id), self.duplicate_of.as_ref(), self.moved_from.as_ref()];
        names.into_iter().flatten().map(|name| allocated(name.len())).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemProblem {
    pub field: &'static str,
    /// The reason; it quotes nothing of the caller's text.
    pub what: String,
    pub too_long: bool,
}

impl fmt::Display for ItemProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field.trim_start_matches('/'), self.what)
    }
}

const YEAR_MS: i64 = 365 * 24 * 3_600_000;

/// Whether an item or an event may have this name.
pub(super) fn is_name(name: &str) -> bool {
    (1..=ID_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

impl Item {
    pub(super) fn is(&self, other: &Self) -> bool {
        let data = [self, other].map(|item| item.data.as_deref().map(RawValue::get));
        (&self.id, &self.text, self.time) == (&other.id, &other.text, other.time)
            && (&self.attributes, &self.event) == (&other.attributes, &other.event)
            && data[0] == data[1]
    }

    pub fn check(&self, text_bytes: usize) -> Result<(), ItemProblem> {
        let wrong = |field, what: String| Err(ItemProblem { field, what, too_long: false });
        let long = |field, what: String| Err(ItemProblem { field, what, too_long: true });
        if self.id.is_empty() || self.id.len() > ID_BYTES {
            return wrong("/id", format!("a name has 1 to {ID_BYTES} bytes"));
        }
        if self.id.chars().any(char::is_control) {
            return wrong("/id", "a name has no control characters".to_owned());
        }
        if self.text.trim().is_empty() {
            return wrong("/text", "the text is empty".to_owned());
        }
        if self.text.len() > text_bytes {
            let (has, most) = (self.text.len(), text_bytes);
            return long("/text", format!("the text has {has} bytes; the limit is {most}"));
        }
        for (name, value) in self.attributes.iter() {
            if name.is_empty() || name.len() > ATTRIBUTE_NAME_BYTES {
                let what = format!("a name of an attribute has 1 to {ATTRIBUTE_NAME_BYTES} bytes");
                return wrong("/attributes", what);
            }
            if FILTER_WORDS.contains(&name) {
                let what = "no attribute is called `any`, `not` or `time`: filters use these words";
                return wrong("/attributes", what.to_owned());
            }
            if matches!(value, Attribute::Text(text) if text.len() > ATTRIBUTE_BYTES) {
                let what = format!("a string of an attribute has at most {ATTRIBUTE_BYTES} bytes");
                return long("/attributes", what);
            }
        }
        if let Some(event) = &self.event {
            let names = [Some(&event.id), event.duplicate_of.as_ref(), event.moved_from.as_ref()];
            let is_sized = (1..=MAX_COUNTED).contains(&event.size);
            if !is_sized || !names.into_iter().flatten().all(|name| is_name(name)) {
                let what = format!(
                    "an event has a name as items have, and a size from 1 to {MAX_COUNTED}"
                );
                return wrong("/event", what);
            }
            if event.score.is_some_and(|score| !score.is_finite()) {
                return wrong("/event", "a score is a number of 32 bits".to_owned());
            }
            // Merges to come are later, and have times that items may have.
            let is_time = |at: i64| (*YEARS.start()..=*YEARS.end() - YEAR_MS).contains(&at);
            if event.moved_at.is_some_and(|at| event.moved_from.is_none() || !is_time(at)) {
                let what =
                    "an event has `moved_at` beside `moved_from`, a time of the years 0 to 9998";
                return wrong("/event", what.to_owned());
            }
        }
        if let Some(data) = &self.data {
            if !data.get().starts_with('{') {
                return wrong("/data", "expected an object".to_owned());
            }
            if data.get().len() > DATA_BYTES {
                return long("/data", format!("an object has at most {DATA_BYTES} bytes"));
            }
            // Data that a JSON parser refuses would make the answer unreadable.
            if serde_json::from_str::<Readable>(data.get()).is_err() {
                let what = "expected an object that every parser of JSON can read";
                return wrong("/data", what.to_owned());
            }
        }
        Ok(())
    }

    /// Whether the item's event is reported as new: it began with this item, or was split off and
    /// is named after it.
    pub(super) fn is_of_new_event(&self) -> bool {
        let Some(event) = &self.event else { return false };
        event.is_new() || (event.moved_from.is_some() && event.id == self.id)
    }

    /// The same item moved to another event, or renumbered within its own.
    pub(super) fn moved(&self, Move { event, size, at, .. }: Move) -> Option<Self> {
        let told = self.event.as_ref()?.clone();
        let event = match told.id == event {
            true => Event { size, moved_from: told.moved_from.clone().or(Some(event)), ..told },
            false => Event { size, moved_from: Some(told.id), moved_at: at, id: event, ..told },
        };
        Some(Self { event: Some(event), ..self.clone() })
    }

    pub fn is_of_event(&self, name: &str) -> bool {
        self.event.as_ref().is_some_and(|event| *event.id == *name)
    }

    pub fn check_matched(&self, text_bytes: usize) -> Result<(), ItemProblem> {
        if self.event.is_some() {
            let what = "what is matched is told its event; items with an event are put".to_owned();
            return Err(ItemProblem { field: "/event", what, too_long: false });
        }
        self.check(text_bytes)
    }

    /// Bytes of memory of the item in a collection: its allocations, as allocators round them, and
    /// its entries in the collection's indexes.
    pub fn bytes(&self) -> usize {
        // An `Arc` stores two counters before the value.
        let own = allocated(size_of::<Self>() + 2 * size_of::<usize>());
        let texts = allocated(self.id.len()) + allocated(self.text.len());
        let data = self.data.as_ref().map_or(0, |data| allocated(data.get().len()));
        let event = self.event.as_ref().map_or(0, Event::bytes);
        PLACES + own + texts + self.attributes.bytes() + data + event
    }
}
