//! Word vectors learned from running text, by the library and by the built binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cognate::engine::{Engine, Query};
use cognate::model::{Model, Unknown};
use cognate_kernels::vector;

use crate::support;
use crate::support::Chance;

/// Documents that each keep to one of four subjects; `the` and `of` are everywhere.
fn text(folder: &Path, documents: usize) -> PathBuf {
    let subjects = [
        ["quake", "tremor", "shake", "ground", "rubble"],
        ["goal", "match", "team", "striker", "league"],
        ["cat", "dog", "puppy", "kitten", "fur"],
        ["vote", "senate", "law", "court", "judge"],
    ];
    let mut chance = Chance(7);
    let mut text = String::new();
    for document in 0..documents {
        let words = subjects[document % subjects.len()];
        for _ in 0..5 {
            for _ in 0..4 {
                let word = words[chance.below(5)];
                text.push_str(&format!("the {word} of "));
            }
            text.push('\n');
        }
        text.push_str("\n\n");
    }
    let file = folder.join("text.txt");
    std::fs::write(&file, text).unwrap();
    file
}

fn train(folder: &Path, output: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["train", "vectors", "text.txt", "--dims", "20", "-o", output]).args(flags);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code));
    String::from_utf8(output.stderr).unwrap()
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn what_was_trained_answers() {
    let folder = tempfile::tempdir().unwrap();
    text(folder.path(), 200);
    for objective in ["siamese-cbow", "cbow", "skip-gram"] {
        // A document keeps to one subject, so only other documents have something else to say.
        let how = ["--sample", "0.01", "--epochs", "20", "--others", "text"];
        let mut command = train(folder.path(), "m.safetensors", &how);
        let said = done(command.args(["--objective", objective]));
        assert!(said.contains("22 words × 20 dimensions"), "{said}");
        let path = folder.path().join("m.safetensors");
        let engine = Engine::open(&path, &support::full()).unwrap();
        let query = Query::new(engine.method("avg-cos").unwrap());
        let pairs = [("the tremor", "quake of rubble"), ("the tremor", "league of the striker")];
        let scores = engine.similarity(&pairs, &query).unwrap().scores;
        assert!(scores[0] > scores[1] + 0.1, "{objective}: {scores:?}");
        assert!(!folder.path().join("m.safetensors.checkpoint").exists());
    }
}

#[test]
fn words_that_say_little_end_short() {
    let folder = tempfile::tempdir().unwrap();
    text(folder.path(), 200);
    let said = done(&mut train(folder.path(), "m.safetensors", &["--json", "--others", "text"]));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let mut smallest: Vec<&str> = said["smallest"].as_array().unwrap()[..2]
        .iter()
        .map(|of| of[0].as_str().unwrap())
        .collect();
    smallest.sort_unstable();
    assert_eq!(smallest, ["of", "the"]);
    let losses = said["losses"].as_array().unwrap();
    let loss = |at: usize| losses[at][1].as_f64().unwrap();
    assert!(loss(losses.len() - 1) < loss(0) - 0.05, "{losses:?}");
}

#[test]
fn a_seed_fixes_every_bit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder, 120);
    let with = |name: &str, flags: &[&str]| {
        done(&mut train(folder, name, flags));
        bytes(folder, name)
    };
    let one = with("a.safetensors", &[]);
    assert_eq!(one, with("b.safetensors", &["--threads", "3"]));
    assert_ne!(one, with("b.safetensors", &["--seed", "2"]));
    let apart = ["--objective", "skip-gram", "--threads", "3"];
    assert_eq!(with("a.safetensors", &apart), with("b.safetensors", &apart));
    let adagrad = ["--optimiser", "adagrad"];
    let more = ["--optimiser", "adagrad", "--threads", "2"];
    assert_eq!(with("a.safetensors", &adagrad), with("b.safetensors", &more));
}

#[test]
fn threads_that_do_not_wait_learn_as_well() {
    let folder = tempfile::tempdir().unwrap();
    text(folder.path(), 200);
    for objective in ["siamese-cbow", "cbow", "skip-gram"] {
        let how = ["--hogwild", "--threads", "4", "--json", "--sample", "0.01", "--epochs", "20"];
        let mut command = train(folder.path(), "m.safetensors", &how);
        let said = done(command.args(["--objective", objective]));
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let losses = said["losses"].as_array().unwrap();
        assert!(losses[losses.len() - 1][1].as_f64() < losses[0][1].as_f64(), "{objective}");
    }
}

#[test]
fn training_goes_on_from_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder, 120);
    done(&mut train(folder, "base.safetensors", &[]));
    std::fs::write(
        folder.join("text.txt"),
        "quake aftershock rubble\nthe tremor\nof ground aftershock\n".repeat(20),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    let flags = ["train", "vectors", "text.txt", "--from", "base.safetensors", "-o"];
    command.args(flags).args(["m.safetensors", "--text", "m.txt"]).current_dir(folder);
    let refusal = refused(command.stderr(Stdio::piped()).stdout(Stdio::piped()), 0);
    assert!(refusal.is_empty(), "{refusal}");
    let open = |name: &str| Model::open(&folder.join(name), &support::full()).unwrap();
    let (before, after) = (open("base.safetensors"), open("m.safetensors"));
    assert_eq!(after.vocabulary().len(), before.vocabulary().len() + 1);
    let row = |model: &Model, word: &str| {
        let mut row = vec![0.0; 20];
        let id = model.vocabulary().lookup(word).unwrap();
        model.vectors().row(id).unwrap().copy_to(&mut row);
        row
    };
    assert_eq!(row(&before, "senate"), row(&after, "senate"), "no text about it");
    assert_ne!(row(&before, "quake"), row(&after, "quake"));
    assert!(vector::norm(vector::Row::F32(&row(&after, "aftershock"))) > 0.0);
    let count = |model: &Model| {
        let id = model.vocabulary().lookup("quake").unwrap();
        model.vocabulary().counts.unwrap()[id as usize]
    };
    assert_eq!(count(&after), count(&before) + 20);
    let text = std::fs::read_to_string(folder.join("m.txt")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("23 20"));
    let first: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let stored = row(&after, first[0]);
    assert!(first[1..].iter().zip(stored).all(|(text, value)| text.parse::<f32>() == Ok(value)));
}

