//! Word vectors distilled from toys of sentence transformers, by the library and by the built binary.

#![allow(clippy::unwrap_used)]

mod support;
mod teachers;
mod toy;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::{Model, OpenOptions, Unknown};
use cognate_kernels::vector;
use serde_json::Value;

use crate::support::{Chance, done, refused};

/// Sentences of the toys' words, and one that nobody may learn from.
fn text(lines: usize) -> String {
    let mut chance = Chance(7);
    let mut word = |from: usize, to: usize| toy::ENTRIES[from + chance.below(to - from)];
    let mut text = String::new();
    for _ in 0..lines {
        let (place, other) = (word(9, 16), word(9, 16));
        let (like, does, year) = (word(16, 20), word(20, 24), word(34, 36));
        text.push_str(&format!(
            "The {like} {place}, of the {other}, {does} in the lake in {year}.\n"
        ));
    }
    text.push_str("The secret road leads to the old town in the rain of fire.\n");
    text
}

/// All words of the toys, the most frequent first.
fn words() -> String {
    let whole = toy::ENTRIES[4..].iter().filter(|entry| !entry.starts_with('#'));
    whole.enumerate().map(|(at, word)| format!("{word}\t{}\n", 1000 / (at + 1))).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    toy::write(folder.path(), "bert", "mean_tokens");
    toy::write(folder.path(), "mpnet", "cls_token");
    let write =
        |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
    write("text.txt", &text(600));
    write("words.tsv", &words());
    write("whole.txt", "a man reads a book\na woman writes a letter\n");
    write("apart.tsv", "5\tthe secret road leads to the old town\tx\n");
    folder
}

/// A run without any text.
fn program(folder: &Path, output: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate-distill"));
    command.args(["--teacher", "bert-mean_tokens", "-o", output, "--json"]);
    command.args(["--batch", "128"]).args(flags);
    if !flags.contains(&"--cache") {
        command.args(["--cache", "cache"]);
    }
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn distil(folder: &Path, output: &str, flags: &[&str]) -> Command {
    program(folder, output, &[&["--text", "text.txt"], flags].concat())
}

/// From the list of words, in eight dimensions.
const AFRESH: [&str; 4] = ["--words", "words.tsv", "--dims", "8"];

fn open(folder: &Path, name: &str) -> Model {
    Model::open(&folder.join(name), &OpenOptions::default()).unwrap()
}

fn row(model: &Model, word: &str) -> Vec<f32> {
    let mut row = vec![0.0; model.dims()];
    model.vectors().row(model.vocabulary().lookup(word).unwrap()).unwrap().copy_to(&mut row);
    row
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    vector::cosine(vector::Row::F32(a), vector::Row::F32(b))
}

#[test]
fn sums_of_words_come_to_point_where_the_teacher_does() {
    let folder = folder();
    let folder = folder.path();
    let flags = ["--exclude", "apart.tsv", "--whole", "whole.txt", "--report", "page.html"];
    let said = done(distil(folder, "m.safetensors", &AFRESH).args(flags).args(["--epochs", "20"]));
    assert_eq!(said["kept_apart"], 1);
    assert_eq!(said["texts"][4], 2);
    assert_eq!(said["words"], serde_json::json!([33, 33]));
    let apart = |point: &Value| point["apart"].as_f64().unwrap();
    let points = said["points"].as_array().unwrap();
    assert!(apart(points.last().unwrap()) < 0.7 * apart(&points[0]), "{said}");
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2);

    let model = open(folder, "m.safetensors");
    assert_eq!(model.dims(), 8);
    assert!(matches!(model.unknown(), Unknown::Fallback(rules) if rules.hash_norm > Some(0.0)));
    let section: Value =
        serde_json::from_str(model.section("trained-vectors").unwrap().settings).unwrap();
    assert_eq!(section["objective"], "distill");
    assert_eq!(section["teachers"][0]["name"], "bert-mean_tokens");
    assert!(cosine(&row(&model, "2010"), &row(&model, "2011")) < 0.9);
    let engine = Engine::new(model).unwrap();
    let query = Query::new(Method::named("auto").or_else(|| engine.method("auto").ok()).unwrap());
    let pairs = [("the old town", "the old town"), ("the old town", "a woman writes")];
    let scores = engine.similarity(&pairs, &query).unwrap().scores;
    assert!(scores[0] > 0.999 && scores[1] < 0.9, "{scores:?}");
}

