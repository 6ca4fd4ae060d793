//! Random choices in training: generators derived from a seed and a position in the run, so that no
//! generator state has to be stored, and words drawn by their frequency.

use cognate_kernels::random::Random;

/// The generator for one piece of work, derived from the run's seed and the position of the piece
/// in the run, so it does not depend on interruptions.
pub fn generator(seed: u64, purpose: u64, at: [u64; 2]) -> Random {
    let mut state = seed;
    for part in [purpose, at[0], at[1]] {
        // The first number of another seed's stream: neighbouring positions have unrelated streams.
        state = Random::seeded(state ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).word();
    }
    Random::seeded(state)
}

/// A number from 0 (included) to 1 (excluded).
#[inline]
pub fn share(random: &mut Random) -> f64 {
    (random.word() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A standard normal number, by the polar method of Marsaglia.
pub fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * share(random) - 1.0, 2.0 * share(random) - 1.0);
        let length = x * x + y * y;
        if length > 0.0 && length < 1.0 {
            return x * (-2.0 * length.ln() / length).sqrt();
        }
    }
}

/// Draws words by given weights in constant time: Vose's alias method. Every slot holds a word,
/// that word's share of the slot, and the word that has the rest.
#[derive(Debug)]
pub struct Draw {
    slots: Vec<(u32, u32)>,
}

impl Draw {
    /// A distribution over the indices of `weights`, in proportion to them.
    pub fn by(weights: impl Iterator<Item = f64>) -> Self {
        let mut scaled: Vec<f64> = weights.collect();
        let total: f64 = scaled.iter().sum();
        let count = scaled.len() as f64;
        scaled.iter_mut().for_each(|weight| *weight *= count / total);
        let mut slots: Vec<(u32, u32)> =
            (0..scaled.len()).map(|number| (u32::MAX, number as u32)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|&number| scaled[number] < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            slots[low] = ((scaled[low] * f64::from(u32::MAX)) as u32, high as u32);
            scaled[high] -= 1.0 - scaled[low];
            if scaled[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { slots }
    }

    #[inline]
    pub fn next(&self, random: &mut Random) -> u32 {
        let word = random.word();
        let slot = ((word >> 32) * self.slots.len() as u64) >> 32;
        let (own, other) = self.slots[slot as usize];
        if (word as u32) < own { slot as u32 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_drawn_as_often_as_their_weights_say() {
        let weights = [1.0, 0.0, 7.0, 2.0];
        let draw = Draw::by(weights.into_iter());
        let mut random = Random::seeded(3);
        let mut seen = [0_i32; 4];
        for _ in 0..100_000 {
            seen[draw.next(&mut random) as usize] += 1;
        }
        for (seen, weight) in seen.into_iter().zip(weights) {
            assert!((seen - (weight * 10_000.0) as i32).abs() < 600, "{seen} of {weight}");
        }
        assert_eq!(seen[1], 0);
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut random = generator(1, 2, [3, 4]);
        let numbers: Vec<f64> = (0..40_000).map(|_| normal(&mut random)).collect();
        let mean = numbers.iter().sum::<f64>() / 40_000.0;
        let square = numbers.iter().map(|number| number * number).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }

    #[test]
    fn places_in_a_run_have_generators_of_their_own() {
        let first = |seed, purpose, at| generator(seed, purpose, at).word();
        let all = [
            first(0, 0, [0, 0]),
            first(1, 0, [0, 0]),
            first(0, 1, [0, 0]),
            first(0, 0, [1, 0]),
            first(0, 0, [0, 1]),
        ];
        assert!((0..5).all(|i| (0..i).all(|j| all[i] != all[j])));
        assert_eq!(first(9, 8, [7, 6]), first(9, 8, [7, 6]));
    }
}
