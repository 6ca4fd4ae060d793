//! A value of a wrong type is refused in words of JSON, not of Rust.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::support::app::TestApp;

/// Words that only a reader of the code understands.
const OF_RUST: [&str; 14] = [
    "f32", "f64", "i64", "u32", "u64", "usize", "struct", "enum", "tuple", "sequence", "map",
    "borrowed", "boolean", "unit",
];

#[tokio::test]
async fn no_refusal_names_a_type_of_rust() {
    let app = TestApp::new();
    let bodies = [
        (
            "/similarity",
            json!({"pairs": [["a", "b"]], "a": "", "b": "", "model": "", "method": "", "measure": "",
                "oov": "", "truncate": true, "threshold": 0}),
        ),
        (
            "/rank",
            json!({"query": "a", "candidates": ["a"], "model": "", "method": "", "measure": "",
                "oov": "", "truncate": true, "top_k": 1, "min_score": 0, "return_text": true,
                "offset": 0, "exclude": [1], "boost_by": "", "queries": ["a"], "like": ["a"],
                "unlike": ["a"], "strategy": "", "unlike_weight": 1, "collapse": 0,
                "diversify": {}, "explain": true, "collection": "", "filter": {}, "within": "",
                "shortlist": 1}),
        ),
        ("/collections/news/items", json!({"items": [{"id": "a", "text": "b"}]})),
        (
            "/collections/news/match",
            json!({"items": [{"id": "a", "text": "b"}], "model": "", "method": "", "second": "",
                "last": 1, "within": "", "threshold": 0, "nearest": 1, "votes": 1,
                "centre": 0, "duplicate_score": 1}),
        ),
        (
            "/embed",
            json!({"texts": ["a"], "model": "", "method": "", "normalize": true, "encoding": "",
                "oov": "", "truncate": true}),
        ),
        (
            "/explain",
            json!({"a": "a", "b": "b", "model": "", "method": "", "measure": "", "oov": "",
                "truncate": true}),
        ),
    ];
    let made = Request::put("/collections/news").header("content-type", "application/json");
    app.send(made.body(Body::from("{}")).unwrap()).await;
    let item = |field: &str, value: Value| json!({"items": [{field: value}]});
    for (body, expected) in [
        (item("attributes", json!([])), "wrong type: expected an object"),
        (
            item("attributes", json!({"a": []})),
            "wrong type: expected a string, a number, true or false",
        ),
        (item("id", json!(true)), "wrong type: expected a string or a whole number"),
        (item("time", json!("noon")), "wrong type: expected a time: RFC 3339"),
        (json!({"items": {}}), "wrong type: expected a list"),
        (json!({"items": [1]}), "wrong type: expected an object"),
    ] {
        let answer = app.post("/collections/news/items", body.to_string()).await;
        let problem = answer.refusal(422, "invalid_field");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(expected), "{body}: {detail}");
    }
    let wrong =
        [json!(true), json!(-1.5), json!("x"), json!([[1]]), json!([true]), json!({"a": [1]})];
    let mut told = 0;
    for (path, body) in &bodies {
        for field in body.as_object().unwrap().keys() {
            for value in &wrong {
                // Alone, so that no other fault is found first.
                let answer = app.post(path, json!({field: value}).to_string()).await;
                if answer.status == StatusCode::OK {
                    continue;
                }
                let problem: Value = answer.json();
                let detail = problem["detail"].as_str().unwrap();
                let plain = detail.replace(|c: char| !c.is_alphanumeric() && c != '_', " ");
                let names = plain.split(' ').find(|word| OF_RUST.contains(word));
                assert_eq!(names, None, "{path} {field} {value}: {detail}");
                told += usize::from(detail.starts_with("wrong type: expected "));
            }
        }
    }
    assert!(told > 60, "only {told} types were wrong");
    for (path, body, expected) in [
        ("/rank", json!({"min_score": "high"}), "wrong type: expected a number"),
        ("/rank", json!({"return_text": 1}), "wrong type: expected true or false"),
        ("/embed", json!({"model": 1}), "wrong type: expected a string"),
        ("/embed", json!({"encoding": 1}), "wrong type: expected a string"),
        ("/rank", json!({"oov": [1]}), "wrong type: expected a string"),
        ("/rank", json!({"oov": {"score": 1}}), "wrong type: expected a string"),
        ("/similarity", json!({"oov": true}), "wrong type: expected a string"),
        ("/rank", json!({"top_k": "3"}), "wrong type: expected a whole number from 1 to 100000"),
        (
            "/embed",
            json!({"text": "a"}),
            "unknown field `text`; did you mean `texts`? expected one of `texts`, ",
        ),
        ("/embed", json!({"oov": "no"}), "unknown value; expected `score` or `error`"),
    ] {
        let answer = app.post(path, body.to_string()).await.refusal(422, "invalid_field");
        let field = body.as_object().unwrap().keys().next().unwrap();
        let pointer = answer["errors"][0]["pointer"].as_str().unwrap();
        assert!(pointer.starts_with(&format!("/{field}")), "{body}: {pointer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.starts_with(expected), "{body}: {detail}");
    }
}

