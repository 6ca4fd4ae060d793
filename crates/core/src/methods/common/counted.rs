//! What the model's corpus says of the words of a text, and which methods cannot do without it.

use std::cmp::Ordering;

use crate::methods::Unavailable;
use crate::model::phrase::Word;
use crate::model::{Model, Phrase};

/// What to do about a model without counts.
const REMEDY: &str = "pack the model again with --counts or --corpus";

/// Why a method that weights words by their share of the corpus cannot be used, if it cannot.
pub(crate) fn without_counts(model: &Model) -> Option<Unavailable> {
    let vocabulary = model.vocabulary();
    let counted = vocabulary.counts.is_some() && vocabulary.corpus.tokens.is_some();
    (!counted).then(|| missing("the model has no word counts"))
}

/// Why a method that needs the idf of listed and unlisted words cannot be used, if it cannot.
pub(crate) fn without_idf(model: &Model) -> Option<Unavailable> {
    let vocabulary = model.vocabulary();
    let known = vocabulary.idf.is_some() && vocabulary.corpus.idf_unknown.is_some();
    (!known).then(|| missing("the model has no idf"))
}

fn missing(what: &str) -> Unavailable {
    Unavailable { missing: what.to_owned(), remedy: REMEDY.to_owned() }
}

/// The idf of a word, where [`without_idf`] found nothing amiss.
pub(crate) fn idf(phrase: &Phrase<'_>, word: &Word) -> f32 {
    phrase.idf(word).unwrap_or(0.0)
}

/// The places in the text of its words, the highest idf first. Equal ones go by their keys, never
/// by where they stand, so that word order cannot change a score.
pub(crate) fn places_by_idf(phrase: &Phrase<'_>) -> Vec<usize> {
    let words = phrase.words();
    let mut places: Vec<usize> = phrase.bag_order().collect();
    let order = |a: &usize, b: &usize| match (words.get(*a), words.get(*b)) {
        (Some(a), Some(b)) => idf(phrase, b).total_cmp(&idf(phrase, a)),
        _ => Ordering::Equal,
    };
    // The bag is in the order of keys already, and the sort is stable.
    places.sort_by(order);
    places
}
