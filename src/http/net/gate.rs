//! Requests that are refused by their head alone, before hyper parses them. An overloaded service
//! gets many times the requests that it can answer, so the cost of refusing each decides how many
//! it still answers: here it is one head parsed, one answer written, and a body that the kernel
//! discards. Only the plainest requests are refused here; all others go through hyper, where they
//! are refused as well. Why a request is refused is not known here.

use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::http::uri::Authority;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, Uri, Version, header,
};
use httparse::Status;

use crate::http::error::{ApiError, Code, Result};
use crate::http::net::gate;
use crate::http::net::state::{ConnectionState, Peer, SKIPPED_BYTES};
use crate::http::request::body;

/// Maximum number of header fields of a head that is checked.
const FIELDS: usize = 32;
/// Usual bytes of an answer's head.
const ANSWER_HEAD: usize = 512;

pub trait Gate: Send + Sync {
    /// Whether a request may be refused at all. Called before each request.
    fn may_refuse(&self) -> bool;

    /// Returns the answer if the request is refused; its body is then not read.
    fn refuse(&self, request: Request<()>) -> Option<Response<Bytes>>;
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub answer: Vec<u8>,
    pub left: u64,
    pub closes: bool,
}

/// Shows the gate the request at the beginning of these bytes, if its head is complete and plain
/// and no other request follows.
pub(super) fn consider(gate: &dyn Gate, peer: Peer, bytes: &[u8]) -> Option<Refused> {
    if !gate.may_refuse() {
        return None;
    }
    let (mut request, whole) = skippable(bytes)?;
    let left = whole.checked_sub(bytes.len() as u64)?;
    request.extensions_mut().insert(peer);
    let response = gate.refuse(request)?;
    let closes = response.headers().contains_key(header::CONNECTION);
    Some(Refused { answer: written(&response), left, closes })
}

/// A request whose body has a known length and may be skipped, with its total length. hyper must
/// read the same request from these bytes.
pub fn skippable(bytes: &[u8]) -> Option<(Request<()>, u64)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(Status::Complete(length)) = parsed.parse(bytes) else { return None };
    // An HTTP/1.0 connection ends with its answer, and other verbs have no body worth refusing.
    if parsed.version != Some(1) || parsed.method != Some(Verb::POST.as_str()) {
        return None;
    }
    let target = parsed.path.filter(|target| target.starts_with('/'))?;
    let mut request = Request::new(());
    *request.method_mut() = Verb::POST;
    *request.uri_mut() = Uri::try_from(target).ok()?;
    let headers = request.headers_mut();
    headers.reserve(parsed.headers.len());
    for field in &*parsed.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    gate::check(&request).ok()?;
    let body = body_length(request.headers())?;
    Some((request, body + length as u64))
}

