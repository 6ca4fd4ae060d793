//! The fuzz targets on stable: the whole corpus, and thousands of changes of each of its files.
//!
//! Coverage-guided fuzzing finds new inputs; this keeps what it found and looks around each.

#[path = "../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::fuzz_seeds::corpus;
use crate::support::Chance;

/// Where the chance of every run begins; any other number is as good.
const SEED: u64 = 20_261_121;
/// Changed copies of each file of the corpus.
const CHANGES: usize = 6_000;
/// Inputs are not grown beyond this.
const MAX_BYTES: usize = 16 << 10;

/// Numbers that break arithmetic, as bytes and as digits.
const INTERESTING: [i64; 14] = [
    0,
    1,
    -1,
    2,
    127,
    255,
    65_535,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1_000_000_000_000_000_000,
    i64::MAX,
    i64::MIN,
    1 << 62,
];

/// Changes `bytes` in one way.
fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], chance: &mut Chance) {
    let length = bytes.len();
    let at = chance.below(length + 1);
    let run = at..length.min(at + 1 + chance.below(16));
    match chance.below(8) {
        0 if at < length => bytes[at] ^= 1 << chance.below(8),
        1 if at < length => bytes[at] = chance.next() as u8,
        2 => drop(bytes.drain(run)),
        3 => {
            let again = bytes[run.clone()].repeat(1 + chance.below(4));
            drop(bytes.splice(run.end..run.end, again));
        }
        4 => {
            let other = &others[chance.below(others.len())];
            let from = chance.below(other.len() + 1);
            let piece = other[from..other.len().min(from + chance.below(64))].to_vec();
            drop(bytes.splice(run, piece));
        }
        5 => {
            let number = INTERESTING[chance.below(INTERESTING.len())].to_le_bytes();
            for (slot, byte) in bytes[at..].iter_mut().zip(&number[..1 << chance.below(4)]) {
                *slot = *byte;
            }
        }
        6 => {
            let digits = INTERESTING[chance.below(INTERESTING.len())].to_string();
            drop(bytes.splice(run, digits.into_bytes()));
        }
        _ => bytes.truncate(at),
    }
    bytes.truncate(MAX_BYTES);
}

/// Runs one target; a broken law is told with the input that broke it.
fn run(target: targets::Body, bytes: &[u8], whence: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        eprintln!("{whence} breaks a law: b\"{}\"", bytes.escape_ascii());
        resume_unwind(panic);
    }
}

fn replay(name: &str) {
    let (_, target) = targets::TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let mut files: Vec<_> =
        fs::read_dir(corpus().join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 9, "{name} has only {} files to begin with", files.len());
    let seeds: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, bytes) in files.iter().zip(&seeds) {
        run(target, bytes, &path.display().to_string());
    }
    println!("seed {SEED}, {CHANGES} changes of each of {} files", files.len());
    let mut chance = Chance(SEED);
    for (path, seed) in files.iter().zip(&seeds) {
        for round in 0..CHANGES {
            let mut bytes = seed.clone();
            for _ in 0..=chance.below(4) {
                change(&mut bytes, &seeds, &mut chance);
            }
            run(target, &bytes, &format!("{}, change {round} from seed {SEED}", path.display()));
        }
    }
}

/// One test a target, so that they run side by side and a failure names its target.
macro_rules! replays {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(targets::TARGETS.map(|(name, _)| name), replayed);
        }
    };
}

replays! {
    tokenizer, import_w2v_text, import_w2v_bin, import_glove, import_fasttext, import_npy,
    import_safetensors, import_finalfusion, counts, model_open, phrase,
    json_similarity, json_embed, json_rank, json_dialects, json_collections,
    collection_filter, collection_log, gate, auth_header,
}
