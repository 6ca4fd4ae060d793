//! OpenAI's embeddings, and the list of models that its clients request.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::embed::{EmbedRequest, Encoding, Foreign, Vector};
use crate::http::app::App;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::{Input, Whole};
use crate::http::compatible::vectors::{VectorDialect, VectorQuestion, Vectors};
use crate::http::compatible::{named, vectors, with_names};
use crate::http::dialect::Dialect;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::fields::ModelName;
use crate::http::routes::Routes;
use crate::http::work::unsent::Answer;

pub(super) fn routes() -> Routes {
    let routes = Routes::default()
        .with(routes!(models))
        .with(routes!(model))
        .undocumented(&named("/v1/models"), get(models))
        .undocumented(&named("/v1/models/{id}"), get(model));
    with_names(routes, routes!(embeddings), "/v1/embeddings", &["/embeddings"])
}

/// The body of `POST /v1/embeddings`. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct OpenAiRequest<'b> {
    /// One text or many.
    #[schema(value_type = crate::http::request::fields::Texts<'b>)]
    input: Input<'b>,
    /// A model of this server, as `NAME` or `NAME:METHOD`; default: the first model.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName<'b>>,
    encoding_format: Option<Encoding>,
    /// How many of a vector's first numbers are wanted, 0 for all; what is left is given length 1.
    #[serde(alias = "output_dimension")]
    dimensions: Option<Whole>,
    /// What vectors are made of; clients of Voyage send it.
    #[serde(rename = "output_dtype")]
    _output_dtype: Option<NumberType>,
    /// Whether to cut a text that is too long; default: `true`.
    truncate: Option<bool>,
}

/// What vectors are made of.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NumberType {
    /// Floats, and nothing else.
    Float,
}

/// Vectors as OpenAI writes them.
#[derive(Serialize, ToSchema)]
pub(super) struct OpenAiResponse<'r> {
    /// Always `list`.
    object: &'static str,
    /// A vector a text, in order.
    data: Vec<OpenAiEmbedding<'r>>,
    /// The model's name.
    model: &'r str,
    usage: Usage,
}

/// One vector.
#[derive(Serialize, ToSchema)]
struct OpenAiEmbedding<'r> {
    /// `embedding`.
    object: &'static str,
    /// The text's index.
    index: usize,
    /// Numbers, of length 1 as a vector; or their bytes in base64.
    embedding: Vector<'r>,
}

/// The tokens that were read.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct Usage {
    /// Tokens of the texts.
    prompt_tokens: usize,
    /// The same as `prompt_tokens`.
    total_tokens: usize,
}

impl Usage {
    pub(super) fn new(tokens: usize) -> Self {
        Self { prompt_tokens: tokens, total_tokens: tokens }
    }
}

pub(super) struct OpenAi;

impl VectorDialect for OpenAi {
    const DIALECT: Dialect = Dialect::OpenAi;
    const TEXTS: &'static str = "/input";
    const NAMES_MODEL: bool = true;
    const ITEM_BYTES: usize = 50;
    type Body<'b> = OpenAiRequest<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>> {
        let target = address.target(body.model.map(|ModelName(name)| name));
        let request = vectors::ask(body.input.texts("/input")?, target, address.stand_in);
        let dimensions = body.dimensions.map(|Whole(count)| count);
        let encoding = body.encoding_format;
        let truncate = Some(body.truncate.unwrap_or(true));
        let foreign = Foreign { dimensions, ..request.foreign };
        Ok(EmbedRequest { encoding, truncate, foreign, ..request })
    }

    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<()> {
        let (usage, model) = (Usage::new(vectors.tokens()), vectors.model());
        let embedding = |(index, vector)| {
            let embedding = vectors.asked.encoding.write(vector);
            OpenAiEmbedding { object: "embedding", index, embedding }
        };
        let data = vectors.each().enumerate().map(embedding).collect();
        answer.write_json(&OpenAiResponse { object: "list", data, model, usage })
    }
}

refusals!(OpenAiRefusals in Dialect::OpenAi; QUESTION, LIST, &[Code::MethodCannotEmbed]);
refusals!(OpenAiNotReady in Dialect::OpenAi; &[Code::NotReady]);
refusals!(OpenAiModelRefusals in Dialect::OpenAi; &[Code::UnknownModel, Code::NotReady]);

question! {
    /// Returns vectors of texts in OpenAI's format.
    ///
    /// `model` names a model of this server, its method behind a colon, as in `default:sif`.
    embeddings: "openai" "/v1/embeddings" asks VectorQuestion<'_, OpenAi>;
    OpenAiRequest<'_> => OpenAiResponse<'_>: "Vectors in the order of the texts", OpenAiRefusals
}

/// The models of a server, as OpenAI lists them.
#[derive(Serialize, ToSchema)]
struct OpenAiModels {
    /// `list`.
    object: &'static str,
    /// The models, the default first.
    data: Vec<OpenAiModel>,
}

/// A model.
#[derive(Serialize, ToSchema)]
struct OpenAiModel {
    /// The model's name.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// Not known: 0.
    created: u32,
    /// `cognate`.
    owned_by: &'static str,
}

impl OpenAiModel {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), object: "model", created: 0, owned_by: "cognate" }
    }
}

/// Describes a model of the server in OpenAI's format.
///
/// An unknown name is answered with 404.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    tag = "openai",
    params(("id" = String, Path, description = "The model's name")),
    responses((status = 200, description = "The model", body = OpenAiModel), OpenAiModelRefusals),
)]
async fn model(
    State(app): State<Arc<App>>,
    params: Result<RawPathParams, RawPathParamsRejection>,
) -> Result<Json<OpenAiModel>> {
    let id = match &params {
        Ok(params) => params.iter().find(|(key, _)| *key == "id").map(|(_, id)| id),
        // No model has a name that is not UTF-8.
        Err(_) => Some(""),
    };
    let models = app.models();
    Ok(Json(OpenAiModel::new(&models.choose(id)?.name)))
}

/// Lists the server's models in OpenAI's format.
///
/// Each name can be the `model` of `/v1/embeddings`.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "openai_models",
    tag = "openai",
    responses(
        (status = 200, description = "The models, the default first", body = OpenAiModels),
        OpenAiNotReady,
    ),
)]
async fn models(State(app): State<Arc<App>>) -> Result<Json<OpenAiModels>> {
    let models = app.models();
    models.choose(None)?;
    let data = models.all().iter().map(|loaded| OpenAiModel::new(&loaded.name)).collect();
    Ok(Json(OpenAiModels { object: "list", data }))
}
