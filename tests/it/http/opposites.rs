//! Opposites in requests and answers: what counts, what is told and what is left out.

use std::collections::HashSet;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::collections::done;
use crate::support;
use crate::support::app::TestApp;

/// A question, its opposites and others that are not.
const QUERY: &str = "turn on dark mode";
const CANDIDATES: [&str; 5] = [
    "turn off dark mode",
    "enable dark mode",
    "don't turn on dark mode",
    "switch on dark mode please",
    "how do I bake bread",
];

/// A service whose model knows opposites.
fn app() -> TestApp {
    TestApp::with_model(support::default_model(), |_| ())
}

fn pairs() -> Vec<[&'static str; 2]> {
    CANDIDATES.map(|candidate| [QUERY, candidate]).to_vec()
}

/// A question with more fields.
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn lines(path: &str, body: String) -> Request<Body> {
    Request::post(path).header("content-type", "application/x-ndjson").body(body.into()).unwrap()
}

async fn answered(app: &TestApp, request: Request<Body>) -> Vec<Value> {
    let answer = app.send(request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn ignoring_opposites_gives_the_scores_of_the_method_without_them() {
    let app = app();
    let plain = json!({"pairs": pairs(), "method": "coverage-blend"});
    let plain = app.ask("/similarity", plain).await;
    for method in ["auto", "polarity-blend"] {
        let asked = json!({"pairs": pairs(), "method": method, "opposites": "ignore"});
        assert_eq!(app.ask("/similarity", asked).await, plain, "{method}");
        let counted = json!({"pairs": pairs(), "method": method, "opposites": "count"});
        let counted = app.ask("/similarity", counted).await;
        let usual = json!({"pairs": pairs(), "method": method});
        assert_eq!(counted, app.ask("/similarity", usual).await);
        assert_eq!(counted["method"], "polarity-blend");
        let score = |answer: &Value, at: usize| answer["scores"][at].as_f64().unwrap();
        assert!(score(&counted, 0) < score(&plain, 0), "{counted}");
        assert_eq!(score(&counted, 1), score(&plain, 1));
    }
    let rank = json!({"query": QUERY, "candidates": CANDIDATES});
    let ignored = app.ask("/rank", with(rank.clone(), json!({"opposites": "ignore"}))).await;
    assert_eq!(ignored, app.ask("/rank", with(rank, json!({"method": "coverage-blend"}))).await);
    let pair = json!({"a": QUERY, "b": CANDIDATES[0]});
    let ignored = app.ask("/explain", with(pair.clone(), json!({"opposites": "ignore"}))).await;
    let plain = app.ask("/explain", with(pair, json!({"method": "coverage-blend"}))).await;
    assert_eq!(ignored, plain);
}

#[tokio::test]
async fn a_method_that_does_not_count_opposites_is_refused_where_they_are_to_count() {
    let app = app();
    let asked = json!({"opposites": "count", "method": "avg-cos"});
    for (path, texts) in [
        ("/similarity", json!({"a": QUERY, "b": CANDIDATES[0]})),
        ("/explain", json!({"a": QUERY, "b": CANDIDATES[0]})),
        ("/rank", json!({"query": QUERY, "candidates": CANDIDATES})),
    ] {
        let body = with(texts, asked.clone()).to_string();
        let refusal = app.post(path, body).await.refusal(422, "method_unavailable");
        assert_eq!(refusal["errors"][0]["pointer"], "/opposites", "{path}: {refusal}");
        let detail = refusal["detail"].as_str().unwrap();
        assert!(detail.contains("avg-cos does not count opposites"), "{detail}");
        assert!(detail.contains("polarity-blend"), "{detail}");
    }
    let fuse = json!({"query": QUERY, "candidates": CANDIDATES, "opposites": "count",
        "fuse": [{"method": "polarity-blend"}, {"method": "bm25"}]});
    let refusal = app.post("/rank", fuse.to_string()).await.refusal(422, "method_unavailable");
    assert_eq!(refusal["errors"][0]["pointer"], "/opposites");
}

#[tokio::test]
async fn answers_tell_how_texts_are_opposed_whatever_the_method_where_that_is_asked() {
    let app = app();
    let told = json!([["antonym"], [], ["negation"], [], []]);
    for method in ["auto", "coverage-blend", "avg-cos", "jaccard"] {
        let asked = json!({"pairs": pairs(), "method": method});
        let plain = app.ask("/similarity", asked.clone()).await;
        assert_eq!(plain.get("opposes"), None);
        let mut answer = app.ask("/similarity", with(asked, json!({"return_opposes": true}))).await;
        assert_eq!(answer.as_object_mut().unwrap().remove("opposes"), Some(told.clone()));
        assert_eq!(answer, plain, "{method}");
        let rank = json!({"query": QUERY, "candidates": CANDIDATES, "method": method,
            "return_opposes": true, "top_k": 4, "offset": 1});
        for result in app.ask("/rank", rank).await["results"].as_array().unwrap() {
            assert_eq!(result["opposes"], told[result["index"].as_u64().unwrap() as usize]);
        }
    }
    let several = json!({"queries": [QUERY, "turn off dark mode"], "candidates": CANDIDATES,
        "return_opposes": true});
    let rankings = app.ask("/rank", several).await;
    let opposes = |ranking: usize, index: u64| {
        let results = rankings["rankings"][ranking]["results"].as_array().unwrap();
        results.iter().find(|result| result["index"] == index).unwrap()["opposes"].clone()
    };
    assert_eq!([opposes(0, 0), opposes(1, 0)], [json!(["antonym"]), json!([])]);
}

/// Whether each candidate is related to the query, by every way in: pairs and a ranking, each as a body
/// and as lines, and items of a collection.
async fn related(app: &TestApp, asked: &Value) -> Vec<Value> {
    let pair = with(json!({"pairs": pairs()}), asked.clone());
    let mut told = vec![app.ask("/similarity", pair).await["related"].clone()];
    let path: String =
        asked.as_object().unwrap().iter().map(|(k, v)| format!("&{k}={v}")).collect();
    let path = format!("/similarity?{}", path.trim_start_matches('&').replace('"', ""));
    let body: String = pairs().iter().map(|pair| format!("{}\n", json!(pair))).collect();
    let streamed = answered(app, lines(&path, body)).await;
    told.push(streamed.iter().map(|line| line["related"].clone()).collect());
    let first = with(json!({"query": QUERY}), asked.clone());
    let texts = CANDIDATES.map(|text| format!("{}\n", json!(text))).concat();
    let mut streamed = answered(app, lines("/rank", format!("{first}\n{texts}"))).await;
    streamed.pop();
    let candidates = with(first.clone(), json!({"candidates": CANDIDATES}));
    let items = with(first, json!({"collection": "asked"}));
    let [candidates, items] = [app.ask("/rank", candidates).await, app.ask("/rank", items).await];
    for results in [&json!(streamed), &candidates["results"], &items["results"]] {
        let place = |result: &Value| match result["id"].as_str() {
            Some(id) => id[1..].parse().unwrap(),
            None => result["index"].as_u64().unwrap(),
        };
        let mut results = results.as_array().unwrap().clone();
        results.sort_by_key(place);
        told.push(results.iter().map(|result| result["related"].clone()).collect());
    }
    told
}

/// The verdict is the core's, whose law is tried there; here each way in is held to it.
#[tokio::test]
async fn an_opposed_pair_is_not_related_by_any_way_in_whatever_else_is_asked() {
    let app = app();
    done(&app, "PUT", "/collections/asked", Some(&json!({}))).await;
    let item = |(at, text): (usize, &&str)| json!({"id": format!("q{at}"), "text": text});
    let items: Vec<Value> = CANDIDATES.iter().enumerate().map(item).collect();
    done(&app, "POST", "/collections/asked/items", Some(&json!({"items": items}))).await;
    let (counted, ignored) =
        (json!([false, true, false, true, false]), json!([true, true, true, true, false]));
    for method in ["auto", "coverage-blend", "avg-cos"] {
        for more in [json!({}), json!({"return_opposes": true})] {
            let asked = with(json!({"method": method, "threshold": 0.45}), more);
            assert_eq!(related(&app, &asked).await, vec![counted.clone(); 5], "{asked}");
            let asked = with(asked, json!({"opposites": "ignore"}));
            assert_eq!(related(&app, &asked).await, vec![ignored.clone(); 5], "{asked}");
        }
    }
    let calibrated = json!({"threshold": "calibrated"});
    assert_eq!(related(&app, &calibrated).await[0], counted);
    // A least score is a bound of scores alone, and leaves nobody out for being opposed.
    let rank =
        json!({"query": QUERY, "candidates": CANDIDATES, "min_score": 0.45, "threshold": 0.45});
    let answer = app.ask("/rank", rank).await;
    assert_eq!(answer["results"].as_array().unwrap().len(), 4, "{answer}");
    let strict = TestApp::with_model(support::tiny_model(), |_| ());
    let pair =
        json!({"a": "the quake", "b": "not the quake", "method": "avg-cos", "threshold": 0.1});
    assert_eq!(strict.ask("/similarity", pair).await["related"], json!([true]));
}

#[tokio::test]
async fn opposed_candidates_are_dropped_and_others_take_their_places() {
    let app = app();
    let rank = json!({"query": QUERY, "candidates": CANDIDATES});
    let index = |answer: &Value| {
        let results = answer["results"].as_array().unwrap();
        results.iter().map(|result| result["index"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    for method in ["coverage-blend", "avg-cos", "bm25"] {
        let all = app.ask("/rank", with(rank.clone(), json!({"method": method}))).await;
        let sound: Vec<u64> = index(&all).into_iter().filter(|it| [1, 3, 4].contains(it)).collect();
        for (more, from, to) in [
            (json!({}), 0, 3),
            (json!({"top_k": 2}), 0, 2),
            (json!({"top_k": 2, "offset": 1}), 1, 3),
            (json!({"collapse": 0.9999}), 0, 3),
        ] {
            let asked =
                with(with(rank.clone(), more), json!({"method": method, "opposes": "drop"}));
            if method == "bm25" && asked.get("collapse").is_some() {
                continue;
            }
            let answer = app.ask("/rank", asked.clone()).await;
            assert_eq!(index(&answer), sound[from..to], "{asked}");
        }
    }
}

#[tokio::test]
async fn streams_count_tell_and_drop_as_lists_do() {
    let app = app();
    let body: String = pairs().iter().map(|pair| format!("{}\n", json!(pair))).collect();
    let path = "/similarity?return_opposes=true&opposites=ignore";
    let listed = json!({"pairs": pairs(), "return_opposes": true, "opposites": "ignore"});
    let listed = app.ask("/similarity", listed).await;
    for (place, line) in answered(&app, lines(path, body)).await.iter().enumerate() {
        assert_eq!(line["score"], listed["scores"][place]);
        assert_eq!(line["opposes"], listed["opposes"][place]);
    }
    for more in [
        json!({"return_opposes": true}),
        json!({"opposites": "ignore", "return_opposes": true, "top_k": 3}),
        json!({"opposites": "ignore", "opposes": "drop", "top_k": 2}),
        json!({"opposes": "drop", "return_opposes": true, "explain": true}),
    ] {
        let first = with(json!({"query": QUERY}), more);
        let texts = CANDIDATES.map(|text| format!("{}\n", json!(text))).concat();
        let mut streamed = answered(&app, lines("/rank", format!("{first}\n{texts}"))).await;
        streamed.pop();
        let listed = app.ask("/rank", with(first.clone(), json!({"candidates": CANDIDATES}))).await;
        assert_eq!(json!(streamed), listed["results"], "{first}");
    }
}

#[tokio::test]
async fn items_of_a_collection_are_told_and_dropped_as_candidates_are() {
    let app = app();
    done(&app, "PUT", "/collections/asked", Some(&json!({}))).await;
    let item = |(at, text): (usize, &&str)| json!({"id": format!("q{at}"), "text": text});
    let items: Vec<Value> = CANDIDATES.iter().enumerate().map(item).collect();
    done(&app, "POST", "/collections/asked/items", Some(&json!({"items": items}))).await;
    for method in ["coverage-blend", "avg-cos"] {
        let rank = json!({"query": QUERY, "collection": "asked", "method": method, "top_k": 3});
        let told = app.ask("/rank", with(rank.clone(), json!({"return_opposes": true}))).await;
        let opposed = |id: &str| {
            let result = told["results"].as_array().unwrap().iter().find(|one| one["id"] == id);
            result.map(|result| result["opposes"].clone())
        };
        assert_eq!(opposed("q0"), Some(json!(["antonym"])), "{told}");
        let left = app.ask("/rank", with(rank, json!({"opposes": "drop"}))).await;
        let left = left["results"].as_array().unwrap().iter().map(|result| &result["id"]);
        assert_eq!(left.collect::<HashSet<_>>(), [&json!("q1"), &json!("q3"), &json!("q4")].into());
    }
}

/// What is nearest by its words would be the duplicate and the event, but says the opposite.
#[tokio::test]
async fn a_match_without_opposed_items_finds_no_duplicate_and_no_event_in_them() {
    let app = app();
    let (on, off) =
        (json!({"id": "on", "text": QUERY}), json!({"id": "off", "text": CANDIDATES[0]}));
    let body = json!({"items": [on, off], "threshold": 0.5, "duplicate_score": 0.8});
    for name in ["plain", "body", "lines"] {
        done(&app, "PUT", &format!("/collections/{name}"), Some(&json!({}))).await;
    }
    let plain = done(&app, "POST", "/collections/plain/match", Some(&body)).await;
    assert_eq!(plain["results"][1]["duplicate_of"], "on", "{plain}");
    assert_eq!(plain["results"][1]["event"], "on");
    let dropped = with(body, json!({"opposes": "drop"}));
    let dropped = done(&app, "POST", "/collections/body/match", Some(&dropped)).await;
    let path = "/collections/lines/match?threshold=0.5&duplicate_score=0.8&opposes=drop";
    let streamed = answered(&app, lines(path, format!("{on}\n{off}\n"))).await;
    for result in [&dropped["results"][1], &streamed[1]] {
        assert_eq!(result.get("duplicate_of"), None, "{result}");
        assert_eq!((&result["new"], &result["nearest"]), (&json!(true), &json!([])));
    }
}

#[tokio::test]
async fn an_explanation_names_the_words_that_oppose() {
    let app = app();
    let pair = json!({"a": "Turn ON dark mode", "b": "turn off dark mode in 2 steps"});
    let answer = app.ask("/explain", pair).await;
    let antonym = json!({
        "kind": "antonym",
        "a": [{"token": "on", "span": [5, 7]}],
        "b": [{"token": "off", "span": [5, 8]}],
    });
    assert_eq!(answer["opposes"], json!([antonym]));
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains("opposed by antonym (\"on\", \"off\")"), "{sentence}");
    let negated =
        json!({"a": "pets are allowed", "b": "pets are not allowed", "method": "avg-cos"});
    let answer = app.ask("/explain", negated).await;
    let words = json!({"kind": "negation", "a": [], "b": [{"token": "not", "span": [9, 12]}]});
    assert_eq!(answer["opposes"], json!([words]));
    let alike = app.ask("/explain", json!({"a": QUERY, "b": "enable dark mode"})).await;
    assert_eq!(alike.get("opposes"), None);
}

#[tokio::test]
async fn what_cannot_be_told_is_refused_by_the_field_that_asks() {
    let strict = TestApp::with_model(support::tiny_model(), |_| ());
    let pair = json!({"a": "the quake", "b": "the city"});
    let rank = json!({"query": "the quake", "candidates": ["the city"]});
    for (path, body, field) in [
        ("/similarity", with(pair, json!({"return_opposes": true})), "/return_opposes"),
        ("/rank", with(rank.clone(), json!({"return_opposes": true})), "/return_opposes"),
        ("/rank", with(rank, json!({"opposes": "drop"})), "/opposes"),
    ] {
        let refusal = strict.post(path, body.to_string()).await.refusal(422, "method_unavailable");
        assert_eq!(refusal["errors"][0]["pointer"], field, "{refusal}");
        assert!(refusal["detail"].as_str().unwrap().contains("cognate fit"), "{refusal}");
    }
    let app = app();
    for (field, asked) in [
        ("/opposes", json!({"opposes": "drop"})),
        ("/return_opposes", json!({"return_opposes": true})),
    ] {
        let body = with(json!({"like": [QUERY], "candidates": CANDIDATES}), asked);
        let refusal = app.post("/rank", body.to_string()).await.refusal(422, "invalid_field");
        assert_eq!(refusal["errors"][0]["pointer"], field);
    }
}
