//! Stored windows find what rebuilt windows find, name no item that left, and are in the memory
//! that is counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use cognate::methods::Method;
use cognate::window;
use cognate::window::events::Rule;
use cognate::window::stream;
use proptest::prelude::*;

use crate::contract::engine;
use crate::embedded::tests::item;
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{
    Attributes, Cancellation, ChooseError, Collection, CollectionError, Event, Filter, Home, Item,
    Limits, MatchOptions, Matched, Settings, SharedEngine,
};

fn how(last: usize, threshold: f32) -> MatchOptions {
    let rule = Rule { threshold, votes: 3, steps: [0.1, 0.0, 0.0], centre: 0.2, duplicate: 1.0 };
    let limits = window::Limits { last, within: None };
    let (method, second) = (Method::AvgCos, None);
    let stream = stream::Settings {
        method,
        second,
        nearest: 8,
        floor: 0.2,
        drop_opposed: None,
        rule,
        limits,
    };
    let (filter, add) = (Filter::default(), stream::AddPolicy::All);
    MatchOptions { stream, filter, add, explain: false, replace: true }
}

fn text(at: usize) -> String {
    let words = ["quake", "city", "river", "flood", "election"];
    format!("{} {} {}", words[at % 5], words[(at / 5) % 5], words[(at / 7) % 3])
}

fn matched(
    news: &EmbeddedCollection,
    engine: &SharedEngine,
    how: MatchOptions,
    ids: &[usize],
    now: i64,
) -> Vec<Matched> {
    let items = ids.iter().map(|&at| item(at, &text(at), now)).collect();
    follow(news, engine, how, items, now)
}

fn follow(
    news: &EmbeddedCollection,
    engine: &SharedEngine,
    how: MatchOptions,
    items: Vec<Item>,
    now: i64,
) -> Vec<Matched> {
    let (matched, pending) =
        news.follow(engine.clone(), &how, items, now, Cancellation::NEVER).unwrap();
    news.wait_durable(pending).unwrap();
    matched
}

fn named(matched: &[Matched]) -> Vec<&str> {
    matched.iter().flat_map(|one| &one.nearest).map(|(id, _)| &**id).collect()
}

#[test]
fn a_filter_finds_nothing_that_newer_items_pushed_out() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    let settings = Settings { max_items: Some(20), ttl_ms: None, ..Settings::default() };
    let (news, _) = collections.make("news", settings, 0).unwrap();
    let of = |user: &str, ids: std::ops::Range<usize>| -> Vec<Item> {
        let attributes = serde_json::from_value(serde_json::json!({"user": user})).unwrap();
        let one = |id| Item { attributes: Attributes::clone(&attributes), ..item(id, &text(0), 0) };
        ids.map(one).collect()
    };
    let filter = Filter::read(r#"{"user": "ann"}"#).unwrap();
    let asked = || MatchOptions { filter: filter.clone(), ..how(100, 0.3) };
    follow(&news, &engine, asked(), of("ann", 0..3), 0);
    assert_eq!(named(&follow(&news, &engine, asked(), of("ann", 3..4), 0)).len(), 3);
    news.put(of("bob", 100..115), 0).unwrap();
    assert_eq!(named(&follow(&news, &engine, asked(), of("ann", 4..5), 0)).len(), 4);
    news.put(of("bob", 200..217), 0).unwrap();
    assert_eq!(named(&follow(&news, &engine, asked(), of("ann", 5..6), 0)), ["n4"]);
}

#[test]
fn a_window_that_is_kept_names_nothing_that_is_too_old() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    let settings = Settings { max_items: None, ttl_ms: Some(1000), ..Settings::default() };
    let (news, _) = collections.make("news", settings, 0).unwrap();
    let asked = how(100, 0.3);
    matched(&news, &engine, asked.clone(), &[0], 0);
    // The same words, late: by its own time it would be near to the first.
    let late = |id: usize, now: i64| {
        let items = vec![item(id, &text(0), 500)];
        news.follow(engine.clone(), &asked, items, now, Cancellation::NEVER).unwrap().0
    };
    assert_eq!(named(&late(1, 900)), ["n0"]);
    let found = late(2, 1200);
    assert_eq!(named(&found), ["n1"], "n0 left at 1001");
    assert_eq!(found[0].duplicate_of.as_deref(), Some("n1"));
}

#[test]
fn what_late_items_pushed_out_is_in_no_window_that_is_kept() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    let settings = Settings { max_items: Some(3), ttl_ms: Some(1000), ..Settings::default() };
    let (news, _) = collections.make("news", settings, 0).unwrap();
    matched(&news, &engine, how(100, 0.3), &[0, 1, 2], 2000);
    // Two items come too late in the places of n0 and n1, and leave with the next.
    news.put(vec![item(10, "the river", 500), item(11, "the river", 500)], 2000).unwrap();
    let applied = news.put(vec![item(12, "the river", 2000)], 2000).unwrap();
    assert_eq!((applied.left, news.told(2000).unwrap().items), (0, 2));
    for (at, expected) in [(1, None), (2, Some("n2"))] {
        let again = item(20 + at, &text(at), 2000);
        let found = follow(&news, &engine, how(100, 0.3), vec![again], 2000);
        assert_eq!(found[0].duplicate_of.as_deref(), expected, "{found:?}");
    }
}

