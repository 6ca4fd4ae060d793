//! The binary: runs the command line and turns its outcome into an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

// glibc's keeps for itself what threads freed.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