#[test]
fn a_seed_fixes_every_bit_whatever_the_threads_and_the_cache() {
    let folder = folder();
    let folder = folder.path();
    let with = |flags: &[&str]| {
        let said = done(&mut distil(folder, "m.safetensors", &[&AFRESH, flags].concat()));
        (std::fs::read(folder.join("m.safetensors")).unwrap(), said["asked"].as_u64().unwrap())
    };
    let (one, asked) = with(&["--threads", "1"]);
    assert!(asked > 1000);
    assert_eq!(with(&["--threads", "3"]), (one.clone(), 0));
    let other = [AFRESH.as_slice(), &["--threads", "3", "--cache", "other"]].concat();
    let mut fresh = distil(folder, "m.safetensors", &other);
    assert_eq!(done(fresh.env("RAYON_NUM_THREADS", "3"))["asked"], asked);
    assert!(std::fs::read(folder.join("m.safetensors")).unwrap() == one);
    let (of_other_seed, asked) = with(&["--seed", "2"]);
    assert!(of_other_seed != one && asked > 0);
    // Only texts of part files that are there no more are asked about again.
    let part = std::fs::read_dir(folder.join("other")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&part, b"damaged").unwrap();
    let said = done(&mut distil(folder, "m.safetensors", &other));
    assert!(said["asked"].as_u64().unwrap() > 0);
    assert!(std::fs::read(folder.join("m.safetensors")).unwrap() == one);
}

#[test]
fn a_killed_run_ends_in_the_same_bits() {
    let folder = folder();
    let folder = folder.path();
    let flags = ["--epochs", "8", "--checkpoint-every", "0"];
    let run = |output: &str| {
        let mut command = distil(folder, output, &AFRESH);
        command.args(flags);
        command
    };
    done(&mut run("whole.safetensors"));
    let begun = Instant::now();
    done(&mut run("whole.safetensors"));
    let whole = begun.elapsed();
    let (mut chance, state) = (Chance(5), folder.join("m.safetensors.checkpoint"));
    for round in 0..support::rounds(3, 30) {
        let within = whole * chance.below(1000) as u32 / 1000;
        let start = || run("m.safetensors").spawn().unwrap();
        let kept = support::kill(start, &state, within, round % 2 == 0);
        let said = done(&mut run("m.safetensors"));
        assert_eq!(said["resumed_at"].is_number(), kept);
        let bytes = |name: &str| std::fs::read(folder.join(name)).unwrap();
        assert!(bytes("m.safetensors") == bytes("whole.safetensors"));
        assert!(!state.exists());
    }
    let start = || run("m.safetensors").spawn().unwrap();
    assert!(support::kill(start, &state, std::time::Duration::ZERO, true));
    refused(run("m.safetensors").args(["--seed", "9"]), 1, &["--restart"]);
    done(run("m.safetensors").args(["--seed", "9", "--restart"]));
}

#[test]
fn two_teachers_are_learned_from_together() {
    let folder = folder();
    let folder = folder.path();
    let both = ["--teacher", "mpnet-cls_token", "--dtype", "int8", "--keep", "20", "--dims", "16"];
    let words = ["--words", "words.tsv"];
    let said = done(distil(folder, "m.safetensors", &words).args(both));
    assert_eq!(said["teachers"][1]["name"], "mpnet-cls_token");
    assert_eq!(said["words"], serde_json::json!([33, 20]));
    let model = open(folder, "m.safetensors");
    assert_eq!((model.vectors().len(), model.dims()), (20, 16));
    let (vectors, _) = model.tensors().next().unwrap();
    assert_eq!(vectors.dtype, cognate::model::format::Dtype::I8);
}

#[test]
fn vectors_are_tuned_through_the_scores_of_pairs() {
    let folder = folder();
    let folder = folder.path();
    let generated = ["--generated", "400", "--epochs", "2", "--exclude", "apart.tsv"];
    let run = |output: &str, more: &[&str]| {
        done(distil(folder, output, &AFRESH).args(generated).args(more))
    };
    let said = run("sums.safetensors", &[]);
    assert!(said["tuned"].is_null());
    let made = said["texts"][5].as_u64().unwrap();
    assert!((250..=400).contains(&made), "{said}");
    let said = run("m.safetensors", &["--families", "64", "--threads", "1"]);
    assert_eq!(said["tuned"]["families"], 64);
    assert!(said["asked"].as_u64() > Some(0), "{said}");
    let said = run("other.safetensors", &["--families", "64", "--threads", "3"]);
    assert_eq!(said["asked"], 0);
    let bytes = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(bytes("m.safetensors") == bytes("other.safetensors"));
    // Words moved, and not far.
    let near = ["sums.safetensors", "m.safetensors"].map(|name| row(&open(folder, name), "town"));
    let near = cosine(&near[0], &near[1]);
    assert!(near > 0.99 && near < 0.999_999_9, "{near}");
    let section = open(folder, "m.safetensors");
    let section = section.section("trained-vectors").unwrap().settings;
    assert_eq!(serde_json::from_str::<Value>(section).unwrap()["families"], 64);
}

