//! Rankers learned from judged posts, by the library and by the built binary, and served.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use candle_core::Device;
use cognate::engine::{Engine, Query};
use cognate::methods::ranker::Encoder;
use cognate::methods::{Method, ranker};
use cognate::model::Model;
use cognate_kernels::random::Random;
use cognate_train::ranker::data::{Batch, Data, Grouping};
use cognate_train::ranker::trainer::{Numbers, Pace, State};
use cognate_train::ranker::{Goal, RankerOptions};
use cognate_train::run::RunFiles;

use crate::support;
use crate::support::Chance;
use crate::train::trainer::{done, refused};

/// Subjects, each with words to ask by and words to answer with. Whether a post answers a query is
/// a matter of these couples alone, which no method without training can know.
const SUBJECTS: [[&str; 6]; 4] = [
    ["quake", "hits", "earthquake", "shakes", "rubble", "epicentre"],
    ["city", "o'neill", "town", "york", "mayor", "council"],
    ["the", "new", "über", "0", "novel", "fresh"],
    ["goal", "match", "striker", "league", "keeper", "penalty"],
];

/// Judged posts: one in three answers its query.
fn judged(queries: usize, seed: u64) -> String {
    let mut chance = Chance(seed);
    let mut rows = String::new();
    for query in 0..queries {
        let subject = query % SUBJECTS.len();
        let words = SUBJECTS[subject];
        let asked = format!("{} {}", words[chance.below(2)], words[chance.below(2)]);
        for post in 0..24 {
            let relevant = post % 3 == 0;
            let about = if relevant { subject } else { (subject + 1 + post % 3) % SUBJECTS.len() };
            let text: Vec<&str> =
                (0..1 + chance.below(6)).map(|_| SUBJECTS[about][2 + chance.below(4)]).collect();
            let (text, label) = (text.join(" "), u8::from(relevant));
            rows.push_str(&format!("{query}\t{asked}\t{label}\t{text} made-up\n"));
        }
    }
    rows
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("m.safetensors", &support::tiny(cognate::model::format::Dtype::F16));
    write("train.tsv", judged(48, 1).as_bytes());
    write("valid.tsv", judged(12, 2).as_bytes());
    folder
}

fn train(folder: &Path, output: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["train", "ranker", "--data", "train.tsv", "--valid", "valid.tsv"]);
    command.args(["--model", "m.safetensors", "-o", output, "--filters", "32", "--hidden", "16"]);
    command.args(["--joint", "16", "--batch", "32", "--json"]).args(flags);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn open(folder: &Path, name: &str) -> Model {
    Model::open(&folder.join(name), &support::full()).unwrap()
}

fn options(folder: &Path, encoder: Encoder) -> RankerOptions {
    RankerOptions {
        files: vec![folder.join("train.tsv")],
        valid: vec![folder.join("valid.tsv")],
        valid_share: 0.1,
        model: folder.join("m.safetensors"),
        run: RunFiles {
            output: folder.join("unused"),
            report: None,
            checkpoint: folder.join("checkpoint"),
            restart: false,
        },
        encoder,
        kernel: 2,
        filters: 32,
        hidden: 16,
        joint: 16,
        epochs: 1,
        patience: 1,
        goal: Goal::Map,
        batch: 32,
        grouping: Grouping::Query,
        pace: Pace { rate: 0.1, momentum: 0.0, decay: 0.0, dropout: 0.5, freeze: false },
        slowing: (1.0, 1),
        least: 2,
        seed: 1,
        every: Duration::ZERO,
        licence: None,
    }
}

/// What training would say of the judging queries' posts by the numbers that a model file holds.
fn by_tensors(
    folder: &Path,
    model: &Model,
    encoder: Encoder,
) -> Vec<(String, Vec<String>, Vec<f32>)> {
    let data = Data::read(model, &options(folder, encoder)).unwrap();
    let dims = model.dims();
    let mut rows = vec![0.0; dims];
    for &id in &data.words.ids {
        let mut row = vec![0.0; dims];
        model.vectors().row(id).unwrap().copy_to(&mut row);
        rows.extend(row);
    }
    let shape = ranker::settings(model).unwrap().unwrap().shape(dims);
    let stored = model.section(ranker::SECTION).unwrap();
    let mut network: Vec<f32> = Vec::new();
    for (name, _) in shape.tensors() {
        network.extend(stored.floats(name).unwrap());
    }
    // Scale and shift hold the running statistics already.
    network.extend(std::iter::repeat_n(0.0, shape.joint));
    network.extend(std::iter::repeat_n(1.0 - 1e-5, shape.joint));
    let mut state = State::new(shape, rows.clone(), Device::Cpu, &mut Random::seeded(0)).unwrap();
    state.set_numbers(&Numbers { network, rows }).unwrap();
    let judge = |(topic, examples): &(cognate_files::topics::Topic, Vec<_>)| {
        let scores = state.scores(&Batch::new(&data.texts, examples)).unwrap();
        (topic.query.clone(), topic.texts.clone(), scores)
    };
    data.judges.iter().map(judge).collect()
}

