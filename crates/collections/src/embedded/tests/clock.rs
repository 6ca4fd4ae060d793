//! Clocks that jump and times that come late: items expire by the clock of the moment, and a
//! reopened collection is unchanged.

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
    // One in time, one late, one far ahead, and one at each end of the clock's range.
    let times = [5000, 4200, 90_000, i64::MIN, i64::MAX];
    let items = times.iter().enumerate().map(|(at, &time)| item(at, "the quake", time));
    let applied = news.put(items.collect(), 5000).unwrap();
    assert_eq!(applied.added, times.len());
    // An item that came too late is not shown, though nothing has removed it yet.
    assert_eq!(ids(&news, 5000), ["n0", "n1", "n2", "n4"]);
    assert_eq!(news.told(5000).unwrap().items, 4);
    // Between two reads the clock jumps ahead and back: nothing was removed, so the item is shown
    // again.
    assert_eq!(ids(&news, 50_000), ["n2", "n4"]);
    assert_eq!(ids(&news, 5100), ["n0", "n1", "n2", "n4"]);
    // A write meanwhile removes it for good.
    news.tidy(50_000).unwrap();
    assert_eq!(ids(&news, 5100), ["n2", "n4"]);
    // A clock that is behind removes nothing, and items written by it stay as long as others.
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
    // Reopening the folder keeps the clock, also after the log was rewritten.
    let news = open(folder.path()).named("news").unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    news.compact(now + 3).unwrap();
    drop(news);
    let news: Arc<EmbeddedCollection> = open(folder.path()).named("news").unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    // The clock runs on while nothing is added: no item stays longer than its `ttl` after it was
    // added.
    assert_eq!(ids(&news, now + 2 + TTL), ["n2"]);
    assert_eq!(ids(&news, now + 3 + TTL), [""; 0]);
    // Settings that a caller repeats leave the clock as it is.
    news.set(Settings { lag_ms: None, max_items: Some(9), ..settings }, now + 3).unwrap();
    assert_eq!(ids(&news, now + 3), ["n1", "n2"]);
    // An item of the present sets the clock to the present; an empty collection takes the clock of
    // its next item.
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
    news.put(vec![item(0, "the quake", 5000), item(1, "the river", 3000)], 5000).unwrap();
    let change = SettingsChange { ttl_ms: Some(Some(TTL)), ..SettingsChange::default() };
    let refused = news.set(change, 5000).unwrap_err();
    assert!(matches!(refused, CollectionError::WouldDrop { items: 1 }), "{refused:?}");
    assert_eq!(ids(&news, 5000), ["n0", "n1"]);
    news.set(SettingsChange { drop: true, ..change }, 5000).unwrap();
    assert_eq!(ids(&news, 5000), ["n0"]);
}
