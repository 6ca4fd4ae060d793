//! Clocks that jump and times that come late: what leaves, leaves by the clock of the moment, and what is
//! opened again is what it was.

use std::sync::Arc;

use crate::embedded::EmbeddedCollection;
use crate::embedded::tests::{ids, item, open};
use crate::{Collection, CollectionError, EmbeddedHome, Limits, Settings, SettingsChange};

const TTL: i64 = 1000;

#[test]
fn a_clock_that_jumps_takes_out_what_is_too_old_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { max_items: None, ttl_ms: Some(TTL), ..Settings::default() };
    let (news, _) = open(folder.path()).make("news", settings, 0).unwrap();
    // One in time, one late, one far ahead, and one at each end of what a clock can say.
    let times = [5000, 4200, 90_000, i64::MIN, i64::MAX];
    let items = times.iter().enumerate().map(|(at, &time)| item(at, "the quake", time));
    let applied = news.put(items.collect(), 5000).unwrap();
    assert_eq!(applied.added, times.len());
    // What came too late is not shown, though nothing has taken it out yet.
    assert_eq!(ids(&news, 5000), ["n0", "n1", "n2", "n4"]);
    assert_eq!(news.told(5000).unwrap().items, 4);
    // Between two looks the clock jumps ahead and back: nothing was taken out, so it is shown again.
    assert_eq!(ids(&news, 50_000), ["n2", "n4"]);
    assert_eq!(ids(&news, 5100), ["n0", "n1", "n2", "n4"]);
    // Where something is written meanwhile, it is gone for good.
    news.tidy(50_000).unwrap();
    assert_eq!(ids(&news, 5100), ["n2", "n4"]);
    // A clock behind takes nothing out, and what is written by it is kept as long as by any other.
    news.put(vec![item(7, "the river", -100_000)], -100_000).unwrap();
    assert_eq!(ids(&news, -100_000), ["n2", "n4", "n7"]);
    assert_eq!(ids(&news, i64::MIN), ["n2", "n4", "n7"]);
    assert_eq!(ids(&news, i64::MAX), ["n4"]);
    assert!(news.get("n7", 5000).is_none() && news.get("n7", -99_500).is_some());
    drop(news);
    let again: Arc<EmbeddedCollection> = open(folder.path()).named("news").unwrap();
    assert_eq!(ids(&again, -100_000), ["n2", "n4", "n7"]);
    assert_eq!(ids(&again, 5000), ["n2", "n4"]);
}

#[test]
fn a_replay_of_old_texts_has_the_clock_of_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { max_items: None, ttl_ms: Some(TTL), ..Settings::default() };
    let (news, _) = open(folder.path()).make("news", settings, 0).unwrap();
    // A million behind the clock, and as fast as it can be read.
    let now = 1_000_000;
    let put = |id, time, now| news.put(vec![item(id, "the quake", time)], now).unwrap();
    assert_eq!(put(0, 100, now).expired, 0);
    assert_eq!(put(1, 600, now + 1).expired, 0);
    assert_eq!(ids(&news, now + 1), ["n0", "n1"]);
    assert_eq!(put(2, 1200, now + 2).left, 1, "the first");
    assert_eq!(ids(&news, now + 2), ["n1", "n2"], "1100 behind the newest");
    let late = put(3, 150, now + 3);
    assert_eq!((late.expired, late.left), (1, 0), "too late");
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    drop(news);
    // The clock is that of before where the folder is opened anew, also after the log was written anew.
    let news = open(folder.path()).named("news").unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    news.compact(now + 3).unwrap();
    drop(news);
    let news: Arc<EmbeddedCollection> = open(folder.path()).named("news").unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    // It runs on while nothing comes: nothing stays longer than its time after it was added.
    assert_eq!(ids(&news, now + 2 + TTL), ["n2"]);
    assert_eq!(ids(&news, now + 3 + TTL), [""; 0]);
    // Settings that a caller gives again leave it as it is.
    news.set(Settings { lag_ms: None, max_items: Some(9), ..settings }, now + 3).unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    // One of the moment sets it to the moment, and a collection without items takes that of the next.
    news.put(vec![item(4, "the river", now + 4)], now + 4).unwrap();
    assert_eq!(ids(&news, now + 4), ["n4"]);
    news.remove(&["n4"], now + 5).unwrap();
    news.put(vec![item(5, "the quake", 100)], now + 6).unwrap();
    assert_eq!(ids(&news, now + 6), ["n5"]);
}

#[test]
fn a_ttl_that_is_new_counts_what_it_would_drop() {
    let (news, _) =
        EmbeddedHome::in_memory(Limits::DEFAULT).make("news", Settings::default(), 5000).unwrap();
    // The clock is that of the later one.
    news.put(vec![item(0, "the quake", 5000), item(1, "the river", 3000)], 5000).unwrap();
    let change = SettingsChange { ttl_ms: Some(Some(TTL)), ..SettingsChange::default() };
    let refused = news.set(change, 5000).unwrap_err();
    assert!(matches!(refused, CollectionError::WouldDrop { items: 1 }), "{refused:?}");
    assert_eq!(ids(&news, 5000), ["n0", "n1"]);
    news.set(SettingsChange { drop: true, ..change }, 5000).unwrap();
    assert_eq!(ids(&news, 5000), ["n0"]);
}
