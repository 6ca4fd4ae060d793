//! `POST /embed`: the vectors of texts.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Counts;
use crate::engine::Place;
use crate::http::app::App;
use crate::http::asked::Choice;
use crate::http::asked::Oov;
use crate::http::compute::Work;
use crate::http::endpoint;
use crate::http::endpoint::Endpoint;
use crate::http::endpoint::Plan;
use crate::http::endpoint::Question;
use crate::http::endpoint::WRITING;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::fields::OneOrMore;
use crate::http::fields::Text;
use crate::http::models::Shelf;
use crate::http::schema;

/// Bytes that a number takes as JSON, at most and on the average of real vectors.
const BYTES_PER_NUMBER: usize = 13;

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A list of numbers.
    #[default]
    Float,
    /// Their bytes as 32-bit floats, little end first, in base64.
    Base64,
}

/// The body of `POST /embed`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest<'b> {
    #[serde(borrow)]
    texts: OneOrMore<'b>,
    #[serde(borrow)]
    model: Option<Text<'b>>,
    #[serde(borrow)]
    method: Option<Text<'b>>,
    normalize: Option<bool>,
    encoding: Option<Encoding>,
    oov: Option<Oov>,
    truncate: Option<bool>,
}

/// The vectors of texts.
#[derive(Debug, Serialize, ToSchema)]
pub struct EmbedResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'static str,
    /// What the method's vectors are compared by.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// Length of every vector.
    dimensions: usize,
    /// A vector a text, in order; `null` for a text without a known word.
    #[schema(value_type = Vec<Option<schema::Vector>>)]
    embeddings: Vec<Option<Vector>>,
    /// Tokens of each text.
    tokens: &'r [usize],
    /// Tokens of each text that a word was found for.
    known: &'r [usize],
    /// Indexes of the texts that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
}

/// A vector as it is sent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

/// The endpoint.
pub struct Embed;

impl Endpoint for Embed {
    type Question<'b> = EmbedRequest<'b>;
}

impl EmbedRequest<'_> {
    fn texts(&self) -> &[Text<'_>] {
        &self.texts.0.items
    }

    fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        self.texts().iter().enumerate().map(|(index, text)| (Place::Text(index), text.as_ref()))
    }

    fn encode(&self, mut vector: Vec<f32>) -> Vector {
        if self.normalize.unwrap_or(false) {
            let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
            let length = square.sqrt();
            if length > 0.0 {
                vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
            }
        }
        match self.encoding.unwrap_or_default() {
            Encoding::Float => Vector::Numbers(vector),
            Encoding::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                Vector::Base64(STANDARD.encode(bytes))
            }
        }
    }
}

impl<'b> Question<'b> for EmbedRequest<'b> {
    fn plan(&self, app: &App, shelf: &Shelf) -> Result<Plan, ApiError> {
        let (length, limit) = (self.texts.0.length, app.settings.max_texts);
        endpoint::check_length("/texts", "texts", length, limit)?;
        let choice = Choice {
            model: self.model.as_ref(),
            method: self.method.as_ref(),
            oov: self.oov,
            truncate: self.truncate,
            ..Choice::default()
        };
        let mut asked = choice.resolve(shelf)?;
        if self.method.as_ref().is_none_or(|name| name.as_ref().trim().eq_ignore_ascii_case("auto"))
        {
            // The model's choice for scores need not have vectors.
            asked.query.method = asked.served.engine.auto_embedding();
        }
        let dims = asked.served.engine.embedding_dims(asked.query.method)?;
        let (answer, most) =
            (length.saturating_mul(dims * BYTES_PER_NUMBER), app.settings.response_bytes);
        if answer > most {
            let detail = format!(
                "{length} vectors of {dims} numbers take about {answer} bytes; the limit is {most} \
                 (setting `response_bytes`)"
            );
            return Err(ApiError::at(Code::ResponseTooLarge, "/texts", detail));
        }
        let bytes = self.texts().iter().map(|text| text.as_ref().len()).sum();
        let of_text = |text: &Text<'_>| asked.multiplications(text.as_ref(), "");
        let scoring = self.texts().iter().map(of_text).fold(0, u64::saturating_add);
        let writing = (length as u64).saturating_mul(dims as u64).saturating_mul(WRITING);
        Plan::new(asked, length, bytes, scoring.saturating_add(writing), app)
    }

    fn answer(&self, plan: &Plan, app: &App, work: &Work) -> Result<(Vec<u8>, Counts), ApiError> {
        let asked = &plan.asked;
        let engine = &asked.served.engine;
        asked.check_total(self.places(), &app.settings)?;
        let embedded = work.in_parts(self.texts().len(), plan.per_part(), |part| {
            engine.embed(self.texts().get(part).unwrap_or_default(), &asked.query)
        });
        let embedded = embedded.map_err(|error| asked.explain(error, self.places()))?;
        let encode = |vector: Option<Vec<f32>>| vector.map(|vector| self.encode(vector));
        let response = EmbedResponse {
            model: &asked.served.name,
            method: asked.query.method.name(),
            measure: asked.measure().name(),
            fingerprint: engine.model().fingerprint(),
            dimensions: embedded.dims,
            embeddings: embedded.vectors.into_iter().map(encode).collect(),
            tokens: &embedded.tokens,
            known: &embedded.known,
            truncated: &embedded.truncated,
        };
        work.go_on()?;
        Ok((endpoint::json(&response)?, embedded.counts))
    }
}

/// The vectors of texts, for a method that has them.
#[utoipa::path(
    post,
    path = "/embed",
    tag = "compare",
    request_body(content = schema::EmbedBody, content_type = "application/json"),
    responses((status = 200, description = "Vectors in the order of the texts", body = EmbedResponse<'_>)),
)]
pub async fn embed(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    endpoint::answer::<Embed>(app, request).await
}