#[test]
fn pieces_do_not_outlive_the_vectors_that_they_were_made_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder, 8);
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["train", "vectors", "text.txt", "--from", base, "--epochs", "1"]);
    command.args(["-o", "m.safetensors"]).current_dir(folder);
    done(command.stderr(Stdio::piped()).stdout(Stdio::piped()));
    let norm = |path: &Path| match Model::open(path, &support::full()).unwrap().unknown() {
        Unknown::Fallback(rules) => (rules.piece_norm.is_some(), rules.hash_norm),
        other => panic!("{other:?}"),
    };
    let ((has, hash), after) = (norm(Path::new(base)), norm(&folder.join("m.safetensors")));
    assert!(has);
    assert_eq!(after, (false, hash));
}

#[test]
fn a_killed_run_ends_in_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder, 400);
    let mut chance = Chance(99);
    for objective in ["siamese-cbow", "skip-gram"] {
        let flags = ["--objective", objective, "--epochs", "40", "--checkpoint-every", "0"];
        let begun = Instant::now();
        done(&mut train(folder, "whole.safetensors", &flags));
        let whole = begun.elapsed();
        let state = folder.join("m.safetensors.checkpoint");
        let mut resumed = 0;
        for round in 0..support::rounds(4, 50) {
            let within = Duration::from_millis(20) + whole * chance.below(900) as u32 / 1000;
            let start = || train(folder, "m.safetensors", &flags).spawn().unwrap();
            let kept = support::kill(start, &state, within, round % 2 == 1);
            let said = done(&mut train(folder, "m.safetensors", &flags));
            // A run that is killed between its output and the end of its state has nothing to go on with.
            let went_on = said.contains("resumed at");
            assert!(kept || !went_on);
            resumed += usize::from(went_on);
            assert_eq!(bytes(folder, "m.safetensors"), bytes(folder, "whole.safetensors"));
            std::fs::remove_file(folder.join("m.safetensors")).unwrap();
        }
        assert!(resumed > 0, "{objective}: no run was killed between its first step and its last");
    }
}

#[test]
fn the_state_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder, 400);
    let slow = ["--epochs", "100000", "--checkpoint-every", "0"];
    let mut killed = train(folder, "m.safetensors", &slow).spawn().unwrap();
    let checkpoint = folder.join("m.safetensors.checkpoint");
    while !checkpoint.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let refusal = refused(&mut train(folder, "m.safetensors", &["--epochs", "2"]), 1);
    assert!(refusal.contains("--restart"), "{refusal}");
    done(&mut train(folder, "m.safetensors", &["--epochs", "2", "--restart"]));
    assert!(!checkpoint.exists());
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let say = |text: &[u8]| std::fs::write(folder.join("text.txt"), text).unwrap();
    say(b"each word once\n");
    let refusal = refused(&mut train(folder, "m.safetensors", &[]), 1);
    assert!(refusal.contains("text.txt") && refusal.contains("no word occurs 5 times"));
    say("a b a b a b a b a b\n\n\nb a b a\n".as_bytes());
    let refusal = refused(&mut train(folder, "m.safetensors", &[]), 1);
    assert!(refusal.contains("no sentence has a neighbour"), "{refusal}");
    say(b"fine\nnot \xff fine\n");
    let refusal = refused(&mut train(folder, "m.safetensors", &[]), 1);
    assert!(refusal.contains("line 2") && refusal.contains("UTF-8"), "{refusal}");
    for flags in [["--rate", "-1"], ["--rate", "nan"], ["--sample", "2"]] {
        refused(&mut train(folder, "m.safetensors", &flags), 2);
    }
    say(b"a b\nb a\n");
    let own = ["--checkpoint", "./text.txt", "--restart"];
    let refusal = refused(&mut train(folder, "m.safetensors", &own), 2);
    assert!(refusal.contains("text.txt is one of the files that are read"), "{refusal}");
    assert!(folder.join("text.txt").exists());
    let mut wide = Command::new(env!("CARGO_BIN_EXE_cognate"));
    wide.args(["train", "vectors", "text.txt", "--dims", "5000", "-o", "m.safetensors"]);
    let refusal = refused(wide.current_dir(folder), 2);
    assert!(refusal.contains("--dims") && refusal.contains("5000 is not in 1..=4096"), "{refusal}");
    let wrong = ["--objective", "cbow", "--optimiser", "adagrad"];
    let refusal = refused(&mut train(folder, "m.safetensors", &wrong), 2);
    assert!(refusal.contains("only Siamese CBOW"), "{refusal}");
}
