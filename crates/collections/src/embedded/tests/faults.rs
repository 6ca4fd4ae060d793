//! Every step of the disk fails once, or from there on; the power goes after every step; later bytes are
//! written and earlier ones not: what was acknowledged is there, and what was refused is not shown.

use std::path::Path;
use std::sync::Arc;

use crate::embedded::frame::HEAD;
use crate::embedded::storage::Storage;
use crate::embedded::tests::item;
use crate::embedded::tests::simulated::Simulated;
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{Collection, CollectionError, Home, Limits, Result, Settings, Write};

const DATA: &str = "/data";
pub(super) const LOG: &str = "/data/news/items.log";

pub(super) fn open(disk: &Simulated) -> Result<EmbeddedHome> {
    let storage = Arc::new(disk.clone());
    let opened = EmbeddedHome::open_each(storage, Path::new(DATA), Limits::DEFAULT, false);
    opened.map(|(collections, _)| collections)
}

type Holds = Option<(Settings, Vec<(String, String)>)>;

fn holds(collections: &EmbeddedHome) -> Holds {
    let news = collections.named("news").ok()?;
    let items = news.view(0).iter().map(|one| (one.id.to_string(), one.text.to_string())).collect();
    Some((news.settings(), items))
}

const ASKED: usize = 12;

fn ask(collections: &EmbeddedHome, number: usize) -> Result<()> {
    let news = || collections.named("news");
    let keeps =
        |most: usize| Settings { max_items: Some(most), ttl_ms: None, ..Settings::default() };
    match number {
        0 | 10 => drop(collections.make("news", Settings::default(), 0)?),
        1 => drop(news()?.put(vec![item(0, "the quake", 0), item(1, "the river", 0)], 0)?),
        2 => drop(news()?.put(vec![item(2, &"a long text ".repeat(40), 0)], 0)?),
        3 => drop(news()?.put(vec![item(1, "the river again", 0)], 0)?),
        4 => drop(news()?.remove(&["n0"], 0)?),
        5 => news()?.compact(0)?,
        6 => news()?.tidy(0)?,
        7 => drop(collections.make("news", keeps(2), 0)?),
        8 => drop(news()?.put((3..6).map(|at| item(at, "more", 0)).collect(), 0)?),
        9 => collections.delete("news")?,
        _ => drop(news()?.put(vec![item(9, "the end", 0)], 0)?),
    }
    Ok(())
}

/// Whatever step fails during a hand-over, no acknowledged item is lost, and the process that
/// handed over changes nothing that the next one writes.
#[test]
fn what_is_handed_over_is_left_alone() {
    let one = |at: usize, text: &str| vec![item(at, text, 0)];
    let mut left = 0;
    for fails in (1..40).flat_map(|from| [from..from + 1, from..usize::MAX]) {
        let disk = Simulated::new();
        let old = open(&disk).unwrap();
        old.make("news", Settings::default(), 0).unwrap();
        let news = old.named("news").unwrap();
        news.put(one(0, "the quake"), 0).unwrap();
        disk.fail(fails.clone());
        old.hand_over();
        disk.fail(0..0);
        let is_left = disk.is_unlocked(Path::new(LOG));
        left += usize::from(is_left);
        // Otherwise the next process gets it once this process ends.
        let disk = if is_left { disk } else { disk.killed() };
        let new = open(&disk).unwrap();
        new.named("news").unwrap().put(one(1, "the river"), 0).unwrap();
        assert!(news.put(one(2, "late"), 0).is_err(), "{fails:?}");
        for _ in 0..2 {
            let _ = (old.look_after(), news.tidy(0), news.compact(0), old.delete("news"));
        }
        assert_eq!(old.unwritable(), 0, "{fails:?}");
        drop((news, old));
        let found = holds(&open(&disk.killed()).unwrap()).unwrap().1;
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["n0", "n1"], "{fails:?}");
    }
    // Without failures the folder is released.
    assert!(left > 20, "{left}");
}

/// After a crash a collection has what was acknowledged, or what a request with an uncertain answer
/// would have made of it.
fn check_after_crash(disk: &Simulated, allowed: &[Holds], told: &str) {
    let found = open(disk).unwrap_or_else(|error| panic!("{told}: {error}"));
    let found = holds(&found);
    assert!(allowed.contains(&found), "{told}: {found:?} is none of {allowed:?}");
    assert_eq!(holds(&open(disk).unwrap()), found, "{told}");
}

