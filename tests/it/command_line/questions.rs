//! Questions asked once from the command line: what the service answers, without a service.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use cognate::model::format::Dtype;
use cognate::model::{Model, OpenOptions};
use serde_json::{Value, json};

use crate::support;
use crate::support::app::TestApp;
use crate::support::command::{cognate, command, stderr, stdout};

const A: &str = "The quake hits new york!";
const B: &str = "an earthquake shakes the town";

/// A folder with the tiny model where it is found.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("models")).unwrap();
    let path = folder.path().join("models/default.safetensors");
    std::fs::write(path, support::tiny(Dtype::F32)).unwrap();
    folder
}

/// Runs a command that succeeds, and gives what it printed.
fn printed(arguments: &[&str]) -> String {
    let output = cognate(folder().path(), &[], arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

/// Runs a command with lines for it to read.
fn fed(folder: &Path, lines: &[u8], arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let mut command = command(program, folder, &[]);
    let command = command.args(arguments).stdin(Stdio::piped());
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    run.stdin.take().unwrap().write_all(lines).unwrap();
    run.wait_with_output().unwrap()
}

#[tokio::test]
async fn json_is_what_the_service_answers() {
    let bytes = support::tiny(Dtype::F32);
    let model = Model::from_bytes(&bytes, &OpenOptions::default()).unwrap();
    let app = TestApp::with_model(model, |_| ());
    let candidates = ["!!!", "the town shakes", "the quake", "", "new york city"];
    let rank = |more: &[(&str, Value)]| {
        let mut body = json!({"query": A, "candidates": candidates, "return_text": true});
        more.iter().for_each(|(key, value)| body[key] = value.clone());
        body
    };
    let ranking = [&["rank", A][..], &candidates].concat();
    let with = |more: &[&'static str]| [&ranking[..], more].concat();
    let long = "quake ".repeat(600);
    for (path, body, arguments) in [
        ("/similarity", json!({"a": A, "b": B}), vec!["similarity", A, B]),
        (
            "/similarity",
            json!({"a": A, "b": B, "method": "avg-cos", "measure": "euclidean"}),
            vec!["similarity", A, B, "--method", "avg-cos", "--measure", "euclidean"],
        ),
        ("/similarity", json!({"a": A, "b": "!!!"}), vec!["similarity", A, "!!!"]),
        ("/similarity", json!({"a": A, "b": ""}), vec!["similarity", A, ""]),
        (
            "/similarity",
            json!({"a": A, "b": long, "truncate": true}),
            vec!["similarity", A, &long, "--truncate"],
        ),
        (
            "/similarity",
            json!({"a": A, "b": B, "opposites": "ignore"}),
            vec!["similarity", A, B, "--opposites", "ignore"],
        ),
        ("/rank", rank(&[]), ranking.clone()),
        ("/rank", rank(&[("opposites", json!("ignore"))]), with(&["--opposites", "ignore"])),
        ("/rank", rank(&[("top_k", json!(2))]), with(&["--top-k", "2"])),
        ("/rank", rank(&[("method", json!("bm25"))]), with(&["--method", "bm25"])),
        (
            "/rank",
            rank(&[
                ("collapse", json!(0.5)),
                ("diversify", json!({"lambda": 0.5})),
                ("explain", json!(true)),
                ("offset", json!(1)),
                ("top_k", json!(2)),
            ]),
            with(&["--collapse=0.5", "--diversify=0.5", "--explain", "--offset=1", "--top-k=2"]),
        ),
        (
            "/rank",
            json!({"like": [A, "new york"], "unlike": ["town"], "strategy": "mean",
                "candidates": candidates, "return_text": true}),
            [
                &["rank", "--like", A, "--like", "new york", "--unlike=town", "--strategy=mean"],
                &candidates[..],
            ]
            .concat(),
        ),
        ("/embed", json!({"texts": [A, "!!!", B, " "]}), vec!["embed", A, "!!!", B, " "]),
        ("/explain", json!({"a": A, "b": B}), vec!["explain", A, B]),
        (
            "/explain",
            json!({"a": A, "b": B, "method": "wmd"}),
            vec!["explain", A, B, "--method", "wmd"],
        ),
    ] {
        let answer = app.post(path, body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let model = ["--json", "--model", "tiny=models/default.safetensors"];
        let told = printed(&[&arguments[..], &model].concat());
        assert_eq!(told.trim_end(), answer.text(), "{arguments:?}");
    }
}

#[test]
fn people_read_lines() {
    let score: f32 = printed(&["similarity", A, B]).trim_end().parse().unwrap();
    assert!(score > 0.0 && score < 1.0, "{score}");
    for (b, reason) in [
        ("!!!", "a text has no known word"),
        (" ", "a text is empty"),
        (&"x ".repeat(513), "a text is too long"),
    ] {
        let none = printed(&["similarity", A, b]);
        assert_eq!(none, format!("0 (not scored: {reason})\n"));
    }

    let ranked = printed(&["rank", A, "?!", "new york\u{1b}[2J", "the quake hits new york"]);
    let lines: Vec<&str> = ranked.lines().collect();
    assert_eq!(lines.len(), 3, "{ranked}");
    assert!(lines[0].ends_with(" the quake hits new york"), "{ranked}");
    assert!(lines[1].ends_with(" new york [2J"), "{ranked}");
    assert_eq!(lines[2], "-            ?!");

    let ranked = ["rank", A, "the quake hits the town", "--explain", "--method", "avg-cos"];
    let ranked = printed(&ranked);
    let (_, words) = ranked.lines().nth(1).and_then(|line| line.split_once(" by ")).unwrap();
    assert!(words.contains(" (both, 0.") && words.contains(" (query, 0."), "{ranked}");

    let vectors = printed(&["embed", A, "!!!"]);
    let lines: Vec<&str> = vectors.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[0].split(' ').filter(|value| value.parse::<f32>().is_ok()).count(),
        support::DIMS
    );
    assert_eq!(lines[1], "-");

    let explained = printed(&["explain", A, "the quake", "--method", "avg-cos"]);
    let (sentence, words) = explained.split_once('\n').unwrap();
    assert!(sentence.starts_with("avg-cos scores "), "{explained}");
    assert!(words.contains("\nA\n") && words.contains("\nB\n"), "{explained}");
    let share =
        |line: &str| line.split_whitespace().next().and_then(|cell| cell.parse::<f32>().ok());
    let sum: f32 = words.lines().filter_map(share).sum();
    let score: f32 =
        printed(&["similarity", A, "the quake", "--method", "avg-cos"]).trim().parse().unwrap();
    assert!((sum - score).abs() < 1e-3, "{sum} for {score}:\n{explained}");
    // The text as it stands, and the cosines of "the" and "quake" with themselves.
    assert!(words.contains("\nB\n  the quake\n"), "{explained}");
    let map: Vec<&str> =
        explained.split_once("a column a word of B\n").unwrap().1.lines().collect();
    assert_eq!(map[0].split_whitespace().collect::<Vec<_>>(), ["the", "quake"]);
    assert_eq!(map[1].split_whitespace().take(3).collect::<Vec<_>>(), ["the", "██", "1.00"]);
    assert_eq!(map.len(), 1 + A.split(' ').count());
    assert!(!explained.contains('\u{1b}'), "{explained}");
    let whole = printed(&["explain", A, B, "--method", "wmd"]);
    assert!(whole.contains("wmd has no shares of single words"), "{whole}");
}

/// Without its colours an explanation is the same, letter for letter.
#[test]
fn words_are_painted_where_colours_are_wanted() {
    let folder = folder();
    let explain = |environment: &[(&str, &str)]| {
        let arguments = ["explain", A, "the quake", "--method", "avg-cos"];
        let output = cognate(folder.path(), environment, &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    let plain = explain(&[]);
    let painted = explain(&[("CLICOLOR_FORCE", "1")]);
    let mut bare = painted.clone();
    while let Some(start) = bare.find('\u{1b}') {
        let end = start + bare[start..].find('m').unwrap();
        bare.replace_range(start..=end, "");
    }
    assert_eq!(bare, plain);
    // The word of the largest share, wherever it stands.
    assert!(painted.matches("48;5;77m").count() >= 2, "{painted}");
    assert_eq!(explain(&[("NO_COLOR", "1")]), plain);
}

#[test]
fn lines_of_standard_input_are_texts() {
    let folder = folder();
    let folder = folder.path();
    let lines = b"the town shakes\nthe quake hits new york\n";
    let ranked = fed(folder, lines, &["rank", A, "-"]);
    let given = cognate(folder, &[], &["rank", A, "the town shakes", "the quake hits new york"]);
    assert_eq!(stdout(&ranked).lines().count(), 2, "{}", stderr(&ranked));
    assert_eq!(stdout(&ranked), stdout(&given));
    let vectors = fed(folder, lines, &["embed", "-"]);
    assert_eq!(stdout(&vectors).lines().count(), 2, "{}", stderr(&vectors));
    let broken = fed(folder, b"quake\n\xff\n", &["embed", "-"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(stderr(&broken).contains("standard input"), "{}", stderr(&broken));
}

#[test]
fn a_text_that_names_a_file_is_told() {
    let folder = folder();
    std::fs::write(folder.path().join("titles.txt"), "the quake\n").unwrap();
    for (arguments, is_told) in [
        (&["rank", A, "titles.txt"][..], true),
        (&["embed", "the quake", "titles.txt"], true),
        (&["similarity", "titles.txt", A], true),
        (&["similarity", A, B], false),
    ] {
        let output = cognate(folder.path(), &[], arguments);
        let hint = "`titles.txt` is read as a text; a file of this name exists: --input";
        assert_eq!(stderr(&output).contains(hint), is_told, "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_answered_is_said_in_the_engines_words() {
    let long = "x ".repeat(513);
    for (arguments, expected) in [
        (&["explain", A, " "][..], "B is empty"),
        (&["explain", A, &long], "B has 513 tokens; the limit is 512"),
        (&["rank", "", "quake"], "query is empty"),
        (
            &["similarity", A, B, "--method", "wdm"],
            "no such method `wdm`; the nearest names are wmd",
        ),
        (&["similarity", A, B, "--method", "bm25"], "bm25 only ranks candidates"),
        (&["embed", A, "--method", "wmd"], "wmd compares two texts and has no vector of one"),
        (
            &["similarity", A, B, "--method", "wmd", "--measure", "euclidean"],
            "cannot use euclidean",
        ),
        (&["similarity", A, B, "--model", "a="], "--model: `a=` is not a file"),
    ] {
        let output = cognate(folder().path(), &[], arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    let missing = cognate(folder().path(), &[], &["similarity", A, B, "--model", "none.bin"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("none.bin"), "{}", stderr(&missing));
}

#[test]
fn the_settings_of_the_service_hold_for_questions() {
    let folder = folder();
    let folder = folder.path();
    std::fs::rename(folder.join("models/default.safetensors"), folder.join("own.bin")).unwrap();
    let question = ["similarity", A, B];
    let none = cognate(folder, &[], &question);
    if cfg!(not(feature = "embed-model")) {
        assert_eq!(none.status.code(), Some(2));
        assert!(
            stderr(&none).contains("no model is named and none was found"),
            "{}",
            stderr(&none)
        );
    }
    let by_variable = cognate(folder, &[("COGNATE_MODEL", "own.bin,other=none.bin")], &question);
    assert_eq!(by_variable.status.code(), Some(0), "{}", stderr(&by_variable));
    let toml = "text_chars = 5\nstrict = true\n[models]\nown = 'own.bin'\n";
    std::fs::write(folder.join("cognate.toml"), toml).unwrap();
    let limited = cognate(folder, &[], &["explain", A, B]);
    assert_eq!(limited.status.code(), Some(2));
    assert!(
        stderr(&limited).contains("A has 24 characters; the limit is 5"),
        "{}",
        stderr(&limited)
    );
}

#[test]
fn opposites_count_unless_they_are_ignored_and_explain_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let model = support::default_path();
    let model = [("COGNATE_MODEL", model.to_str().unwrap())];
    let asked = |arguments: &[&str]| {
        let (on, off) = ("turn on dark mode", "turn off dark mode");
        let arguments = [&arguments[..1], &[on, off], &arguments[1..]].concat();
        cognate(folder.path(), &model, &arguments)
    };
    let plain = asked(&["similarity", "--method", "coverage-blend"]);
    let ignoring = asked(&["similarity", "--opposites", "ignore"]);
    assert_eq!(stdout(&ignoring), stdout(&plain));
    assert_ne!(stdout(&asked(&["similarity", "--opposites", "count"])), stdout(&plain));
    let ranked = asked(&["rank", "--opposites", "ignore"]);
    assert!(stdout(&ranked).starts_with(stdout(&plain).trim_end()), "{}", stdout(&ranked));
    let refused = asked(&["similarity", "--opposites", "count", "--method", "avg-cos"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("avg-cos does not count opposites"), "{}", stderr(&refused));
    let told = asked(&["similarity", "--return-opposes"]);
    assert!(stdout(&told).ends_with(" (opposed by antonym)\n"), "{}", stdout(&told));
    let told = asked(&["rank", "turn on the dark mode", "--return-opposes"]);
    let lines: Vec<&str> = stdout(&told).lines().map(str::trim_start).collect();
    assert_eq!((lines.len(), lines[2]), (3, "opposed by antonym"), "{lines:?}");
    let left = asked(&["rank", "turn on the dark mode", "--opposes", "drop"]);
    assert_eq!(stdout(&left), format!("{}\n", lines[0]));
    for command in ["similarity", "rank"] {
        for (more, verdict) in [
            (&[][..], "not related"),
            (&["--return-opposes"], "not related"),
            (&["--opposites", "ignore"], "related"),
            (&["--opposites", "ignore", "--return-opposes"], "related"),
        ] {
            let asked = |flag| asked(&[&[command, "--threshold", "0.5", flag], more].concat());
            let json: Value = stdout(&asked("--json")).parse().unwrap();
            let told = if command == "rank" {
                &json["results"][0]["related"]
            } else {
                &json["related"][0]
            };
            assert_eq!(told, &json!(verdict == "related"), "{command} {more:?}");
            let told = asked("--truncate");
            let parts: Vec<&str> =
                stdout(&told).split(['(', ',', ')', '\n']).map(str::trim).collect();
            assert_eq!(parts[1], verdict, "{command} {more:?}: {parts:?}");
        }
    }
    for flag in [&["--opposes", "drop"][..], &["--return-opposes"]] {
        let rows = [&["rank", "--input", "-"], flag].concat();
        let refused = cognate(folder.path(), &model, &rows);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("not for rows of files"), "{}", stderr(&refused));
    }
    let explained = asked(&["explain"]);
    let opposed = "The texts are opposed by antonym (\"on\", \"off\").";
    assert!(stdout(&explained).contains(opposed), "{}", stdout(&explained));
}
