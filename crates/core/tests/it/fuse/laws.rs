//! What holds for every fusion of rankings, whatever its parts.

use std::sync::Arc;

use cognate::engine::fuse::{
    FuseBy, FuseError, Fusion, MAX_PARTS, Part, Source, combine, standardised,
};
use cognate::engine::rank::{Partial, Question};
use cognate::engine::{
    Candidates, Measure, PageOptions, Parts, Place, Query, QueryError, Ranking, Reason,
};
use cognate::methods::{Kind, Method};
use cognate_testing as support;
use proptest::prelude::*;

const QUERY: &str = "the quake hits the city";

/// Candidates of many kinds: with known words, with tokens alone, with nothing.
fn candidates() -> Vec<String> {
    let mut texts: Vec<String> = (0..90)
        .map(|at| {
            let word = |step: usize| support::WORDS[(at * step + at / 7) % support::WORDS.len()];
            format!("{} {} {} x{at}", word(1), word(5), word(7))
        })
        .collect();
    texts[17] = String::new();
    texts[40] = "!!! ...".to_owned();
    texts[71] = " ".to_owned();
    texts
}

fn method(name: &str) -> Part {
    Part { source: Source::Method(Method::named(name).unwrap(), None), weight: 1.0 }
}

fn run(name: &str) -> Part {
    Part { source: Source::Run(name.to_owned()), weight: 1.0 }
}

fn question(by: FuseBy, parts: Vec<Part>) -> Question<'static> {
    let fusion = Some(Arc::new(Fusion::new(by, parts).unwrap()));
    Question { fusion, ..Question::new(QUERY, Query::new(Method::AvgCos)) }
}

fn ranked<T: AsRef<str>>(
    question: &Question<'_>,
    candidates: &[T],
    runs: &[Vec<f64>],
) -> Result<Ranking, QueryError> {
    let candidates = Candidates::new(candidates).with_runs(runs.to_vec());
    let made = support::engine().rank_pages(question, &candidates, || Ok(()));
    made.map(|made| made.one().unwrap().ranking.clone())
}

fn fuse(by: FuseBy, parts: &[Part], runs: &[Vec<f64>]) -> Ranking {
    ranked(&question(by, parts.to_vec()), &candidates(), runs).unwrap()
}

fn order(ranking: &Ranking) -> Vec<usize> {
    ranking.results.iter().map(|ranked| ranked.index).collect()
}

fn bits(ranking: &Ranking) -> Vec<(usize, u32)> {
    ranking.results.iter().map(|ranked| (ranked.index, ranked.score.to_bits())).collect()
}

/// Every method that the tiny model serves, one alone: the order is its own, and so is what it cannot
/// score.
#[test]
fn a_fusion_of_one_part_keeps_its_order() {
    let engine = support::engine();
    let mut seen = 0;
    for &each in Method::ALL {
        if engine.unavailable(each).is_some() {
            continue;
        }
        seen += 1;
        let alone = engine.rank(QUERY, &candidates(), &Query::new(each)).unwrap();
        for by in FuseBy::ALL {
            let fused = fuse(by, &[method(each.name())], &[]);
            assert_eq!(order(&fused), order(&alone), "{} by {}", each.name(), by.name());
            assert_eq!((&fused.unscored, &fused.reasons), (&alone.unscored, &alone.reasons));
            assert_eq!(fused.counts, alone.counts, "{}", each.name());
        }
    }
    assert!(seen > 20);
}

