//! Texts matched against a collection: as `cognate events` finds them, in one request or many, as JSON
//! or as lines, and after the process began anew.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support;
use crate::support::app::TestApp;
use crate::support::command::{cognate, stderr, stdout};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");

/// Posts of a few events and of none, made of their words, so that some are alike and some are not.
fn posts(count: usize) -> Vec<(String, String)> {
    let subjects = [
        ["strong", "earthquake", "shakes", "the", "city", "of", "lima", "houses", "people", "run"],
        ["river", "floods", "old", "town", "passau", "streets", "under", "water", "again", "more"],
        ["fire", "burns", "forest", "near", "sydney", "smoke", "crews", "wind", "hot", "homes"],
        ["train", "leaves", "rails", "in", "santiago", "many", "hurt", "driver", "fast", "bend"],
    ];
    let alone = ["cat", "pancake", "football", "holiday", "music", "coffee", "exam", "rain", "bus"];
    let mut chance = support::Chance(11);
    let mut post = |at: usize| {
        let mut words = Vec::new();
        let subject = chance.below(6);
        for _ in 0..6 + chance.below(4) {
            words.push(match subjects.get(subject) {
                Some(subject) => subject[chance.below(subject.len())],
                None => alone[chance.below(alone.len())],
            });
        }
        (format!("t{at}"), words.join(" "))
    };
    (0..count).map(&mut post).collect()
}

fn items(posts: &[(String, String)], first: usize) -> Vec<Value> {
    let time = |at: usize| 1_714_557_600 + 60 * (first + at);
    let item = |(at, (id, text)): (usize, &(String, String))| json!({"id": id, "text": text, "time": time(at)});
    posts.iter().enumerate().map(item).collect()
}

