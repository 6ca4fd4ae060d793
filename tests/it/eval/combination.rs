//! The best combination of scores, learned on one file and measured on another, by the built
//! binary.

use std::path::Path;

use serde_json::Value;

use crate::eval::figures::{cognate, compass};

/// Queries whose relevant candidate neither column puts first, but their sum does: it is second by
/// either, and what is first by one is last by the other. A third column tells nothing.
fn rows(queries: std::ops::Range<u32>) -> String {
    let mut rows = String::from("qid\tquery\tlabel\ttext\tone\tother\tnoise\n");
    for qid in queries {
        // Queries have scales of their own, which must not matter.
        let scale = f64::from(qid % 7 + 1);
        let candidates =
            [(1, 2.0, 2.0), (0, 3.0, 0.0), (0, 0.0, 3.0), (0, 1.0, 0.5), (0, 0.5, 1.0)];
        for (at, (label, one, other)) in (0_u32..).zip(candidates) {
            let noise = (qid * 31 + at * 17) % 13;
            let (one, other) = (one * scale, other / scale - 40.0);
            rows += &format!("{qid}\teast\t{label}\tnorth\t{one}\t{other}\t{noise}\n");
        }
    }
    rows
}

fn folder() -> tempfile::TempDir {
    let (learned, measured) = (rows(0..20), rows(20..30));
    let judged: String = (0..20).map(|qid| format!("{qid}\tnone\t1\n")).collect();
    compass(&[("learn.tsv", &learned), ("measure.tsv", &measured), ("judged.tsv", &judged)])
}

const MEASURED: [&str; 8] = [
    "eval",
    "ranking",
    "measure.tsv",
    "--model",
    "m.safetensors",
    "--methods=none",
    "--baseline=one",
    "--column=one,other,noise",
];

fn run(folder: &Path, more: &[&str]) -> std::process::Output {
    cognate(folder, &[MEASURED.as_slice(), more].concat())
}

fn report(folder: &Path, more: &[&str]) -> Value {
    let output = run(folder, &[more, &["--json", "-"]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, run(folder, &[more, &["--json", "-"]].concat()).stdout);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_scores_order_right_together_where_neither_does_alone() {
    let folder = folder();
    let combine = ["--combine", "one,other,noise", "--combine-on", "learn.tsv"];
    let report = report(folder.path(), &combine);
    let results = report["files"][0]["results"].as_array().unwrap();
    let map = |name: &str| {
        results.iter().find(|result| result["method"] == name).unwrap()["map"].as_f64().unwrap()
    };
    assert_eq!((map("one"), map("other"), map("combination")), (0.5, 0.5, 1.0));
    let learned = &report["combination"];
    assert_eq!(learned["learned_on"], serde_json::json!(["learn"]));
    assert_eq!((&learned["queries"], &learned["map"]), (&20.into(), &1.0.into()));
    assert_eq!(learned["judgements"], "labels");
    let weights: Vec<f64> = learned["weights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|weight| weight["weight"].as_f64().unwrap())
        .collect();
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9 && weights[2] < 0.35, "{weights:?}");
    assert_eq!(learned["weights"][1]["name"], "other");
    let listed = report["methods"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&listed["name"], &listed["measure"]), (&"combination".into(), &Value::Null));
    assert!(listed["summary"].as_str().unwrap().contains("other"), "{listed}");

    let shown = run(folder.path(), &[&combine[..], &["--html", "page.html"]].concat());
    let shown = String::from_utf8(shown.stdout).unwrap();
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for told in [shown, page] {
        assert!(told.contains("combination, learned on learn"), "{told}");
    }
}

#[test]
fn methods_are_combined_with_columns_and_measured_with_them() {
    let folder = folder();
    let combine = ["--combine", "AVG_COS,one", "--combine-on", "learn.tsv"];
    let report = report(folder.path(), &combine);
    let names: Vec<&str> = report["files"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["method"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "other", "noise", "avg-cos", "combination"]);
    assert_eq!(report["baseline"], "one");
}

#[test]
fn what_cannot_be_combined_is_refused() {
    let folder = folder();
    let refused = |more: &[&str], code: i32, expected: &str| {
        let output = run(folder.path(), more);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(expected), "`{expected}` is not in: {message}");
    };
    let two = ["--combine", "one,other", "--combine-on"];
    let on = |file: &'static str| [two.as_slice(), &[file]].concat();
    refused(&on("measure.tsv"), 2, "measure.tsv is both measured and learned on");
    refused(&on("./measure.tsv"), 2, "both measured and learned on");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("measure.tsv", folder.path().join("link.tsv")).unwrap();
        refused(&on("link.tsv"), 2, "link.tsv is both measured and learned on");
    }
    refused(&on("missing.tsv"), 1, "missing.tsv");
    refused(&["--combine", "one", "--combine-on", "learn.tsv"], 2, "two or more");
    refused(&["--combine", "one,one", "--combine-on", "learn.tsv"], 2, "`one` is combined twice");
    refused(&["--combine", "one,othr", "--combine-on", "learn.tsv"], 2, "`othr`");
    refused(&["--combine", "one,other"], 2, "--combine-on");
    refused(&["--combine-on", "learn.tsv"], 2, "--combine");
    let strange = [on("learn.tsv"), vec!["--combine-qrels", "strange.tsv"]].concat();
    std::fs::write(folder.path().join("strange.tsv"), "nobody\tx\t1\n").unwrap();
    refused(&strange, 1, "learn: the judgements list none of its queries");
    // Judgements that know none of the candidates leave nothing to climb, and that is no error.
    let report =
        report(folder.path(), &[on("learn.tsv"), vec!["--combine-qrels", "judged.tsv"]].concat());
    assert_eq!(report["combination"]["judgements"], "qrels");
    assert_eq!(report["combination"]["map"], 0.0);
}
