//! `GET /collections/{name}/items/{id}/similar`: the items most similar to an item, as `/rank` ranks
//! them if that is the only liked item. A cache can revalidate the answer.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::api::collections::call;
use crate::http::api::collections::call::Named;
use crate::http::api::pipeline;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::AnyAsk;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::item_ranking::ItemRanking;
use crate::http::api::rank::ranked::Ranked;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer, Result, Segment};
use crate::http::openapi::refusals::{COLLECTION, refusals};
use crate::http::request::fields::{
    CandidateId, Count, LikedText, List, ModelName, PairMethod, RankMethod, Text,
};
use crate::http::request::json;
use crate::http::request::threshold::Threshold;

const MAX: usize = 100_000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimilarParameters {
    /// Maximum number of items; default: ten.
    #[param(minimum = 1, maximum = 100000)]
    top_k: Option<usize>,
    /// The least score wanted: a number or `calibrated`.
    #[param(value_type = Option<Threshold>)]
    min_score: Option<String>,
    /// Also return for each item whether it is related: its score is at or above this, a number or
    /// `calibrated`.
    #[param(value_type = Option<Threshold>)]
    threshold: Option<String>,
    /// The method; default: the model's choice.
    #[param(value_type = Option<PairMethod<'_>>)]
    method: Option<String>,
    /// The model.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// Whether the answer has the items' texts, times and attributes.
    return_text: Option<bool>,
}

pub(crate) struct Address {
    caller: Caller,
    collection: Box<str>,
    id: Box<str>,
    asked: SimilarParameters,
    least: [Option<Threshold>; 2],
}

struct Similar;

impl Endpoint for Similar {
    type Address = Address;

    fn check_head(_: &Request) -> Result<()> {
        Ok(())
    }

    fn read<'b>(_: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        let Address { caller, collection, id, asked, least: [min_score, threshold] } = address;
        let owned = |name: &String| Cow::Owned(name.clone());
        let id = Some(CandidateId::Text(id.to_string().into()));
        let item = LikedText { id, ..LikedText::new(Text(Cow::Borrowed(""))) };
        let request = RankRequest {
            collection: Some(collection.to_string().into()),
            like: Some(List { length: 1, items: vec![item] }),
            top_k: asked.top_k.map(Count),
            min_score: *min_score,
            threshold: *threshold,
            method: asked.method.as_ref().map(|name| RankMethod(owned(name))),
            model: asked.model.as_ref().map(|name| ModelName(owned(name))),
            return_text: asked.return_text,
            ..RankRequest::default()
        };
        Ok(Box::new(Ranked::new(request, caller.clone())))
    }
}

refusals!(
    SimilarRefusals: COLLECTION,
    &[Code::InvalidField, Code::OutOfRange, Code::UnknownModel, Code::UnknownMethod, Code::MethodOnlyRanks],
    &[Code::MethodUnavailable, Code::NotCalibrated, Code::AllOov, Code::TooMuchWork, Code::ResponseTooLarge],
    &[Code::TooManyTokens, Code::TextTooLong]
);

/// Lists the items most similar to an item.
///
/// What `POST /rank` answers for this item as the only one under `like`, bit for bit. The answer has an `ETag`:
/// where `If-None-Match` names it, 304 comes without a body.
#[utoipa::path(
    get,
    path = "/collections/{name}/items/{id}/similar",
    tag = "collections",
    operation_id = "similar_items",
    params(
        ("name" = String, Path, description = "The collection"),
        ("id" = String, Path, description = "The item"),
        SimilarParameters,
    ),
    responses((status = 200, description = "Items, best first", body = ItemRanking<'_>), SimilarRefusals),
)]
pub(crate) async fn similar(
    State(app): State<Arc<App>>,
    Named { call, collection, id }: Named,
    request: Request,
) -> Result<Response> {
    let asked: SimilarParameters = json::read_query(request.uri())?;
    if asked.top_k.is_some_and(|most| !(1..=MAX).contains(&most)) {
        let detail = format!("expected a whole number from 1 to {MAX}");
        return Err(ApiError::at(Code::OutOfRange, "/top_k", detail));
    }
    let least = |written: &Option<String>, pointer| {
        written.as_deref().map(|written| Threshold::parse(written, pointer)).transpose()
    };
    let least = [least(&asked.min_score, "/min_score")?, least(&asked.threshold, "/threshold")?];
    let collection = collection.name().into();
    let address = Address { caller: call.caller.clone(), collection, id, asked, least };
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let answered = pipeline::answer::<Similar>(app, address, request).await;
    tagged(answered.map_err(of_path)?, known.as_ref()).await
}

/// Turns an error of a ranking body into an error that names the path or a query parameter.
fn of_path(error: ApiError) -> ApiError {
    match error.code {
        Code::UnknownItem => call::no_item(),
        Code::UnknownCollection => call::no_collection(),
        _ => error.renamed(|pointer| match pointer.segments() {
            [Segment::Field("like")] => "/method".into(),
            [Segment::Field("like" | "collection"), ..] => Pointer::from(""),
            _ => pointer,
        }),
    }
}

/// The answer with the tag of its bytes, or without the bytes if the client has that tag.
async fn tagged(response: Response, known: Option<&HeaderValue>) -> Result<Response> {
    let (mut head, body) = response.into_parts();
    let failed = |error: &dyn ToString| ApiError::internal(&error.to_string());
    let bytes = to_bytes(body, usize::MAX).await.map_err(|error| failed(&error))?;
    let tag = format!("\"{}\"", blake3::hash(&bytes).to_hex());
    let is_known = known.and_then(|known| known.to_str().ok()).is_some_and(|known| {
        let mut tags = known.split(',').map(|one| one.trim().trim_start_matches("W/"));
        tags.any(|one| one == tag || one == "*")
    });
    let tag = HeaderValue::from_str(&tag).map_err(|error| failed(&error))?;
    head.headers.insert(header::ETAG, tag);
    // A client's private cache may store it, and must revalidate it.
    let private = HeaderValue::from_static("private, no-cache");
    head.headers.insert(header::CACHE_CONTROL, private);
    if is_known {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_TYPE);
        return Ok(Response::from_parts(head, Body::empty()));
    }
    Ok(Response::from_parts(head, Body::from(bytes)))
}