#[test]
fn every_part_scores_as_it_does_alone() {
    let engine = support::engine();
    let of_kind = |kind: Kind| {
        let served = Method::ALL.iter().filter(|each| engine.unavailable(**each).is_none());
        served.copied().filter(move |each| each.info().kind == kind)
    };
    let chosen = of_kind(Kind::Ranker).chain(of_kind(Kind::Similarity)).take(MAX_PARTS);
    let parts: Vec<Part> = chosen.map(|each| method(each.name())).collect();
    let names: Vec<&Source> = parts.iter().map(|part| &part.source).collect();
    assert!(names.contains(&&Source::Method(Method::Rm3, None)), "one that needs the whole list");
    let columns: Vec<Vec<f64>> = parts
        .iter()
        .map(|part| {
            let Source::Method(each, _) = part.source else { unreachable!() };
            let alone = engine.rank(QUERY, &candidates(), &Query::new(each)).unwrap();
            let mut column = vec![f64::NEG_INFINITY; candidates().len()];
            alone.results.iter().for_each(|one| column[one.index] = f64::from(one.score));
            column
        })
        .collect();
    let weights = vec![1.0; parts.len()];
    for by in FuseBy::ALL {
        let expected = combine(by, &columns, &weights);
        let fused = fuse(by, &parts, &[]);
        assert_eq!(fused.results.len(), expected.iter().filter(|score| score.is_finite()).count());
        for ranked in &fused.results {
            assert_eq!(ranked.score.to_bits(), (expected[ranked.index] as f32).to_bits());
        }
    }
}

#[test]
fn the_order_of_parts_changes_no_bit() {
    let noise: Vec<f64> = (0..90).map(|at| f64::from((at * 37) % 23) / 7.0).collect();
    let weights = [0.3, 0.7, 0.1, 0.9];
    let parts = [method("bm25"), method("avg-cos"), run("noise"), method("rm3")];
    let parts: Vec<Part> =
        parts.into_iter().zip(weights).map(|(part, weight)| Part { weight, ..part }).collect();
    for by in FuseBy::ALL {
        let expected = fuse(by, &parts, std::slice::from_ref(&noise));
        let mut turned = parts.clone();
        for _ in 0..parts.len() {
            turned.rotate_left(1);
            assert_eq!(fuse(by, &turned, std::slice::from_ref(&noise)), expected);
        }
        turned.swap(0, 2);
        assert_eq!(fuse(by, &turned, std::slice::from_ref(&noise)), expected);
    }
}

#[test]
fn a_list_in_parts_has_the_same_bits_as_the_list() {
    let engine = support::engine();
    let parts = vec![method("bm25"), method("avg-cos"), method("jaccard"), run("noise")];
    let mut asked = question(FuseBy::Zscore, parts);
    asked.query.coverage = true;
    assert!(asked.is_in_parts(engine));
    let texts = candidates();
    let runs = vec![(0..90).map(f64::from).collect::<Vec<f64>>()];
    let list = Candidates::new(&texts).with_runs(runs.clone());
    let run = |part| {
        let ran = engine.rank_session(&asked, &list, |session| session.run(part, || true));
        ran.unwrap().unwrap()
    };
    let whole = run(0..90);
    for size in [1, 7, 32, 64] {
        let mut all = Partial::default();
        for first in (0..90).step_by(size) {
            all.append(run(first..90.min(first + size)), first);
        }
        assert_eq!(all, whole, "{size}");
    }
    let made = engine.pages(&asked, &list, whole, || Ok::<_, QueryError>(())).unwrap();
    let whole = &made.pages[0].ranking;
    assert_eq!((whole.known.len(), whole.query_known.is_some()), (90, true));
    assert_eq!(bits(whole), bits(&ranked(&asked, &texts, &runs).unwrap()));
    assert!(!question(FuseBy::Rrf, vec![method("rm3")]).is_in_parts(engine));
}

