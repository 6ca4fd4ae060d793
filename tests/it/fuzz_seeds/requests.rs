//! Seeds of bodies and lines for collections.

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

pub(super) fn seeds() -> Vec<Seed> {
    let seed = |target| move |(name, text): (&'static str, &str)| (target, name, text.into());
    COLLECTIONS.into_iter().map(seed("json_collections")).collect()
}
