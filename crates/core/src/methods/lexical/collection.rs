//! What the collection behind a model says of tokens, for methods that rank posts for a query.
//!
//! The collection is what the model's words were counted in: a table of counts (`cognate pack
//! --counts`), or the posts themselves (`--corpus`), which also tells how many posts hold a word
//! and how long posts are. A token without a count, whether it is not listed or was not seen, is
//! taken to have occurred half a time, so that no probability is 0 and no logarithm infinite.
//!
//! Sums here and in the methods that use this go over tokens in the order of their keys, so they
//! depend on the texts alone.

use cognate_kernels::elementary;

use crate::methods::Unavailable;
use crate::methods::common::words_met;
use crate::methods::lexical::token_bag::TokenBag;
use crate::model::{Model, Phrase, Vocabulary};

const REMEDY: &str = "pack the model again with --corpus FILE, the posts' collection, a post a \
                      line, or with --counts";
/// Occurrences of a token that the collection does not know.
const UNSEEN: f64 = 0.5;
/// The weight of Dirichlet's prior, in tokens of a post.
const MU: f64 = 2500.0;

/// Multiplications that the logarithm and the look-up of one token of a query take, about.
pub(crate) const A_LOGARITHM: u64 = 400;
/// Multiplications that counting one token of a post takes, about.
pub(crate) const A_TOKEN: u64 = 200;

pub(crate) fn need_occurrences(model: &Model) -> Result<(), Unavailable> {
    words_met::need_counts(model).map_err(with_remedy)
}

pub(crate) fn need_rarity(model: &Model) -> Result<(), Unavailable> {
    let known = Collection::new(model.vocabulary()).documents().is_some();
    if known { Ok(()) } else { words_met::need_idf(model).map_err(with_remedy) }
}

fn with_remedy(reason: Unavailable) -> Unavailable {
    Unavailable { remedy: REMEDY.to_owned(), ..reason }
}

#[derive(Clone, Copy)]
pub(crate) struct Collection<'m> {
    vocabulary: Vocabulary<'m>,
}

impl<'m> Collection<'m> {
    pub(crate) fn new(vocabulary: Vocabulary<'m>) -> Self {
        Self { vocabulary }
    }

    /// The share of the collection that is this token: above 0, at most 1.
    pub(crate) fn probability(&self, key: u64) -> f64 {
        let counts = self.vocabulary.counts.unwrap_or_default();
        let count = place(key).and_then(|place| counts.get(place)).copied().unwrap_or(0);
        let tokens = self.vocabulary.corpus.tokens.unwrap_or(0).max(1);
        ((count as f64).max(UNSEEN) / tokens as f64).min(1.0)
    }

    /// How rare a token is: `ln(1 + (N − df + .5) / (df + .5))`, or the model's idf if the model
    /// has no numbers of documents. Never below 0.
    pub(crate) fn rarity(&self, key: u64) -> f64 {
        if let Some((frequencies, total)) = self.documents() {
            let known = place(key).and_then(|place| frequencies.get(place)).copied().unwrap_or(0);
            let frequency = f64::from(known).min(total);
            return elementary::ln(1.0 + (total - frequency + 0.5) / (frequency + 0.5));
        }
        // The key of a listed token is its id; all others are above every id.
        let idf = self.vocabulary.idf(u32::try_from(key).ok()).unwrap_or(0.0);
        if idf.is_finite() { f64::from(idf).max(0.0) } else { 0.0 }
    }

    /// Mean number of tokens of a document, if it is known and above 0.
    pub(crate) fn mean_length(&self) -> Option<f64> {
        let corpus = &self.vocabulary.corpus;
        let (tokens, documents) = (corpus.tokens?, corpus.documents?);
        (tokens > 0 && documents > 0).then(|| tokens as f64 / documents as f64)
    }

    /// Documents that hold each word, and documents in all.
    fn documents(&self) -> Option<(&'m [u32], f64)> {
        let total = self.vocabulary.corpus.documents.filter(|&total| total > 0)?;
        Some((self.vocabulary.document_frequencies?, total as f64))
    }
}

/// The place in the tables of a token, if it is listed.
fn place(key: u64) -> Option<usize> {
    u32::try_from(key).ok().map(|id| id as usize)
}

/// Weighted tokens by which posts are scored: a query, or an expanded query.
pub(crate) struct WeightedTokens {
    tokens: Vec<Weighted>,
}

struct Weighted {
    key: u64,
    weight: f64,
    /// Occurrences that a post has before it is read: `μ p(w|C)`.
    prior: f64,
}

impl WeightedTokens {
    pub(crate) fn new(
        tokens: impl Iterator<Item = (u64, f64)>,
        collection: &Collection<'_>,
    ) -> Self {
        let weighted = |(key, weight)| {
            let prior = MU * collection.probability(key);
            Weighted { key, weight, prior }
        };
        Self { tokens: tokens.map(weighted).collect() }
    }

    /// A query: each token weighs as much as it occurs.
    pub(crate) fn from_query(query: &TokenBag, collection: &Collection<'_>) -> Self {
        let tokens = query.tokens.iter().map(|&(key, times)| (key, f64::from(times)));
        Self::new(tokens, collection)
    }

    /// The logarithm of how likely a post is to bring forth these tokens, each as often as it
    /// weighs: `Σ weight · ln((tf + μ p(w|C)) / (|P| + μ))`.
    pub(crate) fn log_likelihood(&self, post: &TokenBag) -> f64 {
        // Not `sum`, which is -0 for an empty sum.
        self.parts(post).fold(0.0, |sum, (_, part)| sum + part)
    }

    /// The part of the score of each token, by its key.
    pub(crate) fn parts<'a>(&'a self, post: &'a TokenBag) -> impl Iterator<Item = (u64, f64)> + 'a {
        let length = post.length() as f64 + MU;
        self.tokens.iter().map(move |token| {
            let occurrences = f64::from(post.times(token.key)) + token.prior;
            (token.key, token.weight * elementary::ln(occurrences / length))
        })
    }
}

/// The tokens of posts, in the order in which these came.
#[derive(Debug, Clone, Default)]
pub struct Posts {
    keys: Vec<u64>,
    ends: Vec<usize>,
}

impl Posts {
    /// Adds a post.
    pub fn push(&mut self, post: &Phrase<'_>) {
        let start = self.keys.len();
        self.keys.extend(post.token_keys());
        if let Some(added) = self.keys.get_mut(start..) {
            added.sort_unstable();
        }
        self.ends.push(self.keys.len());
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn each(&self, mut tell: impl FnMut(&TokenBag)) {
        let (mut bag, mut start) = (TokenBag::default(), 0);
        for &end in &self.ends {
            bag.read_sorted(self.keys.get(start..end).unwrap_or_default());
            start = end;
            tell(&bag);
        }
    }
}
