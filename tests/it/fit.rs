//! `cognate fit MODEL --components FILE` by the built binary: what a model gets, what it keeps,
//! and what is refused.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use cognate::engine::Engine;
use cognate::methods::Method;
use cognate::model::format::Dtype;
use cognate::model::writer::Draft;
use cognate::model::{Model, Phrase};

use crate::support;

/// A folder with the tiny model and a file of sentences with blank lines between.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    let lines = support::SENTENCES.map(|sentence| format!("{sentence}\n\n \t\n")).concat();
    std::fs::write(folder.path().join("s.txt"), lines).unwrap();
    folder
}

fn cognate(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cognate");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Fits components and expects success.
fn extended(folder: &Path, sentences: &str, to: &str) -> Model {
    let arguments = ["fit", "m.safetensors", "--components", sentences, "-o", to];
    let output = cognate(folder, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    Model::open(&folder.join(to), &support::full()).unwrap()
}

fn refused(folder: &Path, arguments: &[&str], code: i32, expected: &str) {
    let before = std::fs::read_dir(folder).unwrap().count();
    let output = cognate(folder, &[&["fit"], arguments, &["-o", "new.safetensors"]].concat());
    let message = said(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains(expected), "`{expected}` is not in: {message}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), before, "{message}");
}

#[test]
fn a_model_gets_components_and_keeps_all_it_had() {
    let folder = folder();
    let before = support::tiny_model();
    let after = extended(folder.path(), "s.txt", "new.safetensors");
    for (tensor, bytes) in before.tensors() {
        let found = after.tensors().find(|(other, _)| other.name == tensor.name);
        assert_eq!(found.map(|(_, bytes)| bytes), Some(bytes), "{}", tensor.name);
    }
    let own = |key: &str| ["b3.", "section.", "format"].iter().any(|own| key.starts_with(own));
    for (key, value) in before.metadata().iter().filter(|(key, _)| !own(key)) {
        assert_eq!(after.metadata().get(key), Some(value), "{key}");
    }
    let sections: Vec<&str> = after.sections().into_iter().collect();
    assert_eq!(sections, ["example", "sif-pca", "usif"]);
    let engine = Engine::new(after).unwrap();
    for method in [Method::SifPca, Method::Usif] {
        assert_eq!(engine.unavailable(method), None);
    }
}

#[test]
fn fitting_again_gives_the_same_bytes_in_place_and_from_packed_sentences() {
    let folder = folder();
    let plain = std::fs::read(folder.path().join("s.txt")).unwrap();
    let packed = std::fs::File::create(folder.path().join("s.txt.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(&plain).unwrap();
    packed.finish().unwrap();
    let once = extended(folder.path(), "s.txt", "new.safetensors").fingerprint().to_owned();
    let packed = extended(folder.path(), "s.txt.gz", "packed.safetensors");
    assert_eq!(packed.fingerprint(), once);
    assert_eq!(extended(folder.path(), "s.txt", "m.safetensors").fingerprint(), once);
    assert_eq!(extended(folder.path(), "s.txt", "m.safetensors").fingerprint(), once);

    std::fs::write(folder.path().join("other.txt"), "the quake\nnew york city\n").unwrap();
    let other = extended(folder.path(), "other.txt", "m.safetensors");
    assert_ne!(other.fingerprint(), once);
    assert_eq!(other.sections().len(), 3, "sections are replaced, not added");
}

#[test]
fn a_universe_is_made_alone_or_together_with_components() {
    let folder = folder();
    let fit = |more: &[&str]| {
        let all = [&["fit", "m.safetensors"], more].concat();
        let output = cognate(folder.path(), &all);
        assert!(output.status.success(), "{}", said(&output));
        Model::open(&folder.path().join("m.safetensors"), &support::full()).unwrap()
    };
    let alone = fit(&["--universe", "axes:7"]);
    let (tensor, _) = alone.section("universe").unwrap().tensor("rows").unwrap();
    assert_eq!(tensor.shape, [7, support::DIMS as u64]);
    let both = fit(&["--universe", "centroids:3", "--components", "s.txt"]);
    assert_eq!(both.sections().len(), 4);
    let (tensor, _) = both.section("universe").unwrap().tensor("rows").unwrap();
    assert_eq!(tensor.shape, [3, support::DIMS as u64]);
    assert_eq!(Engine::new(both).unwrap().unavailable(Method::FbowJaccard), None);
}

#[test]
fn pack_says_what_a_model_is_extended_with() {
    let folder = folder();
    let before = std::fs::read(folder.path().join("m.safetensors")).unwrap();
    for more in [[].as_slice(), &["--unit-norm"], &["--format", "safetensors"]] {
        let arguments = [&["pack", "m.safetensors", "-o", "new.safetensors"], more].concat();
        let output = cognate(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("`cognate fit` adds components"), "{}", said(&output));
    }
    assert!(!folder.path().join("new.safetensors").exists());
    assert_eq!(std::fs::read(folder.path().join("m.safetensors")).unwrap(), before);
}

#[test]
fn what_was_fitted_is_said_for_people_and_programs() {
    let folder = folder();
    let arguments = ["fit", "m.safetensors", "--components", "s.txt", "-o", "new.safetensors"];
    let output = cognate(folder.path(), &[&arguments[..], &["--json"]].concat());
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["sections"][0][0], "sif-pca");
    let settings = &shown["sections"][1][1];
    assert_eq!(settings["sentences"], 9);
    let model = support::tiny_model();
    let mut phrase = Phrase::new(&model);
    let words = support::SENTENCES.map(|sentence| {
        phrase.read(sentence);
        phrase.words().len() as f64
    });
    assert_eq!(settings["mean_length"], words.iter().sum::<f64>() / 9.0);
    let shown = said(&cognate(folder.path(), &arguments));
    assert!(shown.contains("usif {") && shown.contains("fingerprint"), "{shown}");
}

#[test]
fn what_cannot_be_extended_is_refused_and_nothing_is_left_behind() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("v.txt"), "the 0.1 0.2\nquake 1 0\n".repeat(9)).unwrap();
    std::fs::write(folder.join("empty.txt"), "\n\n").unwrap();
    let components = ["--components", "s.txt"];
    refused(folder, &[&["v.txt"], &components[..]].concat(), 1, "this is not a cognate model");
    refused(folder, &["m.safetensors"], 2, "--components <FILE>|--universe <KIND:K>");
    for wrong in ["planes:3", "axes", "axes:0", "axes:x", "axes:99999999"] {
        refused(folder, &["m.safetensors", "--universe", wrong], 2, "--universe");
    }
    refused(folder, &["m.safetensors", "--components", "empty.txt"], 1, "no sentence has a known");
    refused(folder, &["m.safetensors", "--components", "absent.txt"], 1, "absent.txt");
    refused(folder, &[&["absent.safetensors"], &components[..]].concat(), 1, "absent.safetensors");

    let model = support::tiny_model();
    let mut draft = Draft::from_model(&model);
    draft.tables.retain(|table| table.name != "counts");
    draft.write(&folder.join("uncounted.safetensors")).unwrap();
    let arguments = [&["uncounted.safetensors"], &components[..]].concat();
    refused(folder, &arguments, 1, "the model has no word counts; pack the model again");

    let mut damaged = support::tiny(Dtype::F32);
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(folder.join("damaged.safetensors"), damaged).unwrap();
    let arguments = [&["damaged.safetensors"], &components[..]].concat();
    refused(folder, &arguments, 1, "damaged.safetensors: ");
}
