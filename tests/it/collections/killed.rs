//! The built binary with collections in a folder: killed under load with nothing lost that was
//! acknowledged, a second process refused, a full disk and a damaged log met with clear errors.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cognate_collections::{EmbeddedHome, Limits};
use serde_json::Value;

use crate::support;
use crate::support::command::{cognate, stderr};
use crate::support::process::{Process, limit_files};

/// Sends a request on a connection of its own; the status and the body, if they came whole.
pub(super) fn send(
    address: SocketAddr,
    verb: &str,
    path: &str,
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

pub(super) fn ask(address: SocketAddr, verb: &str, path: &str, body: &str) -> Value {
    let (status, body) = send(address, verb, path, body).unwrap();
    assert_eq!(status, 200, "{verb} {path}: {body}");
    serde_json::from_str(&body).unwrap()
}

pub(super) fn serve(data: &Path) -> Process {
    Process::start(&["--data".to_owned(), data.to_str().unwrap().to_owned()])
}

/// Writers that add items until the service does not answer; the names of those that it acknowledged.
fn write_until_killed(process: &mut Process, round: usize, after: Duration) -> Vec<String> {
    let address = process.address;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                scope.spawn(move || {
                    let mut acknowledged = Vec::new();
                    for number in 0.. {
                        let ids: Vec<String> =
                            (0..4).map(|at| format!("r{round}w{writer}n{number}i{at}")).collect();
                        let items: Vec<String> = ids
                            .iter()
                            .map(|id| format!(r#"{{"id":"{id}","text":"the quake of {id}"}}"#))
                            .collect();
                        // One of the writers matches, the others load.
                        let (path, more) = match writer {
                            0 => ("match", r#","threshold":0.9"#),
                            _ => ("items", ""),
                        };
                        let body = format!(r#"{{"items":[{}]{more}}}"#, items.join(","));
                        let path = format!("/collections/news/{path}");
                        match send(address, "POST", &path, &body) {
                            Some((200, _)) => acknowledged.extend(ids),
                            Some((status, body)) => panic!("{status}: {body}"),
                            None => break,
                        }
                    }
                    acknowledged
                })
            })
            .collect();
        std::thread::sleep(after);
        process.signal("KILL");
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}

#[test]
fn a_killed_service_has_lost_nothing_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut acknowledged: Vec<String> = Vec::new();
    let mut chance = support::Chance(7);
    for round in 0..support::rounds(6, 200) {
        let mut process = serve(&data);
        ask(process.address, "PUT", "/collections/news", "{}");
        let after = Duration::from_millis(50 + chance.below(400) as u64);
        let more = write_until_killed(&mut process, round, after);
        assert!(!more.is_empty() || round > 0, "nothing was acknowledged");
        acknowledged.extend(more);
        drop(process);
        let process = serve(&data);
        let told = ask(process.address, "GET", "/collections/news", "");
        let items = told["items"].as_u64().unwrap() as usize;
        assert!(items >= acknowledged.len(), "{items} of {}", acknowledged.len());
        assert_eq!(items % 4, 0, "a batch is there as a whole or not at all");
        for id in acknowledged.iter().rev().take(40).chain(acknowledged.iter().step_by(29)) {
            let item = ask(process.address, "GET", &format!("/collections/news/items/{id}"), "");
            assert_eq!(item["text"], format!("the quake of {id}"));
        }
        // What could be read is what is there after the next start, too.
        drop(process);
    }
}

/// Sends lines to be matched and reads answers until the stream ends, or until `most` came: then the
/// service is killed. The answers that came whole.
fn match_lines(process: &mut Process, path: &str, lines: &str, most: usize) -> Vec<Value> {
    let mut stream = TcpStream::connect(process.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // To a client of HTTP/1.0 the answer comes as it is.
    let head = format!(
        "POST {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n\
         content-length: {}\r\n\r\n",
        lines.len()
    );
    let mut sending = stream.try_clone().unwrap();
    let body = lines.to_owned();
    let sender = std::thread::spawn(move || {
        // A service that is killed reads no more.
        let _ =
            sending.write_all(head.as_bytes()).and_then(|()| sending.write_all(body.as_bytes()));
    });
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    let read = |answer: &[u8]| -> Vec<Value> {
        let text = String::from_utf8_lossy(answer);
        let lines = text.split_once("\r\n\r\n").map_or("", |(_, body)| body).lines();
        lines.map_while(|line| serde_json::from_str(line).ok()).collect()
    };
    while let Ok(bytes @ 1..) = stream.read(&mut piece) {
        answer.extend_from_slice(&piece[..bytes]);
        if read(&answer).len() >= most {
            process.signal("KILL");
        }
    }
    sender.join().unwrap();
    read(&answer)
}

/// What a text was told, without what only its first answer has.
fn told(answer: &Value) -> [Value; 5] {
    ["id", "event", "new", "score", "duplicate_of"].map(|field| answer[field].clone())
}

#[test]
fn a_stream_that_was_killed_and_is_sent_again_has_the_events_of_a_clean_run() {
    let crises =
        ["strong earthquake shakes city lima houses", "river floods old town passau water"];
    let alone = "cat pancake football holiday music coffee exam rain bus garden phone shoe doctor moon \
                 tennis novel kitchen airport lawyer snow piano bank dragon soup taxi bridge painter";
    let mut chance = support::Chance(23);
    let mut lines = String::new();
    for at in 0..1500 {
        let of = crises.get(chance.below(3)).unwrap_or(&alone);
        let words: Vec<&str> = of.split_whitespace().collect();
        let text: Vec<&str> = (0..4).map(|_| words[chance.below(words.len())]).collect();
        lines.push_str(&format!("{{\"id\":\"n{at}\",\"text\":\"{}\"}}\n", text.join(" ")));
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = |name: &str| format!("/collections/{name}/match?last=300");
    let mut process = serve(&data);
    ask(process.address, "PUT", "/collections/clean", "{}");
    let clean = match_lines(&mut process, &path("clean"), &lines, usize::MAX);
    assert_eq!(clean.len(), 1500);
    let kinds = |new: bool| clean.iter().filter(|answer| answer["new"] == new).count();
    assert!(kinds(true) > 3 && kinds(false) > 20, "{} begin events", kinds(true));
    let (mut repeated, mut lost) = (0, 0);
    for round in 0..support::rounds(3, 60) {
        ask(process.address, "PUT", "/collections/news", "{}");
        // Each time it gets further, and the client sends the same lines from the first one on.
        for kill in 1.. {
            let most = kill * (100 + chance.below(400));
            let answers = match_lines(&mut process, &path("news"), &lines, most);
            if answers.len() == clean.len() {
                answers.iter().zip(&clean).for_each(|(answer, clean)| {
                    assert_eq!(told(answer), told(clean), "round {round}, {answer}");
                });
                repeated += answers.iter().filter(|answer| answer["repeated"] == true).count();
            }
            drop(process);
            process = serve(&data);
            let items = ask(process.address, "GET", "/collections/news", "")["items"].as_u64();
            let items = items.unwrap() as usize;
            lost += usize::from(items > answers.len());
            if answers.len() == clean.len() {
                assert_eq!(items, clean.len());
                break;
            }
        }
        ask(process.address, "DELETE", "/collections/news", "");
    }
    assert!(repeated > 0 && lost > 0, "{repeated} were told again, {lost} answers were lost");
}

#[test]
fn a_copy_that_is_made_under_load_has_all_that_was_acknowledged_before() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copies) = (folder.path().join("data"), folder.path().join("copies"));
    let given = ["--data", data.to_str().unwrap(), "--backups", copies.to_str().unwrap()];
    let process = Process::start(&given.map(str::to_owned));
    let address = process.address;
    ask(address, "PUT", "/collections/news", "{}");
    let stops = AtomicBool::new(false);
    let put = |id: &str| {
        let body = format!(r#"{{"text":"the quake of {id}"}}"#);
        ask(address, "PUT", &format!("/collections/news/items/{id}"), &body);
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !stops.load(Ordering::Relaxed) {
                put(&format!("w{written}"));
                written += 1;
            }
            written
        });
        for round in 0..support::rounds(4, 60) {
            put(&format!("r{round}"));
            // By the command, and by the service.
            let path = if round % 2 == 0 {
                let copy = format!("copy{round}");
                let arguments = ["collection", "backup", &copy, "--data", "data"];
                let output = cognate(folder.path(), &[], &arguments);
                assert!(output.status.success(), "{}", stderr(&output));
                folder.path().join(copy)
            } else {
                let copied = ask(address, "POST", "/-/backup", "");
                assert_eq!(copied["collections"], 1, "{copied}");
                copies.join(copied["name"].as_str().unwrap())
            };
            let (copied, cuts) = EmbeddedHome::open(&path, Limits::DEFAULT).unwrap();
            assert_eq!(cuts, []);
            let news = copied.named("news").unwrap();
            for before in 0..=round {
                assert!(news.get(&format!("r{before}"), 0).is_some(), "{before} of {round}");
            }
        }
        stops.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
    });
    // A copy that is served is what was copied.
    let copied = ask(address, "POST", "/-/backup", "");
    let restored = serve(&copies.join(copied["name"].as_str().unwrap()));
    let [before, after] = [address, restored.address]
        .map(|address| send(address, "GET", "/collections/news/items?limit=1000", "").unwrap());
    assert!(before.0 == 200 && before.1.contains("\"id\":\"r0\""), "{}", before.1);
    assert_eq!(before, after);
    let (status, refused) = send(restored.address, "POST", "/-/backup", "").unwrap();
    assert_eq!(status, 404, "{refused}");
    assert!(refused.contains("the setting `backups` names no folder"), "{refused}");
}

