//! What a run does to files: modes, limits of size, links, and what it must not overwrite.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use cognate::model::Model;
use cognate::model::format::Dtype;

use crate::support;

/// Rows of three words, as GloVe text.
const GLOVE: &str = "the 0.1 0.2\nquake 1 0\ncity 0 1\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("v.txt", GLOVE.as_bytes());
    write("counts.tsv", b"the\t900\nquake\t60\n");
    write("m.safetensors", &support::tiny(Dtype::F32));
    write("sts.tsv", b"5\tquake\tthe quake\n1\tcity\tnew york\n2\ttown\tthe city\n");
    write("pairs.tsv", b"1\tquake\tthe quake\n0\tcity\tnew\n1\ttown\ttown\n0\thits\tyork\n");
    write("s.txt", support::SENTENCES.join("\n").as_bytes());
    folder
}

/// Runs the program by a shell that first says what the process may do.
fn after(setting: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("{setting}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_cognate")]);
    shell.args(arguments).current_dir(folder).output().unwrap()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn new_files_let_in_whom_the_umask_lets_in_and_others_keep_their_mode() {
    let folder = folder();
    let folder = folder.path();
    let packing = ["pack", "v.txt", "-o", "new.safetensors"];
    let measuring = ["eval", "sts", "sts.tsv", "--model", "m.safetensors", "--methods", "avg-cos"];
    let measuring = [&measuring[..], &["--json", "new.json", "--html", "new.html"]].concat();
    let coupling = ["pairs", "text", "two.txt", "-o", "new.tsv", "--length", "2"];
    std::fs::write(folder.join("two.txt"), "a b c d e f\n\n\ng h i j k l\n").unwrap();
    let runs = [
        (&packing[..], &["new.safetensors"][..]),
        (&measuring[..], &["new.json", "new.html"]),
        (&coupling[..], &["new.tsv"]),
    ];
    for (umask, expected) in [("077", 0o600), ("027", 0o640), ("022", 0o644)] {
        for (arguments, written) in runs {
            let run = || {
                let output = after(&format!("umask {umask}"), folder, arguments);
                assert!(output.status.success(), "{}", message(&output));
            };
            run();
            for name in written {
                let path = folder.join(name);
                assert_eq!(mode(&path), expected, "{name} under umask {umask}");
                let given = std::fs::Permissions::from_mode(0o604);
                std::fs::set_permissions(path, given).unwrap();
            }
            run();
            for name in written {
                assert_eq!(mode(&folder.join(name)), 0o604, "{name} under umask {umask}");
                std::fs::remove_file(folder.join(name)).unwrap();
            }
        }
    }
}

#[test]
fn a_limit_of_file_size_is_an_error_and_no_signal() {
    let folder = folder();
    let folder = folder.path();
    let old = std::fs::read(folder.join("m.safetensors")).unwrap();
    let small = "ulimit -f 1";
    let runs: [&[&str]; 3] = [
        &["fit", "m.safetensors", "--components", "s.txt"],
        &["pack", "v.txt", "--counts", "counts.tsv", "-o", "m.safetensors"],
        &["eval", "sts", "sts.tsv", "--model", "m.safetensors", "--html", "page.html"],
    ];
    for arguments in runs {
        let output = after(small, folder, arguments);
        assert_eq!(output.status.code(), Some(74), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains("File too large"), "{}", message(&output));
        assert!(std::fs::read(folder.join("m.safetensors")).unwrap() == old);
    }
    assert!(!folder.join("page.html").exists());
}

#[test]
fn what_is_read_is_not_overwritten() {
    let folder = folder();
    let folder = folder.path();
    std::os::unix::fs::symlink("v.txt", folder.join("link")).unwrap();
    std::fs::create_dir(folder.join("within")).unwrap();
    std::fs::write(folder.join("w.json"), "{}").unwrap();
    let before = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let sources = ["v.txt", "counts.tsv", "s.txt", "sts.tsv", "pairs.tsv", "w.json"];
    let old = sources.map(before);
    let of_model = ["--model", "m.safetensors"];
    let runs: [(&[&str], &str); 15] = [
        (&["pack", "v.txt", "-o", "v.txt"], "-o: v.txt is one of the files that are read"),
        (&["pack", "v.txt", "-o", "./within/../v.txt"], "-o: v.txt is one"),
        (&["pack", "v.txt", "-o", "link"], "-o: v.txt is one"),
        (&["pack", "link", "-o", "v.txt"], "-o: link is one"),
        (&["pack", "v.txt", "--counts", "counts.tsv", "-o", "counts.tsv"], "-o: counts.tsv is one"),
        (&["pack", "v.txt", "--corpus", "s.txt", "-o", "s.txt"], "-o: s.txt is one"),
        (&["fit", "m.safetensors", "--components", "s.txt", "-o", "s.txt"], "-o: s.txt is one"),
        (&["train", "vectors", "s.txt", "-o", "s.txt"], "-o: s.txt is one"),
        (&["train", "vectors", "s.txt", "-o", "x", "--text", "s.txt"], "--text: s.txt is one"),
        (
            &["train", "vectors", "s.txt", "-o", "x", "--report", "x"],
            "--report: x is what -o names",
        ),
        (&["train", "weights", "pairs.tsv", "-o", "pairs.tsv"], "-o: pairs.tsv is one"),
        (
            &["train", "weights", "pairs.tsv", "-o", "x", "--export", "m.safetensors"],
            "--export: m.safetensors is one",
        ),
        (&["train", "weights", "--import", "w.json", "-o", "w.json"], "-o: w.json is one"),
        (&["eval", "calibrate", "pairs.tsv", "-o", "pairs.tsv"], "-o: pairs.tsv is one"),
        (&["eval", "sts", "sts.tsv", "--json", "sts.tsv"], "--json: sts.tsv is one"),
    ];
    for (arguments, expected) in runs {
        let takes_model = arguments[0] == "eval" || arguments[1] == "weights";
        let model: &[&str] = if takes_model { &of_model } else { &[] };
        let output = after(":", folder, &[arguments, model].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", message(&output));
        assert!(message(&output).contains(expected), "{arguments:?}: {}", message(&output));
        assert!(sources.map(before) == old, "{arguments:?}");
    }
    let model = Model::open(&folder.join("m.safetensors"), &support::full()).unwrap();
    assert_eq!(model.fingerprint(), support::tiny_model().fingerprint());
}
