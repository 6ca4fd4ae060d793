//! Several queries at once: each has the ranking that it would have alone, bit for bit.

use cognate::methods::Method;
use serde_json::{Value, json};

use super::{posts, with};
use crate::support::app::TestApp;

#[tokio::test]
async fn each_query_is_answered_as_it_would_be_alone() {
    let app = TestApp::strict();
    let models = app.app.models();
    let engine = &models.all()[0].engine;
    let posts = posts(300, 3);
    let named = |(index, post): (usize, &String)| match index % 3 {
        0 => json!({"id": index, "text": post, "boost": index as f32 / 1000.0}),
        1 => json!({"id": format!("p{index}"), "text": post}),
        _ => json!(post),
    };
    let candidates: Vec<Value> = posts.iter().enumerate().map(named).collect();
    let queries =
        ["the quake in new york", "zzz", "shakes o'neill", "the quake in new york", "über"];
    let settings = [
        json!({"coverage": true}),
        json!({"top_k": 7, "return_text": true, "offset": 2}),
        json!({"min_score": 0.5, "exclude": [0, 3, "p4"]}),
        json!({"top_k": 40, "min_score": 0.1, "boost_by": "multiply"}),
    ];
    let mut compared = 0;
    for &method in Method::ALL.iter().filter(|&&method| engine.unavailable(method).is_none()) {
        for settings in &settings {
            let body = json!({"candidates": candidates, "method": method.name()});
            let body = with(&body, settings.clone());
            let several = app.ask("/rank", with(&body, json!({"queries": queries}))).await;
            let rankings = several["rankings"].as_array().unwrap();
            assert_eq!(rankings.len(), queries.len());
            for (query, ranking) in queries.iter().zip(rankings) {
                let mut alone = app.ask("/rank", with(&body, json!({"query": query}))).await;
                for field in ["model", "method", "measure", "fingerprint"] {
                    let field = alone.as_object_mut().unwrap().remove_entry(field).unwrap();
                    assert_eq!(several[&field.0], field.1);
                }
                assert_eq!(ranking, &alone, "{} {settings} {query}", method.name());
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// What is made of a ranking is made of each.
#[tokio::test]
async fn each_ranking_is_a_page_of_its_own() {
    let app = TestApp::strict();
    let body = json!({
        "candidates": posts(80, 5), "method": "avg-cos", "top_k": 5, "offset": 1, "explain": true,
        "collapse": 0.9, "diversify": {"lambda": 0.5},
    });
    let queries = ["the quake in new york", "shakes o'neill"];
    let several = app.ask("/rank", with(&body, json!({"queries": queries}))).await;
    for (query, ranking) in queries.iter().zip(several["rankings"].as_array().unwrap()) {
        let alone = app.ask("/rank", with(&body, json!({"query": query}))).await;
        assert_eq!(ranking["results"], alone["results"]);
        assert!(ranking["results"].to_string().contains("duplicates"), "{ranking}");
    }
}

#[tokio::test]
async fn many_queries_of_many_candidates_are_counted_once() {
    let app = TestApp::new();
    let body = json!({"queries": ["quake", "new york"], "candidates": ["a quake", "a city", "x"]});
    app.ask("/rank", body).await;
    let page = app.get("/metrics").await.text();
    for line in ["cognate_texts_total 5", "cognate_rank_parts_total{part=\"queries\"} 1"] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(page.contains("cognate_rank_parts_total{part=\"like\"} 0"), "{page}");
}
