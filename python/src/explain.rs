//! Why two texts scored as they did, as dictionaries: Python gives them their shape.

use cognate::engine::{ExplainedWord, Explanation};
use pyo3::prelude::*;

/// An explanation.
#[derive(IntoPyObject)]
pub(crate) struct Explained {
    score: f32,
    unscored: bool,
    method: &'static str,
    measure: &'static str,
    sentence: String,
    adds_up: bool,
    a: Side,
    b: Side,
    matrix: Vec<Vec<f32>>,
}

/// One of the two texts.
#[derive(IntoPyObject)]
struct Side {
    words: Vec<Word>,
    /// Tokens that no word was found for, each with what it adds to the score.
    unknown: Vec<(String, Option<f32>)>,
    known: f32,
    truncated: bool,
}

/// A word that a vector was found for.
#[derive(IntoPyObject)]
struct Word {
    token: String,
    span: (usize, usize),
    word: Option<String>,
    found: &'static str,
    pieces: Vec<String>,
    idf: Option<f32>,
    norm: f32,
    share: Option<f32>,
}

impl Explained {
    /// What the engine explained of two texts.
    pub(crate) fn new(
        explained: Explanation,
        texts: (&str, &str),
        (method, measure): (&'static str, &'static str),
    ) -> Self {
        let sentence = explained.sentence(method);
        let [known, other_known] = explained.known;
        let [truncated, other_truncated] = explained.truncated;
        let unknown = |tokens: Vec<cognate::engine::UnknownToken>| {
            tokens.into_iter().map(|token| (token.token, token.share)).collect()
        };
        let words = |words: Vec<ExplainedWord>, text: &str| {
            words.into_iter().map(|word| Word::new(word, text)).collect()
        };
        Self {
            score: explained.score,
            unscored: explained.unscored,
            method,
            measure,
            sentence,
            adds_up: explained.shares.is_some(),
            a: Side {
                words: words(explained.one, texts.0),
                unknown: unknown(explained.one_unknown),
                known,
                truncated,
            },
            b: Side {
                words: words(explained.other, texts.1),
                unknown: unknown(explained.other_unknown),
                known: other_known,
                truncated: other_truncated,
            },
            matrix: explained.cosines,
        }
    }
}

impl Word {
    fn new(word: ExplainedWord, text: &str) -> Self {
        // Python counts characters, not bytes.
        let characters =
            |end: u32| text.get(..end as usize).map_or(0, |before| before.chars().count());
        let [start, end] = word.span;
        Self {
            token: word.token,
            span: (characters(start), characters(end)),
            word: word.word,
            found: word.found.name(),
            pieces: word.pieces,
            idf: word.idf,
            norm: word.norm,
            share: word.share,
        }
    }
}
