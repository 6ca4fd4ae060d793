//! Routes as endpoints declare them: one declaration yields the handlers, their part of the
//! document, and their names in counters. Which routes exist is not known here.

use std::sync::Arc;

use axum::Router;
use axum::http::Method as Verb;
use axum::routing::MethodRouter;
use utoipa::openapi::{OpenApi, SecurityRequirement};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::http::app::App;
use crate::http::dialect::Dialect;
use crate::http::openapi::{operations, refusals};

pub(crate) struct Routes {
    declared: OpenApiRouter<Arc<App>>,
    undocumented: Vec<(Verb, String)>,
    keyed: bool,
    dialect: Option<Dialect>,
}

pub(crate) struct RouteName {
    pub verb: Verb,
    pub path: String,
    /// The route's dialect; `None` if several share it.
    pub dialect: Option<Dialect>,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            declared: OpenApiRouter::default(),
            undocumented: Vec::new(),
            keyed: false,
            dialect: Some(Dialect::Native),
        }
    }
}

impl Routes {
    /// Adds a route that `#[utoipa::path]` declares at its handler: `routes!(handler)`.
    pub fn with(mut self, route: UtoipaMethodRouter<Arc<App>>) -> Self {
        self.declared = self.declared.routes(route);
        self
    }

    /// Adds a path that the document leaves out: another name of a route, or a page.
    pub fn undocumented(self, path: &str, get: MethodRouter<Arc<App>>) -> Self {
        self.unlisted(Verb::GET, path, get)
    }

    /// Adds another path for questions, which the document leaves out.
    pub(crate) fn also(self, path: &str, post: MethodRouter<Arc<App>>) -> Self {
        self.unlisted(Verb::POST, path, post)
    }

    fn unlisted(mut self, verb: Verb, path: &str, handler: MethodRouter<Arc<App>>) -> Self {
        self.declared = self.declared.route(path, handler);
        self.undocumented.push((verb, path.to_owned()));
        self
    }

    /// Sets the dialect of the routes; `None` if several dialects share them.
    pub(crate) fn in_dialect(self, dialect: Option<Dialect>) -> Self {
        Self { dialect, ..self }
    }

    /// Adds routes that neither the document nor the counters list.
    pub fn and(mut self, more: Router<Arc<App>>) -> Self {
        self.declared = self.declared.merge(more.into());
        self
    }

    /// Requires a key on all of these routes, if keys are configured.
    pub(crate) fn behind_keys(mut self) -> Self {
        let dialect = self.documented();
        for item in self.declared.get_openapi_mut().paths.paths.values_mut() {
            for (_, operation) in operations(item) {
                let no_scopes: [&str; 0] = [];
                let key = SecurityRequirement::new("key", no_scopes);
                operation.security = Some(vec![SecurityRequirement::default(), key]);
                for &code in refusals::KEYED {
                    refusals::list(&mut operation.responses.responses, code, dialect);
                }
            }
        }
        self.keyed = true;
        self
    }

    pub(crate) fn names(mut self) -> Vec<RouteName> {
        let mut names = self.undocumented;
        for (path, item) in &mut self.declared.get_openapi_mut().paths.paths {
            names.extend(operations(item).map(|(verb, _)| (verb, path.clone())));
        }
        let dialect = self.dialect;
        names.into_iter().map(|(verb, path)| RouteName { verb, path, dialect }).collect()
    }

    pub(crate) fn into_document(mut self) -> OpenApi {
        let dialect = self.documented();
        for item in self.declared.get_openapi_mut().paths.paths.values_mut() {
            for (_, operation) in operations(item) {
                let responses = &mut operation.responses.responses;
                refusals::ANY.iter().for_each(|&code| refusals::list(responses, code, dialect));
                if self.dialect.is_none() {
                    refusals::share(responses);
                }
            }
        }
        self.declared.into_openapi()
    }

    /// The dialect that the document states, where several share the routes.
    fn documented(&self) -> Dialect {
        self.dialect.unwrap_or(Dialect::Native)
    }

    /// The router, and whether keys are required.
    pub fn into_router(self) -> (Router<Arc<App>>, bool) {
        (self.declared.into(), self.keyed)
    }
}
