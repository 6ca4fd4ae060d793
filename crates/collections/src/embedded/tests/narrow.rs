//! The best of a narrowed ranking are the best of all, bit for bit.

use std::collections::BTreeMap;

use cognate::engine::rank::Question;
use cognate::engine::{
    Candidates, Liked, Likes, PageOptions, Query, QueryError, RankOptions, Ranking, Strategy,
    Weight,
};
use serde_json::json;

use super::shortlists::{ENGINE, real, with};
use crate::embedded::EmbeddedCollection;
use crate::{
    Cancellation, Choice, Chosen, Collection, Filter, Item, ItemSelector, Limits, SHORTLIST_METHOD,
    Several, TopQuery,
};

fn texts(count: usize) -> Vec<String> {
    let real = real();
    let half = |at: usize, second: bool| {
        let words: Vec<&str> = real[at % real.len()].split(' ').collect();
        let (first, rest) = words.split_at(words.len() / 2);
        if second { rest.join(" ") } else { first.join(" ") }
    };
    (0..count)
        .map(|at| match at % 40 {
            7 => "%".to_owned(),
            11 => real[at / 40 % 9].clone(),
            _ => format!("{} {}", half(at, false), half(at * 31 + 7, true)),
        })
        .collect()
}

fn narrowed(
    news: &EmbeddedCollection,
    which: &ItemSelector<'_>,
    (texts, summed): (&[(&str, f32)], bool),
    length: usize,
) -> Option<Chosen> {
    let several = if summed { Several::Sum } else { Several::Best };
    let best = TopQuery { engine: &ENGINE, texts: texts.to_vec(), several, length };
    let chosen = news.choose(which, &Choice::TopQuery(best), 10_000, Cancellation::NEVER).unwrap();
    if chosen.items.len() < chosen.meant {
        return Some(chosen);
    }
    // If not even that helps, all selected items are ranked.
    let all = news.choose(which, &Choice::All, 10_000, Cancellation::NEVER).unwrap();
    let numbers = |of: &Chosen| of.items.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!((numbers(&chosen), chosen.meant), (numbers(&all), all.meant));
    None
}

fn told(ranking: &Ranking, items: &[&Item]) -> (Vec<(String, u32)>, usize) {
    let one = |index: usize| items[index].id.to_string();
    let best = ranking.results.iter().map(|best| (one(best.index), best.score.to_bits()));
    (best.collect(), ranking.unscored.len())
}

#[test]
fn the_best_of_few_are_the_best_of_all() {
    let (_home, news) = with(texts(2600).into_iter(), Limits::DEFAULT);
    let asked = real();
    let asked: Vec<&str> = asked.iter().step_by(37).take(6).map(String::as_str).collect();
    let any = ItemSelector::default();
    let filter = Filter::read(&json!({"n": {"gte": 900}}).to_string()).unwrap();
    let filtered = ItemSelector { filter, ..ItemSelector::default() };
    let mut most = BTreeMap::new();
    for which in [&any, &filtered] {
        let all = news.choose(which, &Choice::All, 10_000, Cancellation::NEVER).unwrap().items;
        let all: Vec<&Item> = all.iter().map(|(_, item)| item.as_ref()).collect();
        let texts_of =
            |items: &[&Item]| items.iter().map(|item| item.text.to_string()).collect::<Vec<_>>();
        let of_all = texts_of(&all);
        for length in [1, 10, 60] {
            let options = RankOptions {
                query: Query::new(SHORTLIST_METHOD),
                top_k: Some(length),
                min_score: None,
            };
            for &text in &asked {
                let few = narrowed(&news, which, (&[(text, 1.0)], false), length).unwrap();
                assert_eq!(few.meant, all.len());
                assert!(few.items.is_sorted_by(|(one, _), (next, _)| one < next));
                let few: Vec<&Item> = few.items.iter().map(|(_, item)| item.as_ref()).collect();
                let found = ENGINE.rank_best(text, &texts_of(&few), &options).unwrap();
                let expected = ENGINE.rank_best(text, &of_all, &options).unwrap();
                assert_eq!(told(&found, &few), told(&expected, &all), "{length} of {text}");
                let seen = most.entry(length).or_insert(0);
                *seen = few.len().max(*seen);
            }
            for (place, three) in asked.windows(3).enumerate() {
                let liked = [(three[0], 1.0), (three[1], 0.3), (three[2], 2.0)];
                for strategy in [Strategy::Best, Strategy::Mean, Strategy::Sum] {
                    let wanted = (&liked[..], strategy != Strategy::Best);
                    let Some(few) = narrowed(&news, which, wanted, length) else {
                        assert!(length == 60 || strategy != Strategy::Best, "{place} {length}");
                        continue;
                    };
                    let few: Vec<&Item> = few.items.iter().map(|(_, item)| item.as_ref()).collect();
                    let liked = liked.map(|(text, weight)| Liked {
                        text: text.into(),
                        weight: Weight::new(weight).unwrap(),
                    });
                    let likes = Likes { liked: liked.to_vec(), strategy, ..Likes::default() };
                    let page = PageOptions { top_k: Some(length), ..PageOptions::default() };
                    let question = Question { page, ..Question::new(likes, options.query) };
                    let rank = |texts: &[String]| {
                        let (texts, go_on) = (Candidates::new(texts), || Ok::<_, QueryError>(()));
                        ENGINE.rank_pages(&question, &texts, go_on).unwrap().pages.remove(0).ranking
                    };
                    let (found, expected) = (rank(&texts_of(&few)), rank(&of_all));
                    assert_eq!(told(&found, &few), told(&expected, &all), "{strategy:?} {length}");
                }
            }
        }
    }
    assert!(most[&1] < 110 && most[&10] < 200, "{most:?}");
}

#[test]
fn where_it_does_not_help_all_are_ranked() {
    let (_home, news) = with(texts(2000).into_iter(), Limits::DEFAULT);
    let which = ItemSelector::default();
    for (texts, summed, length) in [
        (&[("a river", 1.0)][..], false, 300),
        (&[("%", 1.0)], false, 1),
        (&[("a river", 1.0), ("%", 1.0)], false, 1),
        (&[("", 1.0)], false, 1),
    ] {
        assert!(narrowed(&news, &which, (texts, summed), length).is_none(), "{texts:?} {length}");
    }
    let (_home, few) = with(texts(900).into_iter(), Limits::DEFAULT);
    assert!(narrowed(&few, &which, (&[("a river", 1.0)], false), 1).is_none());
    // Of too many equal items none can be left out.
    let equal = (0..3000).map(|at| ["a river", "the river", "a town"][at % 3].to_owned());
    let (_home, equal) = with(equal, Limits::DEFAULT);
    assert!(narrowed(&equal, &which, (&[("a river", 1.0)], false), 1).is_none());
    let (_home, unknown) = with((0..2000).map(|_| "%".to_owned()), Limits::DEFAULT);
    assert!(narrowed(&unknown, &which, (&[("a river", 1.0)], false), 1).is_none());
}
