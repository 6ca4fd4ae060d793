//! Where a Qdrant server is: the URL of its gRPC port, with a key if it asks for one.

use crate::collection::CollectionError;

/// The port where Qdrant speaks gRPC unless it is told otherwise.
const PORT: u16 = 6334;
/// What stands before a key.
const KEY: &str = "api_key=";

/// A server, and the key that it asks for.
#[derive(PartialEq, Eq)]
pub(super) struct Place {
    pub(super) uri: String,
    pub(super) key: Option<String>,
}

impl Place {
    /// Reads a URL such as `https://host:6334?api_key=KEY`.
    pub(super) fn of(url: &str) -> Result<Self, CollectionError> {
        // The URL may have a key, so it is not repeated.
        let wrong = || CollectionError::NotSetUp {
            problem: "expected a URL such as http://host:6334 or https://host:6334?api_key=KEY"
                .to_owned(),
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let place = place.trim_end_matches('/');
        let is_host = !place.is_empty() && !place.contains(['/', '@', '#']);
        if !matches!(scheme, "http" | "https") || !is_host {
            return Err(wrong());
        }
        let key = match settings {
            "" => None,
            other => Some(other.strip_prefix(KEY).ok_or_else(wrong)?.to_owned()),
        };
        if key.as_ref().is_some_and(|key| key.is_empty() || key.contains('&')) {
            return Err(wrong());
        }
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let uri = match has_port {
            true => format!("{scheme}://{place}"),
            false => format!("{scheme}://{place}:{PORT}"),
        };
        Ok(Self { uri, key })
    }
}

#[cfg(test)]
mod tests {
    use crate::collection::qdrant::place::Place;

    #[test]
    fn a_url_has_a_host_and_perhaps_a_port_and_a_key() {
        for (url, uri, key) in [
            ("http://localhost", "http://localhost:6334", None),
            ("http://10.0.0.1:7000/", "http://10.0.0.1:7000", None),
            ("http://[::1]", "http://[::1]:6334", None),
            ("http://[::1]:6334", "http://[::1]:6334", None),
            ("https://a.example?api_key=s3=cret", "https://a.example:6334", Some("s3=cret")),
        ] {
            let place = Place::of(url).unwrap();
            assert_eq!((&*place.uri, place.key.as_deref()), (uri, key), "{url}");
        }
        for wrong in [
            "localhost:6334",
            "postgres://host/db",
            "http://",
            "http://host/path",
            "http://me:secret@host",
            "http://host?secret",
            "http://host?api_key=",
            "http://host?api_key=secret&x=1",
        ] {
            let error = Place::of(wrong).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{wrong}: {error}");
        }
    }
}
