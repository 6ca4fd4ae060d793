//! Several tenants of one server: keys that are limited to some collections see, reach and fill no
//! others, whatever they ask.

use std::path::Path;

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::auth::keys::{Scope, line};
use serde_json::{Value, json};

use crate::support::app::{Answer, TestApp};

/// Keys of three tenants, and of who runs the server.
fn key_file(path: &Path) {
    let lines = [
        line("shop", Scope::Collection, "shop-key").unwrap() + ":shop-*,news",
        line("reader", Scope::Query, "reader-key").unwrap() + ":shop-a",
        line("other", Scope::Collection, "other-key").unwrap() + ":other-*",
        line("steward", Scope::Admin, "steward-key").unwrap() + ":other-b",
        line("ops", Scope::Admin, "ops-key").unwrap(),
    ];
    std::fs::write(path, lines.join("\n")).unwrap();
}

fn tenants(
    folder: &tempfile::TempDir,
    change: impl FnOnce(&mut cognate_server::http::Settings),
) -> TestApp {
    let path = folder.path().join("keys");
    key_file(&path);
    TestApp::with(|settings| {
        settings.keys_file = Some(path);
        change(settings);
    })
}

async fn ask(app: &TestApp, key: &str, (verb, path): (&str, &str), body: &Brought) -> Answer {
    let request = Request::builder().method(verb).uri(path);
    let request = request.header("authorization", format!("Bearer {key}"));
    let request = match body {
        Brought::None => request.body(Body::empty()),
        Brought::Json(body) => {
            request.header("content-type", "application/json").body(Body::from(body.to_string()))
        }
        Brought::Lines(lines) => {
            request.header("content-type", "application/x-ndjson").body(Body::from(lines.clone()))
        }
    };
    app.send(request.unwrap()).await
}

/// What a request brings.
enum Brought {
    None,
    Json(Value),
    Lines(String),
}

/// Two items of one collection.
fn two() -> Value {
    json!({"items": [{"id": "a", "text": "quake in the city"}, {"id": "b", "text": "new york"}]})
}

async fn fill(app: &TestApp, names: &[&str]) {
    for name in names {
        let path = format!("/collections/{name}");
        let made = ask(app, "ops-key", ("PUT", &path), &Brought::Json(json!({}))).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let items = format!("{path}/items");
        let put = ask(app, "ops-key", ("POST", &items), &Brought::Json(two())).await;
        assert_eq!(put.status, 200, "{}", put.text());
    }
}

/// Every request that names a collection, and what it brings. `NAME` stands for the collection.
fn requests() -> Vec<(&'static str, &'static str, Brought)> {
    let lines = "{\"id\":\"c\",\"text\":\"quake\"}\n";
    let rank = json!({"collection": "NAME", "query": "quake"});
    let liked = json!({"collection": "NAME", "like": [{"id": "a"}], "method": "avg-cos"});
    let one = json!({"id": "c", "text": "quake"});
    let of_event = json!({"text": "quake", "event": "a"});
    let of_other = json!({"id": "y", "text": "quake", "event": "x"});
    let of_other = json!({"items": [of_other]});
    vec![
        ("GET", "/collections/{name}", Brought::None),
        ("GET", "/collections/{name}/items", Brought::None),
        ("GET", "/collections/{name}/items/{id}", Brought::None),
        ("GET", "/collections/{name}/items/{id}/similar", Brought::None),
        ("GET", "/collections/{name}/facets?names=n", Brought::None),
        ("GET", "/collections/{name}/events", Brought::None),
        ("GET", "/collections/{name}/events/stream", Brought::None),
        ("POST", "/rank", Brought::Json(rank)),
        ("POST", "/rank", Brought::Json(liked)),
        ("POST", "/collections/{name}/items", Brought::Json(json!({"items": [one]}))),
        ("POST", "/collections/{name}/items", Brought::Lines(lines.to_owned())),
        ("PUT", "/collections/{name}/items/{id}", Brought::Json(of_event)),
        ("GET", "/collections/{name}/events/{id}", Brought::None),
        ("GET", "/collections/{name}/events/{id}/similar", Brought::None),
        ("POST", "/collections/{name}/items", Brought::Json(of_other)),
        ("POST", "/collections/{name}/events/{id}/merge", Brought::Json(json!({"events": ["x"]}))),
        ("POST", "/collections/{name}/events/{id}/split", Brought::Json(json!({"ids": ["y"]}))),
        ("DELETE", "/collections/{name}/events/{id}", Brought::None),
        ("PUT", "/collections/{name}/items/{id}", Brought::Json(json!({"text": "quake"}))),
        ("POST", "/collections/{name}/match", Brought::Json(json!({"items": [one], "last": 9}))),
        ("POST", "/collections/{name}/match", Brought::Lines(lines.to_owned())),
        ("PATCH", "/collections/{name}/items/{id}", Brought::Json(json!({"attributes": {"n": 1}}))),
        (
            "PATCH",
            "/collections/{name}/items",
            Brought::Lines("{\"id\":\"c\",\"attributes\":{\"n\":2}}\n".to_owned()),
        ),
        ("DELETE", "/collections/{name}/items/{id}", Brought::None),
        ("DELETE", "/collections/{name}/items?all=true", Brought::None),
        ("PUT", "/collections/{name}", Brought::Json(json!({"max_items": 5}))),
        ("DELETE", "/collections/{name}", Brought::None),
    ]
}

