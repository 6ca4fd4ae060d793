//! Files of every release open in this one and say what they said: models, and logs of collections.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::{cognate, stderr, stdout};

/// What the program prints that is run in a folder.
fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = cognate(folder, &[], arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

/// The files of each release, as `make.sh` beside them made them.
fn releases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/versions");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut releases: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    releases.sort();
    assert!(!releases.is_empty());
    releases
}

#[test]
fn models_of_every_release_score_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = folder.path().join("pairs.tsv");
    for release in releases() {
        let scores = fs::read_to_string(release.join("scores.tsv")).unwrap();
        let mut lines = scores.lines();
        let (_, columns) = lines.next().unwrap().split_once('\t').unwrap();
        let mut expected = BTreeMap::<&str, Vec<&str>>::new();
        for line in lines {
            let (method, row) = line.split_once('\t').unwrap();
            expected.entry(method).or_default().push(row);
        }
        assert!(expected.len() > 20, "{}: {} methods", release.display(), expected.len());
        for (method, rows) in expected {
            let asked = rows.iter().map(|row| row.rsplit_once('\t').unwrap().0);
            let asked: Vec<_> = ["a\tb"].into_iter().chain(asked).collect();
            fs::write(&pairs, asked.join("\n")).unwrap();
            let model = release.join("model.safetensors");
            let answered = run(
                folder.path(),
                &[
                    "similarity",
                    "--input",
                    "pairs.tsv",
                    "--format",
                    "tsv",
                    "--method",
                    method,
                    "--model",
                    model.to_str().unwrap(),
                ],
            );
            let rows = [&[columns], &*rows].concat();
            assert_eq!(answered.trim_end(), rows.join("\n"), "{} by {method}", release.display());
        }
    }
}

#[test]
fn collections_of_every_release_hold_what_they_held_and_go_on() {
    for release in releases() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir_all(data.join("news")).unwrap();
        for file in fs::read_dir(release.join("collections/news")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), data.join("news").join(file.file_name())).unwrap();
        }
        let collection = |arguments: &[&str]| {
            let (action, file) = arguments.split_first().unwrap();
            run(folder.path(), &[&["collection", *action, "--data", "data", "news"], file].concat())
        };
        let expected = fs::read_to_string(release.join("items.ndjson")).unwrap();
        assert_eq!(collection(&["export"]), expected, "{}", release.display());
        let item = r#"{"id":"last","text":"a quake","time":"2026-11-26T09:00:00Z"}"#;
        fs::write(folder.path().join("item"), item).unwrap();
        collection(&["load", "item"]);
        let held = collection(&["export"]);
        // It keeps at most fifty, so that the oldest left.
        assert_eq!(held.lines().count(), 50);
        assert_eq!(held.lines().last(), Some(item));
    }
}
