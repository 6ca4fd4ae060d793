//! What questions to collections refuse of a body, for fuzzing.

use cognate_collections::Limits;

use crate::http::api::collections::call;
use crate::http::api::collections::events::{MergeRequest, SplitRequest};
use crate::http::api::collections::item::{ItemPatchRequest, OneItemRequest};
use crate::http::api::collections::items::{ItemRequest, parse};
use crate::http::api::collections::matching::MatchRequest;
use crate::http::api::collections::one::CollectionRequest;
use crate::http::error::{ApiError, Result};
use crate::http::request::json;

type Reads = fn(&[u8]) -> Result<()>;

pub fn refusals(body: &[u8]) -> Vec<ApiError> {
    let questions: [Reads; 8] = [
        line,
        items,
        |body| json::read_object::<MatchRequest<'_>>(body).map(drop),
        |body| json::read_object::<OneItemRequest>(body).map(drop),
        |body| json::read_object::<ItemPatchRequest>(body).map(drop),
        |body| json::read_object::<CollectionRequest>(body).map(drop),
        |body| json::read_object::<MergeRequest<'_>>(body).map(drop),
        |body| json::read_object::<SplitRequest<'_>>(body).map(drop),
    ];
    questions.iter().filter_map(|question| question(body).err()).collect()
}

/// A line of a stream of items.
fn line(line: &[u8]) -> Result<()> {
    let ItemRequest(item) = json::read(line)?;
    let checked = item.into_item(0).check(Limits::DEFAULT.text_bytes);
    checked.map_err(|problem| call::of_item(&problem, ""))
}

fn items(body: &[u8]) -> Result<()> {
    parse(body, (Limits::DEFAULT.text_bytes, usize::MAX), |_| Ok(())).map(drop)
}
