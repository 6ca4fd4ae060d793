//! Words that are not listed get a vector of their pieces: packed, looked up, explained, and refused
//! where the pieces are broken.

use std::path::Path;
use std::process::Command;

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::format::Dtype;
use cognate::model::phrase::Found;
use cognate::model::writer::{Draft, Table};
use cognate::model::{FormatError, Model, ModelError, OpenOptions, Verify};

const WORDS: &str = "quake 3 0 0 1\nlos 0 2 0 1\nhome 0 0 4 1\n";
const PIECES: &str = "tom 1 0 0 0\n##ato 0 2 0 0\n##e 0 0 0.5 0\nat 5 5 5 5\n##at -1 0 0 0\n";

/// Packs the words with pieces and opens what was written.
fn packed(folder: &Path, dtype: &str, pieces: &str) -> std::process::Output {
    std::fs::write(folder.join("words.txt"), WORDS).unwrap();
    std::fs::write(folder.join("pieces.txt"), pieces).unwrap();
    Command::new(env!("CARGO_BIN_EXE_cognate"))
        .current_dir(folder)
        .args(["pack", "words.txt", "--pieces", "pieces.txt", "--unknown", "fallback"])
        .args(["--hash-norm", "2", "--dtype", dtype, "-o", "model.safetensors"])
        .output()
        .unwrap()
}

fn open(folder: &Path) -> Model {
    Model::open(&folder.join("model.safetensors"), &OpenOptions::default()).unwrap()
}

#[test]
fn a_word_that_is_not_listed_is_the_sum_of_its_pieces_at_the_length_of_rare_words() {
    for (dtype, tolerance) in [("f32", 1e-6), ("f16", 1e-3), ("int8", 1e-2)] {
        let folder = tempfile::tempdir().unwrap();
        let output = packed(folder.path(), dtype, PIECES);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let model = open(folder.path());
        let phrase = model.phrase("Quakes los tomatoe TOM2 xyz tomxato");
        let found: Vec<Found> = phrase.origins().map(|origin| origin.found).collect();
        let [stem, listed, pieces, hash] = [Found::Stem, Found::Listed, Found::Pieces, Found::Hash];
        assert_eq!(found, [stem, listed, pieces, hash, hash, pieces], "{dtype}");

        let [tomatoe, tomxato] = [2, 5].map(|at| phrase.origins().nth(at).unwrap());
        assert_eq!(phrase.pieces(tomatoe), ["tom", "##ato", "##e"]);
        // The pieces add up to (1, 2, ½, 0).
        let length = 5.25_f32.sqrt();
        let mut row = [0.0; 4];
        phrase.row(phrase.words()[2]).copy_to(&mut row);
        for (got, expected) in row.iter().zip([1.0, 2.0, 0.5, 0.0]) {
            assert!((got - 2.0 * expected / length).abs() < tolerance, "{dtype}: {row:?}");
        }
        assert_eq!(phrase.pieces(tomxato), ["tom", "##ato"], "the `x` has no piece");
    }
}

#[test]
fn pieces_that_cancel_out_leave_the_hash() {
    let folder = tempfile::tempdir().unwrap();
    assert!(packed(folder.path(), "f32", PIECES).status.success());
    let model = open(folder.path());
    let phrase = model.phrase("tomat");
    let origin = phrase.origins().next().unwrap();
    assert_eq!(origin.found, Found::Hash);
    assert!(phrase.pieces(origin).is_empty());
}

#[test]
fn explanations_and_inspections_name_the_pieces() {
    let folder = tempfile::tempdir().unwrap();
    assert!(packed(folder.path(), "f32", PIECES).status.success());
    let path = folder.path().join("model.safetensors");
    let engine = Engine::open(&path, &OpenOptions::default()).unwrap();
    let told = engine.explain("tomatoe", "quake", &Query::new(Method::Coverage)).unwrap();
    assert_eq!(told.one[0].pieces, ["tom", "##ato", "##e"]);
    assert!(told.other[0].pieces.is_empty());
    let inspected = Command::new(env!("CARGO_BIN_EXE_cognate"))
        .args(["inspect", path.to_str().unwrap(), "tomatoe"])
        .output()
        .unwrap();
    let text = String::from_utf8(inspected.stdout).unwrap();
    assert!(text.contains("vector from its pieces tom ##ato ##e"), "{text}");
}

