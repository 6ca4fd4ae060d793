//! Reference values of numpy, SciPy, scikit-learn and trec_eval for seeded inputs
//! (`tests/data/stats/make.py`), for the tests of this crate.

use serde_json::Value;

/// Maximum difference of a deterministic statistic from the reference, relative to the larger of 1
/// and the value.
pub(super) const TOLERANCE: f64 = 1e-10;

pub(super) fn topic(name: &str) -> Value {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stats/golden.json"));
    let mut all: Value = serde_json::from_str(text).unwrap();
    all[name].take()
}

pub(super) fn cases(name: &str) -> Vec<Value> {
    let Value::Array(cases) = topic(name) else { panic!("{name} is not a list of cases") };
    assert!(!cases.is_empty());
    cases
}

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// One number. Real numbers are written as strings: a JSON reader may round the last bit, the
/// standard library never does.
pub(super) fn number(value: &Value) -> f64 {
    value.as_str().map_or_else(|| value.as_f64().unwrap(), |text| text.parse().unwrap())
}

pub(super) fn labels(value: &Value) -> Vec<bool> {
    value.as_array().unwrap().iter().map(|label| label.as_bool().unwrap()).collect()
}

/// Fails unless `found` equals the reference to within [`TOLERANCE`].
#[track_caller]
pub(super) fn check(found: f64, expected: &Value) {
    check_within(found, number(expected), TOLERANCE);
}

/// Fails unless the difference is at most `tolerance`, relative to the larger of 1 and the expected
/// number.
#[track_caller]
pub(super) fn check_within(found: f64, expected: f64, tolerance: f64) {
    let limit = tolerance * expected.abs().max(1.0);
    assert!((found - expected).abs() <= limit, "found {found}, expected {expected}");
}

/// Panics unless a probability has the digits of the reference, however small the probability is.
#[track_caller]
pub(super) fn check_digits(found: f64, expected: &Value) {
    let expected = number(expected);
    assert!(
        (found - expected).abs() <= 1e-10 * expected.abs(),
        "found {found:e}, expected {expected:e}"
    );
}
