//! Heads that servers on the way of a request could read differently. Why a request is refused later is not
//! known here.

use axum::http::uri::Authority;
use axum::http::{HeaderValue, Request, Version, header};

use crate::http::error::{ApiError, Code};

/// A request extension: why the request is refused before anything looks at it.
#[derive(Debug, Clone)]
pub(crate) struct FaultyHead(pub ApiError);

/// Refuses a head that other servers on the way could read differently.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), ApiError> {
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err(fault("the request has more than one `Host`")),
        (None, _) if request.version() >= Version::HTTP_11 => {
            return Err(fault("the request has no `Host`"));
        }
        (Some(host), None) if !is_host(host) => {
            return Err(fault("`Host` is not a host name with or without a port"));
        }
        _ => {}
    }
    let chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if !headers.get_all(header::TRANSFER_ENCODING).iter().all(chunked) {
        return Err(fault("the only transfer coding is `chunked`"));
    }
    Ok(())
}

fn fault(detail: &'static str) -> ApiError {
    ApiError { close: true, ..ApiError::new(Code::InvalidHead, detail) }
}

fn is_host(value: &HeaderValue) -> bool {
    // Empty where the target has no authority.
    value.is_empty() || is_plain_host(value.as_bytes()) || authority(value).is_some()
}

/// Whether this is a name or an IPv4 address, with a port or none: what nearly all requests have, and can
/// be seen at a glance.
fn is_plain_host(bytes: &[u8]) -> bool {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let name = bytes.iter().position(|byte| !of_name(byte)).unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(name);
    let port = match rest {
        [] => true,
        [b':', port @ ..] => {
            let number = std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok());
            port.iter().all(u8::is_ascii_digit) && number.is_some()
        }
        _ => false,
    };
    !name.is_empty() && port
}

fn authority(value: &HeaderValue) -> Option<Authority> {
    let bytes = value.as_bytes();
    let named = !bytes.contains(&b'@');
    let authority = Authority::try_from(bytes).ok()?;
    // Behind the host only a colon and a port may follow.
    let port = authority.as_str().strip_prefix(authority.host())?;
    let sound = port.is_empty() || port == ":" || authority.port_u16().is_some();
    (named && sound && !authority.host().is_empty()).then_some(authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |&(name, value): &(&'static str, &str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_head_has_one_host_and_no_coding_but_chunked() {
        let cases: [(&[(&str, &str)], bool); 20] = [
            (&[("host", "a.example")], true),
            (&[("host", "a.example:8080")], true),
            (&[("host", "[::1]:8080")], true),
            (&[("host", "127.0.0.1")], true),
            (&[("host", "")], true),
            (&[], false),
            (&[("host", "a"), ("host", "a")], false),
            (&[("host", "a"), ("host", "b")], false),
            (&[("host", "a b")], false),
            (&[("host", "a/c")], false),
            (&[("host", "u@a")], false),
            (&[("host", "a:x")], false),
            (&[("host", "a:99999")], false),
            (&[("host", "a:65536")], false),
            (&[("host", "a:65535")], true),
            (&[("host", "a:00080")], true),
            (&[("host", "a:")], true),
            (&[("host", "a"), ("transfer-encoding", "Chunked")], true),
            (&[("host", "a"), ("transfer-encoding", "gzip, chunked")], false),
            (&[("host", "a"), ("transfer-encoding", "identity")], false),
        ];
        for (fields, fine) in cases {
            let fields: Vec<(&'static str, &str)> = fields.to_vec();
            let mut request = Request::new(());
            *request.headers_mut() = headers(&fields);
            assert_eq!(check(&request).is_ok(), fine, "{fields:?}");
        }
        let mut old = Request::new(());
        *old.version_mut() = Version::HTTP_10;
        assert!(check(&old).is_ok(), "HTTP/1.0 knows no `Host`");
    }
}
