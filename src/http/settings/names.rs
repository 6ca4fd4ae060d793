//! Names in settings: of models, of hosts, of origins.

use axum::http::Uri;
use cognate_collections::{NAME_BYTES, check_name};

use crate::http::settings::value::quoted;

/// The rules for a model's name are those for a collection's.
pub(super) fn check_model_name(name: &str) -> Result<(), String> {
    check_name(name).map_err(|_| {
        format!(
            "{} is no name for a model: at most {NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, the \
             first a letter or digit",
            quoted(name)
        )
    })
}

/// Whether a browser could send this as its origin.
pub(super) fn check_origin(origin: &str, keys: bool) -> Result<(), String> {
    if origin == "*" && keys {
        return Err("`*` would let any site use a visitor's key: name the origins".to_owned());
    }
    if origin == "*" {
        return Ok(());
    }
    let name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    let is_exact = |uri: &Uri| {
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let host = authority.host();
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match address {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(name),
        };
        let is_http = matches!(scheme, "http" | "https");
        let is_port = !matches!(authority.port_u16(), Some(port) if port == usual || port == 0);
        Some(is_http && is_host && is_port && origin == format!("{scheme}://{host}{port}"))
    };
    match origin.parse().ok().as_ref().and_then(is_exact) {
        Some(true) => Ok(()),
        _ => Err(format!(
            "{} is no exact origin: https:// or http://, a host in small letters, its port if that is \
             not the usual one, and no path",
            quoted(origin)
        )),
    }
}

pub(super) fn check_host(host: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if !host.is_empty() && host.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        "{} is no name of a host: neither scheme nor port nor path belongs to it",
        quoted(host)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_exact() {
        for good in
            ["https://a.example", "http://localhost:3000", "https://[::1]:8443", "https://[::1]"]
        {
            assert_eq!(check_origin(good, true), Ok(()), "{good}");
        }
        for wrong in [
            "",
            "null",
            "a.example",
            "ftp://a.example",
            "https://",
            "https://a.example/",
            "https://a.example:443",
            "http://a.example:80",
            "https://a.example:0",
            "https://a.example:65536",
            "https://a.example:",
            "https://A.example",
            "https://*.example",
            "https://u@a.example",
            "https://[::1",
            "https://a b",
        ] {
            assert!(check_origin(wrong, false).is_err(), "{wrong}");
        }
        assert_eq!(check_origin("*", false), Ok(()));
        assert!(check_origin("*", true).is_err());
    }

    #[test]
    fn hosts_are_names_alone() {
        for good in ["texts.example.org", "Texts-1", "10.0.0.1"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for wrong in ["", "*", "a b", "a:80", "https://a", "a/b", "u@a", "[::1]", "ü"] {
            assert!(check_host(wrong).is_err(), "{wrong}");
        }
    }
}
