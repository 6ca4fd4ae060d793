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
    assert!(metrics.contains("cognate_collection_items{collection=\"_other\"} 4\n"), "{metrics}");
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
    let answer = app.send(request.unwrap()).await;
    assert_eq!(answer.status, 200);
    let told: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["line"], &told[0]["id"]), (&json!(2), &json!("a")));
    assert_eq!(told[0]["error"]["code"], "malformed_json");
    let expected = json!({"added": 1, "replaced": 0, "removed": 0, "left": 0, "failed": 1});
    assert_eq!(told[1..], [expected]);
    for batch in [["a", "b", "c"], ["b", "c", "d"]] {
        let items: Vec<Value> = batch.iter().map(|id| item(json!(id), "text")).collect();
        done(&app, "POST", "/collections/news/items", Some(&json!({"items": items}))).await;
    }
    let fifth = json!({"items": [item(json!("e"), "text")]});
    let full = call(&app, "POST", "/collections/news/items", Some(&fifth)).await;
    full.refusal(507, "collection_full");
    let second = call(&app, "PUT", "/collections/more", Some(&json!({}))).await;
    second.refusal(507, "collection_full");
    for (name, body, code) in [
        ("News", json!({}), "invalid_field"),
        ("news", json!({"max_items": 0}), "out_of_range"),
        ("news", json!({"max_items": 5}), "out_of_range"),
        ("news", json!({"ttl": "1 day"}), "invalid_field"),
    ] {
        call(&app, "PUT", &format!("/collections/{name}"), Some(&body)).await.refusal(422, code);
    }
    // With a number of its own the oldest leave, once that is said.
    let bounds = json!({"max_items": 2.0, "ttl": "7d"});
    let refused = call(&app, "PUT", "/collections/news", Some(&bounds)).await;
    let told = refused.refusal(422, "would_drop");
    assert!(told["detail"].as_str().unwrap().contains("2 items"), "{told}");
    let told = done(&app, "PUT", "/collections/news?drop=true", Some(&bounds)).await;
    assert_eq!(
        (&told["items"], &told["max_items"], &told["ttl"]),
        (&json!(2), &json!(2), &json!("7d"))
    );
    // What is not named stays, and `null` takes a bound away.
    for (change, most) in [(json!({}), json!(2)), (json!({"max_items": null}), json!(null))] {
        let told = done(&app, "PUT", "/collections/news", Some(&change)).await;
        assert_eq!((&told["max_items"], &told["ttl"]), (&most, &json!("7d")), "{change}");
    }
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
        ("PATCH", "/collections/news/items/b", r#"{"attributes":{"n":1}}"#),
        ("DELETE", "/collections/news/items/b", ""),
        ("DELETE", "/collections/news/items?all=true", ""),
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
            ("PUT", "items/a", "application/json", &format!("{{{fields}}}"), "/attributes"),
        ] {
            let problem = send(verb, path, kind, body.clone()).await.refusal(422, "invalid_field");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{verb} {path}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
        }
        for path in ["items", "match"] {
            let lines =
                send("POST", path, "application/x-ndjson", format!("{item}\n")).await.text();
            assert!(lines.contains("invalid_field") && lines.contains(said), "{lines}");
        }
    }
    // What the list as a whole does not show is found in its item.
    let half = r#"{"items":[{"id":"a","text":"\ud800"}]}"#.to_owned();
    let problem = send("POST", "items", "application/json", half).await;
    let problem = problem.refusal(400, "malformed_json");
    assert!(problem["detail"].as_str().unwrap().contains("surrogate"), "{problem}");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 0);
}

