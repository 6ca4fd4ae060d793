//! The contract over a server: `TEST_COGNATE_QDRANT` is its URL, and these tests may empty it. `.ci/long
//! qdrant` starts one, with the engine of Qdrant behind it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use proptest::prelude::*;
use qdrant_client::qdrant::CountPoints;
use serde_json::Value;
use serde_json::json;

use crate::collection::Applied;
use crate::collection::Cancellation;
use crate::collection::Choice;
use crate::collection::ChooseError;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::EmbeddedHome;
use crate::collection::Filter;
use crate::collection::Home;
use crate::collection::Incoming;
use crate::collection::Item;
use crate::collection::Limits;
use crate::collection::Outgoing;
use crate::collection::Page;
use crate::collection::SHORTLIST_METHOD;
use crate::collection::Settings;
use crate::collection::Shortlist;
use crate::collection::Which;
use crate::collection::Write;
use crate::collection::contract;
use crate::collection::qdrant::Indexed;
use crate::collection::qdrant::QdrantHome;
use crate::collection::qdrant::points;
use crate::collection::qdrant::record;
use crate::engine::Engine;
use crate::engine::Query;

/// One server, one test at a time.
static SERVER: Mutex<()> = Mutex::new(());

#[expect(clippy::disallowed_methods, reason = "tests alone look for a server")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn url() -> String {
    variable("TEST_COGNATE_QDRANT")
        .expect("TEST_COGNATE_QDRANT is the URL of a server; `.ci/long qdrant` starts one")
}

fn open(limits: Limits) -> QdrantHome {
    QdrantHome::open(&url(), limits, Duration::from_secs(20)).unwrap()
}

/// Empties the server.
fn empty() {
    QdrantHome::init(&url()).unwrap();
    let home = open(Limits::DEFAULT);
    for collection in home.all().unwrap() {
        home.delete(collection.name()).unwrap();
    }
}

/// A server without collections, for one test.
fn alone() -> MutexGuard<'static, ()> {
    let one = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    empty();
    one
}

fn items(written: Value) -> Vec<Item> {
    let all: Vec<Incoming> = serde_json::from_value(written).unwrap();
    all.into_iter().map(|one| one.into_item(0)).collect()
}

/// Items of these names, the texts of which are their own.
fn named(names: &[&str]) -> Vec<Item> {
    items(names.iter().map(|name| json!({"id": name, "text": format!("text {name}")})).collect())
}

fn put(collection: &dyn Collection, items: Vec<Item>) -> Result<Applied, CollectionError> {
    let (applied, pending) = collection.write(Write::Put(items), 0)?;
    collection.settle(pending).unwrap();
    Ok(applied)
}

fn made(home: &QdrantHome) -> Arc<dyn Collection> {
    home.set("news", Settings::default(), 0).unwrap().0
}

/// The names of the items that are there.
fn names(home: &QdrantHome) -> Vec<String> {
    let all = home.get("news").unwrap();
    let all = all.choose(&Which::default(), &Choice::All, 0, Cancellation::NEVER).unwrap().items;
    all.iter().map(|(_, item)| item.id.to_string()).collect()
}

/// How many points there are, seen or not.
fn points_of(home: &QdrantHome) -> u64 {
    let asking = &home.shared.asking;
    let asked = CountPoints {
        collection_name: record::find(asking, "news").unwrap().place(),
        exact: Some(true),
        ..CountPoints::default()
    };
    let counted = asking.ask(async |client| client.count(asked.clone()).await).unwrap();
    counted.result.unwrap().count
}

/// Lets a writer that a home has seen have been silent for long enough.
fn wait_for_silence(home: &QdrantHome) {
    home.shared.line("news").let_time_pass();
}

/// Lets enough time pass for what is gone to be deleted.
fn wait_for_sweep(home: &QdrantHome) {
    let line = home.shared.line("news");
    line.slot.lock().unwrap().hold.as_mut().unwrap().let_time_pass();
    home.get("news").unwrap().tidy(0).unwrap();
}

fn is_refused(came: Result<Applied, CollectionError>) -> bool {
    matches!(came, Err(CollectionError::OtherWriter { .. }))
}

#[test]
fn a_server_holds_the_contract() {
    let _one = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = contract::engine();
    let cases = ProptestConfig::default().cases.min(40);
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    proptest!(config, |(steps in contract::steps())| {
        empty();
        contract::hold(&mut |limits| Box::new(open(limits)), &engine, &steps);
    });
}

