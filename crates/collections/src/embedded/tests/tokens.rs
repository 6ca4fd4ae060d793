//! A ranking that an index of tokens narrows has the same best results as a ranking of all items, bit for bit.

use cognate::engine::{Query, RankOptions};
use cognate::methods::Method;
use proptest::prelude::*;
use serde_json::json;

use super::shortlists::{ENGINE, real, with};
use crate::embedded::EmbeddedCollection;
use crate::embedded::tests::item;
use crate::{
    Cancellation, Choice, ChooseError, Chosen, Collection, Filter, Home, Item, ItemSelector,
    Limits, Several, TopQuery,
};

const WORDS: [&str; 12] =
    ["the", "a", "of", "river", "flood", "city", "quake", "xqzzt", "storm", "garden", "%", "ring"];
const METHODS: [Method; 4] = [Method::Bm25, Method::Ql, Method::Jaccard, Method::JaccardBag];

fn chosen(
    news: &EmbeddedCollection,
    which: &ItemSelector<'_>,
    (texts, several): (&[&str], Several),
    (method, length): (Method, usize),
) -> Chosen {
    let texts = texts.iter().map(|text| (*text, 1.0)).collect();
    let best = TopQuery { engine: &ENGINE, texts, several, length };
    let choice = Choice::TopByTokens(best, Query::new(method));
    news.choose(which, &choice, 0, Cancellation::NEVER).unwrap()
}

fn best(
    items: &[(u64, std::sync::Arc<Item>)],
    text: &str,
    (method, length): (Method, usize),
) -> (Vec<(String, u32)>, usize) {
    let texts: Vec<&str> = items.iter().map(|(_, item)| &*item.text).collect();
    let options = RankOptions { query: Query::new(method), top_k: Some(length), min_score: None };
    let ranking = ENGINE.rank_best(text, &texts, &options).unwrap();
    let one = |index: usize| items[index].1.id.to_string();
    let best = ranking.results.iter().map(|best| (one(best.index), best.score.to_bits()));
    (best.collect(), ranking.unscored.len())
}

#[track_caller]
fn same_as_all(
    news: &EmbeddedCollection,
    which: &ItemSelector<'_>,
    texts: &[&str],
    asked: (Method, usize),
) -> usize {
    let all = news.choose(which, &Choice::All, 0, Cancellation::NEVER).unwrap();
    let few = chosen(news, which, (texts, Several::Each), asked);
    assert_eq!(few.meant, all.items.len());
    assert!(few.items.is_sorted_by(|(one, _), (next, _)| one < next));
    for text in texts {
        assert_eq!(
            best(&few.items, text, asked),
            best(&all.items, text, asked),
            "{asked:?} {text}"
        );
    }
    few.items.len()
}

#[test]
fn the_best_of_real_texts_are_found_by_few() {
    let real = real();
    let texts = real.iter().cycle().take(4000).cloned();
    let (_home, news) = with(texts, Limits::DEFAULT);
    let all = ItemSelector::default();
    let filter = Filter::read(&json!({"n": {"gte": 1500}}).to_string()).unwrap();
    let filtered = ItemSelector { filter, ..ItemSelector::default() };
    let asked: Vec<&str> = real.iter().step_by(41).map(String::as_str).collect();
    let (mut narrowed, mut most) = (0, 0);
    for which in [&all, &filtered] {
        for method in METHODS {
            for text in &asked {
                let few = same_as_all(&news, which, &[text], (method, 5));
                // A text of more than 32 different tokens narrows nothing.
                if few < 2000 {
                    narrowed += 1;
                    most = most.max(few);
                }
            }
            same_as_all(&news, which, &asked[..3], (method, 5));
        }
    }
    assert!(narrowed > 6 * asked.len(), "{narrowed} of {}", 8 * asked.len());
    assert!(most < 700, "{most}");
}

