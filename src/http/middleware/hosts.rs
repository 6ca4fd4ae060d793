//! Whether a request without a key was meant for this service. A browser sends what a page tells it
//! to, and the owner of a name may point it at any address (DNS rebinding): then `Host` is that
//! name. Programs choose their own `Host`, so this protects the readers of pages, not the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::ToStrError;
use axum::http::{HeaderValue, Request, header};

use crate::http::settings::Settings;

/// Endings of names that nobody can register in the public DNS.
const OWNED_BY_NOBODY: [&str; 2] = [".localhost", ".internal"];

/// Headers that a proxy adds.
const OF_PROXIES: [&str; 5] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/// Whether a request may come from a page whose reader did not mean to call this service: its host
/// is a name that others may own, or its origin is elsewhere.
pub(super) fn is_led_here<B>(request: &Request<B>, settings: &Settings) -> bool {
    let Ok(host) = host(request) else { return true };
    let is_ours = host.is_none_or(|host| is_ours(without_port(host), settings));
    let is_of_ours = match request.headers().get(header::ORIGIN).map(HeaderValue::to_str) {
        Some(Ok(origin)) => is_origin_of_ours(origin, host, settings),
        Some(Err(_)) => false,
        None => true,
    };
    !(is_ours && is_of_ours)
}

/// Whether a request without keys comes directly from a program of this machine, as far as its head
/// shows: to a name that only this machine has, without a proxy, and not from a page of another
/// origin.
pub(super) fn is_local<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let Ok(host) = host(request) else { return false };
    let is_same_origin = match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => host.is_some_and(|host| {
            origin.as_bytes().strip_prefix(b"http://") == Some(host.as_bytes())
        }),
    };
    !OF_PROXIES.iter().any(|name| headers.contains_key(*name))
        && host.is_none_or(|host| is_loopback(without_port(host)))
        && is_same_origin
}

/// The host that a request names: an absolute target's, else that of `Host` (RFC 9112, section
/// 3.2.2).
fn host<B>(request: &Request<B>) -> Result<Option<&str>, ToStrError> {
    match request.uri().authority() {
        Some(authority) => Ok(Some(authority.as_str())),
        None => request.headers().get(header::HOST).map(HeaderValue::to_str).transpose(),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let by_address = bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    by_address || host.eq_ignore_ascii_case("localhost")
}

fn without_port(host: &str) -> &str {
    let name = host.trim_end_matches(|c: char| c.is_ascii_digit());
    name.strip_suffix(':').unwrap_or(host)
}

/// Whether this is an address, or a name that only the operator can point here.
fn is_ours(host: &str, settings: &Settings) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let ends_in = |end: &str| {
        let (bytes, end) = (host.as_bytes(), end.as_bytes());
        bytes
            .len()
            .checked_sub(end.len())
            .and_then(|at| bytes.get(at..))
            .is_some_and(|last| last.eq_ignore_ascii_case(end))
    };
    !host.contains('.')
        || host.parse::<Ipv4Addr>().is_ok()
        || OWNED_BY_NOBODY.iter().any(|end| ends_in(end))
        || is_allowed(host, settings)
}

fn is_allowed(host: &str, settings: &Settings) -> bool {
    settings.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
}

/// Whether this is the origin of this service's pages, or an allowed origin.
fn is_origin_of_ours(origin: &str, host: Option<&str>, settings: &Settings) -> bool {
    if settings.cors_origins.iter().any(|allowed| allowed == "*" || allowed == origin) {
        return true;
    }
    // A proxy may terminate TLS.
    let page = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    page.is_some_and(|page| {
        // Behind a proxy under another name the page's origin is still the requested host.
        host.is_some_and(|host| page.eq_ignore_ascii_case(host))
            || is_allowed(without_port(page), settings)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in fields {
            request.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
        }
        request
    }

    fn led(fields: &[(&'static str, &str)]) -> bool {
        let settings = Settings {
            allowed_hosts: vec!["texts.example.org".to_owned()],
            cors_origins: vec!["https://app.example".to_owned()],
            ..Settings::default()
        };
        is_led_here(&request(fields), &settings)
    }

    #[test]
    fn addresses_and_names_that_nobody_else_owns_are_ours() {
        let ours = [
            "",
            "127.0.0.1",
            "127.0.0.1:8080",
            "192.0.2.7:80",
            "[::1]",
            "[2001:db8::1]:8080",
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "cognate",
            "cognate:8080",
            "app.localhost:3000",
            "cognate.corp.INTERNAL",
            "texts.example.org",
            "Texts.Example.Org.:8443",
        ];
        for host in ours {
            assert!(!led(&[("host", host)]), "{host}");
        }
        assert!(!led(&[]), "HTTP/1.0 knows no `Host`");
        let others = [
            "evil.example",
            "evil.example:8080",
            "evil.example.",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "texts.example.org.evil.example",
            "eviltexts.example.org",
            "internal.evil",
            "[::1].evil.example",
            "[evil.example]",
        ];
        for host in others {
            assert!(led(&[("host", host)]), "{host}");
        }
        let mut absolute = request(&[("host", "127.0.0.1")]);
        *absolute.uri_mut() = "http://evil.example/collections".parse().unwrap();
        assert!(is_led_here(&absolute, &Settings::default()), "the target names another host");
    }

    #[test]
    fn pages_are_those_of_this_service_or_allowed() {
        let host = ("host", "127.0.0.1:8080");
        let ours = [
            "http://127.0.0.1:8080",
            "https://127.0.0.1:8080",
            "https://app.example",
            "https://texts.example.org",
        ];
        for origin in ours {
            assert!(!led(&[host, ("origin", origin)]), "{origin}");
        }
        let others = [
            "null",
            "https://evil.example",
            "http://127.0.0.1:9090",
            "http://127.0.0.1",
            "http://app.example",
            "https://texts.example.org.evil.example",
            "",
        ];
        for origin in others {
            assert!(led(&[host, ("origin", origin)]), "{origin}");
        }
        assert!(led(&[("host", "evil.example"), ("origin", "http://evil.example")]));
    }

    #[test]
    fn only_programs_of_this_machine_are_local() {
        let cases: [(&[(&'static str, &str)], bool); 11] = [
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
            assert_eq!(is_local(&request(fields)), local, "{fields:?}");
        }
        let mut absolute = request(&[("host", "127.0.0.1")]);
        *absolute.uri_mut() = "http://evil.example/-/reload".parse().unwrap();
        assert!(!is_local(&absolute), "the target names another host");
    }
}
