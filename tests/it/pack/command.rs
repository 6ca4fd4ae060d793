//! `cognate pack` and `cognate inspect` by the built binary, on files of a few words.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use cognate::model::{Model, Unknown};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support;

/// Rows of eight words, as GloVe text.
const GLOVE: &str = "the 0.1 0.2 -0.3 0.4\nquake 1 0 0 0.5\ncity 0 1 0 0.5\nquakes 0.9 0.1 0 0.5\n\
                     town 0.1 0.9 0 0.5\nnew 0 0 1 0.5\nyork 0 0.5 1 0.5\no'neill 0.3 0.3 0.3 0.3\n";

fn cognate(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cognate");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Packs and expects success.
fn packed(folder: &Path, arguments: &[&str]) -> Model {
    let output = cognate(folder, &[&["pack"], arguments, &["-o", "m.safetensors"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    Model::open(&folder.join("m.safetensors"), &support::full()).unwrap()
}

/// Packs and expects this exit code and these words in the message; nothing may be left behind.
fn refused(folder: &Path, arguments: &[&str], code: i32, expected: &[&str]) {
    let before = std::fs::read_dir(folder).unwrap().count();
    let output = cognate(folder, &[&["pack"], arguments, &["-o", "new.safetensors"]].concat());
    let message = said(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for words in expected {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), before, "{message}");
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn row(model: &Model, word: &str) -> Vec<f32> {
    let mut row = vec![0.0; model.dims()];
    let id = model.vocabulary().lookup(word).unwrap();
    model.vectors().row(id).unwrap().copy_to(&mut row);
    row
}

#[test]
fn a_vector_too_long_to_calculate_with_is_refused_or_left_out() {
    let folder = folder_with(&[("v.txt", "the 1 2\nfar 1e17 0\ncity 0 1\n")]);
    let expected = ["`far`", "line 2", "longer than 1e15", "scale the vectors down"];
    refused(folder.path(), &["v.txt"], 1, &expected);
    let model = packed(folder.path(), &["v.txt", "--non-finite", "drop"]);
    assert_eq!(model.vocabulary().words().collect::<Vec<_>>(), ["the", "city"]);
}

#[test]
fn glove_text_becomes_a_model_that_answers() {
    let folder = folder_with(&[("v.txt", GLOVE), ("c.tsv", "the\t900\nquake\t60\nzebra\t40\n")]);
    let model = packed(folder.path(), &["v.txt", "--counts", "c.tsv", "--licence", "mine"]);
    assert_eq!(model.vocabulary().len(), 8);
    assert_eq!(row(&model, "quakes"), [0.9, 0.1, 0.0, 0.5]);
    assert_eq!(model.vocabulary().corpus.tokens, Some(1000));
    assert_eq!(model.vocabulary().counts.unwrap()[..3], [900, 60, 0]);
    let quake = model.vocabulary().lookup("quake");
    assert_eq!(model.vocabulary().idf(quake), Some((1000.0_f64 / 60.0).ln() as f32));
    // Half of 40, the smallest count of the table, for a word it does not list.
    assert_eq!(model.vocabulary().idf(None), Some(50.0_f64.ln() as f32));
    assert_eq!(*model.unknown(), Unknown::Skip);
    assert_eq!(model.metadata()["licence"], "mine");

    let output =
        cognate(folder.path(), &["inspect", "m.safetensors", "Quake!! #NewYork zzz", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let tokens = shown["texts"][0]["tokens"].as_array().unwrap();
    let names: Vec<_> = tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert_eq!(names, ["quake", "new", "york", "zzz"]);
    assert_eq!(tokens[0]["words"][0]["neighbours"][0]["word"], "quakes");
    assert_eq!(tokens[0]["span"], serde_json::json!([0, 5]));
    assert!(tokens[3]["words"].as_array().unwrap().is_empty());
    assert_eq!(shown["fingerprint"], model.fingerprint());

    let output = cognate(folder.path(), &["inspect", "m.safetensors", "zzz"]);
    assert!(said(&output).contains("unknown"), "{}", said(&output));
}

#[test]
fn words_are_counted_in_a_corpus_by_the_rules_of_the_model() {
    let text = "The quake hit the CITY.\nNew York: the city!\n\nquake quake\n";
    let folder = folder_with(&[("v.txt", GLOVE), ("corpus.txt", text)]);
    let model = packed(folder.path(), &["v.txt", "--corpus", "corpus.txt"]);
    let vocabulary = model.vocabulary();
    let of = |word: &str| vocabulary.lookup(word).unwrap() as usize;
    let (counts, documents) =
        (vocabulary.counts.unwrap(), vocabulary.document_frequencies.unwrap());
    assert_eq!((counts[of("the")], documents[of("the")]), (3, 2));
    assert_eq!((counts[of("quake")], documents[of("quake")]), (3, 2));
    assert_eq!((counts[of("york")], documents[of("york")]), (1, 1));
    assert_eq!((vocabulary.corpus.tokens, vocabulary.corpus.documents), (Some(11), Some(3)));
    let smooth = |df: f64| ((4.0 / (1.0 + df)).ln() + 1.0) as f32;
    assert_eq!(vocabulary.idf(vocabulary.lookup("york")), Some(smooth(1.0)));
    assert_eq!(vocabulary.idf(None), Some(smooth(0.0)));
    let paragraphs = ["v.txt", "--corpus", "corpus.txt", "--documents", "paragraph"];
    assert_eq!(packed(folder.path(), &paragraphs).vocabulary().corpus.documents, Some(2));
}

#[test]
fn rows_are_changed_as_asked() {
    let folder = folder_with(&[("v.txt", GLOVE)]);
    let folder = folder.path();
    let length = |row: &[f32]| row.iter().map(|v| v * v).sum::<f32>().sqrt();

    let unit = packed(folder, &["v.txt", "--unit-norm"]);
    assert!((length(&row(&unit, "quake")) - 1.0).abs() < 1e-6);
    let cut = packed(folder, &["v.txt", "--dims", "2", "--cut", "truncate", "--words", "3"]);
    assert_eq!((row(&cut, "quake"), cut.vocabulary().len()), (vec![1.0, 0.0], 3));
    let rotated = packed(folder, &["v.txt", "--dims", "4"]);
    let plain = packed(folder, &["v.txt"]);
    let dot = |model: &Model| -> f32 {
        row(model, "quake").iter().zip(row(model, "city")).map(|(a, b)| a * b).sum()
    };
    assert!((dot(&rotated) - dot(&plain)).abs() < 1e-5, "a rotation keeps products");
    assert!(packed(folder, &["v.txt", "--abtt", "1"]).vocabulary().len() == 8);
    let half = packed(folder, &["v.txt", "--dtype", "f16"]);
    assert!((row(&half, "the")[0] - 0.1).abs() < 1e-4);
    let bytes = packed(folder, &["v.txt", "--dtype", "int8"]);
    assert!((row(&bytes, "the")[0] - 0.1).abs() < 0.4 / 127.0);
    let fallback = packed(folder, &["v.txt", "--unknown", "fallback", "--hash-norm", "0.5"]);
    let phrase = fallback.phrase("xyzzy");
    assert!((cognate_kernels::vector::norm(phrase.row(phrase.words()[0])) - 0.5).abs() < 1e-6);
}

#[test]
fn what_is_wrong_with_a_row_is_named_and_policy_decides() {
    let folder = folder_with(&[
        ("short.txt", "the 1 2 3\nquake 1 2\n"),
        ("twice.txt", "the 1 2\nquake 1 0\nthe 3 4\n"),
        ("nan.txt", "the 1 2\nquake nan 0\ncity 3 4\n"),
        ("zero.txt", "the 1 2\nquake 0 0\ncity 3 4\n"),
        ("empty.txt", ""),
        ("cased.txt", "The 1 2\nthe 3 4\nQuake 1 0\n"),
        ("typo.txt", "the 1 2,5 3\nquake 1 2 3\ncity 1 2 3\n"),
        ("zeros.txt", "the 0 0\nquake 0 0\n"),
        ("returns.txt", "the 1 2\rquake 1 0\r"),
        ("words.txt", "the first line\rthe second\r"),
    ]);
    std::fs::write(folder.path().join("latin.txt"), b"the 1 2\ncaf\xe9 1 0\n").unwrap();
    let folder = folder.path();
    refused(folder, &["short.txt"], 1, &["short.txt", "line 2"]);
    refused(folder, &["twice.txt", "--duplicates", "refuse"], 1, &["line 3", "`the` occurs twice"]);
    refused(folder, &["nan.txt"], 1, &["line 2", "NaN", "--non-finite"]);
    refused(folder, &["latin.txt", "--utf8", "strict"], 1, &["line 2", "UTF-8"]);
    refused(folder, &["empty.txt"], 1, &["empty.txt", "empty"]);
    refused(folder, &["absent.txt"], 1, &["absent.txt"]);
    refused(folder, &["typo.txt"], 1, &["typo.txt, line 1:", "3 numbers", "found `2,5`"]);
    refused(folder, &["zeros.txt"], 1, &["zeros.txt: the input holds no usable row"]);
    for returns in [&["returns.txt"][..], &["nan.txt", "--corpus", "words.txt"]] {
        refused(
            folder,
            &[returns, &["--non-finite", "drop"]].concat(),
            1,
            &[".txt, line 1: lines end in carriage returns"],
        );
    }
    // A folder is read as model2vec's, and this one is none.
    let looked_for = "with tokenizer.json and model.safetensors in it";
    refused(folder, &["."], 1, &[looked_for, "found `cased.txt`, ", " and 6 more"]);
    let others = folder.join("others");
    std::fs::create_dir(&others).unwrap();
    refused(folder, &["others"], 1, &[looked_for, "found nothing"]);
    std::fs::create_dir(others.join("0_StaticEmbedding")).unwrap();
    std::fs::write(others.join("0_StaticEmbedding/tokenizer.json"), "{}").unwrap();
    refused(folder, &["others"], 1, &[looked_for, "found `0_StaticEmbedding`"]);
    std::fs::write(others.join("model.safetensors"), "").unwrap();
    refused(
        folder,
        &["others"],
        1,
        &[looked_for, "found `0_StaticEmbedding`, `model.safetensors`"],
    );
    std::fs::write(others.join("tokenizer.json"), "{}").unwrap();
    // A build without it says which can.
    let folders = if cfg!(feature = "model2vec") { "others" } else { "--features model2vec" };
    refused(folder, &["others"], 1, &[folders]);
    refused(folder, &["nan.txt", "--dims", "3"], 2, &["--dims", "1 to 2"]);
    refused(folder, &["nan.txt", "--abtt", "2"], 2, &["--abtt"]);
    refused(folder, &["nan.txt", "--unknown", "subword"], 2, &["--unknown"]);
    refused(folder, &["nan.txt", "--unit-norm", "--frequency", "in-norm"], 2, &["--unit-norm"]);
    refused(folder, &["nan.txt", "--dtype", "f64"], 2, &["f16"]);
    assert_eq!(packed(folder, &["twice.txt"]).vocabulary().len(), 2);
    assert_eq!(packed(folder, &["nan.txt", "--non-finite", "drop"]).vocabulary().len(), 2);
    assert_eq!(packed(folder, &["zero.txt"]).vocabulary().len(), 2);
    assert_eq!(packed(folder, &["latin.txt"]).vocabulary().len(), 1);
    let lossy = packed(folder, &["latin.txt", "--utf8", "lossy"]);
    assert!(lossy.vocabulary().lookup("caf\u{fffd}").is_some());
    let lower = packed(folder, &["cased.txt", "--lower"]);
    assert_eq!(lower.vocabulary().words().collect::<Vec<_>>(), ["the", "quake"]);
    assert_eq!(row(&lower, "the"), [1.0, 2.0]);
}

/// One word is taken, the whole file is digested: read from front to back, packed, or by position.
#[test]
fn a_model_names_the_digest_of_the_whole_source() {
    let folder = folder_with(&[("v.txt", GLOVE)]);
    let rows = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes);
    let binary = [b"2 2\na ", rows[..2].as_flattened(), b"\nb ", rows[2..].as_flattened()].concat();
    let mut packed_text = GzEncoder::new(Vec::new(), Compression::fast());
    packed_text.write_all(GLOVE.as_bytes()).unwrap();
    let files: [(&str, Vec<u8>); 3] = [
        ("v.bin", binary),
        ("v.txt.gz", packed_text.finish().unwrap()),
        (
            "v.fifu",
            include_bytes!("../../../crates/pack/tests/data/finalfusion/fasttext.fifu").to_vec(),
        ),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), &bytes).unwrap();
        for more in [[].as_slice(), &["--words", "1"], &["--unknown", "skip"]] {
            let model = packed(folder.path(), &[&[name], more].concat());
            let stated = &model.metadata()["source_digest"];
            assert_eq!(stated, blake3::hash(&bytes).to_hex().as_str(), "{name} {more:?}");
        }
    }
}

#[test]
fn a_number_too_large_for_half_precision_leaves_nothing_behind() {
    let folder = folder_with(&[("v.txt", "the 1 2\nfar 70000 0\n")]);
    let expected = ["70000 does not fit F16", "--dtype f32"];
    refused(folder.path(), &["v.txt", "--dtype", "f16"], 1, &expected);
}

#[test]
fn an_existing_model_survives_a_pack_that_fails() {
    let folder = folder_with(&[("v.txt", GLOVE), ("bad.txt", "the 1 2\nquake 1\n")]);
    let before = packed(folder.path(), &["v.txt"]).fingerprint().to_owned();
    let output = cognate(folder.path(), &["pack", "bad.txt", "-o", "m.safetensors"]);
    assert_eq!(output.status.code(), Some(1));
    let after = Model::open(&folder.path().join("m.safetensors"), &support::full()).unwrap();
    assert_eq!(after.fingerprint(), before);
}

#[test]
fn inspecting_tells_the_languages() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/multilingual.safetensors");
    let output = cognate(std::path::Path::new("."), &["inspect", path]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("  languages      en de es fr it nl pt\n"), "{told}");
}

#[test]
fn inspecting_what_is_no_model_says_so() {
    let folder = folder_with(&[("v.txt", GLOVE)]);
    let output = cognate(folder.path(), &["inspect", "v.txt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("this is not a cognate model"), "{}", said(&output));
    let output = cognate(folder.path(), &["inspect", "v.txt", "--verify", "some"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn pack_says_what_auto_became_and_what_is_missing() {
    let glove = GLOVE.to_owned() + "'s 0.2 0.2 0 0.5\nn't 0 0 0.2 0.5\n";
    let files = [
        ("v.txt", glove.as_str()),
        ("c.tsv", "the\t900\nquake\t60\n"),
        ("one.txt", "the 9\ncity 2\n"),
    ];
    let folder = folder_with(&files);
    let pack = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = cognate(folder.path(), &[&["pack"], &arguments[..]].concat());
        (output.status.code(), said(&output))
    };
    let (_, said) = pack("v.txt -o m.safetensors");
    assert!(said.contains("auto is dynamax-jaccard: vectors without counts"), "{said}");
    for (method, command) in [
        ("dynamax-sif", "pack the model again with --counts or --corpus"),
        ("bm25", "pack the model again with --corpus FILE"),
        ("fbow-jaccard", "cognate fit MODEL --universe"),
        ("learned-idf", "pack the model again with --counts or --corpus"),
        ("ranker-ql", "cognate train ranker"),
    ] {
        let line = said.lines().find(|line| line.contains(method)).unwrap_or_default();
        assert!(line.contains("not available: ") && line.contains(command), "{method}: {said}");
    }
    assert!(
        said.contains("note: the words `'s` and `n't` suggest --normalisation glove-6b"),
        "{said}"
    );
    assert!(said.lines().count() <= 14, "{said}");

    let (_, said) = pack("v.txt --normalisation glove-6b --counts c.tsv -o m.safetensors --json");
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["auto"], "dynamax-sif");
    assert_eq!(said["auto_because"], "vectors with counts");
    assert_eq!(said["hints"], serde_json::json!([]));
    let missing = said["missing"].to_string();
    assert!(missing.contains("usif") && !missing.contains("dynamax-sif"), "{missing}");

    let (_, said) = pack("one.txt -o m.safetensors --auto-method Learned_IDF");
    assert!(
        said.contains("auto is learned-idf: the file names it, but it cannot be used"),
        "{said}"
    );
    assert!(said.contains("note: one number a word is no vector"), "{said}");
    for name in ["dynamix", "bm25"] {
        let (code, said) = pack(&format!("v.txt -o no.safetensors --auto-method {name}"));
        assert_eq!(code, Some(2), "{said}");
    }
    assert!(!folder.path().join("no.safetensors").exists());
}

#[test]
fn inspect_tells_people_in_words_and_programs_everything() {
    let folder = folder_with(&[("v.txt", GLOVE), ("c.tsv", "the\t900\nquake\t60\n")]);
    packed(folder.path(), &["v.txt", "--counts", "c.tsv", "--unknown", "fallback"]);
    std::fs::write(folder.path().join("s.txt"), "the quake\nthe city\nnew york\n").unwrap();
    let fit = ["fit", "m.safetensors", "--components", "s.txt"];
    assert!(cognate(folder.path(), &fit).status.success());
    let shown = said(&cognate(folder.path(), &["inspect", "m.safetensors"]));
    for line in [
        "normalisation  plain",
        "unknown words  the stem, then parts around an apostrophe, then a vector from the hash",
        "auto           dynamax-sif: vectors with counts",
        "section        sif-pca: ",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(!shown.contains('{'), "{shown}");
    let json = cognate(folder.path(), &["inspect", "m.safetensors", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["auto"], &json["auto_method"]), (&"dynamax-sif".into(), &().into()));
    assert_eq!(json["normalisation"]["case"], "lower");
    assert!(json["sections"][0]["settings"].is_object(), "{json}");
}
