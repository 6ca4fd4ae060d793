//! The arithmetic of fusing: columns of scores in, one score a candidate out. Methods, texts and
//! names are not known here.
//!
//! - `rrf` (Cormack, Clarke & Büttcher 2009): `Σ_p s_p / (60 + rank_p)`, with `s_p` the part's share
//!   and `rank_p` one more than the candidates that the part scores higher, so that equal scores have
//!   one rank. A candidate that a part does not score gets nothing from it.
//! - `zscore`: `Σ_p s_p (x_p − mean_p) / deviation_p`, mean and deviation over the candidates that the
//!   part scores. Scores that are all the same are 0. A candidate that a part does not score has the
//!   lowest value of the query there, at most 0.
//!
//! Terms are added in the order of their size, so the order of the parts changes no bit. A candidate
//! that no part scores has no score.

use crate::engine::fuse::FuseBy;

/// Added to each rank, so that the first ranks do not outweigh all others.
const RANKS: f64 = 60.0;

/// The score of each candidate from a column of scores for each part; an infinite score or NaN is
/// none; negative infinity for a candidate that no part scores.
pub fn combine<C: AsRef<[f64]>>(by: FuseBy, columns: &[C], weights: &[f64]) -> Vec<f64> {
    let columns: Vec<&[f64]> = columns.iter().map(AsRef::as_ref).collect();
    let length = columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let values: Vec<Vec<f64>> = columns
        .iter()
        .map(|column| match by {
            FuseBy::Rrf => reciprocal_ranks(column),
            FuseBy::Zscore => standardised(column),
        })
        .collect();
    let shares = shares(weights);
    let mut terms = Vec::with_capacity(columns.len());
    let mut score = |at: usize| {
        let is_scored = |column: &&[f64]| column.get(at).is_some_and(|score| score.is_finite());
        if !columns.iter().any(is_scored) {
            return f64::NEG_INFINITY;
        }
        terms.clear();
        let term = |(values, share): (&Vec<f64>, &f64)| share * values.get(at).unwrap_or(&0.0);
        terms.extend(values.iter().zip(&shares).map(term));
        terms.sort_unstable_by(f64::total_cmp);
        terms.iter().fold(0.0, |sum, term| sum + term)
    };
    (0..length).map(&mut score).collect()
}

/// Weights over their sum.
fn shares(weights: &[f64]) -> Vec<f64> {
    let mut sorted = weights.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sum = sorted.iter().fold(0.0, |sum, weight| sum + weight);
    weights.iter().map(|weight| if sum > 0.0 { weight / sum } else { 0.0 }).collect()
}

/// Scores with mean 0 and deviation 1; see the head of this file.
pub fn standardised(scores: &[f64]) -> Vec<f64> {
    let finite = || scores.iter().copied().filter(|score| score.is_finite());
    let count = finite().count().max(1) as f64;
    let mean = finite().sum::<f64>() / count;
    let variance = finite().map(|score| (score - mean) * (score - mean)).sum::<f64>() / count;
    let scale = if variance.is_finite() && variance > 0.0 { variance.sqrt() } else { 0.0 };
    let standard = |score: f64| if scale > 0.0 { (score - mean) / scale } else { 0.0 };
    let lowest = finite().map(standard).fold(0.0, f64::min);
    let value = |&score: &f64| if score.is_finite() { standard(score) } else { lowest };
    scores.iter().map(value).collect()
}

/// The reciprocals of rank plus [`RANKS`]; 0 for a candidate without a score.
fn reciprocal_ranks(scores: &[f64]) -> Vec<f64> {
    // Adding 0 turns -0 into 0: the two are equal scores.
    let finite = scores.iter().map(|score| score + 0.0).enumerate();
    let mut order: Vec<(usize, f64)> = finite.filter(|(_, score)| score.is_finite()).collect();
    order.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut values = vec![0.0; scores.len()];
    let (mut rank, mut before) = (0, f64::INFINITY);
    for (place, &(at, score)) in order.iter().enumerate() {
        if score < before {
            (rank, before) = (place + 1, score);
        }
        if let Some(value) = values.get_mut(at) {
            *value = 1.0 / (RANKS + rank as f64);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f64 = f64::NEG_INFINITY;

    #[test]
    fn equal_scores_have_one_rank_and_missing_ones_none() {
        let ranks: Vec<f64> = reciprocal_ranks(&[2.0, 0.0, NONE, 2.0, -0.0, 3.0])
            .iter()
            .map(|value| if *value > 0.0 { (1.0 / value - RANKS).round() } else { 0.0 })
            .collect();
        assert_eq!(ranks, [2.0, 4.0, 0.0, 2.0, 4.0, 1.0]);
    }

    #[test]
    fn scores_that_are_all_the_same_or_missing_decide_nothing() {
        let columns = [vec![2.0, 2.0, 2.0], vec![NONE, 1.0, 3.0]];
        assert_eq!(combine(FuseBy::Zscore, &columns, &[1.0, 0.0]), [0.0; 3]);
        assert_eq!(combine(FuseBy::Zscore, &columns, &[0.0, 1.0]), [-1.0, -1.0, 1.0]);
        assert_eq!(combine(FuseBy::Zscore, &columns[1..], &[1.0])[0], NONE);
        assert_eq!(combine(FuseBy::Rrf, &columns[1..], &[1.0])[0], NONE);
        let odd = [vec![f64::MAX, -f64::MAX, f64::NAN]];
        for by in FuseBy::ALL {
            let scores = combine(by, &odd, &[1.0]);
            assert!(scores[..2].iter().all(|score| score.is_finite()), "{scores:?}");
            assert_eq!(scores[2], NONE);
        }
    }
}
