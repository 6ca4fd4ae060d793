//! A replica shows what the writing process acknowledged, and nothing else.

use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::{frames, item, log_of, open, with_batches, with_killed_batches};
use crate::embedded::items::Items;
use crate::embedded::{EmbeddedHome, Opening};
use crate::transaction::Change;
use crate::{
    Cancellation, Choice, Collection, CollectionError, Home, ItemSelector, Limits, Outgoing,
    ReplicaHome, Settings, Write, contract,
};

type Shown = (String, Settings, Vec<String>);

fn seen(home: &dyn Home, now: i64) -> (Vec<Shown>, Vec<Vec<u64>>) {
    let each = home.all().unwrap().into_iter().map(|collection| {
        let told = collection.told(now).unwrap();
        let items = collection
            .choose(&ItemSelector::default(), &Choice::All, now, Cancellation::NEVER)
            .unwrap()
            .items;
        let (numbers, items): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        let items: Vec<String> = items
            .iter()
            .map(|item| serde_json::to_string(&Outgoing::whole(item)).unwrap())
            .collect();
        assert_eq!(told.items, items.len());
        ((told.name, told.settings, items), numbers)
    });
    each.unzip()
}

fn bytes_behind(replica: &ReplicaHome) -> u64 {
    replica.totals(0).behind.unwrap().bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Random steps, rewritten logs, collections deleted and made again, a reopened writer.
    #[test]
    fn a_replica_shows_what_was_written(
        steps in contract::steps(),
        others in prop::collection::vec(0u8..8, 16),
    ) {
        let (folder, engine) = (tempfile::tempdir().unwrap(), contract::engine());
        let limits = Limits { items: 40, ..Limits::DEFAULT };
        let open = || EmbeddedHome::open(folder.path(), limits).unwrap().0;
        let mut home = open();
        home.make("news", Settings::default(), 0).unwrap();
        let replica = ReplicaHome::open(folder.path(), limits).unwrap();
        let mut now = 1_000_000;
        for (step, other) in steps.iter().zip(others) {
            if let contract::Step::Wait(time) = step {
                now += time;
            }
            contract::take(&home, &engine, step, now);
            if other < 5 {
                prop_assert!(replica.look().is_empty());
                prop_assert_eq!(seen(&replica, now).0, seen(&home, now).0);
                prop_assert_eq!(bytes_behind(&replica), 0);
            }
            match other {
                3 => {
                    let before = seen(&replica, now).1;
                    home.named("news").unwrap().compact(now).unwrap();
                    prop_assert!(replica.look().is_empty());
                    prop_assert_eq!(seen(&replica, now).1, before, "what is the same is kept");
                }
                5 => {
                    home.delete("news").unwrap();
                    home.make("news", Settings { max_items: Some(9), ttl_ms: None, ..Settings::default() }, now).unwrap();
                }
                6 => drop(home.make("more", Settings::default(), now).unwrap()),
                7 => {
                    drop(home);
                    home = open();
                }
                _ => {}
            }
        }
        prop_assert!(replica.look().is_empty());
        prop_assert_eq!(seen(&replica, now).0, seen(&home, now).0);
        contract::show_alike(&home, &replica, &engine, now);
        // The counted memory is that of the stored items, except for data that can be made again.
        replica.make_room();
        let held: usize = replica.all().unwrap().iter().map(|one| one.told(now).unwrap().bytes).sum();
        prop_assert_eq!(replica.totals(now).bytes, held);
    }
}

#[test]
fn what_was_not_synced_is_not_shown() {
    let folder = with_batches(2);
    let home = open(folder.path());
    let news = home.named("news").unwrap();
    let replica = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let count = || {
        assert!(replica.look().is_empty());
        replica.get("news").unwrap().told(0).unwrap().items
    };
    assert_eq!(count(), 2);
    let (_, first) = news.write(Write::Put(vec![item(7, "a", 0)]), 0).unwrap();
    let (_, second) = news.write(Write::Put(vec![item(8, "a", 0)]), 0).unwrap();
    assert_eq!(count(), 2);
    assert!(bytes_behind(&replica) > 0);
    news.wait_durable(first).unwrap();
    assert_eq!((count(), bytes_behind(&replica)), (4, 0));
    news.wait_durable(second).unwrap();
    assert_eq!(count(), 4);
}

