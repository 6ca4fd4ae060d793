//! `cognate eval` by the built binary, on directions of a compass: every figure can be counted out.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Cosines: 1 for a direction and itself, 0 for east and north, √½ for either and northeast.
const COMPASS: &str = "east 1 0\nnorth 0 1\nnortheast 1 1\n";

pub fn cognate(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cognate");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

/// A folder with the model `m.safetensors` and these files.
pub fn compass(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("v.txt", COMPASS)].iter().chain(files) {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let packed = cognate(folder.path(), &["pack", "v.txt", "-o", "m.safetensors"]);
    assert!(packed.status.success(), "{packed:?}");
    folder
}

fn eval(folder: &Path, arguments: &[&str]) -> Output {
    cognate(folder, &[&["eval"], arguments, &["--model", "m.safetensors"]].concat())
}

/// The JSON of a run that succeeds, the same bits twice.
fn figures(folder: &Path, arguments: &[&str]) -> Value {
    let run = || eval(folder, &[arguments, &["--json", "-"]].concat());
    let output = run();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, run().stdout, "the same figures every time");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or(f64::NAN);
    assert!((found - expected).abs() < 1e-6, "{value}, expected {expected}");
}

const STS: &str = "0\teast\tnorth\n5\teast\teast\n1\tzzz\teast\n3\teast\tnortheast\n";

#[test]
fn sts_figures_are_those_counted_by_hand() {
    let one = "0\teast\tnorth\n1\teast\teast\n";
    let files = [("2012.a.tsv", STS), ("2012.b.tsv", one), ("alone.tsv", one)];
    let folder = compass(&files);
    let arguments = ["sts", ".", "--methods", "avg-cos,DynaMax", "--resamples", "200"];
    let report = figures(folder.path(), &arguments);

    assert_eq!(report["format"], "cognate-eval-1");
    assert_eq!(report["task"], "sts");
    assert_eq!(report["model"]["fingerprint"].as_str().unwrap().len(), 16);
    assert_eq!(report["methods"][1]["method"], "dynamax-jaccard");
    assert_eq!(report["methods"][0]["measure"], "cosine");
    assert_eq!(report["methods"][1]["measure"], Value::Null, "it has no vectors of texts");
    // Gold 0 5 1 3 against 0 1 0 √½; the pair with an unknown word counts as 0.
    let subtask = &report["subtasks"][0];
    let result = &subtask["results"][0];
    let root = 0.5_f64.sqrt();
    let spread = 14.75 * (1.5 - (1.0 + root).powi(2) / 4.0);
    let pearson = (2.75 + 0.75 * root) / spread.sqrt();
    near(&result["pearson"], pearson);
    near(&result["spearman"], 4.5 / 22.5_f64.sqrt());
    assert_eq!(result["unscored"], 1);
    assert_eq!((&subtask["name"], &subtask["year"]), (&"2012.a".into(), &2012.into()));
    assert_eq!(result["difference"], Value::Null, "the baseline");
    assert!(subtask["results"][1]["difference"]["low"].is_f64());
    near(&report["years"][0]["results"][0]["pearson"], (pearson + 1.0) / 2.0);
    let overall = &report["overall"];
    assert_eq!(overall["over"], "years", "what stands alone is not in the mean");
    near(&overall["results"][0]["pearson"], (pearson + 1.0) / 2.0);
    assert!(overall["results"][1]["wilcoxon"]["p"].as_f64().unwrap() > 0.4);
}

#[test]
fn the_view_of_mteb_takes_the_pairs_of_a_year_together() {
    let one = "0\teast\tnorth\n1\teast\teast\n";
    let both = format!("{STS}{one}");
    let files = [("2012.a.tsv", STS), ("2012.b.tsv", one), ("alone.tsv", one), ("both.tsv", &both)];
    let folder = compass(&files);
    let arguments = ["sts", ".", "--methods", "avg-cos", "--view", "mteb", "--resamples", "50"];
    let report = figures(folder.path(), &arguments);
    assert_eq!(report["view"], "mteb");
    let names: Vec<_> =
        report["subtasks"].as_array().unwrap().iter().map(|of| &of["name"]).collect();
    assert_eq!(names, ["2012", "alone", "both"]);
    let [year, _, both] = [0, 1, 2].map(|at| &report["subtasks"][at]["results"][0]["spearman"]);
    assert_eq!(year, both);
    assert_eq!(&report["overall"]["results"][0]["spearman"], year);
}