#[test]
fn pieces_that_cannot_be_used_are_refused_before_anything_is_written() {
    for (pieces, expected) in [
        ("tom 1 0 0\n", "expected rows of 4 dimensions"),
        ("tom 1 0 0 0\ntom 1 0 0 0\n", "tom"),
        ("tom 1 0 nan 0\n", "NaN"),
        ("tom 1 0 0 0\n##e 0 0 0 0\n", "all zeros"),
        ("##abcdefghijklmnopqrstuvwxyzabcdef 1 0 0 0\n", "at most 31 bytes"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = packed(folder.path(), "f32", pieces);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{error}");
        assert!(!folder.path().join("model.safetensors").exists());
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("words.txt"), WORDS).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cognate"))
        .current_dir(folder.path())
        .args(["pack", "words.txt", "--pieces", "words.txt", "-o", "model.safetensors"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--unknown fallback") && output.status.code() == Some(2), "{error}");
    let output = Command::new(env!("CARGO_BIN_EXE_cognate"))
        .current_dir(folder.path())
        .args(["pack", "words.txt", "--pieces", "words.txt", "--unknown", "fallback"])
        .args(["--unit-norm", "-o", "model.safetensors"])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--unit-norm") && output.status.code() == Some(2), "{error}");
}

#[test]
fn a_word_most_of_which_is_no_piece_is_told_apart_by_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    assert!(packed(folder.path(), "f32", PIECES).status.success());
    let model = open(folder.path());
    let phrase = model.phrase("łódźe ádåe 東京e");
    assert!(phrase.origins().all(|origin| origin.found == Found::Hash));
}

/// What opening says of the model after a change to its draft, if every byte is checked and if the
/// structure alone is.
fn refusals(change: impl FnOnce(&mut Draft<'_>)) -> [Option<FormatError>; 2] {
    let folder = tempfile::tempdir().unwrap();
    assert!(packed(folder.path(), "int8", PIECES).status.success());
    let model = open(folder.path());
    let mut draft = Draft::from_model(&model);
    change(&mut draft);
    let path = folder.path().join("broken.safetensors");
    draft.write(&path).unwrap();
    [Verify::Full, Verify::Structure].map(|verify| {
        match Model::open(&path, &OpenOptions { verify, ..OpenOptions::default() }) {
            Ok(model) => {
                // Whatever numbers it holds, a text can be looked up.
                assert!(
                    model.phrase("tomatoe").origins().all(|origin| origin.found != Found::Listed)
                );
                None
            }
            Err(ModelError::Format { source, .. }) => Some(source),
            Err(other) => panic!("{other}"),
        }
    })
}

/// What both say.
fn refusal(change: impl FnOnce(&mut Draft<'_>)) -> FormatError {
    let [full, structure] = refusals(change);
    let structure = structure.expect("the structure alone is broken");
    assert_eq!(full.expect("it is broken").to_string(), structure.to_string());
    structure
}

fn table<'d, 'a>(draft: &'d mut Draft<'a>, name: &str) -> &'d mut Table<'a> {
    let name = format!("section.pieces.{name}");
    draft.tables.iter_mut().find(|table| table.name == name).unwrap()
}

#[test]
fn broken_pieces_are_refused_by_name() {
    let without = |name: &'static str| {
        move |draft: &mut Draft<'_>| {
            draft.tables.retain(|table| table.name != format!("section.pieces.{name}"));
        }
    };
    for name in ["bytes", "offsets", "index", "rows", "scales"] {
        let error = refusal(without(name));
        assert!(matches!(&error, FormatError::MissingTensor { name: at } if at.ends_with(name)));
    }
    let shape = |error: &FormatError| matches!(error, FormatError::Shape { .. });
    assert!(shape(&refusal(|draft| table(draft, "rows").shape = vec![4, 5])));
    assert!(shape(&refusal(|draft| table(draft, "rows").dtype = Dtype::U8)));
    assert!(shape(&refusal(|draft| table(draft, "index").shape = vec![8, 4])));
    let numbers = |draft: &mut Draft<'_>, name: &str, bytes: Vec<u8>| {
        table(draft, name).source = cognate::model::writer::Source::Bytes(bytes.into());
    };
    let of_pieces =
        |error: &FormatError| matches!(error, FormatError::Vocabulary { table: "pieces", .. });
    let offsets: Vec<u8> = [0_u64, 3, 2, 11, 13, 17].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert!(of_pieces(&refusal(|draft| numbers(draft, "offsets", offsets))));
    assert!(of_pieces(&refusal(|draft| numbers(draft, "bytes", vec![0xff; 17]))));
    assert!(of_pieces(&refusal(|draft| numbers(draft, "index", vec![0xff; 16 * 8]))));
    // A piece that is not where its own look-up looks for it.
    let [full, structure] =
        refusals(|draft| numbers(draft, "bytes", b"tom##ato##eat##to".to_vec()));
    assert!(full.is_some_and(|error| of_pieces(&error)) && structure.is_none());
    for scale in [0.0_f32, -1.0, f32::NAN] {
        let scales: Vec<u8> =
            [1.0, scale, 1.0, 1.0, 1.0].iter().flat_map(|s| s.to_le_bytes()).collect();
        let [full, structure] = refusals(|draft| numbers(draft, "scales", scales));
        // Rows of a scale that is no number have no length either.
        let refused = matches!(full, Some(FormatError::Number { .. } | FormatError::Length { .. }));
        assert!(refused && structure.is_none(), "{scale}");
    }
    let endless: Vec<u8> = [f32::MAX; 5].iter().flat_map(|s| s.to_le_bytes()).collect();
    let [full, _] = refusals(|draft| numbers(draft, "scales", endless));
    assert!(matches!(full, Some(FormatError::Length { .. })));
    for settings in ["{}", "{\"max_probe\":65}", "{\"max_probe\":1,\"more\":1}"] {
        let set = |draft: &mut Draft<'_>| {
            draft.metadata.insert("section.pieces".to_owned(), settings.to_owned());
        };
        assert!(matches!(refusal(set), FormatError::Metadata { .. }), "{settings}");
    }
    let norm = |draft: &mut Draft<'_>| {
        let unknown =
            draft.metadata["unknown"].replace("\"piece_norm\":2.0", "\"piece_norm\":1e39");
        draft.metadata.insert("unknown".to_owned(), unknown);
    };
    assert!(matches!(refusal(norm), FormatError::Metadata { .. }));
}
