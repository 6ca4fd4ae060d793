//! The default number of items of a collection that are scored.

use cognate::Method;

/// Largest collection whose items are all scored by a fusion (its shortlist also has the best items by
/// an index), or by a method whose best items are nearly all on a shortlist.
pub const MAX_SCORED_WITH_GOOD_SHORTLIST: usize = 5_000;
/// Largest collection whose items are all scored by other methods.
pub const MAX_SCORED_OTHERWISE: usize = 200_000;
/// Default length of a shortlist.
pub const SHORTLIST_LENGTH: usize = 1_000;
pub const LONGEST_SHORTLIST: usize = 100_000;

/// Fewest items on a shortlist for each wanted result.
const SPARE: usize = 10;

/// Whether the best items by a method are on a shortlist, as measured: nearly all of the best ten
/// are among the nearest [`SHORTLIST_LENGTH`] by the cosine of their vectors.
fn follows_vectors(method: Method) -> bool {
    use Method::{
        Blend, Coverage, CoverageBlend, DynamaxCosine, DynamaxDice, DynamaxJaccard, DynamaxOtsuka,
        DynamaxWeighted, PolarityBlend,
    };
    matches!(
        method,
        Blend
            | Coverage
            | CoverageBlend
            | DynamaxCosine
            | DynamaxDice
            | DynamaxJaccard
            | DynamaxOtsuka
            | DynamaxWeighted
            | PolarityBlend
    )
}

/// The default length of the shortlist of a collection with this many items, whose texts are read;
/// `None` if all are scored. It is at least `results`; `method` is `None` for a fusion.
pub fn usual_shortlist(items: usize, results: usize, method: Option<Method>) -> Option<usize> {
    let most = if method.is_none_or(follows_vectors) {
        MAX_SCORED_WITH_GOOD_SHORTLIST
    } else {
        MAX_SCORED_OTHERWISE
    };
    let length = SHORTLIST_LENGTH.max(results.saturating_mul(SPARE)).min(LONGEST_SHORTLIST);
    (items > most.max(length)).then_some(length)
}

#[cfg(test)]
mod tests {
    use cognate::Method;

    use crate::shortlist::{
        LONGEST_SHORTLIST, MAX_SCORED_OTHERWISE, MAX_SCORED_WITH_GOOD_SHORTLIST, SHORTLIST_LENGTH,
        usual_shortlist,
    };

    #[test]
    fn large_collections_have_one_and_smaller_ones_where_it_misses_little() {
        let length = Some(SHORTLIST_LENGTH);
        for (method, most) in [
            (Some(Method::PolarityBlend), MAX_SCORED_WITH_GOOD_SHORTLIST),
            (None, MAX_SCORED_WITH_GOOD_SHORTLIST),
            (Some(Method::Bm25), MAX_SCORED_OTHERWISE),
        ] {
            assert_eq!(usual_shortlist(most, 10, method), None);
            assert_eq!(usual_shortlist(most + 1, 10, method), length);
        }
    }

    #[test]
    fn it_is_longer_than_the_results_that_are_wanted() {
        let of = |items, results| usual_shortlist(items, results, Some(Method::Coverage));
        assert_eq!(of(20_000, 500), Some(5_000));
        assert_eq!(of(20_000, 2_000), None);
        assert_eq!(of(1_000_000, 50_000), Some(LONGEST_SHORTLIST));
    }
}
