//! A combination that `cognate eval ranking` learns, kept in the model file as a method: what it is
//! there, that it ranks as it was measured, and files in which it is broken.

use std::path::Path;

use cognate::engine::fuse::stored::{KeepError, Learned, StoredFusion, StoredPart};
use cognate::engine::fuse::{FuseBy, FusedProblem, Fusions, Ranker};
use cognate::engine::{Engine, QueryError};
use cognate::methods::Method;
use cognate::model::writer::Draft;
use cognate::model::{Model, ModelError, OpenOptions};
use serde_json::{Value, json};

use crate::eval::figures::{cognate, compass};
use crate::support;
use crate::support::app::TestApp;

/// Queries with candidates in all directions: the relevant ones are near the query or rank high in a
/// column, so that weights have something to learn.
fn rows(queries: std::ops::Range<u32>) -> String {
    let mut rows = String::from("qid\tquery\tlabel\ttext\tmine\n");
    for qid in queries {
        for at in 0_u32..24 {
            let mixed = (qid * 31 + at * 17) % 24;
            let text = match mixed % 4 {
                0 => "east northeast",
                1 => "north north east",
                2 => "northeast zzz",
                _ => "north",
            };
            let label = u32::from(mixed % 8 == 0 || mixed % 12 == 2);
            let mine = f64::from((mixed * 7 + at) % 24) / 3.0 + f64::from(label) * 2.5;
            rows += &format!("{qid}\teast\t{label}\t{text} w{at}\t{mine}\n");
        }
    }
    rows
}

/// A folder in which `fused.safetensors` holds the fused method `fused:mine-2`; and what the command
/// that learned it reported and said.
fn learned(parts: &str) -> (tempfile::TempDir, Value, String) {
    let (learn, measure) = (rows(0..15), rows(15..30));
    let folder = compass(&[("learn.tsv", &learn), ("measure.tsv", &measure)]);
    let combine = ["--combine", parts, "--combine-on", "learn.tsv"];
    let kept = ["-o", "fused.safetensors", "--fused-name", "mine-2", "--json", "-"];
    let output = eval(folder.path(), "m.safetensors", &[&combine[..], &kept].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (folder, serde_json::from_slice(&output.stdout).unwrap(), said)
}

fn eval(folder: &Path, model: &str, more: &[&str]) -> std::process::Output {
    let measured = ["eval", "ranking", "measure.tsv", "--model", model, "--column", "mine"];
    let chosen = ["--baseline", "mine", "--resamples", "50"];
    cognate(folder, &[&measured[..], &chosen, more].concat())
}

/// The figures of a method, its name left out.
fn figures(report: &Value, method: &str) -> Value {
    let results = report["files"][0]["results"].as_array().unwrap();
    let mut found = results.iter().find(|result| result["method"] == method).unwrap().clone();
    found.as_object_mut().unwrap().remove("method");
    found
}

#[test]
fn a_kept_combination_has_the_figures_of_the_combination() {
    for parts in ["avg-cos,jaccard,mine", "dynamax,coverage"] {
        let (folder, report, said) = learned(parts);
        assert!(
            said.contains("fused:mine-2 is stored: Standardised scores, weighted: 0."),
            "{said}"
        );
        let map = report["combination"]["map"].as_f64().unwrap();
        let methods = ["--methods", "FUSED:mine_2,avg-cos", "--json", "-"];
        let output = eval(folder.path(), "fused.safetensors", &methods);
        assert!(output.status.success(), "{output:?}");
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        let fused = figures(&again, "fused:mine-2");
        assert_eq!(fused, figures(&report, "combination"), "{parts}: to the last digit");
        assert!(fused["map"].as_f64().unwrap() > 0.2, "{fused}");
        assert_eq!(again["methods"][1]["name"], "fused:mine-2");
        let path = folder.path().join("fused.safetensors");
        let engine = Engine::open(&path, &OpenOptions::default()).unwrap();
        let fused = engine.fusions().iter().next().unwrap();
        let learned = fused.stored().learned.as_ref().unwrap();
        assert_eq!((&learned.on[..], learned.queries), (&["learn".to_owned()][..], 15));
        assert!((learned.map - map).abs() < 1e-9);
        let weights: Vec<f64> = fused.stored().parts.iter().map(|part| part.weight).collect();
        let printed = report["combination"]["weights"].as_array().unwrap();
        let printed: Vec<f64> = printed.iter().map(|of| of["weight"].as_f64().unwrap()).collect();
        assert_eq!(weights, printed, "the file holds the weights to the last digit");
    }
}

/// The mean average precision of what the service answers by that method, on the rows that were
/// measured.
async fn served_map(path: &Path, method: &str) -> f64 {
    let model = Model::open(path, &OpenOptions::default()).unwrap();
    let app = TestApp::with_model(model, |_| ());
    let rows = rows(15..30);
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|row| row.split('\t').collect()).collect();
    let (mut sum, mut queries) = (0.0, 0);
    for of_query in rows.chunk_by(|one, other| one[0] == other[0]) {
        let candidate = |row: &Vec<&str>| {
            let mine: f64 = row[4].parse().unwrap();
            json!({"text": row[3], "scores": {"mine": mine}})
        };
        let candidates: Vec<Value> = of_query.iter().map(candidate).collect();
        let body = json!({"query": of_query[0][1], "candidates": candidates, "method": method});
        let answer = app.ask("/rank", body).await;
        let (mut found, mut precisions) = (0, 0.0);
        for (rank, result) in (1..).zip(answer["results"].as_array().unwrap()) {
            if of_query[result["index"].as_u64().unwrap() as usize][2] == "1" {
                found += 1;
                precisions += f64::from(found) / f64::from(rank);
            }
        }
        sum += precisions / f64::from(found);
        queries += 1;
    }
    sum / f64::from(queries)
}

