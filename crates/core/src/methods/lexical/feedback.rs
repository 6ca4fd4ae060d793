//! The posts of a list that answer a query best by its likelihood: what methods learn from that ask
//! twice. What they learn from them is not known here.

use std::cmp::Ordering;

use crate::methods::lexical::collection::{Collection, Posts, WeightedTokens};
use crate::methods::lexical::token_bag::TokenBag;

/// Posts that are learnt from.
const POSTS: usize = 10;

/// The likeliest posts, each with the logarithm of how likely it is to bring forth the query: the
/// likeliest first, and of equally likely ones whichever bag comes first.
#[derive(Default)]
pub(super) struct Likeliest(pub(super) Vec<(TokenBag, f64)>);

impl Likeliest {
    /// Ranks the posts of a list by the likelihood of a query.
    pub(super) fn rank(query: &TokenBag, posts: &Posts, collection: &Collection<'_>) -> Self {
        let asked = WeightedTokens::from_query(query, collection);
        let mut likely = Self::default();
        posts.each(|post| likely.offer(post, asked.log_likelihood(post)));
        likely
    }

    /// Takes a post in, if it is one of them so far.
    fn offer(&mut self, post: &TokenBag, likelihood: f64) {
        let before = |(other, higher): &(TokenBag, f64)| {
            let order = likelihood.total_cmp(higher).then_with(|| other.tokens.cmp(&post.tokens));
            order == Ordering::Less
        };
        let place = self.0.partition_point(before);
        if place < POSTS {
            self.0.truncate(POSTS - 1);
            self.0.insert(place, (post.clone(), likelihood));
        }
    }
}
