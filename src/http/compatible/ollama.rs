//! Ollama's embeddings, and the requests that its clients send before.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::embed::{EmbedRequest, Foreign};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::build;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::{Input, Whole};
use crate::http::compatible::vectors::{VectorDialect, VectorQuestion, Vectors};
use crate::http::compatible::{named, vectors, with_names};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::LoadedModel;
use crate::http::request::fields::{ModelName, Text, Texts};
use crate::http::request::{body, json};
use crate::http::routes::Routes;
use crate::http::work::unsent::Answer;

pub(super) fn routes() -> Routes {
    let routes = Routes::default()
        .with(routes!(ollama_tags))
        .with(routes!(ollama_show))
        .with(routes!(ollama_version))
        .undocumented(&named("/api/tags"), get(ollama_tags))
        .undocumented(&named("/api/version"), get(ollama_version))
        .also(&named("/api/show"), post(ollama_show));
    let routes = with_names(routes, routes!(ollama_embed), "/api/embed", &[]);
    with_names(routes, routes!(ollama_embeddings), "/api/embeddings", &[])
}

/// The body of `POST /api/embed`. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct OllamaEmbedRequest<'b> {
    /// A model of this server, as `NAME` or `NAME:METHOD`.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName<'b>>,
    /// One text or many.
    #[schema(value_type = Texts<'b>)]
    input: Input<'b>,
    /// Whether to cut a text that is too long; default: `true`.
    truncate: Option<bool>,
    /// How many of a vector's first numbers are wanted, 0 for all; what is left is given length 1.
    dimensions: Option<Whole>,
}

/// Vectors as Ollama writes them.
#[derive(Serialize, ToSchema)]
struct OllamaEmbedResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// A vector of length 1 a text, in order.
    embeddings: Vec<&'r [f32]>,
    /// Tokens of the texts.
    prompt_eval_count: usize,
}

/// The request for vectors of many texts.
pub(super) struct Embed;

impl VectorDialect for Embed {
    const DIALECT: Dialect = Dialect::Ollama;
    const TEXTS: &'static str = "/input";
    const NAMES_MODEL: bool = true;
    type Body<'b> = OllamaEmbedRequest<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>> {
        let target = address.target(body.model.map(|ModelName(name)| name));
        let request = vectors::ask(body.input.texts("/input")?, target, address.stand_in);
        let truncate = Some(body.truncate.unwrap_or(true));
        let dimensions = body.dimensions.map(|Whole(count)| count);
        let foreign = Foreign { dimensions, ..request.foreign };
        Ok(EmbedRequest { truncate, foreign, ..request })
    }

    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<()> {
        answer.write_json(&OllamaEmbedResponse {
            model: vectors.model(),
            prompt_eval_count: vectors.tokens(),
            embeddings: vectors.each().collect(),
        })
    }
}

/// The body of `POST /api/embeddings`. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct OllamaPromptRequest<'b> {
    /// A model of this server, as `NAME` or `NAME:METHOD`.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName<'b>>,
    /// The text.
    prompt: Text<'b>,
}

/// A vector as Ollama writes it.
#[derive(Serialize, ToSchema)]
struct OllamaPromptResponse<'r> {
    /// The text's vector, of the length that it has.
    embedding: &'r [f32],
}

/// The older request, for one text.
pub(super) struct Prompt;

impl VectorDialect for Prompt {
    const DIALECT: Dialect = Dialect::Ollama;
    const TEXTS: &'static str = "/prompt";
    const NAMES_MODEL: bool = true;
    type Body<'b> = OllamaPromptRequest<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>> {
        let target = address.target(body.model.map(|ModelName(name)| name));
        let request = vectors::ask(Texts::One(body.prompt), target, address.stand_in);
        Ok(EmbedRequest { normalize: None, ..request })
    }

    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<()> {
        answer.write_json(&OllamaPromptResponse { embedding: vectors.first() })
    }
}

refusals!(OllamaRefusals in Dialect::Ollama; QUESTION, LIST, &[Code::MethodCannotEmbed]);
refusals!(OllamaNotReady in Dialect::Ollama; &[Code::NotReady]);

question! {
    /// Returns vectors of texts in Ollama's format.
    ///
    /// `model` names a model of this server, its method behind a colon, as in `default:sif`. What only
    /// a language model has is ignored.
    ollama_embed: "ollama" "/api/embed" asks VectorQuestion<'_, Embed>;
    OllamaEmbedRequest<'_> => OllamaEmbedResponse<'_>: "Vectors in the order of the texts", OllamaRefusals
}

question! {
    /// Returns the vector of one text in the format of older clients of Ollama.
    ///
    /// The answer has the vector under `embedding`; newer clients ask `/api/embed`.
    ollama_embeddings: "ollama" "/api/embeddings" asks VectorQuestion<'_, Prompt>;
    OllamaPromptRequest<'_> => OllamaPromptResponse<'_>: "The vector", OllamaRefusals
}

/// Every model, as Ollama lists them.
#[derive(Serialize, ToSchema)]
struct OllamaTags {
    /// The models, the default first.
    models: Vec<OllamaTag>,
}