#[test]
fn words_that_stand_often_and_texts_without_words_are_told_apart() {
    let mut texts: Vec<String> = (0..1500).map(|at| format!("river {}", WORDS[at % 12])).collect();
    texts[700] = "river ".repeat(40);
    texts[701] = "river ".repeat(15);
    texts[702] = "the ".repeat(70);
    texts[703] = "!".to_owned();
    let (_home, news) = with(texts.into_iter(), Limits::DEFAULT);
    for method in METHODS {
        for text in ["river", "the river of the city", "river river river", "xqzzt", "nowhere"] {
            for length in [1, 30, 180] {
                same_as_all(&news, &ItemSelector::default(), &[text], (method, length));
            }
        }
    }
}

#[test]
fn where_it_does_not_help_all_are_ranked() {
    let texts = || (0..2000).map(|at| format!("river {}", WORDS[at % 12]));
    let (_home, news) = with(texts(), Limits::DEFAULT);
    let all = ItemSelector::default();
    let long: String = (0..40).map(|at| format!("w{at} ")).collect();
    for (texts, several, length) in [
        (&["river"][..], Several::Each, 300),
        (&["river", "city"], Several::Sum, 3),
        (&[long.as_str()], Several::Each, 3),
        (&[""], Several::Each, 3),
    ] {
        let found = chosen(&news, &all, (texts, several), (Method::Bm25, length));
        assert_eq!((found.items.len(), found.meant), (2000, 2000), "{texts:?}");
    }
    assert!(chosen(&news, &all, (&[&long], Several::Each), (Method::Jaccard, 3)).items.len() < 100);
    // Without memory for it a block is used once.
    let items = with(texts(), Limits::DEFAULT).0.bytes();
    let limits = Limits { bytes: items + 10_000, ..Limits::DEFAULT };
    let (home, poor) = with(texts(), limits);
    same_as_all(&poor, &all, &["the river"], (Method::Bm25, 3));
    assert_eq!(home.bytes(), items);
}

#[test]
fn a_question_that_is_given_up_keeps_what_it_made() {
    let (home, news) = with((0..2000).map(|at| format!("river {at}")), Limits::DEFAULT);
    let (looks, before) = (std::cell::Cell::new(0), home.bytes());
    let is_cancelled = || looks.replace(looks.get() + 1) == 6;
    let texts = vec![("river", 1.0)];
    let best = TopQuery { engine: &ENGINE, texts, several: Several::Each, length: 5 };
    let choice = Choice::TopByTokens(best, Query::new(Method::Bm25));
    let cancel = Cancellation::when(&is_cancelled);
    let stopped = news.choose(&ItemSelector::default(), &choice, 0, cancel);
    assert!(matches!(stopped, Err(ChooseError::Stopped)), "{stopped:?}");
    assert!(home.bytes() > before);
    same_as_all(&news, &ItemSelector::default(), &["river 7"], (Method::Bm25, 5));
    drop(news);
    home.delete("news").unwrap();
    assert_eq!(home.bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    /// Whatever the collection's history, and whatever was ranked before.
    #[test]
    fn items_that_come_and_go_change_no_score(
        words in prop::collection::vec(prop::collection::vec(0usize..12, 0..9), 1100..1700),
        asked in prop::collection::vec(prop::collection::vec(0usize..12, 1..6), 1..4),
        changed in prop::collection::vec((0usize..1700, prop::collection::vec(0usize..12, 0..9)), 0..90),
        length in 1usize..40,
        method in 0usize..4,
    ) {
        let text = |words: &Vec<usize>| {
            words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ") + "!"
        };
        let (_home, news) = with(words.iter().map(text), Limits::DEFAULT);
        let asked: Vec<String> = asked.iter().map(text).collect();
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let (all, method) = (ItemSelector::default(), (METHODS[method], length));
        same_as_all(&news, &all, &asked[..1], method);
        for (place, (id, words)) in changed.iter().enumerate() {
            match place % 3 {
                0 => news.remove(&[&format!("n{id}")], 0).map(drop).unwrap(),
                _ => news.put(vec![item(*id, &text(words), 0)], 0).map(drop).unwrap(),
            }
        }
        same_as_all(&news, &all, &asked, method);
    }
}
