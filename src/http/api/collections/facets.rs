//! `GET /collections/{name}/facets`: how many items have each value of some attributes.

use axum::http::Uri;
use axum::response::Response;
use cognate_collections::{
    Attribute, Cancellation, ChooseError, CollectionError, Facet, MAX_COUNTED_VALUES, UnknownNames,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::api::collections::call;
use crate::http::api::collections::call::{Named, selector};
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{COLLECTION, refusals};
use crate::http::request::json;

const MAX_NAMES: usize = 8;
const MAX_VALUES: usize = 1000;
const VALUES: usize = 10;
/// Bytes that an answer adds around each value.
const ENTRY_BYTES: usize = 32;
/// Bytes that a value takes while it is counted and sorted.
const VALUE_BYTES: usize = 160;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FacetsParameters {
    /// The attributes, at most 8, with commas between them: `lang,year`.
    names: String,
    /// A filter as `/rank` has it, as JSON: `{"lang": "en"}`.
    filter: Option<String>,
    /// Only items of the event of this name.
    event: Option<String>,
    /// Only items whose time is no further back than this, as `24h`, by the collection's clock.
    within: Option<String>,
    /// Most values of each attribute, at most 1000; default: 10.
    #[param(maximum = 1000)]
    limit: Option<usize>,
}

/// Items by the values of attributes.
#[derive(Debug, Serialize, ToSchema)]
struct FacetList<'f> {
    /// How many items the filter admits.
    total: usize,
    /// One for each attribute that was asked for, in order.
    facets: Vec<FacetEntry<'f>>,
    /// Attributes that were asked for and no item of the collection has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    names_unknown: Vec<&'f str>,
    /// Attributes that the filter asks for and no item of the collection has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    filter_unknown: Vec<Box<str>>,
    /// Attributes for which the filter asks for a kind of value that no item has.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    filter_mistyped: Vec<Box<str>>,
}

/// Items by the values of an attribute.
#[derive(Debug, Serialize, ToSchema)]
struct FacetEntry<'f> {
    /// The attribute.
    name: &'f str,
    /// How many of the items have it.
    items: usize,
    /// How many different values it has among them.
    distinct: usize,
    /// The most frequent values of the attribute; of equally frequent values the lower one first.
    values: Vec<FacetValue<'f>>,
}

/// A value of an attribute.
#[derive(Debug, Serialize, ToSchema)]
struct FacetValue<'f> {
    /// The value: a string, a number or a boolean.
    #[schema(value_type = serde_json::Value)]
    value: &'f Attribute,
    /// How many items have it.
    items: usize,
}

impl<'f> FacetEntry<'f> {
    fn new((&name, Facet { items, distinct, values }): (&&'f str, &'f Facet)) -> Self {
        let value = |(value, items): &'f (Attribute, usize)| FacetValue { value, items: *items };
        let values = values.iter().map(value).collect();
        Self { name, items: *items, distinct: *distinct, values }
    }
}

refusals!(
    FacetRefusals:
    &[Code::InvalidField, Code::OutOfRange, Code::ResponseTooLarge, Code::TooMuchWork], COLLECTION
);

/// Counts the items that have each value of some attributes, the most frequent first.
///
/// Of the items that a filter, an event or a span of time selects; all of them without one.
#[utoipa::path(
    get,
    path = "/collections/{name}/facets",
    tag = "collections",
    operation_id = "facets",
    params(("name" = String, Path, description = "The collection"), FacetsParameters),
    responses((status = 200, description = "Items by their values", body = FacetList<'_>), FacetRefusals),
)]
pub(crate) async fn facets(Named { call, collection, .. }: Named, uri: Uri) -> Result<Response> {
    let asked: FacetsParameters = json::read_query(&uri)?;
    let limit = call::page_length(asked.limit, VALUES, MAX_VALUES, "values")?;
    if asked.names.split(',').count() > MAX_NAMES {
        let detail = format!("at most {MAX_NAMES} attributes are counted at once");
        return Err(ApiError::at(Code::OutOfRange, "/names", detail));
    }
    let which = selector(asked.filter, asked.event, asked.within)?;
    let now = cognate_collections::now();
    call.compute(move |call, work| {
        let names: Vec<&str> = asked.names.split(',').collect();
        call::check_filter(&call.app, &which.filter, &*collection)?;
        // A database counts by itself.
        let counted = match call.app.collections.is_remote() {
            true => limit,
            false => collection.told(now)?.items,
        };
        let counted = counted.saturating_mul(names.len()).min(MAX_COUNTED_VALUES);
        let _memory = call.app.unsent.of(&call.caller.client).work(counted * VALUE_BYTES)?;
        let cancel = Cancellation::when(work);
        let facets = collection.facets(&which, (&names, limit), now, cancel);
        let facets = facets.map_err(|error| match error {
            ChooseError::Collection(CollectionError::TooManyChosen { limit }) => {
                let detail = format!(
                    "the attributes have more than {limit} different values, and no more are counted; \
                     filter the items, or ask for other attributes"
                );
                ApiError::at(Code::TooMuchWork, "/names", detail)
            }
            other => other.into(),
        })?;
        let unknown = UnknownNames::find(&*collection, &which.filter, (None, None), now, cancel)?;
        let lacking = names.iter().map(|name| (*name, None)).collect();
        let lacking = collection.lacking(&lacking, now, cancel)?;
        let entries = names.iter().zip(&facets.each).map(FacetEntry::new);
        let list = FacetList {
            total: facets.total,
            facets: entries.collect(),
            names_unknown: lacking.into_iter().map(|(name, _)| name).collect(),
            filter_unknown: unknown.filter,
            filter_mistyped: unknown.mistyped,
        };
        let values = list.facets.iter().flat_map(|facet| &facet.values);
        let bytes = values.map(|one| ENTRY_BYTES + one.value.to_string().len()).sum();
        call.answer(bytes, &list)
    })
    .await
}
