//! Fields of `/rank` that do not go together, or not with the method, are refused by name.

use serde_json::{Value, json};

use super::with;
use crate::support;
use crate::support::app::TestApp;

#[tokio::test]
async fn what_does_not_go_together_is_refused_where_it_stands() {
    let app = TestApp::strict();
    let many = vec!["quake"; 101];
    let (one, ranker) = ("invalid_field", "method_only_ranks");
    let fused = |more: Value| {
        let parts = json!([{"method": "avg-cos"}, {"method": "bm25"}]);
        with(&json!({"method": null, "fuse": parts}), more)
    };
    for (more, code, pointer, detail) in [
        (json!({}), one, "", "`query` is missing"),
        (json!({"query": "a", "queries": ["a"]}), one, "/queries", "one of `query`"),
        (json!({"query": "a", "like": ["a"]}), one, "/like", "one of `query`"),
        (json!({"queries": ["a"], "like": ["a"]}), one, "/queries", "one of `query`"),
        (json!({"query": "a", "unlike": ["a"]}), one, "/unlike", "beside `like`"),
        (json!({"query": "a", "strategy": "sum"}), one, "/strategy", "beside `like`"),
        (json!({"queries": ["a"], "unlike_weight": 1}), one, "/unlike_weight", "beside `like`"),
        (json!({"queries": []}), "empty_list", "/queries", "no queries"),
        (json!({"like": []}), "empty_list", "/like", "no liked texts"),
        (json!({"queries": many}), "too_many_items", "/queries", "max_queries"),
        (json!({"like": many}), "too_many_items", "/like", "max_queries"),
        (json!({"like": ["a"], "unlike": many}), "too_many_items", "/unlike", "max_queries"),
        (json!({"queries": ["quake", " "]}), "empty_text", "/queries/1", "queries[1] is empty"),
        (
            json!({"like": ["quake", {"text": ""}]}),
            "empty_text",
            "/like/1/text",
            "like[1] is empty",
        ),
        (json!({"like": ["quake", ""]}), "empty_text", "/like/1", "like[1] is empty"),
        (
            json!({"like": ["quake"], "unlike": ["", "a"]}),
            "empty_text",
            "/unlike/0",
            "unlike[0] is",
        ),
        (json!({"like": ["quake", "zzz"], "oov": "error"}), "all_oov", "/like/1", "like[1] has no"),
        (json!({"queries": ["quake", "zzz"], "oov": "error"}), "all_oov", "/queries/1", "has no"),
        (json!({"like": [{"text": "a", "weight": 0}]}), "out_of_range", "/like/0/weight", "fit"),
        (json!({"like": [{"text": "a", "weight": 1e6}]}), "out_of_range", "/like/0/weight", "fit"),
        (json!({"like": ["a"], "strategy": "worst"}), one, "/strategy", "unknown value"),
        (json!({"like": "a"}), one, "/like", "a list"),
        (
            json!({"query": "a", "diversify": {"lambda": 1.1}}),
            "out_of_range",
            "/diversify/lambda",
            "fit",
        ),
        (json!({"query": "a", "diversify": {"k": 1}}), one, "/diversify/k", "unknown field"),
        (
            json!({"query": "a", "diversify": {"pool": 1001}}),
            "out_of_range",
            "/diversify/pool",
            "fit",
        ),
        (json!({"query": "a", "collapse": "high"}), one, "/collapse", "a number"),
        (json!({"like": ["a"], "method": "bm25"}), ranker, "/like", "bm25 only ranks"),
        (
            json!({"query": "a", "collapse": 0.9, "method": "ql"}),
            ranker,
            "/collapse",
            "ql only ranks",
        ),
        (
            json!({"query": "a", "diversify": {}, "method": "rm3"}),
            ranker,
            "/diversify",
            "rm3 only ranks",
        ),
        (
            json!({"query": "a", "explain": true, "method": "rm3"}),
            ranker,
            "/explain",
            "rm3 only ranks",
        ),
        (
            json!({"query": "quake", "explain": true, "method": "wmd"}),
            "method_unavailable",
            "/explain",
            "divide",
        ),
        (fused(json!({"queries": ["a"]})), one, "/queries", "one query"),
        (fused(json!({"like": ["a"]})), ranker, "/like", "only ranks"),
        (fused(json!({"query": "a", "collapse": 1})), ranker, "/collapse", "only ranks"),
        (json!({"query": "a", "collapse": 80}), "out_of_range", "/collapse", "at most 1"),
        (json!({"query": "a", "min_score": 80}), "out_of_range", "/min_score", "at most 1"),
        (
            json!({"like": ["a", {"text": "b", "weight": 3}], "min_score": 3.5}),
            "out_of_range",
            "/min_score",
            "at most 3",
        ),
        (fused(json!({"query": "a", "diversify": {}})), ranker, "/diversify", "only ranks"),
        (fused(json!({"query": "a", "explain": true})), "method_unavailable", "/explain", "divide"),
        (json!({"query": "a", "offset": -1}), "out_of_range", "/offset", "fit"),
    ] {
        let body = with(&json!({"candidates": ["a quake"], "method": "avg-cos"}), more).to_string();
        let problem = app.post("/rank", body.clone()).await.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        let said = problem["detail"].as_str().unwrap();
        assert!(said.contains(detail), "{body}: {said}");
    }
}

/// Work and answers are weighed with all that is asked.
#[tokio::test]
async fn many_texts_are_weighed_as_many() {
    let app = TestApp::with(|settings| settings.response_bytes = 64 << 10);
    let queries = vec!["quake"; 20];
    let body = json!({"candidates": vec!["a quake"; 200], "queries": queries});
    app.post("/rank", body.to_string()).await.refusal(422, "response_too_large");
    let few = with(&body, json!({"top_k": 3}));
    assert_eq!(app.ask("/rank", few).await["rankings"].as_array().unwrap().len(), 20);
    // Vectors of many dimensions, so that a short body is work enough for a deadline that reading it
    // cannot miss.
    let app = TestApp::with_model(support::default_model(), |settings| {
        settings.compute_deadline_ms = 20;
        settings.compute_threads = Some(1);
    });
    let long = "quake city ".repeat(140);
    let texts: Vec<Value> = vec![json!(long); 10];
    let body = json!({"candidates": texts, "method": "dynamax", "truncate": true});
    let alone = with(&body, json!({"query": long})).to_string();
    assert_ne!(app.post("/rank", alone).await.json()["code"], "too_much_work");
    for more in [json!({"queries": texts}), json!({"like": texts})] {
        let several = with(&body, more).to_string();
        app.post("/rank", several).await.refusal(422, "too_much_work");
    }
}
