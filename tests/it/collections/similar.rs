//! The items most like one, by a single GET.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::collections::ranking::{app_with, items};
use crate::collections::{call, done};

#[tokio::test]
async fn what_is_similar_is_what_is_ranked_for_the_item() {
    let app = app_with(&items(60)).await;
    let like = json!({"collection": "news", "like": [{"id": "i7"}], "top_k": 5, "method": "avg-cos",
        "threshold": 0.4, "min_score": 0.2, "return_text": true});
    let expected = done(&app, "POST", "/rank", Some(&like)).await;
    let path = "/collections/news/items/i7/similar?top_k=5&method=avg-cos&threshold=0.4&min_score=0.2\
                &return_text=true";
    assert_eq!(done(&app, "GET", path, None).await, expected);
    // Whoever has the answer is told so, until it is another one.
    let ask = async |tag: &str| {
        let request = Request::get(path).header("if-none-match", tag);
        app.send(request.body(Body::empty()).unwrap()).await
    };
    let first = ask("\"another\"").await;
    let tag = first.header("etag").to_owned();
    assert_eq!(
        (first.status, first.header("cache-control")),
        (StatusCode::OK, "private, no-cache")
    );
    let again = ask(&format!("\"a\", W/{tag}")).await;
    assert_eq!((again.status, again.text().as_str()), (StatusCode::NOT_MODIFIED, ""));
    assert_eq!(again.header("etag"), tag);
    let best = expected["results"][0]["id"].as_str().unwrap();
    done(&app, "DELETE", &format!("/collections/news/items/{best}"), None).await;
    assert_eq!(ask(&tag).await.status, StatusCode::OK);
    for (path, status, code, pointer) in [
        ("news/items/gone/similar", 404, "not_found", Value::Null),
        ("news/items/gone/similar?min_score=0.3", 404, "not_found", Value::Null),
        ("nothing/items/i7/similar", 404, "not_found", Value::Null),
        ("news/items/i7/similar?top_k=0", 422, "out_of_range", json!("/top_k")),
        ("news/items/i7/similar?threshold=high", 422, "out_of_range", json!("/threshold")),
        ("news/items/i7/similar?method=bm25", 422, "method_only_ranks", json!("/method")),
        ("news/items/i7/similar?method=none", 422, "unknown_method", json!("/method")),
        ("news/items/i7/similar?limit=3", 422, "invalid_field", json!("/limit")),
    ] {
        let refused = call(&app, "GET", &format!("/collections/{path}"), None).await;
        let problem = refused.refusal(status, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{path}");
    }
}
