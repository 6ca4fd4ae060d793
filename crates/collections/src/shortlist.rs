//! How many items of a collection are scored where nobody says.

use cognate::Method;

/// Items up to which all are scored by a method of which a shortlist misses next to none of the best, and by
/// fusions, to whose shortlists the best by an index come.
pub const MOST_READ: usize = 5_000;
/// Items up to which all are scored by other methods.
pub const MOST_SCORED: usize = 200_000;
/// Items in a shortlist.
pub const SHORTLIST_LENGTH: usize = 1_000;
/// The longest shortlist that can be asked for.
pub const LONGEST_SHORTLIST: usize = 100_000;

/// Items on a shortlist for each result that is wanted, at least.
const SPARE: usize = 10;

/// Whether the best items by a method are on a shortlist, as was measured: nearly all of the best ten are
/// among the nearest [`SHORTLIST_LENGTH`] by the cosine of their vectors.
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

/// The length of the shortlist of a collection of so many items whose texts are read, where nobody says;
/// nothing where all are scored. Of `results` items at least are needed, and a fusion has no method.
pub fn usual_shortlist(items: usize, results: usize, method: Option<Method>) -> Option<usize> {
    let most = if method.is_none_or(follows_vectors) { MOST_READ } else { MOST_SCORED };
    let length = SHORTLIST_LENGTH.max(results.saturating_mul(SPARE)).min(LONGEST_SHORTLIST);
    (items > most.max(length)).then_some(length)
}

#[cfg(test)]
mod tests {
    use cognate::Method;

    use crate::shortlist::{
        LONGEST_SHORTLIST, MOST_READ, MOST_SCORED, SHORTLIST_LENGTH, usual_shortlist,
    };

    #[test]
    fn large_collections_have_one_and_smaller_ones_where_it_misses_little() {
        let length = Some(SHORTLIST_LENGTH);
        for (method, most) in [
            (Some(Method::PolarityBlend), MOST_READ),
            (None, MOST_READ),
            (Some(Method::Bm25), MOST_SCORED),
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
