//! What a collection holds: a text with its name, its time, and what a caller hangs on it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;
use serde::de::Visitor;
use serde_json::Number;
use serde_json::value::RawValue;

/// Longest name of an item, in bytes.
pub const ID_BYTES: usize = 256;
/// Most attributes of an item.
pub const MOST_ATTRIBUTES: usize = 32;
/// Longest name of an attribute, in bytes.
pub const ATTRIBUTE_NAME_BYTES: usize = 64;
/// Longest string of an attribute, in bytes.
pub const ATTRIBUTE_BYTES: usize = 1024;
/// Most bytes of the data of an item, as written.
pub const DATA_BYTES: usize = 4096;
/// Names that filters have a meaning for, so no attribute has them.
pub const FILTER_WORDS: [&str; 2] = ["any", "not"];
/// Bytes that an item takes beside its own: its places in the lists and what memory is handed out by.
const OVERHEAD: usize = 256;

/// A text with its name, its time, and what a caller hangs on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name.
    pub id: Box<str>,
    /// What it says.
    pub text: Box<str>,
    /// When it was written, or else added, in milliseconds since 1970.
    pub time: i64,
    /// What filters ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
    /// An object whose meaning is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// The event that it was found to belong to, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// What filters ask for, by name.
pub type Attributes = BTreeMap<Box<str>, Attribute>;

/// The event that an item belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The name of the item that it began with.
    pub id: Box<str>,
    /// Its items when this one joined it, with this one.
    pub size: u64,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Attribute {
    /// True or false.
    Truth(bool),
    /// A number, as it was written.
    Number(Number),
    /// A string.
    Text(Box<str>),
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Attribute;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, true or false")
            }

            fn visit_bool<E: Error>(self, truth: bool) -> Result<Attribute, E> {
                Ok(Attribute::Truth(truth))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Attribute, E> {
                Ok(Attribute::Number(number.into()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Attribute, E> {
                Ok(Attribute::Number(number.into()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Attribute, E> {
                let finite = Number::from_f64(number).map(Attribute::Number);
                finite.ok_or_else(|| E::custom("number out of range"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Attribute, E> {
                Ok(Attribute::Text(text.into()))
            }
        }
        from.deserialize_any(Any)
    }
}

/// What is wrong with an item: the field it stands in, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemProblem {
    /// The field, as a JSON pointer within the item.
    pub field: &'static str,
    /// What is wrong, in words that repeat nothing of it.
    pub what: String,
    /// Whether it is too long, rather than of a wrong form.
    pub too_long: bool,
}

impl fmt::Display for ItemProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field.trim_start_matches('/'), self.what)
    }
}

impl Item {
    /// Whether it is another one in every part.
    pub(super) fn is(&self, other: &Self) -> bool {
        let data = [self, other].map(|item| item.data.as_deref().map(RawValue::get));
        (&self.id, &self.text, self.time) == (&other.id, &other.text, other.time)
            && (&self.attributes, &self.event) == (&other.attributes, &other.event)
            && data[0] == data[1]
    }

    /// Refuses an item that no collection takes.
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
        if self.attributes.len() > MOST_ATTRIBUTES {
            let what = format!("an item has at most {MOST_ATTRIBUTES} attributes");
            return wrong("/attributes", what);
        }
        for (name, value) in &self.attributes {
            if name.is_empty() || name.len() > ATTRIBUTE_NAME_BYTES {
                let what = format!("a name of an attribute has 1 to {ATTRIBUTE_NAME_BYTES} bytes");
                return wrong("/attributes", what);
            }
            if FILTER_WORDS.contains(&&**name) {
                let what = "no attribute is called `any` or `not`: filters use these words";
                return wrong("/attributes", what.to_owned());
            }
            if matches!(value, Attribute::Text(text) if text.len() > ATTRIBUTE_BYTES) {
                let what = format!("a string of an attribute has at most {ATTRIBUTE_BYTES} bytes");
                return long("/attributes", what);
            }
        }
        if let Some(data) = &self.data {
            if !data.get().starts_with('{') {
                return wrong("/data", "expected an object".to_owned());
            }
            if data.get().len() > DATA_BYTES {
                return long("/data", format!("an object has at most {DATA_BYTES} bytes"));
            }
            // What comes back must not be an answer that its reader's parser refuses.
            if serde_json::from_str::<serde_json::Value>(data.get()).is_err() {
                let what = "expected an object that every parser of JSON can read";
                return wrong("/data", what.to_owned());
            }
        }
        Ok(())
    }

    /// Bytes of memory that it takes, roughly.
    pub fn bytes(&self) -> usize {
        let length = |value: &Attribute| match value {
            Attribute::Text(text) => text.len(),
            Attribute::Truth(_) | Attribute::Number(_) => 0,
        };
        let attributes: usize =
            self.attributes.iter().map(|(name, value)| name.len() + length(value) + 64).sum();
        let data = self.data.as_ref().map_or(0, |data| data.get().len());
        let event = self.event.as_ref().map_or(0, |event| event.id.len() + 16);
        OVERHEAD + 2 * self.id.len() + self.text.len() + attributes + data + event
    }
}
