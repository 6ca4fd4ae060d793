//! `cognate train weights` by the built binary: sets beside each other, carried over to other
//! vectors, killed on the way, and what is refused.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use cognate::engine::Engine;
use cognate::methods::Method;
use cognate::methods::means::learned_idf;
use cognate::methods::means::learned_idf::Settings;
use cognate::model::{Model, OpenOptions};
use serde_json::Value;

use crate::support;
use crate::support::Chance;

const TOPICS: usize = 10;

/// Vectors whose rare words point the way of their topic, as text, with counts beside.
fn vectors(folder: &Path, name: &str, dims: usize) {
    let mut chance = Chance(dims as u64);
    let mut row = |near: &[f64], spread: f64| -> Vec<f64> {
        let mut number = || (chance.below(2000) as f64 - 1000.0) / 1000.0;
        (0..dims).map(|at| near.get(at).unwrap_or(&0.0) + spread * number()).collect()
    };
    let (mut text, mut counts) = (String::new(), String::new());
    let mut put = |word: String, row: &[f64], count: usize| {
        let numbers = row.iter().map(|number| format!(" {number:.4}")).collect::<String>();
        text.push_str(&format!("{word}{numbers}\n"));
        counts.push_str(&format!("{word}\t{count}\n"));
    };
    for topic in 0..TOPICS {
        let way = row(&[], 1.0);
        for rare in 0..3 {
            put(format!("topic{topic}word{rare}"), &row(&way, 0.3), 2 + rare);
        }
    }
    for frequent in 0..20 {
        put(format!("frequent{frequent}"), &row(&[], 1.0), 500 + frequent);
    }
    std::fs::write(folder.join("v.txt"), text).unwrap();
    std::fs::write(folder.join("c.tsv"), counts).unwrap();
    let packed = cognate(folder, &["pack", "v.txt", "--counts", "c.tsv", "-o", name]);
    assert!(packed.status.success(), "{packed:?}");
}

/// Rows of couples; every other is of one topic.
fn couples(count: usize, seed: u64) -> String {
    let mut chance = Chance(seed);
    let mut text = |topic: usize| {
        let mut words = vec![format!("topic{topic}word{}", chance.below(3))];
        words.extend((0..4 + chance.below(4)).map(|_| format!("frequent{}", chance.below(20))));
        words.join(" ")
    };
    let row = |at: usize| {
        let (related, topic) = (at.is_multiple_of(2), at / 2 % TOPICS);
        let other = (topic + usize::from(!related)) % TOPICS;
        format!("{}\t{}\t{}\n", u8::from(related), text(topic), text(other))
    };
    (0..count).map(row).collect()
}

/// A folder with the model `m.safetensors` and the couples `p.tsv`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    vectors(folder.path(), "m.safetensors", 12);
    std::fs::write(folder.path().join("p.tsv"), couples(160, 1)).unwrap();
    folder
}

