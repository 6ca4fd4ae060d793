//! Two built binaries on one folder: one writes, the other shows what was written.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killed::{ask, send, serve};
use crate::support::command::{cognate, stderr};
use crate::support::process::Process;

/// Asks again until an answer is as it should be; replicas look ten times a second.
fn until(replica: &Process, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let (status, body) = send(replica.address, "GET", path, "").unwrap();
        let answer = serde_json::from_str(&body).unwrap_or_default();
        if status == 200 && is_so(&answer) {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status} {body}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn items(count: usize) -> impl Fn(&Value) -> bool {
    move |answer| answer["items"] == count
}

fn without_time(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().retain(|field, _| !field.ends_with("_ms"));
    answer
}

#[test]
fn a_replica_answers_what_another_process_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let replica = Process::start(&["--replica-of".to_owned(), data.to_str().unwrap().to_owned()]);
    let writer = serve(&data);
    let news = "/collections/news";
    ask(writer.address, "PUT", news, r#"{"max_items":50}"#);
    let texts = ["the quake in the city", "a new river", "the old town by the river"];
    for (at, text) in texts.iter().enumerate() {
        let body = json!({"text": text, "attributes": {"n": at}}).to_string();
        ask(writer.address, "PUT", &format!("{news}/items/n{at}"), &body);
    }
    let told = until(&replica, news, items(3));
    assert_eq!((&told["max_items"], &told["durable"]), (&json!(50), &json!(true)));
    let question = r#"{"query":"river","collection":"news","filter":{"n":{"gte":1}}}"#;
    let answers = [&writer, &replica].map(|one| ask(one.address, "POST", "/rank", question));
    let [wrote, read] = answers.map(without_time);
    assert_eq!(wrote, read);
    assert_eq!(read["results"].as_array().unwrap().len(), 2);

    for (verb, path, body) in [
        ("PUT", "/collections/more", "{}"),
        ("DELETE", news, ""),
        ("PUT", "/collections/news/items/n9", r#"{"text":"a"}"#),
        ("PATCH", "/collections/news/items/n0", r#"{"attributes":{"n":9}}"#),
        ("DELETE", "/collections/news/items/n0", ""),
        ("DELETE", "/collections/news/items?all=true", ""),
        ("POST", "/collections/news/items", r#"{"items":[{"id":"n9","text":"a"}]}"#),
        ("POST", "/collections/news/match", r#"{"items":[{"id":"n9","text":"a river"}]}"#),
    ] {
        let (status, answer) = send(replica.address, verb, path, body).unwrap();
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &problem["code"]), (403, &json!("read_only")), "{verb} {path}");
    }
    let page = send(replica.address, "GET", "/metrics", "").unwrap().1;
    assert!(page.contains("cognate_replica_unread_bytes 0\n"), "{page}");
    assert!(page.contains("cognate_replica_unreadable_logs 0\n"), "{page}");
    // The writer shows that it is there whether anything is written or not, and a replica tells when.
    for name in ["changed", "writer"] {
        let prefix = format!("cognate_replica_{name}_timestamp_seconds ");
        let since = page.lines().find_map(|line| line.strip_prefix(&*prefix)).unwrap();
        let ago = cognate_collections::now() as f64 / 1e3 - since.parse::<f64>().unwrap();
        assert!((-1.0..60.0).contains(&ago), "{name}: {ago}");
    }
    assert!(!send(writer.address, "GET", "/metrics", "").unwrap().1.contains("cognate_replica"));

    // The command line reads beside both.
    for arguments in [["export", "news"], ["info", "--json"]] {
        let arguments = [&["collection"], &arguments[..], &["--data", "data"]].concat();
        let output = cognate(folder.path(), &[], &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("n"), "{arguments:?}");
    }
    let load = ["collection", "compact", "news", "--data", "data"];
    let refused = cognate(folder.path(), &[], &load);
    assert!(stderr(&refused).contains("another process"), "{}", stderr(&refused));

    // What changes an item in its place, and what takes out several, is read along.
    let patch = r#"{"attributes":{"n":null,"lang":"en"}}"#;
    ask(writer.address, "PATCH", "/collections/news/items/n1", patch);
    let path = "/collections/news/items/n1";
    let told = until(&replica, path, |answer| answer["attributes"]["lang"] == "en");
    assert_eq!(told["attributes"], json!({"lang": "en"}));
    ask(writer.address, "PATCH", path, r#"{"attributes":{"n":1}}"#);
    until(&replica, path, |answer| answer["attributes"]["n"] == 1);
    ask(writer.address, "DELETE", "/collections/news/items?filter=%7B%22n%22%3A0%7D", "");
    until(&replica, news, items(2));
    ask(
        writer.address,
        "PUT",
        "/collections/news/items/n0",
        r#"{"text":"the quake in the city","attributes":{"n":0}}"#,
    );
    until(&replica, news, items(3));

    // Without the process that writes, and with its next one.
    writer.signal("KILL");
    drop(writer);
    assert_eq!(without_time(ask(replica.address, "POST", "/rank", question)), read);
    let writer = serve(&data);
    ask(writer.address, "PUT", "/collections/news/items/n7", r#"{"text":"the river again"}"#);
    until(&replica, news, items(4));
    ask(writer.address, "DELETE", news, "");
    let begun = Instant::now();
    while send(replica.address, "GET", news, "").unwrap().0 != 404 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}
