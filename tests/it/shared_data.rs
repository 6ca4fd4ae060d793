//! Where test data that is too large or not free enough for this repository lies, if it does.

use std::path::PathBuf;

/// A path in the data folder beside the repository. `None`, said aloud, where it is missing.
pub(crate) fn shared_data(path: &str) -> Option<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");
    let found = PathBuf::from(root).join(path);
    if found.exists() {
        return Some(found);
    }
    eprintln!("skipped: no {}", found.display());
    None
}