/// The request about this collection.
fn about(name: &str, path: &str, body: &Brought) -> (String, Brought) {
    let path = path.replace("{name}", name).replace("{id}", "a");
    // Else it goes on for ever.
    let path = path.replace("events/stream", "events/stream?follow=false");
    let body = match body {
        Brought::None => Brought::None,
        Brought::Lines(lines) => Brought::Lines(lines.clone()),
        Brought::Json(body) => {
            let body = body.to_string().replace("\"NAME\"", &format!("\"{name}\""));
            Brought::Json(serde_json::from_str(&body).unwrap())
        }
    };
    (path, body)
}

/// An answer without what differs from one request to the next.
fn bare(answer: &Answer) -> (u16, Value) {
    let mut body = answer.json();
    if let Some(id) = body.get_mut("request_id") {
        *id = Value::Null;
    }
    (answer.status.as_u16(), body)
}

/// No route that the document has may be missing in the table of this test.
#[test]
fn every_route_that_names_a_collection_is_tried() {
    let document = cognate_server::http::openapi_document();
    let mut documented = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if path.starts_with("/collections/") {
            let verbs = item.as_object().unwrap().keys().map(|verb| verb.to_uppercase());
            documented.extend(verbs.map(|verb| (verb, path.clone())));
        }
    }
    assert!(documented.len() >= 8, "{documented:?}");
    for (verb, path) in documented {
        let tried = requests()
            .iter()
            .any(|(tried, at, _)| (*tried, at.split('?').next()) == (&*verb, Some(&*path)));
        assert!(tried, "{verb} {path}");
    }
    // Bodies that name one, whatever the dialect.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let named = |schema: &Value| schema.pointer("/properties/collection").is_some();
    let named: Vec<&String> =
        schemas.iter().filter(|(_, schema)| named(schema)).map(|(name, _)| name).collect();
    let asked: Vec<_> = named.iter().filter(|name| name.ends_with("Request")).collect();
    assert_eq!(asked, [&"RankRequest"], "{named:?}");
}