#[test]
fn words_that_are_not_listed_get_pieces() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("rare.txt"), "burnsed\nstoneing\nlakes\nhillwall\n").unwrap();
    let pieces = ["--pieces", "30", "--rare-words", "rare.txt", "--keep", "29"];
    let run = |output: &str, more: &[&str]| {
        done(distil(folder, output, &AFRESH).args(pieces).args(["--epochs", "10"]).args(more))
    };
    let said = run("m.safetensors", &["--threads", "1"]);
    assert!(
        said["pieces"][0].as_u64().unwrap() > 20 && said["pieces"][1].as_f64() > Some(0.3),
        "{said}"
    );
    run("other.safetensors", &["--threads", "3"]);
    let bytes = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(bytes("m.safetensors") == bytes("other.safetensors"));
    let model = open(folder, "m.safetensors");
    assert!(matches!(model.unknown(), Unknown::Fallback(rules) if rules.piece_norm > Some(0.0)));
    let engine = Engine::new(model).unwrap();
    let query = Query::new(Method::named("avg-cos").unwrap());
    // `townqed` is town, a letter passed over, and `##ed`; `xqxqx` has only a hash.
    let pairs = [("townqed", "townqing"), ("townqed", "xqxqx")];
    let scores = engine.similarity(&pairs, &query).unwrap().scores;
    assert!(scores[0] > 0.5 && scores[1] < scores[0], "{scores:?}");
    // A model that is moved to other texts keeps them, unless it gets others.
    let start = ["--start", "m.safetensors", "--epochs", "1"];
    done(&mut distil(folder, "moved.safetensors", &start));
    let tables = |name: &str| {
        let model = open(folder, name);
        let section = model.section("pieces").unwrap();
        section.tensor("rows").unwrap().1.to_vec()
    };
    assert_eq!(tables("moved.safetensors"), tables("m.safetensors"));
    done(distil(folder, "moved.safetensors", &start).args(["--pieces", "10"]));
    assert_eq!(tables("moved.safetensors").len(), 10 * 8 * 4);
}

#[test]
fn a_model_is_moved_to_other_texts() {
    let folder = folder();
    let folder = folder.path();
    done(distil(folder, "m.safetensors", &AFRESH).args(["--epochs", "10"]));
    let table: String = (0..400)
        .map(|at| {
            format!("{at}\tthe fire burns the large wall {} of smokestack {}\n", at % 7, at % 9)
        })
        .collect();
    std::fs::write(folder.join("tweets.tsv"), format!("id\ttweet\n{table}")).unwrap();
    let start = ["--start", "m.safetensors", "--text", "tweets.tsv", "--text-column", "tweet"];
    let moved = ["--add-words", "5", "--rate", "0.002", "--epochs", "5"];
    let said = done(distil(folder, "moved.safetensors", &start).args(moved));
    assert_eq!(said["added"], 1);
    let (before, after) = (open(folder, "m.safetensors"), open(folder, "moved.safetensors"));
    let listed: Vec<&str> = before.vocabulary().words().collect();
    let words: Vec<&str> = after.vocabulary().words().collect();
    assert_eq!(words[..listed.len()], listed[..]);
    assert_eq!(words[listed.len()..], ["smokestack"]);
    assert_eq!(before.unknown(), after.unknown());
    assert_eq!(before.metadata()["normalisation"], after.metadata()["normalisation"]);
    let counts = |model: &Model| model.vocabulary().counts.unwrap()[..listed.len()].to_vec();
    assert_eq!(counts(&before), counts(&after));
    // Words of the texts moved, not far; numbers and words that no text holds did not.
    let near = cosine(&row(&before, "fire"), &row(&after, "fire"));
    assert!(near > 0.5 && near < 0.999_999, "{near}");
    assert_eq!(row(&before, "2010"), row(&after, "2010"));
    let length = |word: &str| vector::norm(vector::Row::F32(&row(&after, word)));
    assert!(length("smokestack") > 0.1 * length("stone"), "{}", length("smokestack"));
}

