//! Requests that are refused by their head alone, before hyper makes a request of their bytes. An
//! overloaded service gets many times the requests that it can answer, so what each of them costs
//! decides how much it still answers: here it is one head parsed, one answer written, and a body that
//! the kernel throws away. Only the plainest requests are looked at; all others go the usual way, on
//! which they are refused as well. Why a request is refused is not known here.

use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, Uri, header,
};
use httparse::Status;

use crate::http::net::connection::{Peer, SKIPPED_BYTES};
use crate::http::net::head;
use crate::http::request::body;

/// Most fields of a head that is looked at.
const FIELDS: usize = 32;
/// Bytes of an answer's head, as a rule.
const ANSWER_HEAD: usize = 512;

/// Who refuses requests by their head alone.
pub trait Gate: Send + Sync {
    /// Whether there may be anything to refuse. It is asked before each request.
    fn may_refuse(&self) -> bool;

    /// The answer to a request, if it is refused. Its body need not be read.
    fn refuse(&self, request: Request<()>) -> Option<Response<Bytes>>;
}

/// A refusal: the bytes of its answer, and how many of the request are still to come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub answer: Vec<u8>,
    pub left: u64,
    /// Whether the connection ends with it.
    pub closes: bool,
}

/// Has the gate look at a request that these bytes begin with, if their head is whole and plain and no
/// other request follows.
pub(super) fn consider(gate: &dyn Gate, peer: Peer, bytes: &[u8]) -> Option<Refused> {
    if !gate.may_refuse() {
        return None;
    }
    let (mut request, whole) = read(bytes)?;
    let left = whole.checked_sub(bytes.len() as u64)?;
    request.extensions_mut().insert(peer);
    let response = gate.refuse(request)?;
    let closes = response.headers().contains_key(header::CONNECTION);
    Some(Refused { answer: written(&response), left, closes })
}

/// A request whose body has a known length and may be skipped, with the length of all of it.
fn read(bytes: &[u8]) -> Option<(Request<()>, u64)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(Status::Complete(length)) = parsed.parse(bytes) else { return None };
    // An HTTP/1.0 connection ends with its answer, and other verbs bring no body worth refusing.
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
    head::check(&request).ok()?;
    let body = body_length(request.headers())?;
    Some((request, body + length as u64))
}

/// How long the body is, where the head leaves no doubt and asks for nothing else.
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

/// An answer as it is sent.
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

/// The time of day, as an answer has it.
#[expect(clippy::disallowed_methods, reason = "clients are told the wall clock's time")]
fn date() -> String {
    written_date(SystemTime::now())
}

/// A time as an answer has it: the nearest that can be written, which are those from 1970 to 9999.
fn written_date(time: SystemTime) -> String {
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(time.clamp(SystemTime::UNIX_EPOCH, last))
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

    /// Refuses whatever it is shown.
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
