//! Reading and writing of lines: what every line may have, and the line of an error.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use axum::body::Bytes;
use cognate_collections::Readable;
use serde::de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code, Detail, Result};
use crate::http::request::fields::{Text, forms};
use crate::http::request::json;
use crate::http::work::numbers;

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(super) struct LineId<'b>(&'b RawValue);

impl LineId<'_> {
    pub(super) fn as_written(&self) -> &str {
        self.0.get()
    }

    /// The id as it was written, owned.
    pub(super) fn written(self) -> Box<RawValue> {
        self.0.to_owned()
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for LineId<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = <&RawValue>::deserialize(from)?;
        let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'-';
        let first = written.get().bytes().next();
        if !first.is_some_and(|first| first == b'"' || is_number(first)) {
            let other = Unexpected::Other("another value");
            return Err(D::Error::invalid_type(other, &"a string or a number"));
        }
        // An id that a JSON parser refuses would make the answer unreadable.
        if serde_json::from_str::<Readable>(written.get()).is_err() {
            let other = Unexpected::Other("another one");
            let expected = "a string or a number that every parser of JSON can read";
            return Err(D::Error::invalid_value(other, &expected));
        }
        Ok(Self(written))
    }
}

pub(super) struct TextLine<'b> {
    pub(super) id: Option<LineId<'b>>,
    text: Text<'b>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
struct NamedText<'b> {
    id: Option<LineId<'b>>,
    text: Text<'b>,
}

impl AsRef<str> for TextLine<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

forms!(TextLine<'b>: "a string or an object with `text`";
    text(text) => Ok(TextLine { id: None, text: Text(text) });
    object(NamedText { id, text } in NamedText<'de>) => Ok(TextLine { id, text }););

/// Parses a line; a line that is too long has no bytes.
pub(super) fn parse<'b, T: Deserialize<'b>>(bytes: Option<&'b [u8]>) -> Result<T> {
    let bytes = bytes.ok_or_else(|| {
        let detail = format!("the line has more than {MAX_LINE_BYTES} bytes");
        ApiError::new(Code::BodyTooLarge, detail)
    })?;
    json::read(bytes)
}

/// The id of a faulty line, if the id precedes the fault.
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
    // The fault is known already.
    let _ = reader.deserialize_map(Search(&mut id));
    id
}

#[derive(Serialize)]
struct Failed<'e> {
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'e>>,
    error: Failure<'e>,
}

/// Why a text has no other answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Failure<'e> {
    code: Code,
    /// The error in words.
    #[schema(value_type = String)]
    detail: &'e Detail,
}

impl<'e> From<&'e ApiError> for Failure<'e> {
    fn from(error: &'e ApiError) -> Self {
        Self { code: error.code, detail: &error.detail }
    }
}

pub(super) fn fail(answer: &mut Vec<u8>, line: u64, id: Option<LineId<'_>>, error: &ApiError) {
    write(answer, &Failed { line, id, error: error.into() });
}

pub(super) fn write(answer: &mut Vec<u8>, line: &impl Serialize) {
    // Strings, numbers and booleans alone: this cannot fail.
    let _ = numbers::to_writer(&mut *answer, line);
    answer.push(b'\n');
}

pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub number: u64,
    /// The line's index among lines that are not white space, from 0.
    pub place: u64,
    /// The line's bytes without its end; `None` if it was too long.
    pub bytes: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Batch {
    pub lines: Vec<Line>,
    pub passed: usize,
}

/// Received bytes, and the beginning of the current line among those that were searched.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    arrived: VecDeque<Bytes>,
    partial: Vec<u8>,
    /// Whether the current line is too long already.
    overlong: bool,
    finished: bool,
    seen: u64,
    bytes: u64,
    /// Lines among them that are not white space.
    filled: u64,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.bytes += bytes.len() as u64;
        self.arrived.push_back(bytes);
    }

    /// Bytes after the last line end are a line too.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// The next complete lines, at most `most`. Lines of white space count, but have no answer.
    pub(crate) fn take(&mut self, most: usize) -> Batch {
        let (first, mut lines) = (self.seen, Vec::new());
        while self.seen - first < most as u64 {
            let Some(mut bytes) = self.arrived.pop_front() else {
                if self.finished && self.is_partial() {
                    lines.extend(self.end());
                }
                break;
            };
            let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
                self.keep(&bytes);
                continue;
            };
            let line = bytes.split_to(end);
            self.keep(&line);
            lines.extend(self.end());
            self.arrived.push_front(bytes.slice(1..));
        }
        Batch { lines, passed: (self.seen - first) as usize }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished && self.arrived.is_empty() && !self.is_partial()
    }

    /// Whether a line was begun, once all complete lines were taken.
    pub(crate) fn is_partial(&self) -> bool {
        self.overlong || !self.partial.is_empty()
    }

    /// Lines that were taken so far, lines of white space included.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.overlong || self.partial.len() + bytes.len() > MAX_LINE_BYTES {
            self.overlong = true;
            self.partial.clear();
            return;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn end(&mut self) -> Option<Line> {
        self.seen += 1;
        let overlong = std::mem::take(&mut self.overlong);
        let bytes = std::mem::take(&mut self.partial);
        let blank = !overlong && bytes.iter().all(u8::is_ascii_whitespace);
        if blank {
            return None;
        }
        self.filled += 1;
        let bytes = (!overlong).then_some(bytes);
        Some(Line { number: self.seen, place: self.filled - 1, bytes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::default();
        pieces.iter().for_each(|piece| lines.push(Bytes::copy_from_slice(piece)));
        lines.finish();
        let batch = lines.take(usize::MAX);
        batch.lines.into_iter().map(|line| (line.number, line.bytes)).collect()
    }

    #[test]
    fn blank_lines_count_and_overlong_ones_are_not_kept() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let fits = vec![b'y'; MAX_LINE_BYTES];
        let text = [b"a\n\n \r\nb\r\n".as_slice(), &long, b"\n", &fits, b"\nlast"].concat();
        let expected = vec![
            (1, Some(b"a".to_vec())),
            (4, Some(b"b\r".to_vec())),
            (5, None),
            (6, Some(fits)),
            (7, Some(b"last".to_vec())),
        ];
        assert_eq!(all(&[&text]), expected);
    }

    #[test]
    fn lines_of_white_space_count_towards_a_batch() {
        let mut lines = Lines::default();
        lines.push(Bytes::from_static(b"\n\n\na\n\n"));
        let passed = |lines: &mut Lines| {
            let batch = lines.take(2);
            (batch.passed, batch.lines.len())
        };
        assert_eq!([(); 4].map(|()| passed(&mut lines)), [(2, 0), (2, 1), (1, 0), (0, 0)]);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            text in "[ab\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(all(&pieces), all(&[text.as_bytes()]));
        }
    }
}