#[tokio::test]
async fn a_collection_that_a_key_does_not_reach_is_as_if_it_were_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |_| ());
    fill(&app, &["shop-a", "news", "other-a"]).await;
    for (verb, path, body) in requests() {
        let (there, body_there) = about("other-a", path, &body);
        let refused = ask(&app, "shop-key", (verb, &there), &body_there).await;
        if (verb, path) == ("PUT", "/collections/{name}") {
            let problem = refused.refusal(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains("may not make"), "{problem}");
        } else {
            // In the words for a name of its own that is not there.
            let (absent, body_absent) = about("shop-none", path, &body);
            let absent = ask(&app, "shop-key", (verb, &absent), &body_absent).await;
            assert_eq!(bare(&refused), bare(&absent), "{verb} {path}");
            let code = if path == "/rank" { "unknown_collection" } else { "not_found" };
            assert_eq!(refused.json()["code"], code, "{verb} {path}: {}", refused.text());
        }
        // And in the same whether there is one of that name or not.
        let (nowhere, body_nowhere) = about("other-none", path, &body);
        let nowhere = ask(&app, "shop-key", (verb, &nowhere), &body_nowhere).await;
        assert_eq!(bare(&refused), bare(&nowhere), "{verb} {path}");
        let answer = refused.text();
        assert!(!answer.contains("other-a") && !answer.contains("new york"), "{answer}");
    }
    // Nothing of it came to pass.
    let left = ask(&app, "ops-key", ("GET", "/collections/other-a/items"), &Brought::None).await;
    assert_eq!(left.json()["total"], 2, "{}", left.text());
    let all = ask(&app, "ops-key", ("GET", "/collections"), &Brought::None).await;
    assert_eq!(names(&all), ["news", "other-a", "shop-a"]);
    // The same requests of the key that reaches the collection are answered, in this order.
    for (verb, path, body) in requests() {
        let (path, body) = about("other-a", path, &body);
        let done = ask(&app, "other-key", (verb, &path), &body).await;
        assert_eq!(done.status, 200, "{verb} {path}: {}", done.text());
    }
    let all = ask(&app, "ops-key", ("GET", "/collections"), &Brought::None).await;
    assert_eq!(names(&all), ["news", "shop-a"]);
}

fn names(list: &Answer) -> Vec<String> {
    let list = list.json();
    let all = list["collections"].as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_key_lists_what_it_reaches_whatever_its_scope() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |_| ());
    fill(&app, &["news", "newsletter", "other-a", "other-b", "shop-a", "shop-b", "shopping"]).await;
    for (key, expected) in [
        ("shop-key", &["news", "shop-a", "shop-b"][..]),
        ("reader-key", &["shop-a"]),
        ("other-key", &["other-a", "other-b"]),
        ("steward-key", &["other-b"]),
        ("ops-key", &["news", "newsletter", "other-a", "other-b", "shop-a", "shop-b", "shopping"]),
    ] {
        let list = ask(&app, key, ("GET", "/collections"), &Brought::None).await;
        assert_eq!(names(&list), expected, "{key}");
    }
    // A list of collections widens no scope: the key of a reader reads.
    let put = ("POST", "/collections/shop-a/items");
    let refused = ask(&app, "reader-key", put, &Brought::Json(two())).await;
    refused.refusal(403, "forbidden");
    let rank = Brought::Json(json!({"collection": "shop-a", "query": "quake"}));
    assert_eq!(ask(&app, "reader-key", ("POST", "/rank"), &rank).await.status, 200);
    // A match that adds nothing reads.
    let line = "{\"id\":\"c\",\"text\":\"quake\"}\n".to_owned();
    let body = |add: &str| json!({"items": [{"id": "c", "text": "quake"}], "add": add});
    let forms = |add: &str| {
        [
            ("/collections/shop-a/match".to_owned(), Brought::Json(body(add))),
            (format!("/collections/shop-a/match?add={add}"), Brought::Lines(line.clone())),
        ]
    };
    for (path, brought) in forms("none") {
        let found = ask(&app, "reader-key", ("POST", &path), &brought).await;
        assert_eq!((found.status.as_u16(), found.text().contains("\"new\"")), (200, true));
    }
    for (path, brought) in forms("new").into_iter().chain(forms("all")) {
        let refused = ask(&app, "reader-key", ("POST", &path), &brought).await;
        refused.refusal(403, "forbidden");
    }
    // A limited admin key steers the service all the same.
    let reloaded = ask(&app, "steward-key", ("POST", "/-/reload"), &Brought::None).await;
    assert_ne!(reloaded.json()["code"], "forbidden", "{}", reloaded.text());
    // What is not by name stays open to every key.
    let ranked = Brought::Json(json!({"candidates": ["quake"], "query": "quake"}));
    assert_eq!(ask(&app, "reader-key", ("POST", "/rank"), &ranked).await.status, 200);
    // The page of counters, which needs no key, names no collection.
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_collection_items{collection=\"_other\"} 14\n"), "{page}");
    for name in ["newsletter", "other-a", "shopping"] {
        assert!(!page.contains(name), "{name} is named by /metrics");
    }
}

