//! `POST /similarity`: how alike the two texts of each pair are.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Counts;
use crate::engine::Measure;
use crate::engine::Place;
use crate::http::api::pipeline;
use crate::http::api::pipeline::ANSWER_HEAD;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::similarity_stream;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::openapi::schema;
use crate::http::registry::models::Models;
use crate::http::request::fields::List;
use crate::http::request::fields::Pair;
use crate::http::request::fields::Text;
use crate::http::request::query::Oov;
use crate::http::request::query::Selection;
use crate::http::request::threshold::Threshold;
use crate::http::request::threshold::WantedThreshold;
use crate::http::request::threshold::threshold;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes of `false` and its comma.
const FLAG_BYTES: usize = 6;

/// The body of `POST /similarity`: `pairs`, or one pair as `a` and `b`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimilarityRequest<'b> {
    #[serde(borrow)]
    pairs: Option<List<Pair<'b>>>,
    #[serde(borrow)]
    a: Option<Text<'b>>,
    #[serde(borrow)]
    b: Option<Text<'b>>,
    #[serde(borrow)]
    model: Option<Text<'b>>,
    #[serde(borrow)]
    method: Option<Text<'b>>,
    measure: Option<Measure>,
    oov: Option<Oov>,
    truncate: Option<bool>,
    threshold: Option<WantedThreshold>,
}

/// How alike the texts of each pair are.
#[derive(Debug, Serialize, ToSchema)]
pub struct SimilarityResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'static str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// A score a pair, in order; 0 for a pair that is unscored.
    scores: &'r [f32],
    /// Indexes of the pairs of which a text has no known word.
    unscored: &'r [usize],
    /// Indexes of the pairs of which a text was cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
    /// The threshold that was used, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// Whether each pair is at or above the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Vec<bool>>,
}

/// The endpoint.
pub struct Similarity;

impl Endpoint for Similarity {
    type Question<'b> = SimilarityRequest<'b>;
}

impl SimilarityRequest<'_> {
    fn choice(&self) -> Selection<'_, '_> {
        Selection {
            model: self.model.as_ref(),
            method: self.method.as_ref(),
            measure: self.measure,
            oov: self.oov,
            truncate: self.truncate,
        }
    }

    /// Faults of the only pair stand where its texts do.
    fn locate(&self, error: ApiError) -> ApiError {
        if self.pairs.is_none() { error.of_one_pair() } else { error }
    }

    /// The pairs, wherever they stand.
    fn pairs(&self) -> Result<Vec<(&str, &str)>, ApiError> {
        match (&self.pairs, &self.a, &self.b) {
            (Some(pairs), None, None) => {
                Ok(pairs.items.iter().map(|Pair(a, b)| (a.as_ref(), b.as_ref())).collect())
            }
            (None, Some(a), Some(b)) => Ok(vec![(a.as_ref(), b.as_ref())]),
            (None, None, None) => {
                Err(ApiError::at(Code::InvalidField, "/pairs", "the field `pairs` is missing"))
            }
            (None, _, _) => {
                let detail = "one pair needs both `a` and `b`";
                let missing = if self.a.is_none() { "/a" } else { "/b" };
                Err(ApiError::at(Code::InvalidField, missing, detail))
            }
            (Some(_), _, _) => {
                let detail = "give either `pairs`, or `a` and `b`";
                Err(ApiError::at(Code::InvalidField, "/pairs", detail))
            }
        }
    }
}

/// Where each text of pairs stands.
pub fn places<'t>(
    pairs: &'t [(&'t str, &'t str)],
) -> impl Iterator<Item = (Place, &'t str)> + Clone {
    let sides = |(index, &(a, b)): (usize, &(&'t str, &'t str))| {
        [(Place::Pair(index, 0), a), (Place::Pair(index, 1), b)]
    };
    pairs.iter().enumerate().flat_map(sides)
}

impl<'b> Question<'b> for SimilarityRequest<'b> {
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        if let Some(list) = &self.pairs {
            pipeline::check_length("/pairs", "pairs", list.length, app.settings.max_pairs)?;
        }
        let asked = self.choice().resolve(models)?;
        let pairs = self.pairs()?;
        threshold(&asked, self.threshold)?;
        asked.check_scores()?;
        let mut multiplications = 0_u64;
        let mut bytes = 0;
        for (a, b) in &pairs {
            multiplications = multiplications.saturating_add(asked.multiplications(a, b));
            bytes += a.len() + b.len();
        }
        let each = NUMBER_BYTES + self.threshold.map_or(0, |_| FLAG_BYTES);
        let answer = ANSWER_HEAD + pairs.len().saturating_mul(each);
        Plan::new(asked, pairs.len(), bytes, multiplications, app)?.answering(answer, "/pairs", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let asked = &plan.asked;
        let (engine, pairs) = (&asked.served.engine, self.pairs()?);
        let total = asked.check_total(places(&pairs), &app.settings);
        total.map_err(|error| self.locate(error))?;
        let scored = work.in_parts(pairs.len(), plan.per_part(), |part| {
            engine.similarity(pairs.get(part).unwrap_or_default(), &asked.query)
        });
        let scored = scored.map_err(|error| self.locate(asked.explain(error, places(&pairs))))?;
        let threshold = threshold(asked, self.threshold)?;
        let related = threshold
            .map(|least| scored.scores.iter().map(|&score| least.is_reached_by(score)).collect());
        let response = SimilarityResponse {
            model: &asked.served.name,
            method: asked.query.method.name(),
            measure: scored.measure.name(),
            fingerprint: engine.model().fingerprint(),
            scores: &scored.scores,
            unscored: &scored.unscored,
            truncated: &scored.truncated,
            threshold: threshold.map(Threshold::number),
            related,
        };
        answer.write_json(&response)?;
        Ok(scored.counts)
    }
}

/// How alike the two texts of each pair are.
///
/// A body of `application/x-ndjson` is answered line by line while it is still being sent: one
/// pair a line (`["a","b"]` or `{"a":…,"b":…}`), one `{"score":…}` a line back, millions of pairs
/// in constant memory. Read while you send: a client that first sends everything stalls once the
/// buffers between are full. Settings then stand in the query string.
#[utoipa::path(
    post,
    path = "/similarity",
    tag = "compare",
    request_body(content(
        (schema::SimilarityBody = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Scores in the order of the pairs", body = SimilarityResponse<'_>),
    ),
)]
pub async fn similarity(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    if similarity_stream::is_lines(request.headers()) {
        return similarity_stream::answer(app, request).await;
    }
    pipeline::answer::<Similarity>(app, request).await
}
