//! What counts of items beside how alike they are: boosts, and the best of each group alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collections::ranking::{app_with, items, with};
use crate::collections::{call, done};

/// The scores of results by their ids, in order.
fn scores(answer: &Value) -> Vec<(String, f32)> {
    let one = |result: &Value| {
        (result["id"].as_str().unwrap().to_owned(), result["score"].as_f64().unwrap() as f32)
    };
    answer["results"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn boosts_take_their_shares_of_a_score() {
    let items = items(90);
    let app = app_with(&items).await;
    let ask = async |more: &Value| {
        let body = with(&json!({"collection": "news", "top_k": 90}), more);
        done(&app, "POST", "/rank", Some(&body)).await
    };
    let boosts = json!([
        {"attribute": "n", "half": 30, "weight": 0.25},
        {"attribute": "lang", "weight": 0.125},
        {"half_life": "30d", "weight": 0.125},
    ]);
    for question in [
        json!({"query": "a quake hits the city", "method": "avg-cos"}),
        json!({"query": "a quake hits the city", "method": "dynamax"}),
        json!({"query": "a quake hits the city", "method": "bm25"}),
        json!({"like": [{"id": "i3"}, "new york"], "unlike": ["the town"], "method": "avg-cos"}),
        json!({"query": "a quake hits the city", "fuse": [{"method": "bm25"}, {"method": "avg-cos"}]}),
    ] {
        let plain = scores(&ask(&question).await);
        let boosted = scores(&ask(&with(&question, &json!({"boosts": boosts}))).await);
        assert!(boosted.len() > 20 && boosted.len() == plain.len(), "{question}");
        let plain: BTreeMap<String, f32> = plain.into_iter().collect();
        for (id, score) in &boosted {
            let n: f32 = id[1..].parse().unwrap();
            // All items came a moment ago; a text is no number.
            let expected = 0.5 * plain[id] + 0.25 * n / (n + 30.0) + 0.125;
            assert!((score - expected).abs() < 1e-4, "{question} {id}: {score} {expected}");
        }
        assert!(boosted.is_sorted_by(|one, next| one.1 >= next.1), "{question}");
        // Pages are counted, and the least score is asked of, what is boosted.
        let page = json!({"boosts": boosts, "top_k": 5, "offset": 2, "min_score": boosted[5].1});
        assert_eq!(scores(&ask(&with(&question, &page)).await), boosted[2..6], "{question}");
    }
    let none = json!({"query": "the city", "boosts": []});
    assert_eq!(ask(&none).await, ask(&json!({"query": "the city"})).await);
}

#[tokio::test]
async fn what_is_new_goes_before_what_is_as_alike_and_old() {
    let app = app_with(&[]).await;
    for (id, day) in [("old", "01"), ("new", "09"), ("newer", "10")] {
        let item =
            json!({"text": "a quake hits the city", "time": format!("2020-01-{day}T00:00:00Z")});
        done(&app, "PUT", &format!("/collections/news/items/{id}"), Some(&item)).await;
    }
    let body = json!({"collection": "news", "query": "the quake", "method": "avg-cos",
        "boosts": [{"half_life": "1d", "weight": 0.5}]});
    let found = scores(&done(&app, "POST", "/rank", Some(&body)).await);
    let ids: Vec<&str> = found.iter().map(|(id, _)| &**id).collect();
    assert_eq!(ids, ["newer", "new", "old"], "the clock is that of the newest item: {found:?}");
    assert!((found[0].1 - found[1].1 - 0.25).abs() < 1e-4, "half after a day: {found:?}");
}

#[tokio::test]
async fn without_a_text_boosts_rank_alone() {
    let app = app_with(&items(90)).await;
    let boosts =
        json!([{"attribute": "n", "half": 30, "weight": 1}, {"half_life": "30d", "weight": 1}]);
    let ask = json!({"collection": "news", "boosts": boosts, "top_k": 3, "offset": 1});
    let told = done(&app, "POST", "/rank", Some(&ask)).await;
    assert_eq!((&told["ranked_by"], &told["items"]), (&json!("boosts"), &json!(90)));
    let found = scores(&told);
    let expected: Vec<f32> = [88.0, 87.0, 86.0].map(|n: f32| n / (n + 30.0) + 1.0).into();
    let ids: Vec<&str> = found.iter().map(|(id, _)| &**id).collect();
    assert_eq!(ids, ["i88", "i87", "i86"]);
    for (expected, (id, score)) in expected.iter().zip(&found) {
        assert!((score - expected).abs() < 1e-4, "{id}: {score} {expected}");
    }
    // Where a liked item is left they take their share alone, and else they do all.
    let boosts = json!([{"attribute": "n", "half": 30, "weight": 0.5}]);
    let like =
        |ids: Value| json!({"collection": "news", "like": ids, "boosts": boosts, "top_k": 2});
    let some = like(json!([{"id": "i3"}, {"id": "gone"}]));
    let some = done(&app, "POST", "/rank", Some(&some)).await;
    assert_eq!((&some["ranked_by"], &some["like_missing"]), (&Value::Null, &json!([1])));
    let none = with(&like(json!([{"id": "gone"}])), &json!({"shortlist": 1, "explain": true}));
    let none = done(&app, "POST", "/rank", Some(&none)).await;
    assert_eq!((&none["ranked_by"], &none["like_missing"]), (&json!("boosts"), &json!([0])));
    assert_eq!(scores(&none).iter().map(|(id, _)| &**id).collect::<Vec<_>>(), ["i89", "i88"]);
    for (body, pointer) in [
        (json!({"collection": "news"}), ""),
        (json!({"collection": "news", "boosts": []}), ""),
        (json!({"collection": "news", "boosts": boosts, "fuse": [{"method": "auto"}]}), ""),
        (json!({"collection": "news", "boosts": boosts, "unlike": ["a"]}), "/unlike"),
        (json!({"collection": "news", "boosts": boosts, "opposes": "drop"}), "/opposes"),
        (json!({"collection": "news", "boosts": boosts, "threshold": 0.5}), "/threshold"),
        (json!({"candidates": ["a"], "boosts": boosts}), "/boosts"),
    ] {
        let refused = call(&app, "POST", "/rank", Some(&body)).await;
        assert_eq!(refused.json()["errors"][0]["pointer"], json!(pointer), "{body}");
    }
}

#[tokio::test]
async fn of_a_group_the_best_alone_is_a_result() {
    let items = items(90);
    let app = app_with(&items).await;
    for method in ["avg-cos", "dynamax", "bm25"] {
        let body = json!({"collection": "news", "query": "a quake hits the city", "top_k": 90,
            "method": method, "return_text": true});
        let all = done(&app, "POST", "/rank", Some(&body)).await;
        let grouped = with(&body, &json!({"collapse_by": "lang"}));
        let grouped = done(&app, "POST", "/rank", Some(&grouped)).await;
        let of = |lang: &str| {
            let results = all["results"].as_array().unwrap();
            results.iter().find(|one| one["attributes"]["lang"] == lang).unwrap().clone()
        };
        let found = grouped["results"].as_array().unwrap();
        assert_eq!(found.len(), 2, "{method}");
        assert!([of("en"), of("de")].iter().all(|best| found.contains(best)), "{method}");
        // At most three of each, as they come.
        let three = with(&body, &json!({"collapse_by": "lang", "per_group": 3}));
        let three = done(&app, "POST", "/rank", Some(&three)).await;
        let of = |lang: &'static str| {
            let all = all["results"].as_array().unwrap().iter();
            all.filter(move |one| one["attributes"]["lang"] == lang).take(3)
        };
        let mut expected: Vec<&Value> = of("en").chain(of("de")).collect();
        let score = |one: &Value| one["score"].as_f64().unwrap();
        expected.sort_by(|one, next| score(next).total_cmp(&score(one)));
        let scores = |list: &[&Value]| list.iter().map(|one| score(one)).collect::<Vec<_>>();
        let found: Vec<&Value> = three["results"].as_array().unwrap().iter().collect();
        assert_eq!(scores(&found), scores(&expected), "{method}");
        // Each has its own number, and none has what none has.
        for name in ["n", "nothing"] {
            let grouped = with(&body, &json!({"collapse_by": name, "top_k": 7, "offset": 2}));
            let grouped = done(&app, "POST", "/rank", Some(&grouped)).await;
            let page = &all["results"].as_array().unwrap()[2..9];
            assert_eq!(grouped["results"].as_array().unwrap(), page, "{method} {name}");
        }
    }
}

#[tokio::test]
async fn boosts_that_say_nothing_are_refused() {
    let app = app_with(&items(3)).await;
    let boost = |boost: Value| json!({"collection": "news", "query": "a", "boosts": [boost]});
    let of_list = json!({"query": "a", "candidates": ["a"], "boosts": []});
    let grouped = json!({"query": "a", "candidates": ["a"], "collapse_by": "n"});
    let alone = json!({"collection": "news", "query": "a", "per_group": 2});
    let nine: Value = (0..9).map(|_| json!({"attribute": "n", "weight": 0.01})).collect();
    let two = json!([{"attribute": "n", "weight": 0.5}, {"half_life": "1d", "weight": 0.5}]);
    let many = |boosts: Value| json!({"collection": "news", "query": "a", "boosts": boosts});
    for (body, code, pointer) in [
        (boost(json!({"weight": 0.1})), "invalid_field", "/boosts/0/attribute"),
        (
            boost(json!({"attribute": "n", "half_life": "1d", "weight": 0.1})),
            "invalid_field",
            "/boosts/0/attribute",
        ),
        (
            boost(json!({"half_life": "month", "weight": 0.1})),
            "invalid_field",
            "/boosts/0/half_life",
        ),
        (boost(json!({"half_life": "0d", "weight": 0.1})), "invalid_field", "/boosts/0/half_life"),
        (
            boost(json!({"half_life": "1d", "half": 1, "weight": 0.1})),
            "invalid_field",
            "/boosts/0/half",
        ),
        (
            boost(json!({"attribute": "n", "half": 0, "weight": 0.1})),
            "out_of_range",
            "/boosts/0/half",
        ),
        (many(nine), "too_many_items", "/boosts"),
        (many(two), "out_of_range", "/boosts"),
        (of_list, "invalid_field", "/boosts"),
        (grouped, "invalid_field", "/collapse_by"),
        (alone, "invalid_field", "/per_group"),
    ] {
        let refused = call(&app, "POST", "/rank", Some(&body)).await;
        let problem: Value = refused.json();
        assert_eq!(
            (&problem["code"], &problem["errors"][0]["pointer"]),
            (&json!(code), &json!(pointer)),
            "{body}"
        );
    }
}
