//! Changes of an item that leave its text, position and event: a JSON merge patch (RFC 7396), in
//! which `null` removes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::attributes::AttributeChanges;
use crate::{Attributes, DATA_BYTES, Id, Item, ItemProblem, MAX_ATTRIBUTES, Readable, Time};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ItemPatch {
    /// Never `null`: an item has a time.
    #[serde(deserialize_with = "given")]
    time: Option<Time>,
    /// `Some(None)` if all attributes are removed.
    #[serde(deserialize_with = "given")]
    attributes: Option<Option<AttributeChanges>>,
    #[serde(deserialize_with = "given")]
    data: Option<Box<RawValue>>,
}

/// A field that is present, `null` included.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl ItemPatch {
    /// The changed item, or why no collection accepts it.
    pub fn apply(&self, item: &Item) -> Result<Item, ItemProblem> {
        let mut item = item.clone();
        if let Some(Time(time)) = self.time {
            item.time = time;
        }
        item.attributes = match &self.attributes {
            None => item.attributes,
            Some(None) => Attributes::default(),
            Some(Some(changes)) => item.attributes.changed(changes),
        };
        if item.attributes.len() > MAX_ATTRIBUTES {
            let what = format!("an item has at most {MAX_ATTRIBUTES} attributes");
            return Err(ItemProblem { field: "/attributes", what, too_long: false });
        }
        if let Some(patch) = &self.data {
            item.data = merged(item.data.as_deref(), data(patch)?);
        }
        // The text was accepted once, whatever the limit was then.
        item.check(usize::MAX)?;
        Ok(item)
    }
}

/// A patch of an item with its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPatch {
    id: Id,
    #[serde(default, deserialize_with = "given")]
    time: Option<Time>,
    #[serde(default, deserialize_with = "given")]
    attributes: Option<Option<AttributeChanges>>,
    #[serde(default, deserialize_with = "given")]
    data: Option<Box<RawValue>>,
}

impl From<NamedPatch> for (Box<str>, ItemPatch) {
    fn from(named: NamedPatch) -> Self {
        let NamedPatch { id: Id(id), time, attributes, data } = named;
        (id, ItemPatch { time, attributes, data })
    }
}

/// Patched items; several patches may be of one item.
#[derive(Debug, Default)]
pub struct Patched {
    items: Vec<Item>,
    places: HashMap<Box<str>, usize>,
}

impl Patched {
    /// Applies a patch to the item of this name, which is `there` unless it was patched before;
    /// returns whether there is such an item.
    pub fn apply(
        &mut self,
        id: &str,
        patch: &ItemPatch,
        there: impl FnOnce() -> Option<Arc<Item>>,
    ) -> Result<bool, ItemProblem> {
        let item = match self.places.get(id).and_then(|place| self.items.get(*place)) {
            Some(item) => patch.apply(item)?,
            None => match there() {
                Some(item) => patch.apply(&item)?,
                None => return Ok(false),
            },
        };
        self.places.insert(id.into(), self.items.len());
        self.items.push(item);
        Ok(true)
    }

    /// One item for each patch, in order.
    pub fn into_items(self) -> impl Iterator<Item = Item> {
        self.items.into_iter()
    }
}

/// A patch of data that can be merged: no deeper and no longer than data itself.
fn data(patch: &RawValue) -> Result<&RawValue, ItemProblem> {
    let problem = |what: String, too_long| ItemProblem { field: "/data", what, too_long };
    if patch.get().len() > DATA_BYTES {
        return Err(problem(format!("a patch of data has at most {DATA_BYTES} bytes"), true));
    }
    match serde_json::from_str::<Readable>(patch.get()) {
        Ok(Readable) => Ok(patch),
        Err(_) => Err(problem("expected JSON that every parser can read".to_owned(), false)),
    }
}

/// A value after a patch, `None` if it is removed. Fields that the patch does not name stay as they
/// were written.
fn merged(value: Option<&RawValue>, patch: &RawValue) -> Option<Box<RawValue>> {
    if patch.get() == "null" {
        return None;
    }
    let Some(Fields(changes)) = fields(patch) else { return Some(patch.to_owned()) };
    let Fields(mut all) = value.and_then(fields).unwrap_or_default();
    for (name, change) in changes {
        let place = all.iter().position(|(own, _)| *own == name);
        let before = place.and_then(|place| all.get(place)).map(|(_, value)| value.clone());
        match (merged(before.as_deref(), &change), place) {
            (Some(value), Some(place)) => all[place].1 = value,
            (Some(value), None) => all.push((name, value)),
            (None, _) => all.retain(|(own, _)| *own != name),
        }
    }
    let mut written = String::from("{");
    for (place, (name, value)) in all.iter().enumerate() {
        if place > 0 {
            written.push(',');
        }
        written.push_str(&serde_json::to_string(name).unwrap_or_default());
        written.push(':');
        written.push_str(value.get());
    }
    written.push('}');
    RawValue::from_string(written).ok()
}

