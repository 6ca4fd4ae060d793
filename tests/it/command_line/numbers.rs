//! No number on the command line ends a run by a panic, an abort or a signal, or keeps it busy.

use std::any::TypeId;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Arg;
use cognate::model::format::Dtype;
use cognate_collections::{self, EmbeddedHome, Incoming};
use cognate_server::http::settings::{LIST, ValueShape};

use crate::support;

/// The numbers that every flag is given, and what is no number to most.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "1e308",
    "-1e308",
    "nan",
    "inf",
];

/// Longest that a run may take, on a machine with much else to do.
const MAX: Duration = Duration::from_secs(60);

/// A run that a flag is added to: of each subcommand one that is soon over.
fn run_of(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "pack" => &["v.txt", "-o=out"],
        "fit" => &["m.safetensors", "--universe=axes:3", "-o=out"],
        "inspect" => &["m.safetensors", "quake"],
        "similarity" => {
            &["--input=pairs.tsv", "--no-header", "--a=2", "--b=3", "--model=m.safetensors"]
        }
        "embed" => &["--input=pairs.tsv", "--no-header", "--text=2", "--model=m.safetensors"],
        "dedupe" => &["pairs.tsv", "--no-header", "--text=2", "--model=m.safetensors"],
        "rank" => &["quake", "the quake", "new york", "--model=m.safetensors"],
        "collection create" => &["news", "--data=data"],
        "collection rank" => &["titles", "quake", "--data=data", "--model=m.safetensors"],
        "collection sweep" => {
            &["titles", "--data=data", "--threshold=0.5", "--model=m.safetensors"]
        }
        "collection match" => {
            &["titles", "items.ndjson", "--data=data", "--min-score=0.5", "--model=m.safetensors"]
        }
        "collection plan" => {
            &["items.ndjson", "--items=100", "--threshold=0.5", "--model=m.safetensors"]
        }
        "events" => &["tweets.tsv", "--threshold=0.5", "--model=m.safetensors"],
        "eval events" => &["events.tsv", "--gold=event", "--model=m.safetensors"],
        "eval sts" => &["sts.tsv", "--model=m.safetensors", "--methods=avg-cos,dynamax"],
        "eval pairs" => &["pairs.tsv", "--model=m.safetensors", "--methods=avg-cos"],
        "eval ranking" => &["rank.tsv", "--model=m.safetensors", "--methods=avg-cos"],
        "eval recommend" => &["recommend.tsv", "--model=m.safetensors", "--methods=avg-cos"],
        "eval calibrate" => &["pairs.tsv", "--model=m.safetensors", "--methods=avg-cos", "-o=out"],
        "pairs text" => &["two.txt", "-o=out", "--length=2"],
        "pairs tweets" => &["tweets.tsv", "-o=out"],
        "train vectors" => &["two.txt", "-o=out", "--dims=4", "--min-count=1", "--restart"],
        "train weights" => {
            &["couples.tsv", "--model=m.safetensors", "-o=out", "--kappa=2", "--restart"]
        }
        "train ranker" => &[
            "--data=rank.tsv",
            "--valid=rank.tsv",
            "--model=m.safetensors",
            "-o=out",
            "--filters=4",
            "--hidden=4",
            "--joint=4",
            "--epochs=1",
            "--restart",
        ],
        "healthcheck" => &["--url=http://127.0.0.1:1/"],
        "keygen" => &["somebody"],
        "serve" => &["--check", "--model=m.safetensors"],
        other => panic!("`{other}` takes numbers: say here how it is run"),
    }
}

