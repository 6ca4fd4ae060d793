//! Full disks: stored items are served whatever a crash left, and deleted items make room.

use std::path::Path;
use std::sync::Arc;

use crate::embedded::frame::HEAD;
use crate::embedded::storage::Storage;
use crate::embedded::tests::faults::{LOG, open};
use crate::embedded::tests::simulated::Simulated;
use crate::embedded::tests::{ids, item};
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{
    Collection, CollectionError, Home, Item, ItemSelector, Limits, Result, Settings, Write,
};

/// Bytes that a crash may leave beyond the last whole frame.
const TORN: &[u8] = b"half of a frame that nobody was told of";

fn one(at: usize) -> Vec<Item> {
    vec![item(at, "the quake", 0)]
}

fn with_items(count: usize) -> Simulated {
    let disk = Simulated::new();
    let home = open(&disk).unwrap();
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    for at in 0..count {
        news.put(one(at), 0).unwrap();
    }
    disk.killed()
}

fn news(home: &EmbeddedHome) -> Arc<EmbeddedCollection> {
    home.named("news").unwrap()
}

fn is_unwritten<T>(answer: Result<T>) -> bool {
    matches!(answer, Err(CollectionError::Write { .. }))
}

#[test]
fn a_torn_end_that_cannot_be_kept_is_left_until_there_is_room() {
    let disk = with_items(2);
    let whole = disk.bytes(Path::new(LOG)).unwrap();
    let torn = [&whole, TORN].concat();
    let kept = format!("/data/news/items.cut-{}", whole.len());
    disk.set_bytes(Path::new(LOG), &torn);
    disk.remove_file(Path::new("/data/.reserve")).unwrap();
    // No room, and less than the end takes.
    for room in [0, TORN.len() - 1] {
        disk.fill(Some(room));
        let opened = EmbeddedHome::open_each(
            Arc::new(disk.clone()),
            Path::new("/data"),
            Limits::DEFAULT,
            false,
        );
        let (home, cuts) = opened.unwrap();
        assert_eq!((cuts.len(), cuts[0].bytes, &cuts[0].kept), (1, TORN.len() as u64, &None));
        assert_eq!(
            (ids(&news(&home), 0), home.full()),
            (vec!["n0".to_owned(), "n1".to_owned()], 1)
        );
        assert!(is_unwritten(news(&home).put(one(2), 0)));
        assert!(is_unwritten(news(&home).remove(&["n0"], 0)));
        assert!(is_unwritten(news(&home).tidy(0)));
        assert!(is_unwritten(news(&home).compact(0)));
        assert_eq!(disk.bytes(Path::new(LOG)).unwrap(), torn);
        assert_eq!(disk.bytes(Path::new(&kept)), None, "what there was room for takes none");
        home.hand_over();
        drop(home);
    }
    let home = open(&disk).unwrap();
    disk.fill(None);
    news(&home).put(one(2), 0).unwrap();
    assert_eq!(
        (ids(&news(&home), 0).len(), disk.bytes(Path::new(&kept)).unwrap()),
        (3, TORN.to_vec())
    );
    home.look_after().unwrap();
    assert_eq!(home.full(), 0);
    let (again, cuts) = EmbeddedHome::open_each(
        Arc::new(disk.killed()),
        Path::new("/data"),
        Limits::DEFAULT,
        false,
    )
    .unwrap();
    assert_eq!((cuts.len(), ids(&news(&again), 0).len()), (0, 3));
}

/// The write that cuts the end fails at every step, followed by a power failure.
#[test]
fn a_late_cut_loses_nothing_whatever_step_fails() {
    let sound = with_items(2);
    let whole = sound.bytes(Path::new(LOG)).unwrap();
    sound.set_bytes(Path::new(LOG), &[&whole, TORN].concat());
    for fails in (1..24).flat_map(|from| [from..from, from..from + 1, from..usize::MAX]) {
        let disk = sound.killed();
        disk.fill(Some(0));
        let home = open(&disk).unwrap();
        disk.fill(None);
        disk.fail(fails.clone());
        let answer = news(&home).put(one(2), 0);
        let later = news(&home).put(one(3), 0);
        disk.fail(0..0);
        let shown = ids(&news(&home), 0);
        assert_eq!(shown.len(), 2 + usize::from(answer.is_ok()) + usize::from(later.is_ok()));
        let check = |disk: &Simulated, told: &str| {
            let found = ids(&news(&open(disk).unwrap()), 0);
            assert!(shown.iter().all(|id| found.contains(id)), "{fails:?}, {told}: {found:?}");
            let uncertain = [&answer, &later];
            let uncertain =
                uncertain.map(|one| matches!(one, Err(CollectionError::Unsynced { .. })));
            let most = shown.len() + uncertain.into_iter().filter(|one| *one).count();
            assert!(found.len() <= most, "{fails:?}, {told}: {found:?}");
        };
        disk.crashed(6).for_each(|(told, disk)| check(&disk, &told));
    }
}

#[test]
fn what_is_deleted_on_a_full_disk_makes_room() {
    let all = || Write::RemoveSelected(ItemSelector::default());
    for fails in (0..30).flat_map(|from| [from..from + 1, from..usize::MAX]) {
        let disk = with_items(3);
        let home = open(&disk).unwrap();
        assert_eq!(home.full(), 0);
        disk.fill(Some(HEAD));
        assert!(is_unwritten(news(&home).put(one(3), 0)));
        assert_eq!(home.full(), 1, "{fails:?}");
        // A few items fit in the reserve and in what is left.
        news(&home).remove(&["n1"], 0).unwrap();
        assert_eq!(ids(&news(&home), 0), ["n0", "n2"]);
        home.look_after().unwrap();
        assert_eq!(home.full(), 1, "there is room for the next deletion, and for nothing else");
        disk.fill(Some(0));
        let before = disk.bytes(Path::new(LOG)).unwrap().len();
        disk.fail(fails.clone());
        let deleted = news(&home).change(all(), 0);
        disk.fail(0..0);
        let left = if deleted.is_ok() { 0 } else { 2 };
        assert_eq!(ids(&news(&home), 0).len(), left, "{fails:?}: {deleted:?}");
        let is_uncertain = matches!(deleted, Err(CollectionError::Unsynced { .. }));
        for (_, disk) in disk.crashed(1) {
            let found = ids(&news(&open(&disk).unwrap()), 0).len();
            assert!(found == left || (is_uncertain && found == 0), "{fails:?}: {found}");
        }
        if deleted.is_ok() {
            let after = disk.bytes(Path::new(LOG)).unwrap().len();
            assert!(after < before / 2, "{before} bytes became {after}");
            news(&home).put(one(4), 0).unwrap();
            home.look_after().unwrap();
            assert_eq!(ids(&news(&open(&disk.killed()).unwrap()), 0), ["n4"]);
        }
    }
}
