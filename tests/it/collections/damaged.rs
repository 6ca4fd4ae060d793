//! A damaged log stops its own collection alone where that is asked for, and what can be read of it is
//! salvaged.

use std::fs;
use std::path::Path;

use cognate_collections::{Salvaged, back_up};
use cognate_server::http::settings::Damaged;
use serde_json::{Value, json};

use crate::collections::{call, done};
use crate::support::app::TestApp;
use crate::support::command::{cognate, stderr, stdout};

fn serve(data: &Path) -> TestApp {
    TestApp::with(|settings| {
        (settings.data, settings.damaged) = (Some(data.to_owned()), Damaged::ServeOthers);
    })
}

/// A folder with two collections of ten items each, written one at a time; the log of `bad` is damaged in
/// its fifth write.
async fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let app = serve(&data);
    for name in ["bad", "good"] {
        done(&app, "PUT", &format!("/collections/{name}"), Some(&json!({"max_items": 50}))).await;
        for id in 0..10 {
            let item = json!({"text": format!("the quake hits city {id}")});
            done(&app, "PUT", &format!("/collections/{name}/items/n{id}"), Some(&item)).await;
        }
    }
    drop(app);
    let log = data.join("bad/items.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(6).position(|six| six == b"city 4").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    folder
}

#[tokio::test]
async fn a_damaged_log_stops_its_own_collection_alone() {
    let folder = folder().await;
    let data = folder.path().join("data");
    let log = fs::read(data.join("bad/items.log")).unwrap();
    let app = serve(&data);
    for (verb, path, body) in [
        ("GET", "/collections/bad", None),
        ("GET", "/collections/bad/items", None),
        ("GET", "/collections/bad/items/n0", None),
        ("PUT", "/collections/bad", Some(json!({}))),
        ("PUT", "/collections/bad/items/n0", Some(json!({"text": "a"}))),
        ("DELETE", "/collections/bad", None),
        ("POST", "/collections/bad/match", Some(json!({"items": [{"id": "x", "text": "a"}]}))),
        ("POST", "/rank", Some(json!({"collection": "bad", "query": "quake"}))),
    ] {
        let problem = call(&app, verb, path, body.as_ref()).await.refusal(503, "not_ready");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("cannot be read") && !detail.contains("items.log"), "{detail}");
        // As `a_collection_is_brought_back_into_a_running_service` does.
        assert!(detail.contains("a reload") && !detail.contains("start"), "{detail}");
    }
    let ranked = json!({"collection": "good", "query": "quake", "method": "avg-cos"});
    assert_eq!(
        done(&app, "POST", "/rank", Some(&ranked)).await["results"].as_array().unwrap().len(),
        10
    );
    done(&app, "PUT", "/collections/good/items/more", Some(&json!({"text": "a flood"}))).await;
    assert_eq!(
        done(&app, "GET", "/collections", None).await["collections"].as_array().unwrap().len(),
        1
    );
    let ready = done(&app, "GET", "/ready", None).await;
    assert_eq!(ready, json!({"status": "ready", "damaged_collections": 1}));
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_collections_damaged 1\n"), "{page}");
    drop(app);
    assert_eq!(fs::read(data.join("bad/items.log")).unwrap(), log, "it is left as it is");
}

/// A replica tells of it as a writer does.
#[tokio::test]
async fn a_replica_serves_the_others_too() {
    let folder = folder().await;
    let data = folder.path().join("data");
    let app = TestApp::with(|settings| {
        (settings.replica_of, settings.damaged) = (Some(data.clone()), Damaged::ServeOthers);
    });
    call(&app, "GET", "/collections/bad", None).await.refusal(503, "not_ready");
    call(&app, "GET", "/collections/none", None).await.refusal(404, "not_found");
    let ranked = json!({"collection": "bad", "query": "quake"});
    call(&app, "POST", "/rank", Some(&ranked)).await.refusal(503, "not_ready");
    assert_eq!(done(&app, "GET", "/collections/good", None).await["items"], 10);
    let ready = done(&app, "GET", "/ready", None).await;
    assert_eq!(ready, json!({"status": "ready", "damaged_collections": 1}));
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_collections_damaged 1\n"), "{page}");
}

/// Does what is done every few seconds.
async fn chores(app: &TestApp) {
    let app = app.app.clone();
    tokio::task::spawn_blocking(move || app.look_after_collections()).await.unwrap();
}

