//! `/rank` over a shortlist of a collection: one that is long enough finds what scoring every item does,
//! and one that is not scores what is on it no other way.

use serde_json::{Value, json};

use crate::collections::ranking::{app_with, items, with};
use crate::collections::{call, done};
use crate::support;

/// Items that have a vector.
fn known(count: usize) -> Vec<Value> {
    let mut items = items(3 * count);
    let words = |item: &Value| item["text"].as_str().unwrap().to_owned();
    items.retain(|item| {
        support::WORDS.iter().any(|word| words(item).split(' ').any(|one| one == *word))
    });
    items.truncate(count);
    assert_eq!(items.len(), count);
    items
}

/// What is asked, as far as it is not chance.
fn questions() -> Vec<Value> {
    let methods = [
        "auto",
        "avg-cos",
        "dynamax",
        "dynamax-jaccard",
        "coverage",
        "wmd",
        "bm25",
        "rm3",
        "lsi",
        "sif",
    ];
    let mut questions: Vec<Value> = methods
        .iter()
        .flat_map(|method| {
            [
                json!({"query": "a quake hits the city", "method": method}),
                json!({"queries": ["new york", "the quake"], "method": method, "top_k": 200}),
            ]
        })
        .collect();
    questions.extend([
        json!({"query": "the town", "method": "avg-cos", "measure": "euclidean", "top_k": 90}),
        json!({"query": "the town", "method": "avg-cos", "explain": true, "coverage": true}),
        json!({"query": "the earthquake in new york", "min_score": 0.3, "top_k": 90}),
        json!({"query": "the city", "collapse": 0.9, "top_k": 6, "method": "dynamax"}),
        json!({"query": "the city", "diversify": {"lambda": 0.5}, "top_k": 6, "method": "dynamax"}),
        json!({"query": "the city", "offset": 5, "top_k": 6, "return_text": true}),
        json!({"query": "the city", "fuse": [{"method": "bm25"}, {"method": "avg-cos"}], "top_k": 6}),
        json!({"like": ["the quake hits", {"text": "new york", "weight": 0.5}], "unlike": ["the town"], "method": "dynamax"}),
        json!({"like": [{"id": "i1"}, {"id": "i4"}], "unlike": [{"id": "i3"}], "strategy": "mean", "method": "avg-cos"}),
        json!({"like": [{"id": "i2"}, "the city"], "strategy": "sum", "explain": true, "method": "dynamax"}),
    ]);
    questions
}

fn filters() -> [Value; 5] {
    [
        json!({}),
        json!({"filter": {"lang": "en"}}),
        json!({"filter": {"n": {"gte": 40, "lt": 150}}}),
        json!({"within": "24h", "exclude": ["i9", "i10", 11]}),
        json!({"filter": {"n": -1}}),
    ]
}

#[tokio::test]
async fn a_shortlist_that_is_long_enough_finds_what_all_do() {
    let app = app_with(&known(180)).await;
    let (mut answered, mut shorter) = (0, 0);
    for question in questions() {
        for filter in filters() {
            let body = with(&with(&json!({"collection": "news"}), &question), &filter);
            let ask = async |shortlist: Value| {
                let body = with(&body, &json!({"shortlist": shortlist}));
                call(&app, "POST", "/rank", Some(&body)).await
            };
            let (all, listed) = (ask(json!("all")).await, ask(json!(180)).await);
            assert_eq!(all.status, listed.status, "{body}: {} {}", all.text(), listed.text());
            if all.status != 200 {
                continue;
            }
            answered += 1;
            let (all, mut listed): (Value, Value) = (all.json(), listed.json());
            assert_eq!(all.get("shortlist"), None);
            assert_eq!(listed.as_object_mut().unwrap().remove("shortlist"), Some(json!(180)));
            assert_eq!(listed, all, "{body}");
            // What is not asked for is as it was.
            assert_eq!(done(&app, "POST", "/rank", Some(&body)).await, all, "{body}");
            // Fewer are scored as they would be among all.
            let few = ask(json!(12)).await.json();
            let most = 12 * question["queries"].as_array().map_or(1, Vec::len);
            let count = few["items"].as_u64().unwrap() as usize;
            let meant = all["items"].as_u64().unwrap() as usize;
            assert!(count <= most && count >= meant.min(12), "{count}: {body}");
            shorter += usize::from(count < meant);
            let of_pairs = ["avg-cos", "dynamax", "coverage", "wmd"];
            let method = question["method"].as_str().unwrap_or_default();
            let plain = question.as_object().unwrap().len() == 2;
            if plain && question.get("query").is_some() && of_pairs.contains(&method) {
                let whole = with(&body, &json!({"shortlist": "all", "top_k": 180}));
                let whole = done(&app, "POST", "/rank", Some(&whole)).await;
                for result in few["results"].as_array().unwrap() {
                    assert!(whole["results"].as_array().unwrap().contains(result), "{body}");
                }
            }
        }
    }
    assert!(answered > 100 && shorter > 60, "{answered} {shorter}");
    let metrics = app.get("/metrics").await.text();
    let counted = format!("cognate_rank_parts_total{{part=\"shortlist\"}} {}", 2 * answered);
    assert!(metrics.contains(&counted), "{metrics}");
}

