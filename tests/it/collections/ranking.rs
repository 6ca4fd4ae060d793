//! `/rank` over the items of a collection: what it answers is what it answers about the same texts as
//! candidates.

use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support;
use crate::support::app::TestApp;

/// Items of words that are known and words that are not.
pub fn items(count: usize) -> Vec<Value> {
    let words = [support::WORDS.as_slice(), &["unlisted", "zzz"]].concat();
    let mut chance = support::Chance(5);
    let mut item = |at: usize| {
        let words: Vec<&str> =
            (0..1 + chance.below(8)).map(|_| words[chance.below(words.len())]).collect();
        let lang = ["en", "de"][at % 2];
        json!({"id": format!("i{at}"), "text": words.join(" "), "attributes": {"lang": lang, "n": at},
            "data": {"at": at}})
    };
    (0..count).map(&mut item).collect()
}

pub async fn app_with(items: &[Value]) -> TestApp {
    app_taking(100, items).await
}

/// A service that takes so many items or candidates at once.
async fn app_taking(most: usize, items: &[Value]) -> TestApp {
    let app = TestApp::with(|settings| settings.max_candidates = most);
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    for part in items.chunks(most) {
        let body = json!({"items": part});
        done(&app, "POST", "/collections/news/items", Some(&body)).await;
    }
    app
}

/// The same items as candidates.
fn candidates(items: &[Value]) -> Value {
    let one = |item: &Value| json!({"id": item["id"], "text": item["text"], "data": item["data"]});
    items.iter().map(one).collect()
}

/// Results without what only candidates or only items have.
fn plain(results: &Value) -> Vec<Value> {
    let plain = |result: &Value| {
        let mut result = result.clone();
        let fields = result.as_object_mut().unwrap();
        fields.remove("index");
        for duplicate in fields.get_mut("duplicates").into_iter().flat_map(Value::as_array_mut) {
            duplicate.iter_mut().for_each(|one| drop(one.as_object_mut().unwrap().remove("index")));
        }
        result
    };
    results.as_array().unwrap().iter().map(plain).collect()
}

pub fn with(body: &Value, more: &Value) -> Value {
    let mut body = body.clone();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Asks the same of items and of candidates.
async fn compare(app: &TestApp, items: &[Value], question: &Value) {
    let of_candidates = with(&json!({"candidates": candidates(items), "top_k": 10}), question);
    let of_items = with(&json!({"collection": "news"}), question);
    let expected = done(app, "POST", "/rank", Some(&of_candidates)).await;
    let found = done(app, "POST", "/rank", Some(&of_items)).await;
    assert_eq!((&found["collection"], &found["items"]), (&json!("news"), &json!(items.len())));
    for field in ["model", "method", "measure", "fingerprint", "query_known"] {
        assert_eq!(found.get(field), expected.get(field), "{question}");
    }
    let pairs: Vec<(&Value, &Value)> = match question.get("queries") {
        None => vec![(&found, &expected)],
        Some(_) => {
            let list = |of: &'static str| (found[of].as_array(), expected[of].as_array());
            let (found, expected) = list("rankings");
            found.unwrap().iter().zip(expected.unwrap()).collect()
        }
    };
    for (found, expected) in pairs {
        // Those without a score are no results.
        let unscored = expected["unscored"].as_array().unwrap();
        let mut scored = expected["results"].clone();
        let list = scored.as_array_mut().unwrap();
        list.retain(|result| !unscored.contains(&result["index"]));
        let mut found_results = plain(&found["results"]);
        for result in &mut found_results {
            result
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !["attributes", "time"].contains(&&**name));
        }
        assert_eq!(found_results, plain(&scored), "{question}");
        assert_eq!(found["unscored"], unscored.len(), "{question}");
    }
}

