//! `POST /rank`: candidates by how alike they are to a query.

mod boosts;
mod fused;
mod held;
mod item_ranking;
mod ranked;
mod request;
mod response;
mod run;
pub(crate) mod similar;
mod texts;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
pub(crate) use boosts::{ItemBoostFields, item_boosts};
pub(crate) use item_ranking::DuplicateItem;
use item_ranking::ItemRanking;
use ranked::Ranked;
pub use request::RankRequest;
pub(crate) use request::{NEGATIVE_BOOST, UNUSED_SCORES};
use response::EitherRanking;
pub(crate) use response::{RankResponse, RankedCandidate};
pub(crate) use texts::{PlannedTexts, TextForm, TextRanking};

use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::body;

refusals!(
    RankRefusals: QUESTION, LIST,
    &[Code::MeasureNotSupported, Code::MethodOnlyRanks, Code::NotCalibrated, Code::UnknownCollection],
    &[Code::UnknownItem, Code::Forbidden, Code::DatabaseUnavailable]
);

/// Ranks candidates by similarity to a query, best first.
///
/// In the place of `query` may stand `queries`, and the answer has `rankings` in the place of `results`;
/// or `like` with `unlike`. `exclude`, `collapse` and `diversify` say what is left out of the results,
/// `boost` what their scores are changed by, `offset` and `top_k` which page of them is told.
///
/// In the place of `candidates` may stand `collection`: its items are ranked, all of them or those that
/// `filter`, `event` and `within` leave, and named in the answer by their ids. Liked and disliked texts
/// may then be items, too, as `{"id"}`. With `shortlist` only the items nearest to each text by their vectors are
/// scored.
///
/// A body of `application/x-ndjson` ranks any number of candidates in constant memory: the first line is
/// the question without candidates, then one candidate a line (a string or `{"id"?,"text"}`). The
/// answer has one `{"index","id"?,"score","text"?}` a line, best first, at most `top_k` (without it the
/// server's `max_candidates`), and then a line with model, method and counts. Methods that score a
/// candidate by all others, such as `rm3`, are refused.
#[utoipa::path(
    post,
    path = "/rank",
    tag = "compare",
    request_body(content(
        (RankRequest<'_> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Candidates, best first", content(
            (EitherRanking<'_> = "application/json"),
            (String = "application/x-ndjson"),
        )),
        RankRefusals,
    ),
)]
pub async fn rank(State(app): State<Arc<App>>, request: Request) -> Result<Response> {
    if body::is_lines(request.headers()) {
        return stream::rank::answer(app, request).await;
    }
    let caller = Caller::from_extensions(request.extensions())?;
    pipeline::answer::<Ranked<'_>>(app, caller, request).await
}
