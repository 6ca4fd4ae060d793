//! A log is rewritten while others write to it: acknowledged writes last, whatever fails and
//! wherever the power goes, and writers do not wait for the copy.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use crate::embedded::EmbeddedHome;
use crate::embedded::log::UNWHOLE;
use crate::embedded::store::LAST_PIECE;
use crate::embedded::tests::faults::{LOG, open};
use crate::embedded::tests::simulated::Simulated;
use crate::embedded::tests::{ids, item};
use crate::{Collection, CollectionError, Home, Limits, Result, Settings};

/// Adds and removes items between copying a log and replacing it, while some steps of the disk
/// fail; returns the number of steps.
fn run(fails: Range<usize>, seeds: u64) -> usize {
    let told = format!("steps {fails:?} fail");
    let disk = Simulated::new();
    let home = open(&disk).unwrap();
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    let first: Vec<_> = (0..20).map(|at| item(at, "there before the copy", 0)).collect();
    news.put(first, 0).unwrap();
    let fails_once = fails.len() == 1;
    disk.fail(fails);
    let copy = news.log_copy();
    let has_copy = copy.is_ok();
    let (mut kept, mut gone) = ((0..20).collect::<Vec<usize>>(), Vec::new());
    let mut unknown = Vec::new();
    let note = |answer: Result<_>, at, list: &mut Vec<usize>| match answer {
        Ok(_) => list.push(at),
        Err(CollectionError::Write { .. }) => {}
        Err(CollectionError::Unsynced { .. }) => unknown.push(at),
        Err(other) => panic!("{told}: {other}"),
    };
    let mut note = note;
    for at in 20..26 {
        note(news.put(vec![item(at, "came meanwhile", 0)], 0), at, &mut kept);
    }
    let removed = news.remove(&["n3"], 0);
    note(removed, 3, &mut gone);
    if let Ok(Some(copy)) = copy {
        let _ = news.turn().replace_log(copy);
    }
    note(news.put(vec![item(26, "came after", 0)], 0), 26, &mut kept);
    kept.retain(|at| !gone.contains(at) && !unknown.contains(at));
    let steps = disk.steps();
    if fails_once {
        // A failed copy leaves nothing behind, and the log is still used.
        assert!(disk.bytes(&Path::new(LOG).with_extension(UNWHOLE)).is_none(), "{told}");
        assert!(has_copy || kept.contains(&26), "{told}: {kept:?}");
    }
    for (how, disk) in disk.crashed(seeds) {
        let found = open(&disk).unwrap_or_else(|error| panic!("{told}, {how}: {error}"));
        let found = ids(&found.named("news").unwrap(), 0);
        for at in &kept {
            assert!(found.contains(&format!("n{at}")), "{told}, {how}: n{at} of {found:?}");
        }
        for at in &gone {
            assert!(!found.contains(&format!("n{at}")), "{told}, {how}: n{at} of {found:?}");
        }
    }
    steps
}

#[test]
fn what_is_written_during_a_copy_lasts_whatever_fails() {
    let steps = run(0..0, 8);
    assert!(steps > 20, "{steps}");
    for step in 1..=steps {
        run(step..step + 1, 4);
        run(step..usize::MAX, 4);
    }
}

#[test]
fn writers_wait_for_the_last_of_what_was_written_meanwhile_only() {
    let gate = Arc::new(Barrier::new(2));
    let disk = Simulated::new();
    drop(open(&disk).unwrap().make("news", Settings::default(), 0).unwrap());
    let storage = Arc::new(disk.with_gate(&gate));
    let (home, _) =
        EmbeddedHome::open_each(storage, Path::new("/data"), Limits::DEFAULT, false).unwrap();
    let news = home.named("news").unwrap();
    news.put(vec![item(0, "before", 0)], 0).unwrap();
    let copy = thread::scope(|scope| {
        let copied = scope.spawn(|| news.log_copy());
        gate.wait();
        let before = news.told(0).unwrap().log_bytes.unwrap();
        let text = "a long text ".repeat(1000);
        for at in 1..30 {
            news.put(vec![item(at, &text, 0)], 0).unwrap();
        }
        assert!(news.told(0).unwrap().log_bytes.unwrap() > before + LAST_PIECE);
        gate.wait();
        copied.join().unwrap().unwrap().unwrap()
    });
    assert!(copy.missing(news.told(0).unwrap().log_bytes.unwrap()) <= LAST_PIECE);
    news.put(vec![item(30, "after", 0)], 0).unwrap();
    news.turn().replace_log(copy).unwrap();
    let expected: Vec<String> = (0..31).map(|at| format!("n{at}")).collect();
    assert_eq!(ids(&news, 0), expected);
    assert_eq!(ids(&open(&disk.killed()).unwrap().named("news").unwrap(), 0), expected);
}

#[test]
fn a_copy_of_a_deleted_collection_leaves_the_next_one_alone() {
    let disk = Simulated::new();
    let home = open(&disk).unwrap();
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    news.put(vec![item(0, "before", 0)], 0).unwrap();
    let copy = news.log_copy().unwrap().unwrap();
    home.delete("news").unwrap();
    home.make("news", Settings::default(), 0).unwrap().0.put(vec![item(1, "next", 0)], 0).unwrap();
    assert!(matches!(news.turn().replace_log(copy), Err(CollectionError::Unknown)));
    assert_eq!(ids(&home.named("news").unwrap(), 0), ["n1"]);
    assert_eq!(ids(&open(&disk.killed()).unwrap().named("news").unwrap(), 0), ["n1"]);
}
