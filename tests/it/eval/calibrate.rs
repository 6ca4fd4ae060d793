//! Thresholds found by `cognate eval calibrate` come back through the engine, and only whole.

use cognate::engine::{Engine, Measure};
use cognate::methods::Method;
use cognate::model::format::Dtype;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, ModelError};
use cognate_stats::classification::proportion_interval;

use crate::eval::figures::{cognate, compass};
use crate::support;

const PAIRS: &str =
    "1\teast\teast\n1\teast\tnortheast\n0\teast\tnorth\n0\tnorth\tnortheast\n0\tzz\teast\n";

fn calibrate(folder: &std::path::Path, arguments: &[&str]) -> String {
    let fixed =
        ["eval", "calibrate", "pairs.tsv", "--model", "m.safetensors", "-o", "m.safetensors"];
    let output = cognate(folder, &[&fixed, arguments].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn thresholds_come_back_through_the_model_file() {
    let folder = compass(&[("pairs.tsv", PAIRS)]);
    let path = folder.path().join("m.safetensors");
    let before = Engine::open(&path, &support::full()).unwrap();
    assert!(before.calibrations().is_empty());

    calibrate(folder.path(), &["--methods", "avg-cos", "--measure", "cosine,euclidean"]);
    let said =
        calibrate(folder.path(), &["--methods", "dynamax", "--aim", "precision=1", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let after = Engine::open(&path, &support::full()).unwrap();
    assert_eq!(said["fingerprint"], after.model().fingerprint());
    assert_ne!(before.model().fingerprint(), after.model().fingerprint());
    assert_eq!(after.calibrations().len(), 3, "the second call kept what the first wrote");

    // Scores 1 and √½ against 0, √½ and the unscored 0: accepting √½ has F1 4/5.
    let found = after.calibration(Method::AvgCos, Measure::Cosine).unwrap();
    let threshold = &found.threshold;
    assert!((threshold.threshold - 0.5_f64.sqrt() / 2.0).abs() < 1e-6, "{threshold:?}");
    assert_eq!((threshold.f1, threshold.recall, threshold.pairs), (0.8, 1.0, 5));
    assert_eq!((threshold.unscored, threshold.low, threshold.aim.as_str()), (1, 0.0, "f1"));
    let digest = blake3::hash(PAIRS.as_bytes()).to_hex().to_string();
    assert_eq!(threshold.file_digest, digest);
    assert_eq!((found.quantiles[0], found.quantiles.len()), (0.0, 101));
    assert_eq!((found.related.iter().sum::<f32>(), found.related[99]), (2.0, 1.0));
    assert_eq!((found.unrelated.iter().sum::<f32>(), found.unrelated[0]), (3.0, 2.0));
    assert!(after.calibration(Method::AvgCos, Measure::Euclidean).is_some());
    let strict = after.calibration(Method::DynamaxJaccard, Measure::Cosine).unwrap();
    assert_eq!((strict.threshold.precision, strict.threshold.aim.as_str()), (1.0, "precision=1"));
    assert!(after.calibration(Method::DynamaxDice, Measure::Cosine).is_none());
}

#[test]
fn a_prior_says_how_few_pairs_are_related_where_the_threshold_will_be_used() {
    let folder = compass(&[("pairs.tsv", PAIRS)]);
    let found = |aims: &[&str]| {
        let json = calibrate(folder.path(), &[&["--methods", "avg-cos", "--json"], aims].concat());
        let said: serde_json::Value = serde_json::from_str(&json).unwrap();
        let number = |name: &str| said["thresholds"][0][name].as_f64();
        (number("threshold").unwrap(), number("precision").unwrap(), number("prior"))
    };
    let root = 0.5_f64.sqrt();
    let near =
        |got: f64, expected: f64| assert!((got - expected).abs() < 1e-6, "{got}, {expected}");
    // Accepting √½ would accept a third of all unrelated pairs.
    let (threshold, precision, prior) = found(&["--prior", "0.01"]);
    near(threshold, 1.0_f64.midpoint(root));
    assert_eq!((precision, prior), (1.0, Some(0.01)));
    let (threshold, precision, _) = found(&["--prior", "0.01", "--aim", "recall=0.9"]);
    near(threshold, root / 2.0);
    near(precision, 0.01 / (0.01 + 0.99 / 3.0));
    let (threshold, precision, prior) = found(&["--aim", "recall=0.5"]);
    near(threshold, 1.0_f64.midpoint(root));
    assert_eq!((precision, prior), (1.0, None));
    let path = folder.path().join("m.safetensors");
    let engine = Engine::open(&path, &support::full()).unwrap();
    assert_eq!(engine.calibrations().len(), 1);
    for prior in ["0", "1", "nan", "-0.1"] {
        let arguments = ["eval", "calibrate", "pairs.tsv", "--model", "m.safetensors", "-o"];
        let prior = format!("--prior={prior}");
        let output = cognate(folder.path(), &[&arguments[..], &["m.safetensors", &prior]].concat());
        assert_eq!(output.status.code(), Some(2), "{prior}");
    }
}

#[test]
fn opposed_pairs_are_no_hits_where_they_are_dropped_and_shares_have_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let (on, off) = ("turn on dark mode", "turn off dark mode");
    let (rise, fall) = ("oil prices rise", "oil prices fall");
    let pairs = [
        (1, on, "switch on dark mode"),
        (1, rise, "the price of oil goes up"),
        (1, "keep it on", "do not keep it off in 5 days"),
        (0, on, off),
        (0, rise, fall),
    ];
    let rows: String = pairs.iter().map(|(label, a, b)| format!("{label}\t{a}\t{b}\n")).collect();
    std::fs::write(folder.path().join("pairs.tsv"), rows).unwrap();
    std::fs::copy(support::default_path(), folder.path().join("m.safetensors")).unwrap();
    let found = |more: &[&str]| {
        let asked = ["--methods", "coverage-blend", "--aim", "precision=1", "--json"];
        let told = calibrate(folder.path(), &[&asked, more].concat());
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told["thresholds"][0].clone()
    };
    let dropping = found(&["--opposes", "drop"]);
    assert_eq!(dropping["aim"], "precision=1 without opposed pairs");
    assert_eq!((&dropping["precision"], &dropping["recall"]), (&1.0.into(), &1.0.into()));
    let [low, high] = proportion_interval(3, 3);
    assert_eq!(dropping["precision_interval"], serde_json::json!([low, high]));
    assert_eq!(dropping["recall_interval"], serde_json::json!([low, high]));
    let weighted = found(&["--opposes", "drop", "--prior", "0.1"]);
    assert!(weighted.get("precision_interval").is_none(), "{weighted}");
    // Both opposed pairs score above every related one.
    let arguments = ["eval", "calibrate", "pairs.tsv", "--model", "m.safetensors", "-o"];
    let plain = ["m.safetensors", "--methods", "coverage-blend", "--aim", "precision=1"];
    let output = cognate(folder.path(), &[&arguments[..], &plain].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let compass = compass(&[("pairs.tsv", PAIRS)]);
    let refused = cognate(
        compass.path(),
        &[&arguments[..], &["m.safetensors", "--opposes", "drop"]].concat(),
    );
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("--polarity"), "{said}");
}

#[test]
fn what_is_never_reached_writes_nothing() {
    let level = "1\teast\teast\n0\teast\teast\n1\tnorth\tnorth\n0\tnorth\tnorth\n";
    let folder = compass(&[("pairs.tsv", level)]);
    let before = std::fs::read(folder.path().join("m.safetensors")).unwrap();
    let arguments = "eval calibrate pairs.tsv --model m.safetensors -o m.safetensors --aim";
    let run = |aim: &str| {
        let arguments: Vec<&str> = arguments.split(' ').chain([aim]).collect();
        let output = cognate(folder.path(), &arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("precision=0.9");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("reach what is wanted"), "{said}");
    for aim in ["precision=1.5", "precision=x", "recall"] {
        assert_eq!(run(aim).0, Some(2), "{aim}");
    }
    assert_eq!(std::fs::read(folder.path().join("m.safetensors")).unwrap(), before);
}

#[test]
fn a_malformed_section_is_refused_by_name() {
    let folder = compass(&[("pairs.tsv", PAIRS)]);
    calibrate(folder.path(), &["--methods", "avg-cos"]);
    let path = folder.path().join("m.safetensors");
    let good = Model::open(&path, &support::full()).unwrap();
    let settings = good.section("calibration").unwrap().settings.to_owned();
    let numbers = [0.0_f32; 202];
    let refused = |settings: &str, quantiles: usize, number: f32, expected: &str| {
        let mut values = numbers;
        values[7] = number;
        let rows = |name, width: usize| Table::new(name, Dtype::F32, &[1, width], &values[..width]);
        let mut draft = Draft::from_model(&good);
        let tables =
            vec![rows("quantiles", quantiles), rows("related", 100), rows("unrelated", 100)];
        draft.set_section("calibration", settings.to_owned(), tables);
        let broken = folder.path().join("broken.safetensors");
        draft.write(&broken).unwrap();
        match Engine::open(&broken, &support::structure()) {
            Ok(engine) => assert!(expected.is_empty(), "{:?}", engine.calibrations()),
            Err(error @ ModelError::Section { .. }) => {
                let said = error.to_string();
                assert!(said.contains("`calibration`") && said.contains(expected), "{said}");
                assert!(said.contains("cognate eval calibrate"), "{said}");
            }
            Err(other) => panic!("{other}"),
        }
    };
    refused(&settings, 101, 0.5, "");
    refused("[]", 101, 0.5, "settings");
    refused(&settings.replace("\"f1\":", "\"f2\":"), 101, 0.5, "settings");
    refused(&settings.replace("cosine", "angle"), 101, 0.5, "method/measure");
    refused(&settings.replace("\"low\":0.0", "\"low\":2.0"), 101, 0.5, "range");
    refused(&settings, 100, 0.5, "`quantiles`: expected F32 [1, 101], got F32 [1, 100]");
    refused(&settings, 101, f32::NAN, "not finite");
}
