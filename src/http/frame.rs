//! Around every request: its id, its counters, its line in the log, the headers that every answer
//! has, and the document of a refusal.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use axum::extract::MatchedPath;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::Method as Verb;
use axum::http::StatusCode;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;

use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::metrics::UNMATCHED;
use crate::http::trace::Answered;
use crate::http::trace::Parent;
use crate::http::trace::TraceId;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over from a client.
const ID_BYTES: usize = 64;

/// Frames one request.
pub async fn frame(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers().get(REQUEST_ID), &app.ids);
    let verb = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let page = matched.as_ref().is_some_and(|path| is_page(path.as_str()));
    let parent = Parent::of(request.headers());
    let span = app.tracer.begin(&verb, matched.as_ref().map(MatchedPath::as_str), parent);
    let in_flight = InFlight::begin(&app);
    let mut response = next.run(request).await;
    drop(in_flight);
    let refusal = response.extensions_mut().remove::<ApiError>();
    if let Some(error) = &refusal {
        app.metrics.refused(error.code);
        let written = error.respond(id.to_str().unwrap_or_default());
        let inner = std::mem::replace(&mut response, written);
        // Headers that the refusal met on its way out, such as `allow`, stay.
        for (name, value) in inner.headers() {
            if name != header::CONTENT_LENGTH && !response.headers().contains_key(name) {
                response.headers_mut().append(name, value.clone());
            }
        }
    }
    if verb == Verb::OPTIONS && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let took = started.elapsed();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    app.metrics.answered(route, &verb, response.status(), took);
    let status = response.status();
    let line = Line { id: &id, trace: span.trace(), route, verb: &verb, status, took };
    log(&line, refusal.as_ref());
    let code = refusal.map(|error| error.code.name());
    span.end(&Answered { id: id.to_str().unwrap_or_default(), status, code });
    decorate(&mut response, id, page);
    response
}

/// Counts a request as in flight until it is dropped, also when the client went away.
struct InFlight<'a>(&'a App);

impl<'a> InFlight<'a> {
    fn begin(app: &'a App) -> Self {
        app.metrics.in_flight.increment(1.0);
        Self(app)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.metrics.in_flight.decrement(1.0);
    }
}

fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/docs") || path.starts_with("/assets")
}

/// The headers that every answer has.
fn decorate(response: &mut Response, id: HeaderValue, page: bool) {
    let policy = if page {
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    } else {
        "default-src 'none'"
    };
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
}

/// A source of ids: unlike those of other processes by what it was started with, unlike each other
/// by their number.
pub struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Ids {
    /// A source of its own.
    pub fn new() -> Self {
        let mut seed = [0; 8];
        // Without randomness ids repeat between processes, which the log survives.
        let _ = getrandom::fill(&mut seed);
        Self { process: u64::from_le_bytes(seed), next: AtomicU64::new(0) }
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}

/// The client's id if it is fit for a log, else one of ours.
fn request_id(offered: Option<&HeaderValue>, ids: &Ids) -> HeaderValue {
    let fit = |value: &&HeaderValue| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        (1..=ID_BYTES).contains(&value.len()) && value.as_bytes().iter().all(plain)
    };
    if let Some(id) = offered.filter(fit) {
        return id.clone();
    }
    let number = ids.next.fetch_add(1, Ordering::Relaxed);
    let id = format!("{:016x}{number:08x}", ids.process);
    // Hexadecimal digits are fit for a header.
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("unknown"))
}

/// What the log says of a request. Neither texts nor headers nor paths that match no route.
struct Line<'a> {
    id: &'a HeaderValue,
    trace: Option<TraceId>,
    route: &'a str,
    verb: &'a Verb,
    status: StatusCode,
    took: Duration,
}

macro_rules! line {
    ($level:ident, $line:expr, $code:expr, $detail:expr, $message:literal) => {
        tracing::$level!(
            request_id = $line.id.to_str().unwrap_or_default(),
            trace_id = $line.trace.map(tracing::field::display),
            route = $line.route,
            method = %$line.verb,
            status = $line.status.as_u16(),
            took_ms = $line.took.as_secs_f64() * 1e3,
            code = $code,
            detail = $detail,
            $message
        )
    };
}

/// Answers are worth a line only to who looks for them; refusals tell operators which limit to
/// raise, but not thousands of times a second while the server is overloaded.
fn log(line: &Line<'_>, refusal: Option<&ApiError>) {
    let Some(error) = refusal else {
        line!(debug, line, "", "", "answered");
        return;
    };
    let (code, detail) = (error.code.name(), error.cause.as_deref().unwrap_or(&error.detail));
    let detail: Cow<'_, str> = detail.into();
    match error.code {
        Code::Internal | Code::NonFiniteScore => line!(error, line, code, &*detail, "failed"),
        Code::DeadlineExceeded => line!(warn, line, code, &*detail, "refused"),
        Code::Overloaded | Code::RateLimited | Code::NotReady | Code::Draining => {
            line!(debug, line, code, &*detail, "refused");
        }
        _ => line!(info, line, code, &*detail, "refused"),
    }
}
