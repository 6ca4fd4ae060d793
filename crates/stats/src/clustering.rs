//! How well a clustering of texts agrees with a gold clustering.
//!
//! Best-match F1 takes, for each gold cluster of two texts or more, the found cluster with the
//! highest F1, and averages over gold clusters. B-cubed (Bagga and Baldwin 1998) averages over
//! texts the share of a text's found cluster that belongs to its gold cluster (precision), and vice
//! versa (recall). Normalised and adjusted mutual information (Vinh, Epps and Bailey 2010) are
//! divided by the mean of both entropies; the adjusted Rand index is that of Hubert and Arabie
//! (1985).

use std::collections::BTreeMap;

use serde::Serialize;

/// Measures of agreement between two clusterings; each is 1 if they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Mean over gold clusters of two texts or more of the best F1 of any found cluster.
    pub best_match_f1: f64,
    pub b_cubed_precision: f64,
    pub b_cubed_recall: f64,
    pub b_cubed_f: f64,
    pub nmi: f64,
    /// Adjusted mutual information; 0 is the value expected by chance.
    pub ami: f64,
    /// Adjusted Rand index; 0 is the value expected by chance.
    pub ari: f64,
}

pub fn mean(all: &[Agreement]) -> Option<Agreement> {
    let of = |figure: fn(&Agreement) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
    (!all.is_empty()).then(|| Agreement {
        best_match_f1: of(|one| one.best_match_f1),
        b_cubed_precision: of(|one| one.b_cubed_precision),
        b_cubed_recall: of(|one| one.b_cubed_recall),
        b_cubed_f: of(|one| one.b_cubed_f),
        nmi: of(|one| one.nmi),
        ami: of(|one| one.ami),
        ari: of(|one| one.ari),
    })
}

/// The contingency table: the number of texts in each pair of gold and found clusters, and cluster
/// sizes.
struct Table {
    texts: usize,
    cells: Vec<(usize, usize, usize)>,
    gold: Vec<usize>,
    found: Vec<usize>,
}

impl Table {
    fn new(gold: &[u64], found: &[u64]) -> Self {
        let (gold, of_gold) = places(gold);
        let (found, of_found) = places(found);
        let mut cells = BTreeMap::new();
        for pair in of_gold.iter().copied().zip(of_found.iter().copied()) {
            *cells.entry(pair).or_insert(0) += 1;
        }
        let cells = cells.into_iter().map(|((gold, found), count)| (gold, found, count));
        Self { texts: of_gold.len(), cells: cells.collect(), gold, found }
    }

    /// The sum of `f(common, size of the gold cluster, size of the found one)` over the cells.
    fn sum(&self, f: impl Fn(f64, f64, f64) -> f64) -> f64 {
        let sizes = |&(gold, found, common): &(usize, usize, usize)| {
            f(common as f64, self.gold[gold] as f64, self.found[found] as f64)
        };
        self.cells.iter().map(sizes).sum()
    }
}

/// The sizes of the clusters, and for each text the index of its cluster.
fn places(labels: &[u64]) -> (Vec<usize>, Vec<usize>) {
    let mut known = BTreeMap::new();
    let mut sizes = Vec::new();
    let mut of_text = Vec::with_capacity(labels.len());
    for label in labels {
        let place = *known.entry(label).or_insert(sizes.len());
        if place == sizes.len() {
            sizes.push(0);
        }
        sizes[place] += 1;
        of_text.push(place);
    }
    (sizes, of_text)
}

pub fn agreement(gold: &[u64], found: &[u64]) -> Option<Agreement> {
    if gold.len() != found.len() || gold.is_empty() {
        return None;
    }
    let table = Table::new(gold, found);
    let texts = table.texts as f64;
    let b_cubed_precision = table.sum(|common, _, found| common * common / found) / texts;
    let b_cubed_recall = table.sum(|common, gold, _| common * common / gold) / texts;
    let (nmi, ami) = mutual_information(&table);
    Some(Agreement {
        best_match_f1: best_match(&table),
        b_cubed_precision,
        b_cubed_recall,
        b_cubed_f: 2.0 * b_cubed_precision * b_cubed_recall / (b_cubed_precision + b_cubed_recall),
        nmi,
        ami,
        ari: adjusted_rand(&table),
    })
}

/// Best-match F1; 0 if no gold cluster has two texts.
fn best_match(table: &Table) -> f64 {
    let mut best = vec![0.0_f64; table.gold.len()];
    for &(gold, found, common) in &table.cells {
        let f1 = 2.0 * common as f64 / (table.gold[gold] + table.found[found]) as f64;
        best[gold] = best[gold].max(f1);
    }
    let counted = table.gold.iter().zip(best).filter(|&(&size, _)| size > 1);
    let (clusters, sum) = counted.fold((0, 0.0), |(n, sum), (_, best)| (n + 1, sum + best));
    if clusters == 0 { 0.0 } else { sum / f64::from(clusters) }
}

