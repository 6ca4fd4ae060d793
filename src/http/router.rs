//! Assembles the service: the routes of each address, and the layers around their handlers, from
//! the outside in: compression, if configured; the frame with a net under panics, CORS, and keys
//! for routes that require them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method as Verb, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use utoipa::openapi::OpenApi;

use crate::http::app::{App, AppError};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code};
use crate::http::middleware::authorize::AuthorizeLayer;
use crate::http::middleware::gate::QuestionGate;
use crate::http::middleware::request_context::RequestContextLayer;
use crate::http::net::gate::Gate;
use crate::http::registry::models::Models;
use crate::http::routes::{RouteName, Routes};
use crate::http::settings::Settings;
use crate::http::{api, compatible, openapi};

/// Answers shorter than this are not compressed.
const MIN_COMPRESSED: u64 = 1 << 10;

/// The document of the whole API, whatever models a server has.
pub fn openapi_document() -> Value {
    openapi::document(documented(&Settings::default().dialects))
}

impl App {
    pub fn new(settings: Settings) -> Result<Arc<Self>, AppError> {
        let (mut routes, mut dialects) = (Vec::new(), HashMap::new());
        for route in all(&settings.dialects).into_iter().flat_map(Routes::names) {
            // A page and a question of another dialect may have the same path.
            let known = dialects.entry(route.path.clone()).or_insert(route.dialect);
            *known = known.filter(|_| *known == route.dialect);
            routes.push((route.verb, route.path));
        }
        Self::with_routes(settings, &routes, dialects)
    }

    /// A service with models that are open already.
    pub fn with_models(settings: Settings, models: Models) -> Result<Arc<Self>, AppError> {
        let app = Self::new(settings)?;
        app.set_models(models);
        Ok(app)
    }

    /// The gate that requests to the public address pass first.
    pub fn gate(self: &Arc<Self>) -> Arc<dyn Gate> {
        Arc::new(QuestionGate::new(Arc::clone(self), paths))
    }

    pub fn router(self: &Arc<Self>) -> Router {
        self.router_with(Router::new())
    }

    /// The routes of the public address and `more`, behind the same frame and keys.
    pub fn router_with(self: &Arc<Self>, more: Router<Arc<Self>>) -> Router {
        let mut groups = questions(&self.settings.dialects);
        groups.extend([life(&self.settings.dialects), people(), api::problems()]);
        if more.has_routes() {
            groups.push(Routes::default().and(more).behind_keys());
        }
        if self.settings.admin_listen.is_none() {
            groups.extend([api::state(), api::orders()]);
        }
        surround(self, groups)
    }

    pub(crate) fn admin_router(self: &Arc<Self>) -> Router {
        surround(self, vec![api::life(), api::state(), api::orders(), api::problems()])
    }
}

/// The routes that report whether the process lives, native and in these dialects.
fn life(dialects: &[Dialect]) -> Routes {
    compatible::life(api::life(), dialects)
}

fn questions(dialects: &[Dialect]) -> Vec<Routes> {
    let mut groups = vec![api::questions(), api::collections::collections()];
    match dialects.contains(&Dialect::Tei) {
        true => groups.push(compatible::shared()),
        false => groups.push(api::shared()),
    }
    groups.extend(compatible::routes(dialects));
    groups.into_iter().map(Routes::behind_keys).collect()
}

/// The paths of questions that a gate may refuse.
fn paths(dialects: &[Dialect]) -> HashSet<Arc<str>> {
    let asked = |route: &RouteName| route.verb == Verb::POST && !route.path.contains('{');
    let routes = questions(dialects).into_iter().flat_map(Routes::names);
    routes.filter(asked).map(|route| route.path.into()).collect()
}

fn people() -> Routes {
    api::people().undocumented("/openapi.json", get(openapi))
}

fn all(dialects: &[Dialect]) -> Vec<Routes> {
    let mut groups = questions(dialects);
    groups.extend([life(dialects), api::state(), api::orders(), people(), api::problems()]);
    groups
}

fn documented(dialects: &[Dialect]) -> impl Iterator<Item = OpenApi> {
    all(dialects).into_iter().map(Routes::into_document)
}

/// The limits that the document states, under the settings in force.
fn limits(app: &App) -> [(&'static str, usize); 10] {
    let settings = &app.settings;
    [
        ("NonEmptyText/maxLength", settings.text_chars),
        ("PairsRequest/properties/pairs/maxItems", settings.max_pairs),
        ("Texts/oneOf/1/maxItems", settings.max_texts),
        ("ItemsRequest/properties/items/maxItems", settings.max_texts),
        ("MatchRequest/properties/items/maxItems", settings.max_texts),
        ("RankRequest/properties/candidates/maxItems", settings.max_candidates),
        ("RankRequest/properties/exclude/maxItems", settings.max_candidates),
        ("RankRequest/properties/queries/maxItems", settings.max_queries),
        ("RankRequest/properties/like/maxItems", settings.max_queries),
        ("RankRequest/properties/unlike/maxItems", settings.max_queries),
    ]
}

async fn openapi(State(app): State<Arc<App>>) -> Response {
    let models = app.models();
    // Made once for these models, so that repeated requests take neither time nor memory.
    let made = || {
        let documented = documented(&app.settings.dialects);
        openapi::of_server(documented, &models, &limits(&app)).to_string().into()
    };
    let json = models.document.get_or_init(made);
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], json.clone()).into_response()
}

/// The handlers of these routes, behind the keys if they require one.
fn handlers(app: &Arc<App>, routes: Routes) -> Router<Arc<App>> {
    match routes.into_router() {
        (routes, true) => routes.route_layer(AuthorizeLayer::new(Arc::clone(app))),
        (routes, false) => routes,
    }
}

fn surround(app: &Arc<App>, groups: Vec<Routes>) -> Router {
    let groups = groups.into_iter().map(|routes| handlers(app, routes));
    let mut routes = groups
        .fold(Router::new(), Router::merge)
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed);
    if !app.settings.cors_origins.is_empty() {
        let origins = app.settings.cors_origins.iter();
        let origins = origins.filter_map(|origin| HeaderValue::from_str(origin).ok());
        let allowed = match app.settings.cors_origins.as_slice() {
            [any] if any == "*" => AllowOrigin::any(),
            _ => AllowOrigin::list(origins),
        };
        let cors = CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Verb::GET, Verb::POST, Verb::PUT, Verb::PATCH, Verb::DELETE])
            .allow_headers(AllowHeaders::mirror_request());
        routes = routes.layer(cors);
    }
    routes = routes.layer(RequestContextLayer::new(Arc::clone(app)));
    if app.settings.compress_answers {
        // Compression would delay the events of a stream until there are enough of them.
        let is_whole = NotForContentType::SSE.and(NotForContentType::new("application/x-ndjson"));
        let is_meant = SizeAbove::new(MIN_COMPRESSED).and(is_whole);
        routes = routes.layer(
            CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_meant),
        );
    }
    routes.with_state(Arc::clone(app))
}

async fn not_found(verb: Verb) -> ApiError {
    // Neither method is allowed at any path, and CONNECT has no path.
    if [Verb::CONNECT, Verb::TRACE].contains(&verb) {
        let taken = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
        return not_allowed().await.with_header(header::ALLOW, taken);
    }
    ApiError::new(Code::NotFound, "there is nothing at this path; /docs lists what there is")
}

async fn not_allowed() -> ApiError {
    ApiError::new(Code::MethodNotAllowed, "this path does not take that method; see `allow`")
}
