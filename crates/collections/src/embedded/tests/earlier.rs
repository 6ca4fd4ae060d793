//! Logs of the format before are written anew when they are opened; whatever fails on the way, the old log
//! is there as it was, or the new one as a whole.

use std::fs;
use std::path::Path;

use crate::CollectionError;
use crate::embedded::tests::faults::{Chance, LOG, open};
use crate::embedded::tests::simulated::Simulated;
use crate::embedded::tests::{item, log_of, with_killed_batches};
use crate::embedded::{EmbeddedHome, Gap};
use crate::{Home, Limits, ReplicaHome, Salvaged, Settings};

/// A log as the program wrote it that had this format: items added, replaced and taken out, settings
/// changed.
const EARLIER: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/items-cgc1.log"));

/// A disk with a collection whose log is this.
fn with_log(bytes: &[u8]) -> Simulated {
    let disk = Simulated::new();
    drop(open(&disk).unwrap().make("news", Settings::default(), 0).unwrap());
    let disk = disk.killed();
    disk.set_bytes(Path::new(LOG), bytes);
    disk
}

fn texts(home: &EmbeddedHome) -> Vec<(String, String)> {
    let news = home.named("news").unwrap();
    let Settings { max_items, ttl_ms, .. } = news.settings();
    assert_eq!((max_items, ttl_ms), (Some(3), Some(1_000_000)));
    news.view(7000).iter().map(|item| (item.id.to_string(), item.text.to_string())).collect()
}

fn expected() -> Vec<(String, String)> {
    [("a", "Lima: a strong quake"), ("d", "the river"), ("e", "the lake")]
        .map(|(id, text)| (id.to_owned(), text.to_owned()))
        .to_vec()
}

#[test]
fn an_earlier_log_is_converted_once() {
    let disk = with_log(EARLIER);
    let home = open(&disk).unwrap();
    assert_eq!(texts(&home), expected());
    assert!(disk.bytes(Path::new(LOG)).unwrap().starts_with(b"cgc2"));
    home.named("news").unwrap().put(vec![item(7, "after", 7000)], 7000).unwrap();
    drop(home);
    let again = open(&disk.killed()).unwrap();
    assert_eq!(texts(&again).last().unwrap().1, "after");
}

#[test]
fn a_torn_end_is_left_out_and_damage_is_refused() {
    let whole = EARLIER.len();
    let last = EARLIER.windows(4).rposition(|four| four == b"cgc1").unwrap();
    for length in [last + 1, last + 20, last + 40, whole - 1] {
        let disk = with_log(&EARLIER[..length]);
        let home = open(&disk).unwrap();
        let found: Vec<String> = texts(&home).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, ["c", "a"], "{length} bytes");
    }
    for place in [40, 200, last - 1] {
        let mut bytes = EARLIER.to_vec();
        bytes[place] ^= 1;
        let disk = with_log(&bytes);
        assert!(matches!(open(&disk), Err(CollectionError::Damaged { .. })), "byte {place}");
        assert_eq!(disk.bytes(Path::new(LOG)).unwrap(), bytes, "byte {place}");
    }
}

#[test]
fn what_can_be_read_of_a_damaged_one_is_salvaged() {
    let folder = with_killed_batches(1);
    let salvaged = |bytes: &[u8]| {
        fs::write(log_of(&folder), bytes).unwrap();
        let salvaged = Salvaged::read(folder.path(), "news").unwrap();
        assert_eq!(fs::read(log_of(&folder)).unwrap(), bytes);
        let items = salvaged.items().map(|item| (item.id.to_string(), item.text.to_string()));
        (items.collect::<Vec<_>>(), salvaged.gaps)
    };
    assert_eq!(salvaged(EARLIER), (expected(), Vec::new()));
    let starts: Vec<usize> = EARLIER
        .windows(4)
        .enumerate()
        .filter(|(_, four)| **four == *b"cgc1")
        .map(|(at, _)| at)
        .collect();
    let last = starts.len() - 1;
    for (frame, &start) in starts.iter().enumerate() {
        // The mark, a byte of the head, a byte of the changes.
        for at in [start, start + 9, start + 33] {
            let mut bytes = EARLIER.to_vec();
            bytes[at] ^= 1;
            let (_, gaps) = salvaged(&bytes);
            let to = starts.get(frame + 1).copied().unwrap_or(EARLIER.len()) as u64;
            let writes = (frame < last).then_some(1);
            assert_eq!(gaps, [Gap { from: start as u64, to, writes }], "frame {frame}, byte {at}");
        }
    }
    // Of what is left out the changes alone are missing.
    let mut bytes = EARLIER.to_vec();
    bytes[starts[last] + 33] ^= 1;
    let (items, _) = salvaged(&bytes);
    assert_eq!(items.iter().map(|(id, _)| &**id).collect::<Vec<_>>(), ["c", "a"]);
}

#[test]
fn a_conversion_that_fails_leaves_the_log_as_it_was() {
    let disk = with_log(EARLIER);
    disk.fail(0..0);
    open(&disk).unwrap();
    let steps = disk.steps();
    for step in 1..=steps {
        for fails in [step..step + 1, step..usize::MAX] {
            let disk = with_log(EARLIER);
            disk.fail(fails.clone());
            let _ = open(&disk);
            disk.fail(0..0);
            for seed in 0..4 {
                let mut chance = Chance(seed);
                let found = open(&disk.without_power(|| chance.next())).unwrap();
                assert_eq!(texts(&found), expected(), "steps {fails:?}, seed {seed}");
            }
            assert_eq!(texts(&open(&disk.killed()).unwrap()), expected(), "steps {fails:?}");
        }
    }
}

#[test]
fn a_replica_refuses_an_earlier_log_and_leaves_it_as_it_is() {
    let folder = with_killed_batches(1);
    fs::write(log_of(&folder), EARLIER).unwrap();
    let refused = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
    assert!(matches!(refused, CollectionError::EarlierFormat { .. }), "{refused}");
    // Who only reads it once reads it as it is.
    let read = ReplicaHome::open_whole(folder.path(), Limits::DEFAULT).unwrap();
    let told = read.get("news").unwrap().told(7000).unwrap();
    assert_eq!((told.items, told.log_bytes), (3, Some(EARLIER.len() as u64)));
    assert_eq!(fs::read(log_of(&folder)).unwrap(), EARLIER);
    // Who writes it converts it, and the replica reads it then.
    let (home, _) = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap();
    assert_eq!(texts(&home), expected());
    ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
}
