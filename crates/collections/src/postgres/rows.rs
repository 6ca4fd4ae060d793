//! Items as rows of their table, written and read.

use std::sync::Arc;

use postgres::Row;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{Json, Type};
use serde_json::value::RawValue;

use crate::postgres::session::Session;
use crate::{Attribute, Attributes, CollectionError, Event, Item, ItemProblem, Result};

pub(super) const COLUMNS: &str = "i.number, i.id, i.text, i.time, i.attributes, i.data, i.event, i.event_size, i.event_score, \
     i.duplicate_of, i.moved_from, i.moved_at, i.bursts";
const TYPES: [Type; 13] = [
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::JSONB,
    Type::JSON,
    Type::TEXT,
    Type::INT8,
    Type::FLOAT4,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::BOOL,
];

/// Turns a row of [`COLUMNS`] into an item and its number.
pub(super) fn item(row: &Row) -> Result<(u64, Arc<Item>)> {
    let number: i64 = row.try_get(0)?;
    let Json(attributes): Json<Attributes> = row.try_get(4)?;
    let data: Option<Json<Box<RawValue>>> = row.try_get(5)?;
    let event: Option<String> = row.try_get(6)?;
    let size: Option<i64> = row.try_get(7)?;
    let (score, duplicate_of) = (row.try_get(8)?, row.try_get::<_, Option<&str>>(9)?);
    let moved_from: Option<&str> = row.try_get(10)?;
    let (moved_at, bursts) = (row.try_get(11)?, row.try_get::<_, Option<bool>>(12)?);
    let event = event.map(|id| Event {
        id: id.into(),
        size: size.map_or(1, unsigned),
        score,
        duplicate_of: duplicate_of.map(Box::from),
        moved_from: moved_from.map(Box::from),
        moved_at,
        bursts: bursts.unwrap_or(false),
    });
    let item = Item {
        id: row.try_get::<_, &str>(1)?.into(),
        text: row.try_get::<_, &str>(2)?.into(),
        time: row.try_get(3)?,
        attributes,
        data: data.map(|Json(data)| data),
        event,
    };
    Ok((unsigned(number), Arc::new(item)))
}

pub(super) fn items(rows: &[Row]) -> Result<Vec<(u64, Arc<Item>)>> {
    rows.iter().map(item).collect()
}

pub(super) fn copy<'i>(
    session: &mut Session<'_>,
    table: i64,
    items: impl Iterator<Item = (i64, &'i Item)>,
) -> Result<()> {
    let text = format!(
        "COPY cognate.items_{table} (number, id, text, time, attributes, data, event, event_size, \
         event_score, duplicate_of, moved_from, moved_at, bursts) FROM STDIN BINARY"
    );
    let sink = session.transaction.copy_in(text.as_str())?;
    let mut writer = BinaryCopyInWriter::new(sink, &TYPES);
    for (number, item) in items {
        let (attributes, data) = (Json(&item.attributes), item.data.as_deref().map(Json));
        let (id, text, event) = (&*item.id, &*item.text, item.event.as_ref());
        let size = event.map(|event| signed(event.size));
        let score = event.and_then(|event| event.score);
        let duplicate_of = event.and_then(|event| event.duplicate_of.as_deref());
        let moved_from = event.and_then(|event| event.moved_from.as_deref());
        let moved_at = event.and_then(|event| event.moved_at);
        let bursts = event.filter(|event| event.bursts).map(|_| true);
        let event = event.map(|event| &*event.id);
        writer.write(&[
            &number,
            &id,
            &text,
            &item.time,
            &attributes,
            &data,
            &event,
            &size,
            &score,
            &duplicate_of,
            &moved_from,
            &moved_at,
            &bursts,
        ])?;
    }
    writer.finish()?;
    Ok(())
}

pub(super) fn check(items: &[Item]) -> Result<()> {
    let has_nul = |text: &str| text.contains('\0');
    for (index, item) in items.iter().enumerate() {
        let mut attributes = item.attributes.iter();
        let field = if has_nul(&item.text) {
            "/text"
        } else if attributes.any(|(name, value)| {
            has_nul(name) || matches!(value, Attribute::Text(text) if has_nul(text))
        }) {
            "/attributes"
        } else {
            continue;
        };
        let what = "a database keeps no text with the character U+0000".to_owned();
        let problem = ItemProblem { field, what, too_long: false };
        return Err(CollectionError::Item { index, problem });
    }
    Ok(())
}

/// A number that is never negative, as a signed column stores it.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
