//! `cognate export` by the built binary: what is in the folder, what is said to be left behind, and
//! what is refused.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use cognate::model::Model;
use cognate::model::format::Dtype;
use safetensors::SafeTensors;

use crate::support;
use crate::support::command::{cognate, command, stderr, stdout};

/// A folder with the tiny model in it.
fn with_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    folder
}

/// Exports and gives back what was said.
fn exported(folder: &Path, arguments: &[&str]) -> String {
    let output = cognate(folder, &[], &[&["export", "m.safetensors"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).to_owned()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The vector of every entry of an exported folder, as the libraries make it.
fn vectors(folder: &Path) -> HashMap<String, Vec<f32>> {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let table = tensors.tensor("embeddings").or_else(|_| tensors.tensor("embedding.weight"));
    let table = table.unwrap();
    let numbers = match table.dtype() {
        safetensors::Dtype::F32 => floats(table.data()),
        safetensors::Dtype::F16 => {
            let halves = table.data().as_chunks().0.iter();
            halves.map(|bytes| half::f16::from_le_bytes(*bytes).to_f32()).collect()
        }
        _ => table.data().iter().map(|&byte| f32::from(byte as i8)).collect(),
    };
    let mapping: Option<Vec<usize>> = tensors.tensor("mapping").ok().map(|tensor| {
        let rows = tensor.data().as_chunks().0.iter();
        rows.map(|bytes| i32::from_le_bytes(*bytes) as usize).collect()
    });
    let weights = tensors.tensor("weights").ok().map(|tensor| floats(tensor.data()));
    let entries = json(&folder.join("tokenizer.json"))["model"]["vocab"].clone();
    let entries = entries.as_object().unwrap().iter();
    entries
        .map(|(entry, id)| {
            let id = id.as_u64().unwrap() as usize;
            let row = mapping.as_ref().map_or(id, |mapping| mapping[id]);
            let weight = weights.as_ref().map_or(1.0, |weights| weights[id]);
            let row = &numbers[row * support::DIMS..][..support::DIMS];
            (entry.clone(), row.iter().map(|value| value * weight).collect())
        })
        .collect()
}

fn assert_close(found: &[f32], expected: &[f32], most: f32) {
    assert_eq!(found.len(), expected.len());
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= most);
    assert!(close, "{found:?}, expected {expected:?}");
}

#[test]
fn every_listed_word_and_its_inflected_forms_have_their_rows_at_every_width() {
    let folder = with_model();
    let cases = [("model2vec", "."), ("sentence-transformers", "0_StaticEmbedding")];
    for (library, inside) in cases {
        for (dtype, most) in [("f32", 0.0), ("f16", 1e-3), ("int8", 6e-3)] {
            let name = format!("{library}-{dtype}");
            let flags = ["--to", library, "--dtype", dtype, "--inflections", "all", "-o", &name];
            exported(folder.path(), &flags);
            let vectors = vectors(&folder.path().join(&name).join(inside));
            for word in support::WORDS {
                assert_close(&vectors[word], &support::row_of(word), most);
            }
            for (form, word) in [("quakes", "quake"), ("cities", "city"), ("shakes's", "shakes")] {
                assert_close(&vectors[form], &support::row_of(word), most);
            }
            assert_eq!(vectors["[UNK]"], [0.0; support::DIMS], "unknown words add nothing");
            assert!(!vectors.contains_key("hitses's"), "a rule is applied once");
        }
    }
}

#[test]
fn an_entry_is_what_the_model_finds() {
    let folder = with_model();
    exported(folder.path(), &["--to", "model2vec", "-o", "out"]);
    let model = support::tiny_model();
    let entries = vectors(&folder.path().join("out"));
    assert!(entries.len() > 80, "{} entries", entries.len());
    for (entry, vector) in entries.iter().filter(|(entry, _)| *entry != "[UNK]") {
        let phrase = model.phrase(entry);
        let &[word] = phrase.words() else { panic!("{entry}: {:?}", phrase.words()) };
        let mut row = vec![0.0; support::DIMS];
        phrase.row(word).copy_to(&mut row);
        assert_eq!(&row, vector, "{entry}");
    }
}

#[test]
fn sentence_transformers_gets_the_layout_that_it_writes_itself() {
    let folder = with_model();
    let flags = ["--to", "sentence-transformers", "--normalize", "-o", "out"];
    let said = exported(folder.path(), &flags);
    let out = folder.path().join("out");
    let modules = json(&out.join("modules.json"));
    let of = |index: usize, key: &str| modules[index][key].as_str().unwrap().to_owned();
    assert_eq!(of(0, "path"), "0_StaticEmbedding");
    assert_eq!(of(0, "type"), "sentence_transformers.models.StaticEmbedding");
    assert_eq!(of(1, "type"), "sentence_transformers.models.Normalize");
    let config = json(&out.join("config_sentence_transformers.json"));
    assert_eq!(config["similarity_fn_name"], "cosine");
    assert_eq!((&config["normalize"], &config["max_length"]), (&true.into(), &().into()));
    let bytes = fs::read(out.join("0_StaticEmbedding/model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    // A row an entry, in one table, is what every version of the library reads.
    assert_eq!(tensors.names(), ["embedding.weight"]);
    assert!(said.contains("12 words and 0 inflected forms"), "{said}");
    assert!(said.contains("inflected forms that are not listed"), "{said}");
}

#[test]
fn what_stays_behind_is_said_and_written_on_the_card() {
    let folder = with_model();
    let said = exported(folder.path(), &["--to", "model2vec", "-o", "out"]);
    let card = fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    let fingerprint = Model::open(&folder.path().join("m.safetensors"), &support::full()).unwrap();
    assert!(card.contains(fingerprint.fingerprint()) && card.contains("none needed"), "{card}");
    let behind = [
        "every method but `avg-cos`",
        "made from its hash",
        "hashtags are one word",
        "drawn-out words",
        "the sections example",
    ];
    for what in behind {
        assert!(said.contains(what), "`{what}` is not said: {said}");
        assert!(card.contains(what), "`{what}` is not on the card: {card}");
    }
    let config = json(&folder.path().join("out/config.json"));
    assert_eq!((&config["normalize"], &config["max_length"]), (&false.into(), &().into()));
    // A card beside the model says more than the model.
    let beside = "# Title\n\n## Made from\n\n[Tweets](../t.md) [1] by [hand](h.md#x).\n\n## Licence\n\nOurs.\n";
    fs::write(folder.path().join("m.md"), beside).unwrap();
    exported(folder.path(), &["--to", "model2vec", "-o", "more"]);
    let more = fs::read_to_string(folder.path().join("more/README.md")).unwrap();
    let (same, _) = card.split_once("\n## Licence").unwrap();
    let made = "\n## Made from\n\nTweets [1] by hand.\n\n## Licence\n\nOurs.\n";
    assert_eq!(more, format!("{same}{made}"));
}

#[test]
fn a_folder_with_files_a_file_and_a_missing_model_are_refused_and_nothing_is_left() {
    let folder = with_model();
    let path = folder.path();
    fs::create_dir(path.join("full")).unwrap();
    fs::write(path.join("full/mine"), "kept").unwrap();
    fs::create_dir(path.join("empty")).unwrap();
    let before = fs::read_dir(path).unwrap().count();
    let cases = [
        ("m.safetensors", "full", 2, "new or empty"),
        ("m.safetensors", "m.safetensors", 2, "found a file"),
        ("m.safetensors", "no/such/out", 1, "No such file"),
        ("none.safetensors", "out", 1, "none.safetensors"),
    ];
    for (model, out, code, expected) in cases {
        let output = cognate(path, &[], &["export", model, "--to", "model2vec", "-o", out]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(fs::read_dir(path).unwrap().count(), before);
    assert_eq!(fs::read_to_string(path.join("full/mine")).unwrap(), "kept");
    exported(path, &["--to", "model2vec", "-o", "empty"]);
    assert!(path.join("empty/model.safetensors").exists());
}

#[test]
fn what_a_killed_export_left_is_removed_by_the_next() {
    let folder = with_model();
    let path = folder.path();
    // As an export leaves it that ended in the middle of a file.
    fs::create_dir_all(path.join(".cognate-tmp-0123456789abcdef/0_StaticEmbedding")).unwrap();
    fs::write(path.join(".cognate-tmp-0123456789abcdef/model.safetensors"), "half").unwrap();
    exported(path, &["--to", "sentence-transformers", "-o", "out"]);
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|one| one.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["m.safetensors", "out"]);
    assert!(path.join("out/0_StaticEmbedding/model.safetensors").exists());
}

/// Whenever it is killed, its name stands for the whole folder or for nothing.
#[test]
fn a_killed_export_leaves_the_whole_folder_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    let arguments = ["export", "m.safetensors", "--to", "model2vec", "-o", "out"];
    exported(path, &arguments[2..]);
    let files = |name: &str| {
        let names = fs::read_dir(path.join(name)).unwrap();
        let mut names: Vec<_> = names.map(|one| one.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let whole = files("out");
    let (mut chance, mut none) = (support::Chance(11), 0);
    for _ in 0..support::rounds(30, 400) {
        fs::remove_dir_all(path.join("out")).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
        let mut export = command(program, path, &[]);
        let mut child = export.args(arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_micros(chance.below(12_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        match path.join("out").exists() {
            true => assert_eq!(files("out"), whole),
            false => {
                none += 1;
                exported(path, &arguments[2..]);
            }
        }
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "leftovers are gone");
    }
    assert!(none > 0, "none was killed in time");
}
