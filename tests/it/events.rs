//! `cognate events`: texts come back whole with their events, from files and live, in one run or in
//! several.

mod checkpoint;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::command::{cognate, command, stderr, stdout};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");

/// Two events and two texts alone, a minute apart: an event's name, and a text.
const STREAM: [(&str, &str); 10] = [
    ("quake", "Strong earthquake shakes the city of Lima tonight"),
    ("flood", "The river floods the old town of Passau"),
    ("quake", "Strong earthquake shakes Lima, people run out of their houses"),
    ("", "my cat sleeps on the keyboard again"),
    ("flood", "River floods the old town of Passau, streets under water"),
    ("quake", "Lima: a strong earthquake shakes houses in the city"),
    ("flood", "Old town of Passau under water, the river floods more streets"),
    ("", "this pancake recipe is the best so far"),
    ("quake", "Another strong earthquake shakes the city of Lima"),
    ("flood", "Passau: the river floods the old town again"),
];

fn objects() -> String {
    let mut lines = String::new();
    for (at, (_, text)) in STREAM.iter().enumerate() {
        let time = format!("2024-05-01T10:{at:02}:00Z");
        writeln!(lines, "{{\"id\":\"t{at}\",\"created_at\":\"{time}\",\"text\":\"{text}\"}}")
            .unwrap();
    }
    lines
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    cognate(folder, &[("COGNATE_MODEL", MODEL)], &[&["events"], arguments].concat())
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], code: i32, parts: &[&str]) {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    for part in parts {
        assert!(stderr(&output).contains(part), "`{part}` is missing in: {}", stderr(&output));
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tweets.ndjson"), objects()).unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn texts_come_back_whole_with_their_events() {
    let folder = folder();
    let folder = folder.path();
    let summary = ["--summary", "events.tsv"];
    succeeds(folder, &[&["tweets.ndjson", "-o", "events.ndjson"][..], &summary].concat());
    let lines = read(folder, "events.ndjson");
    let mut events = std::collections::BTreeMap::<&str, String>::new();
    for (((name, text), line), before) in STREAM.iter().zip(lines.lines()).zip(objects().lines()) {
        assert!(line.starts_with(before.strip_suffix('}').unwrap()), "{line}");
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["text"], *text);
        let event = line["event"].as_str().unwrap();
        assert_eq!(line["new"], line["event"] == line["id"]);
        match *name {
            "" => assert_eq!(line["new"], true, "{line}"),
            name => assert_eq!(events.entry(name).or_insert(event.to_owned()), event, "{line}"),
        }
        if line["new"] == false {
            assert!(line["score"].as_f64().unwrap() > 0.4 && line["nearest"].is_string(), "{line}");
        }
    }
    let table = read(folder, "events.tsv");
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!(rows[0].join(" "), "event start end texts per_hour words central chatter");
    let first: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..4]).collect();
    assert_eq!(
        first,
        [
            ["t0", "2024-05-01T10:00:00Z", "2024-05-01T10:08:00Z", "4"],
            ["t1", "2024-05-01T10:01:00Z", "2024-05-01T10:09:00Z", "4"]
        ]
    );
    assert!(rows[1][5].contains("lima") && rows[2][5].contains("passau"), "{table}");
    assert!(STREAM.iter().any(|(name, text)| *name == "flood" && *text == rows[2][6]), "{table}");
    // With those of one text: what says little, in words of every day, is the most of it chatter.
    succeeds(folder, &[&["tweets.ndjson"][..], &summary, &["--least", "1"]].concat());
    let table = read(folder, "events.tsv");
    let chatter = |event: &str| -> f64 {
        let row = table.lines().find(|row| row.starts_with(&format!("{event}\t"))).unwrap();
        row.rsplit('\t').next().unwrap().parse().unwrap()
    };
    let [quake, flood, cat, pancake] = ["t0", "t1", "t3", "t7"].map(chatter);
    assert!(quake.max(flood) < cat.min(pancake), "{table}");
    assert!([quake, flood, cat, pancake].iter().all(|share| (0.0..=1.0).contains(share)));
}

