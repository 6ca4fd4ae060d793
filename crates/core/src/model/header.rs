//! The header's JSON, read without trusting it: entries in file order, nothing twice, nothing extra.
//!
//! `serde_json::Value` and maps keep the last of two equal keys; two readers could then see two
//! different files in the same bytes. What the entries mean is `format.rs`'s business.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};

use crate::model::error::{FormatError, shorten};
use crate::model::vectors::Dtype;

/// Type, shape and place of a tensor, as the header states them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTensor {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) data_offsets: [u64; 2],
}

#[derive(Debug, Default)]
pub(crate) struct RawHeader {
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) tensors: Vec<(String, RawTensor)>,
}

/// The beginning of the message for a duplicate, which tells it from other JSON errors.
const TWICE: &str = "stands twice: ";

pub(crate) fn read_header(json: &[u8]) -> Result<RawHeader, FormatError> {
    if json.first() != Some(&b'{') {
        return Err(FormatError::HeaderJson { problem: "expected `{` first".to_owned() });
    }
    let text = json.trim_ascii_end();
    if json.get(text.len()..).is_some_and(|rest| rest.iter().any(|&byte| byte != b' ')) {
        return Err(FormatError::HeaderJson {
            problem: "expected only spaces at its end".to_owned(),
        });
    }
    serde_json::from_slice::<RawHeader>(text).map_err(|error| {
        let message = error.to_string();
        match message.strip_prefix(TWICE).and_then(|rest| rest.rsplit_once(" at line")) {
            Some((name, _)) => FormatError::Duplicate { name: shorten(name) },
            None => FormatError::HeaderJson { problem: message.chars().take(200).collect() },
        }
    })
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawHeaderVisitor;
        impl<'de> Visitor<'de> for RawHeaderVisitor {
            type Value = RawHeader;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut header = RawHeader::default();
                let mut seen = std::collections::HashSet::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format_args!("{TWICE}{key}")));
                    }
                    if key == "__metadata__" {
                        header.metadata = map.next_value::<Strings>()?.0;
                    } else {
                        header.tensors.push((key, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(RawHeaderVisitor)
    }
}

/// A map of strings to strings in which no key may stand twice.
struct Strings(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringsVisitor;
        impl<'de> Visitor<'de> for StringsVisitor {
            type Value = Strings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strings, A::Error> {
                let mut strings = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if let Some(_earlier) = strings.insert(key.clone(), value) {
                        return Err(A::Error::custom(format_args!("{TWICE}{key}")));
                    }
                }
                Ok(Strings(strings))
            }
        }
        deserializer.deserialize_map(StringsVisitor)
    }
}
