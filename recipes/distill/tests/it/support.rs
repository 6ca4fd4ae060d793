//! What the tests of the recipe share: runs of the built binary to their end.

use std::process::Command;

use serde_json::Value;

pub use cognate_testing::{Chance, kill, rounds};

/// The result of a run with `--json`.
pub fn done(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A run must end with this code and say all of these.
pub fn refused(command: &mut Command, code: i32, parts: &[&str]) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
}
