//! Fused scores against `tests/data/fuse/make.py`, which knows nothing of this crate.

use cognate::engine::fuse::{FuseBy, combine};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    columns: Vec<Vec<Option<f64>>>,
    weights: Vec<f64>,
    rrf: Vec<Option<f64>>,
    zscore: Vec<Option<f64>>,
}

#[test]
fn every_fused_score_is_that_of_the_equations() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../data/fuse/golden.json")).unwrap();
    assert!(cases.len() > 20);
    for (number, case) in cases.iter().enumerate() {
        let column = |column: &Vec<Option<f64>>| -> Vec<f64> {
            column.iter().map(|score| score.unwrap_or(f64::NEG_INFINITY)).collect()
        };
        let columns: Vec<Vec<f64>> = case.columns.iter().map(column).collect();
        for (by, expected) in [(FuseBy::Rrf, &case.rrf), (FuseBy::Zscore, &case.zscore)] {
            let found = combine(by, &columns, &case.weights);
            assert_eq!(found.len(), expected.len());
            for (at, (&found, expected)) in found.iter().zip(expected).enumerate() {
                let agree = match expected {
                    Some(expected) => (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                    None => found == f64::NEG_INFINITY,
                };
                assert!(agree, "case {number}, {}, {at}: {found}, {expected:?}", by.name());
            }
        }
    }
}
