//! A request's body: refused by its head if possible, read within its limit and its time.

use std::time::Duration;
use std::{fmt, io};

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::http::error::{ApiError, Code, Result};
use crate::http::settings::Settings;

/// Most bytes that are allocated before they arrive: a client that announces a long body need not
/// send it.
const ROOM: usize = 64 << 10;

/// Refuses a body that is not plain JSON, by its headers.
pub fn check_json(headers: &HeaderMap) -> Result<()> {
    check_encoding(headers)?;
    let json = |media: &str| {
        let bare = media.split(';').next().unwrap_or("").trim();
        let kind = bare.get(..12).unwrap_or("");
        let rest = bare.get(12..).unwrap_or("");
        let structured = rest.len() > 5 && rest.to_ascii_lowercase().ends_with("+json");
        kind.eq_ignore_ascii_case("application/")
            && (rest.eq_ignore_ascii_case("json") || structured)
    };
    let charset = |media: &str| {
        media.split(';').skip(1).all(|parameter| match parameter.trim().split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
    };
    match media_type(headers) {
        // Nearly all clients send exactly this value.
        Some("application/json") => Ok(()),
        Some(media) if json(media) && charset(media) => Ok(()),
        _ => Err(unsupported("application/json")),
    }
}

/// The `content-type`, if there is exactly one and it is text.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let media = types.next()?.to_str().ok()?;
    types.next().is_none().then_some(media)
}

pub(crate) fn is_lines(headers: &HeaderMap) -> bool {
    const LINES: &str = "application/x-ndjson";
    // Most bodies' types are shorter, which decides without comparing their letters.
    let is_lines = |media: &str| {
        let bare = || media.split(';').next().unwrap_or_default().trim();
        media.len() >= LINES.len() && bare().eq_ignore_ascii_case(LINES)
    };
    media_type(headers).is_some_and(is_lines)
}

pub(crate) fn unsupported(accepted: &'static str) -> ApiError {
    let detail = format!("the body must be {accepted} in UTF-8");
    ApiError::new(Code::UnsupportedMediaType, detail)
        .with_header(HeaderName::from_static("accept-post"), HeaderValue::from_static(accepted))
}

/// Refuses a body that is still compressed.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<()> {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        return Ok(());
    }
    let detail = "the body is compressed in a way that is not read, or in several; send it as gzip or \
                  zstd, or as it is";
    Err(ApiError::new(Code::UnsupportedEncoding, detail)
        .with_header(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, zstd, identity")))
}

/// Refuses a query string on a question whose settings are in its body, where it would be ignored.
pub(crate) fn no_settings(uri: &Uri) -> Result<()> {
    if uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let detail = "settings of a JSON question stand in its body, not in the query string";
    Err(ApiError::at(Code::InvalidField, "", detail))
}

pub(crate) fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The declared length of a body; refuses one that is too long.
pub fn announced(headers: &HeaderMap, settings: &Settings) -> Result<Option<usize>> {
    let limit = settings.body_bytes;
    // A length that does not fit into `usize` exceeds every limit.
    let length = declared(headers).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    match length {
        Some(length) if length > limit => Err(too_large(limit, length)),
        length => Ok(length),
    }
}

/// Reads a body to its end; its head [`announced`] so many bytes. `pay` is called before memory is
/// taken, with the bytes in all: with the announced ones, or, for a body of unknown length,
/// repeatedly as it grows.
pub async fn read(
    request: Request,
    announced: Option<usize>,
    settings: &Settings,
    mut pay: impl FnMut(usize) -> Result<()>,
) -> Result<Bytes> {
    let limit = settings.body_bytes;
    pay(announced.unwrap_or(0))?;
    let mut deadline = None;
    let mut body = request.into_body();
    let mut whole = Vec::new();
    loop {
        // Bytes that have arrived, as a short body's mostly have, need neither a clock nor a timer.
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                let limit = Duration::from_secs(settings.body_timeout_s);
                let until = *deadline.get_or_insert_with(|| Instant::now() + limit);
                timeout_at(until, body.frame()).await.map_err(|_| {
                    let detail = "the body did not arrive in time (setting `body_timeout_s`)";
                    ApiError::new(Code::RequestTimeout, detail)
                })?
            }
        };
        let Some(frame) = frame else { break };
        // Trailers are ignored.
        let Ok(data) = frame.map_err(refused)?.into_data() else { continue };
        if whole.is_empty() && announced == Some(data.len()) {
            // Short bodies come in one piece and are not copied.
            return Ok(data);
        }
        let length = whole.len() + data.len();
        if length > limit {
            return Err(too_large(limit, length));
        }
        if length > whole.capacity() {
            let (first, most) = announced.map_or((0, limit), |length| (ROOM, length));
            let room = whole.capacity().saturating_mul(2).max(first).min(most).max(length);
            if announced.is_none() {
                pay(room)?;
            }
            whole.reserve_exact(room - whole.len());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// An error on its way through the stream of a body.
#[derive(Debug)]
pub(crate) struct BodyError(pub ApiError);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.detail.fmt(f)
    }
}

impl std::error::Error for BodyError {}

/// The error of a body that cannot be read further.
pub(crate) fn refused(error: axum::Error) -> ApiError {
    refused_or(error, broken)
}

/// As [`refused`], with another error for an uncompressed body that breaks off.
pub(crate) fn refused_or(error: axum::Error, broken: impl FnOnce() -> ApiError) -> ApiError {
    // A layer may have wrapped the body's error; why the connection failed is not reported.
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    let found = loop {
        match source {
            Some(one) if !one.is::<hyper::Error>() => match one.downcast_ref::<io::Error>() {
                Some(found) => break found,
                None => source = one.source(),
            },
            _ => return broken(),
        }
    };
    let told = found.get_ref().and_then(|error| error.downcast_ref::<BodyError>());
    told.map_or_else(
        || {
            let detail = "the body is not what its `content-encoding` says, or breaks off";
            ApiError { close: true, ..ApiError::new(Code::MalformedJson, detail) }
        },
        |BodyError(error)| ApiError { close: true, ..error.clone() },
    )
}

pub(crate) fn broken() -> ApiError {
    let detail = "the body broke off or is not framed as HTTP demands";
    ApiError { close: true, ..ApiError::new(Code::MalformedJson, detail) }
}

fn too_large(limit: usize, actual: usize) -> ApiError {
    let detail =
        format!("the body has {actual} bytes or more; the limit is {limit} (setting `body_bytes`)");
    ApiError::new(Code::BodyTooLarge, detail)
}
