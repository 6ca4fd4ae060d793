//! What filters compare: a few named values of an item, in the order of their names.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;

use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

use crate::settings::allocated;

pub const MAX_ATTRIBUTES: usize = 32;

/// The attributes of an item by name. Names are unique; there are at most [`MAX_ATTRIBUTES`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes(Box<[(Box<str>, Attribute)]>);

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Attribute {
    Truth(bool),
    Number(Number),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeKind {
    Truth,
    Number,
    Text,
}

/// An attribute that a question names: with any kind of value, or with one kind.
pub type AskedAttribute<'n> = (&'n str, Option<AttributeKind>);

impl Attribute {
    pub fn kind(&self) -> AttributeKind {
        match self {
            Self::Truth(_) => AttributeKind::Truth,
            Self::Number(_) => AttributeKind::Number,
            Self::Text(_) => AttributeKind::Text,
        }
    }
}

impl fmt::Display for Attribute {
    /// As in JSON, so that a text and a number are distinguished.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Attributes {
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        let place = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    pub(super) fn have(&self, (name, kind): &AskedAttribute<'_>) -> bool {
        let value = self.get(name);
        value.is_some_and(|value| kind.is_none_or(|kind| value.kind() == kind))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        let strings = self.0.iter().map(|(name, value)| {
            let value = match value {
                Attribute::Text(text) => allocated(text.len()),
                Attribute::Truth(_) | Attribute::Number(_) => 0,
            };
            allocated(name.len()) + value
        });
        allocated(self.0.len() * size_of::<(Box<str>, Attribute)>()) + strings.sum::<usize>()
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

/// Changes of attributes by name, as in a JSON merge patch: a new value, or `None` to remove the
/// attribute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttributeChanges(Box<[(Box<str>, Option<Attribute>)]>);

impl Attributes {
    pub(super) fn changed(&self, changes: &AttributeChanges) -> Self {
        let AttributeChanges(changes) = changes;
        let is_changed =
            |name: &str| changes.binary_search_by(|(own, _)| (**own).cmp(name)).is_ok();
        let stay = self.0.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let set = changes.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let mut all: Vec<_> = stay.chain(set).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self(all.into())
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        by_name(from, MAX_ATTRIBUTES).map(Self)
    }
}

impl<'de> Deserialize<'de> for AttributeChanges {
    /// A patch may remove every attribute of an item and set as many others.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        by_name(from, 2 * MAX_ATTRIBUTES).map(Self)
    }
}

type ByNames<V> = Box<[(Box<str>, V)]>;

/// Reads an object's named values in order. Reading stops at the first value beyond the limit, so
/// memory is bounded however long the object is.
fn by_name<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
    most: usize,
) -> Result<ByNames<V>, D::Error> {
    struct ByName<V>(usize, PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for ByName<V> {
        type Value = ByNames<V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object of at most {} attributes", self.0)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all: Vec<(Box<str>, V)> = Vec::new();
            while let Some(name) = map.next_key()? {
                if all.len() == self.0 {
                    return Err(A::Error::invalid_length(self.0 + 1, &self));
                }
                all.push((name, map.next_value()?));
            }
            all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            match all.windows(2).any(|pair| matches!(pair, [one, next] if one.0 == next.0)) {
                // The name is the caller's text, so the error does not repeat it.
                true => Err(A::Error::duplicate_field("")),
                false => Ok(all.into()),
            }
        }
    }
    from.deserialize_map(ByName(most, PhantomData))
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
                finite.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Attribute, E> {
                Ok(Attribute::Text(text.into()))
            }
        }
        from.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Result<Attributes, String> {
        serde_json::from_str(written).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn they_are_found_by_name_and_written_in_the_order_of_names() {
        let all = read(r#"{"z":"x","a":1,"\u0061b":true}"#).unwrap();
        assert_eq!(all.get("a"), Some(&Attribute::Number(1.into())));
        assert_eq!(all.get("ab"), Some(&Attribute::Truth(true)));
        assert_eq!(all.get("z"), Some(&Attribute::Text("x".into())));
        assert_eq!((all.get("b"), all.get("")), (None, None));
        assert_eq!(serde_json::to_string(&all).unwrap(), r#"{"a":1,"ab":true,"z":"x"}"#);
        assert_eq!(read("{}").unwrap(), Attributes::default());
    }

    #[test]
    fn what_is_twice_or_too_many_is_refused() {
        let twice = read(r#"{"a":1,"b":2,"\u0061":1}"#).unwrap_err();
        assert!(twice.starts_with("duplicate field"), "{twice}");
        let so_many = |count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("\"{at}\":{at}")).collect();
            format!("{{{}", all.join(","))
        };
        assert_eq!(read(&format!("{}}}", so_many(32))).unwrap().len(), 32);
        // The text after the limit is not even read.
        let many = read(&format!("{},no JSON", so_many(33))).unwrap_err();
        assert!(many.contains("expected an object of at most 32 attributes"), "{many}");
    }
}
