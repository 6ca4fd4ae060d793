//! Measures of ranked retrieval, as defined by trec_eval (NIST, version 9).
//!
//! A ranking is judged by grades: 0 means not relevant or not judged, 1 and above relevant.
//! Documents are only compared with each other; queries are not known here.

use std::collections::{BTreeMap, BTreeSet};

/// A query's ranking with the grades of its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedRanking {
    /// The grades of the returned documents, best rank first.
    ranked: Vec<u32>,
    /// The grades above 0 of all judged documents, returned or not, in falling order.
    relevant: Vec<u32>,
    /// Whether the query occurs in the judgements.
    listed: bool,
}

impl JudgedRanking {
    /// An ordered ranking: the grade of each returned document, best rank first, and the grades of
    /// judged documents that were not returned. The query counts as listed in the judgements.
    #[must_use]
    pub fn new(ranked: Vec<u32>, missed: &[u32]) -> Self {
        let mut relevant: Vec<u32> =
            ranked.iter().chain(missed).copied().filter(|&grade| grade > 0).collect();
        relevant.sort_unstable_by(|a, b| b.cmp(a));
        Self { ranked, relevant, listed: true }
    }

    /// Ranks a run by [`trec_order`] and looks up its grades. Judgements without any document mean
    /// that the query is not listed in them. To rank as trec_eval does the documents must be its
    /// strings: it compares `"9"` above `"10"`.
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
        Some(Self { listed: !judgements.is_empty(), ..Self::new(ranked.collect(), &missed) })
    }

    /// Number of relevant documents in the judgements, returned or not.
    #[must_use]
    pub fn relevant(&self) -> usize {
        self.relevant.len()
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

    /// One over the rank of the first relevant document; 0 if none was returned.
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

    /// The precision at the rank that is the number of relevant documents; 0 without any.
    #[must_use]
    pub fn r_precision(&self) -> f64 {
        self.precision_at(self.relevant.len())
    }

    /// Normalised discounted cumulative gain of the whole ranking (trec_eval's `ndcg`): the gain of
    /// a document is its grade, discounted by the logarithm to base 2 of its rank + 1, and the sum
    /// is divided by that of all relevant documents in the best order. 0 without relevant
    /// documents.
    #[must_use]
    pub fn ndcg(&self) -> f64 {
        self.ndcg_at(usize::MAX)
    }

    /// The same over the first `k` ranks, of the ranking and of the best order (trec_eval's
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
pub fn trec_order<D: Ord>(run: &mut [(D, f64)]) {
    // Adding 0 turns -0 into 0: trec_eval regards them as a tie.
    run.sort_unstable_by(|(one, high), (other, low)| {
        (low + 0.0).total_cmp(&(high + 0.0)).then_with(|| other.cmp(one))
    });
}

/// Which queries a mean includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Queries that are in both the run and the judgements, even if no judged document is relevant
    /// (such a query counts as 0): the default of trec_eval.
    Answered,
    /// Queries in the judgements; one that is missing in the run counts as 0: trec_eval with `-c`.
    Listed,
    /// Queries with a relevant document, in the run or not, for judgements that list queries
    /// without any.
    Relevant,
}