/// What `cognate events` makes of them by the built binary: event, nearest, score, new.
fn events(posts: &[(String, String)], more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for item in items(posts, 0) {
        writeln!(lines, "{item}").unwrap();
    }
    std::fs::write(folder.path().join("posts.ndjson"), lines).unwrap();
    let arguments = [&["events", "posts.ndjson", "-o", "events.ndjson"], more].concat();
    let output = cognate(folder.path(), &[("COGNATE_MODEL", MODEL)], &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = std::fs::read_to_string(folder.path().join("events.ndjson")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn agrees(found: &Value, event: &Value) {
    assert_eq!(found["id"], event["id"]);
    assert_eq!(found["event"], event["event"], "{found} {event}");
    assert_eq!(found["new"], event["new"], "{found} {event}");
    let score = |value: &Value| value["score"].as_f64().map(|score| score as f32);
    assert_eq!(score(found), score(event), "{found} {event}");
}

/// What `cognate collection match` makes of them, however they are cut into runs.
fn matched_by_command(posts: &[(String, String)], more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let arguments = [&["collection"], arguments, &["--data", "data"]].concat();
        let output = cognate(folder.path(), &[("COGNATE_MODEL", MODEL)], &arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output).to_owned()
    };
    run(&["create", "news"]);
    let (mut found, mut first) = (Vec::new(), 0);
    for count in [0, 1, 120, usize::MAX] {
        let end = posts.len().min(first + count.min(posts.len()));
        let mut lines = String::new();
        for item in items(&posts[first..end], first) {
            writeln!(lines, "{item}").unwrap();
        }
        first = end;
        std::fs::write(folder.path().join("posts.ndjson"), lines).unwrap();
        let told = run(&[&["match", "news", "posts.ndjson"], more].concat());
        found.extend(told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    found
}

#[test]
fn the_command_matches_as_events_finds() {
    let posts = posts(200);
    let more = ["--last", "100", "--within", "90m"];
    let expected = events(&posts, &more);
    let found = matched_by_command(&posts, &more);
    assert_eq!(found.len(), expected.len());
    for (found, event) in found.iter().zip(&expected) {
        agrees(found, event);
    }
}

/// Half of a stream in one collection and half in the one that it was moved to, by files and over HTTP.
#[tokio::test]
async fn a_collection_that_was_moved_keeps_its_events() {
    let posts = posts(200);
    let more = ["--last", "100", "--within", "90m"];
    let expected = events(&posts, &more);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = |arguments: &[&str]| {
        let arguments = [&["collection"], arguments, &["--data", "data"]].concat();
        let output = cognate(path, &[("COGNATE_MODEL", MODEL)], &arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output).to_owned()
    };
    let lines =
        |items: Vec<Value>| items.iter().map(|item| format!("{item}\n")).collect::<String>();
    std::fs::write(path.join("first.ndjson"), lines(items(&posts[..100], 0))).unwrap();
    std::fs::write(path.join("rest.ndjson"), lines(items(&posts[100..], 100))).unwrap();
    run(&["create", "news"]);
    let first = run(&[&["match", "news", "first.ndjson"], &more[..]].concat());
    let exported = run(&["export", "news"]);
    std::fs::write(path.join("exported.ndjson"), &exported).unwrap();
    run(&["create", "moved"]);
    run(&["load", "moved", "exported.ndjson"]);
    assert_eq!(run(&["export", "moved"]), exported);
    // What was told is told again, and the rest is matched as if nothing had been moved.
    let told = |line: &str| -> Value {
        let mut told: Value = serde_json::from_str(line).unwrap();
        told["nearest"] = json!([]);
        told.as_object_mut().unwrap().retain(|name, _| !["repeated", "word"].contains(&&**name));
        told
    };
    let again = run(&["match", "moved", "first.ndjson"]);
    assert!(again.lines().map(told).eq(first.lines().map(told)), "{again}");
    let rest = run(&[&["match", "moved", "rest.ndjson"], &more[..]].concat());
    let found: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 100);
    found.iter().zip(&expected[100..]).for_each(|(found, event)| agrees(found, event));
    // The same over HTTP.
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let mut moved: Vec<Value> = exported.lines().map(parse).collect();
    let mut last = moved.pop().unwrap();
    let body = json!({"items": moved});
    done(&app, "POST", "/collections/news/items", Some(&body)).await;
    let id = last.as_object_mut().unwrap().remove("id").unwrap();
    let path = format!("/collections/news/items/{}", id.as_str().unwrap());
    done(&app, "PUT", &path, Some(&last)).await;
    assert_eq!(done(&app, "GET", &path, None).await["event"], last["event"]["id"]);
    let body = json!({"items": items(&posts[100..], 100), "last": 100, "within": "90m"});
    let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
    let found = answer["results"].as_array().unwrap();
    found.iter().zip(&expected[100..]).for_each(|(found, event)| agrees(found, event));
    // A text that is to be matched has no event, and an event has a name and a size.
    for (path, event) in [
        ("match", json!("t0")),
        ("items", json!({"id": "", "size": 1})),
        ("items", json!({"id": "a", "size": 0})),
        // No count that a window would carry beyond what it can hold.
        ("items", json!({"id": "a", "size": u64::MAX})),
        ("items", json!({"id": "a", "size": 2, "moved_at": 1})),
        (
            "items",
            json!({"id": "a", "size": 2, "moved_from": "b", "moved_at": 253_402_300_799_999_i64}),
        ),
    ] {
        let body = json!({"items": [{"id": "x", "text": "something", "event": event}]});
        let path = format!("/collections/news/{path}");
        let refused = call(&app, "POST", &path, Some(&body)).await.refusal(422, "invalid_field");
        assert_eq!(refused["errors"][0]["pointer"], "/items/0/event");
    }
}

#[tokio::test]
async fn a_stream_has_the_events_that_the_command_finds() {
    let posts = posts(300);
    let flags = ["--last", "100", "--within", "90m"];
    let plain = events(&posts, &flags);
    assert!(plain.iter().any(|line| line["new"] == false), "{plain:?}");
    let of_centres = events(&posts, &[&flags[..], &["--centre", "0.3"]].concat());
    assert_ne!(plain, of_centres);
    // However it is cut into requests.
    for (size, centre) in [(1, 0.0), (7, 0.0), (64, 0.3), (7, 0.3), (300, 0.0)] {
        let expected = if centre == 0.0 { &plain } else { &of_centres };
        let app = TestApp::with_model(support::default_model(), |_| ());
        done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
        let mut found = Vec::new();
        for (at, part) in posts.chunks(size).enumerate().take(40) {
            let mut body = json!({"items": items(part, at * size), "last": 100, "within": "90m"});
            body["centre"] = json!(centre);
            let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
            assert_eq!(answer["second"], "same-event");
            found.extend(answer["results"].as_array().unwrap().clone());
        }
        found.iter().zip(expected).for_each(|(found, event)| agrees(found, event));
        let told = done(&app, "GET", "/collections/news", None).await;
        assert_eq!(told["items"], found.len());
        let item = done(&app, "GET", "/collections/news/items/t30", None).await;
        assert_eq!(item["event"], expected[30]["event"]);
    }
}

#[tokio::test]
async fn lines_are_answered_as_they_come() {
    let posts = posts(200);
    let expected = events(&posts, &["--last", "50"]);
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let mut lines = String::new();
    for item in items(&posts, 0) {
        writeln!(lines, "{item}").unwrap();
    }
    lines.push_str("{\"id\":\"bad\"}\n{\"id\":\"empty\",\"text\":\" \"}\n");
    let request = Request::post("/collections/news/match?last=50");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let answer = app.send(request.unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 202, "{text}");
    found.iter().zip(&expected).for_each(|(found, event)| agrees(found, event));
    assert_eq!(found[200]["error"]["code"], "invalid_field");
    assert_eq!(
        (&found[201]["line"], &found[201]["error"]["code"]),
        (&json!(202), &json!("empty_text"))
    );
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 200);
    let metrics = app.get("/metrics").await.text();
    assert!(
        metrics.contains("cognate_collection_matches_total{collection=\"_other\"} 200\n"),
        "{metrics}"
    );
}

/// A window that takes longer than an answer may: what is late is not matched a second time.
#[tokio::test]
async fn lines_that_take_too_long_are_matched_once() {
    let app = TestApp::with_model(support::default_model(), |settings| {
        settings.compute_deadline_ms = 300
    });
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let text = "the river has left its bed and the city is under water ".repeat(40);
    for first in 0..20 {
        let item = |at: usize| json!({"id": 100 * first + at, "text": format!("{text} {at}")});
        let items: Vec<Value> = (0..100).map(item).collect();
        done(&app, "POST", "/collections/news/items", Some(&json!({"items": items}))).await;
    }
    let lines = "{\"id\":\"a\",\"text\":\"cats nap on sofas\"}\n{\"id\":\"b\",\"text\":\"cats nap on a sofa\"}\n";
    let request = Request::post("/collections/news/match?replace=true&last=10000");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let answer = app.send(request.unwrap()).await.text();
    let found: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&found[0]["event"], &found[0]["new"]), (&json!("a"), &json!(true)), "{answer}");
    assert_eq!((&found[1]["event"], &found[1]["new"]), (&json!("a"), &json!(false)), "{answer}");
    let item = done(&app, "GET", "/collections/news/items/b", None).await;
    assert_eq!(item["event"], "a");
    // Their event is named by a part of the 2,000 long texts, in the time that an answer may take.
    assert_eq!(done(&app, "GET", "/collections/news/events/a", None).await["size"], 2);
}