#[tokio::test]
async fn items_are_ranked_as_candidates_are() {
    let items = items(90);
    let app = app_with(&items).await;
    for question in [
        json!({"query": "a quake hits the city"}),
        json!({"query": "a quake hits the city", "method": "dynamax", "top_k": 7, "offset": 3}),
        json!({"query": "the earthquake in new york", "method": "bm25", "min_score": 0.1}),
        json!({"query": "the town", "method": "avg-cos", "measure": "euclidean", "top_k": 90}),
        json!({"query": "the town", "method": "avg-cos", "explain": true, "coverage": true}),
        json!({"query": "zzz qqq", "oov": "score"}),
        json!({"query": "new york", "method": "wmd", "top_k": 4}),
        json!({"queries": ["new york", "the quake"], "method": "avg-cos", "top_k": 5}),
        json!({"queries": ["new york", "the quake"], "method": "coverage", "top_k": 5}),
        json!({"like": ["the quake hits", {"text": "new york", "weight": 0.5}], "unlike": ["the town"], "method": "avg-cos"}),
        json!({"like": ["the quake hits"], "method": "dynamax", "strategy": "mean", "explain": true}),
        json!({"query": "the city", "method": "avg-cos", "collapse": 0.9, "top_k": 6}),
        json!({"query": "the city", "method": "avg-cos", "diversify": {"lambda": 0.5}, "top_k": 6, "return_text": true}),
        json!({"query": "the city", "fuse": [{"method": "bm25"}, {"method": "avg-cos"}], "top_k": 6}),
    ] {
        compare(&app, &items, &question).await;
    }
    let metrics = app.get("/metrics").await.text();
    assert!(metrics.contains("cognate_rank_parts_total{part=\"collection\"} 14"), "{metrics}");
}

/// Of so many only those are scored that may be among the best.
#[tokio::test]
async fn many_items_are_ranked_as_candidates_are() {
    let items = items(1500);
    let app = app_taking(1500, &items).await;
    for question in [
        json!({"query": "a quake hits the city"}),
        json!({"query": "the town", "top_k": 3, "offset": 7}),
        json!({"query": "the town", "min_score": 0.97, "explain": true}),
        json!({"query": "zzz qqq", "oov": "score"}),
        json!({"queries": ["new york", "the quake"], "top_k": 5}),
        json!({"like": ["the quake hits", {"text": "new york", "weight": 0.5}]}),
        json!({"like": ["the quake hits", {"text": "new york", "weight": 0.5}], "strategy": "mean"}),
        json!({"like": [{"text": "the quake hits", "weight": 1e-30}], "strategy": "sum"}),
        json!({"like": ["the quake hits"], "unlike": ["the town"]}),
        json!({"query": "the city", "diversify": {"lambda": 0.5}, "top_k": 6}),
        json!({"query": "the city", "collapse": 0.9, "top_k": 6}),
        json!({"query": "the town", "measure": "euclidean"}),
    ] {
        compare(&app, &items, &with(&json!({"method": "avg-cos"}), &question)).await;
    }
    for method in ["bm25", "ql", "jaccard", "jaccard-bag"] {
        // No score of `ql` is above 0.
        let min_score = if method == "ql" { -3.0 } else { 0.2 };
        for question in [
            json!({"query": "a quake hits the city"}),
            json!({"query": "the town the town", "top_k": 3, "offset": 7, "explain": true}),
            json!({"query": "zzz qqq", "min_score": min_score}),
            json!({"queries": ["new york", "the quake", "qqq"], "top_k": 5}),
            json!({"query": "the quake", "coverage": true}),
            json!({"query": "the quake", "top_k": 400}),
        ] {
            compare(&app, &items, &with(&json!({ "method": method }), &question)).await;
        }
    }
    for strategy in ["best", "mean"] {
        let question = json!({"like": ["the quake hits", {"text": "new york", "weight": 0.5}]});
        let more = json!({"method": "jaccard", "strategy": strategy});
        compare(&app, &items, &with(&question, &more)).await;
    }
}

