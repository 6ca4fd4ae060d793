//! Completions and manual pages: what shells and `man` make of them.

use std::process::Command;

use cognate_server::http::settings::LIST;

use crate::support::command::{cognate, stderr, stdout};

fn printed(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = cognate(folder.path(), &[], arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[test]
fn every_shell_gets_commands_and_flags() {
    let all = cognate_server::cli::command();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = printed(&["completions", shell]);
        for command in all.get_subcommands() {
            assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
        }
        for setting in LIST {
            assert!(script.contains(&setting.flag()), "{shell}: {}", setting.key);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let unknown = cognate(folder.path(), &[], &["completions", "cmd"]);
    assert_eq!(unknown.status.code(), Some(2));
}

/// What bash would offer after these words.
#[test]
fn bash_completes_a_command_line() {
    let script = printed(&["completions", "bash"]);
    let offered = |words: &str, place: usize| {
        let asking = format!(
            "{script}\nCOMP_WORDS=({words})\nCOMP_CWORD={place}\n\
             _cognate cognate \"${{COMP_WORDS[{place}]}}\" \"${{COMP_WORDS[{place}-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        // Longer than one argument may be.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asking");
        std::fs::write(&file, asking).unwrap();
        let output = Command::new("bash").arg("--norc").arg(&file).output().unwrap();
        stdout(&output).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered("cognate sim", 1), ["similarity"]);
    assert_eq!(offered("cognate serve --max-p", 2), ["--max-pairs"]);
    assert_eq!(offered("cognate similarity --measure eu", 3), ["euclidean"]);
}

#[test]
fn every_command_has_a_manual_page() {
    fn walk(command: &clap::Command, path: &[&str]) -> usize {
        let page = printed(&[&["man"], path].concat());
        let title = [&["cognate"], path].concat().join("-").to_uppercase();
        let head = format!(".TH {title} 1  \"cognate {}\"", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&head), "{path:?}: {page}");
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{path:?}");
        let inner = command.get_subcommands().map(|inner| {
            assert!(page.contains(inner.get_name()), "{path:?}: {}", inner.get_name());
            walk(inner, &[path, &[inner.get_name()]].concat())
        });
        1 + inner.sum::<usize>()
    }
    assert!(walk(&cognate_server::cli::command(), &[]) > 15);
    let serve = printed(&["man", "serve"]);
    for setting in LIST {
        assert!(serve.contains(&setting.flag().replace('-', "\\-")), "{}", setting.key);
    }
    let folder = tempfile::tempdir().unwrap();
    let none = cognate(folder.path(), &[], &["man", "eval", "nothing"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("`eval` has no command `nothing`"), "{}", stderr(&none));
}

/// What whoever reports a fault is asked for.
#[test]
fn the_long_version_tells_revision_kernels_and_features() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&["-V"]), format!("cognate {version}\n"));
    let told = printed(&["--version"]);
    let lines: Vec<&str> = told.lines().collect();
    let [first, revision, kernels, features] = lines[..] else { panic!("{told}") };
    assert_eq!((first, revision), (&*format!("cognate {version}"), "revision: unknown"));
    assert_eq!(kernels, format!("kernels: {}", cognate_kernels::simd::name()));
    let has_training = features.split([' ', ',']).any(|word| word == "train");
    assert_eq!((features.starts_with("features: "), has_training), (true, cfg!(feature = "train")));
}