#[test]
fn languages_come_into_one_space_and_count_alike() {
    let folder = folder();
    let folder = folder.path();
    let text = text(600);
    let lines: Vec<&str> = text.lines().collect();
    let (some, others) = lines.split_at(300);
    // The second language has other words besides, and counts a thousand times as high.
    let more = words().replace('\n', "000\n").replace("town\t", "Town\t") + "ville\t500000\n";
    for (name, list, lines) in [("en", words(), some), ("xx", more, others)] {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("words.tsv"), list).unwrap();
        std::fs::write(folder.join("text.txt"), lines.join("\n")).unwrap();
        std::fs::write(folder.join("rare.txt"), format!("oldtown{name}\n")).unwrap();
        let grammar = "who = a man, a woman, a child\n: who reads who\n: who walks to who\n";
        std::fs::write(folder.join("grammar.conf"), grammar).unwrap();
    }
    let flags = ["--language", "en", "--language", "xx", "--dims", "8", "--generated", "400"];
    let flags = [&flags[..], &["--pieces", "20", "--exclude", "apart.tsv"]].concat();
    let said = done(program(folder, "m.safetensors", &flags).args(["--epochs", "20"]));
    assert_eq!((&said["kept_apart"], &said["left_out"]), (&1.into(), &1.into()));
    assert!(said["texts"][5].as_u64().unwrap() > 100, "{said}");
    let model = open(folder, "m.safetensors");
    let counts = model.vocabulary().counts.unwrap();
    let count = |word: &str| counts[model.vocabulary().lookup(word).unwrap() as usize];
    let (the, of) = (count("the"), count("of"));
    assert_eq!(model.languages().collect::<Vec<_>>(), ["en", "xx"]);
    assert!(the > of && the < 500_000_000, "{the} {of}");
    assert!(count("town") < count("ville"), "town is a word of one of the two");
    let bytes = std::fs::read(folder.join("m.safetensors")).unwrap();
    done(program(folder, "m.safetensors", &flags).args(["--epochs", "20", "--threads", "1"]));
    assert!(std::fs::read(folder.join("m.safetensors")).unwrap() == bytes);

    let and = |more: &[&str]| program(folder, "n.safetensors", &[&flags[..], more].concat());
    for more in [["--text", "text.txt"], ["--words", "words.tsv"], ["--families", "9"]] {
        refused(&mut and(&more), 2, &["--language", more[0]]);
    }
    refused(&mut and(&["--language", "nowhere"]), 1, &["nowhere"]);
    std::fs::write(folder.join("xx/words.tsv"), "the\nof\n").unwrap();
    refused(&mut and(&["--restart"]), 1, &["words.tsv", "a count after each word"]);
}

#[test]
fn what_cannot_be_distilled_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let with = |flags: &[&str]| {
        let mut command = distil(folder, "m.safetensors", &AFRESH);
        command.args(flags);
        command
    };
    refused(&mut distil(folder, "m.safetensors", &[]), 2, &["--words"]);
    refused(&mut with(&["--rate", "0"]), 2, &["--rate"]);
    refused(&mut with(&["--divergence", "nan"]), 2, &["--divergence"]);
    refused(&mut with(&["--teacher", "nowhere"]), 1, &["nowhere", "not a folder"]);
    refused(&mut with(&["--report", "words.tsv"]), 2, &["--report", "files that are read"]);
    let wide = ["--words", "words.tsv", "--dims", "13"];
    let mut wide = distil(folder, "m.safetensors", &wide);
    refused(&mut wide, 2, &["--dims", "13", "12"]);
    refused(&mut with(&["--rate", "1e38"]), 2, &["--rate"]);
    std::fs::write(folder.join("words.tsv"), "the\t5\nof\n").unwrap();
    refused(&mut with(&[]), 1, &["words.tsv", "line 2"]);
    std::fs::write(folder.join("words.tsv"), "elsewhere\n").unwrap();
    refused(&mut with(&["--restart", "--bags", "0"]), 1, &["text.txt", "no text holds a word"]);
    assert!(!folder.join("m.safetensors").exists());
}