#[test]
fn odd_items_come_back_as_they_came_and_are_filtered_alike() {
    let _one = alone();
    let home = open(Limits::DEFAULT);
    let memory = EmbeddedHome::in_memory(Limits::DEFAULT);
    let odd = json!([
        {"id": "nul", "text": "a\u{0}b", "attributes": {"a\u{0}b": "c\u{0}", "x": "c"}},
        {"id": "max", "text": "t", "attributes": {"x": u64::MAX, "y": i64::MIN, "z": 1e300}},
        {"id": "zero", "text": "t", "attributes": {"x": -0.0, "y": 0.1, "z": 16_777_217.0}},
        {"id": "late", "text": "t", "data": {"k": [1, 2.50]}},
        {"id": "\"quoted\" \\ 東京 🌪️", "text": "t", "attributes": {"any thing": true, "\"": "\\"}},
    ]);
    let (here, _) = home.set("news", Settings::default(), 0).unwrap();
    let (there, _) = memory.set("news", Settings::default(), 0).unwrap();
    // No request brings such a time; another server may have kept one.
    let far = 9_223_372_036_854_775_000_i64;
    let mut odd = items(odd);
    odd[3].time = far;
    for collection in [&here, &there] {
        assert_eq!(put(&**collection, odd.clone()).unwrap().added, 5);
    }
    for filter in [
        json!({}),
        json!({"a\u{0}b": "c\u{0}"}),
        json!({"a\u{0}b": {"exists": false}}),
        json!({"x": u64::MAX}),
        json!({"x": u64::MAX as f64}),
        json!({"x": 0}),
        json!({"x": {"ne": 0}}),
        json!({"z": {"gte": 16_777_217}}),
        json!({"z": [1e300, "1e300"]}),
        json!({"any thing": true, "\"": "\\"}),
        json!({"not": {"x": {"lt": "d"}}}),
    ] {
        for oldest in [None, Some(1), Some(far), Some(far + 1), Some(i64::MAX), Some(i64::MIN)] {
            let seen = |collection: &dyn Collection| {
                let filter = Filter::read(&filter.to_string()).unwrap();
                let which = Which { filter, oldest, ..Which::default() };
                let page = Page { offset: 1, limit: 3 };
                let page = collection.page(&which, page, 0, Cancellation::NEVER);
                let (page, total) = page.unwrap();
                let all =
                    collection.choose(&which, &Choice::All, 0, Cancellation::NEVER).unwrap().items;
                let all = all.iter().map(|(_, item)| item).chain(&page);
                let written = all.map(|item| serde_json::to_string(&Outgoing::of(item)).unwrap());
                (written.collect::<Vec<_>>(), total)
            };
            assert_eq!(seen(&*here), seen(&*there), "{filter} {oldest:?}");
        }
    }
}

#[test]
fn a_second_writer_is_refused_until_the_first_lets_go() {
    let _one = alone();
    let (first, second) = (open(Limits::DEFAULT), open(Limits::DEFAULT));
    assert_eq!(put(&*made(&first), named(&["a"])).unwrap().added, 1);
    let news = second.get("news").unwrap();
    assert!(is_refused(put(&*news, named(&["b"]))));
    let removed = news.write(Write::Remove(vec!["a".into()]), 0).map(|(applied, _)| applied);
    assert!(is_refused(removed));
    // It reads, and whoever writes goes on.
    assert_eq!(names(&second), ["a"]);
    assert_eq!(put(&*first.get("news").unwrap(), named(&["c"])).unwrap().added, 1);
    drop(first);
    assert_eq!(put(&*news, named(&["b"])).unwrap().added, 1);
    assert_eq!(names(&second), ["a", "c", "b"]);
    assert_eq!(points_of(&second), 3);
}

