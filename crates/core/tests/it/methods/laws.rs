//! What holds for every method, on texts made of known, unknown and repeated words and noise.
//!
//! Each test runs the usual number of cases of proptest, so that all of them together make a
//! thousand; `PROPTEST_CASES` asks for more. Every case goes through every method that the model
//! of the tests can serve.

use std::sync::LazyLock;

use cognate::engine::rank::{Asked, Partial, Question, Session};
use cognate::engine::{
    Candidates, Engine, Likes, Measure, Opposites, Parts, Query, QueryError, Ranked, Ranking,
    Reason,
};
use cognate::methods::{Kind, Method, Reads};
use cognate_testing as support;
use cognate_testing::{DIMS, WORDS};
use proptest::prelude::*;
use proptest::sample::select;

/// Inflected, drawn out, unlisted, and what normalisation takes apart or throws away.
const NOISE: [&str; 18] = [
    "Quakes",
    "cities",
    "york's",
    "soooo",
    "NEW",
    "zebra",
    "xyzzy",
    "covid19",
    "2013",
    "!!!",
    "...",
    "🙂",
    "@user",
    "#NewYork",
    "https://t.co/x",
    "don't",
    "naïve",
    "日本",
];

fn word() -> impl Strategy<Value = String> {
    let long = "[a-z]{129,140}";
    prop_oneof![
        6 => select(&WORDS[..]).prop_map(str::to_owned),
        3 => select(&NOISE[..]).prop_map(str::to_owned),
        1 => long,
    ]
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(word(), 1..9)
}

fn text() -> impl Strategy<Value = String> {
    words().prop_map(|words| words.join(" "))
}

/// Every question about similarity that the engine can answer: methods, each by every measure.
fn questions(engine: &Engine) -> Vec<Query> {
    let methods = Method::ALL.iter().copied();
    let served =
        methods.filter(|m| m.info().kind == Kind::Similarity && engine.unavailable(*m).is_none());
    let queries = served.flat_map(|method| {
        let other = match engine.default_measure(method) {
            Measure::Cosine => Measure::Euclidean,
            Measure::Euclidean => Measure::Cosine,
        };
        let measures = [None, engine.embeds(method).then_some(other)];
        let own = Query { measure: measures[0], ..Query::new(method) };
        let asked = measures[1].map(|other| Query { measure: Some(other), ..own });
        [Some(own), asked].into_iter().flatten()
    });
    queries.collect()
}

/// Every ranker that the engine can ask.
fn rankers(engine: &Engine) -> Vec<Query> {
    let rankers = Method::ALL.iter().filter(|method| method.info().kind == Kind::Ranker);
    rankers.filter(|&&m| engine.unavailable(m).is_none()).map(|&m| Query::new(m)).collect()
}

/// The default model, whose rows are bytes and which knows opposites.
fn english() -> &'static Engine {
    static ENGLISH: LazyLock<Engine> =
        LazyLock::new(|| Engine::new(support::default_model()).unwrap());
    &ENGLISH
}

/// The score of a pair, or nothing where it cannot be scored.
fn score(engine: &Engine, query: &Query, a: &str, b: &str) -> Option<f32> {
    let answer = engine.similarity(&[(a, b)], query).unwrap();
    answer.unscored.is_empty().then_some(answer.scores[0])
}

fn bits(score: Option<f32>) -> Option<u32> {
    score.map(f32::to_bits)
}

#[test]
fn the_model_of_the_tests_serves_every_method() {
    let engine = support::engine();
    for &method in Method::ALL {
        // A model holds one ranker, this one `patt`.
        let other = [Method::Bicnn, Method::Qatt].contains(&method);
        assert_eq!(engine.unavailable(method).is_some(), other, "{}", method.name());
    }
    assert!(questions(engine).len() + rankers(engine).len() > Method::ALL.len());
    assert!(rankers(engine).len() >= 3);
}

