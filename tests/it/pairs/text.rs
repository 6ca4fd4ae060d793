//! `cognate pairs text`, by the built binary, on documents that have words of their own.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use cognate::model::format::Dtype;

use crate::support;

pub fn cognate(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_cognate");
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs and expects this exit code and these words in the message; nothing may be left behind.
#[track_caller]
pub fn refused(folder: &Path, arguments: &[&str], code: i32, expected: &[&str]) {
    let before = std::fs::read_dir(folder).unwrap().count();
    let output = cognate(folder, &[&["pairs"], arguments].concat());
    let message = said(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for words in expected {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), before, "{message}");
}

/// Label and texts of each row.
pub fn rows(path: &Path) -> Vec<(bool, [String; 2])> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("label\ttext1\ttext2"));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [label, one, other] = fields[..] else { panic!("{line}") };
        assert!(label == "0" || label == "1", "{line}");
        (label == "1", [one.to_owned(), other.to_owned()])
    };
    lines.map(row).collect()
}

/// Documents of four paragraphs of `words` words: word 17 of paragraph 2 of document 5 is
/// `d5p2w17`, and a line has seven.
fn documents(numbers: std::ops::Range<usize>, words: usize) -> String {
    let mut text = String::new();
    for document in numbers {
        for paragraph in 0..4 {
            for word in 0..words {
                let end = if word % 7 == 6 || word + 1 == words { ".\n" } else { ", " };
                text += &format!("D{document}p{paragraph}w{word}{end}");
            }
            text += "\n";
        }
        text += "\n";
    }
    text
}

/// Document, paragraph and number of a word.
fn place(word: &str) -> [usize; 3] {
    let numbers = word.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|part| part.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
}

