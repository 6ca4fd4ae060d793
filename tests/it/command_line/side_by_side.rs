//! Several runs that write into one folder at the same time.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cognate::model::format::Dtype;
use cognate::model::{Frequency, Model, disk};
use cognate::text::Normalisation;
use cognate_pack::counts::Documents;
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::{Budget, Source};
use cognate_pack::transform::Changes;
use cognate_pack::{PackOptions, UnknownChoice};

use crate::support;

/// Packs `v.txt` of the folder into a model of that name.
fn packing(folder: &Path, output: &str) -> PackOptions {
    PackOptions {
        source: Source {
            path: folder.join("v.txt"),
            format: None,
            vocabulary: None,
            tensor: None,
            budget: Budget::DEFAULT,
        },
        output: folder.join(output),
        dtype: Dtype::F32,
        policy: Policy {
            duplicates: FlawedRows::Drop,
            non_finite: FlawedRows::Refuse,
            utf8: BadUtf8::Skip,
            lower: false,
            words: u64::MAX,
        },
        changes: Changes { abtt: None, dims: None, unit_norm: false },
        normalisation: Normalisation::preset("plain").unwrap(),
        unknown: UnknownChoice::Skip,
        pieces: None,
        frequency: Frequency::None,
        counts: None,
        corpus: None,
        polarity: None,
        documents: Documents::Line,
        licence: None,
        auto_method: None,
    }
}

#[test]
fn packs_in_one_folder_do_not_take_each_others_working_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("v.txt"), "the 0.1 0.2\nquake 1 0\ncity 0 1\n").unwrap();
    std::thread::scope(|scope| {
        for name in ["a.safetensors", "b.safetensors", "c.safetensors"] {
            scope.spawn(move || {
                for _ in 0..30 {
                    cognate_pack::pack(&packing(folder, name)).unwrap();
                }
            });
        }
        // Whoever replaces a file clears away what crashes left behind.
        scope.spawn(move || {
            for _ in 0..300 {
                disk::replace_by(&folder.join("beside"), b"new").unwrap();
            }
        });
    });
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 5, "nothing is left behind");
}

/// A run whose words on stderr go into a file of the folder.
fn start(folder: &Path, log: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(arguments).current_dir(folder).stdout(Stdio::null());
    command.stderr(File::create(folder.join(log)).unwrap()).spawn().unwrap()
}

fn said(folder: &Path, log: &str) -> String {
    std::fs::read_to_string(folder.join(log)).unwrap()
}

/// The runs that put more into `m.safetensors`, and the section that each of them writes.
const EXTENDING: [(&str, &[&str]); 4] = [
    ("universe", &["fit", "m.safetensors", "--universe", "axes:3"]),
    ("usif", &["fit", "m.safetensors", "--components", "s.txt"]),
    (
        "learned-idf",
        &[
            "train",
            "weights",
            "--import",
            "w.json",
            "--model",
            "m.safetensors",
            "-o",
            "m.safetensors",
        ],
    ),
    (
        "calibration",
        &[
            "eval",
            "calibrate",
            "p.tsv",
            "--methods",
            "avg-cos",
            "--model",
            "m.safetensors",
            "-o",
            "m.safetensors",
        ],
    ),
];

fn folder_to_extend() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("m.safetensors", &support::tiny(Dtype::F32));
    write("s.txt", support::SENTENCES.join("\n").as_bytes());
    write("p.tsv", b"1\tquake\tthe quake\n1\ttown\ttown\n0\tcity\tnew\n0\thits\tyork\n");
    let weights = "{\"format\":\"cognate-weights-1\",\"set\":\"own\",\"measure\":\"euclidean\",\
                   \"max_length\":2,\"weights\":[0.9,0.5]}";
    write("w.json", weights.as_bytes());
    folder
}

#[test]
fn of_runs_that_extend_one_model_none_loses_what_another_wrote() {
    let folder = folder_to_extend();
    let folder = folder.path();
    // As another writer would hold it, so that all have read the model before the first writes.
    let held = File::open(folder).unwrap();
    held.lock().unwrap();
    let mut runs =
        EXTENDING.map(|(section, arguments)| (section, start(folder, section, arguments)));
    let begun = Instant::now();
    for (section, run) in &mut runs {
        while !said(folder, section).contains("waiting for another process that writes in ") {
            assert_eq!(run.try_wait().unwrap(), None, "{}", said(folder, section));
            assert!(begun.elapsed() < Duration::from_secs(60), "{section} says nothing");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    drop(held);
    for (section, run) in &mut runs {
        assert!(run.wait().unwrap().success(), "{}", said(folder, section));
        assert_eq!(said(folder, section).lines().count(), 1, "{}", said(folder, section));
    }
    let model = Model::open(&folder.join("m.safetensors"), &support::full()).unwrap();
    let sections: Vec<&str> = model.sections().into_iter().collect();
    let expected = ["calibration", "example", "learned-idf", "sif-pca", "universe", "usif"];
    assert_eq!(sections, expected);
}

#[test]
fn what_was_made_for_other_vectors_is_not_put_into_a_model_that_took_their_place() {
    let folder = folder_to_extend();
    let folder = folder.path();
    let held = File::open(folder).unwrap();
    held.lock().unwrap();
    let mut run = start(folder, "log", EXTENDING[0].1);
    let begun = Instant::now();
    while !said(folder, "log").contains("waiting") {
        assert!(begun.elapsed() < Duration::from_secs(60) && run.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::write(folder.join("other"), support::tiny(Dtype::F16)).unwrap();
    std::fs::rename(folder.join("other"), folder.join("m.safetensors")).unwrap();
    drop(held);
    assert_eq!(run.wait().unwrap().code(), Some(1));
    assert!(said(folder, "log").contains("run the command again"), "{}", said(folder, "log"));
    assert!(std::fs::read(folder.join("m.safetensors")).unwrap() == support::tiny(Dtype::F16));
}
