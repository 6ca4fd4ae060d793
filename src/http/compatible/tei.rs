//! The routes of Hugging Face's text-embeddings-inference. The native dialect has two of its paths
//! as well: there a body with `inputs` belongs to this dialect.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::embed::{EmbedRequest, Foreign};
use crate::http::api::similarity::SimilarityRequest;
use crate::http::api::{embed, pipeline, similarity};
use crate::http::app::App;
use crate::http::build;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::{Document, Either, Input, OnlyObject, Truncate, Whole};
use crate::http::compatible::pairs::{PairDialect, PairQuestion, Sides};
use crate::http::compatible::vectors::{VectorDialect, VectorQuestion};
use crate::http::compatible::{named, vectors};
use crate::http::dialect::Dialect;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::body;
use crate::http::request::fields::{CutText, List, Text, Texts};
use crate::http::routes::Routes;

/// Returns the routes whose paths the native dialect has, too; the body decides which dialect answers.
pub(crate) fn shared() -> Routes {
    let (schemas, paths, _) = routes!(embed::embed);
    let (pair_schemas, pair_paths, _) = routes!(similarity::similarity);
    Routes::default()
        .with((pair_schemas, pair_paths, post(similarity_or_native)))
        .with((schemas, paths, post(embed_or_native)))
        .in_dialect(None)
}

pub(super) fn routes() -> Routes {
    Routes::default()
        .with(routes!(tei_embed))
        .with(routes!(tei_similarity))
        .with(routes!(tei_info))
        .undocumented(&named("/info"), get(tei_info))
}

/// The body of `POST /embed` in the words of text-embeddings-inference. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct TeiEmbedRequest<'b> {
    /// One text or many.
    #[serde(borrow)]
    #[schema(value_type = Texts<'b>)]
    inputs: Input<'b>,
    /// Give every vector length 1, as is done unless this is false.
    pub(super) normalize: Option<bool>,
    /// Whether to cut a text that is too long; default: `true`.
    truncate: Option<Truncate>,
    /// Number of a vector's first numbers to return; 0: all.
    dimensions: Option<Whole>,
}

impl<'b> TeiEmbedRequest<'b> {
    pub(super) fn ask(self, address: &Address) -> Result<EmbedRequest<'b>> {
        let texts = self.inputs.texts("/inputs")?;
        let dimensions = self.dimensions.map(|Whole(count)| count);
        Ok(EmbedRequest {
            normalize: Some(self.normalize.unwrap_or(true)),
            truncate: Some(self.truncate.is_none_or(|Truncate(truncate)| truncate)),
            foreign: Foreign { dimensions, ..Foreign::default() },
            ..vectors::ask(texts, address.target(None), address.stand_in)
        })
    }
}

pub(super) struct Tei;

impl VectorDialect for Tei {
    const DIALECT: Dialect = Dialect::Tei;
    const TEXTS: &'static str = "/inputs";
    type Body<'b> = TeiEmbedRequest<'b>;

    fn ask<'b>(
        body: <Self as VectorDialect>::Body<'b>,
        address: &Address,
    ) -> Result<EmbedRequest<'b>> {
        body.ask(address)
    }
}

/// The body of `POST /similarity` in the words of text-embeddings-inference. Other fields are
/// ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct SentencesRequest<'b> {
    #[serde(borrow)]
    #[schema(value_type = Sentences<'b>)]
    inputs: OnlyObject<Sentences<'b>>,
    #[schema(value_type = Option<Parameters>)]
    parameters: Option<OnlyObject<Parameters>>,
}

/// A text and those that it is compared with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct Sentences<'b> {
    /// The text.
    #[schema(value_type = CutText)]
    source_sentence: Document<'b>,
    /// The texts that it is compared with.
    #[schema(value_type = Vec<Text<'b>>, min_items = 1, max_items = 10000)]
    sentences: List<Document<'b>>,
}

/// How they are compared.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Parameters {
    /// Whether to cut a text that is too long; default: `true`.
    truncate: Option<Truncate>,
}

impl<'b> SentencesRequest<'b> {
    pub(super) fn sides(self, address: &Address) -> Sides<'b> {
        let OnlyObject(inputs) = self.inputs;
        let Sentences { source_sentence: Document(source), sentences } = inputs;
        let List { items, length } = sentences;
        let items = items.into_iter().map(|Document(text)| text).collect();
        let truncate = self.parameters.and_then(|OnlyObject(parameters)| parameters.truncate);
        Sides {
            left: Texts::One(source),
            left_field: "/inputs/source_sentence",
            right: Texts::Many(List { items, length }),
            right_field: "/inputs/sentences",
            target: address.target(None),
            truncate: truncate.is_none_or(|Truncate(truncate)| truncate),
        }
    }
}

