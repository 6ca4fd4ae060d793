//! The way of every question that computes: admitted, read, parsed, weighed, answered here or on
//! the pool.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use axum::body::Body;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::Response;
use serde::Deserialize;

use crate::engine::Counts;
use crate::http::admission::Permit;
use crate::http::app::App;
use crate::http::asked::Asked;
use crate::http::body;
use crate::http::compute::INLINE_NANOS;
use crate::http::compute::PART_NANOS;
use crate::http::compute::Work;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::json;
use crate::http::models::Shelf;

/// Bytes of a body that count as an item before the items are counted: what a pair of tweets takes.
const BYTES_PER_ITEM: usize = 128;
/// Nanoseconds that reading a byte of text takes: parsing, tokens, look-up. This and the next one
/// are from `cargo bench --bench handover`.
const NANOS_PER_BYTE: u64 = 16;
/// Multiplications a nanosecond, as the methods' costs count them, with the vectors' rows converted
/// on the way.
const MULTIPLICATIONS_PER_NANO: u64 = 32;
/// Multiplications that take as long as writing a number as text: some 30 ns.
pub const WRITING: u64 = 30 * MULTIPLICATIONS_PER_NANO;
/// Bytes of a body up to which it is parsed where it was read. To read the texts of a longer one
/// takes too long there, so it would be parsed again on the pool.
const INLINE_BYTES: usize = (INLINE_NANOS / NANOS_PER_BYTE) as usize;
/// More multiplications a nanosecond than any core does, counted in the same way: what would be late
/// even so is refused.
const MOST_MULTIPLICATIONS_PER_NANO: u64 = 256;

const FINGERPRINT: HeaderName = HeaderName::from_static("x-model-fingerprint");
const TIMING: HeaderName = HeaderName::from_static("server-timing");
/// Room for the headers of an answer, those of its frame included, so that they never move.
const HEADERS: usize = 12;
/// Room for the answer to a small question.
const ANSWER_BYTES: usize = 256;

/// An endpoint, by the questions it answers.
pub trait Endpoint: 'static {
    /// The body, borrowed.
    type Question<'b>: Question<'b>;
}

/// A question that is parsed from a body, weighed and answered.
pub trait Question<'b>: Deserialize<'b> {
    /// Checks lengths, finds the model and the method, and weighs the work.
    fn plan(&self, app: &App, shelf: &Shelf) -> Result<Plan, ApiError>;

    /// The answer as JSON, and what was read for it.
    fn answer(&self, plan: &Plan, app: &App, work: &Work) -> Result<(Vec<u8>, Counts), ApiError>;
}

/// A question that can be answered, and how much work that is.
pub struct Plan {
    /// Model and method.
    pub asked: Asked,
    /// Items of the list that makes it long.
    pub items: usize,
    /// Estimated nanoseconds.
    nanos: u64,
}

impl Plan {
    /// Weighs a question of `items` items with texts of so many bytes, or refuses one that could
    /// not be answered in time by any processor.
    pub fn new(
        asked: Asked,
        items: usize,
        bytes: usize,
        multiplications: u64,
        app: &App,
    ) -> Result<Self, ApiError> {
        let deadline = Duration::from_millis(app.settings.compute_deadline_ms).as_nanos() as u64;
        let threads = app.compute.threads() as u64;
        let most = deadline.saturating_mul(threads).saturating_mul(MOST_MULTIPLICATIONS_PER_NANO);
        if multiplications > most {
            let each = (multiplications / items.max(1) as u64).max(1);
            let method = asked.query.method.name();
            let detail = format!(
                "{method} over {items} items of this length cannot be done in time; the largest \
                 batch that could is about {}",
                most / each
            );
            return Err(ApiError::at(Code::TooMuchWork, "", detail));
        }
        Ok(Self { asked, items, nanos: estimate(bytes, multiplications) })
    }

    /// Items that take about [`PART_NANOS`].
    pub fn per_part(&self) -> usize {
        let each = (self.nanos / self.items.max(1) as u64).max(1);
        usize::try_from(PART_NANOS / each).unwrap_or(usize::MAX).max(1)
    }
}

/// Nanoseconds that texts of so many bytes and so many multiplications take, roughly.
pub fn estimate(bytes: usize, multiplications: u64) -> u64 {
    let reading = (bytes as u64).saturating_mul(NANOS_PER_BYTE);
    reading.saturating_add(multiplications / MULTIPLICATIONS_PER_NANO)
}

