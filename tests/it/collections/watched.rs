//! What operators see of collections on the metrics page.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support::app::TestApp;

fn items(ids: std::ops::Range<usize>) -> Value {
    let item =
        |id: usize| json!({"id": id.to_string(), "text": format!("the quake hits city {id}")});
    json!({"items": ids.map(item).collect::<Vec<_>>()})
}

/// Holds the page to these lines.
async fn says(app: &TestApp, expected: &[&str]) {
    let page = app.get("/metrics").await.text();
    for line in expected {
        assert!(page.lines().any(|found| found == *line), "{line} in\n{page}");
    }
}

#[tokio::test]
async fn what_happens_to_collections_is_counted_by_their_names() {
    let app = TestApp::with(|settings| {
        settings.collection_series = Some(2);
        settings.collection_items = 4;
    });
    for name in ["a", "b", "c", "d"] {
        done(&app, "PUT", &format!("/collections/{name}"), Some(&json!({}))).await;
    }
    done(&app, "PUT", "/collections/a", Some(&json!({"max_items": 3, "ttl": "7d"}))).await;
    done(&app, "POST", "/collections/a/items", Some(&items(0..3))).await;
    let matched = json!({"items": [{"id": "m", "text": "a town of york"}, {"id": "n", "text": "a town of york"}]});
    done(&app, "POST", "/collections/a/match", Some(&matched)).await;
    done(&app, "POST", "/collections/b/items", Some(&items(0..4))).await;
    let full = call(&app, "POST", "/collections/b/items", Some(&items(4..6))).await;
    let problem = full.refusal(507, "collection_full");
    assert!(problem["detail"].as_str().unwrap().contains("`collection_items`"), "{problem}");
    for name in ["c", "d"] {
        done(&app, "POST", &format!("/collections/{name}/items"), Some(&items(0..2))).await;
    }
    says(
        &app,
        &[
            "cognate_collections 4",
            "cognate_collection_items{collection=\"a\"} 3",
            "cognate_collection_items{collection=\"b\"} 4",
            "cognate_collection_items{collection=\"_other\"} 4",
            "cognate_collection_matches_total{collection=\"a\"} 2",
            "cognate_collection_events_total{collection=\"a\"} 1",
            "cognate_collection_left_total{collection=\"a\",reason=\"max_items\"} 2",
            "cognate_collection_left_total{collection=\"a\",reason=\"ttl\"} 0",
            "cognate_collection_refused_total{collection=\"b\",code=\"collection_full\"} 1",
            "cognate_collection_refused_total{collection=\"_other\",code=\"collection_full\"} 0",
            "cognate_collection_bytes_limit 1073741824",
        ],
    )
    .await;
    // One that goes makes room for another, and takes its series along.
    done(&app, "DELETE", "/collections/b", None).await;
    says(&app, &["cognate_collection_items{collection=\"c\"} 2"]).await;
    assert!(!app.get("/metrics").await.text().contains("collection=\"b\""));
}

/// A collection that is called as the others together were is not counted as they are.
#[tokio::test]
async fn no_name_of_a_collection_is_that_of_the_others() {
    let app = TestApp::with(|settings| settings.collection_series = Some(1));
    for name in ["other", "second"] {
        done(&app, "PUT", &format!("/collections/{name}"), Some(&json!({}))).await;
    }
    done(&app, "POST", "/collections/other/items", Some(&items(0..1))).await;
    done(&app, "POST", "/collections/second/items", Some(&items(0..2))).await;
    says(
        &app,
        &[
            "cognate_collection_items{collection=\"other\"} 1",
            "cognate_collection_items{collection=\"_other\"} 2",
        ],
    )
    .await;
    call(&app, "PUT", "/collections/_other", Some(&json!({}))).await.refusal(422, "invalid_field");
}

