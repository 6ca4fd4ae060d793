//! Shared tokens over all tokens, as sets and as bags (Jaccard 1912; the crisp case of Zhelezniak
//! et al. 2019, section 2).
//!
//! `|A ∩ B| / |A ∪ B|`; as bags a token counts in the intersection as often as in the text that
//! has it less often, in the union as in the one that has it more often. Tokens need no vectors
//! and are neither stemmed nor shortened, so unknown ones match themselves.

use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{Against, Compare, Cost, Info, Loaded, Reads, Scorer, Scratch, Shares};
use crate::model::{Model, Phrase};

struct Overlap {
    repeats: bool,
}

impl Overlap {
    fn counted(&self, times: u32) -> u64 {
        if self.repeats { u64::from(times) } else { 1 }
    }

    fn size(&self, bag: &TokenBag) -> u64 {
        bag.tokens.iter().map(|&(_, times)| self.counted(times)).sum()
    }

    fn sizes(&self, one: &TokenBag, other: &TokenBag) -> (f64, f64) {
        let shared: u64 = one.shared(other).map(|(_, a, b)| self.counted(a.min(b))).sum();
        let union = self.size(one) + self.size(other) - shared;
        (shared as f64, union as f64)
    }

    /// The share of both that is in either.
    fn share(&self, one: &TokenBag, other: &TokenBag) -> f32 {
        let (shared, union) = self.sizes(one, other);
        if union > 0.0 { (shared / union) as f32 } else { 0.0 }
    }
}

impl Compare for Overlap {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut bags = std::mem::take(&mut scratch.bags);
        bags[0].read(one);
        Prepared { method: self, one, bags }
    }
}

struct Prepared<'q> {
    method: &'q Overlap,
    one: &'q Phrase<'q>,
    bags: [TokenBag; 2],
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        let [one, other] = &mut self.bags;
        for (phrase, score) in many.iter().zip(out) {
            other.read(phrase);
            *score = self.method.share(one, other);
        }
    }

    fn score_bag(&self, bag: &TokenBag) -> Option<f32> {
        Some(self.method.share(&self.bags[0], bag))
    }

    fn shares(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        self.bags[1].read(other);
        let [one_bag, other_bag] = &self.bags;
        let (_, union) = self.method.sizes(one_bag, other_bag);
        Some(TokenBag::lay_out([self.one, other], [one_bag, other_bag], |_, a, b| {
            self.method.counted(a.min(b)) as f64 / union
        }))
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.bags = std::mem::take(&mut self.bags);
    }
}

/// Tokens as sets.
pub mod set {
    use super::*;

    pub(crate) const INFO: Info = Info {
        cost: Cost::TOKENS,
        summary: "Shared tokens over all tokens, each counted once.",
        paper: "Jaccard 1912",
        range: (0.0, 1.0),
        reads: Reads::Tokens,
        ..Info::new("jaccard")
    };

    pub(crate) fn load(_model: &Model) -> Loaded {
        Ok(Ok(Scorer::Compare(Box::new(Overlap { repeats: false }))))
    }
}

/// Tokens as bags.
pub mod bag {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "jaccard-bag",
        summary: "Shared tokens over all tokens, each counted as often as it occurs.",
        ..set::INFO
    };

    pub(crate) fn load(_model: &Model) -> Loaded {
        Ok(Ok(Scorer::Compare(Box::new(Overlap { repeats: true }))))
    }
}
