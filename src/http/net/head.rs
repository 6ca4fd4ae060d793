//! What the head of a request must be beside what hyper checks: one `Host`, and no transfer coding
//! but `chunked` (RFC 9112, sections 3.2 and 6.1).

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
    value.is_empty() || authority(value).is_some()
}

fn authority(value: &HeaderValue) -> Option<Authority> {
    let bytes = value.as_bytes();
    let named = !bytes.contains(&b'@');
    let authority = Authority::try_from(bytes).ok()?;
    // What stands behind the host is a colon and a port, or nothing.
    let port = authority.as_str().strip_prefix(authority.host())?;
    let sound = port.is_empty() || port == ":" || authority.port_u16().is_some();
    (named && sound && !authority.host().is_empty()).then_some(authority)
}

/// Whether a request without keys comes straight from a program of this machine, as far as its head
/// tells: to a name that only this machine has, without a proxy between, and not from a page of
/// another origin.
pub(crate) fn is_local<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let proxied = [header::FORWARDED, header::VIA].iter().any(|name| headers.contains_key(name))
        || ["x-forwarded-for", "x-forwarded-host", "x-real-ip"]
            .iter()
            .any(|name| headers.contains_key(*name));
    // An absolute target names the host instead (RFC 9112, section 3.2.2).
    let named = request.uri().authority().cloned().map(Some);
    let named = named.or_else(|| headers.get(header::HOST).map(authority));
    let host = named.map(|host| host.filter(is_loopback));
    let host = match host {
        // A name of elsewhere that leads here: somebody changed what the name stands for.
        Some(None) => return false,
        Some(Some(host)) => Some(host),
        None => None,
    };
    let same_origin = match (headers.get(header::ORIGIN), host) {
        (None, _) => true,
        (Some(origin), Some(host)) => {
            origin.as_bytes().strip_prefix(b"http://") == Some(host.as_str().as_bytes())
        }
        (Some(_), None) => false,
    };
    !proxied && same_origin
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let by_address = bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    by_address || host.eq_ignore_ascii_case("localhost")
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
        let cases: [(&[(&str, &str)], bool); 17] = [
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

    #[test]
    fn only_programs_of_this_machine_are_local() {
        let cases: [(&[(&str, &str)], bool); 11] = [
            (&[("host", "127.0.0.1:8080")], true),
            (&[("host", "localhost")], true),
            (&[("host", "[::1]:80")], true),
            (&[], true),
            (&[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")], true),
            (&[("host", "127.0.0.1:8080"), ("origin", "https://evil.example")], false),
            (&[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:9090")], false),
            (&[("host", "127.0.0.1:8080"), ("origin", "null")], false),
            (&[("host", "evil.example:8080"), ("origin", "http://evil.example:8080")], false),
            (&[("host", "127.0.0.1"), ("x-forwarded-for", "10.0.0.1")], false),
            (&[("host", "127.0.0.1"), ("via", "1.1 proxy")], false),
        ];
        for (fields, local) in cases {
            let fields: Vec<(&'static str, &str)> = fields.to_vec();
            let mut request = Request::new(());
            *request.headers_mut() = headers(&fields);
            assert_eq!(is_local(&request), local, "{fields:?}");
        }
        let mut absolute = Request::new(());
        *absolute.uri_mut() = "http://evil.example/-/reload".parse().unwrap();
        *absolute.headers_mut() = headers(&[("host", "127.0.0.1")]);
        assert!(!is_local(&absolute), "the target names another host");
    }
}