#[test]
fn rows_and_objects_give_the_same_events() {
    let folder = folder();
    let folder = folder.path();
    let (mut tabs, mut commas) = (String::new(), "when,tweet,said\n".to_owned());
    for (at, (_, text)) in STREAM.iter().enumerate() {
        let seconds = 1_714_557_600 + 60 * at;
        writeln!(tabs, "{seconds}\tt{at}\t{text}").unwrap();
        writeln!(commas, "{seconds},t{at},\"{text}\"").unwrap();
    }
    std::fs::write(folder.join("tweets.tsv"), tabs).unwrap();
    std::fs::write(folder.join("tweets.csv"), commas).unwrap();
    succeeds(folder, &["tweets.ndjson", "-o", "a.ndjson"]);
    let columns = ["--no-header", "--time", "1", "--id", "2", "--text", "3"];
    succeeds(folder, &[&["tweets.tsv", "-o", "b.tsv"][..], &columns].concat());
    let columns = ["--time", "when", "--id", "tweet", "--text", "said", "--prefix", "found_"];
    succeeds(folder, &[&["tweets.csv", "-o", "c.csv"][..], &columns].concat());
    let expected: Vec<String> = read(folder, "a.ndjson")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().into())
        .collect();
    let tabs = read(folder, "b.tsv");
    let events: Vec<&str> = tabs.lines().map(|row| row.split('\t').nth(3).unwrap()).collect();
    assert_eq!(events, expected);
    let commas = read(folder, "c.csv");
    let mut rows = commas.lines();
    let header = "when,tweet,said,found_event,found_nearest,found_score,found_new";
    assert_eq!(rows.next(), Some(header));
    let events: Vec<&str> = rows.map(|row| row.rsplit(',').nth(3).unwrap()).collect();
    assert_eq!(events, expected);
}

/// Times are read from ids that are those of tweets; where none are needed, the ids may be any.
#[test]
fn ids_have_times_if_they_are_those_of_tweets() {
    let folder = folder();
    let folder = folder.path();
    let rows = |id: &dyn Fn(usize) -> String| {
        let rows = STREAM.iter().enumerate();
        let rows = rows.map(|(at, (_, text))| format!("{}\t{text}\n", id(at)));
        rows.fold("tweet_id\ttext\n".to_owned(), |all, row| all + &row)
    };
    std::fs::write(folder.join("names.tsv"), rows(&|at| format!("t{at}"))).unwrap();
    let tweet = |at: usize| (1_228_393_702_244_134_912 + ((60_000 * at as u64) << 22)).to_string();
    std::fs::write(folder.join("tweets.tsv"), rows(&tweet)).unwrap();
    for named in [&["--id", "tweet_id"][..], &[]] {
        let run = |file: &str, more: &[&str]| {
            let more = [&["-o", "out.tsv", "--summary", "events.tsv"], named, more].concat();
            succeeds(folder, &[&[file][..], &more].concat());
            let starts = read(folder, "events.tsv");
            let starts =
                starts.lines().skip(1).map(|row| row.split('\t').nth(1).unwrap().to_owned());
            let events = read(folder, "out.tsv");
            let events =
                events.lines().skip(1).map(|row| row.split('\t').nth(2).unwrap().to_owned());
            (events.collect::<Vec<_>>(), starts.collect::<Vec<_>>())
        };
        let (events, starts) = run("names.tsv", &[]);
        assert_eq!((&*events[0], &*events[2], &*events[4]), ("t0", "t0", "t1"));
        assert_eq!(starts, ["", ""], "no time is known");
        let (events, starts) = run("tweets.tsv", &["--within", "1h"]);
        assert_eq!((&events[2], &events[4]), (&tweet(0), &tweet(1)));
        assert_eq!(starts, ["2020-02-14T19:00:55Z", "2020-02-14T19:01:55Z"]);
        assert_eq!(run("tweets.tsv", &[]), (events, starts));
        let names = [&["names.tsv", "--within", "1h"], named].concat();
        refused(folder, &names, 1, &["line 2", "`tweet_id`: expected the id of a tweet"]);
    }
}

