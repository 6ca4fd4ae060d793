//! `cognate collection`: a folder filled and looked at without a service, and then served.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::command::{cognate, stderr, stdout};

#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = cognate(folder, &[], &[&["collection"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, part: &str) {
    let output = cognate(folder, &[], &[&["collection"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(part), "`{part}` is missing in: {}", stderr(&output));
}

#[test]
fn a_folder_is_filled_and_written_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = ["--data", "data"];
    let with = |arguments: &[&'static str]| [arguments, &data].concat();
    refused(folder, &with(&["info"]), 2, "is not a folder");
    run(folder, &with(&["create", "news"]));
    assert_eq!(
        run(folder, &with(&["info", "--json"])).parse::<Value>().unwrap()["collections"][0]["items"],
        0
    );
    let mut lines = String::new();
    for at in 0..2500 {
        let item = json!({"id": format!("n{at}"), "text": format!("text {at}"),
            "time": format!("2024-05-01T10:00:{:02}.5Z", at % 60), "attributes": {"n": at}, "data": {"at": at}});
        lines.push_str(&format!("{}\n", serde_json::to_string(&item).unwrap()));
    }
    std::fs::write(folder.join("items.ndjson"), &lines).unwrap();
    let told = run(folder, &with(&["load", "news", "items.ndjson"]));
    assert_eq!(told, "2500 items added, 0 replaced\n");
    let told = run(folder, &with(&["load", "news", "items.ndjson"]));
    assert_eq!(told, "0 items added, 2500 replaced\n");
    let length = || std::fs::metadata(folder.join("data/news/items.log")).unwrap().len();
    let before = length();
    run(folder, &with(&["compact", "news"]));
    assert!(2 * length() < before + 1000, "{} of {before}", length());
    // What is written out is what was read, field by field.
    let written = run(folder, &with(&["export", "news"]));
    assert_eq!(written.lines().count(), 2500);
    for (written, read) in written.lines().zip(lines.lines()) {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let mut written = parse(written);
        let time = written["time"].as_str().unwrap().replace(".500Z", ".5Z");
        written["time"] = json!(time);
        assert_eq!(written, parse(read));
    }
    run(folder, &with(&["create", "news", "--max-items", "3", "--ttl", "36500d"]));
    let info = run(folder, &with(&["info"]));
    assert!(info.starts_with("news: 3 items, "), "{info}");
    std::fs::write(folder.join("bad.ndjson"), "{\"id\":\"x\",\"text\":\"y\"}\n\n{\"id\":\"x\"}\n")
        .unwrap();
    refused(
        folder,
        &with(&["load", "news", "bad.ndjson"]),
        1,
        "bad.ndjson, line 3: missing field `text`",
    );
    refused(
        folder,
        &with(&["load", "none", "items.ndjson"]),
        2,
        "there is no collection `none`; there are: news",
    );
    refused(folder, &with(&["create", "News"]), 2, "a collection's name");
    refused(folder, &with(&["create", "news", "--ttl", "1 day"]), 2, "24h");
}