#[test]
fn a_clock_that_begins_anew_brings_nothing_back_that_left() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    let settings = Settings { max_items: None, ttl_ms: Some(1000), ..Settings::default() };
    let (news, _) = collections.make("news", settings, 0).unwrap();
    matched(&news, &engine, how(100, 0.3), &[0], 10_000);
    // The only item leaves, and the next one, which is old, sets the clock to its own time.
    let applied = news.put(vec![item(1, "the river", 5000)], 20_000).unwrap();
    assert_eq!((applied.expired, news.told(20_000).unwrap().items), (0, 1));
    let again = vec![item(2, &text(0), 5000)];
    let found = follow(&news, &engine, how(100, 0.3), again, 20_000);
    assert!(found[0].new && found[0].nearest.is_empty(), "{found:?}");
}

/// A cancelled request checks for each text, changes nothing, and its partial window serves the
/// next request.
#[test]
fn a_match_that_is_given_up_changes_nothing() {
    let engine = engine();
    let all: Vec<usize> = (0..100).collect();
    let now = 100;
    let made = || {
        let home = EmbeddedHome::in_memory(Limits::DEFAULT);
        let (news, _) = home.make("news", Settings::default(), 0).unwrap();
        news.put(all.iter().map(|&at| item(at, &text(at), now)).collect(), now).unwrap();
        news
    };
    let more: Vec<Item> = (100..110).map(|at| item(at, &text(at), now)).collect();
    let asked = MatchOptions {
        stream: stream::Settings {
            second: Some(Method::MaxCos),
            nearest: 40,
            ..how(100, 0.3).stream
        },
        ..how(100, 0.3)
    };
    let expected = follow(&made(), &engine, asked.clone(), more.clone(), now);
    for after in [0, 30, 100, 105, 110, 115] {
        let news = made();
        let checks = AtomicUsize::new(0);
        let is_cancelled = || checks.fetch_add(1, Ordering::Relaxed) >= after;
        let cancel = Cancellation::when(&is_cancelled);
        let stopped = news.follow(engine.clone(), &asked, more.clone(), now, cancel);
        assert!(matches!(stopped, Err(ChooseError::Stopped)), "{after}");
        // A second search that had begun checks once more before it ends.
        assert!(checks.load(Ordering::Relaxed) <= after + 2, "nothing runs on");
        assert_eq!(news.told(now).unwrap().items, all.len());
        // Texts of the window that were read are not read again.
        let again = AtomicUsize::new(0);
        let count = || again.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        let matched =
            news.follow(engine.clone(), &asked, more.clone(), now, Cancellation::when(&count));
        assert_eq!(matched.unwrap().0, expected, "{after}");
        if after < all.len() {
            // Of 40 nearest at least two parts are scored between two checks.
            assert!(again.load(Ordering::Relaxed) <= all.len() - after + 5 * more.len());
        }
    }
}

#[test]
fn a_window_is_paid_for_and_gives_way_to_items() {
    let engine = engine();
    let dims = engine.embedding_dims(Method::AvgCos).unwrap();
    let room = 8 << 20;
    let collections = EmbeddedHome::in_memory(Limits { bytes: room, ..Limits::DEFAULT });
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    let items = || collections.bytes() - news.told(0).unwrap().bytes;
    matched(&news, &engine, how(500, 0.3), &[0], 0);
    let window = items();
    assert!(window > 500 * dims * 5, "{window}");
    // A window stores long texts again, and long names in its lists.
    let long = (1..200).map(|at| item(at, &format!("{} {}", text(at), "quake ".repeat(500)), 0));
    let (_, pending) = news
        .follow(engine.clone(), &how(500, 0.3), long.collect(), 0, Cancellation::NEVER)
        .unwrap();
    news.wait_durable(pending).unwrap();
    assert!(items() > window + 199 * 3000, "{} after {window}", items());
    matched(&news, &engine, how(400, 0.3), &[200], 0);
    matched(&news, &engine, how(300, 0.3), &[201], 0);
    assert_eq!(news.windows.len(), 3);
    assert!(collections.bytes() <= room);
    let large = "x".repeat(1000);
    let free = room - news.told(0).unwrap().bytes;
    let many = free / 1400;
    news.put((0..many).map(|at| item(1000 + at, &large, 0)).collect(), 0).unwrap();
    assert_eq!((news.windows.len(), items()), (0, 0), "items need the memory");
    // If there is no memory for a window, the request says so and adds nothing.
    let before = news.told(0).unwrap().items;
    let asked = news.follow(
        engine.clone(),
        &how(5000, 0.3),
        vec![item(9999, "quake", 0)],
        0,
        Cancellation::NEVER,
    );
    let is_refused =
        matches!(asked, Err(ChooseError::Collection(CollectionError::NoMemory { .. })));
    assert!(is_refused);
    assert_eq!((news.told(0).unwrap().items, items()), (before, 0));
}

