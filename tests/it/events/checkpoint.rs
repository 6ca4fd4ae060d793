//! `cognate events --checkpoint`: a run that is killed anywhere is gone on from, and what it has written in the
//! end is what a run writes that nobody kills.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::events::{MODEL, STREAM, folder, objects, read, refused, run, succeeds};
use crate::support::command::{command, stderr};

/// Draws numbers that differ from each other and are the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

/// Texts a second apart, some out of their order and some much too late.
fn many(count: u64) -> String {
    let mut draws = Draws(7);
    let mut lines = String::new();
    for number in 0..count {
        let (_, text) = STREAM[draws.below(10) as usize];
        let (other, late) = (draws.below(1 << 20), draws.below(30));
        let behind = if late == 0 { 500 } else { late % 20 };
        let time = 1_714_557_600 + number.saturating_sub(behind);
        writeln!(lines, "{{\"id\":\"t{number}\",\"time\":{time},\"text\":\"{text} {other}\"}}")
            .unwrap();
    }
    lines
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let mut command = command(program, folder, &[("COGNATE_MODEL", MODEL)]);
    let command = command.arg("events").args(arguments);
    command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn length(folder: &Path, name: &str) -> u64 {
    std::fs::metadata(folder.join(name)).map_or(0, |file| file.len())
}

/// What the state says of how far the run was.
fn checkpoint(folder: &Path) -> Value {
    let state = read(folder, "state");
    serde_json::from_str::<Value>(state.lines().next().unwrap()).unwrap()["checkpoint"].take()
}

/// Waits until an output is this long or the run has ended; whether it has.
#[track_caller]
fn until_written(run: &mut Child, folder: &Path, bytes: u64) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(status) = run.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return true;
        }
        if length(folder, "out") >= bytes {
            return false;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{bytes} bytes are never written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_that_is_killed_anywhere_writes_what_a_whole_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("many.ndjson"), many(4000)).unwrap();
    let rule = ["many.ndjson", "--slack", "20s", "--within", "10m", "--last", "300"];
    succeeds(folder, &[&rule[..], &["-o", "whole"]].concat());
    let whole = read(folder, "whole");
    let mut lost = 0;
    for (every, seed) in [("0s", 1), ("1s", 2)] {
        let mut draws = Draws(seed);
        let more = ["-o", "out", "--state", "state", "--checkpoint", every];
        let mut kills = 0;
        loop {
            let mut run = start(folder, &[&rule[..], &more].concat());
            // Six kills at most, at places that are drawn, then to the end.
            let ahead = draws.below(whole.len() as u64 / 4);
            let target = if kills < 6 { length(folder, "out") + ahead } else { u64::MAX };
            if until_written(&mut run, folder, target) {
                break;
            }
            run.kill().unwrap();
            run.wait().unwrap();
            kills += 1;
            if !folder.join("state").exists() {
                assert_eq!(length(folder, "out"), 0, "lines before the first state");
                continue;
            }
            // With the machine's power some of what was not synced may go, too.
            let kept = checkpoint(folder)["output"]["bytes"].as_u64().unwrap();
            let written = length(folder, "out");
            let left = kept + draws.below(written - kept + 1);
            let file = OpenOptions::new().write(true).open(folder.join("out")).unwrap();
            file.set_len(left).unwrap();
            lost += written - kept;
        }
        assert!(kills > 0);
        assert!(read(folder, "out") == whole, "every {every}: the output is another");
        assert_eq!(checkpoint(folder)["ended"], true);
        std::fs::remove_file(folder.join("state")).unwrap();
        std::fs::remove_file(folder.join("out")).unwrap();
    }
    assert!(lost > 0, "nothing was ever written again");
}

/// A broker gives again what nobody acknowledged: some of what was read, or nothing of it.
#[test]
fn standard_input_goes_on_where_it_was_or_before() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut rows = "id,text\n".to_owned();
    for number in 0..300 {
        writeln!(rows, "r{number},{} {}", STREAM[number % 10].1.replace(',', ""), number % 37)
            .unwrap();
    }
    std::fs::write(folder.join("rows.csv"), &rows).unwrap();
    succeeds(folder, &["rows.csv", "-o", "whole"]);
    let arguments = ["-o", "out", "--state", "state", "--checkpoint", "0s"];
    let lines: Vec<&str> = rows.lines().collect();
    let give = |run: &mut Child, lines: &[&str]| {
        let input = run.stdin.as_mut().unwrap();
        input.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        input.flush().unwrap();
    };
    let whole = read(folder, "whole");
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    // Records that were given, and how many of those that are in the state are given again.
    let (mut given, mut first) = (0, true);
    for (count, again) in [(70, 0), (90, 50), (60, 0), (300, 300)] {
        let known = match first {
            true => 0,
            false => checkpoint(folder)["input"]["records"].as_u64().unwrap() as usize,
        };
        // The numbers of a state count from the first record of its own run.
        let from = if first { 0 } else { given - given.min(again).min(known) };
        let to = (from + count).min(300);
        let mut run = start(folder, &arguments);
        give(&mut run, &[&lines[..1], &lines[1 + from..=to]].concat());
        given = to;
        first = false;
        assert!(!until_written(&mut run, folder, ends[given] as u64));
        if given < 300 {
            // The state that names these records is written after their lines.
            let begun = Instant::now();
            while checkpoint(folder)["output"]["bytes"] != ends[given] {
                assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint");
                std::thread::sleep(Duration::from_millis(1));
            }
            run.kill().unwrap();
            run.wait().unwrap();
        } else {
            drop(run.stdin.take());
            assert!(run.wait().unwrap().success());
        }
    }
    assert_eq!(read(folder, "out"), whole);
}