#[test]
fn a_torn_end_is_left_to_the_process_that_writes() {
    let folder = with_killed_batches(3);
    let replica = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let log = log_of(&folder);
    OpenOptions::new().append(true).open(&log).unwrap().write_all(b"cgc2 half a frame").unwrap();
    let count = || {
        assert!(replica.look().is_empty());
        replica.get("news").unwrap().told(0).unwrap().items
    };
    assert_eq!((count(), bytes_behind(&replica)), (3, 17));
    assert_eq!(fs::read_dir(folder.path().join("news")).unwrap().count(), 1, "nothing is written");
    let (home, cuts) = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap();
    assert_eq!(cuts.len(), 1);
    home.named("news").unwrap().put(vec![item(9, "again", 0)], 0).unwrap();
    assert_eq!((count(), bytes_behind(&replica)), (4, 0));
}

#[test]
fn damage_is_told_once_and_what_was_read_stays() {
    let folder = with_batches(2);
    let replica = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let log = log_of(&folder);
    let (sound, from) = (fs::read(&log).unwrap(), fs::metadata(&log).unwrap().len());
    let home = open(folder.path());
    for at in 2..5 {
        home.named("news").unwrap().put(vec![item(at, "the flood", 0)], 0).unwrap();
    }
    drop(home);
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[from as usize + 60] ^= 4;
    let put = |bytes: &[u8]| fs::write(&log, bytes).unwrap();
    put(&damaged);
    let problems = replica.look();
    assert!(matches!(&problems[..], [CollectionError::Damaged { .. }]), "{problems:?}");
    assert!(replica.look().is_empty(), "it is told once");
    let behind = replica.totals(0).behind.unwrap();
    assert_eq!((behind.bytes, behind.unreadable), (whole.len() as u64 - from, 1));
    let count = || replica.get("news").unwrap().told(0).unwrap().items;
    assert_eq!(count(), 2);
    let refused = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
    assert!(matches!(refused, CollectionError::Damaged { .. }), "{refused}");
    put(&whole);
    assert!(replica.look().is_empty());
    let behind = replica.totals(0).behind.unwrap();
    assert_eq!((count(), behind.bytes, behind.unreadable), (5, 0, 0));
    // An earlier copy replaces the log. Its record states more bytes, so it is refused as
    // truncated.
    put(&sound);
    assert!(matches!(&replica.look()[..], [CollectionError::Damaged { .. }]));
    assert_eq!(count(), 5);
    fs::remove_file(folder.path().join("news/items.length")).unwrap();
    put(&sound);
    // It is read less often meanwhile.
    while count() != 2 {
        assert!(replica.look().is_empty());
    }
    // A collection that cannot be read at all is absent, and reported once.
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("items.log"), "no log").unwrap();
    assert!(matches!(&replica.look()[..], [CollectionError::Damaged { offset: 0, .. }]));
    assert!(replica.look().is_empty());
    assert!(matches!(replica.get("other"), Err(CollectionError::NotServed { .. })));
    assert!(matches!(replica.get("none"), Err(CollectionError::Unknown)));
    assert_eq!(replica.damaged().iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["other"]);
    // Without the folder everything stays as it was.
    let away = folder.path().with_extension("away");
    fs::rename(folder.path(), &away).unwrap();
    assert!(matches!(&replica.look()[..], [CollectionError::Read { .. }]));
    assert_eq!(count(), 2);
    fs::rename(&away, folder.path()).unwrap();
    assert!(replica.look().is_empty());
}