/// The setting that was found best on a labelled stream, as it is printed: as flags and as a query string.
#[tokio::test]
async fn what_eval_events_recommends_can_be_asked_for() {
    let posts = posts(200);
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "event\ttime\ttext\n".to_owned();
    for ((_, text), item) in posts.iter().zip(items(&posts, 0)) {
        writeln!(rows, "{}\t{}\t{text}", text.split(' ').next().unwrap(), item["time"]).unwrap();
    }
    std::fs::write(folder.path().join("gold.tsv"), rows).unwrap();
    let arguments = ["eval", "events", "gold.tsv", "--gold", "event", "--within", "90m"];
    let more = ["--last", "60", "--nearest", "3", "--json", "-"];
    let output =
        cognate(folder.path(), &[("COGNATE_MODEL", MODEL)], &[&arguments[..], &more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let mut asked = 0;
    for result in report["results"].as_array().unwrap() {
        let (Some(query), Some(flags)) = (result["query"].as_str(), result["flags"].as_str())
        else {
            assert!(["tf-idf", "MinHash"].contains(&result["name"].as_str().unwrap()), "{result}");
            continue;
        };
        let expected = events(&posts, &flags.split(' ').collect::<Vec<_>>());
        let app = TestApp::with_model(support::default_model(), |_| ());
        done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
        let lines: String = items(&posts, 0).iter().map(|item| format!("{item}\n")).collect();
        let request = Request::post(format!("/collections/news/match?{query}"));
        let request = request.header("content-type", "application/x-ndjson");
        let answer = app.send(request.body(Body::from(lines)).unwrap()).await.text();
        let found: Vec<Value> =
            answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.len(), posts.len(), "{query}: {answer}");
        found.iter().zip(&expected).for_each(|(found, event)| agrees(found, event));
        let mut names: Vec<&str> =
            found.iter().map(|found| found["event"].as_str().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), result["events"], "{query}");
        asked += 1;
    }
    assert_eq!(asked, 3);
}