/// Into a service that runs: one that was mended, and one of a copy in the place of one that was deleted.
#[tokio::test]
async fn a_collection_is_brought_back_into_a_running_service() {
    let folder = folder().await;
    let data = folder.path().join("data");
    let copy = folder.path().join("copy");
    back_up(&data, &copy, &Default::default()).unwrap();
    let app = serve(&data);
    Salvaged::read(&data, "bad")
        .unwrap()
        .write(&folder.path().join("mended"), &data, "bad")
        .unwrap();
    fs::rename(data.join("bad"), folder.path().join("damaged")).unwrap();
    fs::rename(folder.path().join("mended/bad"), data.join("bad")).unwrap();
    done(&app, "PUT", "/collections/good/items/more", Some(&json!({"text": "a flood"}))).await;
    done(&app, "DELETE", "/collections/good", None).await;
    fs::rename(copy.join("good"), data.join("good")).unwrap();
    // Not before it is asked for: a folder may be in the middle of a copy.
    chores(&app).await;
    call(&app, "GET", "/collections/bad", None).await.refusal(503, "not_ready");
    let _ = app.post("/-/reload", "").await;
    chores(&app).await;
    for (name, items) in [("bad", 9), ("good", 10)] {
        let told = done(&app, "GET", &format!("/collections/{name}"), None).await;
        assert_eq!((&told["items"], &told["max_items"]), (&json!(items), &json!(50)), "{name}");
        let item = json!({"text": "the quake hits again"});
        done(&app, "PUT", &format!("/collections/{name}/items/n99"), Some(&item)).await;
    }
    assert_eq!(done(&app, "GET", "/ready", None).await, json!({"status": "ready"}));
    // One that cannot be read is told of, and stops nothing.
    fs::create_dir(data.join("odd")).unwrap();
    let _ = app.post("/-/reload", "").await;
    chores(&app).await;
    call(&app, "GET", "/collections/odd", None).await.refusal(503, "not_ready");
    fs::remove_dir(data.join("odd")).unwrap();
    let _ = app.post("/-/reload", "").await;
    chores(&app).await;
    call(&app, "GET", "/collections/odd", None).await.refusal(404, "not_found");
    drop(app);
    let app = serve(&data);
    assert_eq!(done(&app, "GET", "/collections/bad", None).await["items"], 10);
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_log_is_salvaged() {
    let folder = folder().await;
    // Beside a service that serves the others.
    let app = serve(&folder.path().join("data"));
    let run = |arguments: &[&str]| {
        let arguments = [&["collection"], arguments, &["--data", "data"]].concat();
        cognate(folder.path(), &[], &arguments)
    };
    let output = run(&["salvage", "bad", "mended", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(
        (&report["items"], &report["missing"][0]["writes"]),
        (&json!(9), &json!(1)),
        "{report}"
    );
    assert_eq!(report["missing"].as_array().unwrap().len(), 1, "{report}");
    let [from, to] =
        ["from_byte", "to_byte"].map(|end| report["missing"][0][end].as_u64().unwrap());
    let log = fs::read(folder.path().join("data/bad/items.log")).unwrap();
    let missing = String::from_utf8_lossy(&log[from as usize..to as usize]).into_owned();
    assert!(
        missing.contains("\"n4\"") && !missing.contains("\"n3\"") && !missing.contains("\"n5\"")
    );
    // What is there already is not written over.
    assert!(!run(&["salvage", "bad", "mended"]).status.success());
    let exported = run(&["export", "bad", "--salvage"]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    assert_eq!(stdout(&exported).lines().count(), 9);
    let told = format!("missing: 1 writes, bytes {from} to {to}\n");
    assert_eq!(stderr(&exported), told);
    let whole = run(&["salvage", "good", "whole"]);
    assert_eq!(stdout(&whole).trim(), "10 items written; nothing is missing", "{}", stderr(&whole));
    assert!(!run(&["salvage", "none", "third"]).status.success());
    drop(app);
    // It is put where the damaged one was.
    let [data, mended] = ["data", "mended"].map(|name| folder.path().join(name));
    fs::rename(data.join("bad"), folder.path().join("damaged")).unwrap();
    fs::rename(mended.join("bad"), data.join("bad")).unwrap();
    let app = serve(&data);
    let told = done(&app, "GET", "/collections/bad", None).await;
    assert_eq!((&told["items"], &told["max_items"]), (&json!(9), &json!(50)));
    assert_eq!(done(&app, "GET", "/ready", None).await, json!({"status": "ready"}));
}
