//! A body's bytes become a request, or a refusal that says where the fault is without repeating
//! what was sent.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_path_to_error::Segment as Step;

use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::request::fields::{EXPECTED, OUT_OF_RANGE};

/// Longest name of a field in a pointer: clients choose it.
const NAME_CHARS: usize = 64;

/// Reads a body that must be an object. The parser would also take a list of its fields' values.
pub fn read_object<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, ApiError> {
    if body.trim_ascii_start().starts_with(b"{") {
        return read(body);
    }
    read::<IgnoredAny>(body)?;
    Err(ApiError::at(Code::InvalidField, "", "the body must be an object"))
}

/// Reads an object out of a body that is JSON as a whole; where it stands is not known here.
pub(crate) fn read_part<'b, T: Deserialize<'b>>(part: &'b RawValue) -> Result<T, ApiError> {
    if !part.get().starts_with('{') {
        return Err(ApiError::at(Code::InvalidField, "", "wrong type: expected an object"));
    }
    read(part.get().as_bytes()).map_err(|error| match error.code {
        // All else was looked at when the body was read.
        Code::MalformedJson => {
            let detail = "the body is not JSON: half a surrogate pair in a string";
            ApiError::new(Code::MalformedJson, detail)
        }
        _ => error,
    })
}

pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        // Following the path costs time, so only a body that is known to be faulty is followed.
        let mut reader = serde_json::Deserializer::from_slice(body);
        let at = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(traced) => pointer(traced.path()),
            Ok(_) => Pointer::default(),
        };
        refusal(&error, at, body)
    })
}

fn refusal(error: &serde_json::Error, at: Pointer, body: &[u8]) -> ApiError {
    let said = error.to_string();
    if let Some(rest) = said.strip_prefix(OUT_OF_RANGE) {
        return ApiError::at(Code::OutOfRange, at, misfit(rest));
    }
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Data => {
            // The parser stops at the object that has the field; its name is one of ours.
            let twice = said.strip_prefix("duplicate field `");
            let field = twice.and_then(|rest| rest.split('`').next());
            let at = match field {
                Some(field) => at.then(key_of(field)),
                None => at,
            };
            ApiError::at(Code::InvalidField, at, complaint(&said))
        }
        // Where a word of a list stands in our types, the parser takes whatever else stands in the
        // body for a fault of the JSON.
        Category::Syntax if said.starts_with("expected value") && is_json(body) => {
            ApiError::at(Code::InvalidField, at, "wrong type: expected a string")
        }
        Category::Syntax | Category::Eof | Category::Io => {
            let detail = format!("the body is not JSON: line {line}, column {column}");
            ApiError::new(Code::MalformedJson, detail)
        }
    }
}

/// What is wrong with a number, by what follows after [`OUT_OF_RANGE`].
fn misfit(rest: &str) -> Cow<'static, str> {
    match rest.strip_prefix(EXPECTED) {
        Some(range) => {
            let range = range.rsplit_once(" at line").map_or(range, |(range, _)| range);
            format!("a number does not fit the field it stands in: expected {range}").into()
        }
        None => "a number is beyond what any field takes: expected one up to 1.8e308".into(),
    }
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

/// What is wrong, in words that are all ours: the parser's own would repeat the value.
fn complaint(said: &str) -> Cow<'static, str> {
    // What was expected stands last and comes from our types.
    let expected = said.rsplit_once("expected ").map(|(_, expected)| {
        expected.rsplit_once(" at line").map_or(expected, |(expected, _)| expected)
    });
    let missing = said.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match (missing, expected) {
        (Some(field), _) => format!("the field `{field}` is missing").into(),
        (None, Some(expected)) if said.starts_with("unknown field") => {
            format!("unknown field; expected {expected}").into()
        }
        (None, Some(expected)) if said.starts_with("unknown variant") => {
            format!("unknown value; expected {expected}").into()
        }
        (None, _) if said.starts_with("duplicate field") => "a field is given twice".into(),
        (None, Some(expected)) if said.starts_with("invalid length") => {
            format!("wrong length: expected {expected}").into()
        }
        (None, Some(expected)) => format!("wrong type: expected {}", in_words(expected)).into(),
        (None, None) => "a field does not have the form it must have".into(),
    }
}

