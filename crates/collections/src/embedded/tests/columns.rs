//! Columns of attributes admit what a filter admits item by item, whatever was written since they
//! were made.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::embedded::bits::ones;
use crate::embedded::columns::Chunk;
use crate::embedded::{EmbeddedCollection, EmbeddedHome, View};
use crate::{
    AskedAttribute, AttributeKind, Cancellation, Choice, Collection, Filter, Home, Incoming,
    ItemSelector, Limits, Page, Settings, Write,
};

const NAMES: [&str; 4] = ["a", "b", "c", "none"];

fn values() -> Vec<Value> {
    let long = "fourteen bytes and more";
    let texts = [
        "",
        "x",
        "x\0",
        "xy",
        "é",
        "fourteen bytes",
        long,
        "fourteen bytes and less",
        "fourteen byt",
    ];
    let texts = texts.into_iter().map(Value::from);
    let floats =
        [0.5, -0.0, 2.0, -1e300, 1e300, 9_007_199_254_740_992.0, 18_446_744_073_709_551_616.0];
    let whole = [0, 2, -1, i64::MIN, i64::MAX, 9_007_199_254_740_993, 9_007_199_254_740_992];
    let numbers = floats.into_iter().map(Value::from).chain(whole.into_iter().map(Value::from));
    let others = [json!(true), json!(false), json!(u64::MAX)];
    texts.chain(numbers).chain(others).collect()
}

fn value() -> impl Strategy<Value = Value> {
    // Mostly few different values, as real attributes have.
    prop_oneof![prop::sample::select(vec![json!("x"), json!(2)]), prop::sample::select(values())]
}

fn attributes() -> impl Strategy<Value = Value> {
    prop::collection::vec(prop::option::of(value()), 3).prop_map(|values| {
        let named = NAMES.iter().zip(values).filter_map(|(name, value)| Some((*name, value?)));
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<serde_json::Map<_, _>>()
            .into()
    })
}

fn filter() -> impl Strategy<Value = Value> {
    let test = prop_oneof![
        value(),
        prop::collection::vec(value(), 0..4).prop_map(Value::from),
        prop::collection::vec(value(), 1..3).prop_map(|list| json!({ "ne": list })),
        any::<bool>().prop_map(|there| json!({ "exists": there })),
        (prop::sample::select(vec!["gt", "gte", "lt", "lte"]), value())
            .prop_filter("truths have no order", |(_, value)| !value.is_boolean())
            .prop_map(|(side, value)| json!({ side: value })),
    ];
    let time = (prop::sample::select(vec!["gte", "lt", "ne"]), 0..100_u32).prop_map(
        |(side, milliseconds)| json!({ side: format!("1970-01-01T00:00:00.{milliseconds:03}Z") }),
    );
    let flat = prop::collection::btree_map(prop::sample::select(&NAMES), test, 0..3);
    let flat = (flat, prop::option::of(time)).prop_map(|(mut tests, time)| {
        tests.extend(time.map(|time| ("time", time)));
        json!(tests)
    });
    flat.prop_recursive(2, 6, 3, |inner| {
        let any = prop::collection::vec(inner.clone(), 0..3);
        (inner.clone(), any, inner)
            .prop_map(|(not, any, rest)| json!({"not": not, "any": any, "c": rest["c"].clone()}))
            .prop_map(|mut all| {
                all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                all
            })
    })
}

fn expected(view: &View, filter: &Filter) -> Vec<u64> {
    let admitted = view.numbered().filter(|(_, item)| filter.admits(&item.attributes, item.time));
    admitted.map(|(number, _)| number).collect()
}

