//! The requests of Weaviate's module `text2vec-model2vec`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::embed::{EmbedRequest, Foreign};
use crate::http::app::App;
use crate::http::build;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::{OnlyObject, Whole};
use crate::http::compatible::vectors::{VectorDialect, VectorQuestion, Vectors};
use crate::http::compatible::{named, vectors, with_names};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::fields::{List, Text, Texts};
use crate::http::routes::Routes;
use crate::http::work::unsent::Answer;

pub(super) fn routes() -> Routes {
    let routes = Routes::default()
        .with(routes!(weaviate_meta))
        .undocumented(&named("/meta"), get(weaviate_meta));
    with_names(routes, routes!(weaviate_vectors), "/vectors", &[])
}

pub(super) fn life(routes: Routes) -> Routes {
    let each = [("/.well-known/live", get(live)), ("/.well-known/ready", get(ready))];
    each.into_iter().fold(routes, |routes, (path, handler)| {
        routes.undocumented(path, handler.clone()).undocumented(&named(path), handler)
    })
}

/// The body of `POST /vectors`: `text`, or `texts` for many. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct WeaviateRequest<'b> {
    /// One text.
    #[schema(value_type = Option<Text<'b>>)]
    text: Option<Text<'b>>,
    /// Many texts.
    #[schema(value_type = Option<Vec<Text<'b>>>, min_items = 1, max_items = 10000)]
    texts: Option<List<Text<'b>>>,
    #[schema(value_type = Option<WeaviateConfig>)]
    config: Option<OnlyObject<WeaviateConfig>>,
}

/// How the vectors are wanted.
#[derive(Debug, Deserialize, ToSchema)]
struct WeaviateConfig {
    /// Number of a vector's first numbers to return; 0: all.
    dimensions: Option<Whole>,
}

/// Vectors as Weaviate reads them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum WeaviateResponse<'r> {
    /// The vector of one text.
    One {
        /// The text.
        text: &'r str,
        /// The vector; its length is not changed to 1.
        vector: &'r [f32],
        /// The number of dimensions.
        dims: usize,
    },
    /// Vectors of many.
    Many {
        /// A vector a text, in order.
        vectors: Vec<&'r [f32]>,
        /// Their dimensions.
        dims: usize,
    },
}

pub(super) struct Weaviate;

impl VectorDialect for Weaviate {
    const DIALECT: Dialect = Dialect::Weaviate;
    const TEXTS: &'static str = "/texts";
    type Body<'b> = WeaviateRequest<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>> {
        let texts = match (body.text, body.texts) {
            (Some(text), None) => Texts::One(text),
            // A client that sends many also sends an empty `text`.
            (_, Some(texts)) => Texts::Many(texts),
            (None, None) => {
                let detail = "the field `text` is missing";
                return Err(ApiError::at(Code::InvalidField, "/text", detail));
            }
        };
        let request = vectors::ask(texts, address.target(None), address.stand_in);
        let dimensions =
            body.config.and_then(|OnlyObject(config)| config.dimensions).map(|Whole(count)| count);
        let foreign = Foreign { dimensions, ..request.foreign };
        Ok(EmbedRequest { normalize: None, foreign, ..request })
    }

    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<()> {
        let dims = vectors.embedded.vectors.ncols();
        answer.write_json(&match vectors.one {
            Some(text) => {
                WeaviateResponse::One { text: text.as_ref(), vector: vectors.first(), dims }
            }
            None => WeaviateResponse::Many { vectors: vectors.each().collect(), dims },
        })
    }
}

refusals!(WeaviateMetaRefusals in Dialect::Weaviate; &[Code::UnknownModel, Code::NotReady]);
refusals!(WeaviateRefusals in Dialect::Weaviate; QUESTION, LIST, &[Code::MethodCannotEmbed]);

question! {
    /// Returns vectors of texts in Weaviate's format.
    ///
    /// One `text`, or many `texts`.
    weaviate_vectors: "weaviate" "/vectors" asks VectorQuestion<'_, Weaviate>;
    WeaviateRequest<'_> => WeaviateResponse<'_>: "The vectors", WeaviateRefusals
}

/// The model, as Weaviate keeps it beside a collection.
#[derive(Serialize, ToSchema)]
struct WeaviateMeta {
    /// The model's name.
    model: String,
    /// The model's fingerprint.
    fingerprint: String,
    /// Dimensions of a vector.
    dimensions: usize,
    /// This server's version.
    version: &'static str,
}

/// Describes the model in Weaviate's format.
///
/// Weaviate reads the answer at its start, and shows it.
#[utoipa::path(
    get,
    path = "/meta",
    tag = "weaviate",
    responses(
        (status = 200, description = "The model", body = WeaviateMeta),
        WeaviateMetaRefusals,
    ),
)]
async fn weaviate_meta(
    State(app): State<Arc<App>>,
    address: Address,
) -> Result<Json<WeaviateMeta>> {
    let models = app.models();
    let loaded = models.choose(address.target(None).model.as_deref())?;
    let model = loaded.engine.model();
    Ok(Json(WeaviateMeta {
        model: loaded.name.to_string(),
        fingerprint: model.fingerprint().to_owned(),
        dimensions: model.dims(),
        version: build::VERSION,
    }))
}

async fn live() -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn ready(State(app): State<Arc<App>>) -> Result<StatusCode> {
    app.check_ready()?;
    Ok(StatusCode::NO_CONTENT)
}
