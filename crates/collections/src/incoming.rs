//! An item as callers write it: its time in any form that other routes read, or left out, its id a
//! string or a whole number.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use cognate_files::instant;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Attributes, Event, Item};

/// The milliseconds since 1970 of the years that RFC 3339 can write.
pub(crate) const YEARS: RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;
/// Refusals say that this was expected of a time.
const BEYOND: &str = "a time of the years 0000 to 9999";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incoming {
    pub id: Id,
    pub text: Box<str>,
    pub time: Option<Time>,
    pub attributes: Option<Attributes>,
    /// The caller's JSON object, which this crate does not read.
    pub data: Option<Box<RawValue>>,
    /// The event that the item belongs to, if it was matched elsewhere.
    pub event: Option<IncomingEvent>,
}

/// An event as callers write it: its name, or all that is stored of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the name of an event, or an object with its id and size")]
pub enum IncomingEvent {
    Name(Box<str>),
    Whole(Event),
}

impl Incoming {
    /// The item; its time is `now` unless it states one.
    pub fn into_item(self, now: i64) -> Item {
        let Self { id: Id(id), text, time, attributes, data, event } = self;
        let time = time.map_or(now, |Time(time)| time);
        let event = event.map(|event| match event {
            // The item begins the event of its own name, and joins any other event.
            IncomingEvent::Name(name) => Event {
                size: if name == id { 1 } else { 2 },
                id: name,
                score: None,
                duplicate_of: None,
                moved_from: None,
                moved_at: None,
                bursts: false,
            },
            IncomingEvent::Whole(event) => event,
        });
        Item { id, text, time, attributes: attributes.unwrap_or_default(), data, event }
    }
}

/// The whole number that a float stands for, if no other whole number rounds to the same float.
pub fn exact(number: f64) -> Option<i64> {
    const MAX: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && number.abs() <= MAX).then_some(number as i64)
}

/// An id: a string, or a whole number, which is read as its digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(pub Box<str>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.into()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string().into()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string().into()))
            }

            /// JSON may write a whole number as `3.0`.
            fn visit_f64<E: Error>(self, number: f64) -> Result<Id, E> {
                match exact(number) {
                    Some(number) => self.visit_i64(number),
                    None => Err(E::invalid_type(Unexpected::Float(number), &self)),
                }
            }
        }
        from.deserialize_any(Either)
    }
}

/// A point in time, in milliseconds since 1970, within the years 0000 to 9999, which RFC 3339 can
/// write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub i64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Written;
        fn read<E: Error>(written: &str, expected: &Written) -> Result<Time, E> {
            let wrong = || E::invalid_value(Unexpected::Other("another value"), expected);
            let time = instant::milliseconds(written).ok_or_else(wrong)?;
            match YEARS.contains(&time) {
                true => Ok(Time(time)),
                false => Err(E::invalid_value(Unexpected::Signed(time), &BEYOND)),
            }
        }
        impl Visitor<'_> for Written {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a time: {}", instant::FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                read(text, &self)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Time, E> {
                read(&number.to_string(), &self)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Time, E> {
                read(&number.to_string(), &self)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Time, E> {
                read(&number.to_string(), &self)
            }
        }
        from.deserialize_any(Written)
    }
}

