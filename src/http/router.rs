//! Which path leads where, and what stands around the handlers, from the outside in: the frame
//! with a net under panics, CORS, and for questions the keys.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::Method as Verb;
use axum::http::header;
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;
use tower_http::cors::AllowOrigin;
use tower_http::cors::CorsLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::api::catalogue;
use crate::http::api::docs;
use crate::http::api::embed;
use crate::http::api::explain;
use crate::http::api::operations;
use crate::http::api::pages;
use crate::http::api::rank;
use crate::http::api::similarity;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::middleware::authorize::AuthorizeLayer;
use crate::http::middleware::request_context::RequestContextLayer;
use crate::http::openapi;

type Routes = OpenApiRouter<Arc<App>>;

/// Routes that need a key where keys are set.
fn questions() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(similarity::similarity))
        .routes(routes!(embed::embed))
        .routes(routes!(rank::rank))
        .routes(routes!(explain::explain))
        .routes(routes!(catalogue::methods))
        .routes(routes!(catalogue::models))
}

/// Whether the process lives.
fn life() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(operations::health))
        .route("/livez", get(operations::health))
        .route("/healthz", get(operations::health))
}

/// What operators look at.
fn state() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(operations::ready))
        .route("/readyz", get(operations::ready))
        .routes(routes!(operations::metrics))
}

/// What operators order.
fn orders() -> Routes {
    OpenApiRouter::new().routes(routes!(operations::reload))
}

/// What people look at.
fn people() -> Router<Arc<App>> {
    Router::new()
        .route("/openapi.json", get(served_document))
        .route("/", get(pages::playground))
        .route("/assets/{file}", get(pages::asset))
        .route("/docs", get(pages::docs))
        .route("/docs/{file}", get(pages::docs_file))
}

/// The document of the whole surface, whatever models a server has.
pub fn document() -> Value {
    openapi::document(documented())
}

async fn served_document(State(app): State<Arc<App>>) -> Response {
    docs::answer(&app, documented)
}

/// The documents of all routes.
fn documented() -> OpenApi {
    questions().merge(life()).merge(state()).merge(orders()).into_openapi()
}

fn plain(routes: Routes) -> Router<Arc<App>> {
    routes.split_for_parts().0
}

impl App {
    /// The routes of the public address.
    pub fn router(self: &Arc<Self>) -> Router {
        self.router_with(Router::new())
    }

    /// The routes of the public address and more questions, behind the same frame and keys.
    pub fn router_with(self: &Arc<Self>, more: Router<Arc<Self>>) -> Router {
        let questions = authorized(self, plain(questions()).merge(more));
        let mut routes = questions.merge(plain(life())).merge(people());
        if self.settings.admin_listen.is_none() {
            routes = routes.merge(plain(state())).merge(authorized(self, plain(orders())));
        }
        surround(self, routes)
    }

    /// The routes of the operators' own address.
    pub fn admin_router(self: &Arc<Self>) -> Router {
        let routes = plain(life()).merge(plain(state())).merge(authorized(self, plain(orders())));
        surround(self, routes)
    }
}

fn authorized(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.route_layer(AuthorizeLayer::new(Arc::clone(app)))
}

fn surround(app: &Arc<App>, routes: Router<Arc<App>>) -> Router {
    let mut routes = routes.fallback(not_found).method_not_allowed_fallback(not_allowed);
    if !app.settings.cors_origins.is_empty() {
        let origins = app.settings.cors_origins.iter();
        let origins = origins.filter_map(|origin| HeaderValue::from_str(origin).ok());
        let allowed = match app.settings.cors_origins.as_slice() {
            [any] if any == "*" => AllowOrigin::any(),
            _ => AllowOrigin::list(origins),
        };
        let cors = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Verb::GET, Verb::POST])
            .allow_headers([header::CONTENT_TYPE, header::AUTHORIZATION]);
        routes = routes.layer(cors);
    }
    routes.layer(RequestContextLayer::new(Arc::clone(app))).with_state(Arc::clone(app))
}

async fn not_found(verb: Verb) -> ApiError {
    // Neither verb is taken at any path, and one of them comes without a path.
    if [Verb::CONNECT, Verb::TRACE].contains(&verb) {
        let taken = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
        return not_allowed().await.with_header(header::ALLOW, taken);
    }
    ApiError::new(Code::NotFound, "there is nothing at this path; /docs lists what there is")
}

async fn not_allowed() -> ApiError {
    ApiError::new(Code::MethodNotAllowed, "this path does not take that method; see `allow`")
}
