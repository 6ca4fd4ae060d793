//! Collections: over HTTP in this process, and by the built binary that is killed under load.

mod alerts;
mod boosts;
mod command;
mod damaged;
mod disk;
mod events;
mod exhaustion;
mod facets;
mod handed_over;
mod hanging;
mod items;
mod killed;
mod matching;
mod memory;
mod promoted;
mod ranking;
mod replica;
mod shortlists;
mod similar;
mod tenants;
mod watched;

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::support::app::{Answer, TestApp};

/// Sends a request with a JSON body, or none.
pub async fn call(app: &TestApp, verb: &str, path: &str, body: Option<&Value>) -> Answer {
    let request = Request::builder().method(verb).uri(path);
    let request = match body {
        Some(body) => {
            request.header("content-type", "application/json").body(Body::from(body.to_string()))
        }
        None => request.body(Body::empty()),
    };
    app.send(request.unwrap()).await
}

/// The same, which must be answered.
pub async fn done(app: &TestApp, verb: &str, path: &str, body: Option<&Value>) -> Value {
    let answer = call(app, verb, path, body).await;
    assert_eq!(answer.status, 200, "{verb} {path}: {}", answer.text());
    answer.json()
}
