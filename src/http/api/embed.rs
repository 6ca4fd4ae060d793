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
use crate::engine::Embeddings;
use crate::engine::Place;
use crate::engine::Reason;
use crate::http::api::pipeline;
use crate::http::api::pipeline::ANSWER_HEAD;
use crate::http::api::pipeline::INDEX_BYTES;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::stream;
use crate::http::api::stream::embed::EmbedParameters;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::openapi::refusals::LIST;
use crate::http::openapi::refusals::QUESTION;
use crate::http::openapi::refusals::refusals;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::cost::WRITING;
use crate::http::request::fields::ModelName;
use crate::http::request::fields::Text;
use crate::http::request::fields::Texts;
use crate::http::request::fields::VectorMethod;
use crate::http::request::query::OovPolicy;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// The body of `POST /embed`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest<'b> {
    #[serde(borrow)]
    texts: Texts<'b>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    #[serde(borrow)]
    method: Option<VectorMethod<'b>>,
    /// Give every vector length 1.
    normalize: Option<bool>,
    encoding: Option<Encoding>,
    oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// A list of numbers.
    #[default]
    Float,
    /// Their bytes as 32-bit floats, little end first, in base64.
    Base64,
}

/// The vectors of texts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbedResponse<'r> {
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
    embeddings: Vec<Option<Vector>>,
    /// Tokens of each text.
    tokens: &'r [usize],
    /// Tokens of each text that a word was found for.
    known: &'r [usize],
    /// Indexes of the texts without a vector.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    unscored: &'r [usize],
    /// Why, one of `empty`, `unknown`, `too_long` for each of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the texts that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
}

impl<'r> EmbedResponse<'r> {
    /// What the engine embedded of a question, with the vectors as they are to be written.
    pub(crate) fn of(
        embedded: &'r Embeddings,
        embeddings: Vec<Option<Vector>>,
        resolved: &'r Resolved,
    ) -> Self {
        Self {
            model: &resolved.model.name,
            method: resolved.query.method.name(),
            measure: resolved.measure().name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            dimensions: embedded.dims,
            embeddings,
            tokens: &embedded.tokens,
            known: &embedded.known,
            unscored: &embedded.unscored,
            reasons: &embedded.reasons,
            truncated: &embedded.truncated,
        }
    }
}

/// A vector as it is sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Vector {
    /// With `encoding` `float`.
    Numbers(Vec<f32>),
    /// With `encoding` `base64`: 32-bit floats, little end first.
    Base64(String),
}

impl EmbedRequest<'_> {
    fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        self.texts
            .items()
            .iter()
            .enumerate()
            .map(|(index, text)| (Place::Text(index), text.as_ref()))
    }

    /// Faults of the only text stand where it does.
    fn locate(&self, error: ApiError) -> ApiError {
        match self.texts {
            Texts::One(_) => error.moved(Place::Text(0), "texts", "/texts"),
            Texts::Many(_) => error,
        }
    }
}

impl Encoding {
    /// A vector as it is sent, of length 1 if that is wanted.
    pub(crate) fn encode(self, mut vector: Vec<f32>, normalize: bool) -> Vector {
        if normalize {
            let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
            let length = square.sqrt();
            if length > 0.0 {
                vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
            }
        }
        match self {
            Self::Float => Vector::Numbers(vector),
            Self::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                Vector::Base64(STANDARD.encode(bytes))
            }
        }
    }
}

/// Finds the model, a method that has vectors, and their dimensions. `auto` is the model's choice for
/// vectors: that for scores need not have any.
pub(crate) fn resolve(
    selection: &Selection<'_>,
    models: &Models,
) -> Result<(Resolved, usize), ApiError> {
    let mut resolved = selection.resolve(models)?;
    if selection.method.is_none_or(|name| name.trim().eq_ignore_ascii_case("auto")) {
        resolved.query.method = resolved.model.engine.auto_embedding();
    }
    let dims = resolved.model.engine.embedding_dims(resolved.query.method)?;
    Ok((resolved, dims))
}

impl Question for EmbedRequest<'_> {
    type In<'b> = EmbedRequest<'b>;

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let (length, limit) = (self.texts.length(), app.settings.max_texts);
        pipeline::check_length("/texts", "texts", length, limit)?;
        let selection = Selection {
            oov: self.oov,
            truncate: self.truncate,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let (resolved, dims) = resolve(&selection, models)?;
        let vector = match self.encoding.unwrap_or_default() {
            Encoding::Float => dims.saturating_mul(NUMBER_BYTES),
            Encoding::Base64 => dims.saturating_mul(4).div_ceil(3).saturating_mul(4),
        };
        // Two quotes and a comma, and the numbers of tokens and of known ones.
        let each = vector.saturating_add(3 + 2 * INDEX_BYTES);
        let answer = ANSWER_HEAD.saturating_add(length.saturating_mul(each));
        let bytes = self.texts.items().iter().map(|text| text.as_ref().len()).sum();
        let of_text = |text: &Text<'_>| resolved.multiplications(text.as_ref(), "");
        let scoring = self.texts.items().iter().map(of_text).fold(0, u64::saturating_add);
        let writing = (length as u64).saturating_mul(dims as u64).saturating_mul(WRITING);
        let plan = Plan::new(resolved, length, bytes, scoring.saturating_add(writing), app)?;
        plan.answering(answer, "/texts", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let resolved = &plan.resolved;
        let engine = &resolved.model.engine;
        let total = resolved.check_total(self.places(), &app.settings);
        total.map_err(|error| self.locate(error))?;
        let embedded = work.in_parts(self.texts.items().len(), plan.per_part(), |part| {
            engine.embed(self.texts.items().get(part).unwrap_or_default(), &resolved.query)
        });
        let mut embedded =
            embedded.map_err(|error| self.locate(resolved.explain(error, self.places())))?;
        Resolved::check_read(embedded.counts.tokens as usize, &app.settings)?;
        let (encoding, normalize) =
            (self.encoding.unwrap_or_default(), self.normalize.unwrap_or(false));
        let encode =
            |vector: Option<Vec<f32>>| vector.map(|vector| encoding.encode(vector, normalize));
        let vectors = std::mem::take(&mut embedded.vectors).into_iter().map(encode).collect();
        let response = EmbedResponse::of(&embedded, vectors, resolved);
        work.check()?;
        answer.write_json(&response)?;
        Ok(embedded.counts)
    }
}

refusals!(EmbedRefusals: QUESTION, LIST, &[Code::MethodCannotEmbed]);

/// The vectors of texts, for a method that has them.
///
/// A body of `application/x-ndjson` is answered line by line: one text a line (a string or
/// `{"id"?,"text"}`), one `{"id"?,"embedding","tokens","known"}` a line back. Blank lines have no answer.
/// Settings stand in the query string.
#[utoipa::path(
    post,
    path = "/embed",
    tag = "compare",
    params(EmbedParameters),
    request_body(content(
        (EmbedRequest<'_> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Vectors in the order of the texts", content(
            (EmbedResponse<'_> = "application/json"),
            (String = "application/x-ndjson"),
        )),
        EmbedRefusals,
    ),
)]
pub async fn embed(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    if body::is_lines(request.headers()) {
        return stream::embed::answer(app, request).await;
    }
    pipeline::answer::<EmbedRequest<'_>>(app, request).await
}
