//! The contract of every home: after the same steps it holds and answers the same as a home in
//! memory.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use cognate::engine::Engine;
use cognate::methods::Method;
use cognate::window;
use cognate::window::events::Rule;
use cognate::window::stream::AddPolicy;
use cognate::window::{stream, usual};
use cognate_files::instant;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Alert, AlertKind, AlertReader, AlertRule, Applied, Cancellation, Choice, ChooseError,
    Collection, CollectionError, Cursor, EmbeddedHome, EventChange, Facets, Filter, Home, Incoming,
    Item, ItemPatch, ItemSelector, Limits, MatchOptions, Matched, Outgoing, Page, Settings,
    SettingsChange, SharedEngine, Start, Write,
};

/// Few items, so that random steps reach the limit.
pub(super) const LIMITS: Limits = Limits { collections: 2, items: 40, ..Limits::DEFAULT };

const TEXTS: [&str; 8] = [
    "Strong earthquake shakes the city of Lima tonight",
    "Strong earthquake shakes Lima, people run out of their houses",
    "The river floods the old town of Passau",
    "Flood in the old town of Passau: the river rises",
    "my cat sleeps on the keyboard again",
    "Sturm über Köln: Bäume fallen, 東京 auch 🌪️",
    "xqzvw",
    "\"quoted\" \\ back\tslash",
];

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The number of each item, and which text, age and attributes it has.
    Put(Vec<(usize, usize, i64, usize)>),
    /// As `Put`, whether items of the same name are replaced, and which items are added.
    Match(Vec<(usize, usize, i64, usize)>, bool, AddPolicy),
    /// The numbers of the items, and which attributes, data and age they get.
    Patch(Vec<(usize, usize, Option<i64>)>),
    Remove(Vec<usize>),
    /// Removes items by filter, event and age.
    RemoveSelected(usize, Option<usize>, Option<i64>),
    /// Merges these events into the event of this number.
    Merge(usize, Vec<usize>),
    /// Splits these items from the event of this number.
    Split(usize, Vec<usize>),
    /// `max_items`, `ttl_ms`, and whether items beyond them may be dropped.
    Set(Option<usize>, Option<i64>, bool),
    Tidy,
    Wait(i64),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let items = || prop::collection::vec((0usize..24, 0usize..8, 0i64..60, 0usize..12), 1..9);
    let policies = prop::sample::select(vec![
        AddPolicy::All,
        AddPolicy::All,
        AddPolicy::All,
        AddPolicy::New,
        AddPolicy::None,
    ]);
    let step = prop_oneof![
        5 => items().prop_map(Step::Put),
        4 => (items(), any::<bool>(), policies)
            .prop_map(|(items, replace, add)| Step::Match(items, replace, add)),
        3 => prop::collection::vec((0usize..24, 0usize..12, prop::option::of(0i64..60)), 1..4)
            .prop_map(Step::Patch),
        2 => prop::collection::vec(0usize..24, 0..4).prop_map(Step::Remove),
        1 => (1usize..60, prop::option::of(0usize..24), prop::option::of(1i64..30))
            .prop_map(|(filter, event, within)| Step::RemoveSelected(filter, event, within)),
        2 => (0usize..24, prop::collection::vec(0usize..24, 1..3))
            .prop_map(|(into, events)| Step::Merge(into, events)),
        2 => (0usize..24, prop::collection::vec(0usize..24, 1..3))
            .prop_map(|(event, ids)| Step::Split(event, ids)),
        1 => (prop::option::of(3usize..20), prop::option::of(20i64..90), any::<bool>())
            .prop_map(|(most, ttl, drop)| Step::Set(most, ttl, drop)),
        1 => Just(Step::Tidy),
        1 => (0i64..40).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..16)
}

/// Returns one of several sets of attributes, some of which differ only in kind or in the last digit.
fn attributes(choice: usize) -> Value {
    match choice {
        0 => json!({}),
        1 => json!({"lang": "en", "year": 2020}),
        2 => json!({"lang": "de", "year": 2021.0}),
        3 => json!({"lang": "en", "year": 2021}),
        4 => json!({"lang": "d\u{e9}", "open": true}),
        5 => json!({"year": "2021", "open": false}),
        6 => json!({"big": 9_007_199_254_740_993_u64, "lang": ""}),
        7 => json!({"big": 9_007_199_254_740_992_u64, "lang": "EN"}),
        8 => json!({"year": -1.5e300, "big": u64::MAX}),
        9 => json!({"year": 0.1, "a'\"b": "x", "lang": "zz"}),
        10 => json!({"year": 2020.5, "open": true, "lang": "en"}),
        _ => json!({"any thing": 1, "lang": "f", "big": i64::MIN}),
    }
}