#[test]
fn opposites_count_as_asked_for() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let rows = "5\tTurkey raises its rates\tTurkey raises rates\n\
                1\tTurkey raises its rates\tArgentina raises its rates\n\
                0\tTurkey raises its rates\tTurkey never raises its rates\n";
    let folder = compass(&[("a.tsv", rows)]);
    let pearson = |method: &str, asked: &[&str]| {
        let fixed = ["sts", "a.tsv", "--methods", method, "--baseline", method, "--model", model];
        let arguments = [&["eval"], &fixed[..], asked, &["--json", "-"]].concat();
        let report: Value =
            serde_json::from_slice(&cognate(folder.path(), &arguments).stdout).unwrap();
        report["subtasks"][0]["results"][0]["pearson"].as_f64().unwrap()
    };
    let by = |rule| pearson("polarity-blend", &["--opposites", rule]);
    let (count, without_names, ignore) = (by("count"), by("without_names"), by("ignore"));
    assert!(count != without_names && without_names != ignore, "{count} {without_names} {ignore}");
    assert_eq!(pearson("polarity-blend", &[]), count);
    // A method that does not count them scores as it does.
    assert_eq!(pearson("coverage-blend", &["--opposites", "count"]), ignore);
}

#[test]
fn ablations_are_measured_when_asked_for_and_are_no_methods() {
    let folder = compass(&[("sts.tsv", STS)]);
    let arguments = ["sts", "sts.tsv", "--resamples", "50", "--methods", "max-jaccard"];
    let names = |more: &[&str]| -> Vec<String> {
        let report = figures(folder.path(), &[arguments.as_slice(), more].concat());
        let results = report["subtasks"][0]["results"].as_array().unwrap().clone();
        results.iter().map(|result| result["method"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["max-jaccard", "avg-cos"], "the baseline is measured too");
    let with = names(&["--ablations"]);
    for name in ["avg-jaccard", "dyna-sum", "unit-avg-cos"] {
        assert!(with.iter().any(|known| known == name), "{name} is not in {with:?}");
        let refused = eval(folder.path(), &["sts", "sts.tsv", "--methods", name]);
        assert_eq!(refused.status.code(), Some(2), "{name} is no method");
    }
}

#[test]
fn pair_figures_are_those_counted_by_hand() {
    let pairs = "1\teast\teast\n1\teast\tnortheast\n0\teast\tnorth\n0\tnorth\tnortheast\n";
    let clear = "label\tx\ttext1\ttext2\n1\t\teast\teast\n0\t\teast\tnorth\n1\t\tnorth\tnorth\n\
                 0\t\tnorth\teast\n";
    let folder = compass(&[("pairs.tsv", pairs), ("clear.tsv", clear)]);
    let arguments = ["pairs", "pairs.tsv", "--threshold-from", "clear.tsv", "--methods", "avg-cos"];
    let report = figures(folder.path(), &arguments);
    assert_eq!(report["threshold_from"], "clear");
    let file = &report["files"][0];
    assert_eq!((&file["judged_pairs"], &file["related"]), (&4.into(), &2.into()));
    // Scores 1 and √½ against 0 and √½.
    let result = &file["results"][0];
    near(&result["roc_auc"], 3.5 / 4.0);
    near(&result["average_precision"], 0.5 + 0.5 * 2.0 / 3.0);
    near(&result["js_divergence"], 0.5);
    near(&result["threshold"], 0.5);
    near(&result["split_error"], 0.25);
    near(&result["precision"], 2.0 / 3.0);
    near(&result["recall"], 1.0);
    near(&result["f1"], 0.8);

    let halves = figures(folder.path(), &["pairs", "clear.tsv", "--measure", "cosine,euclidean"]);
    let file = &halves["files"][0];
    assert_eq!((&file["threshold_pairs"], &file["judged_pairs"]), (&2.into(), &2.into()));
    assert_eq!(halves["methods"][1]["name"], "avg-cos/euclidean");
    near(&file["results"][1]["split_error"], 0.0);
    let test = &file["results"][1]["sign_test"];
    assert_eq!((&test["wins"], &test["losses"], &test["p"]), (&0.into(), &0.into(), &1.0.into()));
}

#[test]
fn ranking_figures_are_those_counted_by_hand() {
    let runs = "7\teast\t0\ta\t1\t9\teast\n7\teast\t1\tb\t2\t8\tnortheast\n7\teast\t0\tc\t3\t10\tnorth\n\
                7\teast\t0\td\t4\t1\t\n8\teast\t1\ta\t1\t1\teast\n";
    let judged = "7\tb\t1\n7\tz\t2\n";
    let folder = compass(&[("runs.tsv", runs), ("judged.tsv", judged)]);
    let arguments = ["ranking", "runs.tsv", "--methods", "avg-cos", "--at", "1,2"];
    let report = figures(folder.path(), &arguments);
    let file = &report["files"][0];
    let counts = [&file["queries"], &file["counted"], &file["candidates"]];
    assert_eq!(counts, [2, 1, 5], "a query with nothing but relevant candidates tells nothing");
    // By cosine a, b, c, then the empty text; b is relevant.
    let result = &file["results"][0];
    near(&result["map"], 0.5);
    near(&result["mrr"], 0.5);
    near(&result["precision_at"]["1"], 0.0);
    near(&result["precision_at"]["2"], 0.5);
    near(&result["ndcg"], 1.0 / 3.0_f64.log2());
    assert_eq!(result["unscored"], 1);

    let columns = ["--column", "ql_score", "--qrels", "judged.tsv"];
    let report = figures(folder.path(), &[arguments.as_slice(), &columns].concat());
    assert_eq!(report["judgements"], "qrels");
    assert_eq!(report["methods"][0]["name"], "ql_score");
    let results = &report["files"][0]["results"];
    // By score c, a, b; z is relevant and was not returned.
    near(&results[0]["map"], 1.0 / 3.0 / 2.0);
    near(&results[1]["map"], 0.5 / 2.0);
    near(&results[0]["p_values"]["map"], 1.0);
    let ideal = 2.0 + 1.0 / 3.0_f64.log2();
    near(&results[1]["ndcg"], 1.0 / 3.0_f64.log2() / ideal);
}

#[test]
fn the_page_is_whole_and_needs_nothing_beside_it() {
    let pairs = "1\teast\teast\n1\teast\tnortheast\n0\teast\tnorth\n0\tnorth\tnortheast\n";
    let runs = "7\teast\t0\teast\n7\teast\t1\tnortheast\n7\teast\t0\tnorth\n";
    let name = "<&'\">.tsv";
    let folder = compass(&[(name, STS), ("pairs.tsv", pairs), ("runs.tsv", runs)]);
    // Beside the comparison of all: two clouds; two curves and two histograms; one of gains by query.
    for (task, file, drawings) in
        [("sts", name, 2), ("pairs", "pairs.tsv", 4), ("ranking", "runs.tsv", 1)]
    {
        let methods = ["--methods", "avg-cos,dynamax", "--html", "page.html"];
        let output = eval(folder.path(), &[&[task, file], methods.as_slice()].concat());
        assert!(output.status.success(), "{output:?}");
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("dynamax-jaccard"), "the table is printed too: {shown}");
        let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
        for closed in ["svg", "table", "section", "figure", "div", "dl", "main", "html"] {
            let opened = page.matches(&format!("<{closed}")).count();
            assert_eq!(opened, page.matches(&format!("</{closed}>")).count(), "{task}: {closed}");
        }
        assert_eq!(page.matches("<svg").count(), drawings, "{task}");
        assert_eq!(page.matches("<div class=\"dotted\"").count(), 1, "{task}");
        assert!(page.contains("<small>best"), "{task}: the best is marked");
        let measured = "<dt>dynamax-jaccard<small></small></dt>";
        assert!(page.contains(measured), "{task}: no vectors of texts, hence no measure");
        for forbidden in ["http", "NaN", "inf\"", "<script", "url(", "<&"] {
            assert!(!page.contains(forbidden), "{task}: {forbidden}");
        }
        assert!(page.contains("prefers-color-scheme"));
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_code_and_a_place() {
    let folder = compass(&[("good.tsv", STS), ("bad.tsv", "1\teast\tnorth\nx\teast\tnorth\n")]);
    let said = |arguments: &[&str], code: i32, expected: &[&str]| {
        let output = eval(folder.path(), arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        for words in expected {
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
    };
    said(&["sts", "bad.tsv"], 1, &["bad.tsv, line 2", "score"]);
    said(&["sts", "missing.tsv"], 1, &["missing.tsv"]);
    said(&["sts", "good.tsv", "--methods", "avg-coz"], 2, &["`avg-coz`", "nearest", "avg-cos"]);
    said(&["sts", "good.tsv", "--baseline", "mean"], 2, &["`mean`", "nearest"]);
    said(&["sts", "good.tsv", "--methods", "dynamax-sif"], 2, &["dynamax-sif", "--counts"]);
    said(&["sts", "good.tsv", "--measure", "angle"], 2, &["angle"]);
    said(&["ranking", "good.tsv", "--at", "0"], 2, &["--at", "0 is not in 1..=1000000"]);
    said(&["sts"], 2, &["<FILES>"]);
    let unwritten = ["cannot write no/such/folder.html: No such file"];
    said(&["sts", "good.tsv", "--html", "no/such/folder.html"], 1, &unwritten);
    let left_out = eval(folder.path(), &["sts", "good.tsv", "--resamples", "50"]);
    let shown = String::from_utf8(left_out.stdout).unwrap();
    assert!(shown.contains("not measured: dynamax-sif (the model has no word counts"), "{shown}");
}
