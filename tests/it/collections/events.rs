//! Events as things: listed, looked at with their items, ranked within, merged, split, deleted.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::killed::ask;
use crate::collections::{call, done};
use crate::support;
use crate::support::app::TestApp;
use crate::support::command::{cognate, stderr};
use crate::support::process::Process;

/// A day of three stories and one text that is like none, in minutes of the first of May 2024.
const POSTS: [(&str, u32, &str); 9] = [
    ("q1", 0, "strong earthquake shakes Lima this morning"),
    ("f1", 10, "river floods the old town of Passau"),
    ("q2", 20, "earthquake in Lima, people run into the streets"),
    ("c1", 30, "my cat sleeps on the sofa"),
    ("q3", 100, "Lima earthquake: houses damaged"),
    ("q4", 110, "earthquake shakes Lima, several hurt"),
    ("f2", 200, "Passau old town under water as river floods"),
    ("q5", 120, "aftershock of the Lima earthquake shakes houses"),
    ("f3", 210, "floods in the old town of Passau, river still rising"),
];

/// The body of a match.
fn posts(posts: &[(&str, u32, &str)]) -> Value {
    let item = |(id, minute, text): &(&str, u32, &str)| {
        let attributes = json!({"source": format!("s{}", minute % 50)});
        json!({"id": id, "text": text, "time": 1_714_521_600 + 60 * minute, "attributes": attributes})
    };
    json!({"items": posts.iter().map(item).collect::<Vec<_>>()})
}

async fn matched() -> TestApp {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/day", Some(&json!({}))).await;
    let found = done(&app, "POST", "/collections/day/match", Some(&posts(&POSTS))).await;
    let began = |item: &Value| item["event"].as_str().map(str::to_owned);
    let events: Vec<_> = found["results"].as_array().unwrap().iter().filter_map(began).collect();
    assert_eq!(events, ["q1", "f1", "q1", "c1", "q1", "q1", "f1", "q1", "f1"]);
    app
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(|entry| entry["id"].as_str()).collect()
}