#[test]
fn an_explanation_pays_for_the_texts_that_it_copies() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits { bytes: 5 << 20, ..Limits::DEFAULT });
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    let long = |from| (from..from + 150).map(|at| item(at, &"quake ".repeat(1000), 0)).collect();
    let explained = || news.explain(engine.clone(), &how(300, 0.3), "n299", 0, Cancellation::NEVER);
    let add = |from| news.put(long(from), 0).unwrap();
    add(0);
    add(150);
    assert!(explained().unwrap().is_some(), "three megabytes of five are free");
    add(300);
    add(450);
    let before = collections.bytes();
    let refused = explained();
    assert!(matches!(refused, Err(ChooseError::Collection(CollectionError::NoMemory { .. }))));
    assert_eq!(collections.bytes(), before);
}

#[test]
fn a_window_gives_way_to_items_of_another_collection() {
    let engine = engine();
    let room = 4 << 20;
    let collections = EmbeddedHome::in_memory(Limits { bytes: room, ..Limits::DEFAULT });
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    let (other, _) = collections.make("other", Settings::default(), 0).unwrap();
    matched(&news, &engine, how(2000, 0.3), &[0], 0);
    let free = room - collections.bytes();
    assert!(free < room / 2, "{free}");
    let many = room / 2 / 1400;
    other.put((0..many).map(|at| item(at, &"x".repeat(1000), 0)).collect(), 0).unwrap();
    assert_eq!(news.windows.len(), 0);
    other.put(vec![item(0, "short", 0)], 0).unwrap();
    assert_eq!(named(&matched(&news, &engine, how(200, 0.3), &[5], 0)), ["n0"]);
}

#[test]
fn as_many_windows_are_kept_as_are_asked_for_in_turn() {
    let engine = engine();
    let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
    let (news, _) = collections.make("news", Settings::default(), 0).unwrap();
    for round in 0..3 {
        for (place, last) in [10, 20, 30].into_iter().enumerate() {
            matched(&news, &engine, how(last, 0.3), &[10 * round + place], 0);
        }
        assert_eq!(news.windows.len(), 3);
    }
    for last in 40..50 {
        matched(&news, &engine, how(last, 0.3), &[last], 0);
    }
    assert_eq!(news.windows.len(), 4);
    // Replacing or removing items invalidates all windows.
    news.remove(&["n0"], 0).unwrap();
    matched(&news, &engine, how(49, 0.3), &[90], 0);
    assert_eq!(news.windows.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// Requests with settings in turn; between them items are loaded, removed, expired and matched
    /// again; after each, the items have the same events of the same sizes.
    #[test]
    fn kept_windows_find_what_fresh_ones_find(
        steps in prop::collection::vec((0u8..11, 0usize..60, 1usize..5, 0i64..60), 1..40),
        most in prop::option::of(3usize..30),
        ttl_ms in prop::option::of(10i64..50),
    ) {
        let engine = engine();
        let collections = EmbeddedHome::in_memory(Limits::DEFAULT);
        let settings = Settings { max_items: most, ttl_ms, ..Settings::default() };
        let make = |name| collections.make(name, settings, 0).unwrap().0;
        let (kept, fresh) = (make("kept"), make("fresh"));
        let mut now = 1000;
        for (step, (kind, at, count, age)) in steps.into_iter().enumerate() {
            now += if kind == 10 { age } else { 2 };
            let items = |ids: &[usize]| {
                let each = ids.iter().enumerate();
                let time = |place: usize| now - age * (place as i64 % 2);
                each.map(|(place, &at)| item(at, &text(at), time(place))).collect::<Vec<_>>()
            };
            let ids: Vec<usize> = match kind {
                0..7 => (0..count).map(|place| 100 + step * 5 + place).collect(),
                _ => (at..at + count).collect(),
            };
            let (last, threshold) = [(12, 0.5), (5, 0.6), (40, 0.4)][at % 3];
            let asked = || how(last, threshold);
            match kind {
                0 | 1 => {
                    let mut loaded = items(&ids);
                    if kind == 1 {
                        let events = kept.view(now);
                        let known = events.iter().find_map(|item| item.event.clone());
                        loaded[0].event = known.map(|event| Event { size: 2, ..event });
                    }
                    for one in [&kept, &fresh] {
                        one.put(loaded.clone(), now).unwrap();
                    }
                }
                9 | 10 => {
                    for one in [&kept, &fresh] {
                        one.remove(&[&format!("n{at}")], now).unwrap();
                    }
                }
                _ => {
                    fresh.windows.clear();
                    let found = follow(&kept, &engine, asked(), items(&ids), now);
                    prop_assert_eq!(found, follow(&fresh, &engine, asked(), items(&ids), now));
                }
            }
            let held = |one: &EmbeddedCollection| {
                one.view(now).iter().map(|item| (item.id.clone(), item.event.clone())).collect()
            };
            let (kept, fresh): (Vec<_>, Vec<_>) = (held(&kept), held(&fresh));
            prop_assert_eq!(kept, fresh);
        }
        for one in collections.each() {
            collections.delete(one.name()).unwrap();
        }
        drop((kept, fresh));
        prop_assert_eq!(collections.bytes(), 0);
    }
}
