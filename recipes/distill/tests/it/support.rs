//! What the tests of the recipe share: numbers of chance, and runs of the built binary to their end or
//! killed on the way.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

/// Numbers by splitmix64.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// How often a test of chance is repeated: `ordinary`, or `long` in the long lane.
pub fn rounds(ordinary: usize, long: usize) -> usize {
    if std::env::var_os("TEST_COGNATE_LONG").is_some() { long } else { ordinary }
}

/// Kills a training at a moment of chance and says whether it left a checkpoint.
///
/// Every other time (`soon`) the moment comes soon after the first checkpoint, in as many runs as it
/// takes: how long a run lasts says little on a machine that others use as well.
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