#[tokio::test]
async fn events_are_listed_with_their_sizes_times_and_names() {
    let app = matched().await;
    let list = done(&app, "GET", "/collections/day/events", None).await;
    assert_eq!((ids(&list["events"]), &list["total"]), (vec!["f1", "q1"], &json!(2)));
    let quake = &list["events"][1];
    assert_eq!(quake["size"], 5);
    assert_eq!(quake["first"], "2024-05-01T00:00:00Z");
    assert_eq!(quake["last"], "2024-05-01T02:00:00Z");
    assert_eq!(quake["per_hour"], 2.5);
    assert_eq!(quake["peak"], json!({"size": 3, "from": "2024-05-01T01:40:00Z"}));
    let words = |event: &Value| event["words"].as_array().unwrap().clone();
    let all: Vec<String> = words(quake).iter().map(|word| word.as_str().unwrap().into()).collect();
    assert!(all.iter().any(|name| name.contains("lima")), "{all:?}");
    assert!(all.iter().all(|name| !["the", "this", "into"].contains(&name.as_str())), "{all:?}");
    // Of an event of words of every day most is chatter; both tell it of all of their texts.
    let all = done(&app, "GET", "/collections/day/events?least=1&sort=chatter", None).await;
    assert_eq!(ids(&all["events"]).last(), Some(&"c1"), "{all}");
    let chatter: Vec<f64> = all["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["chatter"].as_f64().unwrap())
        .collect();
    assert!(chatter.is_sorted() && chatter[0] < 0.6 && chatter[2] > 0.62, "{chatter:?}");
    let one = done(&app, "GET", "/collections/day/events/c1", None).await;
    assert_eq!(one["chatter"], chatter[2]);

    // Both words stand together wherever one of them stands.
    assert!(words(&list["events"][0]).contains(&json!("old town")), "{list}");
    assert!(POSTS.iter().any(|(id, _, text)| id.starts_with('q') && quake["text"] == *text));

    let listed = async |query: &str| {
        let list = done(&app, "GET", &format!("/collections/day/events?{query}"), None).await;
        (ids(&list["events"]).join(" "), list["total"].as_u64().unwrap())
    };
    assert_eq!(listed("sort=size&least=1").await, ("q1 f1 c1".into(), 3));
    assert_eq!(listed("sort=first&least=1").await, ("c1 f1 q1".into(), 3));
    assert_eq!(listed("sort=distinct&distinct=source&least=1").await, ("q1 f1 c1".into(), 3));
    assert_eq!(listed("sort=peak&limit=1").await, ("q1".into(), 2));
    assert_eq!(listed("sort=per_hour&offset=1").await, ("f1".into(), 2));
    assert_eq!(listed("since=2024-05-01T03:00:00Z").await, ("f1".into(), 1));
    assert_eq!(listed("least=6").await, (String::new(), 0));
    assert_eq!(listed("query=quake+in+Lima&least=1&limit=1").await, ("q1".into(), 3));
    assert_eq!(listed("query=town+under+water").await, ("f1 q1".into(), 2));
    // Where all texts are the event there is nothing to tell it from, and it still has a name.
    let one = done(&app, "GET", "/collections/day/events?limit=1&sort=size", None).await;
    assert!(!words(&one["events"][0]).is_empty());
    let sources = done(&app, "GET", "/collections/day/events?distinct=source", None).await;
    let of = |at: usize| sources["events"][at]["distinct"].as_u64();
    assert_eq!((of(0), of(1)), (Some(2), Some(3)));
    let one = done(&app, "GET", "/collections/day/events/q1?distinct=none", None).await;
    assert_eq!((&one["distinct"], quake.get("distinct")), (&json!(0), None));
    for wrong in [
        "limit=101",
        "sort=distinct",
        "sort=oldest",
        "since=noon",
        "query=",
        "query=a&sort=size",
        "leas=1",
        "model=none",
        "filter={",
    ] {
        let answer = call(&app, "GET", &format!("/collections/day/events?{wrong}"), None).await;
        assert_eq!(answer.status.as_u16() / 100, 4, "{wrong}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_event_has_its_items_and_rankings_stay_within_it() {
    let app = matched().await;
    let event = done(&app, "GET", "/collections/day/events/f1?limit=2&offset=1", None).await;
    assert_eq!((event["size"].as_u64(), ids(&event["items"])), (Some(3), vec!["f2", "f3"]));
    let hours = [(1, "2024-05-01T00:00:00Z"), (2, "2024-05-01T03:00:00Z")];
    let hours = hours.map(|(size, from)| json!({"size": size, "from": from}));
    assert_eq!(event["hours"], json!(hours), "of all of its items");
    let similar = done(&app, "GET", "/collections/day/events/f1/similar?least=1", None).await;
    assert_eq!((ids(&similar["events"]).len(), &similar["total"]), (2, &json!(2)));
    assert!(similar["events"][0]["score"].as_f64() < Some(0.3), "{similar}");
    let split = json!({"ids": ["f2"]});
    done(&app, "POST", "/collections/day/events/f1/split", Some(&split)).await;
    for (one, other) in [("f1", "f2"), ("f2", "f1")] {
        let path = format!("/collections/day/events/{one}/similar?least=1&limit=1");
        let similar = done(&app, "GET", &path, None).await;
        assert_eq!(ids(&similar["events"]), [other]);
        assert!(similar["events"][0]["score"].as_f64() > Some(0.6), "{similar}");
    }
    let whole = json!({"events": ["f2"]});
    done(&app, "POST", "/collections/day/events/f1/merge", Some(&whole)).await;
    let items = done(&app, "GET", "/collections/day/items?event=q1", None).await;
    assert_eq!(ids(&items["items"]), ["q1", "q2", "q3", "q4", "q5"], "as they were added");
    let question = json!({"query": "water in the streets", "collection": "day", "event": "q1"});
    let ranked = done(&app, "POST", "/rank", Some(&question)).await;
    assert_eq!(ranked["items"], 5);
    assert!(ranked["results"].as_array().unwrap().iter().all(|one| one["event"] == "q1"));
    let list = json!({"query": "a", "candidates": ["b"], "event": "q1"});
    assert_eq!(
        call(&app, "POST", "/rank", Some(&list)).await.json()["errors"][0]["pointer"],
        "/event"
    );
    assert_eq!(call(&app, "GET", "/collections/day/events/q2", None).await.status, 404);
    assert_eq!(call(&app, "GET", "/collections/none/events", None).await.status, 404);

    let gone = done(&app, "DELETE", "/collections/day/events/q1", None).await;
    assert_eq!(gone["removed"], 5);
    assert_eq!(call(&app, "DELETE", "/collections/day/events/q1", None).await.status, 404);
    let left = done(&app, "GET", "/collections/day/events?least=1", None).await;
    assert_eq!(ids(&left["events"]), ["f1", "c1"]);
    let request = Request::builder().uri("/collections/day/items").body(Body::empty()).unwrap();
    assert_eq!(app.send(request).await.json()["total"], 4);
}

/// Whichever of both is first: an item that was put without an event belongs to none that is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_deleted_with_the_items_that_it_has_then() {
    let app = matched().await;
    for _ in 0..50 {
        let both = json!({"items": [
            {"id": "a", "text": "quake", "event": "a"}, {"id": "b", "text": "quakes", "event": "a"},
        ]});
        done(&app, "POST", "/collections/day/items", Some(&both)).await;
        let fresh = json!({"text": "a garden"});
        let (deleted, put) = tokio::join!(
            call(&app, "DELETE", "/collections/day/events/a", None),
            done(&app, "PUT", "/collections/day/items/b", Some(&fresh)),
        );
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        let counted = |answer: &Value, what: &str| answer[what].as_u64().unwrap();
        assert_eq!(counted(&put, "replaced") + counted(&deleted.json(), "removed"), 2);
        done(&app, "GET", "/collections/day/items/b", None).await;
    }
}

#[tokio::test]
async fn the_score_of_an_event_is_a_number_that_is_answered() {
    let app = matched().await;
    for (score, status) in [("1e39", 422), ("-1e39", 422), ("0.5", 200)] {
        let event = format!(r#"{{"id": "a", "size": 2, "score": {score}}}"#);
        let item: Value =
            serde_json::from_str(&format!(r#"{{"text": "quake", "event": {event}}}"#)).unwrap();
        let put = call(&app, "PUT", "/collections/day/items/b", Some(&item)).await;
        assert_eq!(put.status, status, "{score}: {}", put.text());
    }
}

/// The event of one text, whether it is new and whether it was told before.
fn told(answer: &Value) -> (&str, bool, bool) {
    let one = &answer["results"][0];
    (one["event"].as_str().unwrap(), one["new"] == true, one["repeated"] == true)
}

#[tokio::test]
async fn events_are_merged_and_split_and_later_texts_join_what_they_are_then() {
    let app = matched().await;
    let path = |rest: &str| format!("/collections/day/{rest}");
    let matching = async |one: (&str, u32, &str)| {
        done(&app, "POST", &path("match"), Some(&posts(&[one]))).await
    };
    let cat = |id: &'static str| (id, 300, POSTS[3].2);

    let body = json!({"events": ["c1"]});
    let merged = done(&app, "POST", &path("events/f1/merge?limit=3"), Some(&body)).await;
    assert_eq!((merged["id"].as_str(), merged["size"].as_u64()), (Some("f1"), Some(4)));
    assert_eq!(ids(&merged["items"]), ["f1", "c1", "f2"], "by time");
    let whole = done(&app, "GET", &path("events/f1?limit=3"), None).await;
    assert_eq!(whole, merged);
    assert_eq!(call(&app, "GET", &path("events/c1"), None).await.status, 404);
    let items = done(&app, "GET", &path("items"), None).await;
    assert_eq!(ids(&items["items"]), POSTS.map(|(id, ..)| id), "places are kept");
    assert_eq!(told(&matching(cat("c2")).await), ("f1", false, false));
    assert_eq!(told(&matching(POSTS[3]).await), ("f1", false, true));
    assert_eq!(told(&matching(POSTS[1]).await), ("f1", true, true), "it is its own as before");
    let question = json!({"query": "cat", "collection": "day", "event": "f1"});
    assert_eq!(done(&app, "POST", "/rank", Some(&question)).await["items"], 5);

    let body = json!({"ids": ["c2", "c1"]});
    let split = done(&app, "POST", &path("events/f1/split"), Some(&body)).await;
    assert_eq!((split["id"].as_str(), ids(&split["items"])), (Some("c1"), vec!["c1", "c2"]));
    let left = done(&app, "GET", &path("events/f1"), None).await;
    assert_eq!(ids(&left["items"]), ["f1", "f2", "f3"]);
    assert_eq!(told(&matching(cat("c3")).await), ("c1", false, false));
    assert_eq!(told(&matching(POSTS[3]).await), ("c1", true, true));
    assert_eq!(told(&matching(("f4", 310, POSTS[1].2)).await), ("f1", false, false));

    let many: Vec<usize> = (0..10_001).collect();
    let refused = [
        ("events/f1/merge", json!({"events": []}), 422, "/events"),
        ("events/f1/merge", json!({"events": many}), 422, "/events"),
        ("events/f1/merge", json!({"events": ["q1", "q2"]}), 422, "/events/1"),
        ("events/f1/merge", json!({"events": ["f1"]}), 422, "/events/0"),
        ("events/f1/merge", json!({"event": "q1"}), 422, "/event"),
        ("events/f2/merge", json!({"events": ["q1"]}), 404, ""),
        ("events/f1/split", json!({"ids": ["f2", "q1"]}), 422, "/ids/1"),
        ("events/f1/split", json!({"ids": ["f1"]}), 422, "/ids"),
        ("events/f1/split", json!({"ids": ["f1", "f2", "f3", "f4"]}), 422, "/ids"),
        ("events/none/split", json!({"ids": ["f1"]}), 404, ""),
    ];
    let before = done(&app, "GET", &path("events?least=1"), None).await;
    for (at, body, status, pointer) in refused {
        let answer = call(&app, "POST", &path(at), Some(&body)).await;
        assert_eq!(answer.status, status, "{at} {}", answer.text());
        let told = answer.json()["errors"][0]["pointer"].as_str().unwrap_or("").to_owned();
        assert_eq!(told, pointer, "{at} {}", answer.text());
    }
    assert_eq!(done(&app, "GET", &path("events?least=1"), None).await, before);
}

/// A server of the default model with its collections in a folder.
fn serve(data: &Path) -> Process {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    Process::serve(model.as_ref(), &["--data".to_owned(), data.to_str().unwrap().to_owned()])
}

fn run(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = cognate(folder, &[], arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    output.stdout
}

#[test]
fn merged_and_split_events_outlive_a_kill_a_rewritten_log_and_a_move() {
    let folder = tempfile::tempdir().unwrap();
    let (path, data) = (folder.path(), folder.path().join("data"));
    let mut process = serve(&data);
    let address = process.address;
    ask(address, "PUT", "/collections/day", "{}");
    ask(address, "POST", "/collections/day/match", &posts(&POSTS).to_string());
    ask(address, "POST", "/collections/day/events/q1/merge", r#"{"events": ["f1", "c1"]}"#);
    ask(address, "POST", "/collections/day/events/q1/split", r#"{"ids": ["c1", "f1", "f2"]}"#);
    let seen = |address| {
        let events = ask(address, "GET", "/collections/day/events?least=1&sort=first", "");
        let items = ask(address, "GET", "/collections/day/items", "");
        (events["events"].clone(), items["items"].clone())
    };
    let before = seen(address);
    assert_eq!(ids(&before.0), ["f1", "q1"]);
    process.signal("KILL");
    process.wait(Duration::from_secs(10));
    let process = serve(&data);
    assert_eq!(seen(process.address), before);
    drop(process);
    run(path, &["collection", "compact", "day", "--data", "data"]);
    let all = run(path, &["collection", "export", "day", "--data", "data"]);
    std::fs::write(path.join("all.ndjson"), &all).unwrap();
    run(path, &["collection", "create", "day", "--data", "other"]);
    run(path, &["collection", "load", "day", "all.ndjson", "--data", "other"]);
    assert_eq!(run(path, &["collection", "export", "day", "--data", "other"]), all);
    // Both go on alike.
    let goes_on = [data, path.join("other")].map(|data| {
        let process = serve(&data);
        assert_eq!(seen(process.address), before);
        let more = [("f9", 400, POSTS[1].2), ("c9", 400, POSTS[3].2), ("c1", 30, POSTS[3].2)];
        ask(process.address, "POST", "/collections/day/match", &posts(&more).to_string())["results"]
            .clone()
    });
    let [one, other] = &goes_on;
    assert_eq!(one, other);
    let events: Vec<&Value> = one.as_array().unwrap().iter().map(|one| &one["event"]).collect();
    assert_eq!(events, ["f1", "f1", "f1"]);
}
