//! A truncated log is refused, wherever it was cut, and a sound one never is: not after a crash at
//! any step of writing the record beside it.

use std::fs;
use std::path::Path;

use super::simulated::Simulated;
use super::{faults, frames, item, log_of, open, with_batches};
use crate::embedded::EmbeddedHome;
use crate::{Collection, CollectionError, Home, Limits, ReplicaHome, Settings};

fn refusal(folder: &Path) -> String {
    let refused = EmbeddedHome::open(folder, Limits::DEFAULT).unwrap_err();
    assert!(matches!(refused, CollectionError::Damaged { .. }), "{refused}");
    let refused = refused.to_string();
    // A replica and a reader that reads once refuse it too.
    let replica = ReplicaHome::open(folder, Limits::DEFAULT).unwrap_err().to_string();
    let read = ReplicaHome::open_whole(folder, Limits::DEFAULT).unwrap();
    assert_eq!((&replica, &read.damaged()[0].1), (&refused, &refused));
    refused
}

#[test]
fn a_log_that_was_cut_anywhere_is_refused() {
    let folder = with_batches(4);
    let log = log_of(&folder);
    let whole = fs::read(&log).unwrap();
    let starts = frames(&whole);
    let borders = &starts[1..starts.len() - 1];
    for end in borders.iter().flat_map(|&border| [border - 7, border, border + 60]) {
        fs::write(&log, &whole[..end]).unwrap();
        let told = refusal(folder.path());
        if end >= starts[1] {
            let missing = starts[starts.len() - 1] - end;
            assert!(told.contains(&format!(": {missing} bytes are missing")), "{told}");
        }
        assert_eq!(fs::read(&log).unwrap(), whole[..end], "nothing is changed");
    }
    // Without the record the rest can be read.
    fs::remove_file(folder.path().join("news/items.length")).unwrap();
    fs::write(&log, &whole[..starts[4]]).unwrap();
    assert_eq!(open(folder.path()).named("news").unwrap().told(0).unwrap().items, 1);
    fs::write(&log, &whole).unwrap();
    assert_eq!(open(folder.path()).named("news").unwrap().told(0).unwrap().items, 4);
}

#[test]
fn what_is_said_of_another_log_or_not_whole_is_held_against_none() {
    let folder = with_batches(4);
    let length = folder.path().join("news/items.length");
    let said = fs::read(&length).unwrap();
    let shorter = with_batches(0);
    let news = open(shorter.path());
    let settings = Settings { max_items: Some(7), ttl_ms: None, ..Settings::default() };
    news.make("other", settings, 0).unwrap();
    drop(news);
    fs::copy(shorter.path().join("other/items.log"), log_of(&folder)).unwrap();
    assert_eq!(open(folder.path()).named("news").unwrap().settings(), settings);
    // The record states the length of this log.
    assert_ne!(fs::read(&length).unwrap(), said);
    let said = fs::read(&length).unwrap();
    for damaged in [&said[..0], &said[..39], &said[..79], &[&said[..], b"x"].concat(), &[9; 80]] {
        fs::write(&length, damaged).unwrap();
        open(folder.path());
        assert_eq!(fs::read(&length).unwrap(), said, "it is written anew");
    }
}

#[test]
fn no_crash_makes_a_sound_log_one_that_was_cut() {
    let prepared = || {
        let disk = Simulated::new();
        let home = faults::open(&disk).unwrap();
        let (news, _) = home.make("news", Settings::default(), 0).unwrap();
        news.put((0..9).map(|at| item(at, "a text", 0)).collect(), 0).unwrap();
        news.remove(&["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"], 0).unwrap();
        news.tidy(0).unwrap();
        assert!(disk.bytes(Path::new("/data/news/items.length")).is_some());
        (disk, home, news)
    };
    let (disk, _home, news) = prepared();
    let before = disk.bytes(Path::new(faults::LOG)).unwrap();
    disk.fail(0..0);
    news.compact(0).unwrap();
    let steps = disk.steps();
    let after = disk.bytes(Path::new(faults::LOG)).unwrap();
    assert!(after.len() < before.len() && after[..40] == before[..40], "the case that is meant");
    assert!(steps > 8, "{steps}");
    for step in 1..=steps {
        let (disk, home, news) = prepared();
        disk.fail(step..usize::MAX);
        let _ = news.compact(0);
        let check = |disk: &Simulated, told: &str| {
            let opened = faults::open(disk).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(opened.named("news").unwrap().told(0).unwrap().items, 0, "{told}");
        };
        disk.crashed(40).for_each(|(how, disk)| check(&disk, &format!("step {step}, {how}")));
        // The disk works again, and the process ends in order.
        disk.fail(0..0);
        let _ = news.put(vec![item(1, "more", 0)], 0);
        let _ = news.tidy(0);
        let told = news.told(0).unwrap().items;
        drop((news, home));
        for (how, disk) in disk.crashed(40).skip(1) {
            let opened = faults::open(&disk).unwrap();
            let items = opened.named("news").unwrap().told(0).unwrap().items;
            assert_eq!(items, told, "step {step}, {how}");
        }
    }
}
