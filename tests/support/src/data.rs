//! Test data that is too large or not free enough for this repository. Tests that need it are
//! ignored unless they are asked for; `.ci/run` asks where the data is there.

use std::path::PathBuf;

/// A path in the data folder beside the repository.
#[track_caller]
pub fn shared_data(path: &str) -> PathBuf {
    let found =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(path);
    assert!(found.exists(), "{} is missing: this test needs it", found.display());
    found
}
