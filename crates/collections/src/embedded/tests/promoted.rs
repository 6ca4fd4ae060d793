//! A folder whose writer is gone is promoted, and no folder that may still have a writer.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use std::{fs, thread};

use super::{frames, log_of, open, with_batches};
use crate::embedded::storage::Stored;
use crate::{
    Collection, CollectionError, Cut, Home, Limits, Promoted, ReplicaHome, Result, promote,
};

/// Watches for as long as no test may take; fails if it watches where it should not.
fn promoted(folder: &Path, may_watch: bool) -> Result<(Vec<Promoted>, Vec<Cut>)> {
    let tell = || assert!(may_watch, "it watches");
    promote(folder, Limits::DEFAULT, Duration::from_secs(60), tell)
}

fn untouched(folder: &Path) {
    let lock = File::options().write(true).open(folder.join(".lock")).unwrap();
    lock.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap();
}

#[test]
fn what_a_dead_writer_left_is_shown_by_replicas_and_told() {
    let folder = with_batches(3);
    let log = log_of(&folder);
    // As after a kill: the last change is not recorded as synced, and another is incomplete.
    fs::remove_file(folder.path().join("news/items.length")).unwrap();
    let whole = fs::read(&log).unwrap();
    let unsealed = *frames(&whole).last().unwrap();
    fs::write(&log, [&whole[..unsealed], b"torn"].concat()).unwrap();
    untouched(folder.path());
    let replica = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let count = || replica.get("news").unwrap().told(0).unwrap().items;
    assert_eq!(count(), 2);
    let (promoted, cuts) = promoted(folder.path(), false).unwrap();
    let [one] = &promoted[..] else { panic!("{promoted:?}") };
    let newest = one.newest.as_ref().unwrap();
    assert_eq!((&*one.name, one.items, &*newest.id), ("news", 3, "n2"));
    assert_eq!(one.log_bytes, fs::metadata(&log).unwrap().len());
    assert_eq!(cuts.iter().map(|cut| cut.bytes).collect::<Vec<_>>(), [4]);
    assert!(replica.look().is_empty());
    assert_eq!((count(), replica.totals(0).behind.unwrap().bytes), (3, 0));
    assert_eq!(open(folder.path()).named("news").unwrap().told(0).unwrap().items, 3);
}

#[test]
fn a_folder_that_somebody_has_is_refused() {
    let folder = with_batches(1);
    let home = open(folder.path());
    untouched(folder.path());
    let refused = promote(folder.path(), Limits::DEFAULT, Duration::ZERO, || ()).unwrap_err();
    assert!(matches!(refused, CollectionError::InUse { .. }), "{refused}");
    drop(home);
    let lock = File::options().write(true).open(folder.path().join(".lock")).unwrap();
    lock.touch().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                lock.touch().unwrap();
                thread::yield_now();
            }
        });
        let refused = promoted(folder.path(), true);
        is_over.store(true, Ordering::Relaxed);
        assert!(matches!(refused, Err(CollectionError::Alive { .. })), "{refused:?}");
    });
    let damaged = with_batches(2);
    let mut bytes = fs::read(log_of(&damaged)).unwrap();
    bytes[60] ^= 1;
    fs::write(log_of(&damaged), &bytes).unwrap();
    untouched(damaged.path());
    let refused = promoted(damaged.path(), false).unwrap_err();
    assert!(matches!(refused, CollectionError::Damaged { .. }), "{refused}");
    assert_eq!(fs::read(log_of(&damaged)).unwrap(), bytes);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("notes"), "of somebody else").unwrap();
    let refused = promoted(other.path(), false).unwrap_err();
    assert!(matches!(refused, CollectionError::NoCollections { .. }), "{refused}");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1, "nothing is made there");
}
