//! The built binary whose files are changed under it, or are not what they were when it starts: nothing is
//! acknowledged that no file keeps, no second process gets in, and what is missing is said.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::killed::{ask, send, serve};
use crate::support::command::{cognate, command, stderr};
use crate::support::process::Process;

const NEWS: &str = "/collections/news";

/// A folder with a collection of so many items, and the process that writes there.
fn served(items: usize) -> (tempfile::TempDir, Process) {
    let folder = tempfile::tempdir().unwrap();
    let process = serve(&folder.path().join("data"));
    ask(process.address, "PUT", NEWS, "{}");
    for at in 0..items {
        put(&process, at);
    }
    (folder, process)
}

fn put(process: &Process, at: usize) {
    let body = format!(r#"{{"text":"the quake {at}"}}"#);
    ask(process.address, "PUT", &format!("{NEWS}/items/n{at}"), &body);
}

/// What cannot be written is refused so, and what is read goes on.
fn refuses_changes(process: &Process, items: usize) {
    for (verb, path, body) in [
        ("PUT", "/collections/news/items/later", r#"{"text":"the flood"}"#),
        ("POST", "/collections/news/match", r#"{"items":[{"id":"later","text":"a flood"}]}"#),
        ("DELETE", "/collections/news/items/n0", ""),
        ("PUT", "/collections/news?drop=true", r#"{"max_items":3}"#),
        ("DELETE", NEWS, ""),
    ] {
        let (status, answer) = send(process.address, verb, path, body).unwrap();
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, problem["code"].as_str()), (507, Some("not_written")), "{answer}");
        assert!(!answer.contains("items.log"), "files are named in the log alone: {answer}");
    }
    assert_eq!(ask(process.address, "GET", NEWS, "")["items"], items);
    let page = send(process.address, "GET", "/metrics", "").unwrap().1;
    assert!(page.contains("\ncognate_collections_unwritable 1\n"), "{page}");
}

/// Nobody writes, so that it is the chores that find it.
fn wait_until_not_ready(process: &Process) {
    let begun = Instant::now();
    loop {
        let (status, answer) = send(process.address, "GET", "/ready", "").unwrap();
        if status == 503 {
            assert!(answer.contains("not_ready") && answer.contains("take no changes"), "{answer}");
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", process.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ends it as a supervisor does.
fn stop(mut process: Process) {
    process.signal("TERM");
    assert!(process.wait(Duration::from_secs(30)).success(), "{}", process.log());
}

#[test]
fn a_folder_that_is_deleted_under_the_server_is_noticed() {
    let (folder, process) = served(3);
    let data = folder.path().join("data");
    fs::remove_dir_all(&data).unwrap();
    wait_until_not_ready(&process);
    refuses_changes(&process, 3);
    let (status, _) = send(process.address, "PUT", "/collections/other", "{}").unwrap();
    assert_eq!(status, 507);
    assert!(process.log().contains("deleted, moved, replaced or cut off"), "{}", process.log());
    stop(process);
    assert!(!data.exists(), "no folder is made in its place");
}

#[test]
fn a_replica_waits_for_no_pipe() {
    let (folder, process) = served(2);
    let data = folder.path().join("data");
    let mut replica =
        Process::start(&["--replica-of".to_owned(), data.to_str().unwrap().to_owned()]);
    assert_eq!(ask(replica.address, "GET", NEWS, "")["items"], 2);
    let log = data.join("news/items.log");
    // At once, as the replica looks all the while, and would find that the log is missing.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::rename(&pipe, &log).unwrap();
    replica.until_log("the pipe", |said| said.contains("not a regular file"));
    let page = send(replica.address, "GET", "/metrics", "").unwrap().1;
    assert!(page.contains("\ncognate_replica_unreadable_logs 1\n"), "{page}");
    assert_eq!(ask(replica.address, "GET", NEWS, "")["items"], 2, "what it had is shown");
    // It goes on to look at all else.
    ask(process.address, "PUT", "/collections/other", "{}");
    let begun = Instant::now();
    while send(replica.address, "GET", "/collections/other", "").unwrap().0 != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut late = Process::start_with(
        process.model(),
        &["--replica-of".to_owned(), data.to_str().unwrap().to_owned()],
    );
    assert!(!late.wait(Duration::from_secs(30)).success());
    assert!(late.log().contains("not a regular file"), "{}", late.log());
}

/// Names beside the data that copies had while they were made.
fn parts(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".cognate-part-")).collect()
}

#[test]
fn a_copy_by_the_service_that_has_no_place_or_no_time_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [data, copies] = ["data", "copies"].map(|name| folder.path().join(name));
    let given = [
        "--data",
        data.to_str().unwrap(),
        "--backups",
        copies.to_str().unwrap(),
        "--backup-timeout-s",
        "1",
    ];
    let process = Process::start(&given.map(str::to_owned));
    ask(process.address, "PUT", NEWS, "{}");
    let refused = |status: u16, code: &str| {
        let (told, answer) = send(process.address, "POST", "/-/backup", "").unwrap();
        assert!(told == status && answer.contains(code), "{told}: {answer}");
        assert!(!answer.contains("copies"), "files are named in the log alone: {answer}");
    };
    fs::write(&copies, "").unwrap();
    refused(507, "not_written");
    fs::remove_file(&copies).unwrap();
    // A log that takes long to copy.
    fs::create_dir(data.join("large")).unwrap();
    fs::File::create(data.join("large/items.log")).unwrap().set_len(1 << 36).unwrap();
    refused(503, "deadline_exceeded");
    while fs::read_dir(&copies).unwrap().count() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::remove_dir_all(data.join("large")).unwrap();
    // A busy machine may be late.
    let copied = || send(process.address, "POST", "/-/backup", "").unwrap().0 == 200;
    assert!((0..10).any(|_| copied()));
    let page = send(process.address, "GET", "/metrics", "").unwrap().1;
    assert!(!page.contains("\ncognate_backup_timestamp_seconds 0\n"), "{page}");
}

#[test]
fn a_copy_that_is_killed_leaves_nothing_for_ever() {
    let (folder, process) = served(2);
    let path = folder.path();
    stop(process);
    // A log that takes long to copy.
    fs::create_dir_all(path.join("large/news")).unwrap();
    let log = fs::File::create(path.join("large/news/items.log")).unwrap();
    log.set_len(1 << 36).unwrap();
    let begin = |to: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
        let mut child = command(program, path, &[])
            .args(["collection", "backup", to, "--data", "large"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Before it is locked, another run takes the folder for a leftover; a locked one holds what is copied.
        while !parts(path).iter().any(|part| path.join(part).join("news").exists()) {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    };
    let signal = |child: &std::process::Child, name: &str| {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    };
    let back_up = |to: &str| {
        let output = cognate(path, &[], &["collection", "backup", to, "--data", "data"]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    for name in ["TERM", "INT"] {
        let mut child = begin("told");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(parts(path).is_empty() && !path.join("told").exists(), "{name}");
    }
    let mut killed = begin("killed");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(parts(path).len(), 1);
    back_up("one");
    assert!(parts(path).is_empty());
    // One that is being made stays.
    let mut living = begin("living");
    signal(&living, "STOP");
    back_up("two");
    assert_eq!(parts(path).len(), 1);
    living.kill().unwrap();
    living.wait().unwrap();
    back_up("three");
    assert!(parts(path).is_empty());
    // A copy among collections would look like one of them.
    let output = cognate(path, &[], &["collection", "backup", "data/copy", "--data", "data"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("outside their folder"), "{}", stderr(&output));
}
