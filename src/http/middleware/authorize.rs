//! Authorisation: keys and their quotas, checked before a byte of the body is read.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use tower::{Layer, Service};

use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::auth::client::Client;
use crate::http::auth::keys::Scope;
use crate::http::error::{ApiError, Code, Result};
use crate::http::middleware::{hosts, unpack};
use crate::http::net::Peer;
use crate::http::observe::request_log::Facts;

/// Passes a request on to the inner routes if its caller may send it.
#[derive(Clone)]
pub struct AuthorizeLayer(Arc<App>);

impl AuthorizeLayer {
    pub fn new(app: Arc<App>) -> Self {
        Self(app)
    }
}

impl Layer<Route> for AuthorizeLayer {
    type Service = AuthorizeService;

    fn layer(&self, route: Route) -> AuthorizeService {
        AuthorizeService { app: Arc::clone(&self.0), route }
    }
}

#[derive(Clone)]
pub struct AuthorizeService {
    app: Arc<App>,
    route: Route,
}

impl Service<Request> for AuthorizeService {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match authorise(&self.app, &mut request) {
            Ok(()) => Either::Right(self.route.call(unpack::unpacked(&self.app, request))),
            Err(error) => Either::Left(ready(Ok(error.into_response()))),
        }
    }
}

/// Checks the key and the quota of a request, and adds its caller.
pub(super) fn authorise<B>(app: &App, request: &mut Request<B>) -> Result<()> {
    let facts = Facts::from_request(request);
    match app.access().as_ref() {
        Some(access) => {
            let caller = access.admit(request.headers().get(header::AUTHORIZATION), &facts)?;
            request.extensions_mut().insert(caller);
        }
        None => {
            facts.is_from(&app.metrics.nobody());
            let is_led_here = hosts::is_led_here(request, &app.settings);
            let caller = Caller::without_key(client_at(app, request), is_led_here);
            request.extensions_mut().insert(caller);
        }
    }
    Ok(())
}

/// The client that a request would count for.
pub(super) fn client<B>(app: &App, request: &Request<B>) -> Client {
    match app.access().as_ref() {
        Some(access) => access.client(request.headers().get(header::AUTHORIZATION)),
        None => client_at(app, request),
    }
}

/// Returns the client of a request by its address, if no keys are configured.
fn client_at<B>(app: &App, request: &Request<B>) -> Client {
    let peer = request.extensions().get::<Peer>();
    peer.map(|Peer(address)| app.peers.client(address.ip())).unwrap_or_default()
}

/// Refuses a caller that may not write to collections: if keys are set, one without a key of the
/// scope `collection`.
pub(crate) fn check_writer(caller: &Caller) -> Result<()> {
    if caller.scope().is_none_or(|scope| scope.includes(Scope::Collection)) {
        return Ok(());
    }
    let detail = "writing to a collection needs a key of the scope `collection` or `admin`";
    Err(ApiError::new(Code::Forbidden, detail))
}

/// Refuses a caller that may not administer the service: one without a key of the scope `admin`,
/// or, if no keys are set, one that is not a program of this machine.
pub(crate) fn check_admin(request: &Request) -> Result<()> {
    let extensions = request.extensions();
    let allowed = match Caller::from_extensions(extensions)?.scope() {
        Some(scope) => scope.includes(Scope::Admin),
        None => {
            let near = |Peer(address): &Peer| address.ip().to_canonical().is_loopback();
            extensions.get::<Peer>().is_some_and(near) && hosts::is_local(request)
        }
    };
    if allowed {
        return Ok(());
    }
    let detail = "this needs a key of the scope `admin`; without keys, a program of this machine \
                  that calls a loopback name, without a proxy between";
    Err(ApiError::new(Code::Forbidden, detail))
}
