//! Names that settings hold: of models, of hosts, of origins.

use crate::http::settings::value::quoted;

const MODEL_NAME: usize = 64;

/// Whether a model can be called so.
pub(super) fn check_model_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = name.bytes().next().is_some_and(plain);
    let rest = name.bytes().all(|byte| plain(byte) || b"._-".contains(&byte));
    if first && rest && name.len() <= MODEL_NAME {
        return Ok(());
    }
    Err(format!(
        "{} is no name for a model: at most {MODEL_NAME} of a-z, 0-9, `.`, `_` and `-`, the first \
         a letter or digit",
        quoted(name)
    ))
}

/// Whether a browser could send this as its origin.
pub(super) fn check_origin(origin: &str, keys: bool) -> Result<(), String> {
    if origin == "*" && keys {
        return Err("`*` would let any site use a visitor's key: name the origins".to_owned());
    }
    if origin == "*" {
        return Ok(());
    }
    let wrong = |why: &str| Err(format!("{} is no exact origin: {why}", quoted(origin)));
    let (rest, usual_port) = match origin.split_once("://") {
        Some(("https", rest)) => (rest, ":443"),
        Some(("http", rest)) => (rest, ":80"),
        _ => {
            return wrong("it must be https://host or http://host, with a port if it is not usual");
        }
    };
    if rest.ends_with(usual_port) {
        return wrong("browsers leave the usual port out");
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !rest.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    if let Some(port) = port
        && (port.starts_with(['0', '+']) || port.parse::<u16>().is_err())
    {
        return wrong("the port is no number from 1 to 65535");
    }
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    let good = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(name),
    };
    if good { Ok(()) } else { wrong("only a host in small letters may follow, without path") }
}

/// Checks a host name without scheme and port.
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

    #[test]
    fn model_names_fit_into_paths_and_labels() {
        for good in ["default", "a", "0", "glove-6b.100d_v2", &"x".repeat(64)] {
            assert_eq!(check_model_name(good), Ok(()), "{good}");
        }
        for wrong in ["", "-a", ".a", "A", "a b", "a:b", "a/b", "ü", &"x".repeat(65)] {
            assert!(check_model_name(wrong).is_err(), "{wrong}");
        }
    }
}
