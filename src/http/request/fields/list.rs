//! Lists of bounded length, however long those of the body are.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Most stored items of a list, whatever the settings; the others are only counted.
const MAX_KEPT: usize = 100_000;

/// A list of which at most `MAX_KEPT` items are stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List<T> {
    pub items: Vec<T>,
    pub length: usize,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut items = Vec::new();
        while items.len() < MAX_KEPT {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(List { length: items.len(), items }),
            }
        }
        let mut length = items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(List { items, length })
    }
}