#[tokio::test]
async fn what_is_served_ranks_as_it_was_measured() {
    let (folder, report, _) = learned("avg-cos,jaccard,mine");
    let served = served_map(&folder.path().join("fused.safetensors"), "fused:mine-2").await;
    let measured = figures(&report, "combination")["map"].as_f64().unwrap();
    assert!((served - measured).abs() < 1e-12, "{served}, measured {measured}");
}

#[test]
fn a_kept_combination_is_one_of_all_methods_where_its_columns_are_named() {
    let (folder, ..) = learned("avg-cos,mine");
    let shown = cognate(folder.path(), &["inspect", "fused.safetensors"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("section        fused: mine-2"), "{shown}");
    let all = ["eval", "ranking", "measure.tsv", "--model", "fused.safetensors"];
    let output = cognate(folder.path(), &[&all[..], &["--resamples", "20"]].concat());
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("not measured: fused:mine-2 (it needs the column `mine`"), "{told}");
    let output = eval(folder.path(), "fused.safetensors", &["--json", "-"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(figures(&report, "fused:mine-2")["map"].is_f64(), "with the column it is measured");

    let refused = |arguments: &[&str], code: i32, expected: &[&str]| {
        let output = cognate(folder.path(), arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        for words in expected {
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
    };
    let with = |more: &[&'static str]| [&all[..], more].concat();
    refused(&with(&["--methods", "fused:mine-2"]), 2, &["needs the column `mine`", "--column"]);
    refused(&with(&["--methods", "fused:yours"]), 2, &["fused:yours is none of", "fused:mine-2"]);
    let combine = ["--combine-on", "learn.tsv", "--column", "mine", "--combine"];
    let combined = |names: &'static str| with(&[&combine[..], &[names]].concat());
    refused(&combined("avg-cos,fused:mine-2"), 2, &["`fused:mine-2` is fused already"]);
    let named =
        |name: &'static str| [combined("avg-cos,mine"), vec!["--fused-name", name]].concat();
    refused(&named("Mine"), 2, &["`Mine` cannot be the name", "small letters"]);
    refused(&[named("x"), vec!["--set-auto"]].concat(), 2, &["--set-auto"]);
    refused(&with(&["-o", "n.safetensors"]), 2, &["-o names the model file"]);
    refused(&with(&["--fused-name", "x"]), 2, &["--combine"]);
    let sts = ["eval", "sts", "measure.tsv", "--model", "m.safetensors", "--methods"];
    refused(&[&sts[..], &["avg-cos", "-o", "n"]].concat(), 2, &["--set-auto"]);
    let fused = ["eval", "sts", "measure.tsv", "--model", "fused.safetensors", "--methods"];
    refused(&[&fused[..], &["fused:mine-2"]].concat(), 2, &["only ranks candidates"]);
    assert!(!folder.path().join("n.safetensors").exists());

    // Without a name and in the measured model itself: what it holds already stays.
    let before = std::fs::read(folder.path().join("fused.safetensors")).unwrap();
    let own = [combined("avg-cos,jaccard"), vec!["-o", "fused.safetensors"]].concat();
    let output = cognate(folder.path(), &own);
    assert!(output.status.success(), "{output:?}");
    let path = folder.path().join("fused.safetensors");
    let engine = Engine::open(&path, &OpenOptions::default()).unwrap();
    let names: Vec<String> =
        engine.fusions().iter().map(|fused| fused.name().to_string()).collect();
    assert_eq!(names, ["fused:combination", "fused:mine-2"]);
    assert_ne!(std::fs::read(path).unwrap(), before);
}

fn part(method: &str, weight: f64) -> StoredPart {
    StoredPart { method: Some(method.to_owned()), measure: None, scores: None, weight }
}

/// The tiny model with such a section.
fn with_section(settings: &Value) -> Result<Engine, ModelError> {
    let model = support::tiny_model();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fused.safetensors");
    let mut draft = Draft::from_model(&model);
    draft.set_section("fused", settings.to_string(), Vec::new());
    draft.write(&path).unwrap();
    Engine::new(Model::open(&path, &OpenOptions::default()).unwrap())
}

#[test]
fn fused_methods_are_found_as_people_write_them_and_only_rank() {
    let engine =
        with_section(&json!({"a-1": {"by": "rrf", "parts": [{"method": "rm3", "weight": 2.0}]}}));
    let engine = engine.unwrap();
    for name in ["fused:a-1", " FUSED:A_1 "] {
        let Ok(Ranker::Fused(fused)) = engine.ranker(name) else { panic!("{name}") };
        assert_eq!(engine.fusion(fused).unwrap().by(), FuseBy::Rrf);
        assert_eq!(fused.summary(), "Reciprocal ranks, weighted: 2.000 rm3.");
        let refused =
            QueryError::Fused { name: "fused:a-1".to_owned(), problem: FusedProblem::OnlyRanks };
        assert_eq!(engine.method(name), Err(refused));
    }
    assert_eq!(engine.ranker("dynamax"), Ok(Ranker::Method(Method::DynamaxJaccard)));
    let unknown = engine.ranker("fused:b").unwrap_err().to_string();
    assert_eq!(unknown, "fused:b is none of the model's fused methods; it has fused:a-1");
    let long = format!("fused:{}", "a".repeat(1 << 20));
    assert!(engine.ranker(&long).is_err());
    assert_eq!(support::engine().fusions(), &Fusions::default(), "older files have none");
}

#[test]
fn what_is_kept_is_read_again_as_it_was() {
    let learned = Learned { on: vec!["a".to_owned()], queries: 3, map: 0.25 };
    let measured = StoredPart { measure: Some("euclidean".to_owned()), ..part("sif", 0.25) };
    let run = StoredPart { method: None, scores: Some("es".to_owned()), ..part("", 0.123456) };
    let stored = StoredFusion {
        by: FuseBy::Zscore,
        parts: vec![part("bm25", 0.626544), measured, run],
        learned: Some(learned),
    };
    let mut fusions = Fusions::default();
    fusions.insert("a.b", stored.clone()).unwrap();
    for name in ["", "-a", "A", "a b", "ä", "a:b", "a_b", &"a".repeat(65)] {
        let refused = fusions.insert(name, stored.clone()).unwrap_err();
        assert!(matches!(refused, KeepError::Name(_)), "{name}");
    }
    let model = support::tiny_model();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let mut draft = Draft::from_model(&model);
    fusions.put(&mut draft);
    draft.write(&path).unwrap();
    let engine = Engine::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(engine.fusions(), &fusions);
}

#[test]
fn a_broken_section_is_refused_and_one_of_a_newer_version_is_not() {
    let one = |fusion: Value| with_section(&json!({ "x": fusion }));
    for (fusion, expected) in [
        (json!({"by": "rrf", "parts": []}), "1 to 16 parts"),
        (json!({"by": "sum", "parts": [{"method": "rm3", "weight": 1.0}]}), "sum"),
        (json!({"by": "rrf", "parts": [{"method": "rm3", "weight": -1.0}]}), "part 0"),
        (json!({"by": "rrf", "parts": [{"method": "rm3", "weight": 0.0}]}), "above 0"),
        (json!({"by": "rrf", "parts": [{"weight": 1.0}]}), "either `method` or `scores`"),
        (
            json!({"by": "rrf", "parts": [{"method": "rm3", "scores": "x", "weight": 1.0}]}),
            "either",
        ),
        (json!({"by": "rrf", "parts": [{"method": "rm3", "weight": 1.0}], "k": 1}), "`k`"),
    ] {
        let Err(error) = one(fusion.clone()) else { panic!("{fusion}") };
        let told = error.to_string();
        assert!(told.contains(expected) && told.contains("fused"), "{fusion}: {told}");
        assert!(told.contains("cognate eval ranking --combine"), "{told}");
    }
    let Err(error) = with_section(&json!({"B": {"by": "rrf", "parts": []}})) else { panic!() };
    assert!(error.to_string().contains("`B` cannot be the name"), "{error}");
    for newer in [
        json!({"method": "rm9", "weight": 1.0}),
        json!({
            "method": "sif", "measure": "angle", "weight": 1.0
        }),
    ] {
        let engine = one(json!({"by": "rrf", "parts": [newer]})).unwrap();
        let Ok(Ranker::Fused(fused)) = engine.ranker("fused:x") else { panic!() };
        let refused = engine.fusion(fused).unwrap_err().to_string();
        assert!(refused.contains("this version has no method"), "{refused}");
    }
    let lacking = one(json!({"by": "rrf", "parts": [{"method": "usif", "weight": 1.0}]})).unwrap();
    let Ok(Ranker::Fused(fused)) = lacking.ranker("fused:x") else { panic!() };
    let refused = lacking.fusion(fused).unwrap_err().to_string();
    assert!(refused.starts_with("fused:x cannot be used with this model:"), "{refused}");
}
