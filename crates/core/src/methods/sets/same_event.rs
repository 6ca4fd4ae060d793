//! Whether two posts are about the same event: how far they cover each other, and the rarest token that both
//! have (our own).
//!
//! `score = 1 / (1 + exp(−(a · coverage + b · rare + c)))`, where `rare` is the largest idf of the tokens
//! that both texts have letter by letter, 0 where they have none: two posts that share the name of a place are
//! of one event more often than two that say as much alike in everyday words. Copies score as by
//! `coverage`.
//!
//! The numbers belong to a model, whose idf they weigh, and are fitted on posts with their events:
//! `{"coverage": a, "rare": b, "constant": c}`.

use std::collections::HashSet;

use cognate_kernels::elementary;
use serde::{Deserialize, Serialize};

use crate::methods::common::words_met;
use crate::methods::sets::coverage;
use crate::methods::{Against, Compare, Fitted, Info, Loaded, Parts, Scorer, Scratch, unavailable};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    cost: coverage::COST,
    summary: "How far two posts cover each other and the rarest token that both have, as fitted on \
              posts with their events.",
    paper: "after Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    ..Info::new("same-event")
};

/// The section that holds the fitted numbers.
pub const SECTION: &str = "same-event";

/// Texts that cover each other so far are copies.
const COPY: f32 = 0.999_99;

/// What was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The weight of the coverage.
    pub coverage: f64,
    /// The weight of the largest idf of a shared token.
    pub rare: f64,
    /// The number that is added to both terms.
    pub constant: f64,
}

impl Weights {
    /// What a model file holds of them.
    pub fn fitted(&self) -> Fitted {
        let settings = serde_json::json!(self).to_string();
        Fitted { section: SECTION, settings, tensors: Vec::new(), bytes: Vec::new() }
    }

    /// The score of two texts with this coverage, whose rarest shared token has this idf.
    pub fn score(&self, covered: f32, rare: f32) -> f32 {
        if covered >= COPY {
            return covered;
        }
        let line = self.coverage * f64::from(covered) + self.rare * f64::from(rare) + self.constant;
        let score = 1.0 / (1.0 + elementary::exp(-line));
        // Rounding must not raise the score of a text that is no copy to the score of a copy.
        (score as f32).min(COPY)
    }
}

pub(crate) fn load(model: &Model) -> Loaded {
    if let Err(reason) = words_met::need_idf(model) {
        return Ok(Err(reason));
    }
    let Some(section) = model.section(SECTION) else {
        return unavailable(
            "the model was fitted to no events",
            "fit it with `cognate eval events --fit topics`",
        );
    };
    let weights: Weights = section.parse_settings()?;
    let sound = |weight: f64| weight.is_finite() && weight >= 0.0;
    if !(sound(weights.coverage) && sound(weights.rare) && weights.constant.is_finite()) {
        let problem = format!("expected weights from 0, got {weights:?}");
        return Err(section.broken(problem));
    }
    let coverage = coverage::method(model)?;
    Ok(Ok(Scorer::Compare(Box::new(SameEvent { weights, coverage }))))
}

struct SameEvent {
    weights: Weights,
    coverage: coverage::Coverage,
}

impl Compare for SameEvent {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let tokens = Tokens::new(one);
        Prepared { weights: self.weights, tokens, covering: self.coverage.against(one, scratch) }
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        self.coverage.make_parts(many, parts, scratch);
    }
}

/// The keys of a text's tokens, in order, with their idf.
struct Tokens(Vec<(u64, f32)>);

impl Tokens {
    fn new(text: &Phrase<'_>) -> Self {
        let vocabulary = text.model().vocabulary();
        let both = (0..).zip(text.token_keys().zip(text.token_ids()));
        // A token that was found by its stem is as rare as that.
        let idf = |token, id: Option<_>| vocabulary.idf(id.or_else(|| text.stem_of(token)));
        let each = both.map(|(token, (key, id))| (key, idf(token, id).unwrap_or(0.0)));
        let mut tokens: Vec<(u64, f32)> = each.collect();
        tokens.sort_unstable_by_key(|&(key, _)| key);
        Self(tokens)
    }

    fn idf(&self, key: u64) -> Option<f32> {
        let at = self.0.binary_search_by_key(&key, |&(known, _)| known).ok()?;
        self.0.get(at).map(|&(_, idf)| idf)
    }

    /// The largest idf of the tokens that another text has, too, and the place of the token there.
    fn rarest(&self, other: &Phrase<'_>) -> Option<(usize, f32)> {
        let shared = other.token_keys().enumerate();
        let shared = shared.filter_map(|(token, key)| Some((token, self.idf(key)?)));
        // Of equal ones the first, wherever that is: their number is the same.
        shared.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// The tokens that two texts share, each once, and their idf: the rarest first, of equal ones the first of
/// `one`.
pub fn shared<'p>(one: &'p Phrase<'_>, other: &Phrase<'_>) -> Vec<(&'p str, f32)> {
    let tokens = Tokens::new(other);
    let mut known = HashSet::new();
    let each = one.token_keys().enumerate().filter(|(_, key)| known.insert(*key));
    let each = each.filter_map(|(at, key)| Some((one.tokens().text(at), tokens.idf(key)?)));
    let mut shared: Vec<(&str, f32)> = each.collect();
    shared.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    shared
}

struct Prepared<'q> {
    weights: Weights,
    tokens: Tokens,
    covering: coverage::Prepared<'q>,
}

impl Prepared<'_> {
    fn finish(&self, many: &[Phrase<'_>], out: &mut [f32]) {
        for (other, out) in many.iter().zip(out) {
            let rare = self.tokens.rarest(other).map_or(0.0, |(_, idf)| idf.max(0.0));
            *out = self.weights.score(*out, rare);
        }
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        self.covering.score(many, out, scratch);
        self.finish(many, out);
    }

    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.covering.score_prepared(many, parts, out, scratch);
        self.finish(many, out);
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        self.covering.give_back(scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: Weights = Weights { coverage: 10.47, rare: 0.1605, constant: -6.415 };

    /// Scores of .575 and .825 by coverage alone, and with a word as rare as the name of a place.
    #[test]
    fn a_rare_word_stands_for_coverage() {
        for (covered, rare, least) in
            [(0.6416, 0.0, 0.575), (0.473, 11.0, 0.575), (0.5922, 11.0, 0.825)]
        {
            assert!((ENGLISH.score(covered, rare) - least).abs() < 2e-3, "{covered} {rare}");
        }
        assert_eq!(ENGLISH.score(1.0, 0.0), 1.0);
        let steep = Weights { coverage: 1e6, ..ENGLISH };
        assert!(steep.score(0.9, 15.0) < 1.0, "no copy");
        assert_eq!(Weights { constant: -1e9, ..ENGLISH }.score(0.5, 0.0), 0.0);
    }
}
