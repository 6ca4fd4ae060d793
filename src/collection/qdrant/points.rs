//! Items as points, and back. What a filter may ask for is written beside the attributes, as texts that
//! Qdrant compares.

use std::collections::HashMap;
use std::sync::Arc;

use qdrant_client::qdrant::NamedVectors;
use qdrant_client::qdrant::PointId;
use qdrant_client::qdrant::PointStruct;
use qdrant_client::qdrant::UpsertPoints;
use qdrant_client::qdrant::Value;
use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::value::Kind;
use serde_json::Number;
use serde_json::value::RawValue;

use crate::collection::Attribute;
use crate::collection::Attributes;
use crate::collection::CollectionError;
use crate::collection::Event;
use crate::collection::Item;
use crate::collection::qdrant::asking::Asking;

/// The field with an item's attributes, each as [`has`] and as [`is`] write it.
pub(super) const ATTRIBUTES: &str = "is";
/// Items that are added in one operation, and bytes of them.
const PIECE: (usize, usize) = (1000, 4 << 20);

/// That there is an attribute of this name.
pub(super) fn has(name: &str) -> String {
    // A string is always written.
    serde_json::to_string(name).unwrap_or_default()
}

/// That the attribute of this name has this value: the same text for all that are equal, and for no others.
pub(super) fn is(name: &str, value: &Attribute) -> String {
    let value = match value {
        Attribute::Truth(truth) => truth.to_string(),
        Attribute::Text(text) => has(text),
        Attribute::Number(number) => canonical(number),
    };
    format!("{}:{value}", has(name))
}