#[test]
fn a_writer_that_was_taken_for_dead_changes_nothing_any_more() {
    let _one = alone();
    let (first, second) = (open(Limits::DEFAULT), open(Limits::DEFAULT));
    assert_eq!(put(&*made(&first), named(&["a", "b"])).unwrap().added, 2);
    let (old, new) = (first.get("news").unwrap(), second.get("news").unwrap());
    assert!(is_refused(put(&*new, named(&["c"]))));
    wait_for_silence(&second);
    assert_eq!(
        put(&*new, named(&["c", "a"])).unwrap(),
        Applied { added: 1, replaced: 1, ..Applied::default() }
    );
    // It still takes itself for the writer, and adds points that nobody sees.
    assert!(is_refused(put(&*old, named(&["a", "late"]))));
    assert_eq!(names(&second), ["b", "c", "a"]);
    assert_eq!(names(&first), ["b", "c", "a"]);
    assert_eq!(points_of(&second), 6);
    // From now on it knows.
    assert!(is_refused(put(&*old, named(&["late"]))));
    assert_eq!(points_of(&second), 6);
    assert_eq!(put(&*new, named(&["d"])).unwrap().added, 1);
    assert_eq!(names(&second), ["b", "c", "a", "d"]);
    wait_for_sweep(&second);
    assert_eq!(
        (points_of(&second), names(&second)),
        (4, ["b", "c", "a", "d"].map(String::from).into())
    );
}

#[test]
fn what_a_crash_left_half_done_is_not_seen_and_goes() {
    let _one = alone();
    let first = open(Limits::DEFAULT);
    assert_eq!(put(&*made(&first), named(&["a", "b", "c"])).unwrap().added, 3);
    // All of a write but the record: `a` would be replaced, `d` would be new.
    let found = record::find(&first.shared.asking, "news").unwrap();
    let half = named(&["a", "d"]);
    let numbered = (found.next..).zip(&half);
    points::add(&first.shared.asking, &found.place(), numbered).unwrap();
    // A process that was killed says goodbye to nobody.
    std::mem::forget(first);
    let second = open(Limits::DEFAULT);
    let news = second.get("news").unwrap();
    assert_eq!((names(&second), points_of(&second)), (["a", "b", "c"].map(String::from).into(), 5));
    assert_eq!(news.told(0).unwrap().items, 3);
    assert!(news.find(&["d"], 0).unwrap()[0].is_none());
    assert!(is_refused(put(&*news, named(&["e"]))));
    wait_for_silence(&second);
    assert_eq!(
        put(&*news, named(&["e", "b"])).unwrap(),
        Applied { added: 1, replaced: 1, ..Applied::default() }
    );
    assert_eq!(names(&second), ["a", "c", "e", "b"]);
    assert_eq!(news.told(0).unwrap().items, 4);
    wait_for_sweep(&second);
    assert_eq!((points_of(&second), names(&second).len()), (4, 4));
    // What is gone is listed no more, and whoever comes next goes on from there.
    assert!(record::find(&second.shared.asking, "news").unwrap().gone.is_empty());
    drop((news, second));
    let third = open(Limits::DEFAULT);
    assert_eq!(put(&*third.get("news").unwrap(), named(&["f"])).unwrap().added, 1);
    assert_eq!(names(&third), ["a", "c", "e", "b", "f"]);
}

#[test]
fn a_collection_that_another_server_made_anew_is_another_one() {
    let _one = alone();
    let (first, second) = (open(Limits::DEFAULT), open(Limits::DEFAULT));
    assert_eq!(put(&*made(&first), named(&["a"])).unwrap().added, 1);
    second.delete("news").unwrap();
    let news = first.get("news").unwrap();
    assert!(matches!(put(&*news, named(&["b"])), Err(CollectionError::Unknown)));
    assert!(second.set("news", Settings::default(), 0).unwrap().1);
    assert_eq!(put(&*news, named(&["c"])).unwrap().added, 1);
    assert_eq!(names(&second), ["c"]);
    // A collection of points whose record is gone is what a crash may leave.
    let asking = &second.shared.asking;
    let found = record::find(asking, "news").unwrap();
    record::remove(asking, &found).unwrap();
    let is_there = || {
        let asked = found.place();
        asking.ask(async |client| client.collection_exists(asked.clone()).await).unwrap()
    };
    assert!(is_there());
    QdrantHome::init(&url()).unwrap();
    assert!(!is_there());
}

