//! `cognate eval recommend` by the built binary: readers who like two of four directions.

use serde_json::Value;

use crate::eval::figures::{cognate, compass};

/// Somebody who likes east and north waits for the same again, and northeast stands between them.
const ROWS: &str = "compass\tways\t1\teast\n\
                    compass\tways\t1\tnorth\n\
                    compass\tways\t1\teast east\n\
                    compass\tways\t1\tnorth north\n\
                    compass\tways\t0\tnortheast\n\
                    few\tone way\t1\teast\n";

const RUN: [&str; 9] = [
    "eval",
    "recommend",
    "ways.tsv",
    "--model=m.safetensors",
    "--methods=avg-cos",
    "--liked=2",
    "--draws=60",
    "--json",
    "-",
];

fn report(more: &[&str]) -> Value {
    let folder = compass(&[("ways.tsv", ROWS)]);
    let run = || cognate(folder.path(), &[&RUN, more].concat());
    let output = run();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, run().stdout, "the same figures every time");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn figure(report: &Value, setting: &str, name: &str) -> f64 {
    let results = report["files"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["setting"] == setting);
    result.and_then(|result| result[name].as_f64()).unwrap_or_else(|| panic!("{setting}: {name}"))
}

#[test]
fn figures_are_those_counted_by_hand() {
    let report = report(&["--lambda=0"]);
    assert_eq!(report["files"][0]["topics"], 1);
    assert_eq!(report["files"][0]["texts"], 5);
    let map = |setting: &str| figure(&report, setting, "map");
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
    };
    // Both wanted texts stand behind northeast: so it is for readers of two like texts, and by the
    // mean of both for all.
    let behind = (1.0 / 2.0 + 2.0 / 3.0) / 2.0;
    near(map("2 liked, mean"), behind);
    // The share of readers who like two ways: two of three on average.
    let share = (map("2 liked, best") - behind) / (1.0 - behind);
    assert!((0.4..0.9).contains(&share), "{share}");
    // By one liked text one wanted text stands before northeast and one after it.
    let between = (1.0 + 2.0 / 3.0) / 2.0;
    near(map("1 liked"), share * between + (1.0 - share) * behind);
    // What is most unlike the first follows it: the other way, where the first was a way.
    near(map("1 liked, diversify 0"), map("2 liked, best"));
    // Three texts are shown, two of them wanted.
    near(figure(&report, "1 liked", "precision_at_10"), 0.2);
    // Of the pairs of three texts: across and twice half-way, or the same and twice half-way.
    let half = 0.5_f64.sqrt();
    let alike = (share * 2.0 * half + (1.0 - share) * (1.0 + 2.0 * half)) / 3.0;
    near(figure(&report, "1 liked", "alike_at_10"), alike);
}

#[test]
fn a_file_without_enough_relevant_texts_is_refused() {
    let folder = compass(&[("ways.tsv", ROWS)]);
    let arguments = ["eval", "recommend", "ways.tsv", "--model=m.safetensors", "--liked=4"];
    let output = cognate(folder.path(), &arguments);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("ways: no topic has more than 4 relevant texts"), "{told}");
}

#[test]
fn a_method_that_only_ranks_is_refused() {
    let folder = compass(&[("ways.tsv", ROWS)]);
    let arguments = ["eval", "recommend", "ways.tsv", "--model=m.safetensors", "--methods=bm25"];
    let output = cognate(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn more_topics_than_liked_texts_are_refused() {
    let folder = compass(&[("ways.tsv", ROWS)]);
    let output = cognate(folder.path(), &[RUN.as_slice(), &["--topics=3"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// Ann opened east, north and then north again, which she is waiting for as the last; Bob opened one item.
#[test]
fn a_log_of_clicks_says_what_readers_wait_for() {
    let items = "id,text\ne,east\nn,north\nnn,north north\nx,northeast\n";
    let clicks = "{\"reader\":\"ann\",\"item\":\"nn\",\"time\":30}\n\
                  {\"reader\":\"ann\",\"item\":\"n\",\"time\":20}\n\
                  {\"reader\":\"ann\",\"item\":\"e\",\"time\":10}\n\
                  {\"reader\":\"ann\",\"item\":\"gone\",\"time\":40}\n\
                  {\"reader\":\"bob\",\"item\":\"e\",\"time\":10}\n";
    let folder = compass(&[("items.csv", items), ("clicks.ndjson", clicks)]);
    let run = |more: &[&str]| {
        let asked = ["eval", "recommend", "items.csv", "--clicks=clicks.ndjson"];
        let model = ["--model=m.safetensors", "--methods=avg-cos", "--liked=2"];
        cognate(folder.path(), &[&asked[..], &model, more].concat())
    };
    let output = run(&["--json", "-"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["clicks"], &report["files"][0]["topics"]), (&true.into(), &1.into()));
    // The latest of what was liked is north; by the mean of both, northeast stands first.
    assert_eq!(figure(&report, "1 liked", "map"), 1.0);
    assert_eq!(figure(&report, "2 liked, best", "map"), 1.0);
    assert_eq!(figure(&report, "2 liked, mean", "map"), 0.5);
    // Two files of items take one reading of the log, which may be a pipe.
    std::fs::write(folder.path().join("more.csv"), items).unwrap();
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_cognate"))
        .args(["eval", "recommend", "items.csv", "more.csv", "--clicks=-", "--model=m.safetensors"])
        .args(["--methods=avg-cos", "--liked=2", "--json", "-"])
        .stdin(std::fs::File::open(folder.path().join("clicks.ndjson")).unwrap())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&program.stdout).unwrap();
    assert_eq!(piped["files"][1]["results"], report["files"][0]["results"]);
    let table = String::from_utf8(run(&[]).stdout).unwrap();
    assert!(table.contains("items.csv, avg-cos: 1 readers of the log, 4 texts"), "{table}");
    std::fs::write(folder.path().join("clicks.ndjson"), clicks.replace("30", "\"soon\"")).unwrap();
    let refused = String::from_utf8(run(&[]).stderr).unwrap();
    assert!(refused.contains("clicks.ndjson, line 1: `time`: expected"), "{refused}");
}
