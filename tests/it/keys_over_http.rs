//! Keys, scopes and quotas as a client meets them.

use std::path::PathBuf;

use axum::body::Body;
use axum::http::Request;
use cognate::http::Peer;
use cognate::http::keys::{Scope, line};

use crate::http::TestApp;

/// A key file with one key of each scope.
fn key_file(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("keys");
    let lines = [line("shop", Scope::Query, "query-key"), line("ops", Scope::Admin, "admin-key")];
    std::fs::write(&path, lines.map(Result::unwrap).join("\n")).unwrap();
    path
}

fn with_key(verb: &str, path: &str, authorization: Option<&str>) -> Request<Body> {
    let mut request =
        Request::builder().method(verb).uri(path).header("content-type", "application/json");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    request.body(Body::from(r#"{"a":"quake","b":"city"}"#)).unwrap()
}

#[tokio::test]
async fn questions_need_a_key_and_health_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(&folder);
    let app = TestApp::with(|settings| settings.keys_file = Some(path));
    for (verb, path) in [
        ("POST", "/similarity"),
        ("POST", "/embed"),
        ("POST", "/rank"),
        ("POST", "/explain"),
        ("GET", "/methods"),
        ("GET", "/models"),
        ("POST", "/-/reload"),
    ] {
        let long = format!("Bearer {}", "x".repeat(600));
        let refused =
            [None, Some("Bearer wrong"), Some("Basic query-key"), Some(long.as_str()), Some("")];
        let mut bodies = Vec::new();
        for authorization in refused {
            let answer = app.send(with_key(verb, path, authorization)).await;
            let mut problem = answer.refusal(401, "unauthorized");
            assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"cognate\"");
            problem["request_id"] = "".into();
            bodies.push(problem);
        }
        assert!(bodies.windows(2).all(|two| two[0] == two[1]), "missing and wrong look the same");
    }
    for path in
        ["/", "/docs", "/openapi.json", "/health", "/livez", "/ready", "/readyz", "/metrics"]
    {
        let answer = app.send(with_key("GET", path, None)).await;
        assert!(answer.status.is_success() || answer.status.is_redirection(), "{path}");
    }
    for fine in ["Bearer query-key", "bearer query-key", "query-key", "Bearer admin-key"] {
        let answer = app.send(with_key("POST", "/similarity", Some(fine))).await;
        assert_eq!(answer.status, 200, "{fine}");
    }
}

#[tokio::test]
async fn steering_needs_the_admin_scope_or_without_keys_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(&folder);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(path);
        settings.model[0].path = folder.path().join("none");
    });
    app.send(with_key("POST", "/-/reload", Some("Bearer query-key")))
        .await
        .refusal(403, "forbidden");
    app.send(with_key("POST", "/-/reload", Some("Bearer admin-key")))
        .await
        .refusal(422, "bad_model");
    let open = TestApp::with(|settings| settings.model[0].path = folder.path().join("none"));
    for (peer, status, code) in
        [([127, 0, 0, 1], 422, "bad_model"), ([10, 0, 0, 9], 403, "forbidden")]
    {
        let mut request = with_key("POST", "/-/reload", None);
        request.extensions_mut().insert(Peer((peer, 4000).into()));
        open.send(request).await.refusal(status, code);
    }
    open.send(with_key("POST", "/-/reload", None)).await.refusal(403, "forbidden");
}

#[tokio::test]
async fn a_quota_is_a_keys_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(&folder);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(path);
        settings.rate_limit_per_key = Some(1);
    });
    let ask = |key: &str| app.send(with_key("POST", "/similarity", Some(key)));
    assert_eq!(ask("query-key").await.status, 200);
    let answer = ask("query-key").await;
    let problem = answer.refusal(429, "rate_limited");
    assert_eq!(problem["retry_after_s"], 1);
    assert!(answer.header("ratelimit").contains("r=0"));
    assert_eq!(ask("admin-key").await.status, 200, "another key has its own");
    assert!(app.get("/metrics").await.text().contains("cognate_shed_total{reason=\"quota\"} 1\n"));
}
