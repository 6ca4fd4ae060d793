//! Measures of ranked retrieval, as defined by trec_eval (NIST, version 9).
//!
//! A ranking is judged by grades: 0 means not relevant or not judged, 1 and above relevant.
//! Documents are only compared with each other; queries are not known here.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedRanking {
    ranked: Vec<u32>,
    /// The grades above 0 of all judged documents, returned or not, in falling order.
    relevant: Vec<u32>,
}

impl JudgedRanking {
    /// An ordered ranking: the grade of each returned document, best rank first, and the grades of
    /// judged documents that were not returned.
    #[must_use]
    pub fn new(ranked: Vec<u32>, missed: &[u32]) -> Self {
        let mut relevant: Vec<u32> =
            ranked.iter().chain(missed).copied().filter(|&grade| grade > 0).collect();
        relevant.sort_unstable_by(|a, b| b.cmp(a));
        Self { ranked, relevant }
    }

    /// Ranks a run as trec_eval does and looks up its grades. The documents must be its strings: it
    /// compares `"9"` above `"10"`.
    ///
    /// `None` when a document is returned twice, at which trec_eval stops too, or a score is NaN.
    #[must_use]
    pub fn of_run<D: Ord>(mut run: Vec<(D, f64)>, judgements: &BTreeMap<D, u32>) -> Option<Self> {
        if run.iter().any(|(_, score)| score.is_nan()) {
            return None;
        }
        trec_order(&mut run);
        let returned: BTreeSet<&D> = run.iter().map(|(document, _)| document).collect();
        if returned.len() < run.len() {
            return None;
        }
        let ranked = run.iter().map(|(document, _)| judgements.get(document).copied().unwrap_or(0));
        let missed = judgements.iter().filter(|(document, _)| !returned.contains(document));
        let missed: Vec<u32> = missed.map(|(_, &grade)| grade).collect();
        Some(Self::new(ranked.collect(), &missed))
    }

    /// Average precision: the precision at each relevant document returned, over the relevant
    /// documents of the judgements, so that one never returned counts as 0. Without relevant
    /// documents it is 0.
    #[must_use]
    pub fn average_precision(&self) -> f64 {
        let mut found = 0.0;
        let mut sum = 0.0;
        for (rank, _) in (1_u64..).zip(&self.ranked).filter(|&(_, &grade)| grade > 0) {
            found += 1.0;
            sum += found / rank as f64;
        }
        share(sum, self.relevant.len())
    }

    #[must_use]
    pub fn reciprocal_rank(&self) -> f64 {
        let first = self.ranked.iter().position(|&grade| grade > 0);
        first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0))
    }

    /// The share of relevant documents among the first `k`. A shorter ranking is divided by `k` all
    /// the same.
    #[must_use]
    pub fn precision_at(&self, k: usize) -> f64 {
        share(self.ranked.iter().take(k).filter(|&&grade| grade > 0).count() as f64, k)
    }

    /// Normalised discounted cumulative gain of the whole ranking (trec_eval's `ndcg`): the gain of
    /// a document is its grade, discounted by the logarithm to base 2 of its rank + 1, and the sum
    /// is divided by that of all relevant documents in the best order. 0 without relevant
    /// documents.
    #[must_use]
    pub fn ndcg(&self) -> f64 {
        self.ndcg_at(usize::MAX)
    }

    /// NDCG over the first `k` ranks, of the ranking and of the best order (trec_eval's
    /// `ndcg_cut`).
    #[must_use]
    pub fn ndcg_at(&self, k: usize) -> f64 {
        let ideal = discounted_gain(&self.relevant, k);
        if ideal > 0.0 { (discounted_gain(&self.ranked, k) / ideal).min(1.0) } else { 0.0 }
    }
}

/// Sorts a run as trec_eval does: by falling score, and of equal scores the *larger* document
/// first. The rank column of a run file is ignored. NaN goes to an end.
///
/// Some builds of trec_eval use single precision and so see more ties; scores that were `f32`
/// before are sorted the same way by all.
fn trec_order<D: Ord>(run: &mut [(D, f64)]) {
    // Adding 0 turns -0 into 0: trec_eval regards them as a tie.
    run.sort_unstable_by(|(one, high), (other, low)| {
        (low + 0.0).total_cmp(&(high + 0.0)).then_with(|| other.cmp(one))
    });
}

fn discounted_gain(grades: &[u32], k: usize) -> f64 {
    let discounted =
        |(place, &grade): (usize, &u32)| f64::from(grade) / (place as f64 + 2.0).log2();
    grades.iter().take(k).enumerate().map(discounted).sum()
}

/// `sum / count`; 0 if the count is 0.
fn share(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::golden;

    fn documents<T>(value: &Value, read: impl Fn(&Value) -> T) -> Vec<(String, T)> {
        let documents = value.as_object().into_iter().flatten();
        documents.map(|(document, value)| (document.clone(), read(value))).collect()
    }

    #[test]
    fn every_measure_is_that_of_trec_eval() {
        let golden = golden::topic("ranking");
        for (query, measures) in golden["measures"].as_object().unwrap() {
            let grade = |value: &Value| value.as_u64().unwrap() as u32;
            let judgements = documents(&golden["qrels"][query], grade).into_iter().collect();
            let run = documents(&golden["run"][query], golden::number);
            let judged = JudgedRanking::of_run(run, &judgements).unwrap();
            golden::check(judged.average_precision(), &measures["map"]);
            golden::check(judged.reciprocal_rank(), &measures["recip_rank"]);
            golden::check(judged.precision_at(5), &measures["P_5"]);
            golden::check(judged.precision_at(30), &measures["P_30"]);
            golden::check(judged.ndcg(), &measures["ndcg"]);
            golden::check(judged.ndcg_at(10), &measures["ndcg_cut_10"]);
        }
    }

    #[test]
    fn equal_scores_put_the_larger_document_first() {
        let mut run = vec![("10", 1.0), ("9", 1.0), ("7", -0.0), ("8", 0.0), ("1", 2.0)];
        trec_order(&mut run);
        let documents: Vec<_> = run.into_iter().map(|(document, _)| document).collect();
        assert_eq!(documents, ["1", "9", "10", "8", "7"]);
    }

    #[test]
    fn a_run_that_trec_eval_refuses_is_refused() {
        let judgements = BTreeMap::from([("a", 1)]);
        assert_eq!(JudgedRanking::of_run(vec![("a", 1.0), ("a", 0.5)], &judgements), None);
        assert_eq!(JudgedRanking::of_run(vec![("a", f64::NAN)], &judgements), None);
        let nothing = JudgedRanking::new(vec![0, 0], &[0]);
        assert_eq!(
            [nothing.average_precision(), nothing.ndcg(), nothing.precision_at(0)],
            [0.0; 3]
        );
    }
}
