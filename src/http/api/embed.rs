//! `POST /embed`: the vectors of texts.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognate::Method;
use cognate::engine::{
    Counts, Embeddings, Place, Query, QueryError, Reason, is_vector, set_length_1,
};
use cognate::model::unknown::hash_vector;
use cognate::model::{Model, Unknown};
use ndarray::{Axis, Slice};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::api::envelope::{Envelope, enveloped};
use crate::http::api::pipeline::{Endpoint, INDEX_BYTES, NUMBER_BYTES};
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, Asked, Batch, Form, PlanContext};
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Result, Segment};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{ModelName, Text, Texts, VectorMethod};
use crate::http::request::query::{OovPolicy, Resolved, Selection, WRITING};
use crate::http::request::{body, json};
use crate::http::work::unsent::Answer;

/// The body of `POST /embed`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub struct EmbedRequest<'b> {
    pub(crate) texts: Texts<'b>,
    pub(crate) model: Option<ModelName<'b>>,
    pub(crate) method: Option<VectorMethod<'b>>,
    /// Give every vector length 1.
    pub(crate) normalize: Option<bool>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) oov: Option<OovPolicy>,
    /// What stands in the place of the vector of a text that has none: empty, too long, or without a
    /// known word.
    pub(crate) unknown: Option<UnknownVector>,
    /// Whether to cut a text that is too long instead of refusing it.
    pub(crate) truncate: Option<bool>,
    /// What only other dialects ask for.
    #[serde(skip)]
    pub(crate) foreign: Foreign,
}

/// Options for vectors that other dialects have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Foreign {
    /// Number of leading components to return.
    pub dimensions: Option<usize>,
    /// Whether a text beyond the length limit is refused rather than cut.
    pub refuse_long: bool,
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

enveloped! {
    /// The vectors of texts.
    pub(crate) struct EmbedResponse<'r> {
        /// Length of every vector.
        dimensions: usize,
        /// A vector for each text, in order; a text without a vector has `null`, or what `unknown` asks for.
        embeddings: Vec<Option<Vector<'r>>>,
        /// Tokens of each text.
        tokens: &'r [usize],
        /// Tokens of each text that a word was found for.
        known: &'r [usize],
        /// Indexes of the texts without a vector.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        unscored: &'r [usize],
        /// The reason for each of them: `empty`, `unknown` or `too_long`.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        reasons: &'r [Reason],
        /// Indexes of the texts that were cut.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        truncated: &'r [usize],
    }
}

impl<'r> EmbedResponse<'r> {
    pub(crate) fn new(
        embedded: &'r Embeddings,
        encoding: Encoding,
        resolved: &'r Resolved,
    ) -> Self {
        let written = |vector: Option<&'r [f32]>| vector.map(|it| encoding.write(it));
        Self {
            dimensions: embedded.vectors.ncols(),
            embeddings: embedded.iter().map(written).collect(),
            tokens: &embedded.tokens,
            known: &embedded.known,
            unscored: &embedded.unscored,
            reasons: &embedded.reasons,
            truncated: &embedded.truncated,
            ..Envelope::new(resolved, resolved.measure()).into()
        }
    }
}

/// A vector as it is sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Vector<'r> {
    /// With `encoding` `float`.
    Numbers(&'r [f32]),
    /// With `encoding` `base64`: 32-bit floats, little end first.
    Base64(String),
}

impl UnknownVector {
    /// Puts the substitute, if there is one, in the place of the vector of a text without one.
    fn substitute(self, vector: &mut [f32], text: &str, model: &Model) {
        let made = match self {
            Self::Null | Self::Error => return,
            Self::Zero => false,
            Self::Hash => true,
            Self::Auto => {
                matches!(model.unknown(), Unknown::Fallback(rules) if rules.hash_norm.is_some())
            }
        };
        vector.fill(0.0);
        if made {
            hash_vector(text.trim(), 1.0, vector);
        }
    }
}

impl Encoding {
    pub(crate) fn write(self, vector: &[f32]) -> Vector<'_> {
        match self {
            Self::Float => Vector::Numbers(vector),
            Self::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                Vector::Base64(STANDARD.encode(bytes))
            }
        }
    }

    /// Bytes of a vector in an answer.
    fn bytes(self, dims: usize) -> usize {
        match self {
            Self::Float => dims.saturating_mul(NUMBER_BYTES),
            Self::Base64 => dims.saturating_mul(4).div_ceil(3).saturating_mul(4),
        }
    }
}

/// A request for vectors of a certain form.
pub(crate) struct Embedding {
    pub(crate) resolved: Resolved,
    pub(crate) encoding: Encoding,
    dims: usize,
    normalize: bool,
    unknown: UnknownVector,
    refuse_long: bool,
}

impl Embedding {
    /// Finds the model, a method that has vectors, and their dimensions. `auto` is the model's
    /// choice for vectors: its choice for scores need not have any.
    pub(crate) fn new(
        mut selection: Selection<'_>,
        shape: EmbedParameters,
        foreign: Foreign,
        models: &Models,
    ) -> Result<Self> {
        let unknown = shape.unknown.unwrap_or_default();
        let refuse = unknown == UnknownVector::Error;
        selection.oov = if refuse { Some(OovPolicy::Error) } else { shape.oov };
        selection.truncate = shape.truncate;
        let mut resolved = selection.resolve(models).map_err(of_no_vector)?;
        if selection.method.is_none_or(Method::is_auto) {
            resolved.query.method = resolved.model.engine.auto_embedding();
        }
        let all = resolved.model.engine.embedding_dims(resolved.query.method)?;
        let dims = foreign.dimensions.unwrap_or(all);
        if dims > all {
            return Err(ApiError::beyond(Code::OutOfRange, "/dimensions", "dimensions", all, dims));
        }
        Ok(Self {
            resolved,
            dims,
            encoding: shape.encoding.unwrap_or_default(),
            normalize: shape.normalize.unwrap_or(false),
            unknown,
            refuse_long: foreign.refuse_long,
        })
    }

