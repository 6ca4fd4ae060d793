//! Texts as lines: the vectors are those that a list of them gets.

use serde_json::{Value, json};

use super::{answers, lines_to};
use crate::support::app::TestApp;

const TEXTS: [&str; 5] = ["the quake", "zzz", "new york city", "", "o'neill zzz"];

#[tokio::test]
async fn a_text_a_line_gets_the_vector_that_it_gets_in_a_list() {
    let app = TestApp::strict();
    for (query, settings) in [
        ("", json!({})),
        ("?method=sif&normalize=true", json!({"method": "sif", "normalize": true})),
        ("?encoding=base64&model=tiny", json!({"encoding": "base64", "model": "tiny"})),
    ] {
        let mut question = settings;
        question["texts"] = json!(TEXTS);
        let listed = app.ask("/embed", question).await;
        let body: String = TEXTS.iter().map(|text| format!("{}\n\n", json!(text))).collect();
        let got = answers(&app.send(lines_to(&format!("/embed{query}"), body)).await.text());
        assert_eq!(got.len(), TEXTS.len());
        for (place, line) in got.iter().enumerate() {
            assert_eq!(line["embedding"], listed["embeddings"][place], "{query} {place}");
            assert_eq!(line["tokens"], listed["tokens"][place]);
            assert_eq!(line["known"], listed["known"][place]);
        }
        let reasons: Vec<&Value> = got.iter().filter_map(|line| line.get("reason")).collect();
        assert_eq!(json!(reasons), listed["reasons"]);
    }
}

#[tokio::test]
async fn names_come_back_and_faults_are_told_by_line() {
    let app = TestApp::strict();
    let body = [
        r#"{"id": "x", "text": "the quake"}"#,
        r#"{"id": 7, "text": "zzz"}"#,
        r#"{"id": 8}"#,
        r#"["quake"]"#,
    ];
    let got = app.send(lines_to("/embed?oov=error&encoding=base64", body.join("\n"))).await.text();
    let got: Vec<&str> = got.lines().collect();
    assert!(got[0].starts_with(r#"{"id":"x","embedding":""#), "{}", got[0]);
    let fault = r#"{"line":2,"id":7,"error":{"code":"all_oov","detail":"text has no known word"}}"#;
    assert_eq!(got[1], fault);
    assert!(
        got[2].starts_with(r#"{"line":3,"id":8,"error":{"code":"invalid_field""#),
        "{}",
        got[2]
    );
    assert!(got[3].contains("a string or an object with `text`"), "{}", got[3]);
    assert_eq!(got.len(), 4);
}

#[tokio::test]
async fn what_cannot_be_asked_of_any_text_is_refused_at_once() {
    let app = TestApp::new();
    for (query, code) in [
        ("?method=jaccard", "method_cannot_embed"),
        ("?method=nothing", "unknown_method"),
        ("?model=other", "unknown_model"),
        ("?measure=cosine", "invalid_field"),
        ("?encoding=hex", "invalid_field"),
    ] {
        app.send(lines_to(&format!("/embed{query}"), "\"quake\"\n")).await.refusal(422, code);
    }
}