fn places(text: &str) -> Vec<[usize; 3]> {
    text.split(' ').map(place).collect()
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// The rows of a run that succeeds, and what it said.
fn made(folder: &Path, arguments: &[&str]) -> (Vec<(bool, [String; 2])>, serde_json::Value) {
    let all = [&["pairs", "text"], arguments, &["-o", "out.tsv", "--json"]].concat();
    let output = cognate(folder, &all);
    assert!(output.status.success(), "{}", said(&output));
    (rows(&folder.join("out.tsv")), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn related_chunks_stand_two_words_apart_and_others_in_two_documents() {
    let folder = folder_with(&[("a.txt", &documents(0..9, 100)), ("b.txt", &documents(9..12, 41))]);
    for (length, shortest, longest) in [("20", 20, 20), ("10-30", 10, 30)] {
        let (rows, report) = made(folder.path(), &["a.txt", "b.txt", "--length", length]);
        let mut held = BTreeSet::new();
        let mut lengths = BTreeSet::new();
        for (related, texts) in &rows {
            let [one, other] = [places(&texts[0]), places(&texts[1])];
            for chunk in [&one, &other] {
                assert!((shortest..=longest).contains(&chunk.len()));
                lengths.insert(chunk.len());
                let [document, paragraph, first] = chunk[0];
                let straight = (first..).map(|word| [document, paragraph, word]);
                assert!(chunk.iter().copied().eq(straight.take(chunk.len())), "{texts:?}");
            }
            if *related {
                let [document, paragraph, last] = *one.last().unwrap();
                assert_eq!(other[0], [document, paragraph, last + 3], "{texts:?}");
                for place in one.iter().chain(&other) {
                    assert!(held.insert(*place), "no word stands in two related pairs");
                }
            } else {
                assert_ne!(one[0][0], other[0][0], "{texts:?}");
            }
        }
        let related = rows.iter().filter(|(related, _)| *related).count();
        assert_eq!(2 * related, rows.len(), "half and half");
        assert_eq!(report["related"], related);
        assert_eq!(report["non_related"], related);
        assert_eq!((&report["documents"], &report["paragraphs"]), (&12.into(), &48.into()));
        assert_eq!(report["words_read"], 9 * 400 + 3 * 164);
        if length == "20" {
            // Of 100 words two pairs of 42, of 41 none.
            assert_eq!((related, &report["barren_paragraphs"]), (72, &12.into()));
            assert_eq!(report["words"], 144 * 40);
        } else {
            assert!(lengths.len() > 15, "{lengths:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_packed_or_not() {
    let folder = folder_with(&[("a.txt", &documents(0..9, 100))]);
    let run = |name: &str, seed: &str| {
        let arguments = ["pairs", "text", "a.txt", "-o", name, "--seed", seed];
        let output = cognate(folder.path(), &arguments);
        assert!(output.status.success(), "{}", said(&output));
        std::fs::read(folder.path().join(name)).unwrap()
    };
    let plain = run("one.tsv", "1");
    assert_eq!(plain, run("again.tsv", "1"));
    assert_ne!(plain, run("other.tsv", "2"));
    let packed = run("one.tsv.gz", "1");
    assert_eq!(packed, run("again.gz", "1"));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
    // A packed corpus reads like a plain one.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, documents(0..9, 100).as_bytes()).unwrap();
    std::fs::write(folder.path().join("a.txt"), encoder.finish().unwrap()).unwrap();
    assert_eq!(plain, run("unpacked.tsv", "1"));
}

#[test]
fn a_limit_is_kept_exactly_and_one_too_high_is_told() {
    let folder = folder_with(&[("a.txt", &documents(0..9, 100))]);
    let (rows, report) = made(folder.path(), &["a.txt", "--length", "20", "--rows", "100"]);
    assert_eq!((rows.len(), &report["related"]), (100, &50.into()));
    assert!(report["words_read"].as_u64().unwrap() < 3600, "the rest is not read");
    let arguments = ["pairs", "text", "a.txt", "-o", "out.tsv", "--rows", "1000"];
    let output = cognate(folder.path(), &[&arguments[..], &["--length", "20"]].concat());
    assert!(output.status.success());
    for words in ["144 rows: 72 related, 72 non-related", "no more; 1000 rows were requested"] {
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn a_stride_makes_pairs_overlap() {
    let folder = folder_with(&[("a.txt", &documents(0..3, 100))]);
    let (rows, _) = made(folder.path(), &["a.txt", "--length", "20", "--stride", "3"]);
    let starts: BTreeSet<[usize; 3]> = rows
        .iter()
        .filter(|(related, _)| *related)
        .map(|(_, texts)| places(&texts[0])[0])
        .collect();
    let expected = (0..3).flat_map(|document| {
        (0..4).flat_map(move |paragraph| {
            // The last pair starts at word 57, and ends with the paragraph's word 98.
            (0..=57).step_by(3).map(move |word| [document, paragraph, word])
        })
    });
    assert!(starts.into_iter().eq(expected));
}

#[test]
fn what_gives_no_pairs_is_refused_and_leaves_the_file_as_it_was() {
    let folder = folder_with(&[
        ("two.txt", &documents(0..2, 100)),
        ("one.txt", &documents(0..1, 100)),
        ("short.txt", &documents(0..5, 21)),
        ("half.txt", &(documents(0..1, 100) + &documents(1..5, 21))),
        ("out.tsv", "precious"),
    ]);
    std::fs::write(folder.path().join("latin.txt"), b"fine\n\n\ncaf\xe9\n").unwrap();
    let folder = folder.path();
    let text = |file: &'static str| ["text", file, "-o", "out.tsv"];
    refused(folder, &text("one.txt"), 1, &["at least 2 documents, found 1", "two empty lines"]);
    refused(folder, &text("short.txt"), 1, &["5 documents, found 0", "22 words", "10-30"]);
    refused(folder, &text("half.txt"), 1, &["5 documents, found 1", "22 words"]);
    refused(folder, &text("latin.txt"), 1, &["latin.txt, line 4", "not UTF-8"]);
    refused(folder, &text("absent.txt"), 1, &["absent.txt"]);
    refused(folder, &["text", "two.txt", "-o", "no/out.tsv"], 1, &["cannot write no/out.tsv"]);
    refused(folder, &["text", "two.txt", "-o", "two.txt"], 2, &["files that are read"]);
    refused(folder, &["text", "two.txt", "-o", "out.parquet"], 2, &[".parquet"]);
    let with = |more: &[&str], expected: &[&str]| {
        refused(folder, &[&text("two.txt"), more].concat(), 2, expected);
    };
    with(&["--rows", "7"], &["even"]);
    with(&["--rows", "0"], &["even"]);
    with(&["--stride", "0"], &["--stride"]);
    with(&["--normalisation", "some"], &["deboom"]);
    for odd in ["0", "30-10", "10-", "ten", "1-501", ""] {
        with(&["--length", odd], &["--length", "10-30"]);
    }
    assert_eq!(std::fs::read_to_string(folder.join("out.tsv")).unwrap(), "precious");
    // Each file is a document of its own, whatever its last line.
    let arguments = ["pairs", "text", "one.txt", "half.txt", "-o", "out.tsv"];
    assert!(cognate(folder, &arguments).status.success());
    assert!(rows(&folder.join("out.tsv")).len() > 10);
}

#[test]
fn what_was_made_is_what_evaluation_reads() {
    let mut text = String::new();
    for (document, words) in
        [["quake", "city"], ["new", "york"], ["earthquake", "town"]].iter().enumerate()
    {
        for word in 0..60 {
            text += words[(word * word + document) % 2];
            text += if word % 10 == 9 { "\n" } else { " " };
        }
        text += "\n\n";
    }
    let folder = folder_with(&[("a.txt", &text)]);
    std::fs::write(folder.path().join("m.safetensors"), support::tiny(Dtype::F32)).unwrap();
    let (rows, _) = made(folder.path(), &["a.txt", "--length", "5-8"]);
    let eval = ["eval", "pairs", "out.tsv", "--model", "m.safetensors", "--methods", "avg-cos"];
    let output = cognate(folder.path(), &[&eval[..], &["--json", "-"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = &report["files"][0];
    assert_eq!((&file["pairs"], &file["related"]), (&rows.len().into(), &(rows.len() / 2).into()));
    assert!(file["results"][0]["roc_auc"].as_f64().unwrap() > 0.9);
    assert_eq!(file["results"][0]["unscored"], 0);
}