/// A matcher is made anew from what was stored: after a restart, and after other settings were asked
/// for in between.
#[tokio::test]
async fn a_stream_goes_on_as_if_it_had_not_stopped() {
    let posts = posts(240);
    for centre in [0.0, 0.3] {
        goes_on(&posts, centre).await;
    }
}

async fn goes_on(posts: &[(String, String)], centre: f64) {
    let expected = events(posts, &["--last", "40", "--centre", &centre.to_string()]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut found = Vec::new();
    for (at, part) in posts.chunks(60).enumerate() {
        let data = data.clone();
        let app =
            TestApp::with_model(support::default_model(), |settings| settings.data = Some(data));
        if at == 0 {
            done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
        }
        for (half, part) in part.chunks(30).enumerate() {
            let first = at * 60 + half * 30;
            let body = json!({"items": items(part, first), "last": 40, "centre": centre});
            let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
            found.extend(answer["results"].as_array().unwrap().clone());
            // What comes and goes leaves the matcher to be made anew.
            let other = json!({"text": "something else", "time": "1999-01-01T00:00:00Z"});
            done(&app, "PUT", "/collections/news/items/other", Some(&other)).await;
            done(&app, "DELETE", "/collections/news/items/other", None).await;
        }
    }
    assert_eq!(found.len(), expected.len());
    found.iter().zip(&expected).for_each(|(found, event)| agrees(found, event));
}

/// Of four texts of the evening before one is within the hours that are looked back at; and of many
/// copies one is looked at.
#[tokio::test]
async fn an_event_that_slept_is_not_begun_anew() {
    let says = "Strong earthquake shakes the city of Lima tonight";
    let other = "Lima: a strong earthquake shakes houses in the city";
    let at = |hours: i64| 1_714_521_600 + 3600 * hours;
    let post =
        |id: usize, text: &str, time| json!({"id": format!("d{id}"), "text": text, "time": time});
    let slept = [
        post(0, "Strong earthquake shakes Lima, people run out of their houses", at(0)),
        post(1, other, at(0)),
        post(2, says, at(0)),
        post(3, "Another strong earthquake shakes the city of Lima", at(23)),
        // A copy of the only one that can speak for it, and one that is near to it.
        post(4, "Another strong earthquake shakes the city of Lima", at(26)),
        post(5, says, at(47)),
    ];
    let copies: Vec<Value> = (0..6).map(|id| post(id, says, at(0))).collect();
    for (posts, query, flags) in [
        (&slept[..], json!({"within": "24h"}), ["--within", "24h"]),
        (&copies, json!({"nearest": 1}), ["--nearest", "1"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = posts.iter().map(|post| format!("{post}\n")).collect();
        std::fs::write(folder.path().join("posts.ndjson"), lines).unwrap();
        let arguments = [&["events", "posts.ndjson"], &flags[..]].concat();
        let output = cognate(folder.path(), &[("COGNATE_MODEL", MODEL)], &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let app = TestApp::with_model(support::default_model(), |_| ());
        done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
        let mut body = query;
        body["items"] = json!(posts);
        let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
        for (found, line) in
            answer["results"].as_array().unwrap().iter().zip(stdout(&output).lines())
        {
            assert_eq!(found["event"], "d0", "{answer}");
            agrees(found, &serde_json::from_str(line).unwrap());
        }
    }
}

#[tokio::test]
async fn a_text_that_was_matched_has_its_first_answer() {
    let posts = posts(60);
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let matched = async |body: &Value| {
        let answer = done(&app, "POST", "/collections/news/match", Some(body)).await;
        answer["results"].as_array().unwrap().clone()
    };
    let mut first = matched(&json!({"items": items(&posts[..40], 0)})).await;
    // By other settings, too, and beside texts that are new.
    let again = matched(&json!({"items": items(&posts, 0), "threshold": 0.9, "nearest": 1})).await;
    for (told, again) in first.iter_mut().zip(&again) {
        (told["nearest"], told["repeated"]) = (json!([]), json!(true));
        told.as_object_mut().unwrap().remove("word");
        assert_eq!(told, again);
    }
    assert!(again[40..].iter().all(|answer| answer.get("repeated").is_none()), "{again:?}");
    // Another text is refused: with all that came with it, or as a line alone.
    let other = json!({"id": "t3", "text": "something else"});
    let fresh = json!({"id": "fresh", "text": "a text that is new"});
    let empty = json!({"id": "empty", "text": " "});
    let body = json!({"items": [empty, fresh, other]});
    let refused = call(&app, "POST", "/collections/news/match", Some(&body)).await;
    assert_eq!(refused.refusal(422, "other_text")["errors"][0]["pointer"], "/items/2/text");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 60);
    let lines = format!("{other}\n{fresh}\n{other}\n{fresh}\n");
    let request = Request::post("/collections/news/match");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let answer = app.send(request.unwrap()).await.text();
    let found: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let code = |at: usize| found[at]["error"]["code"].as_str();
    assert_eq!((code(0), code(2)), (Some("other_text"), Some("other_text")), "{answer}");
    assert_eq!((&found[1]["id"], &found[1]["repeated"]), (&json!("fresh"), &Value::Null));
    assert_eq!((&found[3]["id"], &found[3]["repeated"]), (&json!("fresh"), &json!(true)));
    // One that is empty holds up no others.
    let found = matched(&json!({"items": [empty, fresh]})).await;
    assert_eq!(
        (&found[0]["id"], &found[0]["error"]["code"]),
        (&json!("empty"), &json!("empty_text"))
    );
    assert_eq!((found.len(), &found[1]["repeated"]), (2, &json!(true)));
    // What was only put was told nothing.
    done(&app, "PUT", "/collections/news/items/put", Some(&json!({"text": "put, not matched"})))
        .await;
    let put = matched(&json!({"items": [{"id": "put", "text": "put, not matched"}]})).await;
    assert_eq!(put[0].get("repeated"), None);
    // By the flag it takes the other's place.
    let replaced = matched(&json!({"items": [other], "replace": true})).await;
    assert_eq!(replaced[0].get("repeated"), None);
    let item = done(&app, "GET", "/collections/news/items/t3", None).await;
    assert_eq!(item["text"], "something else");
}

#[tokio::test]
async fn texts_are_looked_up_or_added_where_they_are_new() {
    let posts = posts(120);
    let (first, rest) = posts.split_at(60);
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let matched = async |body: Value| {
        let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
        answer["results"].as_array().unwrap().clone()
    };
    matched(json!({"items": items(first, 0)})).await;
    // Looked up alone or together, each is what it is once it comes.
    let items_of = items(rest, 60);
    let all = matched(json!({"items": items_of, "add": "none"})).await;
    for (item, looked) in items_of.iter().zip(&all) {
        let mut alone = matched(json!({"items": [item], "add": "none"})).await;
        assert_eq!(&alone[0], looked);
        assert_eq!(looked["added"], false);
        alone[0].as_object_mut().unwrap().remove("added");
        if item["id"] == rest[0].0 {
            assert_eq!(matched(json!({"items": [item]})).await[0], alone[0]);
            done(&app, "DELETE", "/collections/news/items/t60", None).await;
        }
    }
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 60);
    // As lines: what is there already is told and left out, whether it was there before or came just now.
    let copies = rest.iter().chain(first).enumerate();
    let line = |(at, (_, text)): (usize, &(String, String))| {
        format!("{}\n", json!({"id": format!("c{at}"), "text": text}))
    };
    let lines: String = copies
        .chain(rest.iter().enumerate().map(|(at, post)| (200 + at, post)))
        .map(line)
        .collect();
    let request = Request::post("/collections/news/match?add=new");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let answer = app.send(request.unwrap()).await.text();
    let found: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 180, "{answer}");
    let mut added = 0;
    for (at, told) in found.iter().enumerate() {
        let is_copy = told.get("duplicate_of").is_some();
        assert_eq!(told.get("added"), is_copy.then_some(&json!(false)), "{told}");
        assert!(is_copy || at < 60, "{told}");
        added += usize::from(!is_copy);
    }
    assert!(added > 20, "{added}");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 60 + added);
}

