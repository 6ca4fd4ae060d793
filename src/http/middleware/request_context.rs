//! Around every request: its id, its counters, its line in the log, the headers that every response
//! has, and the problem document of a refusal.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::Ready;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
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
use futures_util::future::Either;
use pin_project_lite::pin_project;
use tower::Layer;
use tower::Service;

use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::net::head::FaultyHead;
use crate::http::observe::metrics::UNMATCHED;
use crate::http::observe::request_id::Ids;
use crate::http::observe::streams::Naming;
use crate::http::observe::streams::RequestName;
use crate::http::observe::trace::Answered;
use crate::http::observe::trace::Parent;
use crate::http::observe::trace::Span;
use crate::http::observe::trace::TraceId;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over from a client.
const ID_BYTES: usize = 64;

/// Frames every request of the routes it is laid around, and catches their panics. One layer for
/// all of it: each layer costs a request several allocations, whatever it does.
#[derive(Clone)]
pub struct RequestContextLayer(Arc<App>);

impl RequestContextLayer {
    /// A layer that counts and logs for this service.
    pub fn new(app: Arc<App>) -> Self {
        Self(app)
    }
}

impl Layer<Route> for RequestContextLayer {
    type Service = RequestContextService;

    fn layer(&self, route: Route) -> RequestContextService {
        RequestContextService { app: Arc::clone(&self.0), route }
    }
}

/// A route in its frame.
#[derive(Clone)]
pub struct RequestContextService {
    app: Arc<App>,
    route: Route,
}

impl Service<Request> for RequestContextService {
    type Response = Response;
    type Error = Infallible;
    type Future = RequestContextFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, mut request: Request) -> RequestContextFuture {
        let record = RequestRecord::of(&self.app, &request);
        let answer = match request.extensions_mut().remove::<FaultyHead>() {
            Some(FaultyHead(error)) => Either::Left(ready(Ok(Ok(error.into_response())))),
            // A route begins its work when it is polled, so no panic gets past the net here.
            None => Either::Right(AssertUnwindSafe(self.route.call(request)).catch_unwind()),
        };
        RequestContextFuture { answer, record: Some(record) }
    }
}

/// The answer to a request that no route sees.
type Refused = Ready<std::thread::Result<Result<Response, Infallible>>>;

pin_project! {
    /// The answer to a framed request.
    pub struct RequestContextFuture {
        #[pin]
        answer: Either<Refused, CatchUnwind<AssertUnwindSafe<RouteFuture<Infallible>>>>,
        record: Option<RequestRecord>,
    }
}

impl Future for RequestContextFuture {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = std::task::ready!(this.answer.poll(context));
        let record = this.record.take().expect("a future is not polled after its end");
        let response = match answer {
            Ok(Ok(response)) => response,
            Err(payload) => {
                record.in_flight.0.metrics.panics.increment(1);
                ApiError::panicked(&*payload).into_response()
            }
        };
        Poll::Ready(Ok(record.finish(response)))
    }
}

/// What is known of a request before it is answered.
struct RequestRecord {
    in_flight: InFlight,
    started: Instant,
    id: HeaderValue,
    verb: Verb,
    matched: Option<MatchedPath>,
    span: Span,
}

impl RequestRecord {
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
        match response.extensions_mut().remove::<Naming>() {
            None => app.metrics.answered(route, &verb, status, took),
            Some(naming) => {
                app.metrics.begun(route, took);
                naming.tell(RequestName {
                    id: id.clone(),
                    route: route.into(),
                    verb: verb.clone(),
                });
            }
        }
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

/// The client's id if it is fit for a log, else one of ours.
fn request_id(offered: Option<&HeaderValue>, ids: &Ids) -> HeaderValue {
    let fit = |value: &&HeaderValue| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        (1..=ID_BYTES).contains(&value.len()) && value.as_bytes().iter().all(plain)
    };
    if let Some(id) = offered.filter(fit) {
        return id.clone();
    }
    ids.next()
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
