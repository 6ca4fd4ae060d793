//! The frame of every request: its id, its counters, its line in the log, the headers of every
//! response, and the problem document of an error.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method as Verb, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use futures_util::FutureExt;
use futures_util::future::{CatchUnwind, Either};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::net::Peer;
use crate::http::net::gate::FaultyHead;
use crate::http::observe::hand_over::HandOver;
use crate::http::observe::request_log::{Facts, Ids, Line, Matched, Outcome, RequestRecord};
use crate::http::observe::streams::EndReason;
use crate::http::observe::trace::{Answered, Parent};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is accepted from a client.
const ID_BYTES: usize = 64;

/// Frames every request of the routes that it surrounds, and catches their panics. One layer for
/// all of it: each layer costs a request several allocations, whatever it does.
#[derive(Clone)]
pub struct RequestContextLayer(Arc<App>);

impl RequestContextLayer {
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
        let matched = request.extensions().get::<MatchedPath>().cloned().map(Matched::Route);
        let record = Recorded::new(&self.app, &mut request, matched);
        let answer = match request.extensions_mut().remove::<FaultyHead>() {
            Some(FaultyHead(error)) => Either::Left(ready(Ok(Ok(error.into_response())))),
            // A route begins its work when it is polled, so no panic escapes here.
            None => Either::Right(AssertUnwindSafe(self.route.call(request)).catch_unwind()),
        };
        RequestContextFuture { answer, record: Some(record) }
    }
}

/// The answer to a request that no route sees.
type Refused = Ready<std::thread::Result<Result<Response, Infallible>>>;

pin_project! {
    pub struct RequestContextFuture {
        #[pin]
        answer: Either<Refused, CatchUnwind<AssertUnwindSafe<RouteFuture<Infallible>>>>,
        record: Option<Recorded>,
    }

    impl PinnedDrop for RequestContextFuture {
        fn drop(this: Pin<&mut Self>) {
            // The client has gone.
            if let Some(record) = this.project().record.take() {
                record.leave();
            }
        }
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

pub(super) struct Recorded {
    in_flight: InFlight,
    request: RequestRecord,
}

impl Recorded {
    /// A request that no router sees, for the route of this path.
    pub fn at<B>(app: &Arc<App>, request: &mut axum::http::Request<B>, path: Arc<str>) -> Self {
        Self::new(app, request, Some(Matched::Path(path)))
    }

    fn new<B>(
        app: &Arc<App>,
        request: &mut axum::http::Request<B>,
        matched: Option<Matched>,
    ) -> Self {
        let began = Instant::now();
        let id = request_id(request.headers().get(REQUEST_ID), &app.ids);
        let verb = request.method().clone();
        let parent = Parent::from_headers(request.headers());
        let span = app.tracer.begin(&verb, matched.as_ref().map(Matched::as_str), parent);
        let peer = request.extensions().get::<Peer>().map(|Peer(address)| *address);
        let facts = Arc::<Facts>::default();
        let is_of_collection =
            matched.as_ref().is_some_and(|route| route.as_str().starts_with("/collections/{name}"));
        if is_of_collection && let Some(name) = request.uri().path().split('/').nth(2) {
            facts.names(name);
        }
        request.extensions_mut().insert(Arc::clone(&facts));
        let request = RequestRecord { id, peer, matched, verb, facts, began, span };
        Self { in_flight: InFlight::begin(app), request }
    }

    fn tell(&self, outcome: &Outcome<'_>, ended: Instant) {
        let line = Line { request: &self.request, ended, stream: None };
        self.in_flight.0.request_log.tell(&line, outcome);
    }

    fn leave(self) {
        self.tell(&Outcome::Left, Instant::now());
    }

    /// Ends a request: counts and logs it, and adds the headers that every answer has.
    pub fn finish(self, mut response: Response) -> Response {
        let (app, request) = (&self.in_flight.0, &self.request);
        let refusal = response.extensions_mut().remove::<ApiError>();
        if let Some(error) = &refusal {
            app.metrics.refused(error);
            if error.code == Code::RequestTimeout {
                app.early_ends.count(EndReason::BodyTimeout);
            }
            let dialect = app.dialect_of(request.route());
            let written = error.respond(request.id(), dialect);
            let inner = std::mem::replace(&mut response, written);
            // Headers that were added to the error, such as `allow`, stay.
            for (name, value) in inner.headers() {
                if name != header::CONTENT_LENGTH && !response.headers().contains_key(name) {
                    response.headers_mut().append(name, value.clone());
                }
            }
        }
        if request.verb == Verb::OPTIONS && response.status() == StatusCode::OK {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        let (status, ended) = (response.status(), Instant::now());
        let took = ended.duration_since(request.began);
        if let Some(caller) = request.facts.caller() {
            // By its code, whatever status the dialect sends.
            caller.count(refusal.as_ref().map_or(status, |error| error.code.status()));
        }
        let page = is_page(request.route());
        let id = request.id.clone();
        if let Some(stream) = response.extensions_mut().remove::<HandOver>() {
            stream.give((self.request, status));
        } else {
            let took = (took, request.facts.has_ranked_collection());
            app.metrics.answered(request.route(), &request.verb, status, took);
            let refused = |error| Outcome::Refused(status, error);
            self.tell(&refusal.as_ref().map_or(Outcome::Answered(status), refused), ended);
            let code = refusal.map(|error| error.code.name());
            let id = id.to_str().unwrap_or_default();
            self.request.span.end(&Answered { id, status, code, stream: None });
        }
        decorate(&mut response, id, page);
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
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.metrics.in_flight.decrement(1.0);
    }
}

fn is_page(path: &str) -> bool {
    path == "/"
        || ["/docs", "/assets", "/guides", "/problems"].iter().any(|of| path.starts_with(of))
}

fn decorate(response: &mut Response, id: HeaderValue, page: bool) {
    let policy = if page {
        // No other page may show these in a frame, where it could misdirect the reader's clicks.
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    } else {
        "default-src 'none'"
    };
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
}

/// The client's id if it is valid in a log, else a new one.
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
