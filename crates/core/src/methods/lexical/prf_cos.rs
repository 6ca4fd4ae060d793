//! Feedback by vectors: candidates are ranked by how near their vector is to the mean vector of the ten
//! that answer the query best (pseudo-relevance feedback by Rocchio 1971, of which the query's own part
//! and that of what answers badly are left out, among embeddings as in Li et al. 2021).
//!
//! The ten are those that `rm3` takes, by query likelihood. A post's vector is the mean of the rows of
//! its listed tokens: as a list is kept by its tokens alone, one that is not listed adds nothing, and a
//! post without a listed token scores 0.
//!
//! Scores depend on the whole list, so a part of it has others; they do not depend on its order.

use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::methods::lexical::collection;
use crate::methods::lexical::collection::Collection;
use crate::methods::lexical::feedback::Likeliest;
use crate::methods::lexical::token_bag::TokenBag;
use crate::methods::{Cost, Info, Kind, Loaded, Posts, RankList, Reads, Scorer};
use crate::model::{Model, Phrase, Vectors};

pub(crate) const INFO: Info = Info {
    kind: Kind::Ranker,
    cost: COST,
    summary: "Cosine of a candidate's mean vector to that of the ten candidates that answer the query \
              best by its likelihood.",
    paper: "Rocchio 1971; Li et al. 2021",
    range: (-1.0, 1.0),
    reads: Reads::Tokens,
    ..Info::new("prf-cos")
};

const COST: Cost = Cost { pair: two_rounds, candidate: two_rounds, bound: None };

const fn two_rounds(n: u64, m: u64, d: u64) -> u64 {
    n * collection::A_LOGARITHM + m * (2 * collection::A_TOKEN + d) + d
}

pub(crate) fn load(model: &Model) -> Loaded {
    Ok(collection::need_occurrences(model).map(|()| Scorer::RankList(Box::new(PrfCos))))
}

struct PrfCos;

/// Adds the mean of the rows of a post's listed tokens to a vector.
fn add_mean(post: &TokenBag, vectors: &Vectors<'_>, sum: &mut [f32]) {
    // The key of a listed token is its id; all others are above every id.
    let row =
        |&(key, times): &(u64, u32)| Some((times as f32, vectors.row(u32::try_from(key).ok()?)?));
    let rows = || post.tokens.iter().filter_map(row);
    let listed: f32 = rows().map(|(times, _)| times).sum();
    vector::add_all(sum, rows().map(|(times, row)| (times / listed, row)));
}

impl RankList for PrfCos {
    fn rank(&self, query: &Phrase<'_>, posts: &Posts, out: &mut [f32]) {
        let model = query.model();
        let (vectors, collection) = (model.vectors(), Collection::new(model.vocabulary()));
        let mut centre = vec![0.0; model.dims()];
        for (post, _) in Likeliest::rank(&TokenBag::from_phrase(query), posts, &collection).0 {
            add_mean(&post, &vectors, &mut centre);
        }
        let length = vector::norm(Row::F32(&centre));
        let (mut scores, mut own) = (out.iter_mut(), vec![0.0; model.dims()]);
        posts.each(|post| {
            let Some(score) = scores.next() else { return };
            own.fill(0.0);
            add_mean(post, &vectors, &mut own);
            let (own, centre) = (Row::F32(&own), Row::F32(&centre));
            *score = vector::cosine_by_lengths(own, centre, vector::norm(own) * length);
        });
    }
}
