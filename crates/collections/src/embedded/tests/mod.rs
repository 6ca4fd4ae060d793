//! The embedded home's promises: the same items after reopening, nothing of what was damaged, one
//! writer at a time.

mod cancelled;
mod clock;
mod columns;
mod faults;
mod formats;
mod full;
mod histories;
mod killed;
mod lengths;
mod narrow;
mod places;
mod promoted;
mod replica;
mod rewriting;
mod shortlists;
mod simulated;
mod tokens;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognate::engine::{KeptText, Query};
use cognate::methods::Method;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{
    Cancellation, Collection, CollectionError, Home, Incoming, Item, Limits, Settings, contract,
};

fn item(id: usize, text: &str, time: i64) -> Item {
    let written = format!(r#"{{"id":"n{id}","text":"{text}","attributes":{{"n":{id}}}}}"#);
    serde_json::from_str::<Incoming>(&written).unwrap().into_item(time)
}

fn ids(collection: &EmbeddedCollection, now: i64) -> Vec<String> {
    collection.view(now).iter().map(|item| item.id.to_string()).collect()
}

fn open(folder: &Path) -> EmbeddedHome {
    let (collections, cuts) = EmbeddedHome::open(folder, Limits::DEFAULT).unwrap();
    assert_eq!(cuts, []);
    collections
}

fn log_of(folder: &TempDir) -> PathBuf {
    folder.path().join("news/items.log")
}

/// A folder whose collection got `count` batches of one item each.
fn with_batches(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let collections = open(folder.path());
    let (news, is_new) = collections.make("news", Settings::default(), 0).unwrap();
    assert!(is_new);
    for at in 0..count {
        news.put(vec![item(at, "the quake", 0)], 0).unwrap();
    }
    folder
}

fn with_killed_batches(count: usize) -> TempDir {
    let folder = with_batches(count);
    fs::remove_file(folder.path().join("news/items.length")).unwrap();
    folder
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn a_flipped_bit_is_refused(share in 0.0f64..1.0, bit in 0u8..8) {
        let folder = with_killed_batches(4);
        let log = log_of(&folder);
        let mut bytes = fs::read(&log).unwrap();
        let last = *frames(&bytes).last().unwrap();
        let at = (last as f64 * share) as usize;
        bytes[at] ^= 1 << bit;
        fs::write(&log, &bytes).unwrap();
        let error = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
        prop_assert!(matches!(error, CollectionError::Damaged { .. }), "{error}");
        prop_assert_eq!(fs::read(&log).unwrap(), bytes);
        prop_assert_eq!(fs::read_dir(folder.path().join("news")).unwrap().count(), 1);
    }
}

/// Offsets of a log's frames.
fn frames(log: &[u8]) -> Vec<usize> {
    let marks = log.windows(4).enumerate().filter(|(_, four)| **four == *b"cgc2");
    marks.map(|(at, _)| at).collect()
}

#[test]
fn limits_are_held_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { collections: 2, items: 3, bytes: 4000, text_bytes: 20 };
    let (collections, _) = EmbeddedHome::open(folder.path(), limits).unwrap();
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    collections.make("more", Settings::default(), 0).unwrap();
    let third = collections.make("third", Settings::default(), 0).unwrap_err();
    assert!(matches!(third, CollectionError::TooMany { limit: 2 }));
    for name in ["", ".", "..", "a/b", "-a", "A", ".lock", &"x".repeat(65)] {
        let made = collections.make(name, Settings::default(), 0);
        assert!(matches!(made, Err(CollectionError::BadName)), "{name}");
    }
    let before = fs::metadata(log_of(&folder)).unwrap().len();
    let four = (0..4).map(|at| item(at, "a", 0)).collect();
    assert!(matches!(news.put(four, 0), Err(CollectionError::TooManyItems { wanted: 4, .. })));
    let long = news.put(vec![item(0, "a", 0), item(1, &"long ".repeat(5), 0)], 0).unwrap_err();
    assert!(matches!(&long, CollectionError::Item { index: 1, problem } if problem.too_long));
    let mut large = item(0, "a", 0);
    let many: serde_json::Map<_, _> =
        (0..30).map(|at| (format!("a{at}"), "x".repeat(200 + at).into())).collect();
    large.attributes = serde_json::from_value(many.into()).unwrap();
    assert!(matches!(news.put(vec![large], 0), Err(CollectionError::NoMemory { limit: 4000 })));
    assert_eq!(fs::metadata(log_of(&folder)).unwrap().len(), before);
    assert_eq!((news.told(0).unwrap().items, collections.bytes()), (0, 0));
    // A collection with `max_items` accepts any number, and stores the newest.
    let few = Settings { max_items: Some(2), ttl_ms: None, ..Settings::default() };
    collections.make("news", few, 0).unwrap();
    let applied = news.put((0..4).map(|at| item(at, "a", 0)).collect(), 0).unwrap();
    assert_eq!((applied.added, applied.left), (4, 2));
    assert_eq!(ids(&news, 0), ["n2", "n3"]);
    collections.delete("news").unwrap();
    assert!(matches!(news.put(vec![item(1, "a", 0)], 0), Err(CollectionError::Unknown)));
    assert!(!folder.path().join("news").exists());
}