fn patch(choice: usize, time: Option<i64>) -> ItemPatch {
    let mut written = json!({"attributes": attributes(choice)});
    match choice % 4 {
        0 => written["attributes"]["lang"] = json!(null),
        1 => written["data"] = json!({"k": null, "new": {"a": [choice], "b": null}}),
        2 => written["data"] = json!(null),
        // No item has an attribute of this name.
        _ => written["attributes"]["any"] = if choice == 11 { json!(1) } else { json!(null) },
    }
    if choice == 6 {
        written["attributes"] = json!(null);
    }
    if let Some(time) = time {
        written["time"] = json!(instant::written_exactly(time));
    }
    serde_json::from_value(written).unwrap()
}

fn filters() -> Vec<Value> {
    let mut filters = vec![
        json!({}),
        json!({"lang": "en"}),
        json!({"lang": ["de", "en", "d\u{e9}"]}),
        json!({"lang": []}),
        json!({"lang": {"ne": "en"}}),
        json!({"lang": {"ne": ["en", 1, true]}}),
        json!({"lang": {"exists": true}, "year": {"exists": false}}),
        json!({"open": true}),
        json!({"open": {"ne": false}}),
        json!({"year": 2021}),
        json!({"year": "2021"}),
        json!({"year": [2020, 2021.0, 0.1]}),
        json!({"year": {"gte": 2020, "lt": 2021}}),
        json!({"year": {"gt": 2020.4}}),
        json!({"year": {"lt": -1e299}}),
        json!({"lang": {"gt": "d", "lte": "en"}}),
        json!({"lang": {"gte": "EN", "lt": "d\u{ea}"}}),
        json!({"big": 9_007_199_254_740_993_u64}),
        json!({"big": {"gt": 9_007_199_254_740_992_u64}}),
        json!({"big": {"lte": 9_007_199_254_740_992.0}}),
        json!({"a'\"b": "x"}),
        json!({"any thing": {"exists": true}}),
        json!({"time": {"gte": "1970-01-01T00:16:39.970Z", "lt": "1970-01-01T00:16:40.010Z"}}),
        json!({"time": [999.98, "1970-01-01T00:16:40Z"], "lang": "en"}),
        json!({"time": []}),
        json!({"not": {"time": {"gt": 999.97}}}),
        json!({"time": {"ne": 1000, "exists": true, "lte": "1970-01-02"}}),
        json!({"any": [{"lang": "en", "year": 2020}, {"open": true}]}),
        json!({"any": []}),
        json!({"not": {"any": [{"lang": "en"}, {"year": {"gt": 0}}]}}),
        json!({"not": {}}),
    ];
    // No home finds an item with the character U+0000 in its id.
    for nul in ["\u{0}", "d\u{0}", "en\u{0}x"] {
        for operator in ["eq", "ne", "gt", "gte", "lt", "lte"] {
            filters.push(json!({"lang": {operator: nul}}));
        }
        filters.push(json!({nul: {"exists": false}}));
        filters.push(json!({nul: "x"}));
    }
    filters
}

fn items(list: &[(usize, usize, i64, usize)], now: i64) -> Vec<Item> {
    let item = |&(id, text, age, choice): &(usize, usize, i64, usize)| {
        let data = [json!(null), json!({"k": [1, 2.50, "\u{e9}"], "z": {}})][choice % 2].clone();
        let written = json!({
            "id": format!("n{id}"), "text": TEXTS[text], "attributes": attributes(choice),
            "data": data, "time": null,
        });
        serde_json::from_value::<Incoming>(written).unwrap().into_item(now - age)
    };
    list.iter().map(item).collect()
}

