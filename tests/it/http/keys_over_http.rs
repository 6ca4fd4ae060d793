//! Keys, scopes and quotas as a client meets them.

use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::http::Request;
use cognate::model::format::Dtype;
use cognate_server::http::Peer;
use cognate_server::http::auth::keys::{Scope, line as line_of};
use futures_util::stream;
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::app::TestApp;
use crate::support::tiny;

/// A key file with one key of each scope.
fn key_file(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("keys");
    let lines =
        [line_of("shop", Scope::Query, "query-key"), line_of("ops", Scope::Admin, "admin-key")];
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
        ("POST", "/-/backup"),
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
    let backup = |key| app.send(with_key("POST", "/-/backup", Some(key)));
    backup("Bearer query-key").await.refusal(403, "forbidden");
    backup("Bearer admin-key").await.refusal(404, "not_found");
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

#[tokio::test]
async fn requests_are_counted_by_key_and_only_the_first_keys_have_a_count_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let keys = (0..150).map(|number| {
        let (id, key) = (format!("client-{number}"), format!("key-{number}"));
        line_of(&id, Scope::Query, &key).unwrap()
    });
    std::fs::write(&path, keys.collect::<Vec<_>>().join("\n")).unwrap();
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(path);
        settings.rate_limit_per_key = Some(1);
    });
    let count = async |key: &str, outcome: &str| {
        let series = format!("cognate_key_requests_total{{key=\"{key}\",outcome=\"{outcome}\"}} ");
        let page = app.get("/metrics").await.text();
        page.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok())
    };
    assert_eq!(count("client-99", "answered").await, Some(0), "from the start");
    assert_eq!(count("client-100", "answered").await, None);
    for key in ["key-7", "key-7", "key-120", "key-149", "key-200"] {
        app.send(with_key("POST", "/similarity", Some(key))).await;
    }
    app.send(with_key("GET", "/models", None)).await;
    app.send(with_key("POST", "/rank", Some("key-8"))).await;
    app.send(with_key("GET", "/health", None)).await;
    for (key, outcome, expected) in [
        ("client-7", "answered", 1),
        ("client-7", "rate_limited", 1),
        ("client-8", "refused", 1),
        ("other", "answered", 2),
        ("none", "refused", 2),
        ("none", "answered", 0),
        ("none", "failed", 0),
    ] {
        assert_eq!(count(key, outcome).await, Some(expected), "{key} {outcome}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_out_although_a_model_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder);
    let model = folder.path().join("model.safetensors");
    std::fs::write(&model, tiny(Dtype::F32)).unwrap();
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(keys.clone());
        settings.model[0].path = model.clone();
    });
    let reload = || app.send(with_key("POST", "/-/reload", Some("Bearer admin-key")));
    let ask = || app.send(with_key("POST", "/similarity", Some("Bearer query-key")));
    assert_eq!(reload().await.json()["keys"], 2);
    assert_eq!(ask().await.status, 200);
    std::fs::write(&keys, line_of("ops", Scope::Admin, "admin-key").unwrap()).unwrap();
    std::fs::remove_file(&model).unwrap();
    let problem = reload().await.refusal(422, "bad_model");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("keys were taken over") && detail.contains("serve on"), "{detail}");
    ask().await.refusal(401, "unauthorized");
    // A key file that is not sound keeps the keys, and does not hold the models up.
    std::fs::write(&keys, "nonsense").unwrap();
    std::fs::write(&model, tiny(Dtype::I8)).unwrap();
    let problem = reload().await.refusal(422, "bad_keys");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("keys before") && detail.contains("models were taken over"),
        "{detail}"
    );
    let fingerprint = app.app.models().all()[0].fingerprint.clone();
    std::fs::remove_file(&model).unwrap();
    let problem = reload().await.refusal(422, "bad_keys");
    assert!(problem["detail"].as_str().unwrap().contains("models before it serve on"));
    assert_eq!(app.app.models().all()[0].fingerprint, fingerprint);
    ask().await.refusal(401, "unauthorized");
}

#[tokio::test]
async fn a_key_file_that_was_replaced_is_taken_over_without_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(&folder);
    let app = TestApp::with(|settings| settings.keys_file = Some(keys.clone()));
    let status = async |key: &str| {
        app.app.look_after_keys();
        app.send(with_key("POST", "/similarity", Some(key))).await.status.as_u16()
    };
    let replace = |lines: &str| {
        let fresh = folder.path().join("fresh");
        std::fs::write(&fresh, lines).unwrap();
        std::fs::rename(fresh, &keys).unwrap();
    };
    let loads = async || {
        let page = app.get("/metrics").await.text();
        let of =
            |name: &str| page.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        [of("cognate_reloads_total "), of("cognate_reload_failures_total ")].join(" ")
    };
    assert_eq!((status("query-key").await, status("next-key").await), (200, 401));
    let first = loads().await;
    replace(&line_of("shop-2", Scope::Query, "next-key").unwrap());
    assert_eq!((status("query-key").await, status("next-key").await), (401, 200));
    assert_ne!(loads().await, first);
    // A look at a file that is as it was reads nothing.
    let second = loads().await;
    assert_eq!((status("next-key").await, loads().await), (200, second));
    // One that is not sound, or not there, keeps the keys and is told again by each look.
    replace("nonsense");
    assert_eq!((status("next-key").await, status("query-key").await), (200, 401));
    std::fs::remove_file(&keys).unwrap();
    assert_eq!(status("next-key").await, 200);
    assert!(loads().await.ends_with(" 3"), "{}", loads().await);
    replace(&line_of("shop", Scope::Query, "query-key").unwrap());
    assert_eq!((status("query-key").await, status("next-key").await), (200, 401));
}