#[test]
fn a_trained_ranker_ranks_what_it_has_not_seen_and_is_served_as_trained() {
    let folder = folder();
    let folder = folder.path();
    for (name, encoder) in
        [("bicnn", Encoder::Bicnn), ("qatt", Encoder::Qatt), ("patt", Encoder::Patt)]
    {
        let mut command = train(folder, "r.safetensors", &["--encoder", name]);
        // What answers a query is learned from other queries, so these share steps.
        command.args(["--grouping", "mixed", "--rate", "0.1", "--dropout", "0.1"]);
        let said =
            done(command.args(["--epochs", "40", "--patience", "40", "--report", "page.html"]));
        let best = &said["epochs"][said["best_epoch"].as_u64().unwrap() as usize - 1];
        assert!(best["map"].as_f64().unwrap() > 0.9, "{name}: {said}");
        let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
        assert_eq!(page.matches("<svg").count(), 2);
        // `rubble`, `goal` and the like are words of the model now; so is what every post holds.
        let model = open(folder, "r.safetensors");
        assert!(model.vocabulary().lookup("rubble").is_some());
        let expected = by_tensors(folder, &model, encoder);
        let engine = Engine::new(model).unwrap();
        let query = Query::new(Method::named(name).unwrap());
        for (asked, texts, scores) in expected {
            let ranking = engine.rank(&asked, &texts, &query).unwrap();
            assert_eq!(ranking.results.len(), texts.len());
            for ranked in ranking.results {
                let apart = (ranked.score - scores[ranked.index]).abs();
                assert!(apart < 1e-5, "{name}: {asked} / {}: {apart}", texts[ranked.index]);
            }
        }
    }
}

#[test]
fn a_seed_fixes_every_bit_whatever_the_threads() {
    let folder = folder();
    let folder = folder.path();
    let with = |threads: &str, flags: &[&str]| {
        let mut command = train(folder, "r.safetensors", flags);
        done(command.args(["--epochs", "3"]).env("RAYON_NUM_THREADS", threads));
        std::fs::read(folder.join("r.safetensors")).unwrap()
    };
    for encoder in ["patt", "qatt"] {
        let one = with("1", &["--encoder", encoder]);
        assert!(one == with("3", &["--encoder", encoder]), "{encoder}");
        assert!(one != with("1", &["--encoder", encoder, "--seed", "2"]), "{encoder}");
    }
}

#[test]
fn a_killed_run_ends_in_the_same_bits() {
    let folder = folder();
    let folder = folder.path();
    let flags = ["--epochs", "6", "--patience", "6", "--checkpoint-every", "0"];
    let begun = Instant::now();
    done(&mut train(folder, "whole.safetensors", &flags));
    let whole = begun.elapsed();
    let (mut chance, state) = (Chance(5), folder.join("r.safetensors.checkpoint"));
    for round in 0..support::rounds(3, 50) {
        let within = whole * chance.below(1000) as u32 / 1000;
        let start = || train(folder, "r.safetensors", &flags).spawn().unwrap();
        let kept = support::kill(start, &state, within, round % 2 == 0);
        let said = done(&mut train(folder, "r.safetensors", &flags));
        assert_eq!(said["resumed_at"].is_array(), kept);
        let bytes = |name: &str| std::fs::read(folder.join(name)).unwrap();
        assert!(bytes("r.safetensors") == bytes("whole.safetensors"));
        assert!(!state.exists());
    }
}

#[test]
fn what_cannot_be_learned_from_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let with = |flags: &[&str]| train(folder, "r.safetensors", flags);
    refused(&mut with(&["--rate", "0"]), 2, &["--rate"]);
    refused(&mut with(&["--dropout", "1"]), 2, &["--dropout"]);
    refused(&mut with(&["--kernel", "99"]), 2, &["kernel"]);
    refused(
        &mut with(&["--checkpoint", "./train.tsv"]),
        2,
        &["--checkpoint", "one of the files that are read"],
    );
    refused(&mut with(&["--rate", "1e30"]), 2, &["finite"]);
    std::fs::write(folder.join("train.tsv"), "1\ta\t1\tb\n1\ta\t1\tc\n").unwrap();
    refused(&mut with(&[]), 1, &["train.tsv", "relevant candidates and others"]);
    std::fs::write(folder.join("train.tsv"), "1\ta\tyes\tb\n").unwrap();
    refused(&mut with(&[]), 1, &["train.tsv", "line 1", "label"]);
    assert!(!folder.join("r.safetensors").exists());
}

#[test]
fn the_state_of_another_run_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let flags = ["--epochs", "1000", "--patience", "1000", "--checkpoint-every", "0"];
    let state = folder.join("r.safetensors.checkpoint");
    let start = || train(folder, "r.safetensors", &flags).spawn().unwrap();
    assert!(support::kill(start, &state, Duration::ZERO, true));
    refused(&mut train(folder, "r.safetensors", &["--epochs", "1"]), 1, &["--restart"]);
    done(&mut train(folder, "r.safetensors", &["--epochs", "1", "--restart"]));
    assert!(!state.exists());
}
