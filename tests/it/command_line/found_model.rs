//! Which model a command takes that names none.

use std::path::{Path, PathBuf};

use cognate::model::format::Dtype;

use crate::support;
use crate::support::command::{command, stderr, stdout};

/// Writes the tiny model to a path within a folder.
fn put(folder: &Path, path: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, support::tiny(Dtype::F32)).unwrap();
}

/// A copy of the binary, in a folder of its own: what lies beside the one built is not known.
fn program(folder: &Path) -> PathBuf {
    let copy = folder.join("bin/cognate");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    let built = env!("CARGO_BIN_EXE_cognate");
    if std::fs::hard_link(built, &copy).is_err() {
        std::fs::copy(built, &copy).unwrap();
    }
    copy
}

#[test]
fn the_nearest_model_is_taken_and_check_says_which_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = program(folder);
    let here = folder.join("here");
    std::fs::create_dir(&here).unwrap();
    let absolute = |path: &str| folder.canonicalize().unwrap().join(path).display().to_string();
    let (home, data) = (absolute("home"), absolute("data"));
    let check = |environment: &[(&str, &str)]| {
        let environment = [&[("HOME", &home[..])], environment].concat();
        let output = command(&program, &here, &environment).args(["serve", "--check"]).output();
        let output = output.unwrap();
        let told = stdout(&output).lines().find(|line| line.starts_with("model = "));
        (output.status.code(), told.unwrap().to_owned(), stderr(&output).to_owned())
    };
    let taken = |path: &str, place: &str| format!("model = [\"default={path}\"]  # {place}");

    let (code, model, told) = check(&[]);
    if cfg!(feature = "embed-model") {
        let embedded = taken("embedded:", "found in the program itself");
        assert_eq!((code, model), (Some(0), embedded), "{told}");
    } else {
        assert_eq!((code, &model[..]), (Some(2), "model = []  # default"));
        for place in [
            absolute("bin/models/default.safetensors"),
            absolute("bin/default.safetensors"),
            "models/default.safetensors (in the current folder)".to_owned(),
            absolute("home/.local/share/cognate/default.safetensors"),
            "Name one: `--model FILE`, or COGNATE_MODEL=FILE".to_owned(),
        ] {
            assert!(told.contains(&place), "{place} in\n{told}");
        }
    }

    // From the farthest place to the nearest: each covers those before.
    let data_folder = [("XDG_DATA_HOME", &data[..])];
    let by_variable = [("COGNATE_MODEL", "../other/m.safetensors")];
    put(folder, "home/.local/share/cognate/default.safetensors");
    put(folder, "data/cognate/default.safetensors");
    put(folder, "other/m.safetensors");
    let found = "found in the user's data folder";
    let path = absolute("home/.local/share/cognate/default.safetensors");
    assert_eq!(check(&[]).1, taken(&path, found));
    assert_eq!(check(&[("XDG_DATA_HOME", "../data")]).1, taken(&path, found), "a relative path");
    let path = absolute("data/cognate/default.safetensors");
    assert_eq!(check(&data_folder).1, taken(&path, found));
    for (path, shown, place) in [
        ("here/models/default.safetensors", None, "found in the current folder"),
        ("bin/default.safetensors", Some(()), "found beside the program"),
        ("bin/models/default.safetensors", Some(()), "found beside the program"),
    ] {
        put(folder, path);
        let shown = shown.map_or("models/default.safetensors".to_owned(), |()| absolute(path));
        let (code, told, problems) = check(&data_folder);
        assert_eq!((code, told), (Some(0), taken(&shown, place)), "{problems}");
    }
    let path = "../other/m.safetensors";
    assert_eq!(check(&by_variable).1, taken(path, "environment COGNATE_MODEL"));
    std::fs::write(here.join("cognate.toml"), "model = '../other/m.safetensors'\n").unwrap();
    assert_eq!(check(&[]).1, taken(path, "file cognate.toml:1"));
}

#[test]
fn commands_that_measure_and_fit_find_it_and_write_into_none_that_was_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = program(folder);
    put(folder, "models/default.safetensors");
    let rows = "5\tquake\tthe quake\n1\tcity\tnew york\n2\ttown\tthe city\n";
    std::fs::write(folder.join("sts.tsv"), rows).unwrap();
    let sts = ["eval", "sts", "sts.tsv", "--methods", "avg-cos,dynamax"];
    let fit = ["fit", "--universe", "axes:3"];
    for (arguments, code, expected) in [
        (sts.to_vec(), 0, ""),
        ([&sts[..], &["--set-auto"]].concat(), 2, "--model FILE, or -o OTHER"),
        ([&sts[..], &["--set-auto", "-o", "set.safetensors"]].concat(), 0, ""),
        (fit.to_vec(), 2, "MODEL, or -o OTHER"),
        ([&fit[..], &["-o", "fitted.safetensors"]].concat(), 0, ""),
    ] {
        let output = command(&program, folder, &[]).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected} in {}", stderr(&output));
    }
    assert!(folder.join("set.safetensors").exists() && folder.join("fitted.safetensors").exists());
}

#[test]
fn a_wrongly_named_model_is_no_reason_to_look_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let mut command = command(program, folder.path(), &[]);
    let output = command.args(["serve", "--model", "own="]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(
        told.contains("--model: `own=` is not a file") && !told.contains("looked for"),
        "{told}"
    );
}

/// One file is the whole service, and it answers as the repository's file does.
#[test]
#[cfg(feature = "embed-model")]
fn the_embedded_model_is_that_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let question = ["similarity", "Quake hits L.A.!!", "Earthquake shakes Los Angeles", "--json"];
    let asked = |model: &str| {
        let mut command = command(program, folder.path(), &[]);
        let output = command.args(question).args(["--model", model]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).to_owned()
    };
    assert_eq!(asked("embedded:"), asked(file.to_str().unwrap()));
    let digest = blake3::hash(&std::fs::read(&file).unwrap()).to_hex();
    let pinned = |digest: &str| {
        let flags = ["serve", "--check", "--strict", "--model=embedded:", "--model-digest", digest];
        command(program, folder.path(), &[]).args(flags).output().unwrap()
    };
    assert_eq!(pinned(&digest).status.code(), Some(0), "{}", stderr(&pinned(&digest)));
    let other = pinned(&"0".repeat(64));
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("embedded:: expected BLAKE3 digest"), "{}", stderr(&other));
}

#[test]
#[cfg(not(feature = "embed-model"))]
fn a_program_without_a_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    for (arguments, code) in
        [(&["serve"][..], 2), (&["serve", "--check"], 2), (&["similarity", "a", "b"], 1)]
    {
        let mut command = command(program, folder.path(), &[]);
        let output = command.args(arguments).arg("--model=embedded:").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let expected = "this program was built without the feature `embed-model`";
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
