//! Published and first figures, where the data are at hand.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::data::shared_data;

/// The JSON of a run on GloVe 6B 100d.
fn figures(folder: &Path, arguments: &[&str]) -> Value {
    let program = env!("CARGO_BIN_EXE_cognate");
    let model = folder.join("glove.safetensors");
    if !model.exists() {
        let vectors = shared_data("vectors/glove.6B.100d.safetensors");
        let words = shared_data("vectors/vocab.txt");
        let mut pack = Command::new(program);
        pack.arg("pack").arg(vectors).arg("--vocabulary").arg(words).arg("-o").arg(&model);
        assert!(pack.args(["--dtype", "f16"]).output().unwrap().status.success());
    }
    let mut eval = Command::new(program);
    eval.arg("eval").args(arguments).arg("--model").arg(model).args(["--json", "-"]);
    let output = eval.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn averaged_glove_has_its_known_figures_and_runs_their_published_ones() {
    let (sts, ranking) = (shared_data("sts"), shared_data("ranking"));
    let folder = tempfile::tempdir().unwrap();
    let methods = ["--methods", "avg-cos", "--resamples", "10"];

    // Counted with tokens `[a-z]+|\d+`; ours keep inner apostrophes and decimal points together.
    let known = [
        ("2012.MSRpar", 36.6),
        ("2012.MSRvid", 58.7),
        ("2013.headlines", 56.2),
        ("2014.OnWN", 45.5),
        ("2014.tweet-news", 52.7),
        ("2014.images", 55.4),
        ("2015.answers-students", 45.8),
        ("stsb-dev", 50.1),
    ];
    let report = figures(folder.path(), &[&["sts", text(&sts)], methods.as_slice()].concat());
    for (name, pearson) in known {
        let subtasks = report["subtasks"].as_array().unwrap();
        let subtask = subtasks.iter().find(|subtask| subtask["name"] == name).unwrap();
        let found = 100.0 * subtask["results"][0]["pearson"].as_f64().unwrap();
        assert!((found - pearson).abs() < 2.0, "{name}: {found:.1}, known {pearson}");
    }

    let known =
        [("tweets/crisislex-pairs-validation.tsv", 0.655), ("text/wiki-pairs-valid.tsv.gz", 0.819)];
    for (file, area) in known {
        let file = shared_data(file);
        let report = figures(folder.path(), &["pairs", text(&file), "--methods", "avg-cos"]);
        let found = report["files"][0]["results"][0]["roc_auc"].as_f64().unwrap();
        assert!((found - area).abs() < 0.025, "{file:?}: {found:.3}, known {area}");
    }

    for (year, map, p30) in [(2011, 0.3576, 0.4000), (2012, 0.2091, 0.3311), (2013, 0.2532, 0.4450)]
    {
        let runs = ranking.join(format!("microblog-{year}.tsv.gz"));
        let judged = ranking.join(format!("microblog-{year}.qrels.tsv"));
        let column = ["--column", "ql_score", "--baseline", "ql_score", "--methods", "none"];
        let files = ["ranking", text(&runs), "--qrels", text(&judged)];
        let report = figures(folder.path(), &[files.as_slice(), &column].concat());
        let result = &report["files"][0]["results"][0];
        for (found, published) in [(&result["map"], map), (&result["precision_at"]["30"], p30)] {
            let found = found.as_f64().unwrap();
            assert!((found - published).abs() <= 0.00005, "{year}: {found}, published {published}");
        }
    }
}