#[test]
fn a_second_process_and_a_damaged_log_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = serve(&data);
    ask(first.address, "PUT", "/collections/news", "{}");
    for at in 0..3 {
        let body = format!(r#"{{"text":"the quake {at}"}}"#);
        ask(first.address, "PUT", &format!("/collections/news/items/n{at}"), &body);
    }
    let arguments = ["--data".to_owned(), data.to_str().unwrap().to_owned()];
    let mut second = Process::start_with(first.model(), &arguments);
    assert!(!second.wait(Duration::from_secs(30)).success());
    // The last word is a line as all others are.
    let log = second.log();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("another process has these collections open"), "{log}");
    assert_eq!((&last["level"], &last["exit_code"]), (&"ERROR".into(), &1.into()), "{log}");
    let model = folder.path().join("model.safetensors");
    std::fs::copy(first.model(), &model).unwrap();
    drop(first);
    // As where it was killed before its chores.
    let _ = std::fs::remove_file(data.join("news/items.length"));
    let log = data.join("news/items.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&log, &bytes).unwrap();
    let mut damaged = Process::start_with(&model, &arguments);
    assert!(!damaged.wait(Duration::from_secs(30)).success());
    assert!(damaged.log().contains("nothing was changed"), "{}", damaged.log());
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    // Cut short within the last change, as by a crash, it is opened with a line in the log.
    bytes[middle] ^= 4;
    std::fs::write(&log, &bytes[..bytes.len() - 50]).unwrap();
    let process = serve(&data);
    assert_eq!(ask(process.address, "GET", "/collections/news", "")["items"], 2);
    assert!(process.log().contains("was not whole"), "{}", process.log());
}

