//! RM3 (Lavrenko & Croft 2001; Abdul-Jaleel et al. 2004): the query, widened by what the posts that
//! answer it best have in common, and then asked again.
//!
//! The candidates are ranked by query likelihood. The best 10 are the feedback: a token's relevance
//! is `Σ_P p(w|P) p(Q|P)` over them, with `p(w|P) = tf / |P|` and `p(Q|P)` brought to a sum of 1
//! over the feedback. The 10 tokens of highest relevance, brought to a sum of 1, are mixed half and
//! half with the query's own tokens, `p(w|Q) = tf / |Q|`, and candidates are scored by what is
//! mixed as by query likelihood: `Σ_w p(w) ln((tf + μ p(w|C)) / (|P| + μ))`, a mean over tokens
//! where `ql` is a sum.
//!
//! Scores depend on the whole list, so a part of it has others; they do not depend on its order:
//! equally likely posts are taken by what they consist of. What the collection is, and what a token
//! without a count counts as, is said in `collection.rs`.

use std::collections::BTreeMap;

use cognate_kernels::elementary;

use crate::methods::lexical::collection;
use crate::methods::lexical::collection::{Collection, WeightedTokens};
use crate::methods::lexical::feedback::Likeliest;
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{Cost, Info, Kind, Loaded, Posts, RankList, Reads, Scorer};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    kind: Kind::Ranker,
    cost: COST,
    summary: "Query likelihood of the query widened by the commonest tokens of the ten candidates \
              that answer it best (RM3).",
    paper: "Abdul-Jaleel et al. 2004",
    range: (f32::NEG_INFINITY, 0.0),
    reads: Reads::Tokens,
    ..Info::new("rm3")
};

/// Tokens that they widen it by.
const TOKENS: usize = 10;
/// The weight of the query itself against the feedback.
const QUERY: f64 = 0.5;

const COST: Cost = Cost { pair: two_rounds, candidate: two_rounds, bound: None };

const fn two_rounds(n: u64, m: u64, _d: u64) -> u64 {
    (2 * n + TOKENS as u64) * collection::A_LOGARITHM + m * 3 * collection::A_TOKEN
}

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(collection::need_occurrences(model).map(|()| Scorer::RankList(Box::new(Rm3))))
}

struct Rm3;

/// The tokens that the likeliest posts have in common, with shares that add up to 1.
fn relevant(Likeliest(posts): &Likeliest) -> Vec<(u64, f64)> {
    let Some(&(_, best)) = posts.first() else { return Vec::new() };
    let mut relevance: BTreeMap<u64, f64> = BTreeMap::new();
    for (post, likelihood) in posts {
        // Against the best, as likelihoods themselves are too small for their type. What they are
        // divided by to add up to 1 goes out when the tokens' shares are made to.
        let weight = elementary::exp(likelihood - best) / post.length().max(1) as f64;
        for &(key, times) in &post.tokens {
            *relevance.entry(key).or_default() += weight * f64::from(times);
        }
    }
    let mut tokens: Vec<(u64, f64)> = relevance.into_iter().collect();
    // Stable, so that equally relevant tokens stay in the order of their keys.
    tokens.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    tokens.truncate(TOKENS);
    // Above 0, as the best post weighs 1 and has a token.
    let sum = tokens.iter().fold(0.0, |sum, (_, relevance)| sum + relevance);
    tokens.iter().map(|&(key, relevance)| (key, relevance / sum)).collect()
}

impl RankList for Rm3 {
    fn rank(&self, query: &Phrase<'_>, posts: &Posts, out: &mut [f32]) {
        let collection = Collection::new(query.model().vocabulary());
        let query = TokenBag::from_phrase(query);
        let likely = Likeliest::rank(&query, posts, &collection);
        let mut widened: BTreeMap<u64, f64> = BTreeMap::new();
        for &(key, times) in &query.tokens {
            widened.insert(key, QUERY * f64::from(times) / query.length().max(1) as f64);
        }
        for (key, share) in relevant(&likely) {
            *widened.entry(key).or_default() += (1.0 - QUERY) * share;
        }
        let widened = WeightedTokens::new(widened.into_iter(), &collection);
        let mut scores = out.iter_mut();
        posts.each(|post| {
            if let Some(score) = scores.next() {
                *score = widened.log_likelihood(post) as f32;
            }
        });
    }
}
