//! One line of a stream: a pair in, a score or the reason why there is none out.

use std::fmt;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;

use crate::engine::Reason;
use crate::http::api::similarity_stream::lines::Line;
use crate::http::api::similarity_stream::lines::MOST_LINE_BYTES;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::request::fields::Pair;
use crate::http::request::fields::PairVisitor;
use crate::http::request::fields::Text;
use crate::http::request::json;

/// One line: `["a","b"]` or `{"a":…,"b":…}`.
struct PairLine<'b>(Pair<'b>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPair<'b> {
    #[serde(borrow)]
    a: Text<'b>,
    #[serde(borrow)]
    b: Text<'b>,
}

impl<'de: 'b, 'b> Deserialize<'de> for PairLine<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = PairLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of two strings or an object with `a` and `b`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                PairVisitor.visit_seq(list).map(PairLine)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let NamedPair { a, b } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PairLine(Pair(a, b)))
            }
        }
        from.deserialize_any(Either)
    }
}

/// The two texts of a line.
pub(crate) fn parse(line: &Line) -> Result<(Text<'_>, Text<'_>), ApiError> {
    let Some(bytes) = &line.bytes else {
        let detail = format!("the line has more than {MOST_LINE_BYTES} bytes");
        return Err(ApiError::new(Code::BodyTooLarge, detail));
    };
    let PairLine(Pair(a, b)) = json::read(bytes)?;
    Ok((a, b))
}

/// One line of the answer.
#[derive(Serialize)]
pub(crate) struct Scored {
    /// The score; 0 if the pair is unscored.
    pub score: f32,
    /// Whether the pair could not be scored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unscored: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether a text was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Whether the score is at or above the threshold, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<bool>,
}

impl Scored {
    /// Adds the line to an answer.
    pub(crate) fn write(&self, answer: &mut Vec<u8>) {
        write(answer, self);
    }
}

/// One line that could not be scored.
#[derive(Serialize)]
struct Failed<'e> {
    line: u64,
    error: Failure<'e>,
}

#[derive(Serialize)]
struct Failure<'e> {
    code: Code,
    detail: &'e str,
}

/// Adds to an answer that a line failed.
pub(crate) fn fail(answer: &mut Vec<u8>, line: u64, error: &ApiError) {
    write(answer, &Failed { line, error: Failure { code: error.code, detail: &error.detail } });
}

fn write(answer: &mut Vec<u8>, line: &impl Serialize) {
    // Strings, numbers and booleans alone: this cannot fail.
    let _ = serde_json::to_writer(&mut *answer, line);
    answer.push(b'\n');
}
