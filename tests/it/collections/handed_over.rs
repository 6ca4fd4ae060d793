//! An upgrade under load: a second process waits for the folder, the first one is told to stop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::killed::{ask, send};
use crate::support::process::Process;

/// Longest time without writes that is borne, on a machine that does much else.
const MAX_GAP: Duration = Duration::from_secs(10);

/// The names of all items.
fn names(address: SocketAddr) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    loop {
        let path = format!("/collections/news/items?limit=1000&offset={}", names.len());
        let page = ask(address, "GET", &path, "");
        let items = page["items"].as_array().unwrap();
        if items.is_empty() {
            return names;
        }
        names.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
    }
}

#[test]
fn a_server_that_waits_takes_over_with_nothing_lost() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let of = |more: &[&str]| -> Vec<String> {
        [&["--data", &data], more].concat().iter().map(|&one| one.to_owned()).collect()
    };
    let mut first = Process::start(&of(&["--shutdown-delay-s", "6"]));
    let address = first.address;
    ask(address, "PUT", "/collections/news", "{}");
    let next = OnceLock::new();
    let ends = AtomicBool::new(false);
    let current = || next.get().copied().unwrap_or(address);
    let (acknowledged, gap, reads, mut second) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut acknowledged, mut gap, mut last) =
                (Vec::new(), Duration::ZERO, Instant::now());
            for number in 0.. {
                let body =
                    format!(r#"{{"items":[{{"id":"n{number}","text":"the quake {number}"}}]}}"#);
                // What is not acknowledged is sent again, to whoever takes it.
                loop {
                    match send(current(), "POST", "/collections/news/items", &body) {
                        Some((200, _)) => break,
                        Some((status, body)) => {
                            assert_eq!(status, 503, "{body}");
                            let problem: Value = serde_json::from_str(&body).unwrap();
                            assert_eq!(problem["code"], "draining", "{body}");
                        }
                        None => {}
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                acknowledged.push(format!("n{number}"));
                gap = gap.max(last.elapsed());
                last = Instant::now();
                if ends.load(Ordering::Relaxed) {
                    return (acknowledged, gap);
                }
            }
            unreachable!()
        });
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !ends.load(Ordering::Relaxed) {
                let at = current();
                let answer = send(
                    at,
                    "POST",
                    "/rank",
                    r#"{"collection":"news","query":"quake","method":"bm25"}"#,
                );
                // Only a server that is followed already may be gone.
                match answer {
                    Some((status, body)) => assert_eq!(status, 200, "{body}"),
                    None => assert_ne!(at, current(), "a read was lost"),
                }
                reads += 1;
            }
            reads
        });
        let second = Process::begin(&of(&["--wait-for-data-s", "60"]));
        while !std::path::Path::new(&data).join(".awaited").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Whoever waits disturbs nobody.
        assert_eq!(ask(address, "GET", "/collections", "")["collections"][0]["name"], "news");
        first.signal("TERM");
        let second = second.ready();
        next.set(second.address).unwrap();
        assert!(first.wait(Duration::from_secs(60)).success(), "{}", first.log());
        ends.store(true, Ordering::Relaxed);
        let (acknowledged, gap) = writer.join().unwrap();
        (acknowledged, gap, reader.join().unwrap(), second)
    });
    println!(
        "{} writes, {reads} reads, {:.3} s without writes",
        acknowledged.len(),
        gap.as_secs_f64()
    );
    assert!(gap < MAX_GAP, "{gap:?}");
    assert!(first.log().contains("collections handed over"), "{}", first.log());
    assert!(!std::path::Path::new(&data).join(".awaited").exists());
    let found = names(second.address);
    assert!(acknowledged.iter().all(|name| found.contains(name)), "an acknowledged item is lost");
    // Its folder is whole: the next start cuts nothing off and finds no damage.
    second.signal("TERM");
    assert!(second.wait(Duration::from_secs(60)).success());
    let third = Process::start(&of(&[]));
    assert!(!third.log().contains("cut off"), "{}", third.log());
    assert_eq!(names(third.address), found);
}

/// Where nobody waits a server that is told to stop takes writes as ever; and one that waits in vain says
/// who has the folder.
#[test]
fn who_waits_in_vain_is_told_and_who_is_not_waited_for_writes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let arguments = |more: [&str; 2]| -> Vec<String> {
        ["--data", &data].iter().chain(&more).map(|&one| one.to_owned()).collect()
    };
    let first = Process::start(&arguments(["--shutdown-delay-s", "2"]));
    ask(first.address, "PUT", "/collections/news", "{}");
    let begun = Instant::now();
    let mut second = Process::begin(&arguments(["--wait-for-data-s", "1"]));
    assert_eq!(second.wait(Duration::from_secs(60)).code(), Some(1));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(
        second.log().contains("another process has these collections open"),
        "{}",
        second.log()
    );
    first.signal("TERM");
    let mut first = first;
    first.until_log("the order", |log| log.contains("\"stopping\""));
    ask(first.address, "PUT", "/collections/news/items/a", r#"{"text":"the quake"}"#);
    assert!(first.wait(Duration::from_secs(60)).success());
    assert!(!first.log().contains("handed over"), "{}", first.log());
}