impl PairDialect for Tei {
    const DIALECT: Dialect = Dialect::Tei;
    type Body<'b> = SentencesRequest<'b>;

    fn ask<'b>(body: <Self as PairDialect>::Body<'b>, address: &Address) -> Result<Sides<'b>> {
        Ok(body.sides(address))
    }
}

pub(super) type VectorsOrNative<'b> = Either<EmbedRequest<'b>, VectorQuestion<'b, Tei>>;
pub(super) type PairsOrNative<'b> = Either<SimilarityRequest<'b>, PairQuestion<'b, Tei>>;

async fn embed_or_native(
    state: State<Arc<App>>,
    address: Address,
    request: Request,
) -> Result<Response> {
    if body::is_lines(request.headers()) {
        return embed::embed(state, request).await;
    }
    pipeline::answer::<VectorsOrNative<'_>>(state.0, address, request).await
}

async fn similarity_or_native(
    state: State<Arc<App>>,
    address: Address,
    request: Request,
) -> Result<Response> {
    if body::is_lines(request.headers()) {
        return similarity::similarity(state, request).await;
    }
    pipeline::answer::<PairsOrNative<'_>>(state.0, address, request).await
}

refusals!(
    TeiRefusals in Dialect::Tei;
    QUESTION, LIST, &[Code::MethodCannotEmbed, Code::MethodOnlyRanks, Code::MeasureNotSupported]
);
refusals!(TeiNotReady in Dialect::Tei; &[Code::NotReady]);

question! {
    /// Returns vectors of texts in the format of text-embeddings-inference.
    ///
    /// A body of this kind is also taken at `/embed`.
    tei_embed: "tei" "/m/{model}/{method}/embed" with (
        ("model" = String, Path, description = "The model's name"),
        ("method" = String, Path, description = "The method's name, or `auto`"),
    ) asks VectorQuestion<'_, Tei>;
    TeiEmbedRequest<'_> => Vec<Vec<f32>>: "Vectors in the order of the texts", TeiRefusals
}

question! {
    /// Returns scores of one text against others in the format of text-embeddings-inference.
    ///
    /// A body of this kind is also taken at `/similarity`.
    tei_similarity: "tei" "/m/{model}/{method}/similarity" with (
        ("model" = String, Path, description = "The model's name"),
        ("method" = String, Path, description = "The method's name, or `auto`"),
    ) asks PairQuestion<'_, Tei>;
    SentencesRequest<'_> => Vec<f32>: "Scores in the order of the sentences", TeiRefusals
}

/// The server as text-embeddings-inference describes itself.
#[derive(Serialize, ToSchema)]
struct TeiInfo {
    /// The default model's name.
    model_id: String,
    /// The model's fingerprint.
    model_sha: String,
    /// `float32`.
    model_dtype: &'static str,
    model_type: TeiModelType,
    /// Requests at once: the items that are taken on.
    max_concurrent_requests: usize,
    /// Most tokens of a text.
    max_input_length: usize,
    /// Most tokens of a request.
    max_batch_tokens: usize,
    /// Most texts of a request.
    max_client_batch_size: usize,
    /// Whether long texts are cut.
    auto_truncate: bool,
    /// Threads that compute.
    tokenization_workers: usize,
    /// This server's version.
    version: &'static str,
    /// The commit that it was built of.
    sha: &'static str,
}

/// What the model is for.
#[derive(Serialize, ToSchema)]
struct TeiModelType {
    embedding: TeiPooling,
}

/// How vectors of words become one.
#[derive(Serialize, ToSchema)]
struct TeiPooling {
    /// `mean`.
    pooling: &'static str,
}

/// Describes the server in the format of text-embeddings-inference.
///
/// The model is the one that answers requests without a model's name; the limits are the ones clients read.
#[utoipa::path(
    get,
    path = "/info",
    tag = "tei",
    responses(
        (status = 200, description = "The server", body = TeiInfo),
        TeiNotReady,
    ),
)]
async fn tei_info(State(app): State<Arc<App>>) -> Result<Json<TeiInfo>> {
    let models = app.models();
    let model = models.choose(None)?;
    let settings = &app.settings;
    Ok(Json(TeiInfo {
        model_id: model.name.to_string(),
        model_sha: model.engine.model().fingerprint().to_owned(),
        model_dtype: "float32",
        model_type: TeiModelType { embedding: TeiPooling { pooling: "mean" } },
        max_concurrent_requests: settings.admission_units,
        max_input_length: settings.tokens_per_text,
        max_batch_tokens: settings.tokens_total,
        max_client_batch_size: settings.max_texts,
        auto_truncate: true,
        tokenization_workers: app.compute.threads(),
        version: build::VERSION,
        sha: build::REVISION,
    }))
}
