//! `POST /explain`: why two texts scored as they did.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Counts;
use crate::engine::ExplainedWord;
use crate::engine::Explanation;
use crate::engine::Measure;
use crate::engine::Place;
use crate::engine::QueryError;
use crate::engine::UnknownToken;
use crate::http::api::pipeline;
use crate::http::api::pipeline::ANSWER_HEAD;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::openapi::schema;
use crate::http::registry::models::Models;
use crate::http::request::cost::WRITING;
use crate::http::request::fields::Text;
use crate::http::request::query::Oov;
use crate::http::request::query::Selection;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;
use crate::methods::ranker::Attended;
use crate::methods::ranker::Attention;

/// Bytes of an explained word beside its token.
const WORD_BYTES: usize = 150;
/// Words of a query that the gist tells of.
const MOST_TOLD: usize = 3;

/// The body of `POST /explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest<'b> {
    #[serde(borrow)]
    a: Text<'b>,
    #[serde(borrow)]
    b: Text<'b>,
    #[serde(borrow)]
    model: Option<Text<'b>>,
    #[serde(borrow)]
    method: Option<Text<'b>>,
    measure: Option<Measure>,
    oov: Option<Oov>,
    truncate: Option<bool>,
}

/// Why two texts scored as they did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainResponse<'r> {
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
    a: Side<'r>,
    /// The second text.
    b: Side<'r>,
    /// Cosines of the words' vectors: a row a word of `a`, a column a word of `b`.
    matrix: &'r [Vec<f32>],
    /// For each word of `a`, then of `b`, as words of the universe: its membership in `a` and in
    /// `b`. The score is made of the smaller and the larger of the two. Fuzzy methods only.
    #[serde(skip_serializing_if = "Option::is_none")]
    memberships: Option<Memberships<'r>>,
    /// For each word of `a`, as a query, the words of `b`, as a post, that it was read from.
    /// Rankers with attention only.
    #[serde(skip_serializing_if = "Option::is_none")]
    attention: Option<Vec<Reading<'r>>>,
    /// Whether the shares of all words and unknown tokens add up to the score.
    adds_up: bool,
    /// A summary in a sentence.
    sentence: String,
}

/// One text, explained.
#[derive(Debug, Serialize, ToSchema)]
pub struct Side<'r> {
    /// Words that a vector was found for, in the order of the text.
    #[schema(value_type = Vec<schema::WordSchema>)]
    words: &'r [ExplainedWord],
    /// Tokens that no word was found for.
    #[schema(value_type = Vec<schema::UnknownSchema>)]
    unknown: &'r [UnknownToken],
    /// Whether the text was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    truncated: bool,
}

/// How much each word of the universe belongs to either text: `[in a, in b]`.
#[derive(Debug, Serialize, ToSchema)]
pub struct Memberships<'r> {
    /// Of each word of `a`.
    a: &'r [[f32; 2]],
    /// Of each word of `b`.
    b: &'r [[f32; 2]],
}

/// What a word of the query was read from.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reading<'r> {
    /// Its place among the words of `a`.
    word: usize,
    /// The token it comes from.
    token: &'r str,
    /// Words of `b`, those that weigh most first, at most 16.
    to: Vec<ReadFrom<'r>>,
}

/// A word of the post, as a word of the query saw it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadFrom<'r> {
    /// Its place among the words of `b`.
    word: usize,
    /// The token it comes from.
    token: &'r str,
    /// The share of the kernels whose best answer, above 0, came from a window that holds it, from
    /// 0 to 1. A window holds several words, so weights need not add up to 1.
    weight: f32,
    /// The cosine of both words, which the word is weighted with; `patt` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    cosine: Option<f32>,
}

/// The endpoint.
pub struct Explain;

impl Endpoint for Explain {
    type Question<'b> = ExplainRequest<'b>;
}

impl ExplainRequest<'_> {
    fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        [(Place::Pair(0, 0), self.a.as_ref()), (Place::Pair(0, 1), self.b.as_ref())].into_iter()
    }
}

