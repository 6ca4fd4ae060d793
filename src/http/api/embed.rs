//! `POST /embed`: the vectors of texts.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognate::engine::{Counts, Embeddings, Place, Reason};
use cognate::model::unknown::hash_vector;
use cognate::model::{Model, Unknown};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::api::pipeline::{
    ANSWER_HEAD, AnyQuestion, Endpoint, INDEX_BYTES, NUMBER_BYTES, Plan, Question,
};
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{ModelName, Text, Texts, VectorMethod};
use crate::http::request::query::{OovPolicy, Resolved, Selection, WRITING};
use crate::http::request::{body, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// The body of `POST /embed`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbedRequest<'b> {
    #[serde(borrow)]
    pub(crate) texts: Texts<'b>,
    #[serde(borrow)]
    pub(crate) model: Option<ModelName<'b>>,
    #[serde(borrow)]
    pub(crate) method: Option<VectorMethod<'b>>,
    /// Give every vector length 1.
    pub(crate) normalize: Option<bool>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) oov: Option<OovPolicy>,
    /// What stands in the place of the vector of a text that has none: empty, too long, or without a
    /// known word.
    pub(crate) unknown: Option<UnknownVector>,
    /// Cut a text with too many tokens rather than refuse it.
    pub(crate) truncate: Option<bool>,
    /// How many of a vector's first numbers are wanted; other dialects ask for that.
    #[serde(skip)]
    pub(crate) dimensions: Option<usize>,
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

/// What stands in the place of the vector of a text that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnknownVector {
    /// `null`, which no program takes for a vector.
    #[default]
    Null,
    /// Zeros, whose product with any vector is 0.
    Zero,
    /// The whole request is refused, as with `oov` `error`.
    Error,
    /// A vector of length 1 made from the text itself, so that the text at least equals itself.
    Hash,
    /// `hash` where the model makes such vectors of unknown words, else `zero`: for other dialects.
    #[serde(skip)]
    Auto,
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
    /// A vector a text, in order; `null`, or what `unknown` asks for, for a text that has none.
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
    /// The engine's answer, with these vectors.
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

/// A vector a text, in order; nothing for a text that has none.
pub(crate) type VectorList = Vec<Option<Vec<f32>>>;

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
    pub(crate) fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        self.texts
            .items()
            .iter()
            .enumerate()
            .map(|(index, text)| (Place::Text(index), text.as_ref()))
    }

    /// A vector in the requested shape: its first numbers, scaled to length 1.
    fn shape(&self, mut vector: Vec<f32>) -> Vec<f32> {
        vector.truncate(self.dimensions.unwrap_or(usize::MAX));
        if self.normalize.unwrap_or(false) {
            set_length_1(&mut vector);
        }
        vector
    }

    /// The vectors in the requested shape, and the rest of the engine's answer.
    pub(crate) fn vectors(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Embeddings, VectorList), ApiError> {
        let resolved = &plan.resolved;
        let engine = &resolved.model.engine;
        resolved.check_total(self.places(), app.settings.tokens_total, || work.check())?;
        let embedded = work.in_parts(self.texts.items().len(), plan.per_part(), |part| {
            engine.embed(self.texts.items().get(part).unwrap_or_default(), &resolved.query)
        });
        let mut embedded = embedded.map_err(|error| resolved.explain(error, self.places()))?;
        Resolved::check_read(embedded.counts.tokens as usize, app.settings.tokens_total)?;
        let dims = embedded.dims;
        let unknown = self.unknown.unwrap_or_default();
        let vectors = std::mem::take(&mut embedded.vectors).into_iter().zip(self.texts.items());
        let vectors = vectors.map(|(vector, text)| {
            let vector = vector.or_else(|| unknown.vector(text.as_ref(), dims, engine.model()));
            vector.map(|vector| self.shape(vector))
        });
        let vectors = vectors.collect();
        embedded.dims = self.dimensions.unwrap_or(dims).min(dims);
        Ok((embedded, vectors))
    }
}

