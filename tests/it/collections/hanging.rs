//! A disk that hangs: what waits for it is told so in the end, and everything else is answered.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use super::killed::{ask, send};
use crate::support::process::Process;

/// Syncs wait as long as the file that `HANGING` names is there, and leave another beside it.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int wait_and_call(int number, int file) {
    const char *flag = getenv("HANGING");
    while (flag && access(flag, F_OK) == 0) {
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

#[test]
fn a_disk_that_hangs_holds_up_what_waits_for_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (data, flag) = (folder.path().join("data"), folder.path().join("flag"));
    let noticed = folder.path().join("flag.noticed");
    let arguments = ["--data".to_owned(), data.to_str().unwrap().to_owned()];
    let preload = shim(folder.path());
    let variables = [("LD_PRELOAD", preload.as_path()), ("HANGING", flag.as_path())];
    let process = Process::start_with_variables(&arguments, &variables);
    let address = process.address;
    for name in ["news", "other"] {
        ask(address, "PUT", &format!("/collections/{name}"), "{}");
    }
    let item = |id: &str| format!(r#"{{"items":[{{"id":"{id}","text":"the quake"}}]}}"#);
    ask(address, "POST", "/collections/news/items", &item("a"));
    fs::write(&flag, "").unwrap();
    let writers: Vec<_> = (0..30)
        .map(|number| {
            let path = format!("/collections/{}/items", ["news", "other"][number % 2]);
            let body = item(&format!("h{number}"));
            thread::spawn(move || send(address, "POST", &path, &body))
        })
        .collect();
    while !noticed.exists() {
        thread::sleep(Duration::from_millis(10));
    }
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
        is_touched(&data.join(".lock"));
    }
    let mut outcomes = Vec::new();
    for writer in writers {
        let (status, answer) = writer.join().unwrap().expect("an answer");
        assert!([503, 507].contains(&status), "{status}: {answer}");
        outcomes.push(status);
    }
    assert!(outcomes.contains(&507), "some were begun: {outcomes:?}");
    fs::remove_file(&flag).unwrap();
    ask(address, "POST", "/collections/news/items", &item("after"));
}