#[test]
fn a_line_leaves_as_soon_as_it_is_decided() {
    let folder = folder();
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let mut command = command(program, folder.path(), &[("COGNATE_MODEL", MODEL)]);
    let command = command.arg("events").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = BufReader::new(output).lines();
    for line in objects().lines() {
        writeln!(input, "{line}").unwrap();
        // Without end of input: this would wait for ever if the line did.
        let answer = output.next().unwrap().unwrap();
        assert!(answer.starts_with(line.strip_suffix('}').unwrap()), "{answer}");
    }
    drop(input);
    assert!(output.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_stream_that_stops_goes_on_as_if_it_had_not() {
    let folder = folder();
    let folder = folder.path();
    succeeds(folder, &["tweets.ndjson", "-o", "whole.ndjson", "--last", "4"]);
    let all = objects();
    let lines: Vec<&str> = all.lines().collect();
    for (part, lines) in lines.chunks(3).enumerate() {
        let name = format!("part{part}.ndjson");
        std::fs::write(folder.join(&name), lines.join("\n")).unwrap();
        let more = ["-o", "parts.ndjson", "--state", "state", "--last", "4"];
        succeeds(folder, &[&[name.as_str()][..], &more].concat());
    }
    assert_eq!(read(folder, "parts.ndjson"), read(folder, "whole.ndjson"));
    // What another window found cannot be gone on from, nor what was damaged.
    let state = ["tweets.ndjson", "--state", "state"];
    refused(folder, &[&state[..], &["--last", "5"]].concat(), 1, &["state", "last 4", "last 5"]);
    let damaged = read(folder, "state").replacen("earthquake", "earthquakf", 1);
    std::fs::write(folder.join("state"), damaged).unwrap();
    refused(folder, &[&state[..], &["--last", "4"]].concat(), 1, &["state", "digest"]);
}

#[test]
fn records_that_cannot_be_read_are_left_out() {
    let folder = folder();
    let folder = folder.path();
    succeeds(folder, &["tweets.ndjson", "-o", "whole.ndjson"]);
    let late = "{\"id\":\"x\",\"created_at\":\"soon\",\"text\":\"a quake\"}";
    let (first, rest) =
        objects().split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    std::fs::write(folder.join("broken.ndjson"), format!("{first}\n{{\n{late}\n{rest}")).unwrap();
    refused(folder, &["broken.ndjson"], 1, &["broken.ndjson, line 2"]);
    let asked = ["broken.ndjson", "-o", "out.ndjson", "--bad-rows", "bad.ndjson"];
    let output = run(folder, &asked);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(read(folder, "out.ndjson"), read(folder, "whole.ndjson"));
    let told = "2 broken rows left out; the first: broken.ndjson, line 2";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
    let bad = read(folder, "bad.ndjson");
    assert!(bad.lines().nth(1).unwrap().contains("`created_at`"), "{bad}");
    let asked = ["broken.ndjson", "--bad-rows", "skip", "--columns", "event,id"];
    let output = run(folder, &asked);
    assert_eq!(stdout(&output).lines().next(), Some("{\"event\":\"t0\",\"id\":\"t0\"}"));
    let asked =
        ["broken.ndjson", "-o", "o", "--state", "s", "--checkpoint", "1s", "--bad-rows", "b"];
    refused(folder, &asked, 2, &["--bad-rows takes skip or stop"]);
}

#[test]
fn what_cannot_be_done_is_refused_with_what_to_do() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("gold.tsv"), "event\ttext\na\tb\n").unwrap();
    refused(folder, &["gold.tsv"], 2, &["`event`", "--prefix"]);
    refused(folder, &["gold.tsv", "--within", "1h", "--prefix", "x"], 2, &["--time"]);
    refused(folder, &["gold.tsv", "--text", "body"], 1, &["`body`", "event, text"]);
    refused(folder, &["tweets.ndjson", "-o", "tweets.ndjson"], 2, &["-o", "that are read"]);
    refused(folder, &["tweets.ndjson", "--second", "wrd"], 2, &["wrd", "--threshold"]);
    refused(folder, &["tweets.ndjson", "--method", "wmd"], 2, &["wmd"]);
    refused(folder, &["tweets.ndjson", "--within", "1 day"], 2, &["24h"]);
    let bad = objects().replacen("2024-05-01T10:03:00Z", "noon", 1);
    std::fs::write(folder.join("bad.ndjson"), bad).unwrap();
    refused(folder, &["bad.ndjson", "-o", "out.ndjson"], 1, &["line 4", "created_at", "noon"]);
    assert!(!folder.join("out.ndjson").exists(), "half of an output was left");
}

