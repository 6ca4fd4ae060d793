//! Seeds of logs of collections: what the service writes, whole and cut.

use std::fs;

use cognate_collections::embedded::EmbeddedCollection;
use cognate_collections::{Collection, EmbeddedHome, Id, Incoming, Item, Limits, Settings, Time};

use super::{Seed, with};

/// A log after `steps` on an empty collection.
fn log(steps: impl FnOnce(&EmbeddedCollection)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (home, _) = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap();
    let (one, _) = home.make("one", Settings::default(), 0).unwrap();
    steps(&one);
    drop((home, one));
    fs::read(folder.path().join("one/items.log")).unwrap()
}

fn item(id: &str, text: &str, time: i64) -> Item {
    let (id, text) = (Id(id.into()), text.into());
    let time = Some(Time(time));
    Incoming { id, text, time, attributes: None, data: None, event: None }.into_item(0)
}

fn full(id: &str) -> Item {
    let written = format!(
        r#"{{"id": "{id}", "text": "Quake hits L.A.", "time": 5,
             "attributes": {{"lang": "en", "n": 1.5}}, "data": {{"a": [1]}}, "event": "{id}"}}"#
    );
    serde_json::from_str::<Incoming>(&written).unwrap().into_item(0)
}

pub(super) fn seeds() -> Vec<Seed> {
    let put = |one: &EmbeddedCollection, items: Vec<Item>| _ = one.put(items, 0).unwrap();
    let bounded = Settings { max_items: Some(2), ttl_ms: Some(1000), ..Settings::default() };
    let two = log(|one| {
        put(one, vec![item("a", "Quake hits L.A.", 0)]);
        put(one, vec![item("b", "Cat naps on sofa", 1)]);
    });
    let mark = |number: u8| -> Vec<u8> { [b"cgc", &[number][..]].concat() };
    let seeds = [
        ("empty", log(|_| {})),
        ("full", log(|one| put(one, vec![full("a"), full("b")]))),
        (
            "removed",
            log(|one| {
                put(one, vec![item("a", "x", 0), item("b", "y", 0)]);
                one.remove(&["a"], 0).unwrap();
            }),
        ),
        (
            "replaced",
            log(|one| {
                put(one, vec![item("a", "x", 0)]);
                put(one, vec![item("a", "y", 3)]);
            }),
        ),
        (
            "bounded",
            log(|one| {
                one.set(bounded, 0).unwrap();
                put(one, vec![item("a", "x", 0), item("b", "y", 500), item("c", "z", 900)]);
                one.tidy(5000).unwrap();
            }),
        ),
        (
            "far-times",
            log(|one| {
                put(
                    one,
                    vec![item("a", "x", -62_167_219_200_000), item("b", "y", 253_402_300_799_999)],
                );
            }),
        ),
        ("cut-changes", two[..two.len() - 50].to_vec()),
        ("cut-head", two[..two.len() - 30].to_vec()),
        ("garbage-behind", [&two[..], b"cgc2 and more"].concat()),
        ("other-version", with(&two, b"cgc2", &mark(b'3'))),
        ("earlier-mark", with(&two, b"cgc2", &mark(b'1'))),
        ("another-change", with(&two, br#"{"put""#, br#"{"pot""#)),
        ("two", two),
    ];
    seeds.map(|(name, bytes)| ("collection_log", name, bytes)).into()
}
