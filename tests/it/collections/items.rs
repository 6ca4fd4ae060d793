//! Collections made, items written, listed and deleted over HTTP; limits, keys, refusals.

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::auth::keys::{Scope, line};
use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support::app::TestApp;

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn items_come_back_as_they_were_written() {
    let app = TestApp::new();
    let made = done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    assert_eq!(made, json!({"name": "news", "items": 0, "bytes": 0, "durable": false}));
    let items = json!({"items": [
        {"id": "a", "text": "the quake", "time": "2024-05-01T10:00:00Z", "attributes": {"lang": "en", "year": 2024}, "data": {"k": [1, 2.50]}},
        {"id": 7, "text": "new york", "time": 1_714_557_601},
        {"id": "c/ü", "text": "the town"},
    ]});
    let changed = done(&app, "POST", "/collections/news/items", Some(&items)).await;
    assert_eq!(changed, json!({"added": 3, "replaced": 0, "removed": 0, "left": 0}));
    let item = call(&app, "GET", "/collections/news/items/a", None).await;
    assert_eq!(
        item.text(),
        r#"{"id":"a","text":"the quake","time":"2024-05-01T10:00:00Z","attributes":{"lang":"en","year":2024},"data":{"k": [1, 2.50]}}"#
            .replace("{\"k\": [1, 2.50]}", "{\"k\":[1,2.5]}")
    );
    let item = done(&app, "GET", "/collections/news/items/7", None).await;
    assert_eq!(item["time"], "2024-05-01T10:00:01Z");
    // A name may hold what a path has a meaning for.
    let item = done(&app, "GET", "/collections/news/items/c%2F%C3%BC", None).await;
    assert!(item["time"].as_str().unwrap().starts_with("20"), "{item}");
    let lines = "{\"id\":\"d\",\"text\":\"a city\"}\n\n{\"id\":\"a\",\"text\":\"a quake\"}\n";
    let request = Request::post("/collections/news/items");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let changed = app.send(request.unwrap()).await.json();
    assert_eq!((&changed["added"], &changed["replaced"]), (&json!(1), &json!(1)));
    let list = done(&app, "GET", "/collections/news/items", None).await;
    assert_eq!((ids(&list), &list["total"]), (vec!["7", "c/ü", "d", "a"], &json!(4)));
    let put = json!({"text": "the city of york", "attributes": {"lang": "en"}});
    done(&app, "PUT", "/collections/news/items/e", Some(&put)).await;
    let filter = "filter=%7B%22lang%22%3A%22en%22%7D";
    let path = format!("/collections/news/items?{filter}&within=24h");
    assert_eq!(ids(&done(&app, "GET", &path, None).await), ["e"]);
    let page = done(&app, "GET", "/collections/news/items?limit=2&offset=1", None).await;
    assert_eq!((ids(&page), &page["total"]), (vec!["c/ü", "d"], &json!(5)));
    done(&app, "DELETE", "/collections/news/items/e", None).await;
    call(&app, "DELETE", "/collections/news/items/e", None).await.refusal(404, "not_found");
    let told = done(&app, "GET", "/collections/news", None).await;
    assert_eq!(told["items"], 4);
    let all = done(&app, "GET", "/collections", None).await;
    assert_eq!(all["collections"][0], told);
    let metrics = app.get("/metrics").await.text();
    assert!(metrics.contains("cognate_collection_items 4"), "{metrics}");
    done(&app, "DELETE", "/collections/news", None).await;
    call(&app, "GET", "/collections/news", None).await.refusal(404, "not_found");
    assert!(app.get("/metrics").await.text().contains("cognate_collection_bytes 0"));
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_place() {
    let app = TestApp::with(|settings| {
        (settings.max_texts, settings.collection_items, settings.max_collections) = (3, 4, 1);
    });
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item = |id: Value, text: &str| json!({"id": id, "text": text});
    for (body, code, pointer) in [
        (json!({"items": []}), "empty_list", "/items"),
        (json!({"items": vec![item(json!("a"), "b"); 4]}), "too_many_items", "/items"),
        (
            json!({"items": [item(json!("a"), "b"), item(json!(""), "b")]}),
            "invalid_field",
            "/items/1/id",
        ),
        (json!({"items": [item(json!(1.5), "b")]}), "invalid_field", "/items/0/id"),
        (json!({"items": [item(json!("a"), " ")]}), "empty_text", "/items/0/text"),
        (
            json!({"items": [item(json!("a"), &"x".repeat(40_000))]}),
            "text_too_long",
            "/items/0/text",
        ),
        (
            json!({"items": [{"id": "a", "text": "b", "time": "noon"}]}),
            "invalid_field",
            "/items/0/time",
        ),
        (
            json!({"items": [{"id": "a", "text": "b", "attributes": {"n": null}}]}),
            "invalid_field",
            "/items/0/attributes/n",
        ),
        (
            json!({"items": [{"id": "a", "text": "b", "attributes": {"any": 1}}]}),
            "invalid_field",
            "/items/0/attributes",
        ),
        (
            json!({"items": [{"id": "a", "text": "b", "data": []}]}),
            "invalid_field",
            "/items/0/data",
        ),
        (
            json!({"items": [{"id": "a", "text": "b", "data": {"x": "y".repeat(5000)}}]}),
            "text_too_long",
            "/items/0/data",
        ),
        (json!({"items": [{"id": "a"}]}), "invalid_field", "/items/0"),
    ] {
        let answer = call(&app, "POST", "/collections/news/items", Some(&body)).await;
        let problem = answer.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
    let lines = "{\"id\":\"d\",\"text\":\"a city\"}\n{\"id\":\"a\"\n";
    let request = Request::post("/collections/news/items");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let problem = app.send(request.unwrap()).await.refusal(400, "malformed_json");
    assert!(problem["detail"].as_str().unwrap().starts_with("line 2: "), "{problem}");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 0, "all or none");
    for batch in [["a", "b", "c"], ["b", "c", "d"]] {
        let items: Vec<Value> = batch.iter().map(|id| item(json!(id), "text")).collect();
        done(&app, "POST", "/collections/news/items", Some(&json!({"items": items}))).await;
    }
    let fifth = json!({"items": [item(json!("e"), "text")]});
    let full = call(&app, "POST", "/collections/news/items", Some(&fifth)).await;
    full.refusal(422, "collection_full");
    let second = call(&app, "PUT", "/collections/more", Some(&json!({}))).await;
    second.refusal(422, "collection_full");
    for (name, body, code) in [
        ("News", json!({}), "invalid_field"),
        ("news", json!({"max_items": 0}), "out_of_range"),
        ("news", json!({"max_items": 5}), "collection_full"),
        ("news", json!({"ttl": "1 day"}), "invalid_field"),
    ] {
        call(&app, "PUT", &format!("/collections/{name}"), Some(&body)).await.refusal(422, code);
    }
    // With a number of its own the oldest leave.
    done(&app, "PUT", "/collections/news", Some(&json!({"max_items": 2.0, "ttl": "7d"}))).await;
    let told = done(&app, "GET", "/collections/news", None).await;
    assert_eq!((&told["items"], &told["max_items"]), (&json!(2), &json!(2)));
    assert_eq!(told["ttl"], "7d");
    for path in [
        "items?limit=1001",
        "items?filter=x",
        "items?filter=%7B%22a%22%3Anull%7D",
        "items?within=x",
        "items?x=1",
    ] {
        let code = if path.contains("limit") { "out_of_range" } else { "invalid_field" };
        call(&app, "GET", &format!("/collections/news/{path}"), None).await.refusal(422, code);
    }
    for (verb, path) in [
        ("GET", "/collections/none"),
        ("GET", "/collections/none/items"),
        ("DELETE", "/collections/none"),
    ] {
        call(&app, verb, path, None).await.refusal(404, "not_found");
    }
}

#[tokio::test]
async fn writing_needs_a_key_of_its_scope() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let lines = [
        line("reader", Scope::Query, "reader-key").unwrap(),
        line("writer", Scope::Collection, "writer-key").unwrap(),
        line("ops", Scope::Admin, "admin-key").unwrap(),
    ];
    std::fs::write(&keys, lines.join("\n")).unwrap();
    let app = TestApp::with(|settings| settings.keys_file = Some(keys));
    let send = async |verb: &str, path: &str, key: &str, body: &str| {
        let request = Request::builder().method(verb).uri(path).header("authorization", key);
        let request = request.header("content-type", "application/json");
        app.send(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    let items = r#"{"items":[{"id":"a","text":"the quake"}]}"#;
    for (verb, path, body) in [
        ("PUT", "/collections/news", "{}"),
        ("POST", "/collections/news/items", items),
        ("POST", "/collections/news/match", items),
        ("PUT", "/collections/news/items/b", r#"{"text":"b"}"#),
        ("DELETE", "/collections/news/items/b", ""),
    ] {
        // The tiny model has no usual threshold, so matching says what it needs.
        let body = body
            .replace("}]}", if path.ends_with("match") { "}],\"threshold\":0.5}" } else { "}]}" });
        send(verb, path, "nobody", &body).await.refusal(401, "unauthorized");
        send(verb, path, "reader-key", &body).await.refusal(403, "forbidden");
        let answer = send(verb, path, "writer-key", &body).await;
        assert_eq!(answer.status, 200, "{verb} {path}: {}", answer.text());
    }
    for path in ["/collections", "/collections/news", "/collections/news/items"] {
        assert_eq!(send("GET", path, "reader-key", "").await.status, 200, "{path}");
    }
    send("DELETE", "/collections/news", "reader-key", "").await.refusal(403, "forbidden");
    assert_eq!(send("DELETE", "/collections/news", "admin-key", "").await.status, 200);
}

/// Every door into a collection counts the attributes of an item and knows each name once.
#[tokio::test]
async fn attributes_are_few_and_each_has_a_name_of_its_own() {
    let app = TestApp::new();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let many: Vec<String> = (0..33).map(|at| format!("\"a{at}\":1")).collect();
    let (many, twice) = (many.join(","), r#""a":1,"b":2,"\u0061":3"#);
    let send = async |verb: &str, path: &str, kind: &str, body: String| {
        let request = Request::builder().method(verb).uri(format!("/collections/news/{path}"));
        app.send(request.header("content-type", kind).body(Body::from(body)).unwrap()).await
    };
    for (attributes, said) in [(&*many, "at most 32 attributes"), (twice, "given twice")] {
        let fields = format!(r#""text":"a city","attributes":{{{attributes}}}"#);
        let item = format!(r#"{{"id":"a",{fields}}}"#);
        let list = format!(r#"{{"items":[{{"id":"z","text":"a town"}},{item}]}}"#);
        for (verb, path, kind, body, pointer) in [
            ("POST", "items", "application/json", &list, "/items/1/attributes"),
            ("POST", "match", "application/json", &list, "/items/1/attributes"),
            ("POST", "items", "application/x-ndjson", &item, "/items/0/attributes"),
            ("PUT", "items/a", "application/json", &format!("{{{fields}}}"), "/attributes"),
        ] {
            let problem = send(verb, path, kind, body.clone()).await.refusal(422, "invalid_field");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{verb} {path}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
        }
        let line = send("POST", "match", "application/x-ndjson", format!("{item}\n")).await.text();
        assert!(line.contains("invalid_field") && line.contains(said), "{line}");
    }
    // What the list as a whole does not show is found in its item.
    let half = r#"{"items":[{"id":"a","text":"\ud800"}]}"#.to_owned();
    let problem = send("POST", "items", "application/json", half).await;
    let problem = problem.refusal(400, "malformed_json");
    assert!(problem["detail"].as_str().unwrap().contains("surrogate"), "{problem}");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 0);
}