pub(super) fn how() -> MatchOptions {
    let stream = stream::Settings {
        method: Method::AvgCos,
        second: Some(Method::Coverage),
        nearest: 4,
        floor: 0.3,
        drop_opposed: None,
        rule: Rule {
            threshold: 0.5,
            votes: 4,
            steps: [0.0; 3],
            centre: usual::CENTRE,
            duplicate: 0.99,
        },
        limits: window::Limits { last: 6, within: None },
    };
    MatchOptions {
        stream,
        filter: Filter::default(),
        add: AddPolicy::All,
        explain: true,
        replace: false,
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    items: usize,
    settings: Settings,
    pages: Vec<(Vec<String>, usize)>,
    chosen: Vec<Vec<String>>,
    lacking: Vec<Vec<String>>,
    facets: Vec<Facets>,
    alerts: Vec<String>,
}

/// The alerts of a reader that begins at `start`.
fn alerts(
    collection: &dyn Collection,
    engine: &Engine,
    start: Start,
    now: i64,
) -> Vec<(String, Cursor)> {
    let kinds = AlertKind::ALL.to_vec();
    let rule = AlertRule { least: 1, grown: vec![2, 3, 5], kinds, chatter: None };
    let mut reader = AlertReader::open(collection, rule, start, now).unwrap();
    assert!(!reader.has_gap());
    let mut all = Vec::new();
    loop {
        let (alerts, more) = reader.read(collection, engine, now, Cancellation::NEVER).unwrap();
        let told = |alert: Alert| {
            let Alert { kind, event, size, item, chatter, from, cursor } = alert;
            let item = item.as_deref().map(|item| &item.id);
            (format!("{kind:?} {event} {size} {item:?} {chatter:?} {from:?} {cursor}"), cursor)
        };
        all.extend(alerts.into_iter().map(told));
        if !more {
            return all;
        }
    }
}

fn written(item: &Arc<Item>) -> String {
    serde_json::to_string(&Outgoing::whole(item)).unwrap()
}

pub(super) fn seen(collection: &dyn Collection, engine: &Engine, now: i64) -> Seen {
    let told = collection.told(now).unwrap();
    let (mut pages, mut chosen, mut lacking) = (Vec::new(), Vec::new(), Vec::new());
    let mut facets = Vec::new();
    for (place, filter) in filters().iter().enumerate() {
        let filter = Filter::read(&filter.to_string()).unwrap();
        let missing = collection.lacking(&filter.names(), now, Cancellation::NEVER).unwrap();
        lacking.push(missing.iter().map(|asked| format!("{asked:?}")).collect());
        let without =
            if place % 3 == 0 { ["n1", "n\u{0}"].map(Cow::from).into() } else { [].into() };
        let within = (place % 2 == 1).then_some(30);
        // Events are named after the item that they began with.
        let event = [None, Some("n0"), Some("n1"), Some("n\u{0}")][place / 5 % 4];
        let event = event.filter(|_| place % 5 == 0).map(Cow::from);
        let which = ItemSelector { filter, event, within, without };
        let page = Page { offset: place % 3, limit: 5 };
        let (items, total) = collection.page(&which, page, now, Cancellation::NEVER).unwrap();
        pages.push((items.iter().map(written).collect(), total));
        let names = ["lang", "year", "open", "big", "none", "n\u{0}"];
        let asked = (&names[..], place % 4);
        facets.push(collection.facets(&which, asked, now, Cancellation::NEVER).unwrap());
        let all = collection.choose(&which, &Choice::All, now, Cancellation::NEVER).unwrap().items;
        let is_in_order = all.is_sorted_by(|(one, _), (next, _)| one < next);
        assert!(is_in_order, "numbers grow");
        chosen.push(all.iter().map(|(_, item)| written(item)).collect());
    }
    let alerts =
        alerts(collection, engine, Start::First, now).into_iter().map(|(told, _)| told).collect();
    Seen { items: told.items, settings: told.settings, pages, chosen, lacking, facets, alerts }
}

#[derive(Debug, PartialEq)]
pub(super) enum Came {
    Of(Applied),
    Matched(Vec<Matched>),
    Refused(String),
    Nothing,
}

pub(super) fn take(home: &dyn Home, engine: &SharedEngine, step: &Step, now: i64) -> Came {
    let news = home.get("news").unwrap();
    let write = |wanted| match news.change(wanted, now) {
        Ok(applied) => Came::Of(applied),
        Err(
            error @ (CollectionError::TooManyItems { .. }
            | CollectionError::Item { .. }
            | CollectionError::NoEvent
            | CollectionError::EventChange { .. }),
        ) => Came::Refused(format!("{error:?}")),
        Err(error) => panic!("{error}"),
    };
    // Wraps round the items that exist, so that most steps find an event.
    let there = || {
        let all = ItemSelector::default();
        let chosen = news.choose(&all, &Choice::All, now, Cancellation::NEVER).unwrap();
        chosen.items.into_iter().map(|(_, item)| item).collect::<Vec<_>>()
    };
    let name = |there: &[Arc<Item>], number: usize| match there.get(number % there.len().max(1)) {
        Some(item) => item.id.clone(),
        None => "no\u{0}ne".into(),
    };
    let event = |there: &[Arc<Item>], number: usize| {
        let of = there.iter().cycle().skip(number).take(there.len());
        let event = of.filter_map(|item| item.event.as_ref()).next();
        event.map_or_else(|| name(there, number), |event| event.id.clone())
    };
    let moved = |change: EventChange| {
        let is_of = |item: &&Arc<Item>| change.events().iter().any(|event| item.is_of_event(event));
        let before = there();
        let count = before.iter().filter(is_of).count();
        assert_eq!(news.count_of(&change, now, Cancellation::NEVER).unwrap(), count);
        // What has no room changes nothing.
        let _ = news.change(Write::Move(change.clone(), 0), now);
        assert!(there().iter().zip(&before).all(|(now, before)| now.is(before)));
        write(Write::Move(change, usize::MAX))
    };
    match step {
        Step::Merge(into, events) => {
            let there = there();
            let events = events.iter().map(|&number| event(&there, number)).collect();
            moved(EventChange::Merge { into: event(&there, *into), events })
        }
        Step::Split(number, ids) => {
            let there = there();
            let of = event(&there, *number);
            let items: Vec<_> =
                there.iter().filter(|item| item.is_of_event(&of)).cloned().collect();
            let ids = ids.iter().map(|&number| name(&items, number)).collect();
            moved(EventChange::Split { event: of, ids })
        }
        Step::Put(list) => write(Write::Put(items(list, now))),
        Step::Patch(list) => {
            let there = there();
            let one = |&(number, choice, age): &(usize, usize, Option<i64>)| {
                (name(&there, number), patch(choice, age.map(|age| now - age)))
            };
            write(Write::Patch(list.iter().map(one).collect()))
        }
        Step::RemoveSelected(filter, of, within) => {
            let filters = filters();
            let filter = Filter::read(&filters[filter % filters.len()].to_string()).unwrap();
            let event = of.map(|number| Cow::Owned(event(&there(), number).into()));
            let within = *within;
            write(Write::RemoveSelected(ItemSelector {
                filter,
                event,
                within,
                ..Default::default()
            }))
        }
        Step::Remove(ids) => {
            write(Write::Remove(ids.iter().map(|id| format!("n{id}").into()).collect()))
        }
        Step::Set(max_items, ttl_ms, drop) => {
            let settings =
                Settings { max_items: *max_items, ttl_ms: *ttl_ms, ..Settings::default() };
            let change = SettingsChange { drop: *drop, ..settings.into() };
            match home.set("news", change, now) {
                Ok(_) => Came::Nothing,
                Err(error @ CollectionError::WouldDrop { .. }) => {
                    Came::Refused(format!("{error:?}"))
                }
                Err(error) => panic!("{error}"),
            }
        }
        Step::Tidy => {
            news.tidy(now).unwrap();
            Came::Nothing
        }
        Step::Match(list, replace, add) => {
            let filters = filters();
            let filter = filters[list.len() % filters.len()].to_string();
            let filter = if list.len() % 2 == 1 { &*filter } else { "{}" };
            let filter = Filter::read(filter).unwrap();
            let how = MatchOptions { replace: *replace, filter, add: *add, ..how() };
            match news.follow(engine.clone(), &how, items(list, now), now, Cancellation::NEVER) {
                Ok((matched, pending)) => {
                    news.wait_durable(pending).unwrap();
                    Came::Matched(matched)
                }
                Err(ChooseError::Collection(
                    error @ (CollectionError::TooManyItems { .. }
                    | CollectionError::Item { .. }
                    | CollectionError::OtherText { .. }),
                )) => Came::Refused(format!("{error:?}")),
                Err(error) => panic!("{error}"),
            }
        }
        Step::Wait(_) => Came::Nothing,
    }
}

pub(super) fn engine() -> SharedEngine {
    struct OwnedEngine(Engine);
    impl AsRef<Engine> for OwnedEngine {
        fn as_ref(&self) -> &Engine {
            &self.0
        }
    }
    let model = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors"));
    SharedEngine::share(Arc::new(OwnedEngine(Engine::open(model, &Default::default()).unwrap())))
}

/// Runs the same steps on a home, which `open` reopens before some of them, and on a home in
/// memory, and compares both.
pub(super) fn hold(
    open: &mut dyn FnMut(Limits) -> Box<dyn Home>,
    engine: &SharedEngine,
    steps: &[Step],
) {
    let model = EmbeddedHome::in_memory(LIMITS);
    let mut home = open(LIMITS);
    let mut now = 1_000_000;
    for home in [&model as &dyn Home, &*home] {
        assert!(home.set("news", Settings::default().into(), now).unwrap().1);
    }
    for (place, step) in steps.iter().enumerate() {
        if place % 5 == 4 {
            drop(home);
            home = open(LIMITS);
        }
        if let Step::Wait(time) = step {
            now += time;
        }
        let (expected, came) = (take(&model, engine, step, now), take(&*home, engine, step, now));
        assert_eq!(came, expected, "step {place}");
        let news = home.get("news").unwrap();
        let expected = seen(&*model.get("news").unwrap(), engine, now);
        assert_eq!(seen(&*news, engine, now), expected, "step {place}");
    }
    show_alike(&model, &*home, engine, now);
    hold_spans(&*home, engine, now);
    hold_names(&*home, now);
}

pub(super) fn show_alike(model: &dyn Home, home: &dyn Home, engine: &SharedEngine, now: i64) {
    let news = |home: &dyn Home| home.get("news").unwrap();
    assert_eq!(seen(&*news(home), engine, now), seen(&*news(model), engine, now));
    // A reader that began at one home continues at another.
    let told = alerts(&*news(model), engine, Start::First, now);
    for (place, (_, cursor)) in told.iter().enumerate() {
        let cursor = cursor.to_string().parse().unwrap();
        let rest = alerts(&*news(home), engine, Start::After(cursor), now);
        let rest: Vec<&String> = rest.iter().map(|(told, _)| told).collect();
        let expected: Vec<&String> = told[place + 1..].iter().map(|(told, _)| told).collect();
        assert_eq!(rest, expected);
    }
    let ids = ["n0", "n5", "no\u{0}ne", "n9", "n5"];
    let found = |home: &dyn Home| {
        let found = news(home).find(&ids, now).unwrap();
        found.iter().map(|item| item.as_ref().map(written)).collect::<Vec<_>>()
    };
    assert_eq!(found(home), found(model));
    for id in ids.into_iter().chain(["n1", "n2", "n3"]) {
        let explained = |home: &dyn Home| {
            news(home).explain(engine.clone(), &how(), id, now, Cancellation::NEVER).unwrap()
        };
        assert_eq!(explained(home), explained(model));
    }
}

/// A late item joins no event of a much later time, and an item after one with a wrong clock joins
/// no event of a much earlier time.
fn hold_spans(home: &dyn Home, engine: &SharedEngine, now: i64) {
    let news = home.set("spans", Settings::default().into(), now).unwrap().0;
    let mut how = how();
    how.stream.limits.within = Some(1000);
    let late = [(0, 0, true), (1, -1001, true), (2, -500, false), (3, 1501, true), (4, 400, false)];
    for (id, after, is_new) in late {
        let item = items(&[(id, 0, -after, 0)], now);
        let matched = news.follow(engine.clone(), &how, item, now, Cancellation::NEVER);
        let (matched, pending) = matched.unwrap();
        news.wait_durable(pending).unwrap();
        assert_eq!(matched[0].new, is_new, "{id}: {matched:?}");
    }
    home.delete("spans").unwrap();
}

/// Collections are made, deleted and refused alike in every home.
fn hold_names(home: &dyn Home, now: i64) {
    assert!(!home.set("news", Settings::default().into(), now).unwrap().1);
    assert!(home.set("more", Settings::default().into(), now).unwrap().1);
    let refused = home.set("third", Settings::default().into(), now).unwrap_err();
    assert!(matches!(refused, CollectionError::TooMany { limit: 2 }), "{refused}");
    let refused = home.set("Bad name", Settings::default().into(), now).unwrap_err();
    assert!(matches!(refused, CollectionError::BadName), "{refused}");
    let wide = Settings { max_items: Some(LIMITS.items + 1), ttl_ms: None, ..Settings::default() };
    let refused = home.set("news", wide.into(), now).unwrap_err();
    assert!(matches!(refused, CollectionError::TooManyItems { .. }), "{refused}");
    let names = |home: &dyn Home| {
        home.all().unwrap().iter().map(|one| one.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(home), ["more", "news"]);
    assert_eq!(home.totals(now).collections, 2);
    home.delete("more").unwrap();
    for name in ["more", "no name", "n\u{0}"] {
        assert!(matches!(home.delete(name), Err(CollectionError::Unknown)), "{name}");
        let asked = home.get(name).and_then(|collection| collection.told(now));
        assert!(matches!(asked, Err(CollectionError::Unknown)), "{name}");
    }
    assert_eq!(names(home), ["news"]);
}
