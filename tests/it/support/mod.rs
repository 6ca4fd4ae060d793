//! The service and the program under test; what other crates' tests need as well is in `cognate_testing`.

pub mod app;
pub mod command;
pub mod listener;
pub mod process;

use std::path::Path;
use std::process::Child;
use std::time::Duration;

pub use cognate_testing::*;

/// Kills a training at a moment of chance and says whether it left a state to go on from.
///
/// Every other time (`soon`) the moment comes soon after a state was first kept, in as many runs as
/// it takes: how long a run lasts says little on a machine that others use as well.
pub fn kill(mut start: impl FnMut() -> Child, state: &Path, within: Duration, soon: bool) -> bool {
    for _ in 0..if soon { 100 } else { 1 } {
        let mut run = start();
        while soon && !state.exists() && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(if soon { within / 16 } else { within });
        run.kill().unwrap();
        run.wait().unwrap();
        if state.exists() {
            return true;
        }
    }
    false
}
