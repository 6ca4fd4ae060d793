//! Query likelihood with Dirichlet smoothing (Zhai & Lafferty 2001, section 3.2): how likely a
//! post's language model is to bring forth the query.
//!
//! `Σ_q ln((tf(q, P) + μ p(q|C)) / (|P| + μ))` with `μ = 2500`; a query's token that stands twice
//! counts twice. Scores are logarithms: none is above 0, and how far below depends on the query, so
//! they order the candidates of one query and say nothing across queries. What the collection is,
//! and what a token without a count counts as, is said in `collection.rs`.

use crate::methods::lexical::collection;
use crate::methods::lexical::collection::{Collection, WeightedTokens};
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{
    Against, Compare, Cost, Info, Kind, Loaded, Reads, Scorer, Scratch, Shares, Unavailable,
};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    kind: Kind::Ranker,
    cost: COST,
    summary: "How likely a candidate's tokens, smoothed by the model's counts, are to bring forth \
              the query (query likelihood, Dirichlet).",
    paper: "Zhai & Lafferty 2001",
    range: (f32::NEG_INFINITY, 0.0),
    reads: Reads::Tokens,
    ..Info::new("ql")
};

/// Each token of the query is looked for in each post.
pub(crate) const COST: Cost = Cost { pair: logarithms, candidate: logarithms, bound: None };

const fn logarithms(n: u64, m: u64, _d: u64) -> u64 {
    n * collection::A_LOGARITHM + m * collection::A_TOKEN
}

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(QueryLikelihood::new(model).map(|method| Scorer::Compare(Box::new(method))))
}

/// Query likelihood, ready for posts looked up in the model it was made for.
pub struct QueryLikelihood;

impl QueryLikelihood {
    /// Loads the method with the model's counts; refuses a model without counts.
    pub fn new(model: &Model) -> Result<Self, Unavailable> {
        collection::need_occurrences(model).map(|()| Self)
    }

    /// A query, prepared once for all posts.
    pub fn prepare<'q>(&self, query: &'q Phrase<'q>) -> Prepared<'q> {
        let collection = Collection::new(query.model().vocabulary());
        let bag = TokenBag::from_phrase(query);
        let tokens = WeightedTokens::from_query(&bag, &collection);
        Prepared { query, bag, tokens, post: TokenBag::default() }
    }
}

impl Compare for QueryLikelihood {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, _scratch: &mut Scratch) -> Prepared<'q> {
        self.prepare(one)
    }
}

/// A query by the collection's statistics, and room for a post.
pub struct Prepared<'q> {
    query: &'q Phrase<'q>,
    bag: TokenBag,
    tokens: WeightedTokens,
    post: TokenBag,
}

impl Prepared<'_> {
    /// The logarithm of how likely a post is to bring forth the query.
    pub fn log_likelihood(&mut self, post: &Phrase<'_>) -> f64 {
        self.post.read(post);
        self.tokens.log_likelihood(&self.post)
    }
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        for (post, score) in many.iter().zip(out) {
            *score = self.log_likelihood(post) as f32;
        }
    }

    fn score_bag(&self, bag: &TokenBag) -> Option<f32> {
        Some(self.tokens.log_likelihood(bag) as f32)
    }

    /// Each token of the query has its own term of the sum; the post's are what these are made of
    /// and add nothing beside them.
    fn shares(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Shares> {
        self.post.read(other);
        let parts: Vec<(u64, f64)> = self.tokens.parts(&self.post).collect();
        Some(self.bag.lay_on_query([self.query, other], &parts))
    }
}