impl<'b> Question<'b> for ExplainRequest<'b> {
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let choice = Selection {
            model: self.model.as_ref(),
            method: self.method.as_ref(),
            measure: self.measure,
            oov: self.oov,
            truncate: self.truncate,
        };
        let asked = choice.resolve(models)?;
        asked.check_explains()?;
        let (a, b) = (self.a.as_ref(), self.b.as_ref());
        let dims = asked.served.engine.model().vectors().dims() as u64;
        let (words_of_a, words_of_b) = (asked.words(a), asked.words(b));
        // The matrix is computed and written whatever the method: a product and two lengths a cell.
        let cells = words_of_a * words_of_b;
        let matrix = cells * (3 * dims + WRITING);
        let scoring = asked.multiplications(a, b);
        let bytes = a.len() + b.len();
        let words = (words_of_a + words_of_b) as usize;
        let answer = (cells as usize)
            .saturating_mul(NUMBER_BYTES)
            .saturating_add(words.saturating_mul(WORD_BYTES))
            .saturating_add(bytes + ANSWER_HEAD);
        let plan = Plan::new(asked, 1, bytes, scoring.saturating_add(matrix), app)?;
        plan.answering(answer, "", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        _: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let asked = &plan.asked;
        let engine = &asked.served.engine;
        work.check()?;
        let explained = engine.explain(self.a.as_ref(), self.b.as_ref(), &asked.query);
        let explained = explained.map_err(|error: QueryError| {
            ApiError::of_one_pair(asked.explain(error.into(), self.places()))
        })?;
        let shares = explained.shares.as_ref();
        let memberships = shares.and_then(|shares| shares.memberships.as_ref());
        let tokens = |words: &[ExplainedWord], unknown: &[UnknownToken]| {
            (words.len() + unknown.len(), unknown.len())
        };
        let (in_a, unknown_in_a) = tokens(&explained.one, &explained.one_unknown);
        let (in_b, unknown_in_b) = tokens(&explained.other, &explained.other_unknown);
        let response = ExplainResponse {
            model: &asked.served.name,
            method: asked.query.method.name(),
            measure: asked.measure().name(),
            fingerprint: engine.model().fingerprint(),
            score: explained.score,
            unscored: explained.unscored,
            a: Side {
                words: &explained.one,
                unknown: &explained.one_unknown,
                truncated: explained.truncated[0],
            },
            b: Side {
                words: &explained.other,
                unknown: &explained.other_unknown,
                truncated: explained.truncated[1],
            },
            matrix: &explained.cosines,
            memberships: memberships.map(|of| Memberships { a: &of.one, b: &of.other }),
            attention: readings(&explained),
            adds_up: shares.is_some(),
            sentence: sentence(asked.query.method.name(), &explained),
        };
        let counts = Counts {
            texts: 2,
            tokens: (in_a + in_b) as u64,
            unknown: (unknown_in_a + unknown_in_b) as u64,
        };
        answer.write_json(&response)?;
        Ok(counts)
    }
}

/// What words of the query were read from, with their tokens.
fn readings(explained: &Explanation) -> Option<Vec<Reading<'_>>> {
    let read = |attended: &Attended| {
        let Attended { word, weight, cosine } = *attended;
        let token = explained.other.get(word)?.token.as_str();
        Some(ReadFrom { word, token, weight, cosine })
    };
    let reading = |Attention { word, to }: &Attention| {
        let token = explained.one.get(*word)?.token.as_str();
        Some(Reading { word: *word, token, to: to.iter().filter_map(read).collect() })
    };
    Some(explained.attention.as_ref()?.iter().filter_map(reading).collect())
}

/// The gist of an explanation.
fn sentence(method: &str, explained: &Explanation) -> String {
    let unknown = explained.one_unknown.len() + explained.other_unknown.len();
    let ignored = match unknown {
        0 => String::new(),
        1 => " One token has no vector.".to_owned(),
        more => format!(" {more} tokens have no vector."),
    };
    if explained.unscored {
        return format!(
            "{method} cannot score these texts: one of them has no known word.{ignored}"
        );
    }
    let score = explained.score;
    if let Some(readings) = readings(explained) {
        let read = readings.iter().filter_map(seen).take(MOST_TOLD).collect::<String>();
        return format!(
            "{method} gives the post a chance of {:.2}, a score of {score:.2}.{read}{ignored}",
            score.exp()
        );
    }
    let words = || explained.one.iter().chain(&explained.other);
    let mut shares: Vec<(f32, &str)> =
        words().filter_map(|word| Some((word.share?, word.token.as_str()))).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<String> = shares
        .iter()
        .filter(|(share, _)| *share > 0.0)
        .take(3)
        .map(|(share, token)| format!("\"{token}\" ({share:.2})"))
        .collect();
    let closest = closest(explained).map_or(String::new(), |(one, other, cosine)| {
        format!(" The closest words are \"{one}\" and \"{other}\", at a cosine of {cosine:.2}.")
    });
    match most.as_slice() {
        [] => format!("{method} scores {score:.2}.{closest}{ignored}"),
        most => {
            format!(
                "{method} scores {score:.2}; most comes from {}.{closest}{ignored}",
                most.join(", ")
            )
        }
    }
}

/// What a word of the query was read from most.
fn seen(reading: &Reading<'_>) -> Option<String> {
    let most = reading.to.first().filter(|word| word.weight > 0.0)?;
    let (query, post, weight) = (reading.token, most.token, most.weight);
    let cosine =
        most.cosine.map_or(String::new(), |cosine| format!(", at a cosine of {cosine:.2}"));
    Some(format!(" \"{query}\" was read from \"{post}\" most ({weight:.2}{cosine})."))
}

/// The two words, one of each text, whose vectors point most the same way.
fn closest(explained: &Explanation) -> Option<(&str, &str, f32)> {
    let cells = explained.cosines.iter().zip(&explained.one).flat_map(|(row, one)| {
        row.iter()
            .zip(&explained.other)
            .map(move |(&cosine, other)| (one.token.as_str(), other.token.as_str(), cosine))
    });
    cells.reduce(|best, cell| if cell.2 > best.2 { cell } else { best })
}

/// Why two texts scored as they did: weights, cosines, and what each word adds.
#[utoipa::path(
    post,
    path = "/explain",
    tag = "compare",
    request_body(content = schema::ExplainBody, content_type = "application/json"),
    responses((status = 200, description = "The score, word by word", body = ExplainResponse<'_>)),
)]
pub async fn explain(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    pipeline::answer::<Explain>(app, request).await
}
