//! Parses bodies into requests; errors state the position of the fault without repeating what was
//! sent.

mod parameters;
mod trace;

use std::borrow::Cow;

pub(crate) use parameters::read_query;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::http::error::{ApiError, Code, Pointer, Result, Segment};
use crate::http::request::json::trace::{Kind, Problem, Trace, Traced};
use crate::http::settings::nearest;

/// A field that has a meaning even if it is null.
pub(crate) fn given<'de, T, D>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(from).map(Some)
}

/// Reads a body that must be an object. The parser would also accept a list of its fields' values.
pub fn read_object<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T> {
    if body.trim_ascii_start().starts_with(b"{") {
        return read(body);
    }
    read::<IgnoredAny>(body)?;
    Err(ApiError::at(Code::InvalidField, "", "the body must be an object"))
}

/// Reads an object that is a part of a body, which is valid JSON; its position is unknown here.
pub(crate) fn read_part<'b, T: Deserialize<'b>>(part: &'b RawValue) -> Result<T> {
    if !part.get().starts_with('{') {
        return Err(ApiError::at(Code::InvalidField, "", "wrong type: expected an object"));
    }
    read(part.get().as_bytes()).map_err(|error| match error.code {
        // Everything else was checked when the body was read.
        Code::MalformedJson => {
            let detail = "the body is not JSON: half a surrogate pair in a string";
            ApiError::new(Code::MalformedJson, detail)
        }
        _ => error,
    })
}

pub(crate) fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        // Tracing the position costs time, so only a body that is known to be faulty is read like
        // this.
        let (trace, mut reader) = (Trace::default(), serde_json::Deserializer::from_slice(body));
        match T::deserialize(Traced::new(&mut reader, &trace)) {
            Err(problem) if problem.kind != Kind::Syntax => refusal(&problem),
            Err(problem) if is_huge_number(body, &error) => {
                let detail = "a number is beyond what any field takes: expected one up to 1.8e308";
                ApiError::at(Code::OutOfRange, problem.pointer(), detail)
            }
            _ => {
                let (line, column) = (error.line(), error.column());
                let detail = format!("the body is not JSON: line {line}, column {column}");
                ApiError::new(Code::MalformedJson, detail)
            }
        }
    })
}

/// Whether the parser stopped at a number that has no float.
fn is_huge_number(body: &[u8], error: &serde_json::Error) -> bool {
    // When the parser skips a value, it checks the syntax and not whether a number fits a float.
    if serde_json::from_slice::<IgnoredAny>(body).is_err() {
        return false;
    }
    let lines = body.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
    let at = lines.map(<[u8]>::len).sum::<usize>() + error.column();
    let read = body.get(..at).unwrap_or(body);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in read {
        in_string ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
    }
    // Elsewhere it stops at half a character in a string, or where values are nested too deeply.
    !in_string && read.last().is_some_and(u8::is_ascii_digit)
}

/// Returns the error in this service's words, because the parser's message repeats the value.
fn refusal(problem: &Problem) -> ApiError {
    let detail: Cow<'static, str> = match &problem.kind {
        Kind::Range(range) => {
            let range = in_words(range);
            let detail = format!("a number does not fit the field it stands in: expected {range}");
            return ApiError::at(Code::OutOfRange, problem.pointer(), detail);
        }
        Kind::Missing(field) => format!("the field `{field}` is missing").into(),
        Kind::UnknownField(known) if !known.is_empty() => {
            let name = named(&problem.pointer());
            let near = name
                .as_ref()
                .and_then(|name| nearest(name, known.iter().map(|&known| known.to_owned())));
            let name = name.map_or_else(String::new, |name| format!(" `{name}`"));
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            format!("unknown field{name}; {near}expected {}", one_of(known)).into()
        }
        Kind::UnknownWord(known) if !known.is_empty() => {
            format!("unknown value; expected {}", one_of(known)).into()
        }
        Kind::Twice(_) => "a field is given twice".into(),
        Kind::Length(expected) => format!("wrong length: expected {expected}").into(),
        Kind::Type(expected) => format!("wrong type: expected {}", in_words(expected)).into(),
        Kind::UnknownField(_) | Kind::UnknownWord(_) | Kind::Other | Kind::Syntax => {
            "a field does not have the form it must have".into()
        }
    };
    ApiError::at(Code::InvalidField, problem.pointer(), detail)
}

/// The name of an unknown field, where it looks like the name of one and not like a text.
fn named(pointer: &Pointer) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    match pointer.segments().last() {
        Some(Segment::Key(name)) if name.bytes().all(is_plain) => Some(name.to_string()),
        _ => None,
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [one, other] => format!("`{one}` or `{other}`"),
        [one] => format!("`{one}`"),
        names => format!("one of `{}`", names.join("`, `")),
    }
}

/// What serde expects, in JSON's terms.
fn in_words(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        // An enum is read from a string alone in bodies, though serde would also read it from an object.
        "a borrowed string" | "str" | "string" | "unit" | "unit variant" => "a string",
        "a map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::fields::{Count, List, Pair};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
    #[allow(dead_code)]
    struct Body<'b> {
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
    fn a_misspelt_field_is_told_the_nearest() {
        for misspelt in ["topK", "top-k", "topk"] {
            let (_, _, detail) = refused(&format!(r#"{{"pairs":[],"{misspelt}":1}}"#));
            let told =
                format!("unknown field `{misspelt}`; did you mean `top_k`? expected `pairs` or");
            assert!(detail.starts_with(&told), "{detail}");
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
    fn a_number_that_no_float_holds_is_told_from_what_is_no_json() {
        let beyond = |number: &str| format!("{{\"pairs\":[],\n\"top_k\":[[],{number}]}}");
        for number in ["1e400", "-1e400", "123e9999999999999999", &"9".repeat(400)] {
            let read = read::<IgnoredAny>(beyond(number).as_bytes());
            assert!(read.is_ok(), "{number}");
            let (code, pointer, _) =
                refused(&beyond(number).replace("[[],", "").replace("]}", "}"));
            assert_eq!((code, &*pointer), (Code::OutOfRange, "/top_k"), "{number}");
        }
        for text in [r"\ud800 1e999", r"\ude99", r"1e999\ud8001e999", "1e999\u{1}"] {
            let (code, _, _) = refused(&format!("{{\"pairs\":[[\"a\",\"{text}\"]]}}"));
            assert_eq!(code, Code::MalformedJson, "{text}");
        }
    }

    #[test]
    fn nesting_where_a_text_belongs_stops_at_once() {
        let deep = format!("{{\"pairs\":[[\"a\",{}", "[".repeat(100_000));
        assert_eq!(refused(&deep).0, Code::InvalidField);
    }
}
