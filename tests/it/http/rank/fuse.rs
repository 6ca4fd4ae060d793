//! `fuse` in `POST /rank`, and fused methods of the model: the engine's answers, what is refused and
//! where it stands.

use std::sync::Arc;

use cognate::engine::fuse::{FuseBy, Fusion, Part, Source};
use cognate::engine::rank::Question;
use cognate::engine::{Candidates, Engine, PageOptions, Query, QueryError};
use cognate::methods::Method;
use cognate::model::Model;
use cognate::model::writer::Draft;
use serde_json::{Value, json};

use super::{each, with};
use crate::support;
use crate::support::app::TestApp;

const QUERY: &str = "a quake hits the city";
const TEXTS: [&str; 6] =
    ["the town", "zzz qqq", "an earthquake", "quake hits city", "new york", "the city"];

/// The tiny model with two fused methods, of which one needs numbers of the candidates.
fn fused_model() -> Model {
    let model = support::served();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let mut draft = Draft::from_model(&model);
    let settings = json!({
        "both": {"by": "zscore", "parts": [
            {"method": "avg-cos", "weight": 0.25}, {"method": "rm3", "weight": 0.75},
        ]},
        "run": {"by": "rrf", "parts": [
            {"method": "bm25", "weight": 1.0}, {"scores": "es/1", "weight": 1.0},
        ]},
    });
    draft.set_section("fused", settings.to_string(), Vec::new());
    draft.write(&path).unwrap();
    Model::open(&path, &support::full()).unwrap()
}

fn part(method: Method, weight: f64) -> Part {
    Part { source: Source::Method(method, None), weight }
}

fn candidates() -> Value {
    TEXTS.iter().enumerate().map(|(at, text)| json!({"id": at, "text": text})).collect()
}

/// The indexes and scores of an answer.
fn results(answer: &Value) -> Vec<(u64, f32)> {
    let of = |one: &Value| (one["index"].as_u64().unwrap(), one["score"].as_f64().unwrap() as f32);
    answer["results"].as_array().unwrap().iter().map(of).collect()
}

/// The same of a fusion by the engine itself.
fn expected(engine: &Engine, by: FuseBy, parts: Vec<Part>, runs: &[Vec<f64>]) -> Vec<(u64, f32)> {
    let candidates = Candidates::new(&TEXTS).with_runs(runs.to_vec());
    made(engine, by, parts, &candidates, engine.auto(), None)
}

fn made<T: AsRef<str>>(
    engine: &Engine,
    by: FuseBy,
    parts: Vec<Part>,
    candidates: &Candidates<'_, T>,
    reads: Method,
    top_k: Option<usize>,
) -> Vec<(u64, f32)> {
    let fusion = Some(Arc::new(Fusion::new(by, parts).unwrap()));
    let page = PageOptions { top_k, ..PageOptions::default() };
    let question = Question { fusion, page, ..Question::new(QUERY, Query::new(reads)) };
    let made = engine.rank_pages(&question, candidates, || Ok::<_, QueryError>(())).unwrap();
    let results = made.pages[0].ranking.results.iter();
    results.map(|one| (one.index as u64, one.score)).collect()
}

#[tokio::test]
async fn fused_answers_are_the_engines() {
    let (app, engine) = (TestApp::new(), Engine::new(support::served()).unwrap());
    let body = json!({"query": QUERY, "candidates": candidates()});
    let parts = json!([{"method": "rm3", "weight": 2}, {"method": "AVG_COS", "weight": 0.5}]);
    for (by, rule) in [(FuseBy::Rrf, json!("rrf")), (FuseBy::Zscore, json!("zscore"))] {
        let answer = app.ask("/rank", with(&body, json!({"fuse": parts, "fuse_by": rule}))).await;
        let wanted = vec![part(Method::Rm3, 2.0), part(Method::AvgCos, 0.5)];
        assert_eq!(results(&answer), expected(&engine, by, wanted, &[]), "{answer}");
        assert_eq!((&answer["method"], &answer["measure"]), (&json!("fuse"), &json!("cosine")));
    }
    let by_default = app.ask("/rank", with(&body, json!({"fuse": parts}))).await;
    assert!(each(&by_default, "score")[0].as_f64().unwrap() <= 1.0 / 61.0, "reciprocal ranks");
    let top = json!({"fuse": parts, "top_k": 2, "offset": 1, "min_score": 0.0, "coverage": true});
    let top = app.ask("/rank", with(&body, top)).await;
    assert_eq!(each(&top, "index"), each(&by_default, "index")[1..3]);
    assert!(each(&top, "known").iter().all(Value::is_number) && top["query_known"].is_number());
}

