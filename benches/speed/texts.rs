//! Measures scoring raw texts on one thread, as a user of the library does it.

use std::path::Path;

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::format::Dtype;

use crate::ground::Vectors;
use crate::port::Port;
use crate::support::Contestant;
use crate::{Contests, at, widths};

/// Pairs a call, as a service would ask.
const BATCH: usize = 100;
/// So few pairs that all they touch stays in the cache: what is left is work, not waiting.
const FEW: usize = 200;

pub fn scores(engine: &Engine, method: Method, pairs: &[(String, String)]) -> u64 {
    let query = Query::new(method);
    let answers = pairs.chunks(BATCH).map(|pairs| engine.similarity(pairs, &query));
    answers.map(|answer| answer.expect("the pairs can be scored").scores.len() as u64).sum()
}

pub fn all(
    contests: &mut Contests,
    engine: &Engine,
    vectors: &Vectors,
    pairs: &[(String, String)],
    folder: &Path,
) {
    let port = Port::new(vectors);
    for method in [Method::AvgCos, Method::DynamaxJaccard] {
        let name = format!("{}, a pair of raw texts", method.name());
        if !contests.wants(&name) {
            continue;
        }
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (width, label) in widths() {
            let run = move || at(width, || scores(engine, method, pairs));
            contestants.push((label, Box::new(run)));
        }
        let port = &port;
        let straight = move || {
            let score = |(a, b): &(String, String)| match method {
                Method::AvgCos => port.avg_cos(a, b),
                _ => port.dynamax(a, b),
            };
            pairs.iter().map(score).sum::<f32>() as u64
        };
        contestants.push(("straightforward port", Box::new(straight)));
        contests.hold(&name, pairs.len(), contestants);
    }
    if contests.wants("few pairs again and again") {
        let few: Vec<(String, String)> =
            pairs.iter().take(FEW).cycle().take(pairs.len()).cloned().collect();
        let (few, port) = (&few, &port);
        for method in [Method::AvgCos, Method::DynamaxJaccard] {
            let straight = move || {
                let score = |(a, b): &(String, String)| match method {
                    Method::AvgCos => port.avg_cos(a, b),
                    _ => port.dynamax(a, b),
                };
                few.iter().map(score).sum::<f32>() as u64
            };
            contests.hold(
                &format!("few pairs again and again, {}", method.name()),
                pairs.len(),
                vec![
                    ("widest", Box::new(move || scores(engine, method, few))),
                    ("straightforward port", Box::new(straight)),
                ],
            );
        }
    }
    if contests.wants("rows of each type") {
        let half = vectors.engine(folder, Dtype::F16);
        let byte = vectors.engine(folder, Dtype::I8);
        for method in [Method::AvgCos, Method::DynamaxJaccard, Method::DynamaxWeighted] {
            let (half, byte) = (&half, &byte);
            contests.hold(
                &format!("rows of each type, {}, a pair of raw texts", method.name()),
                pairs.len(),
                vec![
                    ("f32", Box::new(move || scores(engine, method, pairs))),
                    ("f16", Box::new(move || scores(half, method, pairs))),
                    ("int8", Box::new(move || scores(byte, method, pairs))),
                ],
            );
        }
    }
}