#[tokio::test]
async fn a_large_collection_has_a_shortlist_where_it_misses_little() {
    let app = app_with(&items(6_000)).await;
    let listed = async |more: Value| {
        let body = with(&json!({"collection": "news", "query": "a quake hits the city"}), &more);
        let answer = done(&app, "POST", "/rank", Some(&body)).await;
        (answer["shortlist"].as_u64(), answer["results"].as_array().unwrap().len())
    };
    for method in ["coverage-blend", "dynamax", "coverage"] {
        assert_eq!(listed(json!({"method": method})).await, (Some(1_000), 10), "{method}");
    }
    // Ten times as many as are wanted; where that is nearly all, all are scored.
    let page = json!({"method": "dynamax", "offset": 150, "top_k": 50});
    assert_eq!(listed(page).await, (Some(2_000), 50));
    assert_eq!(listed(json!({"method": "dynamax", "top_k": 700})).await, (None, 700));
    assert_eq!(listed(json!({"method": "dynamax", "shortlist": "all"})).await, (None, 10));
    for method in ["avg-cos", "bm25", "wmd"] {
        assert_eq!(listed(json!({"method": method})).await.1, 10, "{method}");
    }
    // Of liked items there is one list for all, and the best of it are the best of all.
    for strategy in ["best", "mean"] {
        let like = [1, 500, 900, 1_300].map(|at| json!({"id": format!("i{at}")}));
        let body = json!({"collection": "news", "like": like, "strategy": strategy, "top_k": 5,
            "method": "dynamax"});
        let usual = done(&app, "POST", "/rank", Some(&body)).await;
        let all = with(&body, &json!({"shortlist": "all"}));
        let all = done(&app, "POST", "/rank", Some(&all)).await;
        assert_eq!((usual["items"].as_u64(), all["items"].as_u64()), (Some(1_000), Some(5_996)));
        assert_eq!(usual["results"], all["results"], "{strategy}");
    }
}

#[tokio::test]
async fn what_has_no_vector_is_on_no_shortlist() {
    let items = items(90);
    let app = app_with(&items).await;
    for text in ["%", "!! ?"] {
        let path = format!("/collections/news/items/{}", text.len());
        done(&app, "PUT", &path, Some(&json!({"text": text}))).await;
    }
    let ask = async |query: &str, shortlist: Value| {
        let body = json!({"collection": "news", "query": query, "shortlist": shortlist,
            "method": "avg-cos", "top_k": 100});
        done(&app, "POST", "/rank", Some(&body)).await
    };
    let (all, listed) = (ask("the quake", json!("all")).await, ask("the quake", json!(92)).await);
    let (unscored, count) = (all["unscored"].as_u64().unwrap(), listed["items"].as_u64().unwrap());
    assert!(unscored >= 2);
    assert_eq!((count + unscored, &listed["unscored"]), (92, &json!(0)));
    assert_eq!(listed["results"], all["results"]);
    // Nothing is near to what has no known word.
    let none = ask("% !", json!(92)).await;
    assert_eq!((&none["items"], &none["results"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn a_shortlist_is_refused_where_it_means_nothing() {
    let app = app_with(&items(20)).await;
    let query = |more: Value| with(&json!({"collection": "news", "query": "a quake"}), &more);
    for (body, code, pointer) in [
        (query(json!({"shortlist": 0})), "out_of_range", "/shortlist"),
        (query(json!({"shortlist": -3})), "out_of_range", "/shortlist"),
        (query(json!({"shortlist": 100_001})), "out_of_range", "/shortlist"),
        (query(json!({"shortlist": 1.5})), "invalid_field", "/shortlist"),
        (query(json!({"shortlist": "some"})), "invalid_field", "/shortlist"),
        (query(json!({"shortlist": {}})), "invalid_field", "/shortlist"),
        (json!({"candidates": ["a"], "query": "a", "shortlist": 5}), "invalid_field", "/shortlist"),
        (
            json!({"candidates": ["a"], "query": "a", "shortlist": "all"}),
            "invalid_field",
            "/shortlist",
        ),
        (json!({"collection": "news", "shortlist": 5}), "invalid_field", ""),
        (
            json!({"collection": "none", "query": "a", "shortlist": 5}),
            "unknown_collection",
            "/collection",
        ),
        (query(json!({"shortlist": 5, "like": ["a"]})), "invalid_field", "/like"),
        (query(json!({"shortlist": 5, "query": " "})), "empty_text", "/query"),
        (json!({"collection": "news", "queries": [], "shortlist": 5}), "empty_list", "/queries"),
        (query(json!({"shortlist": 5, "method": "no-such"})), "unknown_method", "/method"),
        (query(json!({"shortlist": 5, "query": "quake ".repeat(5000)})), "text_too_long", "/query"),
    ] {
        let problem = call(&app, "POST", "/rank", Some(&body)).await;
        let status = problem.status;
        let problem: Value = problem.json();
        assert_eq!(problem["code"], code, "{status} {problem}");
        if problem["errors"].is_array() {
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
    }
}
