//! The gate of an overloaded service, which refuses questions by their head alone: those that their
//! route would refuse now, in the same words, with the same id, counters and line in the log.
//! Errors that a route finds before it looks for room are left to the route.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::http::{Request, Response, header};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http_body_util::BodyExt;

use crate::http::app::App;
use crate::http::dialect::Dialect;
use crate::http::error::ApiError;
use crate::http::middleware::authorize;
use crate::http::middleware::authorize::authorise;
use crate::http::middleware::request_context::Recorded;
use crate::http::net::gate::Gate;
use crate::http::request::body;

pub(crate) struct QuestionGate {
    app: Arc<App>,
    paths: fn(&[Dialect]) -> HashSet<Arc<str>>,
    /// The paths, made when units are first scarce, so that a start does not wait for them.
    questions: OnceLock<HashSet<Arc<str>>>,
}

impl QuestionGate {
    pub(crate) fn new(app: Arc<App>, paths: fn(&[Dialect]) -> HashSet<Arc<str>>) -> Self {
        Self { app, paths, questions: OnceLock::new() }
    }

    /// Why there is no room for a question, if nothing else is wrong with its head.
    fn refusal(&self, request: &Request<()>) -> Option<ApiError> {
        let (app, headers) = (&self.app, request.headers());
        body::check_json(headers).ok()?;
        body::no_settings(request.uri()).ok()?;
        let bytes = body::announced(headers, &app.settings).ok()??;
        // Answers to other origins need the CORS layer, which the gate bypasses.
        let crosses = !app.settings.cors_origins.is_empty() && headers.contains_key(header::ORIGIN);
        if crosses {
            return None;
        }
        let client = authorize::client(app, request);
        app.admission.refusal(&client, app.settings.items_in(bytes))
    }
}

impl Gate for QuestionGate {
    fn may_refuse(&self) -> bool {
        self.app.admission.is_crowded()
    }

    fn refuse(&self, mut request: Request<()>) -> Option<Response<Bytes>> {
        let questions = self.questions.get_or_init(|| (self.paths)(&self.app.settings.dialects));
        let route = questions.get(request.uri().path())?;
        let refusal = self.refusal(&request)?;
        let record = Recorded::at(&self.app, &mut request, Arc::clone(route));
        // A caller without a valid key gets 401, and is not told to retry.
        let refusal = authorise(&self.app, &mut request).err().unwrap_or(refusal);
        let (head, body) = record.finish(refusal.into_response()).into_parts();
        // An error body is complete at once.
        let body = body.collect().now_or_never()?.ok()?.to_bytes();
        Some(Response::from_parts(head, body))
    }
}
