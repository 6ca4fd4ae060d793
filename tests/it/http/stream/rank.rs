//! Candidates as lines: the best of them are those of a list, bit for bit.

use std::time::Duration;

use axum::body::{Body, Bytes};
use cognate::methods::Method;
use futures_util::stream;
use serde_json::{Value, json};

use super::{answers, ended, lines_to, until_counted, with_few_units};
use crate::http::rank::posts;
use crate::support;
use crate::support::app::TestApp;

/// The lines of an answer: results and, last, what was counted.
async fn ranked(app: &TestApp, question: &Value, candidates: &[Value]) -> (Vec<Value>, Value) {
    let lines = std::iter::once(question).chain(candidates);
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    let answer = app.send(lines_to("/rank", body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut lines = answers(&answer.text());
    let last = lines.pop().unwrap();
    (lines, last)
}

#[tokio::test]
async fn the_best_of_a_stream_are_those_of_a_list() {
    let app = TestApp::strict();
    let models = app.app.models();
    let engine = &models.all()[0].engine;
    let posts = posts(1000, 11);
    let named = |(index, post): (usize, &String)| match index % 3 {
        0 => json!({"id": format!("p{index}"), "text": post}),
        1 => json!({"id": index, "text": post}),
        _ => json!(post),
    };
    let candidates: Vec<Value> = posts.iter().enumerate().map(named).collect();
    let settings = [
        json!({}),
        json!({"top_k": 7, "return_text": true}),
        json!({"min_score": 0.5}),
        json!({"top_k": 40, "min_score": 0.1}),
    ];
    let mut compared = 0;
    for &method in Method::ALL {
        let available = engine.unavailable(method).is_none();
        for settings in settings.iter().filter(|_| available && engine.ranks_in_parts(method)) {
            let mut question = settings.clone();
            question["query"] = json!("the quake in new york");
            question["method"] = json!(method.name());
            if settings.get("min_score").is_some() && method.info().range.1 <= 0.0 {
                question["min_score"] = json!(-9.5);
            }
            let (results, summary) = ranked(&app, &question, &candidates).await;
            question["candidates"] = json!(candidates);
            let listed = app.ask("/rank", question).await;
            let expected = listed["results"].as_array().unwrap();
            assert_eq!(results.len(), expected.len(), "{} {settings}", method.name());
            for (result, expected) in results.iter().zip(expected) {
                for field in ["index", "id", "score", "text"] {
                    assert_eq!(
                        result.get(field),
                        expected.get(field),
                        "{} {result}",
                        method.name()
                    );
                }
            }
            for field in ["model", "method", "measure", "fingerprint"] {
                assert_eq!(summary[field], listed[field]);
            }
            assert_eq!(summary["unscored"], listed["unscored"].as_array().unwrap().len());
            assert_eq!((&summary["candidates"], &summary["failed"]), (&json!(1000), &json!(0)));
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// What is made of a list is made of a stream: what is left out and boosted, liked and disliked texts,
/// duplicates folded, variety, words, pages, data.
#[tokio::test]
async fn what_is_made_of_a_list_is_made_of_a_stream() {
    let app =
        TestApp::with_model(support::strict(), |settings| settings.compute_deadline_ms = 60_000);
    let posts = posts(160, 31);
    let candidate = |(index, post): (usize, &String)| match index % 4 {
        0 => json!({"id": format!("p{index}"), "text": post, "boost": index as f32 / 2000.0}),
        1 => json!({"id": index, "text": post, "data": {"n": index, "of": [1, "two"]}}),
        2 => json!({"text": post, "boost": 0.0}),
        _ => json!(post),
    };
    let candidates: Vec<Value> = posts.iter().enumerate().map(candidate).collect();
    let query = json!({"query": "the quake in new york"});
    let like = json!({"like": ["the quake", {"text": "new city", "weight": 0.4}, "zzz"],
        "unlike": ["town", "qqq"], "strategy": "mean"});
    let settings = [
        json!({"exclude": [1, "p4", "p8", 5, "nobody"], "top_k": 30}),
        json!({"boost_by": "multiply", "offset": 3, "top_k": 8}),
        json!({"collapse": 0.8}),
        json!({"collapse": 0.8, "top_k": 5, "offset": 2, "return_text": true}),
        json!({"collapse": 0.9, "offset": 155}),
        json!({"diversify": {"lambda": 0.4}, "top_k": 12}),
        json!({"diversify": {"lambda": 0.4, "pool": 30}, "collapse": 0.9, "min_score": 0.1, "top_k": 9}),
        json!({"explain": true, "top_k": 25, "offset": 1}),
    ];
    for asked in [&query, &like] {
        for method in ["avg-cos", "dynamax-jaccard", "coverage-blend"] {
            for settings in &settings {
                let mut question = settings.clone();
                let fields = question.as_object_mut().unwrap();
                fields.extend(asked.as_object().unwrap().clone());
                fields.insert("method".to_owned(), json!(method));
                let (results, summary) = ranked(&app, &question, &candidates).await;
                question["candidates"] = json!(candidates);
                let listed = app.ask("/rank", question.clone()).await;
                let expected = listed["results"].as_array().unwrap();
                assert_eq!(results.len(), expected.len(), "{method} {settings}");
                for (result, expected) in results.iter().zip(expected) {
                    for field in
                        ["index", "id", "score", "text", "data", "duplicates", "like", "words"]
                    {
                        let (got, wanted) = (result.get(field), expected.get(field));
                        assert_eq!(got, wanted, "{method} {settings} {field}");
                    }
                }
                for field in ["like_unscored", "unlike_unscored"] {
                    assert_eq!(summary.get(field), listed.get(field));
                }
                let excluded = settings.get("exclude").map(|_| json!(4));
                assert_eq!(summary.get("excluded"), excluded.as_ref());
            }
        }
    }
}

#[tokio::test]
async fn a_line_may_not_bring_what_cannot_be_used() {
    let app = TestApp::strict();
    let question =
        json!({"query": "quake", "boost_by": "multiply", "exclude": ["x"], "oov": "error"});
    let lines = [
        json!({"text": "quake", "boost": -1}),
        json!({"text": "quake", "scores": {"run": 1}}),
        json!({"text": "quake", "data": 1}),
        json!({"id": "x", "text": "zzz"}),
        json!({"id": "y", "text": "quake", "boost": 2}),
    ];
    let (got, summary) = ranked(&app, &question, &lines).await;
    let codes: Vec<&Value> = got[..3].iter().map(|line| &line["error"]["code"]).collect();
    assert_eq!(codes, ["out_of_range", "invalid_field", "invalid_field"]);
    assert_eq!((&got[3]["index"], &got[3]["score"]), (&json!(4), &json!(2.0)));
    assert_eq!((&summary["failed"], &summary["excluded"]), (&json!(3), &json!(1)));
}

/// What is made of all candidates at the end waits for room as each of them did.
#[tokio::test]
async fn the_end_of_a_ranking_waits_for_room() {
    let app = with_few_units(60_000);
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|bytes| (Ok::<_, std::io::Error>(bytes), receiver))
    });
    let question =
        "{\"query\":\"quake\",\"method\":\"avg-cos\",\"collapse\":0.9}\n\"quake\"\n\"city\"\n";
    sender.send(Bytes::from_static(question.as_bytes())).await.unwrap();
    let mut answer = tokio::spawn({
        let app = app.clone();
        async move { app.send(lines_to("/rank", Body::from_stream(body))).await }
    });
    until_counted(&app, "cognate_method_requests_total{method=\"avg-cos\"} 1").await;
    let mut taken = Vec::new();
    while let Ok(permit) = app.app.admission.admit() {
        taken.push(permit);
    }
    drop(sender);
    let soon = tokio::time::timeout(Duration::from_millis(200), &mut answer).await;
    assert!(soon.is_err(), "{}", soon.unwrap().unwrap().text());
    drop(taken);
    let lines = answers(&answer.await.unwrap().text());
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((&lines[0]["index"], &lines[2]["candidates"]), (&json!(0), &json!(2)));
}

#[tokio::test]
async fn a_bad_candidate_is_told_by_line_and_keeps_its_index() {
    let app = TestApp::strict();
    let body = [
        r#"{"query": "quake", "oov": "error", "truncate": true}"#,
        r#""the quake""#,
        "",
        r#"{"id": "x"}"#,
        r#"{"id": "y", "text": "zzz"}"#,
        r#"{"id": "z", "text": "quake"}"#,
    ];
    let got = answers(&app.send(lines_to("/rank", body.join("\r\n"))).await.text());
    assert_eq!((&got[0]["line"], &got[0]["id"]), (&json!(4), &json!("x")));
    assert_eq!(got[1]["error"]["detail"], "text has no known word");
    assert_eq!((&got[2]["index"], &got[2]["id"]), (&json!(3), &json!("z")));
    assert_eq!(got[3]["index"], 0);
    let counts = |name: &str| got[4][name].as_u64().unwrap();
    assert_eq!((counts("candidates"), counts("failed"), counts("unscored")), (4, 2, 0));
    assert_eq!(got.len(), 5);
}

#[tokio::test]
async fn a_question_at_fault_is_refused_before_any_candidate() {
    let app = TestApp::strict();
    for (first, code) in [
        ("", "invalid_field"),
        ("\"quake\"", "invalid_field"),
        ("{", "malformed_json"),
        (r#"{"query": "quake", "candidates": []}"#, "invalid_field"),
        (r#"{"query": "", "method": "avg-cos"}"#, "empty_text"),
        (r#"{"query": "zzz", "method": "avg-cos", "oov": "error"}"#, "all_oov"),
        (r#"{"query": "quake", "method": "rm3"}"#, "invalid_field"),
        (r#"{"query": "quake", "method": "jaccrd"}"#, "unknown_method"),
        (
            r#"{"query": "quake", "method": "bm25", "measure": "euclidean"}"#,
            "measure_not_supported",
        ),
        (r#"{"query": "quake", "min_score": "calibrated"}"#, "not_calibrated"),
        (r#"{"query": "quake", "top_k": 10001}"#, "too_many_items"),
        (r#"{"query": "quake", "top_k": 0}"#, "out_of_range"),
        (r#"{"queries": ["quake"]}"#, "invalid_field"),
        (r#"{"top_k": 3}"#, "invalid_field"),
        (r#"{"query": "quake", "like": ["quake"]}"#, "invalid_field"),
        (r#"{"like": ["quake", ""]}"#, "empty_text"),
        (r#"{"like": ["quake"], "method": "bm25"}"#, "method_only_ranks"),
        (r#"{"query": "quake", "diversify": {}, "method": "ql"}"#, "method_only_ranks"),
        (r#"{"query": "quake", "top_k": 10000, "offset": 1}"#, "too_many_items"),
    ] {
        let status = if code == "malformed_json" { 400 } else { 422 };
        let problem = app.send(lines_to("/rank", format!("\n{first}\n\"quake\"\n"))).await;
        let problem = problem.refusal(status, code);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("first line") || first.is_empty(), "{detail}");
    }
    app.send(lines_to("/rank", "\n \n")).await.refusal(422, "invalid_field");
    app.send(lines_to("/rank?top_k=3", "{\"query\": \"quake\"}\n"))
        .await
        .refusal(422, "invalid_field");
    let (results, summary) = ranked(&app, &json!({"query": "quake"}), &[]).await;
    assert_eq!((results.len(), &summary["candidates"]), (0, &json!(0)));
}

/// What is held for the end of the answer is an answer, too, and as large at most.
#[tokio::test]
async fn results_are_no_larger_than_an_answer_may_be() {
    let app = TestApp::with(|settings| settings.response_bytes = 100 << 10);
    let text = format!("quake {}", "x".repeat(8000));
    let candidates = vec![json!(text); 600];
    let question = json!({"query": "quake", "return_text": true, "top_k": 20});
    let (results, last) = ranked(&app, &question, &candidates).await;
    assert_eq!((results.len(), &last["error"]["code"]), (0, &json!("response_too_large")));
    until_counted(&app, &ended("refused")).await;
    let question = json!({"query": "quake", "top_k": 20});
    assert_eq!(ranked(&app, &question, &candidates).await.0.len(), 20);
}
