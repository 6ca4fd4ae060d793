//! The binary: runs the command line and turns its outcome into an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match cognate_server::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // A reader that went away (`| head`) wants no message; a full stderr cannot take one.
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code)
        }
    }
}