#[test]
fn what_exceeds_the_memory_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let news = open(folder.path()).make("news", Settings::default(), 0).unwrap().0;
    news.put((0..4).map(|at| item(at, "a text", 0)).collect(), 0).unwrap();
    drop(news);
    // Less memory than the stored items take.
    let limits = Limits { collections: 2, items: 9, bytes: 1, text_bytes: 20 };
    let (collections, _) = EmbeddedHome::open(folder.path(), limits).unwrap();
    let news = collections.named("news").unwrap();
    assert!(matches!(news.put(vec![item(9, "a", 0)], 0), Err(CollectionError::NoMemory { .. })));
    news.remove(&["n0"], 0).unwrap();
    assert_eq!(news.told(0).unwrap().items, 3);
}

/// Vectors are stored where there is memory for them, and dropped for items.
#[test]
fn vectors_take_what_items_leave() {
    let engine = contract::engine();
    let (numbers, dims) = (600, engine.embedding_dims(Method::AvgCos).unwrap());
    let words = ["quake", "city", "river", "town", ""];
    let text = |at: usize| format!("{} {}", words[at % 5], words[(at / 5) % 5]);
    let items = || (0..numbers).map(|at| item(at, &format!(". {}", text(at)), 0)).collect();
    let block = 512 * dims * 4;
    for (bytes, kept) in [(1 << 24, true), (2 * block, false)] {
        let limits = Limits { bytes, ..Limits::DEFAULT };
        let collections = EmbeddedHome::in_memory(limits);
        let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
        news.put(items(), 0).unwrap();
        let items_alone = collections.bytes();
        news.remove(&["n3"], 0).unwrap();
        let view = news.view(0);
        let numbered: Vec<_> =
            view.numbered().map(|(number, item)| (number, Arc::clone(item))).collect();
        let vectors =
            news.vectors(&engine, Method::AvgCos, &numbered, Cancellation::NEVER).unwrap();
        assert_eq!(vectors.is_some(), kept);
        let Some(vectors) = vectors else { continue };
        assert!(collections.bytes() > items_alone + 2 * block);
        let texts: Vec<&str> = numbered.iter().map(|(_, item)| &*item.text).collect();
        let expected = engine.embed(&texts, &Query::new(Method::AvgCos)).unwrap();
        for ((number, _), vector) in numbered.iter().zip(expected.iter()) {
            let found = match vectors.of(*number).unwrap() {
                KeptText::Vector(row) => Some(row),
                KeptText::Unscored(_) => None,
            };
            assert_eq!(found, vector);
        }
        assert_eq!(vectors.of(3), None, "what was removed before");
        let again = news.vectors(&engine, Method::AvgCos, &numbered, Cancellation::when(&|| true));
        assert!(Arc::ptr_eq(&again.unwrap().unwrap(), &vectors));
        drop(vectors);
        // Items that need the memory get it.
        let large = "x".repeat(1000);
        let many = (0..12_000).map(|at| item(10_000 + at, &large, 0)).collect();
        news.put(many, 0).unwrap();
        assert_eq!(collections.bytes(), news.told(0).unwrap().bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_folder_holds_the_contract(steps in contract::steps()) {
        let (folder, engine) = (tempfile::tempdir().unwrap(), contract::engine());
        contract::hold(
            &mut |limits| Box::new(EmbeddedHome::open(folder.path(), limits).unwrap().0),
            &engine,
            &steps,
        );
    }
}

/// Expired texts are not in the window of a text, so they do not count for its event: a reopened
/// collection has none of them.
#[test]
fn an_event_of_which_most_is_too_old_needs_what_is_left() {
    use contract::Step;
    let all = cognate::window::stream::AddPolicy::All;
    let put = |choice| Step::Put(vec![(0, 0, 0, choice)]);
    let steps = [
        Step::Set(None, Some(20), true),
        put(0),
        put(1),
        Step::Match(
            vec![(11, 0, 14, 2), (19, 1, 53, 8), (4, 2, 23, 6), (8, 4, 18, 3), (23, 3, 6, 10)],
            true,
            all,
        ),
        Step::Match(vec![(3, 3, 54, 11), (18, 1, 33, 2)], true, all),
    ];
    let (folder, engine) = (tempfile::tempdir().unwrap(), contract::engine());
    let open = &mut |limits| -> Box<dyn crate::Home> {
        Box::new(EmbeddedHome::open(folder.path(), limits).unwrap().0)
    };
    contract::hold(open, &engine, &steps);
}