/// A file that may not grow is a full disk to whoever writes it.
#[test]
fn where_nothing_can_be_written_the_old_items_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let process = serve(&data);
    let address = process.address;
    ask(address, "PUT", "/collections/news", "{}");
    ask(address, "PUT", "/collections/news/items/a", r#"{"text":"the quake"}"#);
    let length = std::fs::metadata(data.join("news/items.log")).unwrap().len();
    let is_told = |full: &str| {
        let page = send(address, "GET", "/metrics", "").unwrap().1;
        assert!(page.contains(&format!("\ncognate_collections_disk_full {full}\n")), "{page}");
    };
    is_told("0");
    limit_files(&process, Some(length + 40));
    let long = format!(r#"{{"text":"{}"}}"#, "no room for this ".repeat(20));
    let (status, body) = send(address, "PUT", "/collections/news/items/b", &long).unwrap();
    assert_eq!(status, 507, "{body}");
    assert!(body.contains("not_written") && !body.contains("items.log"), "{body}");
    assert_eq!(ask(address, "GET", "/collections/news", "")["items"], 1);
    is_told("1");
    limit_files(&process, None);
    ask(address, "PUT", "/collections/news/items/b", &long);
    is_told("0");
    drop(process);
    let process = serve(&data);
    assert_eq!(ask(process.address, "GET", "/collections/news", "")["items"], 2);
    // All of it can be deleted, and there is room again.
    limit_files(&process, Some(length + 40));
    ask(process.address, "DELETE", "/collections/news/items?all=true", "");
    ask(process.address, "PUT", "/collections/news/items/c", r#"{"text":"the river"}"#);
    drop(process);
    let process = serve(&data);
    assert_eq!(ask(process.address, "GET", "/collections/news", "")["items"], 1);
}
