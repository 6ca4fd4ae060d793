//! One text against 10,000: the whole list at once, pair by pair, on two threads, and beside a
//! plain product of matrices of the same size.

use std::path::Path;

use cognate::engine::{Engine, Parts, Query, RankOptions, Ranking};
use cognate::methods::ranker::{Encoder, Settings};
use cognate::methods::{Fitted, Method, ranker};
use cognate::model::format::Dtype;
use cognate::model::writer::Draft;
use cognate::model::{OpenOptions, Phrase};
use ndarray::Array2;

use crate::Contests;
use crate::ground::Vectors;
use crate::support::{Clock, Contestant};

/// Queries of a round.
const QUERIES: usize = 3;

pub fn all(contests: &mut Contests, vectors: &Vectors, pairs: &[(String, String)], folder: &Path) {
    if !contests.wants("rank") {
        return;
    }
    let engine = vectors.thrice().engine(folder, Dtype::F32);
    let candidates: Vec<&str> = pairs.iter().map(|(_, b)| b.as_str()).collect();
    let queries: Vec<&str> = pairs.iter().step_by(997).map(|(a, _)| a.as_str()).collect();
    let queries = &queries[..QUERIES];
    trained(contests, vectors, queries, &candidates, folder);
    for method in [Method::DynamaxJaccard, Method::AvgCos, Method::Blend] {
        if engine.unavailable(method).is_none() {
            contest(contests, &engine, method, queries, &candidates);
        }
    }
}

/// A ranker of the paper's size with weights of chance: what a post takes depends on sizes alone.
fn trained(
    contests: &mut Contests,
    vectors: &Vectors,
    queries: &[&str],
    candidates: &[&str],
    folder: &Path,
) {
    let base = vectors.engine(folder, Dtype::F32);
    for encoder in [Encoder::Bicnn, Encoder::Qatt, Encoder::Patt] {
        let (kernel, filters, hidden, joint) = (2, 250, 200, 100);
        let settings =
            Settings { encoder, kernel, filters, hidden, joint, alpha: 0.0, trained: None };
        let mut state = 1_u64;
        let mut number = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / 83_886_080.0 - 0.1
        };
        let shapes = settings.shape(vectors.dims).tensors().into_iter();
        let tensors = shapes.map(|(name, shape)| {
            let numbers = (0..shape.iter().product()).map(&mut number).collect();
            (name, shape, numbers)
        });
        let section = Fitted {
            section: ranker::SECTION,
            settings: serde_json::to_string(&settings).expect("settings have a JSON form"),
            tensors: tensors.collect(),
            bytes: Vec::new(),
        };
        let path = folder.join("ranker.safetensors");
        let mut draft = Draft::from_model(base.model());
        section.put_into(&mut draft);
        draft.write(&path).expect("there is room for a model");
        let engine = Engine::open(&path, &OpenOptions::default()).expect("it was just written");
        let method = Method::named(encoder.name()).expect("every encoder is a method");
        let query = Query::new(method);
        let ranked = || {
            let of = |text: &&str| engine.rank(text, candidates, &query);
            queries.iter().map(|text| of(text).expect("they rank").results.len() as u64).sum()
        };
        let name = format!("rank, {} of {} dimensions, a post", encoder.name(), vectors.dims);
        let contestants: Vec<Contestant<'_>> = vec![("the list at once", Box::new(ranked))];
        contests.hold(&name, candidates.len() * queries.len(), contestants);
    }
}

fn contest(
    contests: &mut Contests,
    engine: &Engine,
    method: Method,
    queries: &[&str],
    candidates: &[&str],
) {
    let query = Query::new(method);
    let options = RankOptions::all(query);
    let ranked = |candidates: &[&str], text: &str| {
        engine.rank_best(text, candidates, &options).expect("the candidates can be ranked")
    };
    let together =
        || queries.iter().map(|text| ranked(candidates, text).results.len() as u64).sum();
    let by_pair = || {
        let score = |text: &str, candidate: &str| {
            let scores = engine.similarity(&[(text, candidate)], &query);
            scores.expect("the pair can be scored").scores[0]
        };
        let all = |text: &&str| {
            let mut scores: Vec<f32> =
                candidates.iter().map(|candidate| score(text, candidate)).collect();
            scores.sort_unstable_by(f32::total_cmp);
            scores.len() as u64
        };
        queries.iter().map(all).sum()
    };
    let halves = candidates.split_at(candidates.len() / 2);
    let on_two = || {
        let both = |text: &&str| {
            let (mut answer, second) = std::thread::scope(|scope| {
                let second = scope.spawn(|| ranked(halves.1, text));
                (ranked(halves.0, text), second.join().expect("the other thread ends well"))
            });
            Ranking::append(&mut answer, second, halves.0.len());
            answer.order(&options);
            answer.results.len() as u64
        };
        queries.iter().map(both).sum()
    };
    let products = Products::new(engine, queries[0], candidates);
    let mut contestants: Vec<Contestant<'_>> =
        vec![("the list at once", Box::new(together)), ("pair by pair", Box::new(by_pair))];
    if method == Method::DynamaxJaccard {
        let one = || queries.iter().map(|_| products.cross()).sum();
        contestants.push(("matrix product of query and candidates", Box::new(one)));
        let all = || queries.iter().map(|_| products.all()).sum();
        contestants.push(("the same, and each candidate with itself", Box::new(all)));
    }
    let name = format!("rank, {} of 300 dimensions, a candidate", method.name());
    contests.hold(&name, candidates.len() * queries.len(), contestants);
    let on_one = || queries.iter().map(|text| ranked(candidates, text).results.len() as u64).sum();
    let threads: Vec<Contestant<'_>> =
        vec![("two threads", Box::new(on_two)), ("one thread", Box::new(on_one))];
    let items = candidates.len() * queries.len();
    contests.hold_by(Clock::Wall, &format!("{name}, by the clock"), items, threads);
}

/// The matrices behind a ranking, gathered beforehand: the library's product has no look-ups.
struct Products {
    query: Array2<f32>,
    words: Array2<f32>,
    ends: Vec<usize>,
}

impl Products {
    fn new(engine: &Engine, query: &str, candidates: &[&str]) -> Self {
        let dims = engine.model().dims();
        let mut phrase = Phrase::new(engine.model());
        let mut gather = |texts: &[&str]| {
            let (mut rows, mut ends) = (Vec::new(), Vec::new());
            for text in texts {
                phrase.read(text);
                for &word in phrase.bag() {
                    let start = rows.len();
                    rows.resize(start + dims, 0.0);
                    phrase.row(word).copy_to(&mut rows[start..]);
                }
                ends.push(rows.len() / dims);
            }
            let words = rows.len() / dims;
            (Array2::from_shape_vec((words, dims), rows).expect("whole rows"), ends)
        };
        let (query, _) = gather(&[query]);
        let (words, ends) = gather(candidates);
        Self { query, words, ends }
    }

    fn cross(&self) -> u64 {
        self.words.dot(&self.query.t()).len() as u64
    }

    fn all(&self) -> u64 {
        let mut start = 0;
        let mut count = self.cross();
        for &end in &self.ends {
            let rows = self.words.slice(ndarray::s![start..end, ..]);
            count += rows.dot(&rows.t()).len() as u64;
            start = end;
        }
        count
    }
}
