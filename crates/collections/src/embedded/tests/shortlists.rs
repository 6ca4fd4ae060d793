//! Shortlists have the items that are nearest by the vectors themselves, in the memory that is
//! counted.

use std::borrow::Cow;
use std::fs;
use std::sync::{Arc, LazyLock};

use cognate::engine::{Engine, Query};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use proptest::prelude::*;
use serde_json::json;

use crate::embedded::tests::item;
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{
    Cancellation, Choice, Collection, Filter, Home, Item, ItemSelector, Limits, SHORTLIST_METHOD,
    Settings, Several, TopQuery,
};

const WORDS: [&str; 12] = [
    "quake", "city", "river", "flood", "election", "kitchen", "garden", "dragon", "ring",
    "football", "%", "storm",
];

pub(super) static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
    Engine::open(path.as_ref(), &Default::default()).unwrap()
});

pub(super) fn real() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/texts.txt");
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn vector_of(text: &str) -> Option<Vec<f32>> {
    let made = ENGINE.embed(&[text], &Query::new(SHORTLIST_METHOD)).unwrap();
    made.get(0).map(<[f32]>::to_vec)
}

type Rows = Vec<(u64, Vec<f32>)>;

fn rows(items: &[(u64, Arc<Item>)]) -> Rows {
    items.iter().filter_map(|(number, item)| Some((*number, vector_of(&item.text)?))).collect()
}

/// Each item's cosine with a text, from the vectors themselves, the best first.
fn exact(asked: &str, rows: &Rows) -> Vec<(f32, u64)> {
    let Some(asked) = vector_of(asked) else { return vec![] };
    let cosine = |(number, vector): &(u64, Vec<f32>)| {
        (vector::cosine(Row::F32(&asked), Row::F32(vector)), *number)
    };
    let mut all: Vec<(f32, u64)> = rows.iter().map(cosine).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    all
}

fn nearest(
    news: &EmbeddedCollection,
    which: &ItemSelector<'_>,
    texts: &[&str],
    length: usize,
    now: i64,
) -> Vec<u64> {
    let texts = texts.iter().map(|text| (*text, 1.0)).collect();
    let wanted =
        Choice::Shortlist(TopQuery { engine: &ENGINE, texts, several: Several::Each, length });
    let found = news.choose(which, &wanted, now, Cancellation::NEVER).unwrap().items;
    assert!(found.is_sorted_by(|(one, _), (next, _)| one < next), "numbers grow");
    found.into_iter().map(|(number, _)| number).collect()
}

fn all_of(of: &EmbeddedCollection, which: &ItemSelector<'_>) -> Vec<(u64, Arc<Item>)> {
    of.choose(which, &Choice::All, 0, Cancellation::NEVER).unwrap().items
}

pub(super) fn with(
    texts: impl Iterator<Item = String>,
    limits: Limits,
) -> (EmbeddedHome, Arc<EmbeddedCollection>) {
    let home = EmbeddedHome::in_memory(limits);
    let (news, _) = home.make("news", Settings::default(), 0).unwrap();
    let items = texts.enumerate().map(|(at, text)| item(at, &text, at as i64)).collect();
    news.put(items, 0).unwrap();
    (home, news)
}