/// Long enough that the list is cut into parts over the pool.
#[tokio::test]
async fn a_long_list_has_the_same_bits_in_parts() {
    let app = TestApp::new();
    let engine = Engine::new(support::served()).unwrap();
    let texts: Vec<String> = (0..6000)
        .map(|at| format!("{} {} n{at}", TEXTS[at % 6], support::WORDS[at * 7 % 12]))
        .collect();
    let parts = vec![part(Method::Wmd, 1.0), part(Method::Bm25, 1.0)];
    let list = Candidates::new(&texts);
    let wanted = made(&engine, FuseBy::Zscore, parts, &list, Method::AvgCos, Some(50));
    let fuse = json!([{"method": "wmd"}, {"method": "bm25"}]);
    let body = json!({
        "query": QUERY, "candidates": texts, "fuse": fuse, "fuse_by": "zscore", "top_k": 50,
    });
    let answer = app.ask("/rank", body).await;
    assert_eq!(results(&answer), wanted);
}

#[tokio::test]
async fn numbers_of_the_caller_are_fused_and_excluded_and_boosted_with_the_others() {
    let (app, engine) = (TestApp::new(), Engine::new(support::served()).unwrap());
    let numbers = [3.0, 9.5, -1.0, 2.0, 8.0, 0.0];
    let listed: Value = (0..6)
        .map(|at| json!({"id": at, "text": TEXTS[at], "scores": {"es": numbers[at], "x": 1}}))
        .collect();
    let fuse = json!([{"method": "bm25"}, {"scores": "es", "weight": 3}]);
    let body = json!({"query": QUERY, "candidates": listed, "fuse": fuse, "fuse_by": "zscore"});
    let answer = app.ask("/rank", body.clone()).await;
    let run = Part { source: Source::Run("es".to_owned()), weight: 3.0 };
    let parts = vec![part(Method::Bm25, 1.0), run];
    assert_eq!(results(&answer), expected(&engine, FuseBy::Zscore, parts, &[numbers.to_vec()]));

    let without = app.ask("/rank", with(&body, json!({"exclude": [1, 4]}))).await;
    let kept = each(&without, "index");
    assert_eq!(kept.len(), 4);
    assert!(!kept.contains(&json!(1)) && !kept.contains(&json!(4)));
    assert_ne!(each(&without, "score")[0], each(&answer, "score")[2], "standardised without them");

    // A boost is added to the standardised score: half a deviation is half a deviation.
    let mut boosted = body.clone();
    boosted["candidates"][2]["boost"] = json!(50);
    let boosted = app.ask("/rank", boosted).await;
    let place = each(&answer, "index").iter().position(|index| *index == 2).unwrap();
    let before = each(&answer, "score")[place].as_f64().unwrap();
    assert_eq!(each(&boosted, "index")[0], 2);
    assert!((each(&boosted, "score")[0].as_f64().unwrap() - before - 50.0).abs() < 1e-5);

    // The numbers alone need no text that can be read.
    let alone = json!([{"text": "", "scores": {"es": 1}}, {"text": "zzz", "scores": {"es": 2}}]);
    let alone = json!({"query": QUERY, "candidates": alone, "fuse": [{"scores": "es"}]});
    let alone = app.ask("/rank", alone).await;
    assert_eq!((each(&alone, "index"), &alone["unscored"]), (vec![json!(1), json!(0)], &json!([])));

    // A name of the caller's own that looks like a place is no place.
    let named = json!({"exclude": [0], "fuse": [{"scores": "candidates[0]"}], "fuse_by": "rrf"});
    let named = app.post("/rank", with(&body, named).to_string()).await;
    let problem = named.refusal(422, "invalid_field");
    let detail = "candidates[1] has no number `candidates[0]` under `scores`";
    assert_eq!(problem["detail"], detail);
    assert_eq!(problem["errors"][0]["pointer"], "/candidates/1/scores/candidates[0]");
}

