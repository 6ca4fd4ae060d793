//! The corpus that fuzzing starts from: small files of every kind, whole and broken, made here.
//!
//! `TEST_COGNATE_BLESS=1 cargo test --test it fuzz_seeds` writes them anew. What the fuzzer found lies
//! beside them under other names and is left alone.

mod binary;
mod collections;
mod matrices;
mod models;
mod requests;
mod texts;

use std::fs;
use std::path::PathBuf;

/// Target, name of the file, its bytes.
type Seed = (&'static str, &'static str, Vec<u8>);

/// Where the corpus lies, a folder a target.
pub(crate) fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"))
}

fn made() -> Vec<Seed> {
    [
        texts::seeds(),
        binary::seeds(),
        matrices::seeds(),
        models::seeds(),
        collections::seeds(),
        requests::seeds(),
    ]
    .concat()
}

/// The same bytes with `old`, which must stand there, replaced by as many others.
fn with(file: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len(), "what follows would move");
    let at = file.windows(old.len()).position(|window| window == old);
    let at = at.unwrap_or_else(|| panic!("no `{}` to replace", old.escape_ascii()));
    [&file[..at], new, &file[at + old.len()..]].concat()
}

#[test]
fn every_seed_is_in_the_corpus() {
    let bless = std::env::var_os("TEST_COGNATE_BLESS").is_some();
    let mut total = 0;
    for (target, name, bytes) in made() {
        let path = corpus().join(target).join(name);
        if bless {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(path.exists(), "no {}: run with TEST_COGNATE_BLESS=1", path.display());
        total += bytes.len();
    }
    assert!(total < 300_000, "{total} bytes are more than a repository should carry");
}
