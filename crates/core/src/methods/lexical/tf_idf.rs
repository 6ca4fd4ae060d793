//! Cosine of sparse vectors with a dimension a token (De Boom et al. 2016, section 5, "tf-idf").
//!
//! `t_w = tf(w) · idf(w)`; a token that is not listed has the idf of an unseen word.

use crate::methods::common::words_met;
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{Against, Compare, Cost, Info, Loaded, Reads, Scorer, Scratch, Shares};
use crate::model::{Model, Phrase, Vocabulary};

pub(crate) const INFO: Info = Info {
    cost: Cost::TOKENS,
    summary: "Shared tokens, each weighted by how often it occurs and by its idf, compared by \
              cosine.",
    paper: "De Boom et al. 2016",
    range: (0.0, 1.0),
    reads: Reads::Tokens,
    ..Info::new("tf-idf")
};

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(words_met::need_idf(model).map(|()| Scorer::Compare(Box::new(TfIdf))))
}

struct TfIdf;

fn squared_idf(vocabulary: &Vocabulary<'_>, key: u64) -> f64 {
    // The key of a listed token is its id; all others are above every id.
    let idf = f64::from(vocabulary.idf(u32::try_from(key).ok()).unwrap_or(0.0));
    idf * idf
}

fn squared_length(vocabulary: &Vocabulary<'_>, bag: &TokenBag) -> f64 {
    let squared = |&(key, times): &(u64, u32)| {
        f64::from(times) * f64::from(times) * squared_idf(vocabulary, key)
    };
    bag.tokens.iter().map(squared).sum()
}

/// The product of one token's numbers: the same with both texts exchanged.
fn product(vocabulary: &Vocabulary<'_>, key: u64, a: u32, b: u32) -> f64 {
    f64::from(a) * f64::from(b) * squared_idf(vocabulary, key)
}

impl Compare for TfIdf {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut bags = std::mem::take(&mut scratch.bags);
        bags[0].read(one);
        let squared_length = squared_length(&one.model().vocabulary(), &bags[0]);
        Prepared { one, bags, squared_length }
    }
}

/// A text's tokens and their length, and room for another's.
struct Prepared<'q> {
    one: &'q Phrase<'q>,
    bags: [TokenBag; 2],
    squared_length: f64,
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        let vocabulary = self.one.model().vocabulary();
        let [one, other] = &mut self.bags;
        for (phrase, score) in many.iter().zip(out) {
            other.read(phrase);
            if one.tokens == other.tokens {
                *score = 1.0;
                continue;
            }
            let lengths = (self.squared_length * squared_length(&vocabulary, other)).sqrt();
            let products = one.shared(other).map(|(key, a, b)| product(&vocabulary, key, a, b));
            // Not `sum`, which is -0 for an empty sum.
            let sum = products.fold(0.0, |sum, product| sum + product);
            *score = if lengths > 0.0 { (sum / lengths).clamp(0.0, 1.0) as f32 } else { 0.0 };
        }
    }

    fn shares(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        let vocabulary = self.one.model().vocabulary();
        self.bags[1].read(other);
        let [one_bag, other_bag] = &self.bags;
        let lengths = (self.squared_length * squared_length(&vocabulary, other_bag)).sqrt();
        (lengths > 0.0).then(|| {
            TokenBag::lay_out([self.one, other], [one_bag, other_bag], |key, a, b| {
                product(&vocabulary, key, a, b) / lengths
            })
        })
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.bags = std::mem::take(&mut self.bags);
    }
}
