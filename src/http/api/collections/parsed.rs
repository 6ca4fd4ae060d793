//! Items out of a body, one after the other: the first that no collection takes is refused before the next
//! is read, and memory beyond what a body of so many items is admitted for is paid for before it is taken.

use cognate_collections::{Incoming, Item};

use crate::http::api::collections::refusal;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::work::admission::Permit;

/// Bytes of memory of items that a unit pays for. Items with many attributes take ten times as much
/// memory as they have bytes.
const BYTES_PER_UNIT: usize = 1024;

/// Reads so many items, which have texts of at most so many bytes. Those without a time were written
/// `now`. `pay` is asked for the units that all of them will take, if they go on like this, as soon as
/// they have taken more than one each.
pub(super) fn parse(
    each: impl Iterator<Item = Result<Incoming, ApiError>>,
    (count, text_bytes): (usize, usize),
    now: i64,
    mut pay: impl FnMut(usize) -> Result<(), ApiError>,
) -> Result<Vec<Item>, ApiError> {
    let (mut items, mut bytes, mut paid) = (Vec::with_capacity(count), 0_usize, count);
    for (at, incoming) in each.enumerate() {
        let item = incoming?.into_item(now);
        let checked = item.check(text_bytes);
        checked.map_err(|problem| refusal::of_item(&problem, &format!("/items/{at}")))?;
        bytes += item.bytes();
        if bytes / BYTES_PER_UNIT > paid {
            paid = bytes.saturating_mul(count) / (at + 1) / BYTES_PER_UNIT + 1;
            pay(paid)?;
        }
        items.push(item);
    }
    Ok(items)
}

/// Pays for the units that items take beside one for each of so many, where these are paid for.
pub(super) fn pay_beside(
    app: &App,
    more: &mut Option<Permit>,
    units: usize,
    items: usize,
) -> Result<(), ApiError> {
    let permit = match more {
        Some(permit) => permit,
        none => none.insert(app.admission.admit()?),
    };
    app.admission.top_up(permit, units.saturating_sub(items))
}
