//! `POST /similarity`: how alike the two texts of each pair are.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::de::Error;
use utoipa::ToSchema;

use crate::engine::Counts;
use crate::engine::Measure;
use crate::engine::Place;
use crate::http::app::App;
use crate::http::asked::Asked;
use crate::http::asked::Choice;
use crate::http::asked::Oov;
use crate::http::compute::Work;
use crate::http::endpoint;
use crate::http::endpoint::Endpoint;
use crate::http::endpoint::Plan;
use crate::http::endpoint::Question;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::fields::List;
use crate::http::fields::Pair;
use crate::http::fields::Real;
use crate::http::fields::Text;
use crate::http::models::Shelf;
use crate::http::schema;
use crate::http::stream;

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
    threshold: Option<Threshold>,
}

/// The score from which a pair counts as related.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// This one.
    Number(Real),
    /// The one that was found for the model, the method and the measure.
    Calibrated,
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = Threshold;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or \"calibrated\"")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Threshold, E> {
                Real::of(number).map(Threshold::Number)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Threshold, E> {
                self.visit_f64(number as f64)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Threshold, E> {
                self.visit_f64(number as f64)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Threshold, E> {
                let word = serde::de::Unexpected::Other("another string");
                match text {
                    "calibrated" => Ok(Threshold::Calibrated),
                    _ => Err(E::invalid_value(word, &self)),
                }
            }
        }
        from.deserialize_any(Either)
    }
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
    fn choice(&self) -> Choice<'_, '_> {
        Choice {
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

/// The threshold that a question means.
pub fn threshold(asked: &Asked, wanted: Option<Threshold>) -> Result<Option<f64>, ApiError> {
    match wanted {
        None => Ok(None),
        Some(Threshold::Number(Real(number))) => Ok(Some(f64::from(number))),
        Some(Threshold::Calibrated) => {
            let known = asked.served.engine.calibration(asked.query.method, asked.measure());
            let calibration = known.ok_or_else(|| {
                let detail = "the model has no threshold for this method and measure; \
                              `cognate eval calibrate` finds one";
                ApiError::at(Code::NotCalibrated, "/threshold", detail)
            })?;
            Ok(Some(calibration.threshold.threshold))
        }
    }
}

impl<'b> Question<'b> for SimilarityRequest<'b> {
    fn plan(&self, app: &App, shelf: &Shelf) -> Result<Plan, ApiError> {
        if let Some(list) = &self.pairs {
            endpoint::check_length("/pairs", "pairs", list.length, app.settings.max_pairs)?;
        }
        let asked = self.choice().resolve(shelf)?;
        let pairs = self.pairs()?;
        threshold(&asked, self.threshold)?;
        asked.check_scores()?;
        let mut multiplications = 0_u64;
        let mut bytes = 0;
        for (a, b) in &pairs {
            multiplications = multiplications.saturating_add(asked.multiplications(a, b));
            bytes += a.len() + b.len();
        }
        Plan::new(asked, pairs.len(), bytes, multiplications, app)
    }

    fn answer(&self, plan: &Plan, app: &App, work: &Work) -> Result<(Vec<u8>, Counts), ApiError> {
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
            .map(|least| scored.scores.iter().map(|&score| f64::from(score) >= least).collect());
        let response = SimilarityResponse {
            model: &asked.served.name,
            method: asked.query.method.name(),
            measure: scored.measure.name(),
            fingerprint: engine.model().fingerprint(),
            scores: &scored.scores,
            unscored: &scored.unscored,
            truncated: &scored.truncated,
            threshold,
            related,
        };
        Ok((endpoint::json(&response)?, scored.counts))
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
    if stream::is_lines(request.headers()) {
        return stream::answer(app, request).await;
    }
    endpoint::answer::<Similarity>(app, request).await
}
