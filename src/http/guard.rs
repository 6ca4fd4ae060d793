//! Who may ask: keys and their quotas, looked at before a byte of the body is read.

use std::convert::Infallible;
use std::future::Ready;
use std::future::ready;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use axum::extract::Request;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use tower::Layer;
use tower::Service;

use crate::http::app::App;
use crate::http::body;
use crate::http::connection::Peer;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::keys::Keys;
use crate::http::keys::KeysError;
use crate::http::keys::Scope;
use crate::http::quota::Quota;
use crate::http::settings::Settings;

/// The keys that are let in, and what each may still ask.
pub struct Access {
    keys: Keys,
    quota: Quota,
}

impl Access {
    /// Reads the key file, if the settings name one.
    pub fn open(settings: &Settings) -> Result<Option<Self>, KeysError> {
        let Some(path) = &settings.keys_file else { return Ok(None) };
        let keys = Keys::read(path)?;
        let quota = Quota::new(keys.all().len(), settings.rate_limit_per_key);
        Ok(Some(Self { keys, quota }))
    }

    /// What the caller may do, if it is let in.
    fn admit(&self, authorization: Option<&HeaderValue>) -> Result<Scope, ApiError> {
        let presented = authorization.map(HeaderValue::as_bytes);
        let key = self.keys.check(presented).map_err(|_| {
            let challenge = HeaderValue::from_static("Bearer realm=\"cognate\"");
            // Whether a key is missing or wrong is not told.
            ApiError::new(Code::Unauthorized, "a valid key is needed: Authorization: Bearer KEY")
                .with_header(header::WWW_AUTHENTICATE, challenge)
        })?;
        self.quota.check(key.index).map_err(|wait| {
            let seconds = u32::try_from(wait.seconds).unwrap_or(u32::MAX);
            let limit = self.quota.per_second().unwrap_or(0);
            let left = format!("\"key\";q={limit};w=1, \"key\";r=0;t={seconds}");
            // Digits and quotes are fit for a header.
            let left = HeaderValue::from_str(&left).unwrap_or(HeaderValue::from_static("r=0"));
            let refusal =
                ApiError::new(Code::RateLimited, "the quota of this key is used up for now");
            ApiError { retry_after_s: Some(seconds), ..refusal }
                .with_header(HeaderName::from_static("ratelimit"), left)
        })?;
        Ok(key.scope)
    }
}

/// Lets requests through to the routes it is laid around, if they may ask.
#[derive(Clone)]
pub struct Guard(Arc<App>);

impl Guard {
    /// A guard that knows this service's keys.
    pub fn new(app: Arc<App>) -> Self {
        Self(app)
    }
}

impl Layer<Route> for Guard {
    type Service = Guarded;

    fn layer(&self, route: Route) -> Guarded {
        Guarded { app: Arc::clone(&self.0), route }
    }
}

/// A route behind its guard.
#[derive(Clone)]
pub struct Guarded {
    app: Arc<App>,
    route: Route,
}

impl Service<Request> for Guarded {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.route, context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match authorise(&self.app, &mut request) {
            Ok(()) => Either::Right(self.route.call(request)),
            Err(error) => Either::Left(ready(Ok(error.into_response()))),
        }
    }
}

/// Looks whether a request may ask, and notes what else its caller may do.
fn authorise(app: &App, request: &mut Request) -> Result<(), ApiError> {
    if let Some(access) = app.access().as_ref() {
        let scope = access
            .admit(request.headers().get(header::AUTHORIZATION))
            .map_err(|error| body::left_unread(error, request))?;
        request.extensions_mut().insert(Caller(scope));
    }
    Ok(())
}

/// What an authorised caller may do.
#[derive(Debug, Clone, Copy)]
struct Caller(Scope);

/// Refuses a caller that may not steer the service: one without a key of the scope `admin`, or,
/// where no keys are set, one from another machine.
pub fn check_admin(request: &Request) -> Result<(), ApiError> {
    let extensions = request.extensions();
    let allowed = match extensions.get::<Caller>() {
        Some(Caller(scope)) => scope.includes(Scope::Admin),
        None => extensions.get::<Peer>().is_some_and(|Peer(address)| address.ip().is_loopback()),
    };
    if allowed {
        return Ok(());
    }
    let detail =
        "this needs a key of the scope `admin`, or, without keys, a call from this machine";
    Err(ApiError::new(Code::Forbidden, detail))
}