/// A ranking put together from parts of three, by one session: before it learnt anything of the
/// candidates, and after.
fn in_parts(engine: &Engine, text: &str, candidates: &[String], query: &Query) -> [Ranking; 2] {
    let (question, list) = (Question::new(text, *query), Candidates::new(candidates));
    let rank = |session: &mut Session<'_>| {
        let mut whole = Partial::default();
        for first in (0..candidates.len()).step_by(3) {
            let part = first..candidates.len().min(first + 3);
            whole.append(session.run(part, || true).unwrap(), first);
        }
        whole
    };
    let ranked = engine.rank_session(&question, &list, |session| [rank(session), rank(session)]);
    ranked.unwrap().map(|ranked| {
        let made = engine.pages(&question, &list, ranked, || Ok::<_, QueryError>(())).unwrap();
        made.one().unwrap().ranking.clone()
    })
}

fn exact_results(ranking: &Ranking) -> Vec<(usize, u32)> {
    ranking.results.iter().map(|ranked| (ranked.index, ranked.score.to_bits())).collect()
}

/// Each of so many texts with the one behind them.
fn pairs_with(count: usize) -> Vec<(usize, usize)> {
    (0..count).map(|index| (index, count)).collect()
}

proptest! {
    #[test]
    fn scores_are_symmetric_within_range_and_one_for_a_text_and_itself(a in text(), b in text()) {
        let engine = support::engine();
        for query in questions(engine) {
            let name = query.method.name();
            let found = score(engine, &query, &a, &b);
            prop_assert_eq!(bits(found), bits(score(engine, &query, &b, &a)), "{}", name);
            if let Some(score) = found {
                let (least, most) = query.method.info().range;
                prop_assert!((least..=most).contains(&score), "{}: {}", name, score);
            }
            for text in [&a, &b] {
                if let Some(score) = score(engine, &query, text, text) {
                    prop_assert!((score - 1.0).abs() <= 1e-6, "{}: {} with itself", name, score);
                }
            }
        }
    }

    #[test]
    fn word_order_changes_no_bit(
        (words, shuffled) in words().prop_flat_map(|words| {
            let shuffled = Just(words.clone()).prop_shuffle();
            (Just(words), shuffled)
        }),
        other in text(),
    ) {
        let engine = support::engine();
        let (text, shuffled) = (words.join(" "), shuffled.join(" "));
        for query in questions(engine) {
            // Exchanged roles are a matter of order; all else that such a method scores is not.
            let counts = query.method.info().ignoring_opposites;
            let query = Query { opposites: counts.map(|_| Opposites::Ignore), ..query };
            let one = score(engine, &query, &text, &other);
            let reordered = score(engine, &query, &shuffled, &other);
            prop_assert_eq!(bits(one), bits(reordered), "{}", query.method.name());
            if engine.embeds(query.method) {
                let answer = engine.embed(&[&text, &shuffled], &query).unwrap();
                let exact = answer.vectors.mapv(f32::to_bits);
                prop_assert_eq!(exact.row(0), exact.row(1), "{}", query.method.name());
            }
        }
    }

    #[test]
    fn a_batch_scores_as_single_pairs_do_and_a_ranking_sorts_them(
        query_text in text(),
        mut candidates in prop::collection::vec(text(), 1..6),
    ) {
        let engine = support::engine();
        // Equal scores must go by index.
        candidates.push(candidates[0].clone());
        let pairs: Vec<_> = candidates.iter().map(|text| (&query_text, text)).collect();
        for query in questions(engine) {
            let name = query.method.name();
            let batch = engine.similarity(&pairs, &query).unwrap();
            let ranking = engine.rank(&query_text, &candidates, &query).unwrap();
            let mut expected = Vec::new();
            for (index, candidate) in candidates.iter().enumerate() {
                let single = score(engine, &query, &query_text, candidate);
                prop_assert_eq!(batch.unscored.contains(&index), single.is_none(), "{}", name);
                let in_batch = batch.scores[index];
                prop_assert_eq!(in_batch.to_bits(), single.unwrap_or(0.0).to_bits(), "{}", name);
                expected.extend(single.map(|score| (index, score)));
            }
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let ranked: Vec<_> = ranking.results.iter().map(|r| (r.index, r.score)).collect();
            let exact = |list: &[(usize, f32)]| -> Vec<(usize, u32)> {
                list.iter().map(|(index, score)| (*index, score.to_bits())).collect()
            };
            prop_assert_eq!(exact(&ranked), exact(&expected), "{}", name);
            prop_assert_eq!(&ranking.unscored, &batch.unscored, "{}", name);
            let texts: Vec<&String> = candidates.iter().chain([&query_text]).collect();
            let among: Vec<_> = (0..candidates.len()).map(|index| (index, index + 1)).collect();
            let next = among.iter().map(|&(one, next)| score(engine, &query, texts[one], texts[next]));
            let asked = [&among[..], &pairs_with(candidates.len())].concat();
            let least = batch.scores.first().copied().unwrap_or_default();
            let queries = [(query, f32::NEG_INFINITY), (query, least)];
            let scores = engine.similarity_among(&texts, &asked, &queries).unwrap();
            let single = batch.scores.iter().enumerate();
            let single = single.map(|(at, &score)| (!batch.unscored.contains(&at)).then_some(score));
            for (at, expected) in next.chain(single).enumerate() {
                prop_assert_eq!(bits(scores[0][at]), bits(expected), "{}", name);
                let (found, expected) = (scores[1][at], expected.filter(|&score| score >= least));
                let found = found.filter(|&score| score >= least);
                prop_assert_eq!(bits(found), bits(expected), "{}", name);
            }
            for parts in in_parts(engine, &query_text, &candidates, &query) {
                prop_assert_eq!(exact_results(&parts), exact_results(&ranking), "{}", name);
            }
        }
    }

    /// What is made of a candidate once, for all texts that it is compared with, changes no bit.
    #[test]
    fn several_texts_score_candidates_as_each_does_alone(
        texts in prop::collection::vec(text(), 2..4),
        mut candidates in prop::collection::vec(text(), 1..6),
    ) {
        candidates.push(texts[0].clone());
        for engine in [support::engine(), english()] {
            for query in questions(engine).into_iter().chain(rankers(engine)) {
                let name = query.method.name();
                let rank = |asked: Asked<'_>| {
                    let question = Question::new(asked, query);
                    let go_on = || Ok::<_, QueryError>(());
                    engine.rank_pages(&question, &Candidates::new(&candidates), go_on).unwrap()
                };
                let each = rank(Asked::Each(texts.iter().map(Into::into).collect()));
                let with_empty: Vec<&str> =
                    texts.iter().map(String::as_str).chain([""]).collect();
                let matrix =
                    engine.score_matrix(&with_empty, &candidates, &query, || true).unwrap();
                prop_assert_eq!(matrix.texts.last(), Some(&(texts.len(), Reason::Empty)));
                prop_assert!(matrix.scores.row(texts.len()).iter().all(|score| score.is_nan()));
                let mut best: Vec<Option<f32>> = vec![None; candidates.len()];
                for ((text, ranking), row) in texts.iter().zip(&each.pages).zip(matrix.scores.rows()) {
                    let alone = engine.rank(text, &candidates, &query).unwrap();
                    let ranking = &ranking.ranking;
                    prop_assert_eq!(exact_results(ranking), exact_results(&alone), "{}", name);
                    for (index, score) in row.iter().enumerate() {
                        let found = alone.results.iter().find(|found| found.index == index);
                        let expected = found.map_or(f32::NAN, |found| found.score);
                        prop_assert_eq!(score.to_bits(), expected.to_bits(), "{}", name);
                    }
                    for found in &alone.results {
                        let best = &mut best[found.index];
                        *best = Some(best.map_or(found.score, |best| best.max(found.score)));
                    }
                }
                if query.method.info().kind == Kind::Ranker {
                    continue;
                }
                let likes = Likes::any_of(texts.iter().map(String::as_str));
                let liked = &rank(likes.into()).pages[0].ranking;
                for found in &liked.results {
                    prop_assert_eq!(bits(Some(found.score)), bits(best[found.index]), "{}", name);
                }
                let scored = best.iter().flatten().count();
                prop_assert_eq!(liked.results.len(), scored, "{}", name);
            }
        }
    }

    /// Rankers owe no symmetry, but finite scores within their range, and a stable order. One that
    /// may be asked in parts gives a candidate alone the score that it has in a list.
    #[test]
    fn rankers_give_finite_scores_in_a_stable_order_and_alone_as_in_a_list(
        query_text in text(),
        mut candidates in prop::collection::vec(text(), 1..14),
    ) {
        let engine = support::engine();
        candidates.push(candidates[0].clone());
        for query in rankers(engine) {
            let name = query.method.name();
            let (least, most) = query.method.info().range;
            let ranking = engine.rank(&query_text, &candidates, &query).unwrap();
            prop_assert_eq!(ranking.results.len() + ranking.unscored.len(), candidates.len());
            for ranked in &ranking.results {
                let score = ranked.score;
                prop_assert!(score.is_finite() && score >= least && score <= most, "{}: {}", name, score);
                if engine.ranks_in_parts(query.method) {
                    let text = &candidates[ranked.index];
                    let alone = engine.rank(&query_text, &[text], &query).unwrap().results[0].score;
                    prop_assert_eq!(alone.to_bits(), score.to_bits(), "{}", name);
                }
            }
            if engine.ranks_in_parts(query.method) {
                for parts in in_parts(engine, &query_text, &candidates, &query) {
                    prop_assert_eq!(exact_results(&parts), exact_results(&ranking), "{}", name);
                }
            }
            for two in ranking.results.windows(2) {
                let later = two[0].score == two[1].score && two[0].index < two[1].index;
                prop_assert!(two[0].score > two[1].score || later, "{}: {:?}", name, two);
            }
            let scores = |results: &[Ranked]| {
                let mut scores: Vec<_> =
                    results.iter().map(|ranked| (ranked.index, ranked.score.to_bits())).collect();
                scores.sort_unstable();
                scores
            };
            // Networks read words in their order.
            if query.method.info().reads == Reads::Words {
                continue;
            }
            let mut words: Vec<&str> = query_text.split(' ').collect();
            words.reverse();
            let reordered = engine.rank(&words.join(" "), &candidates, &query).unwrap();
            prop_assert_eq!(scores(&ranking.results), scores(&reordered.results), "{}", name);
        }
    }

    #[test]
    fn shares_add_up_to_the_score_and_vectors_have_their_dimensions(a in text(), b in text()) {
        let engine = support::engine();
        for query in questions(engine) {
            let name = query.method.name();
            let why = engine.explain(&a, &b, &query).unwrap();
            let found = score(engine, &query, &a, &b);
            prop_assert_eq!(why.unscored, found.is_none(), "{}", name);
            prop_assert_eq!(why.score.to_bits(), found.unwrap_or(0.0).to_bits(), "{}", name);
            if let Some(shares) = &why.shares {
                let all: f32 = shares.one.iter().chain(&shares.other).sum();
                prop_assert!((all - why.score).abs() <= 1e-5, "{}: {} for {}", name, all, why.score);
                let words = why.one.iter().chain(&why.other).filter_map(|word| word.share);
                let unknown = why.one_unknown.iter().chain(&why.other_unknown);
                let said: f32 = words.chain(unknown.filter_map(|token| token.share)).sum();
                prop_assert!((said - all).abs() <= 1e-5, "{}: {} said of {}", name, said, all);
            }
            if engine.embeds(query.method) {
                let answer = engine.embed(&[&a, &b], &query).unwrap();
                let wide = ["min-max", "min-max-top30"].contains(&name);
                let dims = if wide { 2 * DIMS } else { DIMS };
                prop_assert_eq!(answer.vectors.dim(), (2, dims), "{}", name);
            }
        }
    }
}