/// A stream may last for hours, so that its key is looked at again with each part of it.
#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked_and_no_other_does() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let key_of = |key: &str, names: &str| line_of(key, Scope::Query, key).unwrap() + names;
    let write = |lines: &[String]| std::fs::write(&keys, lines.join("\n")).unwrap();
    let admin = line_of("ops", Scope::Admin, "admin").unwrap();
    write(&[
        key_of("revoked", ""),
        key_of("resting", ""),
        key_of("other-rights", ""),
        key_of("same-rights", ":news,shop"),
        admin.clone(),
    ]);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(keys.clone());
        // A stream that rests is looked at as often.
        settings.write_timeout_s = 1;
    });
    let line = Bytes::from_static(b"[\"quake\",\"city\"]\n");
    let mut streams = Vec::new();
    for key in ["revoked", "resting", "other-rights", "same-rights", "admin"] {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
        let body = stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|bytes| (Ok::<_, std::io::Error>(bytes), receiver))
        });
        let request = Request::post("/similarity?method=avg-cos")
            .header("content-type", "application/x-ndjson")
            .header("authorization", format!("Bearer {key}"))
            .body(Body::from_stream(body));
        let answer = app.app.router().oneshot(request.unwrap()).await.unwrap();
        let mut answers = answer.into_body();
        sender.send(line.clone()).await.unwrap();
        let first = answers.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b"{\"score\":"), "{first:?}");
        streams.push((key, sender, answers));
    }
    write(&[admin, key_of("other-rights", ":news"), key_of("same-rights", ":shop,news")]);
    let reload = with_key("POST", "/-/reload", Some("Bearer admin"));
    assert_eq!(app.send(reload).await.json()["keys"], 3);
    for (key, sender, answers) in streams {
        if key != "resting" {
            sender.send(line.clone()).await.unwrap();
        }
        let rest = match key {
            // Its client sends nothing, and would go on.
            "resting" => answers.collect().await,
            _ => {
                drop(sender);
                answers.collect().await
            }
        };
        let rest = rest.unwrap().to_bytes();
        let last: serde_json::Value = serde_json::from_slice(&rest).unwrap();
        match key {
            "same-rights" | "admin" => assert!(last["score"].is_number(), "{key}: {last}"),
            _ => assert_eq!(
                (&last["line"], &last["error"]["code"]),
                (&2.into(), &"unauthorized".into()),
                "{key}"
            ),
        }
    }
}

#[tokio::test]
async fn pages_and_proxies_do_not_steer_a_service_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let app = TestApp::with(|settings| settings.model[0].path = folder.path().join("none"));
    type Fields = &'static [(&'static str, &'static str)];
    let cases: [(Fields, u16, &str); 6] = [
        (&[("host", "127.0.0.1:8080")], 422, "bad_model"),
        (&[("host", "localhost"), ("origin", "http://localhost")], 422, "bad_model"),
        (&[("host", "127.0.0.1:8080"), ("origin", "https://evil.example")], 403, "forbidden"),
        (&[("host", "evil.example"), ("origin", "http://evil.example")], 403, "forbidden"),
        (&[("host", "evil.example")], 403, "forbidden"),
        (&[("host", "127.0.0.1"), ("x-forwarded-for", "203.0.113.9")], 403, "forbidden"),
    ];
    for (fields, status, code) in cases {
        let mut request = with_key("POST", "/-/reload", None);
        request.extensions_mut().insert(Peer(([127, 0, 0, 1], 4000).into()));
        for (name, value) in fields {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        app.send(request).await.refusal(status, code);
    }
}

#[tokio::test]
async fn a_line_of_a_stream_counts_as_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(&folder);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(path);
        settings.rate_limit_per_key = Some(50);
    });
    let mut request = with_key("POST", "/similarity", Some("Bearer query-key"));
    request.headers_mut().insert("content-type", "application/x-ndjson".parse().unwrap());
    *request.body_mut() = Body::from("[\"quake\",\"city\"]\n".repeat(120));
    let begun = std::time::Instant::now();
    let answer = app.send(request).await;
    assert_eq!(answer.text().matches("\"score\"").count(), 120, "{}", answer.text());
    // One and 120 requests at 50 a second, of which 50 at once.
    assert!(begun.elapsed().as_secs_f64() > 1.2, "{:?}", begun.elapsed());
    let after = app.send(with_key("POST", "/similarity", Some("Bearer query-key"))).await;
    assert_eq!(after.status, 429, "the stream used the quota up");
}

#[tokio::test]
async fn a_stream_that_waits_for_its_quota_hears_that_the_service_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(&folder);
    let app = TestApp::with(|settings| {
        settings.keys_file = Some(path);
        settings.rate_limit_per_key = Some(5);
    });
    let mut request = with_key("POST", "/similarity", Some("Bearer query-key"));
    request.headers_mut().insert("content-type", "application/x-ndjson".parse().unwrap());
    *request.body_mut() = Body::from("[\"quake\",\"city\"]\n".repeat(1000));
    let ending = async {
        // Once both texts of the first five lines are counted, the stream waits for its quota: on this
        // one thread it does not yield in between.
        while !app.app.metrics.render(&[]).contains("cognate_texts_total 10\n") {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        app.app.streams.end();
    };
    let (answer, ()) = tokio::join!(app.send(request), ending);
    let text = answer.text();
    let scored = text.matches("\"score\"").count();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "draining", "{text}");
    assert_eq!(last["line"], scored + 1, "{text}");
}