/// A number that does not fit is told what would.
#[tokio::test]
async fn a_number_out_of_range_is_told_the_range() {
    let app = TestApp::new();
    let made = Request::put("/collections/news").header("content-type", "application/json");
    app.send(made.body(Body::from("{}")).unwrap()).await;
    let matched =
        |field: &str, value: Value| json!({"items": [{"id": "a", "text": "quake"}], field: value});
    let candidates = json!(["a"]);
    let ranked = |field: &str, value: Value| json!({"query": "quake", "candidates": candidates, field: value});
    let (items, matching) = ("/collections/news/items", "/collections/news/match");
    let timed = |time: Value| json!({"items": [{"id": "a", "text": "b", "time": time}]});
    for (path, body, pointer, range) in [
        ("/rank", ranked("top_k", json!(0)), "/top_k", "a whole number from 1 to 100000"),
        ("/rank", ranked("offset", json!(-1)), "/offset", "a whole number from 0 to 100000"),
        (
            "/rank",
            ranked("diversify", json!({"lambda": 2})),
            "/diversify/lambda",
            "a number from 0 to 1",
        ),
        (
            "/rank",
            ranked("min_score", json!(1e9)),
            "/min_score",
            "a number from -1000000 to 1000000",
        ),
        (
            "/rank",
            ranked("shortlist", json!(0)),
            "/shortlist",
            "\"all\" or a whole number from 1 to 100000",
        ),
        (matching, matched("last", json!(0)), "/last", "a whole number from 1 to 100000"),
        (matching, matched("votes", json!(1001)), "/votes", "a whole number from 1 to 1000"),
        (
            matching,
            matched("threshold", json!(-2)),
            "/threshold",
            "a number from 0 to 1, as scores of same-event are",
        ),
        (
            matching,
            // By its name of before.
            matched("min_score", json!(2)),
            "/threshold",
            "a number from 0 to 1, as scores of same-event are",
        ),
        (matching, matched("centre", json!(1.5)), "/centre", "a number from 0 to 1"),
        (
            matching,
            matched("duplicate_score", json!(5)),
            "/duplicate_score",
            "a number from 0 to 1, as scores of same-event are",
        ),
        (
            matching,
            matched("duplicate_score", json!(-5)),
            "/duplicate_score",
            "a number from 0 to 1, as scores of same-event are",
        ),
        (items, timed(json!(i64::MAX)), "/items/0/time", "a time of the years 0000 to 9999"),
        (
            items,
            timed(json!("9223372036854775807")),
            "/items/0/time",
            "a time of the years 0000 to 9999",
        ),
    ] {
        let problem = app.post(path, body.to_string()).await.refusal(422, "out_of_range");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.ends_with(&format!("expected {range}")), "{body}: {detail}");
    }
    // The scores of another second method lie elsewhere.
    let cosine =
        json!({"items": [{"id": "a", "text": "quake"}], "second": "none", "threshold": -0.5});
    assert_eq!(app.post(matching, cosine.to_string()).await.status, StatusCode::OK);
    for query in ["threshold=2", "min_score=2", "centre=-1"] {
        let lines = Request::post(format!("{matching}?{query}"))
            .header("content-type", "application/x-ndjson");
        app.send(lines.body(Body::empty()).unwrap()).await.refusal(422, "out_of_range");
    }
}
