//! Texts as fuzzy sets over a universe that is the same for every pair, compared by Jaccard's
//! ratio of intersection and union (Zhelezniak et al. 2019, sections 2 and 3).
//!
//! A word's product with a member of the universe says how far it belongs to it; a text belongs
//! as far as its best word does, never below 0. Which universe is taken, and where it comes from,
//! is for the methods to say.

use cognate_kernels::vector;

use crate::methods::common::unit_rows;
use crate::methods::{Against, Compare, Memberships, Scratch, Shares};
use crate::model::Phrase;

pub(crate) enum Universe {
    /// The dimensions of the vectors, `U = I`.
    Dimensions,
    Rows(Vec<f32>),
}

/// Jaccard's ratio of the memberships of two texts in a fixed universe.
pub(crate) struct FixedUniverse {
    pub universe: Universe,
    /// Whether words are brought to length 1 first.
    pub unit: bool,
}

/// `above / below` within 0 and 1; 0 for two texts without any membership at all, and NaN, which no
/// engine answers with, where a membership left the numbers.
pub(crate) fn ratio(above: f64, below: f64) -> f64 {
    match below {
        f64::INFINITY => f64::NAN,
        below if below > 0.0 => (above / below).clamp(0.0, 1.0),
        below if below.is_nan() => below,
        _ => 0.0,
    }
}

/// Memberships of the words of both texts, in the order of the texts: for the words of either, in the
/// order of their bags, those in the one text and those in the other.
pub(crate) fn memberships(
    texts: [&Phrase<'_>; 2],
    of_one: [&[f32]; 2],
    of_other: [&[f32]; 2],
) -> Memberships {
    let of_text = |text: &Phrase<'_>, [one, other]: [&[f32]; 2]| {
        let both: Vec<[f32; 2]> = one.iter().zip(other).map(|(&a, &b)| [a, b]).collect();
        unit_rows::in_text_order(text, &both)
    };
    Memberships { one: of_text(texts[0], of_one), other: of_text(texts[1], of_other) }
}

/// `Σ min(a, b) / Σ max(a, b)`.
pub(crate) fn jaccard(a: &[f32], b: &[f32]) -> f32 {
    let (above, below) = intersection_and_union(a, b);
    ratio(above, below) as f32
}

fn intersection_and_union(a: &[f32], b: &[f32]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(above, below), (&a, &b)| {
        (above + f64::from(a.min(b)), below + f64::from(a.max(b)))
    })
}

impl FixedUniverse {
    /// For each word of the bag, its products with the members of the universe.
    fn activations<'s>(
        &self,
        phrase: &Phrase<'_>,
        words: &'s mut Vec<f32>,
        products: &'s mut Vec<f32>,
    ) -> &'s [f32] {
        if self.unit {
            unit_rows::unit(phrase, words);
        } else {
            unit_rows::plain(phrase, words);
        }
        match &self.universe {
            Universe::Dimensions => words,
            Universe::Rows(universe) => {
                vector::products(words, universe, phrase.model().dims(), products);
                products
            }
        }
    }

    fn size(&self, phrase: &Phrase<'_>) -> usize {
        let dims = phrase.model().dims();
        match &self.universe {
            Universe::Dimensions => dims,
            Universe::Rows(rows) => rows.len() / dims,
        }
    }
}

impl Compare for FixedUniverse {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut memberships = std::mem::take(&mut scratch.one_numbers);
        let activations = self.activations(one, &mut scratch.one, &mut scratch.cross);
        vector::column_maxima(activations, self.size(one), &mut memberships);
        Prepared { method: self, one, memberships }
    }
}

pub(crate) struct Prepared<'q> {
    method: &'q FixedUniverse,
    one: &'q Phrase<'q>,
    memberships: Vec<f32>,
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        let size = self.method.size(self.one);
        for (other, score) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            let activations =
                self.method.activations(other, &mut scratch.other, &mut scratch.cross);
            vector::column_maxima(activations, size, &mut scratch.other_numbers);
            *score = jaccard(&self.memberships, &scratch.other_numbers);
        }
    }

    /// What both texts have of a member of the universe is laid half on the words of the one that
    /// belong to it most and half on those of the other.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let (method, one) = (self.method, self.one);
        let of_one = method.activations(one, &mut scratch.one, &mut scratch.one_gram);
        let of_other = method.activations(other, &mut scratch.other, &mut scratch.other_gram);
        vector::column_maxima(of_other, method.size(one), &mut scratch.other_numbers);
        let (ones, others) = (&self.memberships, &scratch.other_numbers);
        let (_, below) = intersection_and_union(ones, others);
        let halves = ones.iter().zip(others).map(|(&a, &b)| 0.5 * ratio(a.min(b).into(), below));
        let halves: Vec<f64> = halves.collect();
        Some(Shares {
            one: unit_rows::in_text_order(one, &laid_on_words(of_one, ones, &halves)),
            other: unit_rows::in_text_order(other, &laid_on_words(of_other, others, &halves)),
            memberships: None,
        })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.one_numbers = std::mem::take(&mut self.memberships);
    }
}

/// Splits what each member of the universe adds among the words that reach the text's membership
/// in it, evenly, so that a word that stands twice gets the same both times.
fn laid_on_words(activations: &[f32], memberships: &[f32], parts: &[f64]) -> Vec<f32> {
    let mut holders = vec![0.0; memberships.len()];
    for word in activations.chunks_exact(memberships.len()) {
        for ((holders, value), most) in holders.iter_mut().zip(word).zip(memberships) {
            *holders += f64::from(u8::from(value == most));
        }
    }
    let words = activations.chunks_exact(memberships.len()).map(|word| {
        let reached = word.iter().zip(memberships).zip(parts.iter().zip(&holders));
        let own = reached.filter(|((value, most), _)| value == most);
        own.map(|(_, (part, holders))| part / holders).sum::<f64>() as f32
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_quotient_is_no_score() {
        assert_eq!(ratio(0.0, 0.0), 0.0);
        assert!(ratio(1.0, f64::INFINITY).is_nan() && ratio(f64::INFINITY, f64::INFINITY).is_nan());
        assert!(ratio(f64::NAN, 1.0).is_nan() && ratio(1.0, f64::NAN).is_nan());
        assert_eq!(ratio(1.0, 2.0), 0.5);
        assert_eq!(jaccard(&[1.0, 0.0, 2.0], &[0.5, 0.5, 4.0]), 2.5 / 5.5);
    }

    #[test]
    fn a_part_goes_to_the_words_that_reach_it() {
        // Three words in a universe of two: the first member is reached by one word, the second
        // by two.
        let activations = [3.0, 1.0, 1.0, 5.0, 0.0, 5.0];
        let shares = laid_on_words(&activations, &[3.0, 5.0], &[0.2, 0.1]);
        assert_eq!(shares, [0.2, 0.05, 0.05]);
    }
}
