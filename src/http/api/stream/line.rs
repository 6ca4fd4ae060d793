//! Lines as they are read and written: what every line may carry, and the line of a fault.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::http::api::stream::lines::{Line, MOST_LINE_BYTES};
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::Text;
use crate::http::request::json;

/// A line's own name, which is given back as it was written.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(super) struct LineId<'b>(&'b RawValue);

impl LineId<'_> {
    /// As it was written.
    pub(super) fn as_written(&self) -> &str {
        self.0.get()
    }

    /// As it was written, borrowing nothing.
    pub(super) fn written(self) -> Box<RawValue> {
        self.0.to_owned()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for LineId<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = <&RawValue>::deserialize(from)?;
        let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'-';
        match written.get().bytes().next() {
            Some(first) if first == b'"' || is_number(first) => Ok(Self(written)),
            _ => {
                let other = Unexpected::Other("another value");
                Err(D::Error::invalid_type(other, &"a string or a number"))
            }
        }
    }
}

/// One line: a string or `{"id":…,"text":…}`.
pub(super) struct TextLine<'b> {
    pub(super) id: Option<LineId<'b>>,
    text: Text<'b>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedText<'b> {
    #[serde(borrow)]
    id: Option<LineId<'b>>,
    #[serde(borrow)]
    text: Text<'b>,
}

impl AsRef<str> for TextLine<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for TextLine<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = TextLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object with `text`")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(TextLine { id: None, text: Text(Cow::Borrowed(text)) })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextLine { id: None, text: Text(Cow::Owned(text.to_owned())) })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let from = MapAccessDeserializer::new(map);
                let NamedText { id, text } = Deserialize::deserialize(from)?;
                Ok(TextLine { id, text })
            }
        }
        from.deserialize_any(Either)
    }
}

/// What a line holds; one that is too long holds nothing.
pub(super) fn parse<'b, T: Deserialize<'b>>(bytes: Option<&'b [u8]>) -> Result<T, ApiError> {
    let bytes = bytes.ok_or_else(|| {
        let detail = format!("the line has more than {MOST_LINE_BYTES} bytes");
        ApiError::new(Code::BodyTooLarge, detail)
    })?;
    json::read(bytes)
}

/// The name of a line that is at fault, if it stands before the fault.
pub(super) fn id_of(line: &Line) -> Option<LineId<'_>> {
    struct Search<'s, 'b>(&'s mut Option<LineId<'b>>);
    impl<'de: 'b, 'b> Visitor<'de> for Search<'_, 'b> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                if key == "id" {
                    *self.0 = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }
    let mut id = None;
    let mut reader = serde_json::Deserializer::from_slice(line.bytes.as_deref()?);
    // What is wrong was found out before.
    let _ = reader.deserialize_map(Search(&mut id));
    id
}

/// One line that could not be answered.
#[derive(Serialize)]
struct Failed<'e> {
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'e>>,
    error: Failure<'e>,
}

#[derive(Serialize)]
struct Failure<'e> {
    code: Code,
    detail: &'e str,
}

/// Adds to an answer that a line failed.
pub(super) fn fail(answer: &mut Vec<u8>, line: u64, id: Option<LineId<'_>>, error: &ApiError) {
    let error = Failure { code: error.code, detail: &error.detail };
    write(answer, &Failed { line, id, error });
}

/// Adds a line to an answer.
pub(super) fn write(answer: &mut Vec<u8>, line: &impl Serialize) {
    // Strings, numbers and booleans alone: this cannot fail.
    let _ = serde_json::to_writer(&mut *answer, line);
    answer.push(b'\n');
}
