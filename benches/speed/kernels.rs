//! DynaMax from word ids to score, and how much of the core's arithmetic that is.

use std::path::Path;

use cognate::engine::Engine;
use cognate::methods::{Method, Scorer, Scratch};
use cognate::model::Phrase;
use cognate::model::format::Dtype;
use serde_json::json;

use crate::ground::Vectors;
use crate::support::Contestant;
use crate::{Contests, at, peak, port, widths};

pub fn all(
    contests: &mut Contests,
    engine: &Engine,
    vectors: &Vectors,
    pairs: &[(String, String)],
    folder: &Path,
) {
    if contests.wants("kernel") {
        kernel(contests, engine, vectors, pairs);
        let thrice = vectors.thrice();
        kernel(contests, &thrice.engine(folder, Dtype::F32), &thrice, pairs);
    }
}

fn kernel(contests: &mut Contests, engine: &Engine, vectors: &Vectors, pairs: &[(String, String)]) {
    let read = |text: &str| {
        let mut phrase = Phrase::new(engine.model());
        phrase.read(text);
        phrase
    };
    let phrases: Vec<(Phrase<'_>, Phrase<'_>)> =
        pairs.iter().map(|(a, b)| (read(a), read(b))).collect();
    let Ok(Ok(Scorer::Compare(method))) = Method::DynamaxJaccard.load(engine.model()) else {
        panic!("DynaMax needs vectors alone");
    };
    let dims = vectors.dims;
    let products: usize = phrases
        .iter()
        .map(|(one, other)| {
            let words = one.words().len() + other.words().len();
            words * (words + 1) / 2
        })
        .sum();
    let rows: Vec<Vec<f32>> = vectors.rows.chunks_exact(dims).map(<[f32]>::to_vec).collect();
    let of = |phrase: &Phrase<'_>| -> Vec<u32> {
        phrase.words().iter().filter_map(|&word| phrase.id(word)).collect()
    };
    let ids: Vec<[Vec<u32>; 2]> = phrases.iter().map(|(a, b)| [of(a), of(b)]).collect();
    let name = format!("kernel, DynaMax from ids, {dims} dimensions");
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    let (method, phrases, rows, ids) = (&method, &phrases, &rows, &ids);
    for (width, label) in widths() {
        let mut scratch = Scratch::default();
        let run = move || {
            at(width, || {
                let mut sum = 0.0;
                for (one, other) in phrases {
                    sum += method.pair(one, other, &mut scratch).0;
                }
                sum as u64
            })
        };
        contestants.push((label, Box::new(run)));
    }
    let straight = || {
        let row = |id: &u32| &rows[*id as usize];
        let score = |[a, b]: &[Vec<u32>; 2]| {
            let (a, b): (Vec<_>, Vec<_>) =
                (a.iter().map(row).collect(), b.iter().map(row).collect());
            port::dynamax(&a, &b)
        };
        ids.iter().map(score).sum::<f32>() as u64
    };
    contestants.push(("straightforward port", Box::new(straight)));
    contests.hold(&name, pairs.len(), contestants);
    let peak = peak::multiply_adds_per_nano();
    let floor = (products * dims) as f64 / pairs.len() as f64 / peak;
    println!(
        "  arithmetic alone at the core's peak of {peak:.0} multiply-adds a ns: {floor:.0} ns"
    );
    contests.note(&name, "arithmetic alone", json!({"nanos": floor, "peak": peak}));
}