/// A model, as Ollama lists it.
#[derive(Serialize, ToSchema)]
struct OllamaTag {
    /// The model's name.
    name: String,
    /// The same as `name`.
    model: String,
    /// The model's fingerprint.
    digest: String,
    /// Size of the model file in bytes.
    size: u64,
    details: OllamaDetails,
}

/// What a model is made of.
#[derive(Serialize, ToSchema)]
struct OllamaDetails {
    /// `safetensors`.
    format: &'static str,
    /// `cognate`.
    family: &'static str,
    /// Numbers in its vectors.
    parameter_size: String,
}

impl OllamaDetails {
    fn from_model(loaded: &LoadedModel) -> Self {
        let vectors = loaded.engine.model().vectors();
        let numbers = vectors.dims() as f64 * loaded.engine.model().vocabulary().len() as f64;
        let parameter_size = format!("{:.1}M", numbers / 1e6);
        Self { format: "safetensors", family: "cognate", parameter_size }
    }
}

/// Lists the server's models in Ollama's format.
///
/// Names are those of `/models`; requests may append `:latest`.
#[utoipa::path(
    get,
    path = "/api/tags",
    tag = "ollama",
    responses(
        (status = 200, description = "The models, the default first", body = OllamaTags),
        OllamaNotReady,
    ),
)]
async fn ollama_tags(State(app): State<Arc<App>>) -> Result<Json<OllamaTags>> {
    let models = app.models();
    models.choose(None)?;
    let tag = |loaded: &Arc<LoadedModel>| OllamaTag {
        name: loaded.name.to_string(),
        model: loaded.name.to_string(),
        digest: loaded.engine.model().fingerprint().to_owned(),
        size: loaded.engine.model().bytes(),
        details: OllamaDetails::from_model(loaded),
    };
    Ok(Json(OllamaTags { models: models.all().iter().map(tag).collect() }))
}

/// Most bytes of a body that names a model.
const SHOW_BYTES: usize = 64 << 10;

/// The body of `POST /api/show`. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
struct OllamaShowRequest {
    /// The model's name; without one the first is meant.
    model: Option<String>,
    /// The same, as older clients call it. Some send both.
    name: Option<String>,
}

/// What there is to know of a model, as Ollama writes it.
#[derive(Serialize, ToSchema)]
struct OllamaShow {
    details: OllamaDetails,
    model_info: OllamaModelInfo,
    /// `embedding`.
    capabilities: [&'static str; 1],
}

/// Numbers of a model, under the names that Ollama's clients look for.
#[derive(Serialize, ToSchema)]
struct OllamaModelInfo {
    /// `cognate`.
    #[serde(rename = "general.architecture")]
    architecture: &'static str,
    /// Dimensions of a vector.
    #[serde(rename = "cognate.embedding_length")]
    embedding_length: usize,
    /// Most tokens of a text.
    #[serde(rename = "cognate.context_length")]
    context_length: usize,
}

/// Describes a model of the server in Ollama's format.
///
/// Clients look for the capability `embedding` and for the length of vectors.
#[utoipa::path(
    post,
    path = "/api/show",
    tag = "ollama",
    request_body(content = OllamaShowRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "The model", body = OllamaShow),
        OllamaRefusals,
    ),
)]
async fn ollama_show(
    State(app): State<Arc<App>>,
    caller: Caller,
    request: Request,
) -> Result<Json<OllamaShow>> {
    let _permit = app.admission.admit_soon(&caller.client).await?;
    body::check_encoding(request.headers())?;
    let announced = body::announced(request.headers(), &app.settings)?;
    let body = body::read(request, announced, &app.settings, |bytes| match bytes > SHOW_BYTES {
        false => Ok(()),
        true => Err(ApiError::beyond(Code::BodyTooLarge, "", "bytes", SHOW_BYTES, bytes)),
    });
    let OllamaShowRequest { model, name } = json::read_object(&body.await?)?;
    let named = [model, name].into_iter().flatten().find(|name| !name.is_empty());
    let target = Address::default().target(named.map(Into::into));
    let models = app.models();
    let loaded = models.choose(target.model.as_deref())?;
    Ok(Json(OllamaShow {
        details: OllamaDetails::from_model(loaded),
        model_info: OllamaModelInfo {
            architecture: "cognate",
            embedding_length: loaded.engine.model().dims(),
            context_length: app.settings.tokens_per_text,
        },
        capabilities: ["embedding"],
    }))
}

/// The version of this server, as Ollama writes it.
#[derive(Serialize, ToSchema)]
struct OllamaVersion {
    /// The version.
    version: &'static str,
}

/// Returns the server's version in Ollama's format.
///
/// It is the version of cognate.
#[utoipa::path(
    get,
    path = "/api/version",
    tag = "ollama",
    responses((status = 200, description = "The version", body = OllamaVersion)),
)]
async fn ollama_version() -> Json<OllamaVersion> {
    Json(OllamaVersion { version: build::VERSION })
}
