//! What a caller hangs on candidates: names, boosts, data; which of them it leaves out, and which page
//! of the results it wants.

use serde_json::{Value, json};

use super::{each, with};
use crate::support;
use crate::support::app::TestApp;

fn question() -> Value {
    json!({
        "query": "a quake hits the city",
        "candidates": [
            {"id": "a", "text": "the town"}, {"id": "b", "text": "zzz qqq"}, {"id": 7, "text": "an earthquake"},
            {"id": "7", "text": "quake hits city"}, "new york", {"id": u64::MAX, "text": "the new city"},
        ],
        "method": "dynamax",
    })
}

#[tokio::test]
async fn a_page_is_a_part_of_the_whole_list() {
    let app = TestApp::strict();
    let whole = app.ask("/rank", question()).await;
    let all = whole["results"].as_array().unwrap();
    for (offset, top_k) in [(0, 2), (2, 2), (4, 2), (5, 9), (6, 1), (100_000, 1)] {
        let page = with(&question(), json!({"offset": offset, "top_k": top_k}));
        let page = app.ask("/rank", page).await;
        let end = all.len().min(offset + top_k);
        assert_eq!(page["results"], json!(all[offset.min(end)..end]), "{offset} {top_k}");
        assert_eq!(page["unscored"], whole["unscored"]);
    }
    let rest = app.ask("/rank", with(&question(), json!({"offset": 3}))).await;
    assert_eq!(rest["results"], json!(all[3..]));
}

#[tokio::test]
async fn an_excluded_candidate_is_as_if_it_had_not_been_sent() {
    let app = TestApp::strict();
    let whole = app.ask("/rank", with(&question(), json!({"coverage": true}))).await;
    assert_eq!(whole["unscored"], json!([1]));
    let unscored: Vec<usize> = vec![1];
    for (exclude, out) in [
        (json!(["b"]), vec![1]),
        (json!([7]), vec![2]),
        (json!(["7"]), vec![3]),
        (json!([7, "a", "nobody", u64::MAX]), vec![0, 2, 5]),
        (json!([]), vec![]),
    ] {
        let body = with(&question(), json!({"exclude": exclude, "coverage": true}));
        let answer = app.ask("/rank", body).await;
        let kept = whole["results"].as_array().unwrap().iter();
        let stays = |index: &Value| !out.contains(&(index.as_u64().unwrap() as usize));
        let kept: Vec<&Value> = kept.filter(|result| stays(&result["index"])).collect();
        assert_eq!(answer["results"], json!(kept), "{exclude}");
        let left: Vec<&usize> = unscored.iter().filter(|index| !out.contains(index)).collect();
        assert_eq!(answer["unscored"], json!(left), "{exclude}");
    }
    let none = with(&question(), json!({"exclude": ["a", "b", 7, "7", u64::MAX]}));
    assert_eq!(each(&app.ask("/rank", none).await, "index"), [json!(4)]);

    // The fault of one that is not excluded stands where it stands in the request.
    let strict = with(&question(), json!({"exclude": ["a"], "oov": "error"}));
    let problem = app.post("/rank", strict.to_string()).await.refusal(422, "all_oov");
    assert_eq!(problem["errors"][0]["pointer"], "/candidates/1/text");
    assert!(problem["detail"].as_str().unwrap().starts_with("candidates[1] "), "{problem}");
    let fine = with(&question(), json!({"exclude": ["b"], "oov": "error"}));
    assert_eq!(app.ask("/rank", fine).await["unscored"], json!([]));
    let app = TestApp::with(|settings| settings.max_candidates = 6);
    let many = with(&question(), json!({"exclude": [1, 2, 3, 4, 5, 6, 7]}));
    let problem = app.post("/rank", many.to_string()).await.refusal(422, "too_many_items");
    assert_eq!(problem["errors"][0]["pointer"], "/exclude");
}

