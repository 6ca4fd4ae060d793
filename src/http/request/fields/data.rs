//! What a caller hangs on a candidate and finds again with its result. Its meaning is not known here.

use cognate_collections::Readable;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Most bytes of the data of one candidate.
const MOST_BYTES: usize = 4096;

/// An object of the caller's own, at most 4096 bytes as written, that comes back as it was written.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub(crate) struct CallersData<'b>(&'b RawValue);

impl<'b> CallersData<'b> {
    /// What was checked when it was stored.
    pub(crate) fn stored(data: &'b RawValue) -> Self {
        Self(data)
    }
}

impl CallersData<'_> {
    /// As it was written.
    pub(crate) fn written(&self) -> &str {
        self.0.get()
    }
}

impl CallersData<'_> {
    /// The same, which borrows nothing.
    pub(crate) fn into_written(self) -> Box<RawValue> {
        self.0.to_owned()
    }
}

impl PartialEq for CallersData<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for CallersData<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let data = <&RawValue>::deserialize(from)?;
        let written = data.get();
        let fault = |value, expected: &str| {
            Err(D::Error::invalid_value(Unexpected::Other(value), &expected))
        };
        if !written.starts_with('{') {
            return fault("another value", "an object");
        }
        if written.len() > MOST_BYTES {
            return fault("a longer one", "an object of at most 4096 bytes");
        }
        // What comes back must not be an answer that its reader's parser refuses.
        if serde_json::from_str::<Readable>(written).is_err() {
            return fault("another one", "an object that every parser of JSON can read");
        }
        Ok(Self(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_can_be_read() {
        let read = |written: &str| {
            serde_json::from_str::<&RawValue>(written).is_ok()
                && serde_json::from_str::<CallersData<'_>>(written).is_ok()
        };
        for good in [r#"{}"#, r#"{"a":[1,-2,0.5,null,true,"\u00e9"],"a":{"b":1e300}}"#] {
            assert!(read(good), "{good}");
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MOST_BYTES));
        for bad in [
            "[]",
            "1",
            r#""a""#,
            r#"{"a":"\ud800"}"#,
            r#"{"\udc00":1}"#,
            r#"{"a":1e400}"#,
            &deep,
            &long,
        ] {
            assert!(!read(bad), "{bad}");
        }
    }
}
