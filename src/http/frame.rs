//! Around every request: its id, its counters, its line in the log, the headers that every answer
//! has, and the document of a refusal.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::task::ready;
use std::time::Duration;
use std::time::Instant;

use axum::extract::MatchedPath;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::Method as Verb;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use pin_project_lite::pin_project;
use tower::Layer;
use tower::Service;

use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::metrics::UNMATCHED;
use crate::http::trace::Answered;
use crate::http::trace::Parent;
use crate::http::trace::Span;
use crate::http::trace::TraceId;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over from a client.
const ID_BYTES: usize = 64;

/// Frames every request of the routes it is laid around, and catches their panics. One layer for
/// all of it: each layer costs a request several allocations, whatever it does.
#[derive(Clone)]
pub struct Frame(Arc<App>);

impl Frame {
    /// A frame that counts and logs for this service.
    pub fn new(app: Arc<App>) -> Self {
        Self(app)
    }
}

impl Layer<Route> for Frame {
    type Service = Framed;

    fn layer(&self, route: Route) -> Framed {
        Framed { app: Arc::clone(&self.0), route }
    }
}

/// A route in its frame.
#[derive(Clone)]
pub struct Framed {
    app: Arc<App>,
    route: Route,
}

impl Service<Request> for Framed {
    type Response = Response;
    type Error = Infallible;
    type Future = Framing;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, request: Request) -> Framing {
        let begun = Begun::of(&self.app, &request);
        // A route begins its work when it is polled, so no panic gets past the net here.
        let answer = AssertUnwindSafe(self.route.call(request)).catch_unwind();
        Framing { answer, begun: Some(begun) }
    }
}

pin_project! {
    /// The answer to a framed request.
    pub struct Framing {
        #[pin]
        answer: CatchUnwind<AssertUnwindSafe<RouteFuture<Infallible>>>,
        begun: Option<Begun>,
    }
}

impl Future for Framing {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(context));
        let begun = this.begun.take().expect("a future is not polled after its end");
        let response = match answer {
            Ok(Ok(response)) => response,
            Err(payload) => {
                begun.in_flight.0.metrics.panics.increment(1);
                ApiError::panicked(&*payload).into_response()
            }
        };
        Poll::Ready(Ok(begun.finish(response)))
    }
}

/// What is known of a request before it is answered.
struct Begun {
    in_flight: InFlight,
    started: Instant,
    id: HeaderValue,
    verb: Verb,
    matched: Option<MatchedPath>,
    span: Span,
}

impl Begun {
    fn of(app: &Arc<App>, request: &Request) -> Self {
        let started = Instant::now();
        let id = request_id(request.headers().get(REQUEST_ID), &app.ids);
        let verb = request.method().clone();
        let matched = request.extensions().get::<MatchedPath>().cloned();
        let parent = Parent::of(request.headers());
        let span = app.tracer.begin(&verb, matched.as_ref().map(MatchedPath::as_str), parent);
        Self { in_flight: InFlight::begin(app), started, id, verb, matched, span }
    }

    fn finish(self, mut response: Response) -> Response {
        let Self { in_flight, started, id, verb, matched, span } = self;
        let app = in_flight.end();
        let refusal = response.extensions_mut().remove::<ApiError>();
        if let Some(error) = &refusal {
            app.metrics.refused(error);
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
        let status = response.status();
        app.metrics.answered(route, &verb, status, took);
        let line = Line { id: &id, trace: span.trace(), route, verb: &verb, status, took };
        log(&line, refusal.as_ref());
        let code = refusal.map(|error| error.code.name());
        span.end(&Answered { id: id.to_str().unwrap_or_default(), status, code });
        decorate(&mut response, id, is_page(route));
        response
    }
}

/// Counts a request as in flight until it is dropped, also when the client went away.
struct InFlight(Arc<App>);

impl InFlight {
    fn begin(app: &Arc<App>) -> Self {
        app.metrics.in_flight.increment(1.0);
        Self(Arc::clone(app))
    }

    /// Ends it, before anything that need not count.
    fn end(self) -> Arc<App> {
        Arc::clone(&self.0)
    }
}

impl Drop for InFlight {
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
    // Room for the digits of two of the largest numbers.
    let mut digits = [0; 32];
    let mut left = &mut digits[..];
    let written = write!(left, "{:016x}{number:08x}", ids.process);
    let length = 32 - left.len();
    // Hexadecimal digits are fit for a header.
    let id = written.ok().and_then(|()| HeaderValue::from_bytes(digits.get(..length)?).ok());
    id.unwrap_or(HeaderValue::from_static("unknown"))
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