#[tokio::test]
async fn fused_methods_of_the_model_rank_by_their_name() {
    let app = TestApp::with_model(fused_model(), |_| ());
    let engine = Engine::new(fused_model()).unwrap();
    let body = json!({"query": QUERY, "candidates": candidates()});
    let answer = app.ask("/rank", with(&body, json!({"method": "Fused:Both"}))).await;
    let parts = vec![part(Method::AvgCos, 0.25), part(Method::Rm3, 0.75)];
    let wanted = expected(&engine, FuseBy::Zscore, parts, &[]);
    assert_eq!(results(&answer), wanted);
    assert_eq!(answer["method"], "fused:both");
    let reranked = json!({"query": QUERY, "documents": TEXTS});
    let reranked = app.ask("/m/tiny/fused:both/v1/rerank", reranked).await;
    let order =
        |results: &[(u64, f32)]| results.iter().map(|(index, _)| *index).collect::<Vec<_>>();
    let indexes: Vec<u64> =
        each(&reranked, "index").iter().map(|index| index.as_u64().unwrap()).collect();
    assert_eq!(indexes, order(&wanted));

    let listed = app.get("/methods").await.json();
    let listed = listed["methods"].as_array().unwrap();
    let of = |name: &str| listed.iter().find(|entry| entry["name"] == name).unwrap().clone();
    let both = of("fused:both");
    assert_eq!((&both["kind"], &both["available"]), (&json!("ranker"), &json!(true)));
    assert_eq!((&both["by"], &both["parts"][1]["method"]), (&json!("zscore"), &json!("rm3")));
    assert_eq!(of("fused:run")["parts"][1], json!({"scores": "es/1", "weight": 1.0}));
    assert_eq!(of("bm25").get("parts"), None);
    let document = app.get("/openapi.json").await.json();
    let names = document["components"]["schemas"]["RankMethod"]["enum"].as_array().unwrap();
    assert!(names.contains(&json!("fused:both")) && names.contains(&json!("fused:run")));

    let refused = async |path: &str, body: Value, code: &str| {
        app.post(path, body.to_string()).await.refusal(422, code)
    };
    let unknown = refused("/rank", with(&body, json!({"method": "fused:c"})), "unknown_method");
    let detail = unknown.await["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("fused:both, fused:run"), "{detail}");
    let pair = json!({"a": "x", "b": "y", "method": "fused:both"});
    for path in ["/similarity", "/explain"] {
        let problem = refused(path, pair.clone(), "method_only_ranks").await;
        assert_eq!(problem["detail"], "fused:both only ranks candidates for a query", "{path}");
    }
    let embed = json!({"texts": ["x"], "method": "fused:both"});
    let problem = refused("/embed", embed, "method_cannot_embed").await;
    assert_eq!(problem["detail"], "fused:both only ranks candidates for a query");
    let measure = json!({"method": "fused:both", "measure": "euclidean"});
    refused("/rank", with(&body, measure), "measure_not_supported").await;
    let calibrated = json!({"method": "fused:both", "min_score": "calibrated"});
    refused("/rank", with(&body, calibrated), "not_calibrated").await;
    let missing = refused("/rank", with(&body, json!({"method": "fused:run"})), "invalid_field");
    let missing = missing.await;
    assert_eq!(missing["errors"][5]["pointer"], "/candidates/5/scores/es~11");
    assert_eq!(missing["errors"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn what_cannot_be_fused_is_refused_by_its_place() {
    let app = TestApp::new();
    let body = json!({"query": QUERY, "candidates": candidates()});
    let bm25 = json!({"method": "bm25"});
    let many: Value = vec![bm25.clone(); 17].into();
    for (more, code, pointer) in [
        (json!({"fuse": []}), "empty_list", "/fuse"),
        (json!({"fuse": many}), "too_many_items", "/fuse"),
        (json!({"fuse_by": "rrf"}), "invalid_field", "/fuse_by"),
        (json!({"fuse": [bm25], "method": "ql"}), "invalid_field", "/method"),
        (json!({"fuse": [bm25], "measure": "cosine"}), "measure_not_supported", "/measure"),
        (json!({"fuse": [bm25, {"method": "bn25"}]}), "unknown_method", "/fuse/1/method"),
        (json!({"fuse": [{"method": "fused:x"}]}), "invalid_field", "/fuse/0/method"),
        (json!({"fuse": [bm25, {"method": "qatt"}]}), "method_unavailable", "/fuse/1/method"),
        (
            json!({"fuse": [{"method": "ql", "measure": "euclidean"}]}),
            "measure_not_supported",
            "/fuse/0/measure",
        ),
        (json!({"fuse": [bm25, {}]}), "invalid_field", "/fuse/1"),
        (json!({"fuse": [bm25, {"method": "ql", "scores": "x"}]}), "invalid_field", "/fuse/1"),
        (
            json!({"fuse": [{"scores": "x", "measure": "cosine"}]}),
            "invalid_field",
            "/fuse/0/measure",
        ),
        (json!({"fuse": [{"method": "ql", "weight": -1}]}), "out_of_range", "/fuse/0/weight"),
        (json!({"fuse": [{"method": "ql", "weight": 0}]}), "out_of_range", "/fuse"),
        (json!({"fuse": [{"scores": "x"}]}), "invalid_field", "/candidates/0/scores/x"),
        (json!({"fuse": [{"scores": ""}]}), "invalid_field", "/fuse/0/scores"),
        (json!({"fuse": [{"methods": "ql"}]}), "invalid_field", "/fuse/0/methods"),
        (json!({"fuse": [bm25], "fuse_by": "sum"}), "invalid_field", "/fuse_by"),
        (json!({"fuse": [bm25], "min_score": "calibrated"}), "not_calibrated", "/min_score"),
    ] {
        let answer = app.post("/rank", with(&body, more.clone()).to_string()).await;
        let problem = answer.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{more}: {problem}");
    }
    let unread = json!({"fuse": [bm25], "candidates": [{"text": "x", "scores": {"es": 1}}]});
    let problem = app.post("/rank", with(&body, unread).to_string()).await;
    let problem = problem.refusal(422, "invalid_field");
    assert_eq!(problem["errors"][0]["pointer"], "/candidates/0/scores");
}