/// Runs all requests while some steps fail, and cuts the power after each request.
fn run(fails: std::ops::Range<usize>, seeds: u64) -> usize {
    let disk = Simulated::new();
    // The same requests without any failure show what each changes.
    let model = EmbeddedHome::in_memory(Limits::DEFAULT);
    disk.fail(fails.clone());
    let opened = open(&disk).or_else(|_| {
        disk.fail(0..0);
        open(&disk)
    });
    let collections = opened.unwrap();
    let mut acknowledged: Holds = None;
    let (mut allowed, mut is_refused) = (vec![None], false);
    for number in 0..ASKED {
        let told = format!("steps {fails:?} fail, request {number}");
        let answer = ask(&collections, number);
        match &answer {
            Ok(()) if number == 6 && is_refused => {}
            Ok(()) => {
                ask(&model, number).unwrap_or_else(|error| panic!("{told}: {error}"));
                acknowledged = holds(&model);
                allowed = vec![acknowledged.clone()];
                is_refused = false;
            }
            Err(CollectionError::Unsynced { .. }) => {
                // After the first failure nothing is written.
                if !is_refused || number == 9 {
                    allowed.push(after(&acknowledged, number));
                }
                is_refused = number < 9;
                // The deletion took place, and may not be durable.
                if number == 9 {
                    model.delete("news").unwrap();
                    acknowledged = None;
                }
            }
            // A failed write changes nothing, even without power. Without a sync of its folder the
            // name of a new collection may be there, with nothing in it.
            Err(CollectionError::Write { .. }) => {
                if number == 0 || number == 10 {
                    allowed.push(after(&acknowledged, number));
                }
            }
            Err(CollectionError::Unknown) => assert_eq!(acknowledged, None, "{told}"),
            Err(other) => panic!("{told}: {other}"),
        }
        assert_eq!(holds(&collections), acknowledged, "{told}: {answer:?}");
        for (how, disk) in disk.crashed(seeds) {
            check_after_crash(&disk, &allowed, &format!("{told}, {how}"));
        }
    }
    disk.steps()
}

fn after(before: &Holds, number: usize) -> Holds {
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    if let Some((settings, items)) = before {
        let (news, _) = collections.make("news", *settings, 0).unwrap();
        let item = |(id, text): &(String, String)| item(id[1..].parse().unwrap(), text, 0);
        news.put(items.iter().map(item).collect(), 0).unwrap();
    }
    ask(&collections, number).unwrap();
    holds(&collections)
}

#[test]
fn whatever_step_fails_nothing_acknowledged_is_lost() {
    let steps = run(0..0, 24);
    assert!(steps > 40, "{steps}");
    for step in 1..=steps {
        run(step..step + 1, 6);
        run(step..step + 2, 2);
        run(step..usize::MAX, 2);
    }
}

/// A collection whose first item is synced, and `count` more that are not.
fn with_unsynced(count: usize) -> (Simulated, EmbeddedHome, Arc<EmbeddedCollection>) {
    let disk = Simulated::new();
    let collections = open(&disk).unwrap();
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    news.put(vec![item(0, "synced", 0)], 0).unwrap();
    for at in 1..=count {
        let _not_durable = news.write(Write::Put(vec![item(at, "not synced", 0)]), 0).unwrap();
    }
    (disk, collections, news)
}