/// What serde says was expected, without the names of Rust's types.
fn in_words(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        // A choice among words may come as an object to serde, and never to us.
        "string or map" | "a borrowed string" | "str" | "string" | "unit" | "unit variant" => {
            "a string"
        }
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    }
}

fn pointer(path: &serde_path_to_error::Path) -> Pointer {
    path.iter().fold(Pointer::default(), |pointer, step| match step {
        Step::Seq { index } => pointer.index(*index),
        Step::Map { key } | Step::Enum { variant: key } => pointer.then(key_of(key)),
        Step::Unknown => pointer,
    })
}

fn key_of(key: &str) -> Segment {
    Segment::Key(key.chars().take(NAME_CHARS).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::fields::{Count, List, Pair};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Body<'b> {
        #[serde(borrow)]
        pairs: List<Pair<'b>>,
        top_k: Option<Count>,
    }

    fn refused(body: &str) -> (Code, String, String) {
        let error = read::<Body<'_>>(body.as_bytes()).unwrap_err();
        let pointer = error.faults.first().map(|fault| fault.pointer.to_string());
        (error.code, pointer.unwrap_or_default(), error.detail.to_string())
    }

    #[test]
    fn a_fault_is_named_by_its_place_and_never_repeated() {
        let cases = [
            (r#"{"pairs":[["a","b"],["a",3]]}"#, Code::InvalidField, "/pairs/1/1"),
            (r#"{"pairs":[["a","b"]],"secret text":1}"#, Code::InvalidField, "/secret text"),
            (r#"{"pairs":"secret text, expected"}"#, Code::InvalidField, "/pairs"),
            (r#"{"pairs":[],"pairs":[]}"#, Code::InvalidField, "/pairs"),
            (r#"{}"#, Code::InvalidField, ""),
            (r#"{"pairs":[],"top_k":-1}"#, Code::OutOfRange, "/top_k"),
            (r#"{"pairs":[],"top_k":18446744073709551616}"#, Code::OutOfRange, "/top_k"),
            (r#"{"pairs":[],"top_k":1e400}"#, Code::OutOfRange, "/top_k"),
            (r#"{"pairs":[],"top_k":1.5}"#, Code::InvalidField, "/top_k"),
            ("{\"pairs\":[[\"a\",\"\\ud800\"]]}", Code::MalformedJson, ""),
            ("\u{feff}{}", Code::MalformedJson, ""),
            (r#"{"pairs":[]} x"#, Code::MalformedJson, ""),
            (r#"{"pairs":["#, Code::MalformedJson, ""),
            (r#"{"pairs":[],"top_k":NaN}"#, Code::MalformedJson, ""),
        ];
        for (body, code, at) in cases {
            let (got, pointer, detail) = refused(body);
            assert_eq!((got, pointer.as_str()), (code, at), "{body}");
            assert!(!detail.contains("secret"), "{detail}");
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_the_range_of_its_field() {
        let range = "expected a whole number from 1 to 100000";
        for number in ["0", "100001", "-1", "1e9", "18446744073709551616"] {
            let (code, _, detail) = refused(&format!(r#"{{"pairs":[],"top_k":{number}}}"#));
            assert_eq!(code, Code::OutOfRange);
            assert!(detail.ends_with(range), "{detail}");
        }
        let (_, _, detail) = refused(r#"{"pairs":[],"top_k":1e400}"#);
        assert!(detail.ends_with("up to 1.8e308"), "{detail}");
    }

    #[test]
    fn nesting_where_a_text_belongs_stops_at_once() {
        let deep = format!("{{\"pairs\":[[\"a\",{}", "[".repeat(100_000));
        assert_eq!(refused(&deep).0, Code::InvalidField);
    }
}
