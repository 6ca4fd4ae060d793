//! What is known of a method without running it, and why a model may lack it.

use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};
use strsim::levenshtein;

use crate::choice::choice;
use crate::methods::Method;

/// The kind of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Scores the similarity of two texts: symmetric, and largest for a text and itself.
    Similarity,
    /// Scores how well a candidate answers a query.
    Ranker,
}

choice!(Kind { Similarity = "similarity", Ranker = "ranker" });

/// What a text needs to be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// At least one word with a vector.
    Words,
    /// At least one token, known or not.
    Tokens,
}

/// The facts about a method that are known without running it.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// The method's name, as requests and flags spell it.
    pub name: &'static str,
    /// The method's kind.
    pub kind: Kind,
    /// The method's cost.
    pub cost: Cost,
    /// The method's effect, in one sentence.
    pub summary: &'static str,
    /// The paper that describes the method.
    pub paper: &'static str,
    /// The range of the method's scores; infinite where they have no bound.
    pub range: (f32, f32),
    /// What a text needs to be scored.
    pub reads: Reads,
    /// Whether it has a vector of a single text.
    pub embeds: bool,
    /// Whether it weights words by frequency, as vectors with [`crate::model::Frequency::InNorm`] already
    /// do.
    pub weights_frequency: bool,
    /// The method whose scores these are without opposites; `None` if it does not count them.
    pub ignoring_opposites: Option<Method>,
}

impl Info {
    /// A method of similarity that reads words: for a method of your own, which [`crate::Engine::by`] asks.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Similarity,
            cost: Cost::SUM,
            summary: "",
            paper: "",
            range: (f32::NEG_INFINITY, f32::INFINITY),
            reads: Reads::Words,
            embeds: false,
            weights_frequency: false,
            ignoring_opposites: None,
        }
    }
}

/// Why a method cannot be used with a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{missing}; {remedy}")]
pub struct Unavailable {
    /// What the model file lacks.
    pub missing: String,
    /// The command that adds it.
    pub remedy: String,
}

/// Multiplications for texts of `n` and `m` words and vectors of `d` dimensions. Other work counts
/// as the multiplications that take as long.
pub type Formula = fn(n: u64, m: u64, d: u64) -> u64;

/// The approximate cost of a method without the look-up of words, for texts of the greatest length.
/// `cargo bench --bench handover -- costs` compares it with measured times.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// For one pair.
    pub pair: Formula,
    /// For one of many candidates of `m` words for a query of `n` words; work on the query alone is
    /// shared.
    pub candidate: Formula,
    /// For a candidate that the bound of its score rules out, if the method has such bounds.
    pub bound: Option<Formula>,
}

/// The least number of candidates among which work on the query alone is shared.
pub(crate) const BLOCK: u64 = 32;

impl Cost {
    pub(crate) const SUM: Self =
        Self { pair: |n, m, d| (n + m) * d, candidate: |_, m, d| m * d, bound: None };

    /// Of a sum over words that are first sorted by idf.
    pub(crate) const SUM_BY_IDF: Self = Self {
        pair: |n, m, d| (n + m) * (d + A_PLACE),
        candidate: |_, m, d| m * (d + A_PLACE),
        bound: None,
    };

    /// The cost of tokens of both texts: they are sorted, and those of one text are looked up in the other.
    pub(crate) const TOKENS: Self = Self {
        pair: |n, m, _| (n + m) * A_SORTED_TOKEN + n * A_TOKEN_FOUND,
        candidate: |n, m, _| m * A_SORTED_TOKEN + n * A_TOKEN_FOUND,
        bound: None,
    };
}

/// The cost of a word's position in an order by idf.
const A_PLACE: u64 = 2000;
/// The cost of a token that is sorted among others by their keys.
const A_SORTED_TOKEN: u64 = 800;
/// A token looked for among those of another text.
const A_TOKEN_FOUND: u64 = 300;

/// How two vectors are compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The cosine of their angle.
    #[default]
    Cosine,
    /// `1 / (1 + distance)`, so that a larger score always means more similar texts.
    Euclidean,
}

choice!(Measure { Cosine = "cosine", Euclidean = "euclidean" });

impl Measure {
    /// The similarity of two vectors, larger for more similar vectors.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::Cosine => vector::cosine(Row::F32(a), Row::F32(b)),
            Self::Euclidean => match simd::squared_distance(a, b) {
                // A distance that overflowed is not an infinite distance.
                f32::INFINITY => f32::NAN,
                square => 1.0 / (1.0 + square.sqrt()),
            },
        }
    }
}

const ALIASES: [(&str, &str); 6] = [
    ("cosine", "avg-cos"),
    ("dynamax", "dynamax-jaccard"),
    ("learned-idf-weights", "learned-idf"),
    ("idf-rank", "learned-idf"),
    ("max", "max-cos"),
    ("samcnn", "patt"),
];

impl Method {
    /// Returns the method's name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The method of that name or alias.
    pub fn named(name: &str) -> Option<Self> {
        let wanted = canonical(name);
        Self::ALL.iter().copied().find(|method| method.name() == wanted)
    }

    /// Whether a name leaves the choice to the model.
    pub fn is_auto(name: &str) -> bool {
        name.trim().eq_ignore_ascii_case("auto")
    }

    /// The three names or aliases that look most like a misspelt name.
    pub fn nearest(name: &str) -> [&'static str; 3] {
        let wanted = canonical(name);
        let names = Self::ALL.iter().map(|method| method.name());
        let mut names: Vec<_> = names.chain(ALIASES.iter().map(|(alias, _)| *alias)).collect();
        names.sort_by_key(|known| levenshtein(&wanted, known));
        let mut nearest = names.into_iter().chain(std::iter::repeat(""));
        std::array::from_fn(|_| nearest.next().unwrap_or(""))
    }
}

fn canonical(name: &str) -> String {
    // Names are short; a long text is no name, and is not worth the copying.
    let short: String = name.trim().chars().take(64).collect();
    let plain = short.to_lowercase().replace('_', "-");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == plain);
    alias.map_or(plain, |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_people_write_them() {
        for name in ["dynamax-jaccard", "DynaMax", "dynamax_jaccard", " DYNAMAX-Jaccard "] {
            assert_eq!(Method::named(name), Some(Method::DynamaxJaccard), "{name}");
        }
        assert_eq!(Method::named("cosine"), Some(Method::AvgCos), "other libraries call it that");
        assert_eq!(Method::named("dynamix"), None);
        assert_eq!(Method::named(&"x".repeat(1 << 20)), None);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_near_ones() {
        assert_eq!(Method::nearest("dynamax-jacard")[0], "dynamax-jaccard");
        assert_eq!(Method::nearest("avg_coz")[0], "avg-cos");
        assert_eq!(Method::nearest("dynamx")[0], "dynamax");
    }

    #[test]
    fn every_method_has_a_name_of_its_own() {
        for &method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }
}