fn names(disk: &Simulated) -> Vec<String> {
    let holds = holds(&open(disk).unwrap()).unwrap();
    holds.1.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn frames_that_came_back_out_of_order_are_no_damage() {
    let (disk, _, _) = with_unsynced(3);
    let bytes = disk.bytes(Path::new(LOG)).unwrap();
    let starts = super::frames(&bytes);
    // Of the three unsynced frames the first is missing, as if a later page was written first.
    let first = starts[starts.len() - 3];
    let mut torn = bytes.clone();
    torn[first..starts[starts.len() - 2]].fill(0);
    let crashed = disk.killed();
    crashed.set_bytes(Path::new(LOG), &torn);
    assert_eq!(names(&crashed), ["n0"]);
    let kept = crashed.bytes(Path::new(&format!("/data/news/items.cut-{first}"))).unwrap();
    assert_eq!(kept, torn[first..]);
    // An incomplete synced frame is damage, wherever the proof of its sync is.
    for start in [starts[0], starts[starts.len() - 5]] {
        let mut damaged = bytes.clone();
        damaged[start + HEAD] ^= 1;
        let broken = disk.killed();
        broken.set_bytes(Path::new(LOG), &damaged);
        let error = open(&broken).unwrap_err();
        assert!(matches!(error, CollectionError::Damaged { .. }), "{error}");
        assert_eq!(broken.bytes(Path::new(LOG)).unwrap(), damaged);
    }
}

#[test]
fn a_log_at_rest_says_that_all_of_it_was_synced() {
    let (disk, _, news) = with_unsynced(0);
    let bytes = || disk.bytes(Path::new(LOG)).unwrap();
    // The thread that waited for the last change writes the seal, unless another has the turn to
    // write.
    let sealed = bytes();
    let unsealed = sealed[..sealed.len() - HEAD].to_vec();
    assert_eq!(super::frames(&sealed).last(), Some(&unsealed.len()));
    news.tidy(0).unwrap();
    assert_eq!(bytes(), sealed, "one seal is enough");
    let last = *super::frames(&unsealed).last().unwrap();
    // Maintenance records the length beside the log; a process that is killed before has not done
    // so.
    for (bytes, recorded, opens) in
        [(&unsealed, false, true), (&unsealed, true, false), (&sealed, false, false)]
    {
        let mut damaged = bytes.clone();
        damaged[last + HEAD] ^= 1;
        let broken = disk.killed();
        broken.set_bytes(Path::new(LOG), &damaged);
        if !recorded {
            broken.remove_file(Path::new("/data/news/items.length")).unwrap();
        }
        assert_eq!(open(&broken).is_ok(), opens);
    }
    // Frames follow the seal.
    let (_, pending) = news.write(Write::Put(vec![item(1, "more", 0)]), 0).unwrap();
    let turn = news.turn();
    news.wait_durable(pending).unwrap();
    let unsealed = bytes();
    drop(turn);
    news.tidy(0).unwrap();
    assert_eq!(bytes().len(), unsealed.len() + HEAD);
    assert_eq!(names(&disk.killed()), ["n0", "n1"]);
}

#[test]
fn what_could_not_be_synced_is_not_shown() {
    let (disk, collections, news) = with_unsynced(0);
    let first = news.write(Write::Put(vec![item(1, "b", 0)]), 0).unwrap().1;
    let second = news.write(Write::Remove(vec!["n0".into()]), 0).unwrap().1;
    disk.fail(1..2);
    // The first waiting thread syncs for both.
    assert!(matches!(news.wait_durable(second), Err(CollectionError::Unsynced { .. })));
    assert!(matches!(news.wait_durable(first), Err(CollectionError::Unsynced { .. })));
    let bytes = collections.bytes();
    assert_eq!(holds(&collections).unwrap().1, [("n0".to_owned(), "synced".to_owned())]);
    assert_eq!((news.get("n1", 0).is_none(), news.get("n0", 0).is_some()), (true, true));
    assert_eq!(bytes, news.told(0).unwrap().bytes);
    // The log accepts nothing more, and even a request that changes nothing is not acknowledged.
    for refused in [
        news.put(vec![item(2, "c", 0)], 0),
        news.set(Settings { max_items: Some(3), ttl_ms: None, ..Settings::default() }, 0),
        collections.make("news", Settings::default(), 0).map(|_| Default::default()),
        news.compact(0).map(|()| Default::default()),
    ] {
        assert!(matches!(refused, Err(CollectionError::Unsynced { .. })), "{refused:?}");
    }
    news.tidy(0).expect("it was told when it happened");
    assert_eq!(names(&disk.killed()), ["n0"]);
}

#[test]
fn a_collection_that_could_not_be_made_leaves_its_name_free() {
    let disk = Simulated::new();
    let opened = open(&disk).unwrap();
    disk.fail(0..0);
    opened.make("other", Settings::default(), 0).unwrap();
    let steps = disk.steps();
    for step in 1..=steps {
        disk.fail(step..step + 1);
        if opened.make("news", Settings::default(), 0).is_err() {
            disk.fail(0..0);
            assert!(opened.named("news").is_err(), "step {step}");
            assert_eq!(holds(&open(&disk.killed()).unwrap()), None, "step {step}");
            let (news, is_new) = opened.make("news", Settings::default(), 0).unwrap();
            assert!(is_new, "step {step}");
            news.put(vec![item(0, "a", 0)], 0).unwrap();
        }
        disk.fail(0..0);
        opened.delete("news").unwrap();
    }
}
