//! The built binary run to its end: what it printed and how it ended.

use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary in a folder of its own, with no setting but those given.
pub fn cognate(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_cognate"));
    command(program, folder, environment).args(arguments).output().unwrap()
}

/// A program to be run in a folder, with no setting but those given, and no home.
pub fn command(program: &Path, folder: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COGNATE_") {
            command.env_remove(name);
        }
    }
    // A model may lie in the home of whoever runs the tests.
    command.env_remove("XDG_DATA_HOME").env_remove("HOME");
    command.current_dir(folder).envs(environment.iter().copied());
    command
}

/// What it printed.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// What it complained about.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
