//! One JSON object, read just far enough to find its fields.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::input::shown;

/// The fields of an object, none of them parsed before it is asked for.
pub(super) struct Object<'r>(Vec<(Cow<'r, str>, &'r RawValue)>);

/// Borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'r>(#[serde(borrow)] Cow<'r, str>);

impl<'r> Object<'r> {
    pub(super) fn read(line: &'r str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| match error.classify() {
            // That would hold what was found, of whatever length.
            Category::Data => format!("expected a JSON object, found {}", shown(line.as_bytes())),
            _ => format!("expected a JSON object: {error}"),
        })
    }

    /// The last field of a name, as other readers of JSON have it.
    fn value(&self, name: &str) -> Option<&'r str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.get())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// A value that is neither list nor object, as it would stand in a table.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'r, str>>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_bytes().first() {
            Some(b'"') => match serde_json::from_str(value) {
                Ok(Name(text)) => Ok(Some(text)),
                Err(error) => Err(format!("`{name}`: {error}")),
            },
            Some(b'n') => Ok(None),
            Some(b'[' | b'{') => Err(format!("`{name}`: expected a string or a number")),
            _ => Ok(Some(value.into())),
        }
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(Object(fields))
    }
}
