//! Small seeded generators, so that a published interval can be computed again to the last bit.
//!
//! The algorithm is xoshiro256++ of Blackman and Vigna ("Scrambled linear pseudorandom number
//! generators", 2019), its state filled by splitmix64 as its authors advise. It is written here,
//! and not taken from a library, because a library may change its generator between versions and
//! with it every figure in a report. It knows nothing of secrets: never use it where someone gains
//! by guessing the next word.

/// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): enough
/// for a start that depends on nothing else, and for the state of [`Random`].
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    #[inline]
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A stream of random words fixed by its seed, on every machine.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut filler = SplitMix64::seeded(seed);
        let state = [(); 4].map(|()| filler.word());
        Self { state }
    }

    #[inline]
    pub fn word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let word = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        word
    }

    /// A whole number from 0 to `bound` - 1, each as likely as any other; 0 if `bound` is 0.
    ///
    /// Lemire's multiplication ("Fast random integer generation in an interval", 2019): the high
    /// half of `word * bound`, drawn again in the rare case that would favour some values.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        loop {
            let wide = u128::from(self.word()) * u128::from(bound);
            let low = wide as u64;
            // Division is slow, so it is done only when the cheap comparison cannot decide.
            if low >= bound || bound == 0 || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as usize;
            }
        }
    }

    /// Shuffles a list (Fisher and Yates, in Durstenfeld's form).
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    fn published() -> Vec<serde_json::Value> {
        let golden = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../stats/tests/data/stats/golden.json"
        ));
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        golden["random"].as_array().unwrap().clone()
    }

    #[test]
    fn words_are_those_of_the_published_algorithm() {
        for case in published() {
            let seed = case["seed"].as_str().unwrap().parse().unwrap();
            let mut random = Random::seeded(seed);
            for word in case["words"].as_array().unwrap() {
                assert_eq!(random.word().to_string(), word.as_str().unwrap(), "seed {seed}");
            }
        }
    }

    #[test]
    fn every_value_below_the_bound_is_as_likely() {
        let mut random = Random::seeded(7);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7)] += 1;
        }
        // The standard deviation of each count is 93.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 500), "{seen:?}");
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut list: Vec<u32> = (0..100).collect();
        Random::seeded(5).shuffle(&mut list);
        assert_ne!(list, (0..100).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn bounds_of_nothing_and_of_everything_end() {
        let mut random = Random::seeded(0);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
        // Half of all words would favour some value under this bound, so draws are often repeated.
        let bound = (1_usize << (usize::BITS - 1)) + 1;
        assert!((0..100).all(|_| random.below(bound) < bound));
    }
}