/// The mean of a measure over the included queries; `None` if there are none.
#[must_use]
pub fn mean(
    queries: &[JudgedRanking],
    counted: Counted,
    measure: impl Fn(&JudgedRanking) -> f64,
) -> Option<f64> {
    let values: Vec<f64> = queries
        .iter()
        .filter(|query| match counted {
            Counted::Answered => query.listed && !query.ranked.is_empty(),
            Counted::Listed => query.listed,
            Counted::Relevant => !query.relevant.is_empty(),
        })
        .map(measure)
        .collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The discounted gain of the first `k` grades.
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
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::io::Read;
    use std::path::Path;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::golden;

    fn documents<T>(value: &Value, read: impl Fn(&Value) -> T) -> Vec<(String, T)> {
        let Some(documents) = value.as_object() else {
            return Vec::new();
        };
        documents.iter().map(|(document, value)| (document.clone(), read(value))).collect()
    }

    fn judged(golden: &Value, query: &str) -> JudgedRanking {
        let grade = |value: &Value| value.as_u64().unwrap() as u32;
        let judgements: BTreeMap<_, _> =
            documents(&golden["qrels"][query], grade).into_iter().collect();
        JudgedRanking::of_run(documents(&golden["run"][query], golden::number), &judgements)
            .unwrap()
    }

    #[test]
    fn every_measure_is_that_of_trec_eval() {
        let golden = golden::topic("ranking");
        for (query, measures) in golden["measures"].as_object().unwrap() {
            let judged = judged(&golden, query);
            golden::check(judged.average_precision(), &measures["map"]);
            golden::check(judged.reciprocal_rank(), &measures["recip_rank"]);
            golden::check(judged.precision_at(5), &measures["P_5"]);
            golden::check(judged.precision_at(30), &measures["P_30"]);
            golden::check(judged.r_precision(), &measures["Rprec"]);
            golden::check(judged.ndcg(), &measures["ndcg"]);
            golden::check(judged.ndcg_at(10), &measures["ndcg_cut_10"]);
        }
    }

    #[test]
    fn a_mean_counts_the_queries_it_is_told_to() {
        let golden = golden::topic("ranking");
        let queries: Vec<_> = (0..12).map(|query| judged(&golden, &format!("q{query}"))).collect();
        let over = |counted| mean(&queries, counted, JudgedRanking::average_precision).unwrap();
        golden::check(over(Counted::Answered), &golden["mean_map"]);
        // Query 7 is judged but not answered, query 9 answered but not judged, query 3 judged and
        // without a relevant one.
        golden::check_within(over(Counted::Listed) * 11.0, over(Counted::Answered) * 10.0, 1e-14);
        golden::check_within(over(Counted::Relevant) * 10.0, over(Counted::Answered) * 10.0, 1e-14);
        assert_eq!(mean(&[], Counted::Listed, JudgedRanking::ndcg), None);
    }

    #[test]
    fn equal_scores_put_the_larger_document_first() {
        let mut run = vec![("10", 1.0), ("9", 1.0), ("7", -0.0), ("8", 0.0), ("1", 2.0)];
        trec_order(&mut run);
        let documents: Vec<_> = run.into_iter().map(|(document, _)| document).collect();
        assert_eq!(documents, ["1", "9", "10", "8", "7"]);
    }

    #[test]
    fn relevant_documents_never_returned_lower_what_looks_at_them() {
        let judged = JudgedRanking::new(vec![0, 2, 1], &[1, 0]);
        assert_eq!(judged.relevant(), 3);
        assert_eq!(judged.average_precision(), (1.0 / 2.0 + 2.0 / 3.0) / 3.0);
        assert_eq!(judged.r_precision(), 2.0 / 3.0);
        assert_eq!(judged.precision_at(30), 2.0 / 30.0);
        assert_eq!(judged.precision_at(0), 0.0);
    }

    #[test]
    fn a_run_that_trec_eval_refuses_is_refused() {
        let judgements = BTreeMap::from([("a", 1)]);
        assert_eq!(JudgedRanking::of_run(vec![("a", 1.0), ("a", 0.5)], &judgements), None);
        assert_eq!(JudgedRanking::of_run(vec![("a", f64::NAN)], &judgements), None);
    }

    proptest! {
        #[test]
        fn every_measure_is_a_share_and_the_best_order_is_perfect(
            grades in prop::collection::vec(0_u32..4, 0..30),
            missed in prop::collection::vec(0_u32..4, 0..5),
            k in 0_usize..40,
        ) {
            let judged = JudgedRanking::new(grades.clone(), &missed);
            for value in [
                judged.average_precision(),
                judged.reciprocal_rank(),
                judged.precision_at(k),
                judged.r_precision(),
                judged.ndcg(),
                judged.ndcg_at(k),
            ] {
                prop_assert!((0.0..=1.0).contains(&value));
            }
            let mut best = grades;
            best.sort_unstable_by(|a, b| b.cmp(a));
            let best = JudgedRanking::new(best, &[]);
            let perfect = if best.relevant() == 0 { 0.0 } else { 1.0 };
            prop_assert!((best.ndcg() - perfect).abs() < 1e-12);
            prop_assert!((best.average_precision() - perfect).abs() < 1e-12);
        }
    }

    type Judgements = BTreeMap<String, BTreeMap<String, u32>>;

    fn judgements(path: &Path) -> Judgements {
        let mut judgements = Judgements::new();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let [query, document, grade] = *line.split('\t').collect::<Vec<_>>() else {
                panic!("{line}")
            };
            let grades = judgements.entry(query.to_owned()).or_default();
            grades.insert(document.to_owned(), grade.parse().unwrap());
        }
        judgements
    }

    /// The documents of each query with their scores.
    fn runs(path: &Path) -> BTreeMap<String, Vec<(String, f64)>> {
        let mut text = String::new();
        GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        let mut runs: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let run = runs.entry(fields[0].to_owned()).or_default();
            run.push((fields[3].to_owned(), fields[5].parse().unwrap()));
        }
        runs
    }

    #[test]
    fn the_runs_have_their_published_figures() {
        let folder =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/ranking"));
        if !folder.is_dir() {
            eprintln!("passed over: {} is absent", folder.display());
            return;
        }
        for (year, map, p30) in
            [(2011, 0.3576, 0.4000), (2012, 0.2091, 0.3311), (2013, 0.2532, 0.4450)]
        {
            let judgements = judgements(&folder.join(format!("microblog-{year}.qrels.tsv")));
            let none = BTreeMap::new();
            let queries: Vec<JudgedRanking> =
                runs(&folder.join(format!("microblog-{year}.tsv.gz")))
                    .into_iter()
                    .map(|(query, run)| {
                        JudgedRanking::of_run(run, judgements.get(&query).unwrap_or(&none)).unwrap()
                    })
                    .collect();
            let over = |measure: fn(&JudgedRanking) -> f64| {
                mean(&queries, Counted::Answered, measure).unwrap()
            };
            let found =
                [over(JudgedRanking::average_precision), over(|query| query.precision_at(30))];
            for (found, published) in found.into_iter().zip([map, p30]) {
                // Four published digits.
                assert!(
                    (found - published).abs() <= 0.00005,
                    "{year}: {found}, published {published}"
                );
            }
        }
    }
}