fn cognate(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cognate");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

/// Trains quickly, four weights without a search, into a model of the folder.
fn trained(folder: &Path, to: &str, more: &[&str]) -> Value {
    let quick = ["train", "weights", "p.tsv", "--max-length", "4", "--epochs", "3", "--json"];
    let files = ["--model", "m.safetensors", "-o", to];
    let output = cognate(folder, &[&quick[..], &files, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn open(folder: &Path, name: &str) -> Model {
    Model::open(&folder.join(name), &OpenOptions::default()).unwrap()
}

fn settings(model: &Model) -> Settings {
    learned_idf::settings(model).unwrap().unwrap()
}

fn weights<'m>(model: &'m Model, set: &str) -> &'m [f32] {
    model.section(learned_idf::SECTION).unwrap().floats(&learned_idf::tensor(set)).unwrap()
}

#[test]
fn sets_stand_beside_each_other_in_a_model_that_keeps_all_it_had() {
    let folder = folder();
    let folder = folder.path();
    let before = open(folder, "m.safetensors");
    let first = trained(folder, "m.safetensors", &["--kappa", "4"]);
    assert_eq!((&first["set"], &first["in_use"]), (&"median-euclidean".into(), &true.into()));
    let one = open(folder, "m.safetensors");
    let kept = weights(&one, "median-euclidean").to_vec();
    let contrastive = ["--loss", "contrastive", "--measure", "cosine", "--set", "other"];
    let second = trained(folder, "m.safetensors", &contrastive);
    assert_eq!((&second["set"], &second["in_use"]), (&"other".into(), &false.into()));

    let both = open(folder, "m.safetensors");
    let said = settings(&both);
    assert_eq!(said.default, "median-euclidean", "the first stays in use");
    assert_eq!(said.sets.keys().collect::<Vec<_>>(), ["median-euclidean", "other"]);
    assert_eq!(weights(&both, "median-euclidean"), kept);
    let facts = said.sets["other"].trained.clone().unwrap();
    assert_eq!((facts.loss.as_str(), facts.kappa), ("contrastive", None));
    assert_eq!((facts.max_length, facts.couples, facts.epochs), (4, 144, 3));
    assert_eq!(facts.validation.unwrap().couples, 16);
    assert_eq!((facts.files[0].name.as_str(), facts.files[0].digest.len()), ("p.tsv", 64));
    let of_vectors = &both.metadata()["b3.vectors"][..16];
    assert_eq!(facts.vectors, of_vectors);
    for (tensor, bytes) in before.tensors() {
        let found = both.tensors().find(|(other, _)| other.name == tensor.name);
        assert_eq!(found.map(|(_, bytes)| bytes), Some(bytes), "{}", tensor.name);
    }

    // The same name again, with other couples in it, and put in use.
    std::fs::write(folder.join("p.tsv"), couples(200, 2)).unwrap();
    trained(folder, "m.safetensors", &[&contrastive[..], &["--default"]].concat());
    let after = open(folder, "m.safetensors");
    assert_ne!(weights(&after, "other"), weights(&both, "other"));
    assert_eq!(weights(&after, "median-euclidean"), kept);
    assert_eq!(settings(&after).default, "other");
    let engine = Engine::new(after).unwrap();
    assert_eq!(engine.unavailable(Method::LearnedIdf), None);
}

#[test]
fn what_another_version_said_of_its_sets_stays() {
    let folder = folder();
    let folder = folder.path();
    let model = open(folder, "m.safetensors");
    let old = support::learned("cosine", vec![0.5, 0.25]);
    let mut draft = cognate::model::writer::Draft::from_model(&model);
    old.put_into(&mut draft);
    draft.write(&folder.join("m.safetensors")).unwrap();
    trained(folder, "m.safetensors", &["--kappa", "4"]);
    let after = open(folder, "m.safetensors");
    assert_eq!(weights(&after, "own"), [0.5, 0.25]);
    assert_eq!(settings(&after).sets["own"].trained, None);
    let section = after.section(learned_idf::SECTION).unwrap();
    let raw: Value = serde_json::from_str(section.settings).unwrap();
    assert_eq!(raw["sets"]["own"]["loss"], "median", "a field that this version has no use for");
    assert_eq!(raw["default"], "own");
}

#[test]
fn weights_are_carried_over_to_other_vectors_without_training() {
    let folder = folder();
    let folder = folder.path();
    trained(folder, "m.safetensors", &["--kappa", "4", "--export", "w.json"]);
    let stored = ["train", "weights", "--export", "stored.json", "--model", "m.safetensors"];
    let output = cognate(folder, &stored);
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!(read("stored.json"), read("w.json"));
    let unknown = cognate(folder, &[&stored[..], &["--set", "other"]].concat());
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(told.contains("the sets of the model are median-euclidean"), "{told}");
    vectors(folder, "wide.safetensors", 30);
    let import = |file: &str, more: &[&str]| {
        let arguments = ["train", "weights", "--import", file, "--model", "wide.safetensors"];
        cognate(folder, &[&arguments[..], &["-o", "wide.safetensors"], more].concat())
    };
    let output = import("w.json", &["--set", "carried"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && shown.contains("carried (in use): 4 weights"), "{output:?}");
    let (own, other) = (open(folder, "m.safetensors"), open(folder, "wide.safetensors"));
    assert_eq!(weights(&other, "carried"), weights(&own, "median-euclidean"));
    let facts = settings(&other).sets["carried"].trained.clone().unwrap();
    assert_eq!(facts, settings(&own).sets["median-euclidean"].trained.clone().unwrap());
    assert_ne!(facts.vectors, other.metadata()["b3.vectors"][..16], "they were trained elsewhere");
    assert_eq!(Engine::new(other).unwrap().unavailable(Method::LearnedIdf), None);

    let good: Value =
        serde_json::from_slice(&std::fs::read(folder.join("w.json")).unwrap()).unwrap();
    for (field, value, expected) in [
        ("format", Value::from("cognate-weights-9"), "expected format `cognate-weights-1`"),
        ("max_length", 5.into(), "found 4, and max_length 5"),
        ("weights", serde_json::json!([]), "found 0"),
        ("weights", serde_json::json!([1.0, 1e300, 1.0, 1.0]), "number out of range at line 1"),
        ("measure", "angle".into(), "expected weights as --export writes them"),
        ("set", "a b".into(), "letters, digits"),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        std::fs::write(folder.join("bad.json"), bad.to_string()).unwrap();
        let message = String::from_utf8(import("bad.json", &[]).stderr).unwrap();
        assert!(message.contains(expected), "{field}: {message}");
    }
}

#[test]
fn couples_are_named_where_they_are_wrong_and_counted_where_they_are_left_out() {
    let folder = folder();
    let folder = folder.path();
    let good = couples(160, 1);
    let unknown = format!("{good}1\tzzz\tfrequent1\n0\tfrequent1\t\n");
    std::fs::write(folder.join("p.tsv"), unknown).unwrap();
    let shown = trained(folder, "new.safetensors", &["--kappa", "4"]);
    assert_eq!(shown["trained"]["left_out"], 2);
    assert_eq!(shown["trained"]["couples"], 144);

    std::fs::write(folder.join("bad.tsv"), format!("{good}2\ta\tb\n")).unwrap();
    std::fs::write(folder.join("few.tsv"), couples(100, 1)).unwrap();
    std::fs::write(folder.join("same.tsv"), "1\tfrequent1\tfrequent1\n".repeat(200)).unwrap();
    cognate(folder, &["pack", "v.txt", "-o", "uncounted.safetensors"]);
    let said = |arguments: &[&str], code: i32, expected: &[&str]| {
        let to = ["-o", "none.safetensors"];
        let output = cognate(folder, &[&["train", "weights"], arguments, &to].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        for words in expected {
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
        assert!(!folder.join("none.safetensors").exists());
    };
    let model = ["--model", "m.safetensors"];
    let with = |arguments: &[&'static str]| [arguments, &model].concat();
    said(&with(&["p.tsv", "bad.tsv"]), 1, &["bad.tsv, line 161", "expected 0 or 1, found `2`"]);
    said(&with(&["absent.tsv"]), 1, &["absent.tsv"]);
    let few = ["at least 63", "found 45 with 1 and 45 with 0", "--kappa"];
    said(&with(&["few.tsv"]), 1, &few);
    said(&with(&["same.tsv", "--kappa", "1"]), 1, &["same.tsv", "found 180 with 1 and 0 with 0"]);
    said(&with(&["p.tsv", "--valid", "same.tsv"]), 1, &["to judge by", "0 with 0"]);
    let uncounted = ["p.tsv", "--model", "uncounted.safetensors"];
    said(&uncounted, 2, &["uncounted.safetensors", "the model has no idf"]);
    said(&with(&["p.tsv", "--loss", "contrastive", "--kappa", "2"]), 2, &["--kappa"]);
    said(&with(&["p.tsv", "--kappa", "0"]), 2, &["expected auto or a number above 0"]);
    said(&with(&["p.tsv", "--max-length", "0"]), 2, &["expected 1 to 512"]);
    said(&with(&["p.tsv", "--lambda=-1"]), 2, &["--lambda"]);
    said(&with(&["p.tsv", "--epochs", "0"]), 2, &["--epochs"]);
    said(&with(&["p.tsv", "--set", "a/b"]), 2, &["--set", "`a/b`"]);
    let own = ["p.tsv", "--checkpoint", "./m.safetensors", "--restart"];
    said(&with(&own), 2, &["--checkpoint: m.safetensors is one of the files"]);
    assert!(folder.join("m.safetensors").exists());
    said(&with(&["p.tsv", "--import", "w.json"]), 2, &["cannot be used with"]);
    said(&with(&[]), 2, &["<PAIRS>"]);
    let wild = ["p.tsv", "--loss", "contrastive", "--lambda", "1e300"];
    said(&with(&wild), 2, &["left the finite numbers"]);
}

#[test]
fn a_killed_training_goes_on_to_the_bits_of_an_undisturbed_one() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("p.tsv"), couples(1500, 1)).unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
        command.args(["train", "weights", "p.tsv", "--model", "m.safetensors"]);
        command.args(["-o", "t.safetensors", "--max-length", "8", "--threads", "2"]);
        command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let started = std::time::Instant::now();
    assert!(command().status().unwrap().success());
    let whole = started.elapsed();
    let expected = open(folder, "t.safetensors").fingerprint().to_owned();
    let mut chance = Chance(7);
    let mut went_on = 0;
    let state = folder.join("t.safetensors.checkpoint");
    for round in 0..support::rounds(4, 60) {
        std::fs::remove_file(folder.join("t.safetensors")).unwrap();
        for soon in [false, round % 2 == 1] {
            let within = whole * chance.below(1000) as u32 / 2000;
            support::kill(|| command().spawn().unwrap(), &state, within, soon);
        }
        went_on += u32::from(state.exists());
        assert!(command().status().unwrap().success());
        assert_eq!(open(folder, "t.safetensors").fingerprint(), expected);
        assert!(!state.exists());
    }
    assert!(went_on > 0, "no kill came after the first step that was kept");
}

#[test]
fn the_page_shows_the_course_of_the_training_and_needs_nothing_beside_it() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("judged.tsv"), couples(300, 9)).unwrap();
    let more = ["--report", "page.html", "--valid", "judged.tsv", "--set", "<own>"];
    let refused = cognate(
        folder,
        &[&["train", "weights", "p.tsv", "--model", "m.safetensors", "-o", "x"], &more[..]]
            .concat(),
    );
    assert_eq!(refused.status.code(), Some(2), "a name that is markup is no name");
    let shown = trained(folder, "new.safetensors", &more[..4]);
    assert!(shown["tried"].as_array().unwrap().len() >= 8);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    for closed in ["svg", "table", "section", "figure", "div", "dl", "main", "html"] {
        let opened = page.matches(&format!("<{closed}")).count();
        assert_eq!(opened, page.matches(&format!("</{closed}>")).count(), "{closed}");
    }
    // Weights, losses, κ, and the distances before and after.
    assert_eq!(page.matches("<svg").count(), 5);
    for forbidden in ["http", "NaN", "inf\"", "<script", "url("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let after = shown["trained"]["validation"]["after"]["js_divergence"].as_f64().unwrap();
    assert!(page.contains(&format!("{after:.4}")) && page.contains("median-euclidean"));
}