/// What a run is given besides, so that the flag matters; several things where it matters in several
/// ways.
fn also(subcommand: &str, flag: &str) -> &'static [&'static [&'static str]] {
    match (subcommand, flag) {
        ("pack", "hash-norm") => &[&["--unknown=fallback"]],
        ("train vectors", "negatives" | "window" | "sample" | "threads" | "rate") => {
            &[&[], &["--objective=skip-gram"], &["--objective=cbow", "--hogwild"]]
        }
        _ => &[&[]],
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::write(folder.path().join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    write("v.txt", "the 0.1 0.2 0.3\nquake 1 0 0\ncity 0 1 0\ntown 0 0.9 0.1\n");
    write("sts.tsv", "5\tquake\tthe quake\n1\tcity\tnew york\n2\ttown\tthe city\n");
    write("pairs.tsv", "1\tquake\tthe quake\n1\ttown\ttown\n0\tcity\tnew\n0\thits\tyork\n");
    let ranks = ["1\tquake\t1\tearthquake hits", "1\tquake\t0\tnew york", "1\tquake\t0\tthe town"];
    let ranks = ranks.map(|row| row.to_owned() + "\n").concat();
    write("rank.tsv", &(ranks.clone() + &ranks.replace("1\tquake", "2\tshakes")));
    let topics = ["quake", "the quake", "quake hits", "earthquake", "town", "the town", "city"];
    let topics = [1, 2].map(|topic| topics.map(|text| format!("{topic}\ttopic\t1\t{text}\n")));
    write("recommend.tsv", &topics.concat().concat());
    let document = "the quake hits the city\nthe town shakes\nnew york hits the town\n".repeat(3);
    write("two.txt", &format!("{document}\n\n{document}"));
    let tweets = [
        "old church tower fell down #quake",
        "we felt it all over rome #quake",
        "umbrella sales doubled along every coast #storm",
        "trains stand still until monday morning #storm",
    ];
    let tweets = tweets.map(|text| format!("2020-01-01 12:00:00\t{text}\n")).concat();
    write("tweets.tsv", &format!("time\ttext\n{tweets}"));
    let labelled = "time\ttext\tevent\n2020-01-01 12:00:00\tthe quake\tone\n\
                    2020-01-01 12:01:00\tnew york\ttwo\n2020-01-01 12:02:00\tthe quake hits\tone\n";
    write("events.tsv", labelled);
    let couples = (0..400).map(|at| match at % 4 {
        0 => "1\tthe quake hits the city\tthe earthquake shakes the town\n",
        1 => "0\tthe quake hits\tnew york\n",
        2 => "1\tnew york the city\tthe city new york\n",
        _ => "0\tthe town shakes\to'neill hits new york\n",
    });
    write("couples.tsv", &couples.collect::<String>());
    write("items.ndjson", "{\"id\":1,\"text\":\"the quake\"}\n{\"id\":2,\"text\":\"new york\"}\n");
    let (collections, _) =
        EmbeddedHome::open(&folder.path().join("data"), cognate_collections::Limits::DEFAULT)
            .unwrap();
    let (titles, _) =
        collections.make("titles", cognate_collections::Settings::default(), 0).unwrap();
    let item = serde_json::from_str::<Incoming>(r#"{"id":0,"text":"the quake hits"}"#).unwrap();
    titles.put(vec![item.into_item(0)], 0).unwrap();
    folder
}

/// Whether a flag takes a number, or a form of its own that may hold one: all that is no path, no
/// text and no choice of words.
fn takes_numbers(flag: &Arg) -> bool {
    let kind = flag.get_value_parser().type_id();
    let texts = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()];
    let words = flag.get_possible_values();
    flag.get_action().takes_values() && words.is_empty() && !texts.iter().any(|text| kind == *text)
}

/// Every subcommand with the flags of it that take numbers.
fn flags_with_numbers() -> Vec<(String, String)> {
    fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            walk(inner, &path, found);
        }
        let flags = command.get_arguments().filter(|flag| takes_numbers(flag));
        let flags = flags.filter_map(|flag| flag.get_long());
        found.extend(flags.map(|flag| (path.trim().to_owned(), flag.to_owned())));
    }
    let mut found = Vec::new();
    walk(&cognate_server::cli::command(), "", &mut found);
    // Settings are all texts to the command line; their own list tells their kinds.
    let numbers = |shape| matches!(shape, ValueShape::Count(..) | ValueShape::Bytes(..));
    let settings = LIST.iter().filter(|setting| numbers(setting.rule.shape));
    found.extend(settings.map(|setting| ("serve".to_owned(), setting.flag())));
    found
}

/// Runs the program in the folder; none if it does not come to an end.
fn end_of(folder: &Path, arguments: &[String]) -> Option<ExitStatus> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    let log = File::create(folder.join("log")).unwrap();
    let mut run = command.env_remove("COGNATE_MODEL").stderr(log).spawn().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < MAX {
        if let Some(status) = run.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    None
}

/// A run with the flag in the place of one that the run has anyway.
fn with(subcommand: &str, more: &[&str], flag: &str, number: &str) -> Vec<String> {
    let own = format!("--{flag}=");
    let given = run_of(subcommand).iter().chain(more).filter(|given| !given.starts_with(&own));
    let path = subcommand.split(' ').map(str::to_owned);
    path.chain(given.map(|&given| given.to_owned())).chain([format!("{own}{number}")]).collect()
}

#[test]
fn no_number_makes_a_run_end_badly_or_never() {
    let flags = flags_with_numbers();
    for known in [
        ("pack", "dims"),
        ("inspect", "neighbours"),
        ("eval ranking", "at"),
        ("pairs tweets", "per-tweet"),
        ("train vectors", "checkpoint-every"),
        ("train weights", "kappa"),
        ("serve", "max-pairs"),
    ] {
        assert!(flags.iter().any(|(a, b)| (a.as_str(), b.as_str()) == known), "{known:?}");
    }
    let mut runs = Vec::new();
    for (subcommand, flag) in &flags {
        for more in also(subcommand, flag) {
            let of_flag = NUMBERS.iter().map(|number| with(subcommand, more, flag, number));
            runs.extend(of_flag);
        }
    }
    println!("{} flags, {} runs", flags.len(), runs.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let folder = folder();
        while let Some(arguments) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let status = end_of(folder.path(), arguments);
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
            let status = status.unwrap_or_else(|| panic!("{arguments:?} does not end:\n{log}"));
            let fine = matches!(status.code(), Some(0..=2));
            assert!(fine, "{arguments:?}: {status}\n{log}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
}

#[test]
fn the_runs_that_numbers_are_tried_in_come_to_something() {
    let mut subcommands: Vec<String> =
        flags_with_numbers().into_iter().map(|(subcommand, _)| subcommand).collect();
    subcommands.dedup();
    for subcommand in subcommands.iter().filter(|subcommand| *subcommand != "healthcheck") {
        let folder = folder();
        let path = subcommand.split(' ').map(str::to_owned);
        let given = run_of(subcommand).iter().map(|&given| given.to_owned());
        let arguments: Vec<String> = path.chain(given).collect();
        let status = end_of(folder.path(), &arguments).unwrap();
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(status.success(), "{arguments:?}: {status}\n{log}");
    }
}
