//! A ranking asked for its best answers as the whole ranking does, cut; and scores less.

use std::fs;

use cognate::engine::{Engine, Query, RankOptions, Ranking};
use cognate::methods::{Method, Reads};
use cognate_testing::data::shared_data;
use cognate_testing::word_table;
use proptest::prelude::*;

use crate::methods::pair_methods_data::glove;

/// What the whole ranking says, cut afterwards.
fn cut(engine: &Engine, text: &str, candidates: &[String], options: &RankOptions) -> Ranking {
    let mut whole = engine.rank(text, candidates, &options.query).unwrap();
    whole.results.retain(|result| options.min_score.is_none_or(|least| result.score >= least));
    whole.results.truncate(options.top_k.unwrap_or(usize::MAX));
    whole
}

fn check(engine: &Engine, text: &str, candidates: &[String], options: &RankOptions) -> Ranking {
    let expected = cut(engine, text, candidates, options);
    let got = engine.rank_best(text, candidates, options).unwrap();
    let bits = |ranking: &Ranking| -> Vec<(usize, u32)> {
        ranking.results.iter().map(|result| (result.index, result.score.to_bits())).collect()
    };
    assert_eq!(bits(&got), bits(&expected));
    assert_eq!(got.unscored, expected.unscored);
    assert!(got.scored <= expected.scored);
    got
}

/// Four words on a line and one beside it: many texts are exactly as far away as others.
fn engine() -> Engine {
    let words = ["w", "x", "y", "z", "q"];
    let rows = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0, 2.0, 1.0];
    Engine::new(word_table::model(&words, &rows, &[])).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_best_are_the_best_of_all(
        text in "[wxyzq]( [wxyzq]){0,4}",
        candidates in prop::collection::vec("[wxyzqu]( [wxyzqu]){0,3}", 0..60),
        top_k in prop::option::of(0usize..12),
        min_score in prop::option::of(prop_oneof![0.0..1.0f32, Just(0.5), Just(1.0)]),
    ) {
        let engine = engine();
        for method in [Method::Wmd, Method::Wrd, Method::MaxJaccard, Method::AvgCos] {
            let query = Query::new(method);
            check(&engine, &text, &candidates, &RankOptions { query, top_k, min_score });
        }
    }
}

#[test]
fn a_query_without_a_known_word_leaves_all_unscored() {
    let engine = engine();
    let candidates = ["w x", "unknown", "y"].map(str::to_owned);
    for &method in Method::ALL.iter().filter(|&&method| engine.unavailable(method).is_none()) {
        let query = Query::new(method);
        let options = RankOptions { query, top_k: Some(1), min_score: Some(0.5) };
        let ranking = check(&engine, "nothing", &candidates, &options);
        if method.info().reads == Reads::Words {
            assert_eq!((ranking.results.len(), ranking.unscored), (0, vec![0, 1, 2]));
        }
    }
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn most_exact_problems_of_a_real_list_are_never_solved() {
    let (path, engine) = (shared_data("sts/stsb-dev.tsv"), glove());
    let lines = fs::read_to_string(path).unwrap();
    let mut sentences = lines.lines().filter_map(|line| line.split('\t').nth(1));
    let queries: Vec<&str> = sentences.by_ref().step_by(10).take(20).collect();
    let candidates: Vec<String> = sentences.take(1000).map(str::to_owned).collect();
    assert_eq!(candidates.len(), 1000);
    for method in [Method::Wmd, Method::Wrd] {
        let query = Query::new(method);
        for top_k in [1, 10, 100] {
            let options = RankOptions { query, top_k: Some(top_k), min_score: None };
            let scored: usize =
                queries.iter().map(|text| check(&engine, text, &candidates, &options).scored).sum();
            let mean = scored as f64 / queries.len() as f64;
            println!("{}, best {top_k} of 1000: {mean:.0} scored exactly", method.name());
            assert!(top_k > 10 || mean < 300.0, "{mean}");
        }
    }
}
