//! Which path leads where, and what stands around the handlers, from the outside in: the frame
//! with a net under panics, CORS, and for questions the keys.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::Method as Verb;
use axum::http::header;
use axum::routing::get;
use tower_http::cors::AllowOrigin;
use tower_http::cors::CorsLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::app::App;
use crate::http::embed;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::explain;
use crate::http::frame::Frame;
use crate::http::guard::Guard;
use crate::http::listing;
use crate::http::openapi;
use crate::http::pages;
use crate::http::rank;
use crate::http::similarity;
use crate::http::status;

type Routes = OpenApiRouter<Arc<App>>;

/// Routes that need a key where keys are set.
fn questions() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(similarity::similarity))
        .routes(routes!(embed::embed))
        .routes(routes!(rank::rank))
        .routes(routes!(explain::explain))
        .routes(routes!(listing::methods))
        .routes(routes!(listing::models))
}

/// Whether the process lives.
fn life() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(status::health))
        .route("/livez", get(status::health))
        .route("/healthz", get(status::health))
}

/// What operators look at.
fn state() -> Routes {
    OpenApiRouter::new()
        .routes(routes!(status::ready))
        .route("/readyz", get(status::ready))
        .routes(routes!(status::metrics))
}

/// What operators order.
fn orders() -> Routes {
    OpenApiRouter::new().routes(routes!(status::reload))
}

/// What people look at.
fn people() -> Router<Arc<App>> {
    Router::new()
        .route("/openapi.json", get(openapi::openapi))
        .route("/", get(pages::playground))
        .route("/assets/{file}", get(pages::asset))
        .route("/docs", get(pages::docs))
        .route("/docs/{file}", get(pages::docs_file))
}

/// The documents of all routes.
pub fn documented() -> OpenApi {
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
        let questions = guarded(self, plain(questions()).merge(more));
        let mut routes = questions.merge(plain(life())).merge(people());
        if self.settings.admin_listen.is_none() {
            routes = routes.merge(plain(state())).merge(guarded(self, plain(orders())));
        }
        surround(self, routes)
    }

    /// The routes of the operators' own address.
    pub fn admin_router(self: &Arc<Self>) -> Router {
        let routes = plain(life()).merge(plain(state())).merge(guarded(self, plain(orders())));
        surround(self, routes)
    }
}

fn guarded(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.route_layer(Guard::new(Arc::clone(app)))
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
    routes.layer(Frame::new(Arc::clone(app))).with_state(Arc::clone(app))
}

async fn not_found() -> ApiError {
    ApiError::new(Code::NotFound, "there is nothing at this path; /docs lists what there is")
}

async fn not_allowed() -> ApiError {
    ApiError::new(Code::MethodNotAllowed, "this path does not take that method; see `allow`")
}
