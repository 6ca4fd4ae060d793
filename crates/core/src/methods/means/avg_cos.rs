//! Mean of word vectors: the baseline of every paper, and what Siamese CBOW vectors are made for
//! (De Boom et al. 2016, section 4, "mean"; Kenter et al. 2016, equation 1).
//!
//! `t = (1/n) Σ v(w_i)`

use cognate_kernels::vector;

use crate::methods::{Embed, Info, Loaded, Scorer};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    summary: "Mean of the words' vectors, compared by cosine.",
    paper: "every paper's baseline; Kenter et al. 2016",
    range: (-1.0, 1.0),
    embeds: true,
    ..Info::new("avg-cos")
};

pub(crate) fn load(_model: &Model) -> Loaded {
    Ok(Ok(Scorer::Embed(Box::new(Mean))))
}

pub(crate) struct Mean;

impl Embed for Mean {
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
        let share = 1.0 / phrase.words().len() as f32;
        vector::add_all(out, phrase.bag().iter().map(|&word| (1.0, phrase.row(word))));
        out.iter_mut().for_each(|value| *value *= share);
    }

    fn coefficients(&self, phrase: &Phrase<'_>, out: &mut Vec<f32>) -> Option<f32> {
        let words = phrase.words().len();
        out.resize(out.len() + words, 1.0);
        Some(1.0 / words as f32)
    }

    fn shares(&self, phrase: &Phrase<'_>, other: &[f32], shares: &mut [f32]) -> bool {
        let weight = 1.0 / phrase.words().len() as f32;
        for (&word, share) in phrase.words().iter().zip(shares) {
            *share = weight * vector::dot(phrase.row(word), vector::Row::F32(other));
        }
        true
    }
}
