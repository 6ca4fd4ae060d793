//! Examples of the document: bodies that can be sent as they are, and an error of each code.

use serde_json::{Value, json};

use crate::http::error::Code;

/// Two similar headlines, and a different one.
const QUAKE: &str = "Quake hits L.A.!!";
const EARTHQUAKE: &str = "Earthquake shakes Los Angeles";
const CAT: &str = "Cat naps on sofa";

/// Bodies of questions: path, media type, name, body.
fn bodies() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let json_type = "application/json";
    let pairs = json!({"pairs": [[QUAKE, EARTHQUAKE], [QUAKE, CAT]]});
    let pair = json!({"a": QUAKE, "b": EARTHQUAKE, "method": "avg-cos", "threshold": 0.5});
    let lines = |lines: [Value; 3]| json!(lines.map(|line| format!("{line}\n")).concat());
    let line_type = "application/x-ndjson";
    let named = json!({"id": 3, "a": "quake hits city", "b": CAT});
    let pair_lines = lines([json!([QUAKE, EARTHQUAKE]), json!({"a": QUAKE, "b": CAT}), named]);
    let text_lines = lines([json!(QUAKE), json!(CAT), json!({"id": "p3", "text": EARTHQUAKE})]);
    let question = json!({"query": "earthquake", "top_k": 1});
    let second = json!({"id": "p2", "text": "football results"});
    let rank_lines = lines([question, json!("quake hits city"), second]);
    let candidates = json!(["quake hits city", {"id": "p2", "text": "football results"}]);
    let rank = json!({"query": "earthquake", "candidates": candidates, "top_k": 1});
    let held = json!({"collection": "news", "query": "earthquake", "top_k": 1});
    let item = json!({"id": "a", "text": QUAKE, "time": "2024-05-01T10:00:00Z"});
    let attributes = json!({"lang": "en", "year": 2024});
    let second = json!({"id": "b", "text": CAT, "attributes": attributes, "data": {"likes": 3}});
    let items = json!({"items": [item, second]});
    let item_lines = json!(format!("{item}\n{second}\n"));
    let embed = json!({"texts": [QUAKE, CAT], "encoding": "base64", "normalize": true});
    let explain = json!({"a": QUAKE, "b": EARTHQUAKE});
    let documents = json!({"query": "earthquake", "documents": [CAT, QUAKE], "top_n": 1});
    let texts = json!({"query": "earthquake", "texts": [CAT, QUAKE]});
    let input = json!({"input": [QUAKE, CAT]});
    let inputs = json!({"inputs": [QUAKE, CAT]});
    let sentences = json!({"inputs": {"source_sentence": QUAKE, "sentences": [EARTHQUAKE, CAT]}});
    let score = json!({"queries": QUAKE, "documents": [EARTHQUAKE, CAT]});
    let merge = "/collections/{name}/events/{id}/merge";
    let split = "/collections/{name}/events/{id}/split";
    let named_embed = "/m/{model}/{method}/embed";
    let named_similarity = "/m/{model}/{method}/similarity";
    vec![
        ("/v1/embeddings", json_type, "texts", input.clone()),
        ("/v2/rerank", json_type, "documents", documents.clone()),
        ("/rerank", json_type, "documents", documents),
        ("/rerank", json_type, "texts", texts),
        (named_embed, json_type, "texts", inputs.clone()),
        (named_similarity, json_type, "sentences", sentences.clone()),
        ("/", json_type, "texts", inputs),
        ("/", json_type, "sentences", sentences),
        ("/api/embed", json_type, "texts", input),
        ("/api/embeddings", json_type, "a text", json!({"prompt": QUAKE})),
        ("/api/show", json_type, "a model", json!({"model": "default"})),
        ("/score", json_type, "one against many", score),
        ("/vectors", json_type, "a text", json!({"text": QUAKE})),
        ("/similarity", json_type, "pairs", pairs),
        ("/similarity", json_type, "one pair", pair),
        ("/similarity", line_type, "lines", pair_lines),
        ("/rank", json_type, "candidates", rank),
        ("/rank", json_type, "a collection", held),
        ("/rank", line_type, "lines", rank_lines),
        ("/collections/{name}/items", json_type, "items", items.clone()),
        ("/collections/{name}/items", line_type, "lines", item_lines.clone()),
        (merge, json_type, "events", json!({"events": ["b"]})),
        (split, json_type, "items", json!({"ids": ["b"]})),
        ("/collections/{name}/match", json_type, "texts", items),
        ("/collections/{name}/match", line_type, "lines", item_lines),
        ("/embed", json_type, "texts", embed),
        ("/embed", line_type, "lines", text_lines),
        ("/explain", json_type, "two texts", explain),
    ]
}

/// Bodies of PUT and PATCH: verb, path, media type, name, body.
fn put_bodies() -> [(&'static str, &'static str, &'static str, &'static str, Value); 4] {
    let (json_type, line_type) = ("application/json", "application/x-ndjson");
    // Without a ttl, under which items of other examples would be gone at once.
    let newest = json!({"max_items": 100_000});
    let item = json!({"text": QUAKE, "attributes": {"lang": "en"}});
    let patch = json!({"attributes": {"lang": "de", "old": null}});
    let patches = json!("{\"id\":\"a\",\"attributes\":{\"views\":17}}\n");
    [
        ("put", "/collections/{name}", json_type, "the newest items", newest),
        ("put", "/collections/{name}/items/{id}", json_type, "an item", item),
        ("patch", "/collections/{name}/items/{id}", json_type, "attributes", patch),
        ("patch", "/collections/{name}/items", line_type, "lines", patches),
    ]
}

pub(super) fn put(document: &mut Value) {
    for (path, media_type, name, body) in bodies() {
        // A server need not offer every dialect.
        if let Some(item) = document["paths"].get_mut(path) {
            let content = &mut item["post"]["requestBody"]["content"][media_type];
            content["examples"][name] = json!({"value": body});
        }
    }
    for (verb, path, media_type, name, body) in put_bodies() {
        let content = &mut document["paths"][path][verb]["requestBody"]["content"];
        content[media_type]["examples"][name] = json!({"value": body});
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.filter_map(|(_, item)| item.as_object_mut()).flatten();
    for (_, operation) in operations {
        for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
            let described = response["description"].as_str().unwrap_or_default().to_owned();
            let content = response.pointer_mut("/content/application~1problem+json");
            let Some(content) = content else { continue };
            let of_status = |code: &&Code| code.status().as_str() == status;
            let codes = Code::ALL.iter().filter(of_status).filter(|code| {
                described.split(", ").any(|name| name.trim_matches('`') == code.name())
            });
            for code in codes {
                content["examples"][code.name()] = json!({"value": problem(*code)});
            }
        }
    }
}

fn problem(code: Code) -> Value {
    json!({
        "type": code.uri(),
        "title": code.title(),
        "status": code.status().as_u16(),
        "code": code.name(),
        "detail": code.title(),
        "request_id": "ecafda5d83ad173c00000006",
    })
}
