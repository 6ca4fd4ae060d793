//! Okapi BM25 (Robertson & Zaragoza 2009, section 3.5, with an idf that is never below 0): how much
//! of a query's rare tokens a post holds, for its length.
//!
//! `Σ_q idf(q) · tf (k₁ + 1) / (tf + k₁ (1 − b + b |P| / avg))` with `k₁ = 0.9`, `b = 0.4` and
//! `idf = ln(1 + (N − df + .5) / (df + .5))`; a query's token that stands twice counts twice. Where
//! the model does not tell in how many documents a word stands, idf is the model's own, which is
//! made of occurrences; where it does not tell how long documents are, length plays no part (as
//! `b = 0`). A model packed with `--corpus` tells both, one packed with `--counts` neither. What the
//! collection is, is said in `collection.rs`.

use crate::methods::lexical::collection;
use crate::methods::lexical::collection::Collection;
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{Against, Compare, Cost, Info, Kind, Loaded, Reads, Scorer, Scratch, Shares};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    kind: Kind::Ranker,
    cost: COST,
    summary: "The query's tokens that a candidate holds, each weighted by how rare it is, how \
              often it occurs and how long the candidate is (Okapi BM25).",
    paper: "Robertson & Zaragoza 2009",
    range: (0.0, f32::INFINITY),
    reads: Reads::Tokens,
    ..Info::new("bm25")
};

/// Saturation: how soon further occurrences of a token stop adding.
const K1: f64 = 0.9;
/// The influence of a text's length on its score.
const B: f64 = 0.4;

const COST: Cost = Cost { pair: tokens, candidate: tokens, bound: None };

const fn tokens(n: u64, m: u64, _d: u64) -> u64 {
    (n + m) * collection::A_TOKEN
}

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(collection::need_rarity(model).map(|()| Scorer::Compare(Box::new(Bm25))))
}

struct Bm25;

struct WeightedQuery {
    tokens: Vec<(u64, f64)>,
    mean_length: Option<f64>,
}

impl WeightedQuery {
    fn new(query: &TokenBag, model: &Model) -> Self {
        let collection = Collection::new(model.vocabulary());
        let weight = |&(key, times): &(u64, u32)| (key, f64::from(times) * collection.rarity(key));
        let tokens = query.tokens.iter().map(weight).collect();
        Self { tokens, mean_length: collection.mean_length() }
    }

    fn score(&self, post: &TokenBag) -> f32 {
        // Not `sum`, which is -0 for an empty sum.
        self.parts(post).fold(0.0, |sum, (_, part)| sum + part) as f32
    }

    /// The part of the score of each token, by its key.
    fn parts<'a>(&'a self, post: &'a TokenBag) -> impl Iterator<Item = (u64, f64)> + 'a {
        let length = match self.mean_length {
            Some(mean) => 1.0 - B + B * post.length() as f64 / mean,
            None => 1.0,
        };
        self.tokens.iter().map(move |&(key, weight)| {
            let times = f64::from(post.times(key));
            (key, weight * times * (K1 + 1.0) / (times + K1 * length))
        })
    }
}

impl Compare for Bm25 {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut bags = std::mem::take(&mut scratch.bags);
        bags[0].read(one);
        let weighted = WeightedQuery::new(&bags[0], one.model());
        Prepared { query: one, weighted, bags }
    }
}

/// A query's weighted tokens, and memory for a post's tokens.
struct Prepared<'q> {
    query: &'q Phrase<'q>,
    weighted: WeightedQuery,
    bags: [TokenBag; 2],
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        let post = &mut self.bags[1];
        for (phrase, score) in many.iter().zip(out) {
            post.read(phrase);
            *score = self.weighted.score(post);
        }
    }

    fn score_bag(&self, bag: &TokenBag) -> Option<f32> {
        Some(self.weighted.score(bag))
    }

    /// Each token of the query has its own term of the sum.
    fn shares(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        let [query, post] = &mut self.bags;
        post.read(other);
        let parts: Vec<(u64, f64)> = self.weighted.parts(post).collect();
        Some(query.lay_on_query([self.query, other], &parts))
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.bags = std::mem::take(&mut self.bags);
    }
}