/// The fields of an object in order, each as it was written.
#[derive(Default)]
struct Fields(Vec<(String, Box<RawValue>)>);

fn fields(value: &RawValue) -> Option<Fields> {
    value.get().starts_with('{').then(|| serde_json::from_str(value.get()).ok())?
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut all = Vec::new();
                while let Some(field) = map.next_entry()? {
                    all.push(field);
                }
                Ok(Fields(all))
            }
        }
        from.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Incoming, Outgoing};

    fn patched(item: &Value, patch: &str) -> Result<String, String> {
        let item = serde_json::from_value::<Incoming>(item.clone()).unwrap().into_item(0);
        let patch: ItemPatch = serde_json::from_str(patch).map_err(|error| error.to_string())?;
        let item = patch.apply(&item).map_err(|problem| problem.to_string())?;
        Ok(serde_json::to_string(&Outgoing::new(&item)).unwrap())
    }

    /// The examples of RFC 7396, appendix A, that change an object, each as the data of an item.
    #[test]
    fn data_is_merged_as_the_standard_has_it() {
        for (data, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let data: Box<RawValue> = serde_json::from_str(data).unwrap();
            let patch: Box<RawValue> = serde_json::from_str(patch).unwrap();
            assert_eq!(merged(Some(&data), &patch).unwrap().get(), expected);
        }
    }

    #[test]
    fn what_is_not_named_stays_as_it_was_written() {
        let item = json!({
            "id": "a", "text": "the quake", "time": "2024-05-01T10:00:00Z",
            "attributes": {"lang": "en", "year": 2020, "open": true}, "event": "x",
        });
        let with = |attributes: &str| {
            format!(
                r#"{{"id":"a","text":"the quake","time":"2024-05-01T10:00:00Z","attributes":{attributes},"event":"x"}}"#
            )
        };
        let some = r#"{"attributes":{"year":2021,"open":null,"none":null,"new":"é"}}"#;
        assert_eq!(patched(&item, some).unwrap(), with(r#"{"lang":"en","new":"é","year":2021}"#));
        let all = with(r#"{"lang":"en","open":true,"year":2020}"#);
        assert_eq!(patched(&item, "{}").unwrap(), all);
        assert_eq!(patched(&item, r#"{"data":null}"#).unwrap(), all);
        let none = all.replace(r#""attributes":{"lang":"en","open":true,"year":2020},"#, "");
        assert_eq!(patched(&item, r#"{"attributes":null}"#).unwrap(), none);
        let time = all.replace("2024-05-01T10:00:00Z", "1970-01-01T00:00:07Z");
        assert_eq!(patched(&item, r#"{"time":"1970-01-01T00:00:07Z"}"#).unwrap(), time);
        // Neither the order of fields nor a trailing zero is lost.
        let data: Box<RawValue> = serde_json::from_str(r#"{"z":2.50,"a":{"k": [1]}}"#).unwrap();
        let patch: Box<RawValue> = serde_json::from_str(r#"{"b":1}"#).unwrap();
        let expected = r#"{"z":2.50,"a":{"k": [1]},"b":1}"#;
        assert_eq!(merged(Some(&data), &patch).unwrap().get(), expected);
    }

    #[test]
    fn what_no_item_may_have_is_refused() {
        let item = json!({"id": "a", "text": "the quake", "attributes": {"n": 1}});
        let many: Vec<String> = (0..32).map(|at| format!("\"m{at}\":1")).collect();
        let long = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(DATA_BYTES));
        let deep = format!("{{\"data\":{}1{}}}", "{\"a\":".repeat(200), "}".repeat(200));
        for (patch, told) in [
            (r#"{"text":"another"}"#, "unknown field `text`"),
            (r#"{"event":"x"}"#, "unknown field `event`"),
            (r#"{"time":null}"#, "a time"),
            (r#"{"attributes":{"any":1}}"#, "`attributes`: no attribute is called"),
            (r#"{"attributes":{"a":[1]}}"#, "a string, a number"),
            (&format!("{{\"attributes\":{{{}}}}}", many.join(",")), "at most 32 attributes"),
            (r#"{"data":[1]}"#, "`data`: expected an object"),
            (&long, "at most 4096 bytes"),
            (&deep, "every parser"),
        ] {
            let refused = patched(&item, patch).unwrap_err();
            assert!(refused.contains(told), "{patch}: {refused}");
        }
    }
}