/// Numbers that are equal are written alike, with a fraction or without one.
fn canonical(number: &Number) -> String {
    if let Some(whole) = number.as_i128() {
        return whole.to_string();
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    // Whatever is larger is equal to no whole number that an attribute may be.
    match value == value.floor() && value.abs() < 1e30 {
        true => (value as i128).to_string(),
        false => format!("{value:e}"),
    }
}

/// Adds items of these numbers, which nobody sees yet.
pub(super) fn add<'i>(
    asking: &Asking,
    place: &str,
    items: impl Iterator<Item = (u64, &'i Item)>,
) -> Result<(), CollectionError> {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    for (number, item) in items {
        bytes += item.bytes();
        piece.push(point(number, item));
        if piece.len() >= PIECE.0 || bytes >= PIECE.1 {
            upsert(asking, place, std::mem::take(&mut piece))?;
            bytes = 0;
        }
    }
    match piece.is_empty() {
        true => Ok(()),
        false => upsert(asking, place, piece),
    }
}

fn upsert(asking: &Asking, place: &str, points: Vec<PointStruct>) -> Result<(), CollectionError> {
    let asked = UpsertPoints {
        collection_name: place.to_owned(),
        wait: Some(true),
        points,
        ..UpsertPoints::default()
    };
    asking.change(async |client| client.upsert_points(asked.clone()).await)?;
    Ok(())
}

fn point(number: u64, item: &Item) -> PointStruct {
    let attributes = item.attributes.iter();
    let found: Vec<Value> = attributes
        .flat_map(|(name, value)| [has(name), is(name, value)])
        .map(Value::from)
        .collect();
    let mut payload: HashMap<String, Value> = HashMap::with_capacity(9);
    let mut set = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    set("number", signed(number).into());
    set("id", text(&item.id));
    set("text", text(&item.text));
    set("time", item.time.into());
    if !found.is_empty() {
        set(ATTRIBUTES, Value::from(found));
        // As a text, since Qdrant has no numbers beyond those of 64 bits with a sign.
        let written = serde_json::to_string(&item.attributes).unwrap_or_default();
        set("attributes", written.into());
    }
    if let Some(data) = &item.data {
        set("data", text(data.get()));
    }
    if let Some(event) = &item.event {
        set("event", text(&event.id));
        set("event_size", signed(event.size).into());
    }
    PointStruct {
        id: Some(PointId::from(number)),
        payload,
        vectors: Some(NamedVectors::default().into()),
    }
}

fn text(written: &str) -> Value {
    Value::from(written.to_owned())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number of a point.
pub(super) fn number(id: Option<&PointId>) -> Result<u64, CollectionError> {
    match id.and_then(|id| id.point_id_options.as_ref()) {
        Some(PointIdOptions::Num(number)) => Ok(*number),
        _ => Err(unreadable("its id is not a number")),
    }
}

/// The name of the item of a point.
pub(super) fn name(payload: &HashMap<String, Value>) -> Result<&str, CollectionError> {
    written(payload, "id")?.ok_or_else(|| unreadable("it has no id"))
}

/// The time of the item of a point.
pub(super) fn time(payload: &HashMap<String, Value>) -> Result<i64, CollectionError> {
    whole(payload, "time").ok_or_else(|| unreadable("it has no time"))
}

/// The item of a point, with its number.
pub(super) fn item(
    id: Option<&PointId>,
    payload: &HashMap<String, Value>,
) -> Result<(u64, Arc<Item>), CollectionError> {
    let attributes = match written(payload, "attributes")? {
        Some(written) => serde_json::from_str(written).map_err(|_| unreadable("attributes"))?,
        None => Attributes::default(),
    };
    let data = match written(payload, "data")? {
        Some(data) => Some(RawValue::from_string(data.to_owned()).map_err(|_| unreadable("data"))?),
        None => None,
    };
    let size = whole(payload, "event_size").and_then(|size| u64::try_from(size).ok());
    let event =
        written(payload, "event")?.map(|id| Event { id: id.into(), size: size.unwrap_or(1) });
    let item = Item {
        id: name(payload)?.into(),
        text: written(payload, "text")?.ok_or_else(|| unreadable("it has no text"))?.into(),
        time: time(payload)?,
        attributes,
        data,
        event,
    };
    Ok((number(id)?, Arc::new(item)))
}

/// The text of a field, if it is there.
fn written<'p>(
    payload: &'p HashMap<String, Value>,
    field: &str,
) -> Result<Option<&'p str>, CollectionError> {
    match payload.get(field).and_then(|value| value.kind.as_ref()) {
        None | Some(Kind::NullValue(_)) => Ok(None),
        Some(Kind::StringValue(text)) => Ok(Some(text)),
        Some(_) => Err(unreadable(field)),
    }
}

fn whole(payload: &HashMap<String, Value>, field: &str) -> Option<i64> {
    match payload.get(field)?.kind.as_ref()? {
        Kind::IntegerValue(number) => Some(*number),
        _ => None,
    }
}

fn unreadable(what: &str) -> CollectionError {
    CollectionError::Database {
        problem: format!("a point of a collection is not what this program writes: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::collection::Attribute;
    use crate::collection::qdrant::points::is;

    #[test]
    fn what_is_equal_is_written_alike_and_nothing_else() {
        let written = |value| is("a", &serde_json::from_value::<Attribute>(value).unwrap());
        assert_eq!(written(json!(2021)), written(json!(2021.0)));
        assert_eq!(written(json!(0)), written(json!(-0.0)));
        assert_eq!(written(json!(u64::MAX)), "\"a\":18446744073709551615");
        assert_ne!(written(json!(u64::MAX)), written(json!(u64::MAX as f64)));
        let big = 9_007_199_254_740_993_u64;
        assert_ne!(written(json!(big)), written(json!(big as f64)));
        assert_ne!(written(json!(2020.5)), written(json!(2020)));
        assert_ne!(written(json!("2021")), written(json!(2021)));
        assert_ne!(written(json!("true")), written(json!(true)));
        assert_ne!(
            is("a", &Attribute::Text("b\":\"c".into())),
            is("a\":\"b", &Attribute::Text("c".into()))
        );
    }
}
