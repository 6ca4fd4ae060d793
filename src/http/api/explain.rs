//! `POST /explain`: why two texts scored as they did.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine;
use cognate::engine::{
    Counts, ExplainedWord, Explanation, OpposedWord, Opposites, OppositionKind, Place, UnknownToken,
};
use cognate::methods::Memberships;
use cognate::methods::ranker::{Attended, Attention};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::api::cost::Cost;
use crate::http::api::envelope::{Envelope, enveloped};
use crate::http::api::pipeline;
use crate::http::api::pipeline::{ANSWER_HEAD, Endpoint, NUMBER_BYTES};
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, PlanContext, Planned};
use crate::http::app::App;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{QUESTION, refusals};
use crate::http::request::fields::{ExplainMethod, MeasureName, ModelName, Text};
use crate::http::request::query::{OovPolicy, Resolved, Selection, WRITING};
use crate::http::request::{fields, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes of an explained word besides its token.
const WORD_BYTES: usize = 150;

/// The body of `POST /explain`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct ExplainRequest<'b> {
    /// The first text; for a method that only ranks, the query.
    #[schema(value_type = fields::NonEmptyText)]
    a: Text<'b>,
    /// The second text; for a method that only ranks, the post.
    #[schema(value_type = fields::NonEmptyText)]
    b: Text<'b>,
    model: Option<ModelName<'b>>,
    method: Option<ExplainMethod<'b>>,
    measure: Option<MeasureName>,
    opposites: Option<Opposites>,
    oov: Option<OovPolicy>,
    /// Whether to cut a text that is too long instead of refusing it.
    truncate: Option<bool>,
}

/// Multiplications for explaining the score of two texts: those of the score, and of the matrix,
/// which is computed whatever the method: a product and two lengths per cell.
pub(crate) fn explaining(a: &str, b: &str, resolved: &Resolved) -> u64 {
    let dims = resolved.model.engine.model().dims() as u64;
    let cells = resolved.words(a) * resolved.words(b);
    resolved.multiplications(a, b).saturating_add(cells.saturating_mul(3 * dims))
}

impl Endpoint for ExplainRequest<'_> {
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<AnyAsk<'b>> {
        Ok(Box::new(json::read_object::<ExplainRequest<'b>>(body)?))
    }
}

impl Ask for ExplainRequest<'_> {
    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            opposites: self.opposites,
            oov: self.oov,
            truncate: self.truncate,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let resolved = selection.resolve(context.models)?;
        resolved.check_explains()?;
        let (a, b) = (self.a.as_ref(), self.b.as_ref());
        let (words_of_a, words_of_b) = (resolved.words(a), resolved.words(b));
        let cells = words_of_a * words_of_b;
        let work = explaining(a, b, &resolved).saturating_add(cells * WRITING);
        let bytes = a.len() + b.len();
        let words = (words_of_a + words_of_b) as usize;
        let answer = (cells as usize)
            .saturating_mul(NUMBER_BYTES)
            .saturating_add(words.saturating_mul(WORD_BYTES))
            .saturating_add(bytes + ANSWER_HEAD);
        let cost = Cost::new(&resolved, 1, bytes, [work; 2], context.app)?;
        let cost = cost.answering(answer, "", context.app)?;
        Ok(Box::new(Explaining { a: self.a, b: self.b, resolved, cost }))
    }
}

struct Explaining<'b> {
    a: Text<'b>,
    b: Text<'b>,
    resolved: Resolved,
    cost: Cost,
}

impl Planned for Explaining<'_> {
    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn answer(
        self: Box<Self>,
        _: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        let Self { a, b, resolved, .. } = *self;
        let (a, b) = (a.as_ref(), b.as_ref());
        job.check()?;
        let explained = resolved.model.engine.explain(a, b, &resolved.query);
        let explained = explained.map_err(|error| {
            let places = [(Place::Pair(0, 0), a), (Place::Pair(0, 1), b)];
            let error = resolved.explain(error.into(), places.into_iter());
            error.renamed(|pointer| pointer.of_pair().map_or(pointer, |(_, field)| field.into()))
        })?;
        let tokens = |words: &[ExplainedWord], unknown: &[UnknownToken]| {
            (words.len() + unknown.len(), unknown.len())
        };
        let (in_a, unknown_in_a) = tokens(&explained.one, &explained.one_unknown);
        let (in_b, unknown_in_b) = tokens(&explained.other, &explained.other_unknown);
        answer.write_json(&ExplainResponse::new(&explained, &resolved))?;
        Ok(Counts {
            texts: 2,
            tokens: (in_a + in_b) as u64,
            unknown: (unknown_in_a + unknown_in_b) as u64,
        })
    }
}