#[tokio::test]
async fn a_reload_takes_names_away_and_gives_others() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |settings| {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
        settings.model[0].path = model.into();
    });
    fill(&app, &["shop-a", "other-a"]).await;
    let look = |name: &'static str| {
        let app = app.clone();
        async move { ask(&app, "shop-key", ("GET", name), &Brought::None).await.status.as_u16() }
    };
    assert_eq!(look("/collections/shop-a").await, 200);
    assert_eq!(look("/collections/other-a").await, 404);
    let moved = line("shop", Scope::Collection, "shop-key").unwrap() + ":other-a";
    let ops = line("ops", Scope::Admin, "ops-key").unwrap();
    std::fs::write(folder.path().join("keys"), format!("{moved}\n{ops}\n")).unwrap();
    let reloaded = ask(&app, "ops-key", ("POST", "/-/reload"), &Brought::None).await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(look("/collections/shop-a").await, 404);
    assert_eq!(look("/collections/other-a").await, 200);
}

/// So many items of ten words.
fn items(from: usize, count: usize) -> Brought {
    let item = |at: usize| json!({"id": format!("i{at}"), "text": "quake in the city of new york"});
    Brought::Json(json!({"items": (from..from + count).map(item).collect::<Vec<_>>()}))
}

#[tokio::test]
async fn what_a_limited_key_reaches_holds_no_more_items_than_its_quota() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |settings| settings.collection_items_per_key = Some(10));
    fill(&app, &["shop-a", "shop-b", "other-a"]).await;
    let put =
        async |key: &str, path: &str, body: &Brought| ask(&app, key, ("POST", path), body).await;
    // Two and two are there; what reaches the bound is taken, what passes it is not.
    let full = put("shop-key", "/collections/shop-a/items", &items(0, 6)).await;
    assert_eq!(full.status, 200, "{}", full.text());
    for (path, body) in [
        ("/collections/shop-a/items", items(100, 1)),
        ("/collections/shop-b/items", items(100, 1)),
        ("/collections/shop-b/match", items(100, 1)),
    ] {
        let refused = put("shop-key", path, &body).await;
        let problem = refused.refusal(507, "collection_full");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`collection_items_per_key`"), "{detail}");
        assert!(detail.contains("11 items; the limit is 10"), "{detail}");
    }
    let one = Brought::Json(json!({"text": "quake"}));
    let path = "/collections/shop-b/items/fresh";
    let refused = ask(&app, "shop-key", ("PUT", path), &one).await;
    refused.refusal(507, "collection_full");
    let lines = Brought::Lines("{\"id\":\"fresh\",\"text\":\"quake\"}\n".to_owned());
    let told = put("shop-key", "/collections/shop-b/match", &lines).await;
    assert!(told.text().contains("collection_full"), "{}", told.text());
    // What replaces an item, or pushes an old one out, adds none.
    let replaced = put("shop-key", "/collections/shop-a/items", &items(0, 6)).await;
    assert_eq!(replaced.json()["replaced"], 6, "{}", replaced.text());
    let kept = Brought::Json(json!({"max_items": 8}));
    let set = ask(&app, "shop-key", ("PUT", "/collections/shop-a"), &kept).await;
    assert_eq!(set.status, 200, "{}", set.text());
    let pushed = put("shop-key", "/collections/shop-a/items", &items(200, 3)).await;
    assert_eq!((&pushed.json()["added"], &pushed.json()["left"]), (&json!(3), &json!(3)));
    // Other keys have their own, and one without a list has none.
    assert_eq!(put("other-key", "/collections/other-a/items", &items(0, 8)).await.status, 200);
    let refused = put("other-key", "/collections/other-a/items", &items(50, 1)).await;
    refused.refusal(507, "collection_full");
    assert_eq!(put("ops-key", "/collections/other-a/items", &items(50, 5)).await.status, 200);
    // Who takes items out has room again.
    let gone = ask(&app, "shop-key", ("DELETE", "/collections/shop-b"), &Brought::None).await;
    assert_eq!(gone.status, 200);
    let fresh = ("PUT", "/collections/shop-c");
    assert_eq!(ask(&app, "shop-key", fresh, &Brought::Json(json!({}))).await.status, 200);
    assert_eq!(put("shop-key", "/collections/shop-c/items", &items(0, 2)).await.status, 200);
    let refused = put("shop-key", "/collections/shop-c/items", &items(5, 1)).await;
    refused.refusal(507, "collection_full");
}

