//! Seeds of what arrives over HTTP: bodies and lines for collections, and the bytes of connections.

use super::Seed;

#[rustfmt::skip]
const COLLECTIONS: [(&str, &str); 14] = [
    ("items", r#"{"items": [{"id": "a", "text": "Quake hits L.A.", "time": "2026-11-26T09:00:00Z"}, {"id": 7, "text": "x"}]}"#),
    ("items-attributes", r#"{"items": [{"id": "a", "text": "x", "attributes": {"lang": "en", "n": -0.5, "open": true}, "data": {"a": [1, {"b": null}]}}]}"#),
    ("items-event", r#"{"items": [{"id": "a", "text": "x", "event": "b"}, {"id": "b", "text": "y", "event": {"id": "b", "size": 2, "score": 0.5}}]}"#),
    ("items-none", r#"{"items": []}"#),
    ("items-empty-text", r#"{"items": [{"id": "", "text": ""}]}"#),
    ("line", r#"{"id": 3.0, "text": "Cat naps on sofa", "time": 1764147600}"#),
    ("line-late", r#"{"id": "z", "text": "x", "time": "9999-12-31 23:59:59"}"#),
    ("line-unknown-field", r#"{"id": "z", "text": "x", "link": "y"}"#),
    ("match", r#"{"items": [{"id": "a", "text": "x"}], "method": "avg-cos", "second": "none", "last": 100, "within": "24h", "threshold": "calibrated", "nearest": 4, "votes": 2, "centre": 0.5, "duplicate_score": 0.9, "add": "new", "replace": true, "opposes": "drop"}"#),
    ("one", r#"{"text": "x", "time": "2026-11-26 09:00:00", "attributes": {}}"#),
    ("patch", r#"{"attributes": {"lang": null, "n": 2}, "data": null}"#),
    ("settings", r#"{"max_items": 1000, "ttl": "24h"}"#),
    ("merge", r#"{"events": ["a", "b"]}"#),
    ("split", r#"{"items": ["a", "b"]}"#),
];

#[rustfmt::skip]
const CONNECTIONS: [(&str, &str); 16] = [
    ("plain", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nab"),
    ("whole", "POST /p?a=b HTTP/1.1\r\nhost: h:80\r\nContent-Length: 2\r\nconnection: Keep-Alive\r\n\r\nab"),
    ("bare-line-feeds", "POST /p HTTP/1.1\nhost: h\ncontent-length: 2\n\nab"),
    ("no-body", "POST / HTTP/1.1\r\nhost: [::1]:8080\r\ncontent-length: 0\r\n\r\n"),
    ("folded", "POST /p HTTP/1.1\r\nhost: h\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\nab"),
    ("space-before-colon", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length : 2\r\n\r\nab"),
    ("twice", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nab"),
    ("list-of-lengths", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2, 2\r\n\r\nab"),
    ("sign", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: +2\r\n\r\nab"),
    ("zeros", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 0000000000000000000000002\r\n\r\nab"),
    ("chunked", "POST /p HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n"),
    ("expects", "POST /p HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nab"),
    ("absolute", "POST http://h/p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nab"),
    ("empty-line-first", "\r\nPOST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nab"),
    ("other-bytes", "POST /p\u{e9} HTTP/1.1\r\nhost: h\r\nx: \u{e9}\t\r\ncontent-length: 2\r\n\r\nab"),
    ("two", "POST /p HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nabPOST /q HTTP/1.1\r\n"),
];

pub(super) fn seeds() -> Vec<Seed> {
    let seed = |target| move |(name, text): (&'static str, &str)| (target, name, text.into());
    let bodies = COLLECTIONS.into_iter().map(seed("json_collections"));
    bodies.chain(CONNECTIONS.into_iter().map(seed("gate"))).collect()
}