refusals!(ExplainRefusals: QUESTION, &[Code::MethodOnlyRanks, Code::MeasureNotSupported]);

/// Explains the score of two texts: weights, cosines, and what each word adds.
///
/// Where `adds_up` is true, the shares of the words sum to the score.
#[utoipa::path(
    post,
    path = "/explain",
    tag = "compare",
    request_body(content = ExplainRequest<'_>, content_type = "application/json"),
    responses(
        (status = 200, description = "The score, word by word", body = ExplainResponse<'_>),
        ExplainRefusals,
    ),
)]
pub async fn explain(State(app): State<Arc<App>>, request: Request) -> Result<Response> {
    pipeline::answer::<ExplainRequest<'_>>(app, (), request).await
}

enveloped! {
    /// Why two texts scored as they did.
    pub(crate) struct ExplainResponse<'r> {
        /// The score that `/similarity` gives, or `/rank` if the method only ranks.
        score: f32,
        /// Whether a text could not be scored.
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
        memberships: Option<&'r Memberships>,
        /// For each word of `a`, as a query, the words of `b`, as a post, that it was read from.
        /// Rankers with attention only.
        #[serde(skip_serializing_if = "Option::is_none")]
        attention: Option<Vec<WordAttention<'r>>>,
        /// How the texts are opposed, and by which of their words, where they are and the model knows
        /// opposites; opposites may count in the score or not.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        opposes: Vec<ExplainedOpposition<'r>>,
        /// Whether the shares of all words and unknown tokens add up to the score.
        adds_up: bool,
        /// A summary in a sentence.
        sentence: String,
    }
}

/// One text, explained.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ExplainedText<'r> {
    /// Words that a vector was found for, in the order of the text.
    words: &'r [ExplainedWord],
    /// Tokens that no word was found for.
    unknown: &'r [UnknownToken],
    /// The share of the text's tokens that the model lists, or whose stem or part it lists.
    known: f32,
    /// Whether the text was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// One way in which the texts are opposed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainedOpposition<'r> {
    /// The kind.
    kind: OppositionKind,
    /// The words of `a` that carry it; none where only `b` has any.
    a: &'r [OpposedWord],
    /// The words of `b` that carry it.
    b: &'r [OpposedWord],
}

impl<'r> ExplainResponse<'r> {
    pub(crate) fn new(explained: &'r Explanation, resolved: &'r Resolved) -> Self {
        let shares = explained.shares.as_ref();
        let attention = attention(explained);
        Self {
            score: explained.score,
            unscored: explained.unscored,
            a: ExplainedText::new(explained, 0),
            b: ExplainedText::new(explained, 1),
            matrix: &explained.cosines,
            memberships: shares.and_then(|shares| shares.memberships.as_ref()),
            attention,
            opposes: explained.opposes.iter().map(ExplainedOpposition::new).collect(),
            adds_up: shares.is_some(),
            sentence: explained.sentence(resolved.query.method.name()),
            ..Envelope::new(resolved, resolved.measure()).into()
        }
    }
}

impl<'r> ExplainedText<'r> {
    fn new(explained: &'r Explanation, side: usize) -> Self {
        let (words, unknown) = match side {
            0 => (&explained.one, &explained.one_unknown),
            _ => (&explained.other, &explained.other_unknown),
        };
        Self {
            words,
            unknown,
            known: explained.known.get(side).copied().unwrap_or_default(),
            truncated: explained.truncated.get(side).copied().unwrap_or_default(),
        }
    }
}

impl<'r> ExplainedOpposition<'r> {
    fn new(engine::Opposition { kind, words: [a, b] }: &'r engine::Opposition) -> Self {
        Self { kind: *kind, a, b }
    }
}

/// What a word of the query was read from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WordAttention<'r> {
    /// The word's index among the words of `a`.
    word: usize,
    /// The token from which the word comes.
    pub token: &'r str,
    /// Words of `b`, those that weigh most first, at most 16.
    pub to: Vec<AttendedWord<'r>>,
}

/// A word of the post, as a word of the query saw it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttendedWord<'r> {
    /// The index among the words of `b`.
    word: usize,
    /// The token from which the word comes.
    pub token: &'r str,
    /// The share of the kernels whose best answer, above 0, came from a window that holds it, from
    /// 0 to 1. A window holds several words, so weights need not add up to 1.
    pub weight: f32,
    /// The cosine of both words, which the word is weighted with; `patt` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
}

/// For each word of the query, the words of the other text that the network attended to.
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
