//! The answer of `POST /explain`, as it is written.

use cognate::engine::Explanation;
use cognate::methods::ranker::{Attended, Attention};
use cognate::model::phrase::Found;
use cognate::{engine, methods};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::request::query::Resolved;

/// Why two texts scored as they did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'static str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// The score, as `/similarity` gives it, or `/rank` where the method only ranks.
    score: f32,
    /// Whether a text had nothing to be scored by.
    unscored: bool,
    /// The first text.
    a: ExplainedText<'r>,
    /// The second text.
    b: ExplainedText<'r>,
    /// Cosines of the words' vectors: a row a word of `a`, a column a word of `b`.
    matrix: &'r [Vec<f32>],
    /// For each word of `a`, then of `b`, as words of the universe: its membership in `a` and in
    /// `b`. The score is made of them by the method. Fuzzy methods only.
    #[serde(skip_serializing_if = "Option::is_none")]
    memberships: Option<Memberships<'r>>,
    /// For each word of `a`, as a query, the words of `b`, as a post, that it was read from.
    /// Rankers with attention only.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Vec<WordAttention<'r>>>,
    /// Whether the shares of all words and unknown tokens add up to the score.
    adds_up: bool,
    /// A summary in a sentence.
    sentence: String,
}

/// One text, explained.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedText<'r> {
    /// Words that a vector was found for, in the order of the text.
    words: Vec<ExplainedWord<'r>>,
    /// Tokens that no word was found for.
    unknown: Vec<UnknownToken<'r>>,
    /// The share of its tokens that the model lists, by their stem or a part at least.
    known: f32,
    /// Whether the text was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    truncated: bool,
}

/// A word that a vector was found for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedWord<'r> {
    /// The token it comes from, as it was looked up.
    token: &'r str,
    /// Bytes of the text that the token comes from: first and end.
    span: [u32; 2],
    /// The vocabulary's word; `null` where the vector was made for this text.
    word: Option<&'r str>,
    /// How it was found.
    #[schema(value_type = String)]
    found: Found,
    /// The pieces that its vector was made from, in their order; `##` begins one within the word.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pieces: &'r [String],
    /// Its idf, where the model has one.
    idf: Option<f32>,
    /// The length of its vector.
    norm: f32,
    /// What it adds to the score, where the score comes apart.
    share: Option<f32>,
}

/// A token that no word was found for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnknownToken<'r> {
    /// The token, as it was looked up.
    token: &'r str,
    /// What it adds to the score, for methods that read tokens.
    share: Option<f32>,
}

/// How much each word of the universe belongs to either text: `[in a, in b]`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Memberships<'r> {
    /// Of each word of `a`.
    a: &'r [[f32; 2]],
    /// Of each word of `b`.
    b: &'r [[f32; 2]],
}

impl<'r> ExplainResponse<'r> {
    /// What the engine explained of a question.
    pub(crate) fn of(explained: &'r Explanation, resolved: &'r Resolved) -> Self {
        let shares = explained.shares.as_ref();
        let method = resolved.query.method.name();
        let attention = attention(explained);
        Self {
            model: &resolved.model.name,
            method,
            measure: resolved.measure().name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            score: explained.score,
            unscored: explained.unscored,
            a: ExplainedText::of(explained, 0),
            b: ExplainedText::of(explained, 1),
            matrix: &explained.cosines,
            memberships: shares.and_then(|shares| shares.memberships.as_ref()).map(Memberships::of),
            attention,
            adds_up: shares.is_some(),
            sentence: explained.sentence(method),
        }
    }
}

impl<'r> ExplainedText<'r> {
    fn of(explained: &'r Explanation, side: usize) -> Self {
        let (words, unknown) = match side {
            0 => (&explained.one, &explained.one_unknown),
            _ => (&explained.other, &explained.other_unknown),
        };
        Self {
            words: words.iter().map(ExplainedWord::of).collect(),
            unknown: unknown.iter().map(UnknownToken::of).collect(),
            known: explained.known.get(side).copied().unwrap_or_default(),
            truncated: explained.truncated.get(side).copied().unwrap_or_default(),
        }
    }
}

impl<'r> ExplainedWord<'r> {
    fn of(word: &'r engine::ExplainedWord) -> Self {
        let engine::ExplainedWord { token, span, word, found, pieces, idf, norm, share } = word;
        Self {
            token,
            span: *span,
            word: word.as_deref(),
            found: *found,
            pieces,
            idf: *idf,
            norm: *norm,
            share: *share,
        }
    }
}

impl<'r> UnknownToken<'r> {
    fn of(engine::UnknownToken { token, share }: &'r engine::UnknownToken) -> Self {
        Self { token, share: *share }
    }
}

impl<'r> Memberships<'r> {
    fn of(methods::Memberships { one, other }: &'r methods::Memberships) -> Self {
        Self { a: one, b: other }
    }
}

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