/// A server that the tests may end and start again, unless it is somebody's own.
#[test]
fn without_its_server_a_home_says_so_and_is_well_again_with_it() {
    let _one = alone();
    let Some(server) = variable("TEST_COGNATE_QDRANT_SERVER") else { return };
    let tell = |what: &str| {
        assert!(std::process::Command::new(&server).arg(what).status().unwrap().success());
    };
    let home = open(Limits::DEFAULT);
    let news = made(&home);
    assert_eq!(put(&*news, named(&["a", "b"])).unwrap().added, 2);
    tell("kill");
    let is_lost = |came: Result<(), CollectionError>| {
        matches!(came, Err(CollectionError::Unreachable { .. }))
    };
    let began = Instant::now();
    assert!(is_lost(news.told(0).map(drop)));
    assert!(is_lost(put(&*news, named(&["c"])).map(drop)));
    assert!(is_lost(home.all().map(drop)));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(home.totals(0).items, 0, "as counted when it was opened");
    tell("start");
    assert_eq!(names(&home), ["a", "b"]);
    assert_eq!(put(&*news, named(&["c", "a"])).unwrap().replaced, 1);
    assert_eq!(names(&home), ["b", "c", "a"]);
}

#[test]
fn a_shortlist_has_the_nearest() {
    let _one = alone();
    let (home, engine) = (open(Limits::DEFAULT), contract::engine());
    let news = made(&home);
    let places = ["Lima", "Passau", "Tokyo", "the garden", "a small town", "the parliament"];
    let doings = ["strong earthquake in", "river floods", "my cat sleeps in", "prices rise in"];
    let texts = doings.iter().flat_map(|doing| places.map(|place| format!("{doing} {place}")));
    let texts: Vec<String> = texts.chain(["xqzvw".to_owned()]).collect();
    let item = |(at, text): (usize, &String)| json!({"id": at, "text": text, "attributes": {"even": at % 2 == 0, "at": at}});
    put(&*news, items(texts.iter().enumerate().map(item).collect())).unwrap();
    let asked = ["earthquake shakes Tokyo", "flood in Passau"];
    let nearest = |filter: &Value| -> BTreeSet<usize> {
        let shortlist = Shortlist { engine: &engine, texts: asked.into(), length: 3 };
        let which =
            Which { filter: Filter::read(&filter.to_string()).unwrap(), ..Which::default() };
        let found = news
            .choose(&which, &Choice::Shortlist(shortlist), 0, Cancellation::NEVER)
            .unwrap()
            .items;
        assert!(found.is_sorted_by_key(|(number, _)| *number));
        found.iter().map(|(_, item)| item.id.parse().unwrap()).collect()
    };
    let expected = |admits: &dyn Fn(usize) -> bool| {
        let best = |one: &str| {
            let among: Vec<usize> = (0..texts.len() - 1).filter(|at| admits(*at)).collect();
            nearest_of(&engine, one, &texts, among)
        };
        asked.iter().flat_map(|one| best(one)).collect::<BTreeSet<usize>>()
    };
    assert_eq!(nearest(&json!({})), expected(&|_| true));
    assert_eq!(nearest(&json!({"even": true})), expected(&|at| at % 2 == 0));
    // Qdrant admits all of these, so more is asked of it until there are enough.
    assert_eq!(nearest(&json!({"at": {"gte": 17}})), expected(&|at| at >= 17));
    let indexed = home.index("news", &engine, true, &mut |_| ()).unwrap();
    assert_eq!(indexed, Indexed { made: 0, dropped: 0 });
    // One that is replaced has the vector of its new text.
    put(&*news, items(json!([{"id": 0, "text": "flood in Passau", "attributes": {"even": true}}])))
        .unwrap();
    let indexed = home.index("news", &engine, false, &mut |_| ()).unwrap();
    assert_eq!(indexed, Indexed { made: 1, dropped: 0 });
    assert!(nearest(&json!({"even": true})).contains(&0));
    put(&*news, items(json!([{"id": "new", "text": "a flood"}]))).unwrap();
    let texts = vec!["flood"];
    let shortlist = Choice::Shortlist(Shortlist { engine: &engine, texts, length: 3 });
    let stopped = news.choose(&Which::default(), &shortlist, 0, Cancellation::when(&|| true));
    assert!(matches!(stopped, Err(ChooseError::Stopped)));
}

/// The three of some texts that are nearest to another.
fn nearest_of(engine: &Engine, one: &str, texts: &[String], among: Vec<usize>) -> Vec<usize> {
    let pairs: Vec<(&str, &str)> = among.iter().map(|at| (one, &*texts[*at])).collect();
    let scores = engine.similarity(&pairs, &Query::new(SHORTLIST_METHOD)).unwrap().scores;
    let mut ranked: Vec<(f32, usize)> = scores.into_iter().zip(among).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    ranked.iter().take(3).map(|(_, at)| *at).collect()
}
