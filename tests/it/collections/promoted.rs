//! `cognate collection promote`: a folder whose writer was killed goes to another one.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::killed::{ask, serve};
use crate::support::command::{cognate, stderr, stdout};
use crate::support::process::Process;

#[test]
fn a_folder_of_a_dead_writer_goes_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let run = |more: &[&str]| {
        let arguments = [&["collection", "promote", "--data", "data"], more].concat();
        cognate(folder.path(), &[], &arguments)
    };
    let missing = run(&[]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
    let writer = serve(&data);
    for name in ["empty", "news"] {
        ask(writer.address, "PUT", &format!("/collections/{name}"), "{}");
    }
    for id in ["a", "b"] {
        let item = r#"{"text":"the quake","time":"2024-05-01T10:00:00Z"}"#;
        ask(writer.address, "PUT", &format!("/collections/news/items/{id}"), item);
    }
    let replica = Process::start(&["--replica-of".to_owned(), data.to_str().unwrap().to_owned()]);
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("another process has these"), "{}", stderr(&refused));
    writer.signal("KILL");
    drop(writer);
    // As a minute later, by which it is not watched.
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let lock = File::options().write(true).open(data.join(".lock")).unwrap();
    lock.set_modified(long_ago).unwrap();
    drop(lock);
    let promoted = run(&["--json"]);
    assert!(promoted.status.success(), "{}", stderr(&promoted));
    let told: Value = stdout(&promoted).parse().unwrap();
    let [empty, news] = [0, 1].map(|place| &told["collections"][place]);
    assert_eq!((&empty["name"], empty.get("newest")), (&"empty".into(), None), "{told}");
    assert_eq!((&news["items"], &news["newest"]["id"]), (&2.into(), &"b".into()), "{told}");
    assert_eq!(news["newest"]["time"], "2024-05-01T10:00:00Z");
    assert!(news["written"].as_str().unwrap() > "2025", "{told}");
    let again = run(&[]);
    let told = stdout(&again);
    assert!(told.starts_with("empty: 0 items, "), "{told}{}", stderr(&again));
    assert!(told.contains("Z, newest item b of 2024-05-01T10:00:00Z\n"), "{told}");
    assert!(
        told.ends_with("nobody has these 2 collections; `cognate serve --data` may\n"),
        "{told}"
    );
    let writer = serve(&data);
    assert_eq!(ask(writer.address, "GET", "/collections/news", "")["items"], 2);
    assert_eq!(ask(replica.address, "GET", "/collections/news", "")["items"], 2);
}