impl UnknownVector {
    /// The substitute for the vector of a text that has none.
    pub(crate) fn vector(self, text: &str, dims: usize, model: &Model) -> Option<Vec<f32>> {
        let made = match self {
            Self::Null | Self::Error => return None,
            Self::Zero => false,
            Self::Hash => true,
            Self::Auto => {
                matches!(model.unknown(), Unknown::Fallback(rules) if rules.hash_norm.is_some())
            }
        };
        let mut vector = vec![0.0; dims];
        if made {
            hash_vector(text.trim(), 1.0, &mut vector);
        }
        Some(vector)
    }
}

/// Gives a vector length 1, if it has any.
pub(crate) fn set_length_1(vector: &mut [f32]) {
    let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    let length = square.sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

impl Encoding {
    pub(crate) fn write(self, vector: Vec<f32>) -> Vector {
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
    let mut resolved = selection.resolve(models).map_err(of_no_vector)?;
    if selection.method.is_none_or(|name| name.trim().eq_ignore_ascii_case("auto")) {
        resolved.query.method = resolved.model.engine.auto_embedding();
    }
    let dims = resolved.model.engine.embedding_dims(resolved.query.method)?;
    Ok((resolved, dims))
}

/// A method that only ranks is refused here because it has no vectors.
fn of_no_vector(mut error: ApiError) -> ApiError {
    if error.code == Code::MethodOnlyRanks {
        error.code = Code::MethodCannotEmbed;
        error.faults.iter_mut().for_each(|fault| fault.code = Code::MethodCannotEmbed);
    }
    error
}

impl Endpoint for EmbedRequest<'_> {
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<AnyQuestion<'b>, ApiError> {
        Ok(Box::new(json::read_object::<EmbedRequest<'b>>(body)?))
    }
}

impl Question for EmbedRequest<'_> {
    /// A single text stands where a list of texts may stand.
    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        match (&self.texts, pointer.segments()) {
            (Texts::One(_), [Segment::Field("texts"), Segment::Index(_)]) => "/texts".into(),
            _ => pointer,
        }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let (length, limit) = (self.texts.length(), app.settings.max_texts);
        pipeline::check_length("/texts", "texts", length, ("max_texts", limit))?;
        let refuse = self.unknown == Some(UnknownVector::Error);
        let selection = Selection {
            oov: if refuse { Some(OovPolicy::Error) } else { self.oov },
            truncate: self.truncate,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let (resolved, all) = resolve(&selection, models)?;
        let dims = self.dimensions.unwrap_or(all);
        if dims > all {
            return Err(ApiError::beyond(Code::OutOfRange, "/dimensions", "dimensions", all, dims));
        }
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
        let (embedded, vectors) = self.vectors(plan, app, work)?;
        let encoding = self.encoding.unwrap_or_default();
        let written = vectors.into_iter().map(|vector| vector.map(|vector| encoding.write(vector)));
        let response = EmbedResponse::of(&embedded, written.collect(), &plan.resolved);
        work.check()?;
        answer.write_json(&response)?;
        Ok(embedded.counts)
    }
}

refusals!(EmbedRefusals: QUESTION, LIST, &[Code::MethodCannotEmbed]);

/// The settings of a body of lines, which have no other place.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EmbedParameters {
    /// `application/x-ndjson` only: the model.
    #[param(value_type = Option<ModelName<'_>>)]
    pub(crate) model: Option<String>,
    /// `application/x-ndjson` only: the method.
    #[param(value_type = Option<VectorMethod<'_>>)]
    pub(crate) method: Option<String>,
    /// `application/x-ndjson` only: give every vector length 1.
    pub(crate) normalize: Option<bool>,
    /// `application/x-ndjson` only: how vectors are written.
    pub(crate) encoding: Option<Encoding>,
    /// `application/x-ndjson` only: what to do with a text that has no vector. It is answered by `null`
    /// and a reason, or by an error.
    pub(crate) oov: Option<OovPolicy>,
    /// `application/x-ndjson` only: what stands in the place of the vector of a text that has none.
    pub(crate) unknown: Option<UnknownVector>,
    /// `application/x-ndjson` only: cut a text with too many tokens rather than refuse it.
    pub(crate) truncate: Option<bool>,
}

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
    pipeline::answer::<EmbedRequest<'_>>(app, (), request).await
}
