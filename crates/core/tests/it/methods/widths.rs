//! The same bits at every register width, for every method and every type of rows: what a replica
//! on another processor answers.

use cognate::engine::{Engine, Query};
use cognate::methods::ranker::Encoder;
use cognate::methods::{Kind, Method};
use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate_kernels::simd;
use cognate_kernels::simd::Width;
use cognate_testing as support;

const TEXTS: [&str; 7] = [
    "the quake hits the city",
    "New York earthquake shakes town",
    "o'neill über 0 new york the quake hits city earthquake shakes town the the quake quake",
    "unheardof town",
    "the",
    "city city city city city city city city city city city city city city city city city city",
    "quake hits new town new city",
];

fn bits(engine: &Engine, width: Width) -> Vec<(Method, Vec<u32>)> {
    // Tests beside this one may meet any width meanwhile, which is what they promise to bear.
    simd::limit(width);
    let pairs: Vec<(&str, &str)> =
        TEXTS.iter().flat_map(|a| TEXTS.iter().map(move |b| (*a, *b))).collect();
    let available = Method::ALL.iter().filter(|method| engine.unavailable(**method).is_none());
    let mut found = Vec::new();
    for &method in available {
        let query = Query::new(method);
        let mut scores = Vec::new();
        if method.info().kind == Kind::Similarity {
            scores.extend(engine.similarity(&pairs, &query).unwrap().scores);
        }
        for text in TEXTS {
            let ranking = engine.rank(text, &TEXTS, &query).unwrap();
            scores.extend(ranking.results.iter().map(|ranked| ranked.score));
        }
        if let Ok(embeddings) = engine.embed(&TEXTS, &query) {
            scores.extend(embeddings.iter().flatten().flatten().copied());
        }
        found.push((method, scores.into_iter().map(f32::to_bits).collect()));
    }
    simd::limit(simd::widest());
    found
}

#[test]
fn every_method_gives_the_same_bits_at_every_width() {
    let models = [Dtype::F32, Dtype::F16, Dtype::I8]
        .map(|dtype| Model::from_bytes(&support::tiny(dtype), &support::full()).unwrap());
    let rankers = [Encoder::Bicnn, Encoder::Qatt].map(|encoder| support::ranking(encoder, 3));
    for model in models.into_iter().chain([support::served()]).chain(rankers) {
        let engine = Engine::new(model).unwrap();
        let plain = bits(&engine, Width::Least);
        assert!(plain.len() > 15, "{} methods", plain.len());
        for width in [Width::Avx2, Width::Avx512] {
            assert_eq!(bits(&engine, width), plain, "{width:?}");
        }
    }
}

#[test]
fn a_list_is_scored_as_its_pairs_are() {
    let engine = Engine::new(support::served()).unwrap();
    // Enough candidates for words to be met again and blocks to follow one another.
    let candidates: Vec<String> =
        (0..150).map(|n| format!("{} {}", TEXTS[n % 7], TEXTS[(n * 5 + n / 7) % 7])).collect();
    for &method in Method::ALL.iter().filter(|method| method.info().kind == Kind::Similarity) {
        if engine.unavailable(method).is_some() {
            continue;
        }
        let query = Query::new(method);
        for text in TEXTS {
            let ranking = engine.rank(text, &candidates, &query).unwrap();
            assert_eq!(ranking.results.len(), candidates.len());
            for ranked in &ranking.results {
                let pair = [(text, candidates[ranked.index].as_str())];
                let score = engine.similarity(&pair, &query).unwrap().scores[0];
                assert_eq!(ranked.score.to_bits(), score.to_bits(), "{} {pair:?}", method.name());
            }
        }
    }
}