#[tokio::test]
async fn filters_times_and_names_say_which_items_are_ranked() {
    let items = items(250);
    let app = app_with(&items).await;
    let old = json!({"text": "the quake of old", "time": "2001-01-01T00:00:00Z", "attributes": {"lang": "en", "n": 1000}});
    done(&app, "PUT", "/collections/news/items/old", Some(&old)).await;
    let ask = async |more: Value| {
        let body = with(&json!({"collection": "news", "query": "the quake", "top_k": 300}), &more);
        done(&app, "POST", "/rank", Some(&body)).await
    };
    // More than a request may have as candidates.
    assert_eq!(ask(json!({})).await["items"], 251);
    assert_eq!(ask(json!({"within": "24h"})).await["items"], 250);
    let found =
        ask(json!({"filter": {"lang": "en", "n": {"gte": 200}}, "return_text": true})).await;
    assert_eq!(found["items"], 26);
    for result in found["results"].as_array().unwrap() {
        let attributes = &result["attributes"];
        assert!(attributes["lang"] == "en" && attributes["n"].as_u64().unwrap() >= 200, "{result}");
        assert!(result["time"].as_str().unwrap().starts_with("20"), "{result}");
    }
    assert_eq!(found.get("filter_unknown"), None);
    let filter =
        json!({"not": {"colour": "red"}, "any": [{"lang": "en"}, {"shape": {"exists": true}}]});
    let found = ask(json!({"filter": filter})).await;
    assert_eq!(found["filter_unknown"], json!(["colour", "shape"]));
    assert_eq!((&found["items"], found.get("filter_mistyped")), (&json!(126), None));
    let wrong = json!({"filter": {"not": {"n": {"gt": "a"}}, "lang": ["en", 1]}, "collapse_by": "seris",
        "boosts": [{"attribute": "vews", "weight": 0.1}, {"attribute": "lang", "weight": 0.1}]});
    let found = ask(wrong).await;
    assert_eq!(found["filter_mistyped"], json!(["lang", "n"]));
    assert_eq!(found["collapse_by_unknown"], "seris");
    assert_eq!(found["boosts_unknown"], json!(["lang", "vews"]));
    assert_eq!(found.get("filter_unknown"), None);
    let found = ask(json!({"filter": {"any": [{"n": 3}, {"n": [4, 5]}]}, "exclude": ["i4"]})).await;
    assert_eq!(found["items"], 2);
    assert_eq!(ask(json!({"filter": {"n": -1}})).await["results"], json!([]));
    // A text that is an id probably means the item.
    let like = json!({"collection": "news", "like": [{"id": "i7"}, "the city", "i9"], "unlike": ["i3"], "method": "avg-cos"});
    let by_id = done(&app, "POST", "/rank", Some(&like)).await;
    assert_eq!((&by_id["like_is_id"], &by_id["unlike_is_id"]), (&json!([2]), &json!([0])));
    assert_eq!((&by_id["items"], by_id.get("like_missing")), (&json!(250), None));
    // A liked item stands for its text and is no result.
    let liked = json!({"collection": "news", "like": [{"id": "i7"}], "unlike": [{"id": "i8"}, "zzz"], "method": "avg-cos"});
    let by_id = done(&app, "POST", "/rank", Some(&liked)).await;
    assert_eq!(by_id["items"], 249);
    let text = |at: usize| items[at]["text"].clone();
    let by_text = json!({"collection": "news", "like": [text(7)], "unlike": [text(8), "zzz"],
        "exclude": ["i7", "i8"], "method": "avg-cos"});
    assert_eq!(by_id["results"], done(&app, "POST", "/rank", Some(&by_text)).await["results"]);
    // What somebody liked may be gone: the rest is ranked by, and it is told.
    let liked = json!({"collection": "news", "like": [{"id": "gone"}, {"id": "i7"}],
        "unlike": [{"id": "i8"}, "zzz", {"id": "left"}], "method": "avg-cos"});
    let without = done(&app, "POST", "/rank", Some(&liked)).await;
    assert_eq!(without["results"], by_id["results"]);
    let explained = with(&liked, &json!({"explain": true, "top_k": 1}));
    let explained = done(&app, "POST", "/rank", Some(&explained)).await;
    assert_eq!(explained["results"][0]["like"], 1, "its place in the request: {explained}");
    assert_eq!((&without["like_missing"], &without["unlike_missing"]), (&json!([0]), &json!([2])));
    assert_eq!((without.get("like_unscored"), by_id.get("like_missing")), (None, None));
    assert_eq!(without["unlike_unscored"], by_id["unlike_unscored"]);
    let query = |more: Value| with(&json!({"collection": "news", "query": "a"}), &more);
    for (body, code, pointer) in [
        (json!({"collection": "none", "query": "a"}), "unknown_collection", "/collection"),
        (query(json!({"candidates": ["a"]})), "invalid_field", "/candidates"),
        (query(json!({"filter": {"a": {"near": 1}}})), "invalid_field", "/filter/a/near"),
        (query(json!({"filter": 1})), "invalid_field", "/filter"),
        (query(json!({"within": "1 day"})), "invalid_field", "/within"),
        (query(json!({"fuse": [{"scores": "x"}, {"method": "bm25"}]})), "invalid_field", "/fuse"),
        (json!({"collection": "news", "like": [{"id": "none"}]}), "unknown_item", "/like"),
        (
            json!({"collection": "news", "like": [{"id": "i1", "text": "a"}]}),
            "invalid_field",
            "/like/0",
        ),
        (json!({"candidates": ["a"], "query": "a", "within": "1d"}), "invalid_field", "/within"),
        (json!({"candidates": ["a"], "query": "a", "filter": {}}), "invalid_field", "/filter"),
        (json!({"candidates": ["a"], "like": [{"id": "a"}]}), "invalid_field", "/like/0/id"),
        (json!({"query": "a"}), "invalid_field", ""),
    ] {
        let problem = call(&app, "POST", "/rank", Some(&body)).await.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
}

/// How well a query is known is told where it is not known well, of items and of candidates alike.
#[tokio::test]
async fn a_query_of_unknown_words_is_told_and_may_be_ranked_for_nothing() {
    let items = items(60);
    let app = app_with(&items).await;
    let ask = async |question: Value| {
        compare(&app, &items, &question).await;
        done(&app, "POST", "/rank", Some(&with(&json!({"collection": "news"}), &question))).await
    };
    assert_eq!(ask(json!({"query": "the quake"})).await.get("query_known"), None);
    for method in ["avg-cos", "coverage", "bm25"] {
        let half = json!({"query": "quake qqqq", "method": method});
        let found = ask(half.clone()).await;
        assert_eq!(found["query_known"], 0.5, "{method}");
        assert!(!found["results"].as_array().unwrap().is_empty());
        assert_eq!(ask(with(&half, &json!({"min_known": 0.5}))).await["results"], found["results"]);
        let none = ask(with(&half, &json!({"min_known": 0.51}))).await;
        assert_eq!((&none["results"], &none["query_known"]), (&json!([]), &json!(0.5)), "{method}");
        let both = json!({"queries": ["quake qqqq", "quake"], "method": method, "min_known": 0.9});
        let both = ask(both).await;
        assert_eq!(both["rankings"][0]["results"], json!([]));
        assert_eq!(both["rankings"][0]["query_known"], 0.5);
        assert_eq!(both["rankings"][1].get("query_known"), None);
        assert!(!both["rankings"][1]["results"].as_array().unwrap().is_empty());
    }
    let refused =
        json!({"collection": "news", "query": "quake qqqq", "min_known": 0.9, "oov": "error"});
    call(&app, "POST", "/rank", Some(&refused)).await.refusal(422, "all_oov");
    let likes = json!({"like": ["quake qqqq", "the town"], "min_known": 0.9, "method": "avg-cos"});
    assert_eq!(ask(likes).await["like_unscored"], json!([0]));
    let wide = json!({"collection": "news", "query": "a", "min_known": 1.5});
    call(&app, "POST", "/rank", Some(&wide)).await.refusal(422, "out_of_range");
}