#[tokio::test]
async fn a_replay_under_a_ttl_finds_its_events() {
    let posts = posts(200);
    let expected = events(&posts, &["--within", "50m"]);
    let app = TestApp::with_model(support::default_model(), |_| ());
    // The posts are of 2024, one a minute.
    done(&app, "PUT", "/collections/news", Some(&json!({"ttl": "50m"}))).await;
    for (at, part) in posts.chunks(7).enumerate() {
        let body = json!({"items": items(part, at * 7)});
        let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
        let found = answer["results"].as_array().unwrap();
        found.iter().zip(&expected[at * 7..]).for_each(|(found, event)| agrees(found, event));
        assert!(found.iter().all(|one| one.get("expired").is_none()), "{answer}");
    }
    let items_of = done(&app, "GET", "/collections/news", None).await["items"].as_u64().unwrap();
    assert!((40..=51).contains(&items_of), "{items_of}");
    // One that comes an hour late is matched, told and counted; so is one that is put.
    let late = items(&[("late".to_owned(), posts[199].1.clone())], 120);
    let answer = done(&app, "POST", "/collections/news/match", Some(&json!({"items": late}))).await;
    assert_eq!(answer["results"][0]["expired"], true, "{answer}");
    // Its copy is further from it than the `ttl`.
    assert!(answer["results"][0].get("duplicate_of").is_none(), "{answer}");
    let put = done(&app, "POST", "/collections/news/items", Some(&json!({"items": late}))).await;
    assert_eq!(put["expired"], 1, "{put}");
    call(&app, "GET", "/collections/news/items/late", None).await.refusal(404, "not_found");
    let metrics = app.get("/metrics").await.text();
    assert!(
        metrics.contains("cognate_collection_expired_total{collection=\"_other\"} 1\n"),
        "{metrics}"
    );
    // Rankings and listings go by the same clock.
    let listed = done(&app, "GET", "/collections/news/items?within=10m", None).await;
    assert!((9..=11).contains(&listed["total"].as_u64().unwrap()), "{listed}");
}

