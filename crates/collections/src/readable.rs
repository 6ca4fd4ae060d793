//! JSON that every parser can read, looked at without holding it.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value whose strings are Unicode, whose numbers are finite and that is not nested too deeply.
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
