//! Events as things: listed, looked at with their items, ranked within, deleted.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support;
use crate::support::app::TestApp;

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

async fn matched() -> TestApp {
    let app = TestApp::of(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/day", Some(&json!({}))).await;
    let items: Vec<Value> = POSTS
        .iter()
        .map(|(id, minute, text)| json!({"id": id, "text": text, "time": 1_714_521_600 + 60 * minute}))
        .collect();
    let found = done(&app, "POST", "/collections/day/match", Some(&json!({"items": items}))).await;
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
    // Both words stand together wherever one of them stands.
    assert!(words(&list["events"][0]).contains(&json!("old town")), "{list}");
    assert!(POSTS.iter().any(|(id, _, text)| id.starts_with('q') && quake["text"] == *text));

    let listed = async |query: &str| {
        let list = done(&app, "GET", &format!("/collections/day/events?{query}"), None).await;
        (ids(&list["events"]).join(" "), list["total"].as_u64().unwrap())
    };
    assert_eq!(listed("sort=size&least=1").await, ("q1 f1 c1".into(), 3));
    assert_eq!(listed("sort=first&least=1").await, ("c1 f1 q1".into(), 3));
    assert_eq!(listed("sort=peak&limit=1").await, ("q1".into(), 2));
    assert_eq!(listed("sort=per_hour&offset=1").await, ("f1".into(), 2));
    assert_eq!(listed("since=2024-05-01T03:00:00Z").await, ("f1".into(), 1));
    assert_eq!(listed("least=6").await, (String::new(), 0));
    // Where all texts are the event there is nothing to tell it from, and it still has a name.
    let one = done(&app, "GET", "/collections/day/events?limit=1&sort=size", None).await;
    assert!(!words(&one["events"][0]).is_empty());
    for wrong in ["limit=101", "sort=oldest", "since=noon", "leas=1", "model=none", "filter={"] {
        let answer = call(&app, "GET", &format!("/collections/day/events?{wrong}"), None).await;
        assert_eq!(answer.status.as_u16() / 100, 4, "{wrong}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_event_has_its_items_and_rankings_stay_within_it() {
    let app = matched().await;
    let event = done(&app, "GET", "/collections/day/events/f1?limit=2&offset=1", None).await;
    assert_eq!((event["size"].as_u64(), ids(&event["items"])), (Some(3), vec!["f2", "f3"]));
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