#[tokio::test]
async fn duplicates_neighbours_and_names_are_told() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let first = json!({"items": [{"id": "a", "text": "Strong earthquake shakes the city of Lima tonight"}]});
    done(&app, "POST", "/collections/news/items", Some(&first)).await;
    let body = json!({"items": [
        {"id": "b", "text": "strong earthquake shakes the city of lima tonight!"},
        {"id": "c", "text": "Lima: earthquake shakes houses in the city, strong"},
        {"id": "d", "text": "my cat sleeps on the keyboard again"},
    ]});
    let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
    let results = answer["results"].as_array().unwrap();
    assert_eq!((&results[0]["duplicate_of"], &results[0]["event"]), (&json!("a"), &json!("a")));
    assert_eq!(results[0]["nearest"][0]["score"], 1.0);
    let near: Vec<&Value> =
        results[1]["nearest"].as_array().unwrap().iter().map(|near| &near["id"]).collect();
    assert_eq!(near, ["b", "a"], "{answer}");
    assert!(results[1].get("duplicate_of").is_none() && results[1]["event"] == "a");
    assert_eq!(
        (&results[2]["new"], &results[2]["event"], &results[2]["nearest"]),
        (&json!(true), &json!("d"), &json!([]))
    );
    // Another text in its place is not near to what it was before.
    let again = done(
        &app,
        "POST",
        "/collections/news/match",
        Some(&json!({"items": [{"id": "d", "text": "my cat sleeps on the keyboard"}], "replace": true})),
    )
    .await;
    assert_eq!(
        (&again["results"][0]["new"], &again["results"][0]["event"]),
        (&json!(true), &json!("d"))
    );
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 4);
    for (body, code, pointer) in [
        (
            json!({"items": [{"id": "e", "text": "x"}, {"id": "e", "text": "y"}]}),
            "invalid_field",
            "/items/1/id",
        ),
        (
            json!({"items": [{"id": "e", "text": "x"}], "method": "wmd"}),
            "method_cannot_embed",
            "/method",
        ),
        (
            json!({"items": [{"id": "e", "text": "x"}], "second": "bm25"}),
            "method_only_ranks",
            "/second",
        ),
        (
            json!({"items": [{"id": "e", "text": "x"}], "second": "nothing"}),
            "unknown_method",
            "/second",
        ),
        (
            json!({"items": [{"id": "e", "text": "x"}], "second": "wmd"}),
            "not_calibrated",
            "/threshold",
        ),
        (
            json!({"items": [{"id": "e", "text": "x"}], "last": 100_000, "within": "1x"}),
            "invalid_field",
            "/within",
        ),
        (json!({"items": []}), "empty_list", "/items"),
    ] {
        let problem = call(&app, "POST", "/collections/news/match", Some(&body)).await;
        let problem = problem.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
    }
    let none = call(&app, "POST", "/collections/none/match", Some(&body)).await;
    none.refusal(404, "not_found");
    assert_eq!(done(&app, "GET", "/collections/news", None).await["items"], 4);
}

