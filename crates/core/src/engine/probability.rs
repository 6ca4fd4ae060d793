//! How likely a score says that two texts are related, from the labelled pairs of a calibration.

use crate::engine::calibration::{BINS, Calibration};

/// A share of related pairs for every score, which never falls as scores rise.
///
/// The pairs of a calibration lie in equal bins of scores. The share of related pairs in a bin follows
/// chance where a bin holds few, so neighbours whose shares fall are made one (pool adjacent
/// violators) until none does, and between the middles of bins it goes straight.
#[derive(Debug, Clone, PartialEq)]
pub struct Probability {
    low: f64,
    /// Width of a bin.
    width: f64,
    /// The share in the middle of each bin.
    shares: Vec<f64>,
}

struct Pool {
    related: f64,
    all: f64,
    bins: usize,
}

impl Pool {
    fn share(&self) -> f64 {
        if self.all > 0.0 { self.related / self.all } else { 0.0 }
    }
}

impl Probability {
    /// What a calibration says, if it saw related pairs and others. Its prior says how many of all
    /// pairs are related; without one they are as many as it saw.
    pub fn of(calibration: &Calibration) -> Option<Self> {
        let sum = |bins: &[f32]| bins.iter().map(|&count| f64::from(count)).sum::<f64>();
        let (related, unrelated) = (sum(&calibration.related), sum(&calibration.unrelated));
        let threshold = &calibration.threshold;
        let width = (threshold.high - threshold.low) / BINS as f64;
        let prior = threshold.prior.unwrap_or(related / (related + unrelated));
        // The inverse of the width must be a number, too, so that no score becomes one that is not.
        if !(related > 0.0 && unrelated > 0.0 && (1.0 / width).is_finite() && prior.is_finite()) {
            return None;
        }
        let weights = [prior / related, (1.0 - prior) / unrelated];
        let mut pools: Vec<Pool> = Vec::new();
        for (&related, &unrelated) in calibration.related.iter().zip(&calibration.unrelated) {
            let related = weights[0] * f64::from(related);
            let all = related + weights[1] * f64::from(unrelated);
            let mut pool = Pool { related, all, bins: 1 };
            // An empty bin says nothing and goes with those before it.
            while let Some(before) =
                pools.pop_if(|last| pool.all <= 0.0 || last.share() >= pool.share())
            {
                pool = Pool {
                    related: pool.related + before.related,
                    all: pool.all + before.all,
                    bins: pool.bins + before.bins,
                };
            }
            pools.push(pool);
        }
        let shares = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.share(), pool.bins));
        Some(Self { low: threshold.low, width, shares: shares.collect() })
    }

    /// The share of related pairs among those with this score.
    pub fn at(&self, score: f32) -> f64 {
        let place = (f64::from(score) - self.low) / self.width - 0.5;
        let last = self.shares.len().saturating_sub(1) as f64;
        let place = place.clamp(0.0, last);
        let (before, part) = (place.floor(), place.fract());
        let share = |place: f64| self.shares.get(place as usize).copied().unwrap_or(0.0);
        let (one, other) = (share(before), share((before + 1.0).min(last)));
        one + (other - one) * part
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::calibration::{QUANTILES, Threshold};

    fn calibration(related: Vec<f32>, unrelated: Vec<f32>, prior: Option<f64>) -> Calibration {
        let threshold = Threshold {
            threshold: 0.5,
            aim: "f1".to_owned(),
            prior,
            precision: 0.5,
            recall: 0.5,
            f1: 0.5,
            pairs: 1,
            unscored: 0,
            file_digest: String::new(),
            low: -1.0,
            high: 1.0,
        };
        Calibration { threshold, quantiles: vec![0.0; QUANTILES], related, unrelated }
    }

    /// Where every bin holds many pairs, the share in a bin is what was seen there, or what the prior
    /// makes of it.
    #[test]
    fn shares_are_those_of_the_bins() {
        let related: Vec<f32> = (0..BINS).map(|bin| bin as f32).collect();
        let unrelated: Vec<f32> = (0..BINS).map(|bin| (BINS - bin) as f32).collect();
        let seen = Probability::of(&calibration(related.clone(), unrelated.clone(), None)).unwrap();
        let middle = |bin: usize| (-1.0 + (bin as f64 + 0.5) * 0.02) as f32;
        for bin in [0, 1, 50, 99] {
            assert!((seen.at(middle(bin)) - bin as f64 / 100.0).abs() < 1e-5, "{bin}");
        }
        assert!((seen.at(middle(50) + 0.01) - 0.505).abs() < 1e-4);
        let rare = Probability::of(&calibration(related, unrelated, Some(0.01))).unwrap();
        assert!(rare.at(middle(50)) < 0.02 && rare.at(middle(99)) > 0.4);
    }

    #[test]
    fn pairs_of_one_kind_say_nothing() {
        let some = vec![1.0; BINS];
        assert!(Probability::of(&calibration(some.clone(), vec![0.0; BINS], None)).is_none());
        assert!(Probability::of(&calibration(vec![0.0; BINS], some, None)).is_none());
    }

    proptest! {
        #[test]
        fn it_never_falls_and_stays_within_bounds(
            related in prop::collection::vec(0u8..5, BINS),
            unrelated in prop::collection::vec(0u8..5, BINS),
            scores in prop::collection::vec(-3.0f32..3.0, 2..20),
        ) {
            let counts = |bins: &[u8]| bins.iter().map(|&count| f32::from(count)).collect();
            let calibration = calibration(counts(&related), counts(&unrelated), None);
            let Some(known) = Probability::of(&calibration) else { return Ok(()) };
            let mut scores = scores;
            scores.sort_by(f32::total_cmp);
            let shares: Vec<f64> = scores.iter().map(|&score| known.at(score)).collect();
            prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
            prop_assert!(shares.is_sorted(), "{shares:?}");
        }
    }
}