/// Whether a model knows the words of a stream is seen of one that is matched, too.
#[tokio::test]
async fn words_of_matched_texts_are_counted() {
    let app = TestApp::strict();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let body = json!({"items": [{"id": "a", "text": "quake xqzvw"}, {"id": "b", "text": "city"}]});
    done(&app, "POST", "/collections/news/match", Some(&body)).await;
    let line = json!({"id": "c", "text": "xqzvw vwxqz"}).to_string();
    let request = Request::post("/collections/news/match")
        .header("content-type", "application/x-ndjson")
        .body(Body::from(line))
        .unwrap();
    assert_eq!(app.send(request).await.status, 200);
    says(
        &app,
        &["cognate_texts_total 3", "cognate_tokens_total 5", "cognate_unknown_tokens_total 3"],
    )
    .await;
}

/// A full memory is the server's matter, not the client's: as JSON, and in a line of a stream.
#[tokio::test]
async fn a_full_memory_is_507_and_counted() {
    let app = TestApp::with(|settings| {
        settings.collection_series = Some(1);
        settings.collection_bytes = 1 << 20;
    });
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item = |id: usize| json!({"id": id.to_string(), "text": "a quake", "data": {"x": "y".repeat(2000)}});
    let body = json!({"items": (0..1000).map(item).collect::<Vec<_>>()});
    let full = call(&app, "POST", "/collections/news/items", Some(&body)).await;
    let problem = full.refusal(507, "collection_full");
    assert!(problem["detail"].as_str().unwrap().contains("`collection_bytes`"), "{problem}");
    let lines: String = (0..1000).map(|id| format!("{}\n", item(id))).collect();
    let request = axum::http::Request::post("/collections/news/items")
        .header("content-type", "application/x-ndjson")
        .body(axum::body::Body::from(lines));
    let answer = app.send(request.unwrap()).await.text();
    assert!(answer.contains("\"status\":507") || answer.contains("collection_full"), "{answer}");
    let refused =
        "cognate_collection_refused_total{collection=\"news\",code=\"collection_full\"} 2";
    says(&app, &[refused]).await;
    // No request of its own can be right where a setting of the server is too low.
    let most = call(&app, "PUT", "/collections/news", Some(&json!({"max_items": 2_000_000}))).await;
    most.refusal(422, "out_of_range");
}

#[tokio::test]
async fn rankings_of_collections_are_timed_apart() {
    let app = TestApp::new();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    done(&app, "POST", "/collections/news/items", Some(&items(0..3))).await;
    for body in [
        json!({"query": "quake", "collection": "news"}),
        json!({"query": "quake", "candidates": ["city"]}),
    ] {
        done(&app, "POST", "/rank", Some(&body)).await;
    }
    says(
        &app,
        &[
            "cognate_collection_rank_duration_seconds_count 1",
            "cognate_request_duration_seconds_count{route=\"/rank\"} 1",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_log_that_was_cut_is_counted_and_a_sync_is_dated() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let serve = || TestApp::with(|settings| settings.data = Some(data.clone()));
    let app = serve();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    done(&app, "POST", "/collections/news/items", Some(&items(0..3))).await;
    let page = app.get("/metrics").await.text();
    let synced = page.lines().find_map(|line| {
        line.strip_prefix("cognate_collection_synced_timestamp_seconds{collection=\"_other\"} ")
    });
    let ago = cognate_collections::now() as f64 / 1e3 - synced.unwrap().parse::<f64>().unwrap();
    assert!((0.0..60.0).contains(&ago), "{ago}");
    says(&app, &["cognate_collection_logs_cut 0"]).await;
    drop(app);
    let log = data.join("news/items.log");
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"cut").unwrap();
    let app = serve();
    says(
        &app,
        &["cognate_collection_logs_cut 1", "cognate_collection_items{collection=\"_other\"} 3"],
    )
    .await;
    assert_eq!(
        fs::read_dir(data.join("news"))
            .unwrap()
            .filter(|entry| {
                entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("items.cut-")
            })
            .count(),
        1
    );
}