#[tokio::test]
async fn a_text_is_told_why_it_has_its_event() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/news", Some(&json!({}))).await;
    let texts = [
        "strong earthquake shakes lima",
        "pancakes for breakfast again",
        "an earthquake shakes the city of lima",
        "lima shaken by strong earthquake",
    ];
    let item =
        |(at, text)| json!({"id": format!("t{at}"), "text": text, "time": 1_714_557_600 + at});
    let items: Vec<Value> = (0..).zip(texts).map(item).collect();
    let body = json!({"items": items, "explain": true});
    let answer = done(&app, "POST", "/collections/news/match", Some(&body)).await;
    let told = &answer["results"][3];
    let reasons = &told["explanation"];
    assert_eq!((&told["event"], &reasons["events"][0]["event"]), (&json!("t0"), &json!("t0")));
    assert_eq!(reasons["events"][0]["score"], told["score"]);
    assert_eq!(
        (&reasons["events"][0]["votes"], &reasons["events"][0]["wanted"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(reasons["words"][0], told["word"]);
    let near = reasons["nearest"].as_array().unwrap();
    assert!(
        near.len() >= 2 && near.iter().all(|one| one["event"] == "t0" || one["id"] == "t1"),
        "{told}"
    );
    assert_eq!(
        answer["results"][0]["explanation"],
        json!({"nearest": [], "events": [], "words": []})
    );
    // The item tells the same once it is there, by the same settings.
    let look = async |query: &str| {
        done(&app, "GET", &format!("/collections/news/items/t3{query}"), None).await
    };
    let item = look("?explain=true").await;
    assert_eq!((&item["event"], &item["matched"]["explanation"]), (&json!("t0"), reasons));
    assert_eq!(
        (&item["matched"]["event"], &item["matched"]["score"]),
        (&json!("t0"), &told["score"])
    );
    assert_eq!(look("?explain=true&threshold=0.999&preset=stories").await["matched"]["new"], true);
    // `auto` is the model's choice among the methods that have vectors.
    let auto = look("?explain=true&method=auto").await;
    assert_eq!(auto["matched"], look("?explain=true&method=avg-cos").await["matched"]);
    let auto = json!({"items": [{"id": "t9", "text": "storm"}], "method": "auto", "add": "none"});
    done(&app, "POST", "/collections/news/match", Some(&auto)).await;
    let page = call(&app, "GET", "/metrics", None).await.text();
    let counted = |method: &str| {
        let name = format!("cognate_method_requests_total{{method=\"{method}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap_or(0)
    };
    assert!(counted("avg-cos") > 0 && counted("polarity-blend") == 0, "{page}");
    assert_eq!(look("").await.get("matched"), None);
    call(&app, "GET", "/collections/news/items/none?explain=true", None)
        .await
        .refusal(404, "not_found");
    call(&app, "GET", "/collections/news/items/t3?explain=yes", None)
        .await
        .refusal(422, "invalid_field");
    call(&app, "GET", "/collections/news/items/t3?votes=0", None)
        .await
        .refusal(422, "out_of_range");
}

#[tokio::test]
async fn a_filter_says_what_texts_are_matched_against() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    done(&app, "PUT", "/collections/facts", Some(&json!({}))).await;
    let fact = |id: &str, user: &str| json!({"id": id, "text": "prefers a window seat on long flights", "attributes": {"user": user}});
    let matched = async |items: Value, user: &str| {
        let body = json!({"items": items, "filter": {"user": user}, "add": "new"});
        done(&app, "POST", "/collections/facts/match", Some(&body)).await["results"].clone()
    };
    let told = matched(json!([fact("a1", "ann"), fact("a2", "ann")]), "ann").await;
    assert_eq!((&told[0]["added"], &told[1]["duplicate_of"]), (&Value::Null, &json!("a1")));
    // Another's fact of the same words is a fact of its own, before and after the window was kept.
    for (id, of) in [("b1", Value::Null), ("b2", json!("b1"))] {
        assert_eq!(matched(json!([fact(id, "bob")]), "bob").await[0]["duplicate_of"], of, "{id}");
    }
    assert_eq!(matched(json!([fact("a3", "ann")]), "ann").await[0]["duplicate_of"], "a1");
    // What the filter would not find again is not added.
    let body = json!({"items": [fact("c1", "ann")], "filter": {"user": "bob"}});
    let refused = call(&app, "POST", "/collections/facts/match", Some(&body)).await;
    let refused = refused.refusal(422, "invalid_field");
    assert_eq!(refused["errors"][0]["pointer"], "/items/0/attributes");
    let lines = format!("{}\n{}\n", fact("c1", "ann"), fact("b3", "bob"));
    let request =
        Request::post("/collections/facts/match?add=new&filter=%7B%22user%22%3A%22bob%22%7D");
    let request = request.header("content-type", "application/x-ndjson").body(Body::from(lines));
    let answer = app.send(request.unwrap()).await.text();
    let found: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found[0]["error"]["code"], "invalid_field", "{answer}");
    assert_eq!(found[1]["duplicate_of"], "b1");
}
