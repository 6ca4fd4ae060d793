//! The largest, and the smallest, number of each dimension over the words of a text (De Boom et
//! al. 2016, section 5, "max" and "min/max").
//!
//! `t_j = max_i v(w_i)_j`; for min-max the maxima and after them the minima, twice the dimensions.

use crate::methods::{Cost, Embed, Info, Scorer};
use crate::model::Phrase;

/// The words of a text that take part, by their places in the order of the bag.
pub(crate) type Choice = fn(&Phrase<'_>) -> Vec<usize>;

struct Extremes {
    minima: bool,
    choice: Choice,
}

/// A scorer by the maxima of the chosen words, and by their minima if `minima` is set.
pub(crate) fn scorer(minima: bool, choice: Choice) -> Scorer {
    Scorer::Embed(Box::new(Extremes { minima, choice }))
}

impl Extremes {
    /// Writes the extremes, and in `attained` the place of the word that attains each: of equals
    /// the first of the bag.
    fn find(&self, phrase: &Phrase<'_>, out: &mut [f32], attained: &mut [usize]) {
        let dims = phrase.model().dims();
        let mut row = vec![0.0; dims];
        for (number, place) in (self.choice)(phrase).into_iter().enumerate() {
            let Some(&word) = phrase.words().get(place) else { continue };
            phrase.row(word).copy_to(&mut row);
            for (at, &value) in row.iter().enumerate() {
                let sides = [Some(at), self.minima.then_some(dims + at)];
                for (least, side) in sides.into_iter().enumerate() {
                    let Some(side) = side else { continue };
                    let (Some(best), Some(by)) = (out.get_mut(side), attained.get_mut(side)) else {
                        continue;
                    };
                    let beyond = if least == 1 { value < *best } else { value > *best };
                    if number == 0 || beyond {
                        (*best, *by) = (value, place);
                    }
                }
            }
        }
    }
}

impl Embed for Extremes {
    fn dims(&self, dims: usize) -> usize {
        if self.minima { dims.saturating_mul(2) } else { dims }
    }

    /// Does what [`Extremes::find`] does, for whole rows at a time.
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
        let dims = phrase.model().dims();
        let mut row = vec![0.0; dims];
        let (maxima, minima) = out.split_at_mut(dims.min(out.len()));
        for (number, place) in (self.choice)(phrase).into_iter().enumerate() {
            let Some(&word) = phrase.words().get(place) else { continue };
            phrase.row(word).copy_to(&mut row);
            if number == 0 {
                maxima.copy_from_slice(&row);
                if self.minima {
                    minima.copy_from_slice(&row);
                }
                continue;
            }
            for (most, &value) in maxima.iter_mut().zip(&row) {
                *most = if value > *most { value } else { *most };
            }
            for (least, &value) in minima.iter_mut().zip(&row) {
                *least = if value < *least { value } else { *least };
            }
        }
    }

    fn shares(&self, phrase: &Phrase<'_>, other: &[f32], shares: &mut [f32]) -> bool {
        let (mut extremes, mut attained) = (vec![0.0; other.len()], vec![0; other.len()]);
        self.find(phrase, &mut extremes, &mut attained);
        for ((extreme, place), other) in extremes.iter().zip(attained).zip(other) {
            if let Some(share) = shares.get_mut(place) {
                *share += extreme * other;
            }
        }
        true
    }
}

/// Rows are written out, then compared with the extremes number by number.
const COST: Cost =
    Cost { pair: |n, m, d| (n + m) * 6 * d, candidate: |_, m, d| m * 6 * d, bound: None };

fn all(phrase: &Phrase<'_>) -> Vec<usize> {
    phrase.bag_order()
}

/// The largest number of each dimension.
pub mod max {
    use super::*;
    use crate::methods::Loaded;
    use crate::model::Model;

    pub(crate) const INFO: Info = Info {
        cost: COST,
        summary: "Largest number of each dimension over the words, compared by cosine.",
        paper: "De Boom et al. 2016",
        range: (-1.0, 1.0),
        embeds: true,
        ..Info::new("max-cos")
    };

    pub(crate) fn load(_model: &Model) -> Loaded {
        Ok(Ok(scorer(false, all)))
    }
}

/// The largest and the smallest number of each dimension.
pub mod min_max {
    use super::*;
    use crate::methods::Loaded;
    use crate::model::Model;

    pub(crate) const INFO: Info = Info {
        name: "min-max",
        summary: "Largest and smallest number of each dimension over the words, side by side, \
                  compared by cosine.",
        ..max::INFO
    };

    pub(crate) fn load(_model: &Model) -> Loaded {
        Ok(Ok(scorer(true, all)))
    }
}
