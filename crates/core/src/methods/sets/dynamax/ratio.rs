//! Ratios of the intersection and the union of two texts' memberships.

use crate::methods::sets::fuzzy;

/// A ratio of intersection and union.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ratio {
    Jaccard,
    Otsuka,
    Dice,
    Cosine,
}

/// Memberships of the words of one text of the universe: in their own text, and in the other.
#[derive(Clone, Copy)]
pub(super) struct Side<'s> {
    pub(super) own: &'s [f32],
    pub(super) other: &'s [f32],
}

impl Side<'_> {
    /// Sums of two numbers a word, at once.
    pub(super) fn sums(self, of: impl Fn(f32, f32) -> [f64; 2]) -> [f64; 2] {
        self.own.iter().zip(self.other).fold([0.0; 2], |sums, (&own, &other)| {
            let [a, b] = of(own, other);
            [sums[0] + a, sums[1] + b]
        })
    }

    /// The sums of the smaller and of the larger memberships.
    fn least_and_most(self) -> [f64; 2] {
        self.sums(|own, other| if own < other { [own, other] } else { [other, own] }.map(f64::from))
    }
}

impl Ratio {
    /// The ratio over the words of the one text and of the other.
    pub(super) fn of(self, one: Side<'_>, other: Side<'_>) -> f32 {
        let [[least_one, most_one], [least_other, most_other]] =
            [one.least_and_most(), other.least_and_most()];
        let least = least_one + least_other;
        let (above, below) = match self {
            Self::Jaccard => (least, most_one + most_other),
            Self::Otsuka | Self::Dice => {
                let all = |own: f32, other: f32| [f64::from(own), f64::from(other)];
                let [[own_one, other_one], [own_other, other_other]] =
                    [one.sums(all), other.sums(all)];
                let (of_one, of_other) = (own_one + other_other, other_one + own_other);
                match self {
                    Self::Otsuka => (least, (of_one * of_other).sqrt()),
                    _ => (2.0 * least, of_one + of_other),
                }
            }
            Self::Cosine => {
                let squares = |own: f32, other: f32| [own, other].map(|m| f64::from(m).powi(2));
                let [[own_one, other_one], [own_other, other_other]] =
                    [one.sums(squares), other.sums(squares)];
                let product = |side: Side<'_>| {
                    side.sums(|own, other| [f64::from(own) * f64::from(other), 0.0])[0]
                };
                let (of_one, of_other) = (own_one + other_other, other_one + own_other);
                (product(one) + product(other), (of_one * of_other).sqrt())
            }
        };
        fuzzy::ratio(above, below) as f32
    }
}
