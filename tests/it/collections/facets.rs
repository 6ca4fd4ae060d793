//! Items counted by the values of their attributes.

use serde_json::{Value, json};

use crate::collections::ranking::{app_with, items};
use crate::collections::{call, done};

#[tokio::test]
async fn items_are_counted_by_their_values() {
    let app = app_with(&items(90)).await;
    let more = json!({"items": [
        {"id": "a", "text": "a", "attributes": {"n": 1.0, "open": true}},
        {"id": "b", "text": "b", "attributes": {"n": "1", "lang": "en"}},
    ]});
    done(&app, "POST", "/collections/news/items", Some(&more)).await;
    let path = "/collections/news/facets";
    let told = done(&app, "GET", &format!("{path}?names=lang,n,open,colour&limit=2"), None).await;
    let facet = |name: &str, items: usize, distinct: usize, values: Value| json!({"name": name, "items": items, "distinct": distinct, "values": values});
    let value = |value: Value, items: usize| json!({"value": value, "items": items});
    let expected = json!({"total": 92, "names_unknown": ["colour"], "facets": [
        facet("lang", 91, 2, json!([value(json!("en"), 46), value(json!("de"), 45)])),
        facet("n", 92, 91, json!([value(json!(1), 2), value(json!(0), 1)])),
        facet("open", 1, 1, json!([value(json!(true), 1)])),
        facet("colour", 0, 0, json!([])),
    ]});
    assert_eq!(told, expected);
    // {"n": {"lt": 4}}
    let asked = "?names=lang&filter=%7B%22n%22%3A%7B%22lt%22%3A4%7D%7D";
    let told = done(&app, "GET", &format!("{path}{asked}"), None).await;
    assert_eq!(told["total"], 5);
    assert_eq!(told["facets"][0]["values"], json!([value(json!("de"), 2), value(json!("en"), 2)]));
    for (asked, code, pointer) in [
        ("", "invalid_field", ""),
        ("?names=a,b,c,d,e,f,g,h,i", "out_of_range", "/names"),
        ("?names=a&limit=1001", "out_of_range", "/limit"),
        ("?names=a&filter=1", "invalid_field", "/filter"),
    ] {
        let problem = call(&app, "GET", &format!("{path}{asked}"), None).await.refusal(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{asked}");
    }
}
