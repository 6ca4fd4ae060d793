//! The model and the method that a request of another dialect names: in its path, in its field
//! `model` (`NAME` or `NAME:METHOD`), or not at all.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use crate::http::app::App;
use crate::http::dialect::{Dialect, StandIn};
use crate::http::error::{ApiError, Code, Result};

/// The tag that Ollama's clients append to a name without one.
const NO_TAG: &str = "latest";

#[derive(Debug, Clone, Default)]
pub(super) struct Address {
    named: Option<[String; 2]>,
    /// The substitute for the vector of a text without one.
    pub stand_in: StandIn,
    /// Whether documents are reranked here for clients of Cohere and similar servers.
    pub rerank: bool,
    /// Whether the path is one of text-embeddings-inference.
    pub tei: bool,
}

#[derive(Debug, Default)]
pub(super) struct Target<'b> {
    pub model: Option<Cow<'b, str>>,
    pub method: Option<Cow<'b, str>>,
}

impl Address {
    /// The same address, on a path that text-embeddings-inference does not have.
    pub(super) fn without_tei(self) -> Self {
        Self { rerank: true, tei: false, ..self }
    }

    /// The model and method of a request, which may name a model. The path takes precedence, so
    /// that a client may still send the name of another server's model.
    pub(super) fn target<'b>(&self, model: Option<Cow<'b, str>>) -> Target<'b> {
        if let Some([model, method]) = &self.named {
            let owned = |name: &String| Some(Cow::Owned(name.clone()));
            return Target { model: owned(model), method: owned(method) };
        }
        let Some(model) = model else { return Target::default() };
        // Names of models have no colon.
        let Some(at) = model.find(':') else {
            return Target { model: Some(model), method: None };
        };
        let (name, method) = match model {
            Cow::Borrowed(model) => (model[..at].into(), model[at + 1..].into()),
            Cow::Owned(model) => (model[..at].to_owned().into(), model[at + 1..].to_owned().into()),
        };
        let method: Cow<'b, str> = method;
        Target { model: Some(name), method: Some(method).filter(|method| method != NO_TAG) }
    }
}

impl FromRequestParts<Arc<App>> for Address {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let params = params.map_err(|_| ApiError::new(Code::NotFound, "the path is not UTF-8"))?;
        let of = |name: &str| {
            params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let named = of("model").zip(of("method")).map(|(model, method)| [model, method]);
        let settings = &app.settings;
        Ok(Self {
            named,
            stand_in: settings.dialect_unknown,
            rerank: settings.dialects.contains(&Dialect::Rerank),
            tei: settings.dialects.contains(&Dialect::Tei),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_a_name_and_a_tag_are_told_apart() {
        let plain = Address::default();
        let path = Address { named: Some(["m".into(), "bm25".into()]), ..Address::default() };
        let cases = [
            (&plain, None, (None, None)),
            (&plain, Some("tweets"), (Some("tweets"), None)),
            (&plain, Some("tweets:latest"), (Some("tweets"), None)),
            (&plain, Some("tweets:avg-cos"), (Some("tweets"), Some("avg-cos"))),
            (&path, Some("gpt:x"), (Some("m"), Some("bm25"))),
            (&path, None, (Some("m"), Some("bm25"))),
        ];
        for (address, model, (name, method)) in cases {
            for model in [model.map(Cow::Borrowed), model.map(|it| Cow::Owned(it.to_owned()))] {
                let target = address.target(model);
                assert_eq!(target.model.as_deref(), name);
                assert_eq!(target.method.as_deref(), method);
            }
        }
    }
}
