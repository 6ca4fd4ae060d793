//! Pearson's correlation of many resamples of the same pairs, from running sums: one pass over the
//! draws of a resample, nothing allocated on the way, and a jackknife that takes one pair's share
//! out of the sums instead of summing again.
//!
//! How an interval is made of the resamples is known to `bootstrap`.

use cognate_kernels::random::Random;

use super::bootstrap::{Bootstrap, Interval, bca_interval};
use super::correlation::standardised;

impl Bootstrap {
    /// The interval of Pearson's correlation between gold values and one method's scores. `None`
    /// where [`pearson`](super::correlation::pearson) has no value, and as for
    /// [`of_statistic`](Self::of_statistic).
    ///
    /// A resample without any correlation (one pair drawn throughout) counts as 0.
    #[must_use]
    pub fn of_pearson(&self, gold: &[f64], scores: &[f64]) -> Option<Interval> {
        interval(self, gold, [scores], |[correlation]| correlation)
    }

    /// The interval of the first method's Pearson correlation with gold less the second's. Both are
    /// taken from the same resamples, so what makes a draw easy or hard for both cancels out.
    /// `None` as for [`of_pearson`](Self::of_pearson).
    #[must_use]
    pub fn of_pearson_difference(
        &self,
        gold: &[f64],
        first: &[f64],
        second: &[f64],
    ) -> Option<Interval> {
        interval(self, gold, [first, second], |[first, second]| first - second)
    }
}

/// The BCa interval of a statistic of the correlations of `METHODS` methods with the same gold
/// values.
fn interval<const METHODS: usize>(
    bootstrap: &Bootstrap,
    gold: &[f64],
    scores: [&[f64]; METHODS],
    statistic: impl Fn([f64; METHODS]) -> f64,
) -> Option<Interval> {
    let rows = rows(gold, scores)?;
    let mut whole = Sums::default();
    rows.iter().for_each(|row| whole.add(row, 1.0));
    let jackknife: Vec<f64> = rows
        .iter()
        .map(|row| {
            let mut without = whole.clone();
            without.add(row, -1.0);
            statistic(without.correlations())
        })
        .collect();
    let mut random = Random::seeded(bootstrap.seed);
    let resamples: Vec<f64> = (0..bootstrap.resamples)
        .map(|_| {
            let mut sums = Sums::default();
            for _ in 0..rows.len() {
                sums.add(&rows[random.below(rows.len())], 1.0);
            }
            statistic(sums.correlations())
        })
        .collect();
    bca_interval(statistic(whole.correlations()), &resamples, &jackknife, bootstrap.level)
}

/// One pair: its gold value and what each method scored, next to each other because they are drawn
/// together.
struct Row<const METHODS: usize> {
    gold: f64,
    scores: [f64; METHODS],
}

/// The pairs with every column standardised, so that the sums stay near 1 and keep their digits.
fn rows<const METHODS: usize>(
    gold: &[f64],
    scores: [&[f64]; METHODS],
) -> Option<Vec<Row<METHODS>>> {
    if scores.iter().any(|column| column.len() != gold.len()) {
        return None;
    }
    let mut rows: Vec<_> =
        standardised(gold)?.into_iter().map(|gold| Row { gold, scores: [0.0; METHODS] }).collect();
    for (method, column) in scores.into_iter().enumerate() {
        for (row, score) in rows.iter_mut().zip(standardised(column)?) {
            row.scores[method] = score;
        }
    }
    Some(rows)
}

/// The sums that correlations are made of.
#[derive(Clone)]
struct Sums<const METHODS: usize> {
    pairs: f64,
    gold: f64,
    gold_squared: f64,
    scores: [f64; METHODS],
    scores_squared: [f64; METHODS],
    products: [f64; METHODS],
}

impl<const METHODS: usize> Default for Sums<METHODS> {
    fn default() -> Self {
        let none = [0.0; METHODS];
        Self {
            pairs: 0.0,
            gold: 0.0,
            gold_squared: 0.0,
            scores: none,
            scores_squared: none,
            products: none,
        }
    }
}

/// A spread smaller than this share of the squares is what rounding leaves of equal numbers.
const ROUNDING: f64 = 1e-12;

impl<const METHODS: usize> Sums<METHODS> {
    /// Puts a pair in (`times` = 1) or takes it out (-1).
    #[inline]
    fn add(&mut self, row: &Row<METHODS>, times: f64) {
        let gold = times * row.gold;
        self.pairs += times;
        self.gold += gold;
        self.gold_squared += gold * row.gold;
        for (method, score) in row.scores.into_iter().enumerate() {
            self.scores[method] += times * score;
            self.scores_squared[method] += times * score * score;
            self.products[method] += gold * score;
        }
    }

    /// The correlation of each method; 0 where the gold values or the scores summed are all equal.
    fn correlations(&self) -> [f64; METHODS] {
        let gold_spread = spread(self.pairs, self.gold, self.gold_squared);
        std::array::from_fn(|method| {
            let score_spread = spread(self.pairs, self.scores[method], self.scores_squared[method]);
            let spreads = gold_spread.sqrt() * score_spread.sqrt();
            let together = self.pairs * self.products[method] - self.gold * self.scores[method];
            if spreads > 0.0 { (together / spreads).clamp(-1.0, 1.0) } else { 0.0 }
        })
    }
}

/// The variance of summed numbers times the square of their count; 0 when it cannot be told from
/// rounding.
fn spread(count: f64, sum: f64, squares: f64) -> f64 {
    let all = count * squares;
    let spread = all - sum * sum;
    if spread > ROUNDING * all { spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{Sums, rows};
    use crate::golden;

    #[test]
    fn taking_a_pair_out_is_the_same_as_never_putting_it_in() {
        let golden = golden::topic("bootstrap");
        let [gold, first, second] =
            ["gold", "first", "second"].map(|key| golden::numbers(&golden[key]));
        let rows = rows(&gold, [&first, &second]).unwrap();
        let mut whole = Sums::default();
        rows.iter().for_each(|row| whole.add(row, 1.0));
        let of_one = golden::numbers(&golden["whole"][0]["jackknife"]);
        let of_gap = golden::numbers(&golden["whole"][1]["jackknife"]);
        for (row, (one, gap)) in rows.iter().zip(of_one.into_iter().zip(of_gap)) {
            let mut without = whole.clone();
            without.add(row, -1.0);
            let [a, b] = without.correlations();
            golden::check_within(a, one, golden::TOLERANCE);
            golden::check_within(a - b, gap, golden::TOLERANCE);
        }
    }

    #[test]
    fn one_pair_drawn_again_and_again_has_no_correlation() {
        let rows = rows(&[0.3, 0.7, 0.1], [&[0.9, 0.2, 0.4]]).unwrap();
        for row in &rows {
            let mut sums = Sums::default();
            // Some of these counts leave a rounded spread that is not 0.
            for _ in 0..50 {
                sums.add(row, 1.0);
                assert_eq!(sums.correlations(), [0.0]);
            }
        }
    }
}
