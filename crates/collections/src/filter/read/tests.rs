//! Errors of a filter state their position, and little is read before them.

use serde_json::{Value, json};

use super::*;

fn problem(written: &str) -> FilterProblem {
    Filter::read(written).unwrap_err()
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (filter, pointer, what) in [
        ("[]", "", A_FILTER),
        (r#"{"a": null}"#, "/a", A_VALUE),
        (r#"{"a": {"near": 1}}"#, "/a/near", UNKNOWN_TEST),
        (r#"{"a": {}}"#, "/a", NO_TEST),
        (r#"{"a": [1, [2]]}"#, "/a/1", A_VALUE),
        (r#"{"a": [1, {"eq": 2}]}"#, "/a/1", A_VALUE),
        (r#"{"a": {"eq": {"eq": 2}}}"#, "/a/eq", A_VALUE),
        (r#"{"a": {"gt": [2]}}"#, "/a/gt", A_VALUE),
        (r#"{"a": {"eq": 1, "eq": 2}}"#, "/a/eq", TWICE),
        (r#"{"a": 1, "a": 2}"#, "/a", TWICE),
        (r#"{"a/b": {"gt": true}}"#, "/a~1b/gt", UNORDERED),
        (r#"{"a": [1, 1e400]}"#, "/a/1", OUT_OF_RANGE),
        (r#"{"time": {"gte": "June"}}"#, "/time/gte", A_TIME),
        (r#"{"not": {"time": [1, true]}}"#, "/not/time/1", A_TIME),
        (r#"{"any": {"a": 1}}"#, "/any", FILTERS),
        (r#"{"any": [{"a": 1}, 2]}"#, "/any/1", A_FILTER),
        (r#"{"any": [{"a": 1}, {"b": {"exists": 1}}]}"#, "/any/1/b/exists", A_TRUTH),
        (r#"{"not": {"not": {"not": {"not": {"a": 1}}}}}"#, "/not/not/not/not", TOO_DEEP),
        (r#"{"a": 1} x"#, "", NOT_JSON),
        (r#"{"a": "\ud800"}"#, "", NOT_JSON),
        ("", "", NOT_JSON),
    ] {
        let expected = FilterProblem { pointer: pointer.to_owned(), what };
        assert_eq!(problem(filter), expected, "{filter}");
    }
}

#[test]
fn what_every_item_is_asked_is_bounded_in_all() {
    let values: Vec<usize> = (0..MAX_VALUES).collect();
    let lists = |lists: usize| {
        let names = (0..lists).map(|list| (format!("a{list}"), json!({"ne": values})));
        Value::Object(names.collect()).to_string()
    };
    assert!(Filter::read(&lists(3)).is_ok());
    assert_eq!(problem(&lists(4)).what, TOO_MUCH);
    let free = json!({"any": vec![json!({}); MAX_IN_ALL]});
    assert_eq!(problem(&free.to_string()).what, TOO_MUCH);
    let list: Vec<usize> = (0..=MAX_VALUES).collect();
    assert_eq!(problem(&json!({"a": list}).to_string()).what, TOO_MANY);
}

#[test]
fn depth_and_length_are_refused_before_they_are_read() {
    let deep = |open: &str, times: usize| problem(&open.repeat(times)).what;
    assert_eq!(deep(r#"{"not":"#, 5_000), TOO_DEEP);
    assert_eq!(deep(r#"{"a":["#, 5_000), A_VALUE);
    assert_eq!(deep(r#"{"a":{"eq":"#, 3_000), A_VALUE);
    let long = json!({"a": "x".repeat(MAX_BYTES)});
    assert_eq!(problem(&long.to_string()).what, TOO_LONG);
}