/// A stream is as long as it likes; what is no item is told by its line, and what refuses items ends it.
#[tokio::test]
async fn lines_are_added_as_they_come_however_many() {
    let app = TestApp::with(|settings| {
        (settings.max_texts, settings.collection_items, settings.body_bytes) = (10, 3000, 4096);
    });
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let send = async |lines: String| {
        let request = Request::post("/collections/news/items");
        let request = request.header("content-type", "application/x-ndjson");
        let answer = app.send(request.body(Body::from(lines)).unwrap()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let lines = answer.text();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let line = |at: usize| format!("{{\"id\":{at},\"text\":\"the quake {at}\"}}\n");
    let many = |range: std::ops::Range<usize>| range.map(line).collect::<String>();
    let counted = |added: usize, replaced: usize| json!({"added": added, "replaced": replaced, "removed": 0, "left": 0});
    assert_eq!(send(many(0..2000)).await, [counted(2000, 0)]);
    let odd =
        format!("{}\n{}{{\"id\":\"x\",\"text\":\" \"}}\n", many(1990..2000), many(2000..2300));
    let told = send(odd).await;
    assert_eq!((&told[0]["line"], &told[0]["error"]["code"]), (&json!(312), &json!("empty_text")));
    let mut expected = counted(300, 10);
    expected["failed"] = json!(1);
    assert_eq!(told[1..], [expected]);
    // 256 lines are written together: of 800 the first 512 have room.
    let told = send(many(2300..3100)).await;
    assert_eq!((told.len(), &told[0]["line"]), (1, &json!(513)));
    assert_eq!(told[0]["error"]["code"], "collection_full");
    let list = done(&app, "GET", "/collections/news/items?limit=1&offset=2811", None).await;
    assert_eq!((ids(&list), &list["total"]), (vec!["2811"], &json!(2812)));
    assert_eq!(send(String::new()).await, [counted(0, 0)]);
    let request = Request::post("/collections/none/items");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(line(0)));
    app.send(request.unwrap()).await.refusal(404, "not_found");
}

#[tokio::test]
async fn a_patch_changes_what_it_names() {
    let app = TestApp::new();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item = json!({
        "id": "a", "text": "the quake", "time": "2024-05-01T10:00:00Z",
        "attributes": {"lang": "en", "price": 9, "old": true}, "data": {"url": "/a", "k": {"x": 1}},
    });
    let other = json!({"id": "b", "text": "new york", "time": "2024-05-01T11:00:00Z"});
    let items = json!({"items": [item, other]});
    done(&app, "POST", "/collections/news/items", Some(&items)).await;
    let path = "/collections/news/items/a";
    let patch = json!({
        "attributes": {"price": 7.5, "old": null, "new": "x"}, "data": {"k": {"y": 2}},
    });
    let changed = done(&app, "PATCH", path, Some(&patch)).await;
    let expected = json!({"added": 0, "replaced": 0, "patched": 1, "removed": 0, "left": 0});
    assert_eq!(changed, expected);
    let told = call(&app, "GET", path, None).await.text();
    let expected = r#"{"id":"a","text":"the quake","time":"2024-05-01T10:00:00Z","attributes":{"lang":"en","new":"x","price":7.5},"data":{"k":{"x":1,"y":2},"url":"/a"}}"#;
    assert_eq!(told, expected);
    // It keeps its place, and the media type of the standard is taken.
    let list = done(&app, "GET", "/collections/news/items", None).await;
    assert_eq!(ids(&list), ["a", "b"]);
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    let time = r#"{"time":"2024-05-02T00:00:00Z","attributes":null,"data":null}"#;
    let answer = app.send(request.body(Body::from(time)).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = done(&app, "GET", path, None).await;
    assert_eq!(told, json!({"id": "a", "text": "the quake", "time": "2024-05-02T00:00:00Z"}));
    for (patch, pointer) in [
        (json!({"text": "another"}), "/text"),
        (json!({"time": null}), "/time"),
        (json!({"attributes": {"any": 1}}), "/attributes"),
        (json!({"attributes": {"a": [1]}}), "/attributes/a"),
        (json!({"data": [1]}), "/data"),
    ] {
        let problem = call(&app, "PATCH", path, Some(&patch)).await.refusal(422, "invalid_field");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{patch}: {problem}");
    }
    let nobody = call(&app, "PATCH", "/collections/news/items/z", Some(&json!({}))).await;
    nobody.refusal(404, "not_found");
    let nowhere = call(&app, "PATCH", "/collections/none/items/z", Some(&json!({}))).await;
    nowhere.refusal(404, "not_found");
}

#[tokio::test]
async fn items_are_patched_line_by_line() {
    let app = TestApp::new();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item =
        |at: usize| json!({"id": at, "text": "the quake", "attributes": {"n": at, "lang": "en"}});
    let items: Value = (0..600).map(item).collect();
    done(&app, "POST", "/collections/news/items", Some(&json!({"items": items}))).await;
    let send = async |media: &str, lines: String| {
        let request = Request::patch("/collections/news/items").header("content-type", media);
        app.send(request.body(Body::from(lines)).unwrap()).await
    };
    let mut lines: Vec<String> = (0..600)
        .map(|at| format!(r#"{{"id":{at},"attributes":{{"views":{at},"n":null}}}}"#))
        .collect();
    let many: Vec<String> = (0..30).map(|at| format!("\"m{at}\":1")).collect();
    lines[3] = r#"{"id":"gone","attributes":{"views":1}}"#.to_owned();
    lines[4] = r#"{"id":"4","text":"another"}"#.to_owned();
    // The second patch of an item is of what the first left: as many as there may be, one of them another.
    lines[5] = format!(r#"{{"id":7,"attributes":{{{}}}}}"#, many.join(","));
    let answer = send("application/x-ndjson", lines.join("\n")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed =
        |at: usize| (told[at]["line"].as_u64().unwrap(), told[at]["error"]["code"].clone());
    assert_eq!(failed(0), (4, json!("not_found")));
    assert_eq!((failed(1), &told[0]["id"]), ((5, json!("invalid_field")), &json!("gone")));
    let counts =
        json!({"added": 0, "replaced": 0, "patched": 598, "removed": 0, "left": 0, "failed": 2});
    assert_eq!(told[2..], [counts]);
    let attributes = async |id: &str| {
        let item = done(&app, "GET", &format!("/collections/news/items/{id}"), None).await;
        item["attributes"].clone()
    };
    assert_eq!(attributes("599").await, json!({"views": 599, "lang": "en"}));
    assert_eq!(attributes("3").await, json!({"n": 3, "lang": "en"}));
    assert_eq!(attributes("7").await.as_object().unwrap().len(), 32, "of both patches");
    send("application/json", "{}".to_owned()).await.refusal(415, "unsupported_media_type");
}

#[tokio::test]
async fn items_are_deleted_by_what_they_have() {
    let app = TestApp::new();
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let item = |at: usize| {
        let lang = if at < 4 { "en" } else { "de" };
        let event = format!("e{}", at % 2);
        json!({"id": at, "text": "the quake", "attributes": {"lang": lang}, "event": event})
    };
    let items = json!({"items": (0..6).map(item).collect::<Vec<_>>()});
    done(&app, "POST", "/collections/news/items", Some(&items)).await;
    let path = "/collections/news/items";
    for everything in ["", "?filter=%7B%7D", "?all=false"] {
        let refused = call(&app, "DELETE", &format!("{path}{everything}"), None).await;
        let problem = refused.refusal(422, "invalid_field");
        assert_eq!(problem["errors"][0]["pointer"], "/filter", "{problem}");
    }
    for odd in ["?filter=x", "?within=x", "?limit=1"] {
        let refused = call(&app, "DELETE", &format!("{path}{odd}"), None).await;
        refused.refusal(422, "invalid_field");
    }
    let german = "?filter=%7B%22lang%22%3A%22de%22%7D";
    for (asked, removed, left) in [
        (format!("{german}&event=e0"), 1, vec!["0", "1", "2", "3", "5"]),
        (german.to_owned(), 1, vec!["0", "1", "2", "3"]),
        (german.to_owned(), 0, vec!["0", "1", "2", "3"]),
        ("?event=e1".to_owned(), 2, vec!["0", "2"]),
        ("?all=true".to_owned(), 2, vec![]),
    ] {
        let changed = done(&app, "DELETE", &format!("{path}{asked}"), None).await;
        assert_eq!(changed["removed"], removed, "{asked}");
        assert_eq!(ids(&done(&app, "GET", path, None).await), left, "{asked}");
    }
    // A list says where a filter asks for what no item has.
    done(&app, "POST", path, Some(&items)).await;
    let asked = "?filter=%7B%22colour%22%3A%22red%22%2C%22lang%22%3A%22en%22%7D";
    let list = done(&app, "GET", &format!("{path}{asked}"), None).await;
    assert_eq!(list, json!({"items": [], "total": 0, "filter_unknown": ["colour"]}));
}