fn adjusted_rand(table: &Table) -> f64 {
    let pairs = |size: f64| size * (size - 1.0) / 2.0;
    let both = table.sum(|common, _, _| pairs(common));
    let of = |sizes: &[usize]| sizes.iter().map(|&size| pairs(size as f64)).sum::<f64>();
    let (gold, found, all) = (of(&table.gold), of(&table.found), pairs(table.texts as f64));
    let expected = if all > 0.0 { gold * found / all } else { 0.0 };
    let most = (gold + found) / 2.0;
    // Both clusterings consist of single texts, or both of one cluster.
    if most == expected { 1.0 } else { (both - expected) / (most - expected) }
}

fn entropy(sizes: &[usize], texts: f64) -> f64 {
    -sizes.iter().map(|&size| size as f64 / texts).map(|share| share * share.ln()).sum::<f64>()
}

fn mutual_information(table: &Table) -> (f64, f64) {
    let (found, gold) = (table.found.len(), table.gold.len());
    let trivial = (found == 1 && gold == 1) || (found == table.texts && gold == table.texts);
    if trivial {
        return (1.0, 1.0);
    }
    let texts = table.texts as f64;
    let shared = table
        .sum(|common, gold, found| common / texts * (common * texts / (gold * found)).ln())
        .max(0.0);
    let mean = (entropy(&table.gold, texts) + entropy(&table.found, texts)) / 2.0;
    let expected = expected_information(table);
    let nmi = if mean > 0.0 { shared / mean } else { 0.0 };
    let above = mean - expected;
    // As in scikit-learn: avoids a division by zero.
    let above = if above < 0.0 { above.min(-f64::EPSILON) } else { above.max(f64::EPSILON) };
    (nmi, (shared - expected) / above)
}

/// The mutual information expected if texts are assigned at random to clusters of these sizes.
fn expected_information(table: &Table) -> f64 {
    let texts = table.texts;
    // ln n! for every n.
    let mut logs = Vec::with_capacity(texts + 1);
    let mut sum = 0.0;
    logs.push(0.0);
    for n in 1..=texts {
        sum += (n as f64).ln();
        logs.push(sum);
    }
    let (gold, found) = (by_size(&table.gold), by_size(&table.found));
    let mut expected = 0.0;
    for (&a, &times_a) in &gold {
        for (&b, &times_b) in &found {
            let fixed = logs[a] + logs[b] + logs[texts - a] + logs[texts - b] - logs[texts];
            let mut of_sizes = 0.0;
            for common in (a + b).saturating_sub(texts).max(1)..=a.min(b) {
                let chance = fixed
                    - logs[common]
                    - logs[a - common]
                    - logs[b - common]
                    - logs[texts + common - a - b];
                let (n, c) = (texts as f64, common as f64);
                let information = c / n * (n * c / (a as f64 * b as f64)).ln();
                of_sizes += information * chance.exp();
            }
            expected += of_sizes * (times_a * times_b) as f64;
        }
    }
    expected
}

fn by_size(sizes: &[usize]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for &size in sizes {
        *counts.entry(size).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::golden::{cases, check_within, number};

    fn labels(value: &serde_json::Value) -> Vec<u64> {
        value.as_array().unwrap().iter().map(|label| label.as_u64().unwrap()).collect()
    }

    #[test]
    fn figures_are_those_of_scikit_learn() {
        for case in cases("clustering") {
            let (gold, found) = (labels(&case["gold"]), labels(&case["found"]));
            let figures = agreement(&gold, &found).unwrap();
            for (name, figure) in [
                ("nmi", figures.nmi),
                ("ami", figures.ami),
                ("ari", figures.ari),
                ("b_cubed_precision", figures.b_cubed_precision),
                ("b_cubed_recall", figures.b_cubed_recall),
                ("best_match_f1", figures.best_match_f1),
            ] {
                check_within(figure, number(&case[name]), 1e-9);
            }
        }
    }

    #[test]
    fn lists_that_cannot_be_compared_have_no_figures() {
        assert_eq!(agreement(&[], &[]), None);
        assert_eq!(agreement(&[1], &[1, 2]), None);
    }

    proptest! {
        #[test]
        fn names_do_not_matter_and_the_same_partition_is_perfect(
            gold in prop::collection::vec(0u64..6, 2..40),
        ) {
            let renamed: Vec<u64> = gold.iter().map(|label| 97 - 3 * label).collect();
            let same = agreement(&gold, &renamed).unwrap();
            for figure in [same.b_cubed_f, same.nmi, same.ami, same.ari] {
                prop_assert!((figure - 1.0).abs() < 1e-9, "{same:?}");
            }
            let alone: Vec<u64> = (0..gold.len() as u64).collect();
            let apart = agreement(&gold, &alone).unwrap();
            prop_assert!((apart.b_cubed_precision - 1.0).abs() < 1e-12);
            prop_assert!([apart.nmi, apart.ami, apart.ari].iter().all(|figure| figure.is_finite()));
        }
    }
}