/// The length of the body, if the head is unambiguous and requests nothing else.
fn body_length(headers: &HeaderMap) -> Option<u64> {
    let asks_more = [header::TRANSFER_ENCODING, header::EXPECT, header::UPGRADE, header::TE];
    if asks_more.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    let kept = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
    if !headers.get_all(header::CONNECTION).iter().all(kept) {
        return None;
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let (digits, more) = (lengths.next()?, lengths.next());
    let plain = digits.as_bytes().iter().all(u8::is_ascii_digit) && more.is_none();
    body::declared(headers).filter(|&length| plain && length <= SKIPPED_BYTES)
}

fn written(response: &Response<Bytes>) -> Vec<u8> {
    let (status, body) = (response.status(), response.body());
    let mut bytes = Vec::with_capacity(ANSWER_HEAD + body.len());
    bytes.extend_from_slice(b"HTTP/1.1 ");
    bytes.extend_from_slice(status.as_str().as_bytes());
    bytes.push(b' ');
    bytes.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    bytes.extend_from_slice(b"\r\n");
    let mut field = |name: &[u8], value: &[u8]| {
        for part in [name, b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    };
    for (name, value) in response.headers() {
        field(name.as_str().as_bytes(), value.as_bytes());
    }
    field(b"content-length", body.len().to_string().as_bytes());
    field(b"date", date().as_bytes());
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// The current time in the format of the header `date`.
#[expect(clippy::disallowed_methods, reason = "clients are told the wall clock's time")]
fn date() -> String {
    written_date(SystemTime::now())
}

/// A time in the format of the header `date`, clamped to the years 1970 to 9999.
fn written_date(time: SystemTime) -> String {
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(time.clamp(SystemTime::UNIX_EPOCH, last))
}

/// The part of the current request that hyper has read.
#[derive(Debug, Default)]
pub(super) struct Framing {
    given: u64,
    head: u64,
    /// Whether that is unknown: the head came in parts, or another request follows.
    lost: bool,
}

impl Framing {
    /// Whether the next bytes begin a request, and no answer is due. Stays true until they come.
    pub(super) fn is_between(&mut self, state: &ConnectionState) -> bool {
        if self.given > 0 && !self.lost && !state.owes_answer() {
            let all = state.body_bytes().and_then(|body| self.head.checked_add(body));
            match all {
                Some(all) if all == self.given => self.given = 0,
                Some(all) if all > self.given => {}
                _ => self.lost = true,
            }
        }
        self.given == 0 && !self.lost
    }

    /// Counts bytes that hyper is given.
    pub(super) fn give(&mut self, bytes: &[u8], state: &ConnectionState) {
        if self.lost {
            return;
        }
        if self.given == 0 {
            state.set_body_bytes(None);
            match head_length(bytes) {
                Some(length) => self.head = length as u64,
                None => self.lost = true,
            }
        }
        self.given = self.given.saturating_add(bytes.len() as u64);
    }
}

/// Returns the length of the head at the start of these bytes, if they contain its end. hyper skips
/// empty lines before a request, so a head after an empty line has no known end.
fn head_length(bytes: &[u8]) -> Option<usize> {
    if matches!(bytes.first(), None | Some(b'\r' | b'\n')) {
        return None;
    }
    let mut from = 0;
    loop {
        let line = from + memchr::memchr(b'\n', bytes.get(from..)?)? + 1;
        match bytes.get(line..)? {
            [b'\n', ..] => return Some(line + 1),
            [b'\r', b'\n', ..] => return Some(line + 2),
            _ => from = line,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FaultyHead(pub ApiError);

/// Refuses a head that a proxy on the way could read differently.
pub(crate) fn check<B>(request: &Request<B>) -> Result<()> {
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
    // Empty if the target has no authority.
    value.is_empty() || is_plain_host(value.as_bytes()) || authority(value).is_some()
}

/// Whether this is a name or an IPv4 address, with or without a port: a quick check that nearly all
/// requests pass.
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
    // Only a colon and a port may follow the host.
    let port = authority.as_str().strip_prefix(authority.host())?;
    let sound = port.is_empty() || port == ":" || authority.port_u16().is_some();
    (named && sound && !authority.host().is_empty()).then_some(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_clock_can_be_written() {
        let (epoch, far) = (SystemTime::UNIX_EPOCH, Duration::from_secs(1 << 40));
        assert_eq!(written_date(epoch - far), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(written_date(epoch + far), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    struct Closed;

    impl Gate for Closed {
        fn may_refuse(&self) -> bool {
            true
        }

        fn refuse(&self, request: Request<()>) -> Option<Response<Bytes>> {
            assert!(request.extensions().get::<Peer>().is_some());
            Response::builder().status(503).body(Bytes::from_static(b"no")).ok()
        }
    }

    fn shown(bytes: &str) -> Option<u64> {
        let peer = Peer(([127, 0, 0, 1], 1).into());
        consider(&Closed, peer, bytes.as_bytes()).map(|refused| {
            let answer = String::from_utf8(refused.answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
            assert!(answer.contains("content-length: 2\r\ndate: "), "{answer}");
            assert!(answer.ends_with(" GMT\r\n\r\nno"), "{answer}");
            refused.left
        })
    }

    #[test]
    fn only_plain_requests_are_shown_to_the_gate() {
        let ask = |fields: &str, body: &str| format!("POST /p HTTP/1.1\r\n{fields}\r\n{body}");
        let host = "host: h\r\n";
        assert_eq!(shown(&ask("host: h\r\ncontent-length: 5\r\n", "ab")), Some(3));
        assert_eq!(shown(&ask("host: h\r\ncontent-length: 2\r\n", "ab")), Some(0));
        let kept = "host: h\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n";
        assert_eq!(shown(&ask(kept, "ab")), Some(0));
        let others = [
            ask("host: h\r\ncontent-length: 2\r\n", "abPOST "),
            ask(host, ""),
            ask("content-length: 2\r\n", "ab"),
            ask("host: h\r\nhost: h\r\ncontent-length: 2\r\n", "ab"),
            ask("host: h\r\ncontent-length: 2\r\ncontent-length: 2\r\n", "ab"),
            ask("host: h\r\ncontent-length: +2\r\n", "ab"),
            ask("host: h\r\ncontent-length: 300000\r\n", "ab"),
            ask("host: h\r\ncontent-length: 99999999999999999999\r\n", "ab"),
            ask("host: h\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n", "ab"),
            ask("host: h\r\ncontent-length: 2\r\nexpect: 100-continue\r\n", "ab"),
            ask("host: h\r\ncontent-length: 2\r\nconnection: close\r\n", "ab"),
            "POST /p HTTP/1.0\r\nhost: h\r\ncontent-length: 2\r\n\r\nab".to_owned(),
            "GET /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nab".to_owned(),
            "POST http://h/p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nab".to_owned(),
            "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n".to_owned(),
            "\r\nPOST".to_owned(),
        ];
        for other in others {
            assert_eq!(shown(&other), None, "{other}");
        }
    }
}

#[cfg(test)]
mod framing_tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_head_ends_at_its_first_empty_line() {
        let cases: [(&[u8], Option<usize>); 8] = [
            (b"GET / HTTP/1.1\r\na: b\r\n\r\nbody\r\n\r\n", Some(24)),
            (b"GET / HTTP/1.1\na: b\n\nbody", Some(21)),
            (b"GET / HTTP/1.1\n\r\nbody", Some(17)),
            (b"GET / HTTP/1.1\r\na: b\r\n\r", None),
            (b"GET / HTTP/1.1\r\na: b\r\n", None),
            (b"\r\nGET / HTTP/1.1\r\n\r\n", None),
            (b"GET", None),
            (b"", None),
        ];
        for (bytes, length) in cases {
            assert_eq!(head_length(bytes), length, "{bytes:?}");
        }
    }

    #[test]
    fn a_request_begins_where_the_one_before_it_ended() {
        const HEAD: &[u8] = b"POST / HTTP/1.1\r\n\r\n";
        let state = Arc::new(ConnectionState::default());
        let mut framing = Framing::default();
        for _ in 0..2 {
            assert!(framing.is_between(&state));
            framing.give(HEAD, &state);
            state.set_body_bytes(Some(5));
            let pending = state.begin();
            assert!(!framing.is_between(&state));
            framing.give(b"abc", &state);
            drop(pending);
            assert!(!framing.is_between(&state), "two bytes are to come");
            framing.give(b"de", &state);
        }
        assert!(framing.is_between(&state));
        // The head of the next request came along.
        framing.give(&[HEAD, b"abcdeP"].concat(), &state);
        state.set_body_bytes(Some(5));
        assert!(!framing.is_between(&state));
        framing.give(b"OST / HTTP/1.1\r\n\r\n", &state);
        state.set_body_bytes(Some(0));
        assert!(!framing.is_between(&state), "lost for good");
    }

    #[test]
    fn a_body_of_unknown_length_has_no_known_end() {
        let state = Arc::new(ConnectionState::default());
        let mut framing = Framing::default();
        framing.give(b"POST / HTTP/1.1\r\n\r\n", &state);
        state.set_body_bytes(None);
        assert!(!framing.is_between(&state));
    }
}

#[cfg(test)]
mod head_tests {
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
