//! The format of logs does not change: an earlier log is read and written again byte for byte. Logs
//! of later formats are refused as such.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::frame::HEAD;
use crate::embedded::home::Opening;
use crate::embedded::tests::{frames, item, log_of, open, with_killed_batches};
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{
    Collection, CollectionError, Event, EventChange, Item, ItemPatch, Limits, Outgoing,
    ReplicaHome, Salvaged, Settings, Write, back_up,
};

const LOG: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/items-cgc2.log"));

fn matched(id: usize, event: &str, size: u64) -> Item {
    let event = Event {
        id: event.into(),
        size,
        score: Some(0.75),
        duplicate_of: (size > 1).then(|| event.into()),
        moved_from: None,
        moved_at: None,
        bursts: size > 1,
    };
    Item { event: Some(event), ..item(id, "the quake", 4000) }
}

fn change(news: &EmbeddedCollection) {
    let patch = json!({"time": "1970-01-01T00:00:02.5Z", "attributes": {"n": null, "lang": "en"}, "data": {"k": [1]}});
    let patch: ItemPatch = serde_json::from_value(patch).unwrap();
    let events = vec!["n3".into()];
    let bounds = Settings { ttl_ms: Some(2000), max_items: Some(9), lag_ms: None };
    news.put(vec![item(0, "old", 0), item(1, "a river", 3000)], 3500).unwrap();
    news.put(vec![matched(2, "n2", 1), matched(3, "n3", 1), matched(4, "n3", 2)], 4100).unwrap();
    for (wanted, now) in [
        (Write::Patch(vec![("n1".into(), patch)]), 4200),
        (Write::Move(EventChange::Merge { into: "n2".into(), events }, usize::MAX), 4300),
        (Write::Remove(vec!["n4".into()]), 4400),
        (Write::Set(bounds.into()), 4500),
        (Write::Put(vec![item(5, "a lake", 4600)]), 4600),
    ] {
        news.change(wanted, now).unwrap();
    }
}

#[test]
fn the_kept_log_is_read_and_written_byte_for_byte() {
    let shown = |news: &EmbeddedCollection| {
        let line = |item: &Arc<Item>| serde_json::to_string(&Outgoing::whole(item)).unwrap();
        (news.settings(), news.view(4600).iter().map(line).collect::<Vec<_>>())
    };
    let folder = with_killed_batches(0);
    let home = open(folder.path());
    let news = home.named("news").unwrap();
    change(&news);
    let expected = shown(&news);
    assert_eq!(fs::read(log_of(&folder)).unwrap(), LOG);
    drop((news, home));
    fs::write(log_of(&folder), LOG).unwrap();
    let news = open(folder.path()).named("news").unwrap();
    assert_eq!(shown(&news), expected);
    for kind in ["format", "set", "put", "remove", "patch", "move", "expire", "lag"] {
        let change = format!("{{\"{kind}\":");
        assert!(LOG.windows(change.len()).any(|bytes| bytes == change.as_bytes()), "{kind}");
    }
}

/// A log whose frame at this offset has bytes replaced and valid checksums.
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
        (rewritten(&whole, 0, b"cgc2", b"cgc3"), "byte 0: it begins with `cgc3`, where `cgc2` is"),
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
        // It stops only its own collection, if the options say so.
        let opening = Opening { serve_others: true, ..opening };
        let (home, _) = EmbeddedHome::open_with(path, Limits::DEFAULT, opening).unwrap();
        assert!(matches!(home.named("news"), Err(CollectionError::NotServed { .. })));
        assert_eq!(fs::read(&log).unwrap(), later);
    }
    let later = |log: Vec<u8>, &start: &usize| rewritten(&log, start, b"cgc2", b"cgc3");
    fs::write(&log, frames(&whole).iter().fold(whole.clone(), later)).unwrap();
    let refused = Salvaged::read(path, "news").unwrap_err();
    assert!(matches!(refused, CollectionError::NewerFormat { .. }), "{refused}");
    // A damaged mark is not a later format.
    fs::write(&log, [b"cgc3", &whole[4..]].concat()).unwrap();
    let opened = EmbeddedHome::open_with(path, Limits::DEFAULT, Opening::default());
    assert!(matches!(opened, Err(CollectionError::Damaged { .. })));
    assert_eq!(Salvaged::read(path, "news").unwrap().items().count(), 2);
}
