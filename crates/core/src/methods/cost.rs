//! How much work a method takes, by the words of the texts, before it is begun: what requests are
//! weighed, cut into parts and refused by. It does not know how long the work takes.

/// Multiplications for texts of `n` and `m` words and vectors of `d` dimensions. Other work counts
/// as the multiplications that take as long.
pub type Formula = fn(n: u64, m: u64, d: u64) -> u64;

/// What a method takes beside looking up the words of the texts, roughly, for the longest texts
/// there may be. `cargo bench --bench handover -- costs` shows it beside what is measured.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Of one pair.
    pub pair: Formula,
    /// Of one of many candidates of `m` words for a query of `n`, which share what belongs to the query
    /// alone.
    pub candidate: Formula,
    /// Of a candidate that a bound of its score rules out, where the method has such bounds.
    pub bound: Option<Formula>,
}

/// Candidates that what is done for the query alone is spread over, at the least.
pub(crate) const BLOCK: u64 = 32;

impl Cost {
    /// Of a sum of the words' vectors.
    pub(crate) const SUM: Self =
        Self { pair: |n, m, d| (n + m) * d, candidate: |_, m, d| m * d, bound: None };

    /// Of a sum of which the words are first put in the order of their idf.
    pub(crate) const SUM_BY_IDF: Self = Self {
        pair: |n, m, d| (n + m) * (d + A_PLACE),
        candidate: |_, m, d| m * (d + A_PLACE),
        bound: None,
    };

    /// Of the tokens of both texts, which are sorted; those of the one are looked for in the other.
    pub(crate) const TOKENS: Self = Self {
        pair: |n, m, _| (n + m) * A_SORTED_TOKEN + n * A_TOKEN_FOUND,
        candidate: |n, m, _| m * A_SORTED_TOKEN + n * A_TOKEN_FOUND,
        bound: None,
    };
}

/// A word's place in an order by idf.
const A_PLACE: u64 = 2000;
/// A token among others that are sorted by their keys.
const A_SORTED_TOKEN: u64 = 800;
/// A token looked for among those of another text.
const A_TOKEN_FOUND: u64 = 300;