#[test]
fn settings_are_measured_on_a_labelled_stream() {
    let folder = folder();
    let folder = folder.path();
    let mut rows = "event\ttime\trelated\tenglish\ttext\n".to_owned();
    for (at, (event, text)) in STREAM.iter().enumerate() {
        let related = u8::from(!event.is_empty());
        // Another day, another event: interleaving lets both begin at once.
        let day = if *event == "flood" { 2 } else { 1 };
        writeln!(rows, "{event}\t2024-05-{day:02}T10:{at:02}:00Z\t{related}\t1\t{text}").unwrap();
    }
    writeln!(rows, "flood\t2024-05-02T11:00:00Z\t1\t0\tla rivière déborde").unwrap();
    std::fs::write(folder.join("gold.tsv"), rows).unwrap();
    let arguments = ["eval", "events", "gold.tsv", "--gold", "event", "--interleave"];
    let more = ["--json", "-", "--html", "page.html"];
    let environment = [("COGNATE_MODEL", MODEL)];
    let output = cognate(folder, &environment, &[&arguments[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["format"], "cognate-eval-events-1");
    assert_eq!((&report["texts"], &report["gold_events"]), (&10.into(), &2.into()));
    let results = report["results"].as_array().unwrap();
    let names: Vec<&str> = results.iter().map(|result| result["name"].as_str().unwrap()).collect();
    let seconds = ["avg-cos", "avg-cos, then coverage", "avg-cos, then same-event"];
    assert_eq!(names, [&seconds[..], &["tf-idf", "MinHash"]].concat());
    for result in &results[..3] {
        assert_eq!(result["figures"]["best_match_f1"], 1.0, "{result}");
        assert_eq!(result["figures"]["ari"], 1.0, "{result}");
    }
    let page = read(folder, "page.html");
    for part in ["Labelled events", "Events found", "quake shakes · lima", "Settings tried"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// A file that may not grow is a full disk to whoever writes it.
#[test]
fn a_full_disk_is_said_with_the_file_and_its_own_exit_code() {
    let folder = folder();
    let folder = folder.path();
    let many = objects().repeat(40);
    std::fs::write(folder.join("many.ndjson"), many).unwrap();
    let program = env!("CARGO_BIN_EXE_cognate");
    for (arguments, named) in [
        ("-o out.ndjson", "cannot write out.ndjson: File too large"),
        ("-o grown.ndjson --state state", "cannot write grown.ndjson: File too large"),
        ("> /dev/full", "cannot write standard output: No space left"),
    ] {
        let script = format!("ulimit -f 1; exec '{program}' events many.ndjson {arguments}");
        let output = command(Path::new("bash"), folder, &[("COGNATE_MODEL", MODEL)])
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
        assert!(!folder.join("out.ndjson").exists());
    }
    let names = std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name());
    let left = names.filter(|name| name.to_string_lossy().starts_with(".cognate-tmp-"));
    assert_eq!(left.count(), 0);
}