/// The incomplete end that a crash left is unchanged afterwards.
#[test]
fn what_is_read_once_is_what_a_start_finds() {
    let folder = with_killed_batches(4);
    let (log, length) = (log_of(&folder), folder.path().join("news/items.length"));
    let whole = fs::read(&log).unwrap();
    let first = frames(&whole)[2];
    for end in (first..whole.len()).step_by(13) {
        fs::write(&log, [&whole[..end], b"torn"].concat()).unwrap();
        let read = ReplicaHome::open_whole(folder.path(), Limits::DEFAULT).unwrap();
        let read = seen(&read, 0).0;
        assert_eq!(fs::read(&log).unwrap(), [&whole[..end], b"torn"].concat());
        assert!(!length.exists());
        let opening = Opening { patience: Duration::from_secs(5), ..Opening::default() };
        let (home, cuts) =
            EmbeddedHome::open_with(folder.path(), Limits::DEFAULT, opening).unwrap();
        assert_eq!((read, cuts.len()), (seen(&home, 0).0, 1), "{end} bytes");
        drop(home);
        fs::remove_file(&length).unwrap();
    }
    // A folder without a log is reported, as at a start.
    fs::create_dir(folder.path().join("empty")).unwrap();
    let read = ReplicaHome::open_whole(folder.path(), Limits::DEFAULT).unwrap();
    let damaged = read.damaged();
    assert!(damaged[0].0 == "empty" && damaged[0].1.contains("it is missing"), "{damaged:?}");
    assert_eq!(read.all().unwrap().len(), 1);
}

/// Another log whose first bytes differ from those of the log that was read.
#[test]
fn another_log_in_the_same_file_is_read_from_its_beginning() {
    let (folder, other) = (with_batches(3), with_batches(0));
    let replica = ReplicaHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let home = open(other.path());
    let news = home.named("news").unwrap();
    news.put((20..60).map(|at| item(at, "another one", 0)).collect(), 0).unwrap();
    drop((news, home));
    fs::copy(log_of(&other), log_of(&folder)).unwrap();
    assert!(replica.look().is_empty());
    let home = open(other.path());
    assert_eq!(seen(&replica, 0).0, seen(&home, 0).0);
}

/// Readers of alerts continue by these numbers, and vectors are stored by them.
#[test]
fn items_of_a_log_that_was_written_anew_keep_their_numbers() {
    let held = |items: &[(usize, i64)]| {
        let mut held = Items::keeping(Settings { ttl_ms: Some(100), ..Settings::default() });
        let put = |&(id, time): &(usize, i64)| Change::put(item(id, "a", time));
        held.apply_all(items.iter().map(put));
        held
    };
    for (from, to, kept) in [
        (&[(1, 0), (2, 0), (3, 0)][..], &[(1, 0), (2, 0), (3, 0), (4, 0)][..], 3),
        (&[(1, 0), (2, 0), (3, 0), (4, 0)], &[(3, 0), (4, 0), (5, 0)], 2),
        (&[(1, 0), (2, 0), (3, 0)], &[(2, 0), (1, 0), (3, 0)], 1),
        (&[(1, 0), (2, 0), (3, 0)], &[], 0),
        (&[], &[(1, 0), (2, 0)], 0),
        (&[(5, 0), (1, 0), (2, 0)], &[(1, 0), (9, 0), (2, 0)], 1),
        // A patched item keeps its position.
        (&[(1, 0), (2, 0), (3, 0)], &[(1, 7), (2, 0), (3, 9), (4, 0)], 3),
    ] {
        let (mut from, to) = (held(from), held(to));
        let before: Vec<u64> = from.table.iter().map(|(number, _)| number).collect();
        from.turn_into(&to);
        assert!(from.table.iter().zip(to.table.iter()).all(|((_, own), (_, other))| own.is(other)));
        assert_eq!((from.table.len(), from.bytes), (to.table.len(), to.bytes));
        assert!([1, 5, 8].iter().all(|&oldest| from.count(Some(oldest)) == to.count(Some(oldest))));
        let same = from.table.iter().filter(|(number, _)| before.contains(number)).count();
        assert_eq!(same, kept);
    }
}