    /// Makes a text's vector, or its substitute, what is sent of it.
    fn shape(&self, vector: &mut [f32], text: &str) {
        if !is_vector(vector) {
            self.unknown.substitute(vector, text, self.resolved.model.engine.model());
        }
        if self.normalize {
            set_length_1(vector.get_mut(..self.dims).unwrap_or_default());
        }
    }
}

impl<T: AsRef<str> + Sync> Asked<T> for Embedding {
    type Piece = Embeddings;

    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn work(&self, texts: &[T], _: usize) -> [u64; 2] {
        let scoring = texts.iter().map(|text| self.resolved.multiplications(text.as_ref(), ""));
        let writing = (texts.len() as u64).saturating_mul(self.dims as u64).saturating_mul(WRITING);
        [scoring.fold(writing, u64::saturating_add); 2]
    }

    fn texts<'q>(&'q self, texts: &'q [T]) -> impl Iterator<Item = (Place, &'q str)> + Clone {
        texts.iter().enumerate().map(|(index, text)| (Place::Text(index), text.as_ref()))
    }

    fn ask(&self, texts: &[T]) -> Result<Embeddings, QueryError> {
        let engine = &self.resolved.model.engine;
        let mut embedded = engine.embed(texts, &self.resolved.query)?;
        let long = embedded.reasons.iter().position(|reason| *reason == Reason::TooLong);
        let long = long.filter(|_| self.refuse_long).and_then(|at| embedded.unscored.get(at));
        if let Some((&index, text)) = long.and_then(|index| Some((index, texts.get(*index)?))) {
            let query = Query { refuse_unscored: true, ..self.resolved.query };
            engine.check_text(text.as_ref(), &query, Place::Text(index))?;
        }
        for (vector, text) in embedded.vectors.rows_mut().into_iter().zip(texts) {
            self.shape(vector.into_slice().unwrap_or_default(), text.as_ref());
        }
        embedded.vectors.slice_axis_inplace(Axis(1), Slice::from(..self.dims));
        Ok(embedded)
    }

    fn counts(embedded: &Embeddings) -> Counts {
        embedded.counts
    }
}

/// A method that only ranks is refused here because it has no vectors.
fn of_no_vector(mut error: ApiError) -> ApiError {
    if error.code == Code::MethodOnlyRanks {
        error.code = Code::MethodCannotEmbed;
        error.faults.iter_mut().for_each(|fault| fault.code = Code::MethodCannotEmbed);
    }
    error
}

impl<'b> EmbedRequest<'b> {
    /// Plans a request, for an answer that takes `each` bytes for a text besides its vector.
    pub(crate) fn plan_in<F: Form<Embedding, Text<'b>> + Send + 'b>(
        self,
        form: F,
        more: usize,
        context: &PlanContext<'_>,
    ) -> Result<AnyPlanned<'b>> {
        let limit = ("max_texts", context.app.settings.max_texts);
        pipeline::check_length("/texts", "texts", self.texts.length(), limit)?;
        let selection = Selection::named(self.model.as_ref(), self.method.as_ref());
        let shape = EmbedParameters {
            normalize: self.normalize,
            encoding: self.encoding,
            oov: self.oov,
            unknown: self.unknown,
            truncate: self.truncate,
            ..EmbedParameters::default()
        };
        let asked = Embedding::new(selection, shape, self.foreign, context.models)?;
        // Two quotes and a comma, and the numbers of tokens and of known ones.
        let each = asked.encoding.bytes(asked.dims).saturating_add(3 + 2 * INDEX_BYTES + more);
        Ok(Box::new(Batch::new(
            (asked, self.texts.into_vec(), form),
            ("/texts", each),
            context.app,
        )?))
    }
}

struct Native {
    is_one: bool,
}

impl Form<Embedding, Text<'_>> for Native {
    fn place(&self, pointer: Pointer, _: &[Text<'_>]) -> Pointer {
        match pointer.segments() {
            [Segment::Field("texts"), Segment::Index(_)] if self.is_one => "/texts".into(),
            _ => pointer,
        }
    }

    fn write(
        &self,
        asked: &Embedding,
        _: &[Text<'_>],
        embedded: &Embeddings,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        answer.write_json(&EmbedResponse::new(embedded, asked.encoding, &asked.resolved))
    }
}

impl Ask for EmbedRequest<'_> {
    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let is_one = matches!(self.texts, Texts::One(_));
        self.plan_in(Native { is_one }, 0, context)
    }
}

impl Endpoint for EmbedRequest<'_> {
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<AnyAsk<'b>> {
        Ok(Box::new(json::read_object::<EmbedRequest<'b>>(body)?))
    }
}

refusals!(EmbedRefusals: QUESTION, LIST, &[Code::MethodCannotEmbed]);

/// Query parameters of a request whose body is lines: such a body has no place for settings.
#[derive(Debug, Default, Deserialize, IntoParams)]
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
    /// `application/x-ndjson` only: cut a text that is too long rather than refuse it.
    pub(crate) truncate: Option<bool>,
}

/// Returns vectors of texts, for a method that has vectors.
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
pub async fn embed(State(app): State<Arc<App>>, request: Request) -> Result<Response> {
    if body::is_lines(request.headers()) {
        return stream::embed::answer(app, request).await;
    }
    pipeline::answer::<EmbedRequest<'_>>(app, (), request).await
}
