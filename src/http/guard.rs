//! Who may ask: keys and their quotas, looked at before a byte of the body is read.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;

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

/// Lets a request through that may ask.
pub async fn authorise(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if let Some(access) = app.access().as_ref() {
        let scope = access
            .admit(request.headers().get(header::AUTHORIZATION))
            .map_err(|error| body::left_unread(error, &request))?;
        request.extensions_mut().insert(Caller(scope));
    }
    Ok(next.run(request).await)
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