/// An item as it is returned: the fields of [`Incoming`], and its event.
#[derive(Debug, Serialize)]
pub struct Outgoing<'i> {
    id: &'i str,
    text: &'i str,
    time: Cow<'i, str>,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: &'i Attributes,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'i RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<OutgoingEvent<'i>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OutgoingEvent<'i> {
    Name(&'i str),
    Whole(&'i Event),
}

impl<'i> Outgoing<'i> {
    /// Turns a stored item into an incoming item that has the event's name and no other data of the event.
    pub fn new(item: &'i Item) -> Self {
        let event = item.event.as_ref().map(|event| OutgoingEvent::Name(&event.id));
        Self { event, ..Self::whole(item) }
    }

    /// With all that is stored of the event, for another collection to read.
    pub fn whole(item: &'i Item) -> Self {
        Self {
            id: &item.id,
            text: &item.text,
            time: instant::written_exactly(item.time).into(),
            attributes: &item.attributes,
            data: item.data.as_deref(),
            event: item.event.as_ref().map(OutgoingEvent::Whole),
        }
    }
}

/// A JSON value whose strings are Unicode, whose numbers are finite and that is not nested too
/// deeply.
pub struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Readable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E: Error>(self) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Readable, A::Error> {
                while list.next_element::<Readable>()?.is_some() {}
                Ok(Readable)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readable, A::Error> {
                while map.next_entry::<Readable, Readable>()?.is_some() {}
                Ok(Readable)
            }
        }
        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_comes_back_as_it_was_written() {
        for written in [
            r#"{"id":"a","text":"b","time":"2024-05-01T10:00:00.250Z"}"#,
            r#"{"id":"a","text":"b","time":"1971-01-01T00:00:00Z","attributes":{"n":9007199254740993,"s":"x","t":true},"data":{"k": [1, 2.50]}}"#,
        ] {
            let incoming: Incoming = serde_json::from_str(written).unwrap();
            let item = incoming.into_item(0);
            assert_eq!(serde_json::to_string(&Outgoing::new(&item)).unwrap(), written);
        }
        // An exported item can be imported; the name of an event alone is enough.
        for written in [
            r#"{"id":"a","text":"b","time":"2024-05-01T10:00:00Z","event":{"id":"x","size":3,"score":0.48000002,"duplicate_of":"y"}}"#,
            r#"{"id":"a","text":"b","time":"2024-05-01T10:00:00Z","event":{"id":"a","size":1}}"#,
        ] {
            let item = serde_json::from_str::<Incoming>(written).unwrap().into_item(0);
            assert_eq!(serde_json::to_string(&Outgoing::whole(&item)).unwrap(), written);
        }
        for (event, is_new) in [("a", true), ("x", false)] {
            let written = format!(r#"{{"id":"a","text":"b","event":"{event}"}}"#);
            let item = serde_json::from_str::<Incoming>(&written).unwrap().into_item(0);
            assert_eq!(item.event.map(|event| event.is_new()), Some(is_new));
        }
    }

    #[test]
    fn a_number_is_a_name_and_a_time() {
        let written = r#"{"id":12,"text":"b","time":1714557600}"#;
        let item = serde_json::from_str::<Incoming>(written).unwrap().into_item(0);
        assert_eq!((&*item.id, item.time), ("12", 1_714_557_600_000));
        let named = |id: &str| serde_json::from_str::<Id>(id).ok().map(|Id(name)| name);
        for (id, name) in
            [("12.0", "12"), ("-1.5e3", "-1500"), ("9007199254740991.0", "9007199254740991")]
        {
            assert_eq!(named(id).as_deref(), Some(name));
        }
        for none in ["12.5", "1e300", "-9007199254740993.0", "true", "null"] {
            assert_eq!(named(none), None, "{none}");
        }
        let none = r#"{"id":"x","text":"b","time":null,"attributes":null,"data":null}"#;
        for written in [r#"{"id":"x","text":"b"}"#, none] {
            let item = serde_json::from_str::<Incoming>(written).unwrap().into_item(7);
            assert_eq!((item.time, item.attributes.len(), item.data.is_none()), (7, 0, true));
        }
        for beyond in ["253402300800000", "9223372036854775807"] {
            let written = format!(r#"{{"id":"x","text":"b","time":{beyond}}}"#);
            let told = serde_json::from_str::<Incoming>(&written).unwrap_err().to_string();
            assert!(told.contains(BEYOND), "{told}");
        }
        for last in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"] {
            let written = format!(r#"{{"id":"x","text":"b","time":"{last}"}}"#);
            let item = serde_json::from_str::<Incoming>(&written).unwrap().into_item(0);
            assert_eq!(instant::written_exactly(item.time), last);
        }
        for odd in [r#"{"id":1.5,"text":""}"#, r#"{"id":"","text":"","time":"noon"}"#] {
            assert!(serde_json::from_str::<Incoming>(odd).is_err(), "{odd}");
        }
    }
}
