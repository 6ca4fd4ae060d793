//! What holds for every fusion of rankings, whatever its parts.

use cognate::engine::fuse::{
    FuseBy, FuseError, Fusion, MOST_PARTS, Part, PartScores, Source, combine, standardised,
};
use cognate::engine::{
    Boosts, Engine, Measure, Parts, Place, Query, QueryError, RankOptions, Ranking, Reason,
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

fn everything() -> RankOptions {
    RankOptions::all(Query::new(Method::AvgCos))
}

fn fuse(engine: &Engine, by: FuseBy, parts: &[Part], runs: &[Vec<f64>]) -> Ranking {
    let fusion = Fusion::new(by, parts.to_vec()).unwrap();
    engine.fuse(QUERY, &candidates(), (&fusion, runs), &everything()).unwrap()
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
            let fused = fuse(engine, by, &[method(each.name())], &[]);
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
    let chosen = of_kind(Kind::Ranker).chain(of_kind(Kind::Similarity)).take(MOST_PARTS);
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
        let fused = fuse(engine, by, &parts, &[]);
        assert_eq!(fused.results.len(), expected.iter().filter(|score| score.is_finite()).count());
        for ranked in &fused.results {
            assert_eq!(ranked.score.to_bits(), (expected[ranked.index] as f32).to_bits());
        }
    }
}

#[test]
fn the_order_of_parts_changes_no_bit() {
    let engine = support::engine();
    let noise: Vec<f64> = (0..90).map(|at| f64::from((at * 37) % 23) / 7.0).collect();
    let weights = [0.3, 0.7, 0.1, 0.9];
    let parts = [method("bm25"), method("avg-cos"), run("noise"), method("rm3")];
    let parts: Vec<Part> =
        parts.into_iter().zip(weights).map(|(part, weight)| Part { weight, ..part }).collect();
    for by in FuseBy::ALL {
        let expected = fuse(engine, by, &parts, std::slice::from_ref(&noise));
        let mut turned = parts.clone();
        for _ in 0..parts.len() {
            turned.rotate_left(1);
            assert_eq!(fuse(engine, by, &turned, std::slice::from_ref(&noise)), expected);
        }
        turned.swap(0, 2);
        assert_eq!(fuse(engine, by, &turned, std::slice::from_ref(&noise)), expected);
    }
}

#[test]
fn a_list_in_parts_has_the_same_bits_as_the_list() {
    let engine = support::engine();
    let parts = vec![method("bm25"), method("avg-cos"), method("jaccard"), run("noise")];
    let fusion = Fusion::new(FuseBy::Zscore, parts).unwrap();
    assert!(engine.fuses_in_parts(&fusion));
    let (texts, options) = (candidates(), everything());
    let runs = [(0..90).map(f64::from).collect::<Vec<f64>>()];
    let query = Query { coverage: true, ..options.query };
    let whole = engine
        .fuse_session(QUERY, &fusion, &query, |of| of.score(&texts, || true))
        .unwrap()
        .unwrap();
    for size in [1, 7, 32, 64] {
        let mut all = PartScores::default();
        for (number, part) in texts.chunks(size).enumerate() {
            let scores = engine.fuse_session(QUERY, &fusion, &query, |of| of.score(part, || true));
            all.append(scores.unwrap().unwrap(), number * size);
        }
        assert_eq!(all, whole, "{size}");
    }
    let scores = whole.fused(&fusion, &runs);
    let whole = whole.ranking(&scores, &options, &Boosts::default());
    assert_eq!((whole.known.len(), whole.query_known.is_some()), (90, true));
    let expected = engine.fuse(QUERY, &texts, (&fusion, &runs[..]), &options).unwrap();
    assert_eq!(bits(&whole), bits(&expected));
    let rm3 = Fusion::new(FuseBy::Rrf, vec![method("rm3")]).unwrap();
    assert!(!engine.fuses_in_parts(&rm3));
}

#[test]
fn what_no_part_scores_is_unscored_and_what_one_does_is_not() {
    let engine = support::engine();
    let texts = ["the city", "", "!!!", "the town"];
    let ask = |parts: Vec<Part>, runs: &[Vec<f64>], options: &RankOptions| {
        let fusion = Fusion::new(FuseBy::Zscore, parts).unwrap();
        engine.fuse(QUERY, &texts, (&fusion, runs), options)
    };
    let both = ask(vec![method("avg-cos"), method("jaccard")], &[], &everything()).unwrap();
    assert_eq!(both.unscored, [1, 2]);
    assert_eq!(both.reasons, [Reason::Empty, Reason::Unknown]);
    let numbers = [vec![1.0, 5.0, f64::NEG_INFINITY, 2.0]];
    let with = ask(vec![method("avg-cos"), run("mine")], &numbers, &everything()).unwrap();
    assert_eq!(with.unscored, [2], "the caller knows the empty one");
    let alone = ask(vec![run("mine")], &numbers, &everything()).unwrap();
    assert_eq!((order(&alone), alone.counts.texts), (vec![1, 3, 0], 0), "no text is read");
    let best = RankOptions { top_k: Some(1), min_score: Some(0.0), ..everything() };
    let best = ask(vec![run("mine")], &numbers, &best).unwrap();
    assert_eq!((order(&best), best.scored), (vec![1], 3));
    let query = Query { refuse_unscored: true, ..everything().query };
    let strict = RankOptions { query, ..everything() };
    let refused = ask(vec![method("avg-cos")], &[], &strict).unwrap_err();
    assert_eq!(refused, QueryError::EmptyText { place: Place::Candidate(1) });
    let missing = ask(vec![run("mine")], &[], &everything()).unwrap();
    assert_eq!((missing.results.len(), missing.unscored.len()), (0, 4));
}

#[test]
fn parts_that_cannot_be_fused_are_refused_by_their_place() {
    let refused = |parts: Vec<Part>| Fusion::new(FuseBy::Rrf, parts).unwrap_err();
    assert_eq!(refused(Vec::new()), FuseError::Parts(0));
    assert_eq!(refused(vec![run("a"); MOST_PARTS + 1]), FuseError::Parts(MOST_PARTS + 1));
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        let part = Part { weight, ..run("b") };
        assert_eq!(refused(vec![run("a"), part]), FuseError::Weight { part: 1 });
    }
    assert_eq!(refused(vec![Part { weight: 0.0, ..run("a") }]), FuseError::NoWeight);
    let engine = support::engine();
    let measured = Source::Method(Method::Bm25, Some(Measure::Euclidean));
    let parts = vec![method("avg-cos"), Part { source: measured, weight: 1.0 }];
    let fusion = Fusion::new(FuseBy::Rrf, parts).unwrap();
    let (part, error) = engine.check_fusion(&fusion, &everything().query).unwrap_err();
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
