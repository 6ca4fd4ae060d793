//! The bias-corrected and accelerated (BCa) bootstrap interval of Efron ("Better bootstrap
//! confidence intervals", 1987; Efron and Tibshirani, "An introduction to the bootstrap", 1993,
//! section 14.3).
//!
//! This module resamples any statistic and does not know what it measures. For differences of Pearson
//! correlations, [`Bootstrap::of_pearson_difference`] computes the same interval faster.

use cognate_kernels::random::Random;
use serde::Serialize;

use super::correlation::standardised;
use super::distribution::quantile_of_sorted;
use super::normal;

/// How an interval is computed. The same settings and numbers give the same bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bootstrap {
    pub resamples: usize,
    /// The share of repetitions whose interval should contain the true value, between 0 and 1.
    pub level: f64,
    pub seed: u64,
}

impl Default for Bootstrap {
    /// Returns 10,000 resamples and a 95 % interval, which the published tables use.
    fn default() -> Self {
        Self { resamples: 10_000, level: 0.95, seed: 1987 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The statistic of the items as they are.
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether 0 is outside: for a difference of two methods, whether it is significant.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl Bootstrap {
    /// The interval of any statistic of `items` items, computed by `statistic` from the indices of
    /// those drawn. It is called once for each resample and once for each item left out, so its
    /// cost is the cost of this.
    ///
    /// `None` when there are fewer than two items or no resamples, when the level is not between 0
    /// and 1, or when the statistic is somewhere not finite.
    #[must_use]
    pub fn of_statistic(
        &self,
        items: usize,
        mut statistic: impl FnMut(&[usize]) -> f64,
    ) -> Option<Interval> {
        if items < 2 {
            return None;
        }
        let everything: Vec<usize> = (0..items).collect();
        let estimate = statistic(&everything);
        let mut without = everything[1..].to_vec();
        let mut jackknife = Vec::with_capacity(items);
        for left_out in 0..items {
            jackknife.push(statistic(&without));
            // The next list differs in one position: the item just left out replaces the one left
            // out next.
            if let Some(place) = without.get_mut(left_out) {
                *place = left_out;
            }
        }
        let mut random = Random::seeded(self.seed);
        let mut drawn = vec![0; items];
        let resamples: Vec<f64> = (0..self.resamples)
            .map(|_| {
                drawn.iter_mut().for_each(|item| *item = random.below(items));
                statistic(&drawn)
            })
            .collect();
        bca_interval(estimate, &resamples, &jackknife, self.level)
    }
}

/// The BCa interval from its three ingredients: the estimate, the statistic of each resample, and
/// the statistic with each item left out in turn (the jackknife, which gives the acceleration).
///
/// Resamples equal to the estimate count half as below it, and the ends are quantiles with a
/// straight line between neighbours, both as in SciPy. Two cases that SciPy answers with NaN have a
/// value here: an estimate beyond every resample counts as half a resample inside, and a jackknife
/// without spread has no acceleration.
///
/// `None` when there are no resamples, when the level is not between 0 and 1, or when a number is
/// not finite.
fn bca_interval(
    estimate: f64,
    resamples: &[f64],
    jackknife: &[f64],
    level: f64,
) -> Option<Interval> {
    let numbers = || resamples.iter().chain(jackknife).chain([&estimate]);
    let level_is_share = level > 0.0 && level < 1.0;
    if resamples.is_empty() || !level_is_share || numbers().any(|number| !number.is_finite()) {
        return None;
    }
    let mut sorted = resamples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);

    let below = sorted.partition_point(|&statistic| statistic < estimate);
    let not_above = sorted.partition_point(|&statistic| statistic <= estimate);
    let half = 0.5 / sorted.len() as f64;
    let share_below = ((below + not_above) as f64 * half).clamp(half, 1.0 - half);
    let bias = normal::quantile(share_below);
    let acceleration = acceleration(jackknife);

    let end = |deviation: f64| {
        let shifted = bias + deviation;
        let stretch = 1.0 - acceleration * shifted;
        // At 0 the formula has its pole; beyond it the bound is the most extreme resample.
        let share = if stretch > 0.0 {
            normal::cumulative(bias + shifted / stretch)
        } else if shifted > 0.0 {
            1.0
        } else {
            0.0
        };
        quantile_of_sorted(&sorted, share)
    };
    // Mirrored instead of computed at one minus the tail, which may round to 1 and give infinity.
    let deviation = normal::quantile((1.0 - level) / 2.0);
    Some(Interval { estimate, low: end(deviation), high: end(-deviation) })
}

/// How fast the standard error changes with the statistic: a sixth of the skewness of the
/// jackknife, in Efron's sense.
fn acceleration(jackknife: &[f64]) -> f64 {
    let mean = jackknife.iter().sum::<f64>() / jackknife.len().max(1) as f64;
    let largest =
        jackknife.iter().fold(0.0_f64, |largest, value| largest.max((mean - value).abs()));
    // Not finite if the values nearly overflow; then no digits are left to compute a skewness from.
    if largest == 0.0 || !largest.is_finite() {
        return 0.0;
    }
    // Deviations in units of the largest: the formula does not depend on the unit, but the cube of
    // a small one underflows.
    let (squares, cubes) = jackknife.iter().fold((0.0, 0.0), |(squares, cubes), value| {
        let deviation = (mean - value) / largest;
        (squares + deviation * deviation, cubes + deviation * deviation * deviation)
    });
    cubes / (6.0 * squares.powf(1.5))
}

impl Bootstrap {
    /// The interval of the first method's Pearson correlation with gold less the second's. Both are
    /// taken from the same resamples, so what makes a draw easy or hard for both cancels out. `None`
    /// where [`pearson`](super::correlation::pearson) has no value, and as for
    /// [`of_statistic`](Self::of_statistic).
    ///
    /// A resample without any correlation (one pair drawn throughout) counts as 0.
    #[must_use]
    pub fn of_pearson_difference(
        &self,
        gold: &[f64],
        first: &[f64],
        second: &[f64],
    ) -> Option<Interval> {
        let rows = rows(gold, [first, second])?;
        let mut whole = Sums::default();
        rows.iter().for_each(|row| whole.add(row, 1.0));
        let without = |row: &Row| {
            let mut without = whole;
            without.add(row, -1.0);
            without.difference()
        };
        let jackknife: Vec<f64> = rows.iter().map(without).collect();
        let mut random = Random::seeded(self.seed);
        let mut resample = || {
            let mut sums = Sums::default();
            for _ in 0..rows.len() {
                sums.add(&rows[random.below(rows.len())], 1.0);
            }
            sums.difference()
        };
        let resamples: Vec<f64> = (0..self.resamples).map(|_| resample()).collect();
        bca_interval(whole.difference(), &resamples, &jackknife, self.level)
    }
}

/// The gold value of a pair and both methods' scores, stored together because they are drawn
/// together.
struct Row {
    gold: f64,
    scores: [f64; 2],
}

/// The pairs with every column standardised, so that sums stay near 1 and keep their precision.
fn rows(gold: &[f64], scores: [&[f64]; 2]) -> Option<Vec<Row>> {
    if scores.iter().any(|column| column.len() != gold.len()) {
        return None;
    }
    let rows = standardised(gold)?.into_iter().map(|gold| Row { gold, scores: [0.0; 2] });
    let mut rows: Vec<Row> = rows.collect();
    for (method, column) in scores.into_iter().enumerate() {
        for (row, score) in rows.iter_mut().zip(standardised(column)?) {
            row.scores[method] = score;
        }
    }
    Some(rows)
}

#[derive(Clone, Copy, Default)]
struct Sums {
    pairs: f64,
    gold: f64,
    gold_squared: f64,
    scores: [f64; 2],
    scores_squared: [f64; 2],
    products: [f64; 2],
}

/// A variance below this share of the squares is what rounding leaves of equal numbers.
const ROUNDING: f64 = 1e-12;

impl Sums {
    /// Adds a pair (`times` = 1) or removes it (-1).
    #[inline]
    fn add(&mut self, row: &Row, times: f64) {
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

    /// The correlation of each method; 0 if the gold values or the scores in the sums are all
    /// equal.
    fn correlations(&self) -> [f64; 2] {
        let gold_spread = spread(self.pairs, self.gold, self.gold_squared);
        std::array::from_fn(|method| {
            let score_spread = spread(self.pairs, self.scores[method], self.scores_squared[method]);
            let spreads = gold_spread.sqrt() * score_spread.sqrt();
            let together = self.pairs * self.products[method] - self.gold * self.scores[method];
            if spreads > 0.0 { (together / spreads).clamp(-1.0, 1.0) } else { 0.0 }
        })
    }

    fn difference(&self) -> f64 {
        let [first, second] = self.correlations();
        first - second
    }
}

/// The variance of the summed numbers times their squared count; 0 if it is no larger than
/// rounding.
fn spread(count: f64, sum: f64, squares: f64) -> f64 {
    let all = count * squares;
    let spread = all - sum * sum;
    if spread > ROUNDING * all { spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::pearson;
    use crate::golden;

    /// The gold values and the scores of two methods.
    fn columns() -> [Vec<f64>; 3] {
        let golden = golden::topic("bootstrap");
        ["gold", "first", "second"].map(|key| golden::numbers(&golden[key]))
    }

    #[test]
    fn endpoints_are_those_of_efrons_formula() {
        for case in golden::topic("bootstrap")["endpoints"].as_array().unwrap() {
            let interval = bca_interval(
                golden::number(&case["estimate"]),
                &golden::numbers(&case["resamples"]),
                &golden::numbers(&case["jackknife"]),
                golden::number(&case["level"]),
            )
            .unwrap();
            golden::check(interval.low, &case["low"]);
            golden::check(interval.high, &case["high"]);
        }
    }

    #[test]
    fn a_whole_interval_agrees_with_scipy_to_the_noise_of_resampling() {
        let [gold, first, second] = columns();
        let bootstrap = Bootstrap::default();
        let found = bootstrap.of_pearson_difference(&gold, &first, &second).unwrap();
        let case = &golden::topic("bootstrap")["whole"][1];
        golden::check(found.estimate, &case["estimate"]);
        // SciPy drew 200,000 resamples. The standard error of one of our bounds is near 3 % of the
        // spread, 0.004.
        golden::check_within(found.low, golden::number(&case["low"]), 0.015);
        golden::check_within(found.high, golden::number(&case["high"]), 0.015);
        assert!(found.excludes_zero());
        assert!(!bootstrap.of_pearson_difference(&gold, &first, &first).unwrap().excludes_zero());
    }

    #[test]
    fn the_general_way_and_the_fast_one_draw_the_same_interval() {
        let [gold, first, second] = columns();
        let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::default() };
        let drawn_fast = || bootstrap.of_pearson_difference(&gold, &first, &second);
        let fast = drawn_fast().unwrap();
        let general = bootstrap.of_statistic(gold.len(), |drawn| {
            let pick = |from: &[f64]| drawn.iter().map(|&item| from[item]).collect::<Vec<_>>();
            let of = |scores: &[f64]| pearson(&pick(&gold), &pick(scores)).unwrap_or(0.0);
            of(&first) - of(&second)
        });
        golden::check_within(fast.low, general.unwrap().low, 1e-12);
        golden::check_within(fast.high, general.unwrap().high, 1e-12);
        assert_eq!(drawn_fast(), Some(fast), "the same seed gives the same bits");
        let other = Bootstrap { seed: 2, ..bootstrap.clone() };
        assert_ne!(other.of_pearson_difference(&gold, &first, &second), Some(fast));
    }

    #[test]
    fn what_scipy_leaves_undefined_is_defined() {
        let flat = bca_interval(0.3, &[0.3; 10], &[0.3; 5], 0.95).unwrap();
        assert_eq!((flat.low, flat.high), (0.3, 0.3));
        // Every resample is below the estimate, and the jackknife is skewed enough to pass the
        // pole.
        let outside = bca_interval(9.0, &[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0, -1.0], 0.999).unwrap();
        assert!(outside.low <= outside.high && (1.0..=3.0).contains(&outside.high));
        let nearly_all = bca_interval(0.5, &[0.0, 1.0], &[0.0, 0.0, 9.0], 1.0_f64.next_down());
        assert!(nearly_all.is_some_and(|all| all.low < 0.01 && all.high > 0.99));
    }

    #[test]
    fn nonsense_has_no_interval() {
        assert_eq!(bca_interval(0.0, &[], &[1.0], 0.95), None);
        assert_eq!(bca_interval(f64::NAN, &[1.0], &[1.0], 0.95), None);
        assert_eq!(bca_interval(0.0, &[1.0], &[1.0], 1.0), None);
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.of_pearson_difference(&[1.0, 2.0], &[1.0], &[1.0, 2.0]), None);
        assert_eq!(bootstrap.of_pearson_difference(&[1.0, 2.0], &[3.0, 3.0], &[1.0, 2.0]), None);
        assert_eq!(bootstrap.of_statistic(1, |_| 0.0), None);
        assert_eq!(bootstrap.of_statistic(5, |_| f64::NAN), None);
    }

    #[test]
    fn taking_a_pair_out_is_the_same_as_never_putting_it_in() {
        let [gold, first, second] = columns();
        let rows = rows(&gold, [&first, &second]).unwrap();
        let mut whole = Sums::default();
        rows.iter().for_each(|row| whole.add(row, 1.0));
        let whole_cases = &golden::topic("bootstrap")["whole"];
        let [of_one, of_gap] = [0, 1].map(|case| golden::numbers(&whole_cases[case]["jackknife"]));
        for (row, (one, gap)) in rows.iter().zip(of_one.into_iter().zip(of_gap)) {
            let mut without = whole;
            without.add(row, -1.0);
            golden::check_within(without.correlations()[0], one, golden::TOLERANCE);
            golden::check_within(without.difference(), gap, golden::TOLERANCE);
        }
    }

    #[test]
    fn one_pair_drawn_again_and_again_has_no_correlation() {
        let rows = rows(&[0.3, 0.7, 0.1], [&[0.9, 0.2, 0.4]; 2]).unwrap();
        for row in &rows {
            let mut sums = Sums::default();
            // For some of these counts rounding leaves a variance that is not 0.
            for _ in 0..50 {
                sums.add(row, 1.0);
                assert_eq!(sums.correlations(), [0.0; 2]);
            }
        }
    }
}