#[test]
fn what_no_part_scores_is_unscored_and_what_one_does_is_not() {
    let texts = ["the city", "", "!!!", "the town"];
    let of = |parts: Vec<Part>| question(FuseBy::Zscore, parts);
    let ask = |parts: Vec<Part>, runs: &[Vec<f64>]| ranked(&of(parts), &texts, runs);
    let both = ask(vec![method("avg-cos"), method("jaccard")], &[]).unwrap();
    assert_eq!(both.unscored, [1, 2]);
    assert_eq!(both.reasons, [Reason::Empty, Reason::Unknown]);
    let numbers = [vec![1.0, 5.0, f64::NEG_INFINITY, 2.0]];
    let with = ask(vec![method("avg-cos"), run("mine")], &numbers).unwrap();
    assert_eq!(with.unscored, [2], "the caller knows the empty one");
    let alone = ask(vec![run("mine")], &numbers).unwrap();
    assert_eq!((order(&alone), alone.counts.texts), (vec![1, 3, 0], 0), "no text is read");
    let page = PageOptions { top_k: Some(1), ..PageOptions::default() };
    let best = Question { page, min_score: Some(0.0), ..of(vec![run("mine")]) };
    let best = ranked(&best, &texts, &numbers).unwrap();
    assert_eq!((order(&best), best.scored), (vec![1], 3));
    let mut strict = of(vec![method("avg-cos")]);
    strict.query.refuse_unscored = true;
    let refused = ranked(&strict, &texts, &[]).unwrap_err();
    assert_eq!(refused, QueryError::EmptyText { place: Place::Candidate(1) });
    let missing = ask(vec![run("mine")], &[]).unwrap();
    assert_eq!((missing.results.len(), missing.unscored.len()), (0, 4));
}

#[test]
fn parts_that_cannot_be_fused_are_refused_by_their_place() {
    let refused = |parts: Vec<Part>| Fusion::new(FuseBy::Rrf, parts).unwrap_err();
    assert_eq!(refused(Vec::new()), FuseError::Parts(0));
    assert_eq!(refused(vec![run("a"); MAX_PARTS + 1]), FuseError::Parts(MAX_PARTS + 1));
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        let part = Part { weight, ..run("b") };
        assert_eq!(refused(vec![run("a"), part]), FuseError::Weight { part: 1 });
    }
    assert_eq!(refused(vec![Part { weight: 0.0, ..run("a") }]), FuseError::NoWeight);
    let engine = support::engine();
    let measured = Source::Method(Method::Bm25, Some(Measure::Euclidean));
    let parts = vec![method("avg-cos"), Part { source: measured, weight: 1.0 }];
    let fusion = Fusion::new(FuseBy::Rrf, parts).unwrap();
    let (part, error) = engine.check_fusion(&fusion, &Query::new(Method::AvgCos)).unwrap_err();
    let asked = QueryError::MeasureNotSupported { method: "bm25", measure: Measure::Euclidean };
    assert_eq!((part, error), (1, asked));
}

proptest! {
    #[test]
    fn only_the_proportions_of_weights_count(
        rows in prop::collection::vec((0u8..6, -9.0f64..9.0, 0u8..3), 1..40),
        weights in prop::array::uniform3(0.01f64..10.0),
        power in -20i32..20,
    ) {
        let columns = [
            rows.iter().map(|row| f64::from(row.0)).collect::<Vec<f64>>(),
            rows.iter().map(|row| row.1).collect(),
            rows.iter().map(|row| f64::from(row.2)).collect(),
        ];
        for by in FuseBy::ALL {
            let expected = combine(by, &columns, &weights);
            prop_assert_eq!(&combine(by, &columns, &weights.map(|w| w * 2f64.powi(power))), &expected);
            for (one, other) in combine(by, &columns, &weights.map(|w| w * 3.7)).iter().zip(&expected) {
                prop_assert!((one - other).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn standardised_scores_have_mean_0_and_deviation_1(
        scores in prop::collection::vec(-1e3f64..1e3, 2..60),
    ) {
        let standard = standardised(&scores);
        let n = scores.len() as f64;
        let mean = standard.iter().sum::<f64>() / n;
        let variance = standard.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        prop_assert!(mean.abs() < 1e-9);
        prop_assert!((variance - 1.0).abs() < 1e-9 || standard.iter().all(|value| *value == 0.0));
    }
}
