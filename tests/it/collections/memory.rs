//! What `collection_bytes` counts is what items take.

use cognate_collections::{Collection, CollectionError, EmbeddedHome, Incoming, Limits, Settings};
use serde_json::{Value, json};

use crate::support::allocation;

const MIB: usize = 1 << 20;

/// A name, and the item of a number.
type Shape = (&'static str, Box<dyn Fn(usize) -> Value>);

/// Items of many shapes: what there is to an item beside its text differs by a hundred times.
fn shapes() -> Vec<Shape> {
    let many = |value: Value| -> Value {
        (0..32)
            .map(|at| (format!("a{at:02}"), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (truths, strings) = (many(json!(true)), many(json!("x")));
    vec![
        ("tiny", Box::new(|at| json!({"id": at, "text": "a"}))),
        ("one attribute", Box::new(|at| json!({"id": at, "text": "a", "attributes": {"a": 1}}))),
        ("truths", Box::new(move |at| json!({"id": at, "text": "a", "attributes": truths}))),
        ("strings", Box::new(move |at| json!({"id": at, "text": "a", "attributes": strings}))),
        ("long ids", Box::new(|at| json!({"id": format!("{at:0240}"), "text": "a"}))),
        ("data", Box::new(|at| json!({"id": at, "text": "a", "data": {"x": "y".repeat(4000)}}))),
        (
            "texts",
            Box::new(|at| json!({"id": at, "text": "a few words of a post ".repeat(at % 12 + 1)})),
        ),
    ]
}

#[test]
fn what_items_take_is_what_is_counted() {
    for ttl_ms in [None, Some(1_000_000)] {
        for (name, shape) in shapes() {
            let before = allocation::taken();
            let limits = Limits { bytes: 8 * MIB, ..Limits::DEFAULT };
            let home = EmbeddedHome::in_memory(limits);
            let (news, _) = home
                .make("news", Settings { max_items: None, ttl_ms, ..Settings::default() }, 0)
                .unwrap();
            let mut count = 0;
            loop {
                let item = |at: usize| {
                    let written = shape(at).to_string();
                    serde_json::from_str::<Incoming>(&written).unwrap().into_item(at as i64)
                };
                match news.put((count..count + 100).map(item).collect(), 0) {
                    Ok(_) => count += 100,
                    Err(CollectionError::NoMemory { .. }) => break,
                    Err(other) => panic!("{name}: {other}"),
                }
            }
            let full = (allocation::taken() - before) as f64 / home.bytes() as f64;
            assert!(count > 1000 && home.bytes() > 7 * MIB, "{name}: {count} items");
            assert!((0.85..1.15).contains(&full), "{name}, ttl {ttl_ms:?}: {full:.2} times");
            // Lists may be four times as long as what is left in them, and no longer.
            let names = allocation::taken();
            let ids: Vec<String> = (0..count).map(|at| shape(at)["id"].to_string()).collect();
            let ids: Vec<&str> = ids.iter().map(|id| id.trim_matches('"')).collect();
            let before = before + allocation::taken() - names;
            let (many, few) = ids.split_at(count - count / 16);
            assert_eq!(news.remove(many, 0).unwrap().removed, many.len());
            let left = (allocation::taken() - before) as f64 / home.bytes() as f64;
            assert!(
                (0.85..1.6).contains(&left),
                "{name}, ttl {ttl_ms:?}: {left:.2} times are left"
            );
            news.remove(few, 0).unwrap();
            assert_eq!(home.bytes(), 0);
            drop(news);
            let rest = allocation::taken() - before;
            assert!(rest < 64 << 10, "{name}: {rest} bytes are left");
        }
    }
}

/// Times decide what leaves from when that is said, and take memory from then on.
#[test]
fn places_by_time_are_counted_while_there_are_such() {
    let home = EmbeddedHome::in_memory(Limits { bytes: MIB, ..Limits::DEFAULT });
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    let item = |at: usize| {
        let written = json!({"id": at, "text": "a"}).to_string();
        serde_json::from_str::<Incoming>(&written).unwrap().into_item(at as i64)
    };
    news.put((0..1000).map(item).collect(), 0).unwrap();
    let plain = home.bytes();
    let timed = Settings { max_items: None, ttl_ms: Some(1000), ..Settings::default() };
    news.set(timed, 0).unwrap();
    assert!(home.bytes() >= plain + 16 * 1000);
    news.set(Settings::default(), 0).unwrap();
    assert_eq!(home.bytes(), plain);
    // Where there is no memory for them, nothing is changed.
    while news.put((0..100).map(|at| item(at + news.told(0).unwrap().items)).collect(), 0).is_ok() {
    }
    let full = home.bytes();
    assert!(matches!(news.set(timed, 0), Err(CollectionError::NoMemory { .. })));
    assert_eq!((home.bytes(), news.settings().ttl_ms), (full, None));
}
