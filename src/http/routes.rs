//! Routes as endpoints declare them: from one declaration come the handlers, what the document
//! says of them, and what the counters call them. Which routes there are is not known here.

use std::sync::Arc;

use axum::Router;
use axum::http::Method as Verb;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa::openapi::SecurityRequirement;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::http::app::App;
use crate::http::openapi::operations;
use crate::http::openapi::refusals;

/// Routes that belong together.
#[derive(Default)]
pub(crate) struct Routes {
    declared: OpenApiRouter<Arc<App>>,
    undocumented: Vec<(Verb, String)>,
    keyed: bool,
}

impl Routes {
    /// Adds a route as `#[utoipa::path]` declares it beside its handler: `routes!(handler)`.
    pub fn with(mut self, route: UtoipaMethodRouter<Arc<App>>) -> Self {
        self.declared = self.declared.routes(route);
        self
    }

    /// Adds a path that the document leaves out: another name of a route, or a page.
    pub fn undocumented(mut self, path: &str, get: MethodRouter<Arc<App>>) -> Self {
        self.declared = self.declared.route(path, get);
        self.undocumented.push((Verb::GET, path.to_owned()));
        self
    }

    /// Adds routes that neither the document nor the counters know.
    pub fn and(mut self, more: Router<Arc<App>>) -> Self {
        self.declared = self.declared.merge(more.into());
        self
    }

    /// Asks for a key on all of these routes, where keys are set.
    pub(crate) fn behind_keys(mut self) -> Self {
        for item in self.declared.get_openapi_mut().paths.paths.values_mut() {
            for (_, operation) in operations(item) {
                let no_scopes: [&str; 0] = [];
                let key = SecurityRequirement::new("key", no_scopes);
                operation.security = Some(vec![SecurityRequirement::default(), key]);
                for &code in refusals::KEYED {
                    refusals::list(&mut operation.responses.responses, code);
                }
            }
        }
        self.keyed = true;
        self
    }

    /// Verb and path of each route.
    pub(crate) fn names(mut self) -> Vec<(Verb, String)> {
        let mut names = self.undocumented;
        for (path, item) in &mut self.declared.get_openapi_mut().paths.paths {
            names.extend(operations(item).map(|(verb, _)| (verb, path.clone())));
        }
        names
    }

    /// What the document says of them.
    pub(crate) fn into_document(self) -> OpenApi {
        self.declared.into_openapi()
    }

    /// The handlers, and whether a key is asked for.
    pub fn into_router(self) -> (Router<Arc<App>>, bool) {
        (self.declared.into(), self.keyed)
    }
}