#[tokio::test]
async fn a_quota_holds_against_many_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |settings| settings.collection_items_per_key = Some(50));
    fill(&app, &["shop-a", "shop-b", "shop-c", "shop-d"]).await;
    let writes = (0..40).map(|at| {
        let app = app.clone();
        let path = format!("/collections/shop-{}/items", ["a", "b", "c", "d"][at % 4]);
        async move {
            let body = items(1000 * at, 3);
            ask(&app, "shop-key", ("POST", &path), &body).await.status.as_u16()
        }
    });
    let statuses = futures_util::future::join_all(writes).await;
    let taken = statuses.iter().filter(|status| **status == 200).count();
    // Eight are there; fourteen times three more fit.
    assert_eq!(taken, 14, "{statuses:?}");
    let list = ask(&app, "shop-key", ("GET", "/collections"), &Brought::None).await.json();
    let all = list["collections"].as_array().unwrap().iter();
    let sum: u64 = all.map(|one| one["items"].as_u64().unwrap()).sum();
    assert_eq!(sum, 50);
}

#[tokio::test]
async fn quotas_of_bytes_and_of_collections() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |settings| {
        settings.collection_bytes_per_key = Some(64 << 10);
        settings.collections_per_key = Some(2);
    });
    let make = async |key: &str, name: &str| {
        let path = format!("/collections/{name}");
        ask(&app, key, ("PUT", &path), &Brought::Json(json!({}))).await
    };
    assert_eq!(make("shop-key", "shop-a").await.status, 200);
    assert_eq!(make("shop-key", "shop-b").await.status, 200);
    assert_eq!(make("shop-key", "shop-b").await.status, 200, "one that is there");
    let problem = make("shop-key", "shop-c").await.refusal(507, "collection_full");
    assert!(problem["detail"].as_str().unwrap().contains("`collections_per_key`"), "{problem}");
    assert_eq!(make("ops-key", "shop-c").await.status, 200);
    assert_eq!(make("other-key", "other-a").await.status, 200);
    let text = "quake ".repeat(1000);
    let long = |id: usize| Brought::Json(json!({"items": [{"id": id, "text": text}]}));
    let mut taken = 0;
    let refused = loop {
        let path = format!("/collections/shop-{}/items", ["a", "b", "c"][taken % 3]);
        let put = ask(&app, "shop-key", ("POST", &path), &long(taken)).await;
        if put.status != 200 {
            break put;
        }
        taken += 1;
        assert!(taken < 20, "no end of it");
    };
    assert_eq!(taken, 10, "ten of 6 KB fit into 64 KiB");
    let problem = refused.refusal(507, "collection_full");
    assert!(problem["detail"].as_str().unwrap().contains("`collection_bytes_per_key`"));
    // What a patch adds is counted, and not what it takes out.
    let patched = async |data: Value| {
        let body = Brought::Json(json!({"data": data}));
        ask(&app, "shop-key", ("PATCH", "/collections/shop-a/items/0"), &body).await
    };
    let long_data = patched(json!({"a": "x".repeat(4000)})).await;
    long_data.refusal(507, "collection_full");
    assert_eq!(patched(json!({"a": "x"})).await.status, 200);
    assert_eq!(patched(Value::Null).await.status, 200);
    // The same text again takes the place of the one that is there.
    let put = ask(&app, "shop-key", ("POST", "/collections/shop-a/items"), &long(0)).await;
    assert_eq!(put.json()["replaced"], 1, "{}", put.text());
    // An item takes more once its event has a longer name.
    let own = |id: &str| json!({"id": id, "text": "t", "event": {"id": id, "size": 1}});
    let long_name = "e".repeat(250);
    let mut items: Vec<Value> = (0..130).map(|id| own(&id.to_string())).collect();
    items.push(own(&long_name));
    let items = Brought::Json(json!({"items": items}));
    assert_eq!(make("other-key", "other-a").await.status, 200);
    let put = ask(&app, "other-key", ("POST", "/collections/other-a/items"), &items).await;
    assert_eq!(put.status, 200, "{}", put.text());
    let merged = async |into: &str, events: Vec<String>| {
        let path = format!("/collections/other-a/events/{into}/merge");
        ask(&app, "other-key", ("POST", &path), &Brought::Json(json!({"events": events}))).await
    };
    let names = || (1..130).map(|id| id.to_string()).collect::<Vec<_>>();
    let problem = merged(&long_name, names()).await.refusal(507, "collection_full");
    assert!(problem["detail"].as_str().unwrap().contains("`collection_bytes_per_key`"));
    assert_eq!(merged(&long_name, names()[..3].to_vec()).await.status, 200);
    assert_eq!(merged("0", names()[3..].to_vec()).await.status, 200);
}