#[test]
fn a_run_that_is_told_to_stop_goes_on_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = many(200);
    let arguments = ["--slack", "20s", "-o", "out", "--state", "state", "--checkpoint", "24h"];
    std::fs::write(folder.join("many.ndjson"), &all).unwrap();
    succeeds(folder, &["many.ndjson", "--slack", "20s", "-o", "whole"]);
    let half: Vec<&str> = all.lines().take(100).collect();
    let mut run = start(folder, &arguments);
    run.stdin.as_mut().unwrap().write_all((half.join("\n") + "\n").as_bytes()).unwrap();
    assert!(!until_written(&mut run, folder, 10_000));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    // It stops once the next line comes, unless it does already; the texts that wait to be put in order wait
    // in the state.
    let next = all.lines().nth(100).unwrap();
    let _ = run.stdin.as_mut().unwrap().write_all(format!("{next}\n").as_bytes());
    assert!(run.wait().unwrap().success());
    let before = checkpoint(folder);
    let records = before["input"]["records"].as_u64().unwrap();
    assert!(before["ended"] == false && [100, 101].contains(&records), "{before}");
    assert!(before["waiting"].as_u64().unwrap() > 0, "{before}");
    // Without the flag it would not know what to do with that.
    refused(folder, &["many.ndjson", "--slack", "20s", "--state", "state"], 1, &["--checkpoint"]);
    succeeds(folder, &[&["many.ndjson"][..], &arguments].concat());
    assert_eq!(read(folder, "out"), read(folder, "whole"));
}

#[test]
fn a_file_that_is_not_the_one_is_not_cut() {
    let folder = folder();
    let folder = folder.path();
    let arguments = ["-o", "out", "--state", "state", "--checkpoint", "0s"];
    let mut run = start(folder, &arguments);
    run.stdin.as_mut().unwrap().write_all(objects().as_bytes()).unwrap();
    let begun = Instant::now();
    while !folder.join("state").exists() || checkpoint(folder)["input"]["records"] != 10 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    // While it runs, no other takes its output.
    refused(folder, &[&["tweets.ndjson"][..], &arguments].concat(), 2, &["another run"]);
    run.kill().unwrap();
    run.wait().unwrap();
    let written = read(folder, "out");
    let refuses = |output: &str, input: &str, parts: &[&str]| {
        std::fs::write(folder.join("out"), output).unwrap();
        refused(folder, &[&[input][..], &arguments].concat(), 1, &[&["state"], parts].concat());
        assert_eq!(read(folder, "out"), output, "what was refused was changed");
    };
    refuses(&written[..written.len() - 1], "tweets.ndjson", &["out has"]);
    let other = written.replacen("t1", "t2", 1) + "{\"more\":true}\n";
    refuses(&other, "tweets.ndjson", &["out is not what"]);
    let other = objects().replacen("Lima", "Rome", 1);
    std::fs::write(folder.join("other.ndjson"), other).unwrap();
    refuses(&written, "other.ndjson", &["after 10 records"]);
    let later: String = objects().lines().skip(1).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(folder.join("later.ndjson"), later).unwrap();
    refuses(&written, "later.ndjson", &["after 10 records"]);
    succeeds(folder, &[&["tweets.ndjson"][..], &arguments].concat());
    assert_eq!(read(folder, "out"), written);
    // What has left cannot be cut, nor is a table of half a stream written.
    refused(folder, &["tweets.ndjson", "--state", "s", "--checkpoint", "30s"], 2, &["-o"]);
    let table = ["--state", "s", "--checkpoint", "30s", "-o", "out", "--summary", "table"];
    refused(folder, &[&["tweets.ndjson"][..], &table].concat(), 2, &["--summary"]);
    refused(folder, &["tweets.ndjson", "-o", "out", "--checkpoint", "30s"], 2, &["--state"]);
    let output = run_to_device(folder);
    assert!(output.contains("checkpoints need a file"), "{output}");
}

fn run_to_device(folder: &Path) -> String {
    let arguments = ["tweets.ndjson", "-o", "/dev/null", "--state", "s", "--checkpoint", "30s"];
    stderr(&run(folder, &arguments)).to_owned()
}
