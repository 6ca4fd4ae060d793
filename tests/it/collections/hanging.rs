//! A disk that hangs: what waits for it is told so in the end, and everything else is answered.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use super::killed::{ask, send};
use crate::support::process::Process;

/// Syncs wait as long as the file that `HANGING` names is there, and leave another beside it; where
/// `HANGING_NAME` is set, those of files whose path ends in it.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_meant(int file) {
    const char *name = getenv("HANGING_NAME");
    char link[64], path[4096];
    if (!name) return 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path), wanted = strlen(name);
    return length >= wanted && memcmp(path + length - wanted, name, wanted) == 0;
}
static int wait_and_call(int number, int file) {
    const char *flag = getenv("HANGING");
    while (flag && access(flag, F_OK) == 0 && is_meant(file)) {
        char noticed[4096];
        snprintf(noticed, sizeof noticed, "%s.noticed", flag);
        close(open(noticed, O_CREAT | O_WRONLY, 0600));
        usleep(10000);
    }
    return syscall(number, file);
}
int fsync(int file) { return wait_and_call(SYS_fsync, file); }
int fdatasync(int file) { return wait_and_call(SYS_fdatasync, file); }
"#;

/// A library in a folder that makes syncs hang.
fn shim(folder: &Path) -> std::path::PathBuf {
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    fs::write(&source, SHIM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().unwrap().success(), "a C compiler makes the library");
    library
}

/// Waits until who has a lock shows that it lives.
fn is_touched(lock: &Path) {
    let (long_ago, begun) =
        (SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000), Instant::now());
    fs::File::options().write(true).open(lock).unwrap().set_modified(long_ago).unwrap();
    while fs::metadata(lock).unwrap().modified().unwrap() == long_ago {
        assert!(begun.elapsed() < Duration::from_secs(30), "the lock is not touched");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A service whose syncs hang, its folder, and the file as long as which they do so.
struct Hanging {
    folder: tempfile::TempDir,
    process: Process,
    flag: PathBuf,
}

impl Hanging {
    /// Where a name is given, syncs of files whose path ends in it hang alone.
    fn begin(name: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (data, flag) = (folder.path().join("data"), folder.path().join("flag"));
        let arguments = ["--data".to_owned(), data.to_str().unwrap().to_owned()];
        let preload = shim(folder.path());
        let mut variables = vec![("LD_PRELOAD", preload.as_path()), ("HANGING", flag.as_path())];
        variables.extend(name.map(|name| ("HANGING_NAME", Path::new(name))));
        let process = Process::start_with_variables(&arguments, &variables);
        Self { folder, process, flag }
    }

    /// Waits until a sync hangs.
    fn until_noticed(&self) {
        while !self.folder.path().join("flag.noticed").exists() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn writers_go_on_while_a_log_is_written_anew() {
    let hanging = Hanging::begin(Some("items.new"));
    let address = hanging.process.address;
    ask(address, "PUT", "/collections/news", "{}");
    fs::write(&hanging.flag, "").unwrap();
    // The same items again and again, until most of the log is of the past.
    let text = "quake ".repeat(4000);
    let items: Vec<String> =
        (0..60).map(|id| format!(r#"{{"id":"{id}","text":"{text}"}}"#)).collect();
    let items = format!(r#"{{"items":[{}]}}"#, items.join(","));
    for _ in 0..5 {
        ask(address, "POST", "/collections/news/items", &items);
    }
    hanging.until_noticed();
    ask(address, "PUT", "/collections/news/items/meanwhile", r#"{"text":"the flood"}"#);
    let post = r#"{"items":[{"id":"matched","text":"the floods"}]}"#;
    ask(address, "POST", "/collections/news/match", post);
    assert!(hanging.folder.path().join("data/news/items.new").exists());
    fs::remove_file(&hanging.flag).unwrap();
}

#[test]
fn a_disk_that_hangs_holds_up_what_waits_for_it_alone() {
    let hanging = Hanging::begin(None);
    let (address, flag) = (hanging.process.address, &hanging.flag);
    for name in ["news", "other", "matched"] {
        ask(address, "PUT", &format!("/collections/{name}"), "{}");
    }
    let item = |id: &str| format!(r#"{{"items":[{{"id":"{id}","text":"the quake"}}]}}"#);
    ask(address, "POST", "/collections/news/items", &item("a"));
    fs::write(flag, "").unwrap();
    let writers: Vec<_> = (0..30)
        .map(|number| {
            let path = format!("/collections/{}/items", ["news", "other"][number % 2]);
            let body = item(&format!("h{number}"));
            thread::spawn(move || send(address, "POST", &path, &body))
        })
        .collect();
    hanging.until_noticed();
    // It is written, and nobody is told that it was not.
    let post = r#"{"items":[{"id":"m","text":"the flood"}]}"#;
    let matcher = thread::spawn(move || send(address, "POST", "/collections/matched/match", post));
    // Each is waited for at most 20 s, by which it would have hung.
    ask(address, "GET", "/health", "");
    ask(address, "GET", "/collections", "");
    ask(address, "GET", "/collections/news", "");
    ask(address, "GET", "/collections/news/items?limit=1", "");
    ask(address, "GET", "/collections/news/items/a", "");
    ask(address, "POST", "/rank", r#"{"collection":"news","query":"the quake"}"#);
    ask(address, "POST", "/-/reload", "");
    assert_eq!(send(address, "GET", "/metrics", "").unwrap().0, 200);
    // Twice: the chore that waits for the disk may have touched it before.
    for _ in 0..2 {
        is_touched(&hanging.folder.path().join("data/.lock"));
    }
    assert_eq!(matcher.join().unwrap().expect("an answer").0, 507);
    let mut outcomes = Vec::new();
    for writer in writers {
        let (status, answer) = writer.join().unwrap().expect("an answer");
        assert!([503, 507].contains(&status), "{status}: {answer}");
        outcomes.push(status);
    }
    assert!(outcomes.contains(&507), "some were begun: {outcomes:?}");
    fs::remove_file(flag).unwrap();
    ask(address, "POST", "/collections/news/items", &item("after"));
}
