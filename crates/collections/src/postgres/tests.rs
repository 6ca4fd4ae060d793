//! The contract over a real server: `TEST_COGNATE_POSTGRES` is the URL of a database that these
//! tests may fill and empty. `.ci/long postgres` starts one.

use std::time::Duration;

use cognate::engine::Query;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;

use crate::postgres::{IndexKind, Indexed, PostgresHome};
use crate::{
    Cancellation, Choice, ChooseError, Filter, Home, Incoming, Item, ItemSelector, Limits,
    SHORTLIST_METHOD, Settings, Several, TopQuery, Write, contract,
};

static DATABASE: Mutex<()> = Mutex::new(());

fn url() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests alone look for a server")]
    std::env::var("TEST_COGNATE_POSTGRES")
        .expect("TEST_COGNATE_POSTGRES is the URL of a database; `.ci/long postgres` starts one")
}

fn open(limits: Limits) -> PostgresHome {
    PostgresHome::open(&url(), limits, Duration::from_secs(20)).unwrap()
}

fn empty() {
    PostgresHome::init(&url()).unwrap();
    let home = open(Limits::DEFAULT);
    for collection in home.all().unwrap() {
        home.delete(collection.name()).unwrap();
    }
}

#[test]
fn a_database_holds_the_contract() {
    let _one = DATABASE.lock();
    let engine = contract::engine();
    let config = ProptestConfig { cases: 40, ..ProptestConfig::default() };
    proptest!(config, |(steps in contract::steps())| {
        empty();
        contract::hold(&mut |limits| Box::new(open(limits)), &engine, &steps);
    });
}

#[test]
fn a_shortlist_has_the_nearest_with_and_without_an_index() {
    let _one = DATABASE.lock();
    empty();
    let (home, engine) = (open(Limits::DEFAULT), contract::engine());
    let (news, _) = home.set("news", Settings::default().into(), 0).unwrap();
    let places = ["Lima", "Passau", "Tokyo", "the garden", "a small town", "the parliament"];
    let doings = ["strong earthquake in", "river floods", "my cat sleeps in", "prices rise in"];
    let texts = doings.iter().flat_map(|doing| places.map(|place| format!("{doing} {place}")));
    let texts: Vec<String> = texts.chain(["xqzvw".to_owned()]).collect();
    let item = |(at, text): (usize, &String)| {
        let written = json!({"id": at, "text": text, "attributes": {"even": at % 2 == 0}});
        serde_json::from_value::<Incoming>(written).unwrap().into_item(0)
    };
    let items: Vec<Item> = texts.iter().enumerate().map(item).collect();
    news.change(Write::Put(items), 0).unwrap();
    let asked = ["earthquake shakes Tokyo", "flood in Passau"];
    let nearest = |even: bool| {
        let texts = asked.map(|text| (text, 1.0)).into();
        let shortlist = TopQuery { engine: &engine, texts, several: Several::Each, length: 3 };
        let filter = if even { json!({"even": true}) } else { json!({}) };
        let which = ItemSelector {
            filter: Filter::read(&filter.to_string()).unwrap(),
            ..ItemSelector::default()
        };
        let found = news
            .choose(&which, &Choice::Shortlist(shortlist), 0, Cancellation::NEVER)
            .unwrap()
            .items;
        found.iter().map(|(number, _)| *number as usize).collect::<Vec<usize>>()
    };
    let expected = |even: bool| {
        let mut all = std::collections::BTreeSet::new();
        for one in asked {
            let among: Vec<usize> =
                (0..texts.len() - 1).filter(|at| !even || at % 2 == 0).collect();
            let pairs: Vec<(&str, &str)> = among.iter().map(|at| (one, &*texts[*at])).collect();
            let scores = engine.similarity(&pairs, &Query::new(SHORTLIST_METHOD)).unwrap().scores;
            let mut ranked: Vec<(f32, usize)> = scores.into_iter().zip(among).collect();
            ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
            all.extend(ranked.iter().take(3).map(|(_, at)| *at));
        }
        all.into_iter().collect::<Vec<usize>>()
    };
    for even in [false, true] {
        assert_eq!(nearest(even), expected(even));
    }
    for kind in [IndexKind::Hnsw, IndexKind::IvfFlat] {
        let indexed = home.index("news", &engine, (Some(kind), true), &mut |_| ()).unwrap();
        assert_eq!(indexed, Indexed { made: 0, dropped: 0 });
        for even in [false, true] {
            assert_eq!(nearest(even), expected(even), "{kind}");
        }
    }
    // A replaced item has the vector of its new text.
    let fresh = json!({"id": 0, "text": "flood in Passau", "attributes": {"even": true}});
    let fresh = serde_json::from_value::<Incoming>(fresh).unwrap().into_item(0);
    news.change(Write::Put(vec![fresh]), 0).unwrap();
    assert!(nearest(true).contains(&texts.len()));
    let texts = vec![("flood", 1.0)];
    news.change(Write::Remove(vec!["0".into()]), 0).unwrap();
    let item = json!({"id": "new", "text": "a flood"});
    let item = serde_json::from_value::<Incoming>(item).unwrap().into_item(0);
    news.change(Write::Put(vec![item]), 0).unwrap();
    let shortlist =
        Choice::Shortlist(TopQuery { engine: &engine, texts, several: Several::Each, length: 3 });
    let stopped =
        news.choose(&ItemSelector::default(), &shortlist, 0, Cancellation::when(&|| true));
    assert!(matches!(stopped, Err(ChooseError::Stopped)));
}
