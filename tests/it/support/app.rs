//! The service in this process: requests go to the router itself, without sockets.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use cognate::engine::Engine;
use cognate_server::http::{App, Models, Peer, Settings};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::support;

/// A service over the tiny model.
#[derive(Clone)]
pub struct TestApp {
    /// What all requests share.
    pub app: Arc<App>,
    router: Router,
}

/// An answer.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl TestApp {
    /// With the usual settings.
    pub fn new() -> Self {
        Self::with(|_| ())
    }

    /// Over a model that has no vector for a word it does not list.
    pub fn strict() -> Self {
        Self::with_model(support::strict(), |_| ())
    }

    /// With other settings.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with_model(support::served(), change)
    }

    /// With another model.
    pub fn with_model(model: cognate::model::Model, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        let engine = Engine::new(model).unwrap().with_limits(settings.text_limits());
        Self::over(App::with_models(settings, Models::with_engine("tiny", engine)).unwrap())
    }

    /// Over a service as it is.
    pub fn over(app: Arc<App>) -> Self {
        Self { router: app.router(), app }
    }

    /// Sends a request. A refusal must be one that the document lists for the route.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let verb = request.method().as_str().to_lowercase();
        let path = request.uri().path().to_owned();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        answer.check_listed(&verb, &path);
        answer
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(post(path, body)).await
    }

    /// Posts JSON and expects an answer.
    pub async fn ask(&self, path: &str, body: Value) -> Value {
        let answer = self.post(path, body.to_string()).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} {body}: {}", answer.text());
        answer.json()
    }

    /// Waits until no job computes and no request holds units, for at most `most`.
    pub async fn until_idle(&self, most: Duration) {
        let begun = Instant::now();
        while self.app.compute.counts() != (0, 0) || self.app.admission.in_use() > 0 {
            let (jobs, units) = (self.app.compute.counts(), self.app.admission.in_use());
            assert!(begun.elapsed() < most, "jobs {jobs:?} and {units} units after {most:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Gets a path.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }
}

/// A request with a JSON body from this machine.
pub fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path).header("content-type", "application/json");
    request.extension(Peer(([127, 0, 0, 1], 1).into())).body(body.into()).unwrap()
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Holds a refusal of a documented route to what the document lists.
    fn check_listed(&self, verb: &str, path: &str) {
        static DOCUMENT: LazyLock<Value> = LazyLock::new(cognate_server::http::openapi_document);
        let Some(operation) = DOCUMENT["paths"].get(path).and_then(|item| item.get(verb)) else {
            return;
        };
        if self.header("content-type") == "application/problem+json" {
            let listed = &operation["responses"][self.status.as_str()]["description"];
            let code = format!("`{}`", self.json()["code"].as_str().unwrap_or_default());
            if ["`not_found`", "`method_not_allowed`"].contains(&code.as_str()) {
                // These belong to no route, and one of a dialect may be switched off.
                return;
            }
            let listed =
                listed.as_str().is_some_and(|codes| codes.split(", ").any(|it| it == code));
            assert!(listed, "{verb} {path} does not list {} {code}", self.status);
        }
    }

    /// Holds the answer to be a refusal as promised, and gives its document.
    pub fn refusal(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{code}: {}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.header("cache-control"), "no-store");
        let problem = self.json();
        assert_eq!(problem["code"], code);
        assert_eq!(problem["status"], status);
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        let slug = code.replace('_', "-");
        assert_eq!(problem["type"], format!("/problems/{slug}"));
        for text in ["title", "detail"] {
            assert!(problem[text].as_str().is_some_and(|text| !text.is_empty()));
        }
        let faults = problem.get("errors").map_or(0, |list| list.as_array().unwrap().len());
        assert!(faults <= 16 && (faults == 0 || status == 422), "{problem}");
        let wait = problem.get("retry_after_s").map(Value::to_string);
        assert_eq!(wait.unwrap_or_default(), self.header("retry-after"));
        problem
    }
}