/// What the oldest items leave free is what they took, and not what the others did.
#[tokio::test]
async fn a_quota_of_bytes_counts_what_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 256 << 10;
    let app = tenants(&folder, |settings| settings.collection_bytes_per_key = Some(limit));
    let path = "/collections/shop-a";
    ask(&app, "ops-key", ("PUT", path), &Brought::Json(json!({"max_items": 40}))).await;
    let items = async |from: usize, bytes: usize| {
        let item = |at: usize| json!({"id": from + at, "text": "x".repeat(bytes)});
        let items: Vec<Value> = (0..20).map(item).collect();
        let path = format!("{path}/items");
        ask(&app, "shop-key", ("POST", &path), &Brought::Json(json!({"items": items}))).await
    };
    assert_eq!(items(0, 100).await.status, 200);
    assert_eq!(items(100, 10_000).await.status, 200);
    items(200, 6_000).await.refusal(507, "collection_full");
    assert_eq!(items(200, 100).await.status, 200);
    let told = ask(&app, "ops-key", ("GET", path), &Brought::None).await.json();
    assert!(told["bytes"].as_u64().unwrap() <= limit as u64, "{told}");
}

#[tokio::test]
async fn a_merge_needs_room_for_the_names_that_its_items_get() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |settings| settings.collection_bytes_per_key = Some(64 << 10));
    let send = async |verb: &str, path: &str, body: Value| {
        let path = format!("/collections/shop-a{path}");
        ask(&app, "shop-key", (verb, &path), &Brought::Json(body)).await
    };
    ask(&app, "ops-key", ("PUT", "/collections/shop-a"), &Brought::Json(json!({}))).await;
    let event = |at: usize| format!("{}{}", "e".repeat(200), at % 2);
    let item = |at: usize| json!({"id": at, "text": "quake", "event": event(at)});
    let items: Vec<Value> = (0..40).map(item).collect();
    assert_eq!(send("POST", "/items", json!({ "items": items })).await.status, 200);
    let mut filled = 0;
    while send("PUT", &format!("/items/x{filled}"), json!({"text": "x".repeat(1000)})).await.status
        == 200
    {
        filled += 1;
    }
    let (path, body) = (format!("/events/{}/merge", event(0)), json!({"events": [event(1)]}));
    let problem = send("POST", &path, body.clone()).await.refusal(507, "collection_full");
    assert!(
        problem["detail"].as_str().unwrap().contains("`collection_bytes_per_key`"),
        "{problem}"
    );
    for at in 0..filled {
        send("DELETE", &format!("/items/x{at}"), json!({})).await;
    }
    assert_eq!(send("POST", &path, body).await.status, 200);
}