fn check(news: &EmbeddedCollection, filters: &[Filter], now: i64) -> Result<(), TestCaseError> {
    for filter in filters {
        for within in [None, Some(30), Some(-1000)] {
            let which = ItemSelector { filter: filter.clone(), within, ..ItemSelector::default() };
            let oldest = news.settings().oldest_within(within, now);
            let expected = expected(&View { oldest, ..news.view(now) }, filter);
            let found = news.choose(&which, &Choice::All, now, Cancellation::NEVER).unwrap().items;
            let numbers: Vec<u64> = found.iter().map(|(number, _)| *number).collect();
            prop_assert_eq!(&numbers, &expected, "{:?} {:?}", filter, within);
            let page = Page { offset: 3, limit: 5 };
            let (page, total) = news.page(&which, page, now, Cancellation::NEVER).unwrap();
            prop_assert_eq!(total, expected.len());
            let of_all = found.iter().skip(3).take(5);
            prop_assert!(page.iter().zip(of_all).all(|(one, (_, other))| Arc::ptr_eq(one, other)));
        }
    }
    use AttributeKind::{Number, Text, Truth};
    let kinds = [None, Some(Number), Some(Text), Some(Truth)];
    let names: BTreeSet<AskedAttribute<'_>> =
        NAMES.iter().flat_map(|name| kinds.map(|kind| (*name, kind))).collect();
    let lacks =
        |asked: &AskedAttribute<'_>| news.view(now).iter().all(|item| !item.attributes.have(asked));
    let lacking = news.lacking(&names, now, Cancellation::NEVER).unwrap();
    prop_assert!(news.view(now).iter().next().is_none() || lacking.iter().all(lacks));
    prop_assert!(names.iter().all(|asked| lacking.contains(asked) || !lacks(asked)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn they_admit_what_a_filter_admits(
        made in prop::collection::vec((attributes(), 0i64..100), 1..40),
        writes in prop::collection::vec((0usize..3, 0usize..1400, attributes(), 0i64..100), 0..40),
        filters in prop::collection::vec(filter(), 1..6),
        ttl_ms in prop::option::of(40i64..90),
        is_poor in any::<bool>(),
    ) {
        let home = EmbeddedHome::in_memory(Limits { bytes: 4 << 20, ..Limits::DEFAULT });
        let (news, _) = home.make("news", Settings { ttl_ms, ..Settings::default() }, 0).unwrap();
        let item = |id: usize, attributes: &Value, time: i64| {
            let written = json!({"id": format!("n{id}"), "text": "a", "attributes": attributes});
            serde_json::from_value::<Incoming>(written).unwrap().into_item(time)
        };
        let items = made.iter().cycle().take(1100).enumerate();
        let items = items.map(|(id, (attributes, time))| item(id, attributes, *time));
        news.put(items.collect(), 99).unwrap();
        // There is memory for few columns: else items are tested one by one.
        let others = if is_poor { (3 << 20) - home.bytes() - 20_000 } else { 0 };
        news.budget.charge_unchecked(others);
        let filters: Vec<Filter> =
            filters.iter().map(|filter| Filter::read(&filter.to_string()).unwrap()).collect();
        check(&news, &filters, 99)?;
        let (before, there) = (news.view(99), expected(&news.view(99), &filters[0]));
        for (kind, id, attributes, time) in &writes {
            let id = format!("n{id}");
            let write = match kind {
                0 => Write::Put(vec![item(id[1..].parse().unwrap(), attributes, *time)]),
                1 => Write::Remove(vec![id.into()]),
                _ => {
                    let patch = json!({"time": time, "attributes": attributes});
                    Write::Patch(vec![(id.into(), serde_json::from_value(patch).unwrap())])
                }
            };
            let _ = news.write(write, 99).unwrap();
        }
        check(&news, &filters, 99)?;
        check(&news, &filters, 120)?;
        // A reader that began before the writes sees the earlier items.
        let which = ItemSelector { filter: filters[0].clone(), ..ItemSelector::default() };
        let chunks = before.table.chunks();
        let meant = |chunk: &Chunk| ones(&chunk.meant(&which, before.oldest, news.columns_of(&BTreeSet::new())));
        prop_assert_eq!(chunks.map(meant).sum::<usize>(), there.len());
        drop((before, news));
        home.delete("news").unwrap();
        prop_assert_eq!(home.bytes(), others);
    }
}