#[tokio::test]
async fn a_boost_is_added_to_the_score_or_multiplies_it() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    let texts: Vec<String> = (0..200)
        .map(|index| format!("{} quake number {index}", ["the", "a city", "new york"][index % 3]))
        .collect();
    let boost = |index: usize| [None, Some(0.25_f32), Some(1.5), Some(0.0)][index % 4];
    let candidate = |(index, text): (usize, &String)| match boost(index) {
        Some(boost) => json!({"text": text, "boost": boost}),
        None => json!(text),
    };
    let candidates: Vec<Value> = texts.iter().enumerate().map(candidate).collect();
    // One method knows bounds of its scores, by which candidates are left out unscored.
    for method in ["avg-cos", "wmd", "bm25"] {
        let body =
            json!({"query": "quake in new york", "candidates": candidates, "method": method});
        let plain = with(&body, json!({"candidates": texts}));
        let plain = app.ask("/rank", plain).await;
        let scores: Vec<(usize, f32)> = plain["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                (one["index"].as_u64().unwrap() as usize, one["score"].as_f64().unwrap() as f32)
            })
            .collect();
        for by in ["add", "multiply"] {
            let boosted = |&(index, score): &(usize, f32)| match (boost(index), by) {
                (None, _) => (index, score),
                (Some(boost), "add") => (index, score + boost),
                (Some(boost), _) => (index, score * boost),
            };
            let mut expected: Vec<(usize, f32)> = scores.iter().map(boosted).collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            for more in [json!({}), json!({"top_k": 9}), json!({"top_k": 50, "min_score": 0.5})] {
                let asked = with(&with(&body, json!({"boost_by": by})), more.clone());
                let answer = app.ask("/rank", asked).await;
                let got: Vec<(usize, f32)> = answer["results"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| {
                        (
                            one["index"].as_u64().unwrap() as usize,
                            one["score"].as_f64().unwrap() as f32,
                        )
                    })
                    .collect();
                let least = more["min_score"].as_f64().unwrap_or(f64::MIN) as f32;
                let most = more["top_k"].as_u64().unwrap_or(u64::MAX) as usize;
                let wanted: Vec<(usize, f32)> =
                    expected.iter().filter(|one| one.1 >= least).take(most).copied().collect();
                assert_eq!(got, wanted, "{method} {by} {more}");
            }
        }
    }
}

#[tokio::test]
async fn data_comes_back_as_it_was_written() {
    let app = TestApp::new();
    let body = r#"{"query": "quake", "candidates": ["a quake",
        {"text": "the city", "data": {"url" : "a\u0062",  "price": 1.50, "tags":[ ]}},
        {"text": "", "data": {}}]}"#;
    let answer = app.post("/rank", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let data = r#""data":{"url" : "a\u0062",  "price": 1.50, "tags":[ ]}}"#;
    assert!(answer.text().contains(data), "{}", answer.text());
    assert!(answer.text().contains(r#""data":{}}"#), "{}", answer.text());
    let tight = TestApp::with(|settings| settings.response_bytes = 4 << 10);
    let long = json!({"text": "quake", "data": {"a": "x".repeat(4000)}});
    let long = json!({"query": "quake", "candidates": [long, long]});
    tight.post("/rank", long.to_string()).await.refusal(422, "response_too_large");
}

#[tokio::test]
async fn what_a_candidate_may_not_bring_is_named_by_its_place() {
    let app = TestApp::new();
    let many: Vec<(String, i32)> = (0..17).map(|n| (n.to_string(), n)).collect();
    let many: std::collections::BTreeMap<_, _> = many.into_iter().collect();
    for (candidate, more, code, pointer, detail) in [
        (json!({"data": []}), json!({}), "invalid_field", "/data", "expected an object"),
        (
            json!({"data": {"a": "x".repeat(4090)}}),
            json!({}),
            "invalid_field",
            "/data",
            "at most 4096 bytes",
        ),
        (json!({"boost": "x"}), json!({}), "invalid_field", "/boost", "expected a number"),
        (json!({"boost": 1e7}), json!({}), "out_of_range", "/boost", "does not fit"),
        (
            json!({"boost": -1}),
            json!({"boost_by": "multiply"}),
            "out_of_range",
            "/boost",
            "`boost_by`",
        ),
        (json!({"scores": {"run": 1}}), json!({}), "invalid_field", "/scores", "uses `scores`"),
        (json!({"scores": {"": 1}}), json!({}), "invalid_field", "/scores", "a name of its own"),
        (json!({"scores": many}), json!({}), "invalid_field", "/scores", "at most 16 numbers"),
        (json!({"id": 1.5}), json!({}), "invalid_field", "/id", "a whole number"),
        (json!({"id": true}), json!({}), "invalid_field", "/id", "a whole number"),
    ] {
        let candidate = with(&json!({"text": "quake"}), candidate);
        let body = json!({"query": "quake", "candidates": ["a city", candidate]});
        let body = with(&body, more).to_string();
        let status = app.post("/rank", body.clone()).await;
        let problem = status.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], format!("/candidates/1{pointer}"), "{body}");
        let said = problem["detail"].as_str().unwrap();
        assert!(said.contains(detail), "{body}: {said}");
    }
    let surrogate = r#"{"query": "quake", "candidates": [{"text": "a", "data": {"a": "\ud800"}}]}"#;
    let problem = app.post("/rank", surrogate).await.refusal(422, "invalid_field");
    assert!(problem["detail"].as_str().unwrap().contains("every parser"), "{problem}");
}