#[tokio::test]
async fn a_page_that_was_led_here_reaches_no_collection_of_a_service_without_keys() {
    let app = TestApp::with(|settings| {
        settings.allowed_hosts = vec!["texts.example.org".to_owned()];
        settings.cors_origins = vec!["https://app.example".to_owned()];
    });
    let send = async |fields: &[(&str, &str)], (verb, path): (&str, &str), body: &Brought| {
        let mut request = Request::builder().method(verb).uri(path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let body = match body {
            Brought::None => Body::empty(),
            Brought::Json(body) => Body::from(body.to_string()),
            Brought::Lines(lines) => Body::from(lines.clone()),
        };
        app.send(request.body(body).unwrap()).await
    };
    let json = ("content-type", "application/json");
    let lines = ("content-type", "application/x-ndjson");
    let made = send(&[json], ("PUT", "/collections/notes"), &Brought::Json(json!({}))).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let put = ("POST", "/collections/notes/items");
    assert_eq!(send(&[json], put, &Brought::Json(two())).await.status, 200);
    let mut all = requests();
    all.push(("GET", "/collections", Brought::None));
    let led: [&[(&str, &str)]; 4] = [
        &[("host", "evil.example")],
        &[("host", "evil.example:8080"), ("origin", "http://evil.example:8080")],
        &[("host", "127.0.0.1:8080"), ("origin", "https://evil.example")],
        &[("host", "localhost:8080"), ("origin", "null")],
    ];
    for fields in led {
        for (verb, path, body) in &all {
            let media = if matches!(body, Brought::Lines(_)) { lines } else { json };
            let (path, body) = about("notes", path, body);
            let refused = send(&[fields, &[media]].concat(), (verb, &path), &body).await;
            let problem = refused.refusal(403, "forbidden");
            assert!(problem["detail"].as_str().unwrap().contains("`allowed_hosts`"), "{problem}");
        }
        // What needs no collection tells a page nothing that it did not bring.
        let pair = Brought::Json(json!({"a": "quake", "b": "city"}));
        let scored = send(&[fields, &[json]].concat(), ("POST", "/similarity"), &pair).await;
        assert_eq!(scored.status, 200, "{}", scored.text());
    }
    let left = send(&[], ("GET", "/collections/notes/items"), &Brought::None).await;
    assert_eq!(left.json()["total"], 2);
    let ours: [&[(&str, &str)]; 6] = [
        &[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")],
        &[("host", "cognate:8080"), ("x-forwarded-for", "203.0.113.9")],
        &[("host", "192.0.2.7")],
        &[("host", "texts.example.org"), ("origin", "https://texts.example.org")],
        &[("host", "127.0.0.1:8080"), ("origin", "https://texts.example.org")],
        &[("host", "127.0.0.1:8080"), ("origin", "https://app.example")],
    ];
    for fields in ours {
        let rank = Brought::Json(json!({"collection": "notes", "query": "quake"}));
        let ranked = send(&[fields, &[json]].concat(), ("POST", "/rank"), &rank).await;
        assert_eq!(ranked.status, 200, "{fields:?}: {}", ranked.text());
        let put = send(&[fields, &[json]].concat(), put, &Brought::Json(two())).await;
        assert_eq!(put.status, 200, "{fields:?}: {}", put.text());
    }
}

/// With a key nobody is led here by a page: a browser sends none of itself.
#[tokio::test]
async fn with_keys_any_name_of_the_service_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    let app = tenants(&folder, |_| ());
    fill(&app, &["shop-a"]).await;
    let request = Request::get("/collections/shop-a")
        .header("authorization", "Bearer shop-key")
        .header("host", "texts.example.com")
        .body(Body::empty());
    assert_eq!(app.send(request.unwrap()).await.status, 200);
}
