//! Logs of the format before are written anew when they are opened; whatever fails on the way, the old log
//! is there as it was, or the new one as a whole. Logs of later formats are refused as such.

use std::fs;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::CollectionError;
use crate::embedded::frame::HEAD;
use crate::embedded::home::Opening;
use crate::embedded::tests::faults::{Chance, LOG, open};
use crate::embedded::tests::simulated::Simulated;
use crate::embedded::tests::{frames, item, log_of, with_killed_batches};
use crate::embedded::{EmbeddedHome, Gap};
use crate::{Home, Limits, ReplicaHome, Salvaged, Settings, back_up};

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

/// A log whose frame at this place has other bytes in the place of these, and says so itself.
fn rewritten(log: &[u8], start: usize, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut log = log.to_vec();
    let at = start + log[start..].windows(from.len()).position(|bytes| bytes == from).unwrap();
    log[at..at + to.len()].copy_from_slice(to);
    let length = u32::from_le_bytes(log[start + 4..start + 8].try_into().unwrap()) as usize;
    let changes = xxh3_64(&log[start + HEAD..start + HEAD + length]);
    log[start + 24..start + 32].copy_from_slice(&changes.to_le_bytes());
    let head = xxh3_64(&log[start..start + 32]);
    log[start + 32..start + HEAD].copy_from_slice(&head.to_le_bytes());
    log
}

#[test]
fn a_log_of_a_later_format_is_no_damage() {
    let folder = with_killed_batches(2);
    let (path, log) = (folder.path(), log_of(&folder));
    let whole = fs::read(&log).unwrap();
    let has_put = |start: &&usize| whole[**start..].windows(3).any(|bytes| bytes == b"put");
    let last = *frames(&whole).iter().rfind(has_put).unwrap();
    for (later, why) in [
        (rewritten(&whole, 0, b"cgc2", b"cgc3"), "byte 0: it begins with `cgc3`, where `cgc2` and"),
        (rewritten(&whole, 0, b"collection-2", b"collection-3"), "byte 0: its shape is another"),
        (rewritten(&whole, last, b"put", b"pot"), "its changes cannot be read, so a newer version"),
    ] {
        fs::write(&log, &later).unwrap();
        let told = |error: CollectionError| {
            assert!(matches!(error, CollectionError::NewerFormat { .. }), "{error}");
            let told = error.to_string();
            assert!(told.contains(why) && told.contains(env!("CARGO_PKG_VERSION")), "{told}");
            assert!(told.contains(log.to_str().unwrap()) && !told.contains("damaged"), "{told}");
        };
        let opening = Opening::default();
        told(EmbeddedHome::open_with(path, Limits::DEFAULT, opening).unwrap_err());
        told(ReplicaHome::open(path, Limits::DEFAULT).unwrap_err());
        told(back_up(path, &path.with_extension("copy"), &Default::default()).unwrap_err());
        // It stops its own collection alone, where that is asked for.
        let opening = Opening { serve_others: true, ..opening };
        let (home, _) = EmbeddedHome::open_with(path, Limits::DEFAULT, opening).unwrap();
        assert!(matches!(home.named("news"), Err(CollectionError::NotServed { .. })));
        assert_eq!(fs::read(&log).unwrap(), later);
    }
    let later = |log: Vec<u8>, &start: &usize| rewritten(&log, start, b"cgc2", b"cgc3");
    fs::write(&log, frames(&whole).iter().fold(whole.clone(), later)).unwrap();
    let refused = Salvaged::read(path, "news").unwrap_err();
    assert!(matches!(refused, CollectionError::NewerFormat { .. }), "{refused}");
    // A mark that was damaged makes no later format.
    fs::write(&log, [b"cgc3", &whole[4..]].concat()).unwrap();
    let opened = EmbeddedHome::open_with(path, Limits::DEFAULT, Opening::default());
    assert!(matches!(opened, Err(CollectionError::Damaged { .. })));
    assert_eq!(Salvaged::read(path, "news").unwrap().items().count(), 2);
}
