//! Convolution over rows that were multiplied with the taps of every kernel before, and the maximum
//! of each kernel.

use crate::simd;

pub const MAX_TAPS: usize = 8;

/// Writes the maximum of each kernel over all windows plus its bias, at least 0.
///
/// A row has, for each of `taps` taps, as many numbers as `out`: the row's products with that tap
/// of every kernel. A window lays its taps over as many consecutive rows, and may reach beyond
/// either end, where rows count as zeros; its value is the sum of those numbers, each times its
/// row's weight. Without rows there is one window of zeros. The same bits at every width.
///
/// Panics if there are no taps or more than [`MAX_TAPS`], if a row is shorter than its taps, or if
/// the numbers of weights and rows differ.
pub fn pool(rows: &[&[f32]], weights: &[f32], taps: usize, bias: &[f32], out: &mut [f32]) {
    assert!((1..=MAX_TAPS).contains(&taps), "taps that there is a loop for");
    assert_eq!(rows.len(), weights.len(), "a weight a row");
    out.fill(if rows.is_empty() { 0.0 } else { f32::NEG_INFINITY });
    // Windows begin before the first row and end with the last.
    for window in 0..(rows.len() + taps - 1) * usize::from(!rows.is_empty()) {
        let tap = (taps - 1).saturating_sub(window);
        let first = window + tap + 1 - taps;
        let count = taps.min(rows.len() + taps - 1 - window) - tap;
        let window = Window { rows: &rows[first..], weights: &weights[first..], tap };
        match count {
            1 => window.raise::<1>(out),
            2 => window.raise::<2>(out),
            3 => window.raise::<3>(out),
            4 => window.raise::<4>(out),
            5 => window.raise::<5>(out),
            6 => window.raise::<6>(out),
            7 => window.raise::<7>(out),
            _ => window.raise::<MAX_TAPS>(out),
        }
    }
    for (out, bias) in out.iter_mut().zip(bias) {
        let answer = *out + bias;
        *out = if answer > 0.0 { answer } else { 0.0 };
    }
}

/// The rows under a window, and the tap over the first.
struct Window<'r> {
    rows: &'r [&'r [f32]],
    weights: &'r [f32],
    tap: usize,
}

impl Window<'_> {
    fn raise<const N: usize>(&self, best: &mut [f32]) {
        let width = best.len();
        let numbers = |place: usize| &self.rows[place][(self.tap + place) * width..];
        let rows: [&[f32]; N] = std::array::from_fn(numbers);
        simd::raise_by(best, std::array::from_fn(|place| self.weights[place]), rows);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = f32> {
        -2.0_f32..2.0
    }

    proptest! {
        #[test]
        fn the_best_window_is_found(
            count in 0usize..6,
            taps in 1usize..=MAX_TAPS,
            values in prop::collection::vec(number(), 6 * MAX_TAPS * 5),
            weights in prop::collection::vec(number(), 6),
            bias in prop::collection::vec(number(), 5),
        ) {
            let rows: Vec<&[f32]> = values.chunks(taps * 5).take(count).collect();
            let mut found = [9.0; 5];
            pool(&rows, &weights[..count], taps, &bias, &mut found);
            for (at, (&found, &bias)) in found.iter().zip(&bias).enumerate() {
                // Rows of zeros around the rows, so that all windows are whole.
                let term = |row: usize, tap: usize| {
                    let row = row.checked_sub(taps - 1).filter(|row| *row < count);
                    row.map_or(0.0, |row| f64::from(rows[row][tap * 5 + at] * weights[row]))
                };
                let windows = 0..(count + taps - 1).max(1);
                let answers = windows.map(|first| (0..taps).map(|tap| term(first + tap, tap)).sum());
                let best = answers.fold(f64::NEG_INFINITY, f64::max) + f64::from(bias);
                prop_assert!((f64::from(found) - best.max(0.0)).abs() < 1e-4, "{} {}", found, best);
            }
        }
    }
}