#[test]
fn the_nearest_of_real_texts_are_on_the_list() {
    let texts = real();
    assert!(texts.len() > 500, "{}", texts.len());
    let (asked, kept) = texts.split_at(60);
    let (_home, news) = with(kept.iter().cloned(), Limits::DEFAULT);
    let all = ItemSelector::default();
    let rows = rows(&all_of(&news, &all));
    for length in [1, 10, 40] {
        let mut missed = 0;
        for text in asked {
            let found = nearest(&news, &all, &[text], length, 0);
            let exact = exact(text, &rows);
            assert_eq!(found.len(), length, "{text}");
            let border = exact[length - 1].0;
            let score = |number| exact.iter().find(|one| one.1 == number).unwrap().0;
            for number in &found {
                assert!(score(*number) > border - 0.02, "{text}: {} {border}", score(*number));
            }
            missed += exact[..length].iter().filter(|one| !found.contains(&one.1)).count();
        }
        assert!(missed * 50 <= asked.len() * length, "{missed} of {}", asked.len() * length);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    /// Whatever the collection's history, and whatever was ranked before.
    #[test]
    fn a_list_is_what_its_texts_and_items_alone_say(
        words in prop::collection::vec((0usize..12, 0usize..12, 0usize..12), 1..700),
        asked in prop::collection::vec((0usize..12, 0usize..12), 1..7),
        removed in prop::collection::vec(0usize..700, 0..90),
        length in 1usize..60,
        choice in 0usize..4,
    ) {
        let text = |&(one, other, third): &(usize, usize, usize)| {
            format!("{} {} {}", WORDS[one], WORDS[other], WORDS[third])
        };
        let (_home, news) = with(words.iter().map(text), Limits::DEFAULT);
        let asked: Vec<String> = asked.iter().map(|&(x, y)| format!("{} {}", WORDS[x], WORDS[y])).collect();
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        // Rows of some items are made, then some items leave, are replaced and added.
        nearest(&news, &ItemSelector { within: Some(-300), ..ItemSelector::default() }, &asked[..1], 3, 0);
        let ids: Vec<String> = removed.iter().map(|at| format!("n{at}")).collect();
        let (gone, replaced) = ids.split_at(ids.len() / 2);
        news.remove(&gone.iter().map(String::as_str).collect::<Vec<_>>(), 0).unwrap();
        let again = removed[ids.len() / 2..].iter().map(|&at| item(at, WORDS[at % 12], 5));
        news.put(again.collect(), 0).unwrap();
        if choice == 3 {
            let items = all_of(&news, &ItemSelector::default());
            news.vectors(&ENGINE, SHORTLIST_METHOD, &items, Cancellation::NEVER).unwrap();
        }
        let which = match choice {
            0 => ItemSelector::default(),
            1 => ItemSelector { within: Some(-100), ..ItemSelector::default() },
            2 => ItemSelector { filter: Filter::read(&json!({"n": {"lt": 400}}).to_string()).unwrap(), ..ItemSelector::default() },
            _ => ItemSelector { without: replaced.iter().map(|id| Cow::from(id.as_str())).collect(), ..ItemSelector::default() },
        };
        let items = all_of(&news, &which);
        let found = nearest(&news, &which, &asked, length, 0);
        let fresh = EmbeddedHome::in_memory(Limits::DEFAULT);
        let (fresh, _) = fresh.make("news", Settings::default(), 0).unwrap();
        fresh.put(items.iter().map(|(_, item)| item.as_ref().clone()).collect(), 0).unwrap();
        let names = |of: &EmbeddedCollection, which: &ItemSelector<'_>, numbers: &[u64]| {
            let all = all_of(of, which);
            let named = all.iter().filter(|(number, _)| numbers.contains(number));
            named.map(|(_, item)| item.id.to_string()).collect::<Vec<_>>()
        };
        let all = ItemSelector::default();
        let expected = nearest(&fresh, &all, &asked, length, 0);
        prop_assert_eq!(names(&news, &which, &found), names(&fresh, &all, &expected));
        // One text at a time finds the same.
        let mut one_by_one: Vec<u64> =
            asked.iter().flat_map(|text| nearest(&news, &which, &[text], length, 0)).collect();
        one_by_one.sort_unstable();
        one_by_one.dedup();
        prop_assert_eq!(&found, &one_by_one);
        // A long enough list has every item with a vector, and no other.
        let whole = nearest(&news, &which, &asked, 100_000, 0);
        let known = asked.iter().any(|text| vector_of(text).is_some());
        let with_vectors = items.iter().filter(|(_, item)| known && vector_of(&item.text).is_some());
        prop_assert_eq!(whole, with_vectors.map(|(number, _)| *number).collect::<Vec<_>>());
    }
}

#[test]
fn rows_are_paid_for_and_give_way_to_items() {
    let text = |at: usize| format!("{} {}", WORDS[at % 10], WORDS[at / 10 % 10]);
    let limits = Limits { bytes: 4 << 20, ..Limits::DEFAULT };
    let (home, news) = with((0..3000).map(text), limits);
    let items = home.bytes();
    let all = ItemSelector::default();
    let listed = nearest(&news, &all, &["river flood"], 7, 0);
    let rows = home.bytes() - items;
    assert!((250 * 3000..300 * 3500).contains(&rows), "{rows}");
    // Items need the memory, and the list is the same without stored rows.
    let mut next = 3000;
    while home.bytes() > news.told(0).unwrap().bytes {
        assert!(next < 20_000);
        news.put((next..next + 500).map(|at| item(at, "%", 0)).collect(), 0).unwrap();
        next += 500;
    }
    let filled = home.bytes();
    assert!(filled > 3 * (limits.bytes / 4), "{filled}");
    assert_eq!(nearest(&news, &all, &["river flood"], 7, 0), listed);
    assert_eq!(home.bytes(), filled);
    drop(news);
    home.delete("news").unwrap();
    assert_eq!(home.bytes(), 0);
}