/// An answer on its way out.
struct Answered {
    json: Vec<u8>,
    counts: Counts,
    plan: Plan,
    took: Duration,
}

/// Answers one request.
pub async fn answer<E: Endpoint>(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let unread = |error| body::left_unread(error, &request);
    let mut permit = app.admission.admit().map_err(unread)?;
    // A long body is paid for before it is read: parsing it to count its items would already be the
    // work that a full house must not take on.
    let announced = body::announced(request.headers()) / BYTES_PER_ITEM;
    let most = app.settings.max_pairs.max(app.settings.max_candidates).max(app.settings.max_texts);
    app.admission.top_up(&mut permit, announced.min(most)).map_err(unread)?;
    body::check_json(request.headers())?;
    body::no_settings(request.uri())?;
    let body = body::read(request, &app.settings).await?;
    let shelf = app.shelf();
    let deadline = Instant::now() + Duration::from_millis(app.settings.compute_deadline_ms);
    if body.len() <= INLINE_BYTES {
        let started = Instant::now();
        let question: E::Question<'_> = json::read_object(&body)?;
        let plan = question.plan(&app, &shelf)?;
        app.admission.top_up(&mut permit, plan.items)?;
        if plan.nanos <= INLINE_NANOS {
            let (json, counts) = question.answer(&plan, &app, &Work::inline(deadline))?;
            let took = started.elapsed();
            return Ok(respond(&app, Answered { json, counts, plan, took }));
        }
    }
    let job = {
        let app = Arc::clone(&app);
        move |work: &Work| {
            let started = Instant::now();
            let (json, counts, plan) = compute::<E>(&app, &shelf, &body, work, &mut permit)?;
            Ok(Answered { json, counts, plan, took: started.elapsed() })
        }
    };
    match app.compute.run(deadline, &app.metrics, job).await {
        Some(answered) => Ok(respond(&app, answered?)),
        None => Err(app.admission.queue_full()),
    }
}

/// Parsed on the pool: a large body takes longer to parse than the runtime's threads should be
/// held, and a small one with much work less than that work.
fn compute<E: Endpoint>(
    app: &App,
    shelf: &Shelf,
    body: &Bytes,
    work: &Work,
    permit: &mut Permit,
) -> Result<(Vec<u8>, Counts, Plan), ApiError> {
    let question: E::Question<'_> = json::read_object(body)?;
    let plan = question.plan(app, shelf)?;
    app.admission.top_up(permit, plan.items)?;
    let (json, counts) = question.answer(&plan, app, work)?;
    Ok((json, counts, plan))
}

fn respond(app: &App, answered: Answered) -> Response {
    let Answered { json, counts, plan, took } = answered;
    app.metrics.computed(plan.asked.query.method, counts);
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    *headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    mark(headers, &plan.asked, took);
    response
}

/// Refuses a list that is empty or too long.
pub fn check_length(
    pointer: &str,
    what: &str,
    length: usize,
    limit: usize,
) -> Result<(), ApiError> {
    match length {
        0 => Err(ApiError::at(Code::EmptyList, pointer, format!("there are no {what}"))),
        _ if length > limit => {
            Err(ApiError::beyond(Code::TooManyItems, pointer, what, limit, length))
        }
        _ => Ok(()),
    }
}

/// An answer's bytes.
pub fn json(response: &impl serde::Serialize) -> Result<Vec<u8>, ApiError> {
    let mut json = Vec::with_capacity(ANSWER_BYTES);
    // Only maps with keys that are no strings could fail.
    serde_json::to_writer(&mut json, response)
        .map_err(|error| ApiError::internal(&error.to_string()))?;
    Ok(json)
}

/// The headers that every computed answer has.
pub fn mark(headers: &mut HeaderMap, asked: &Asked, took: Duration) {
    headers.insert(FINGERPRINT, asked.served.fingerprint.clone());
    let micros = took.saturating_add(Duration::from_nanos(500)).as_micros();
    let mut text = [0; 64];
    let mut left = &mut text[..];
    let written = write!(left, "compute;dur={}.{:03}", micros / 1000, micros % 1000);
    let length = 64 - left.len();
    // Digits are fit for a header, and no duration has more than there is room for.
    let value = written.ok().and_then(|()| HeaderValue::from_bytes(text.get(..length)?).ok());
    if let Some(value) = value {
        headers.insert(TIMING, value);
    }
}
