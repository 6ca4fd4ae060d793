//! Which words of the post each word of the query was read from, with their tokens.

use cognate::engine::Explanation;
use cognate::methods::ranker::{Attended, Attention};
use serde::Serialize;
use utoipa::ToSchema;

/// What a word of the query was read from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WordAttention<'r> {
    /// Its place among the words of `a`.
    word: usize,
    /// The token it comes from.
    pub token: &'r str,
    /// Words of `b`, those that weigh most first, at most 16.
    pub to: Vec<AttendedWord<'r>>,
}

/// A word of the post, as a word of the query saw it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttendedWord<'r> {
    /// Its place among the words of `b`.
    word: usize,
    /// The token it comes from.
    pub token: &'r str,
    /// The share of the kernels whose best answer, above 0, came from a window that holds it, from
    /// 0 to 1. A window holds several words, so weights need not add up to 1.
    pub weight: f32,
    /// The cosine of both words, which the word is weighted with; `patt` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
}

/// What words of the query were read from, with their tokens.
pub(super) fn attention(explained: &Explanation) -> Option<Vec<WordAttention<'_>>> {
    let attended = |attended: &Attended| {
        let Attended { word, weight, cosine } = *attended;
        let token = explained.other.get(word)?.token.as_str();
        Some(AttendedWord { word, token, weight, cosine })
    };
    let of_word = |Attention { word, to }: &Attention| {
        let token = explained.one.get(*word)?.token.as_str();
        Some(WordAttention { word: *word, token, to: to.iter().filter_map(attended).collect() })
    };
    Some(explained.attention.as_ref()?.iter().filter_map(of_word).collect())
}
