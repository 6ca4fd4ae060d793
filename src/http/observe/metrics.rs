//! Metrics: series of a route exist from its first request on, the others at zero from the start.
//! Labels come from short fixed lists, so that no client can make them grow.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::{Method as Verb, StatusCode};
use cognate::engine::Counts;
use cognate::methods::Method;
use cognate_collections::{Activity, CollectionInfo};

use crate::http::build;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Bottleneck, Code};
use crate::http::observe::collections;
use crate::http::observe::collections::CollectionSeries;
use crate::http::observe::series::{
    Counter, Description, Gauge, Histogram, Kind, OTHER, Registry, families, named,
};
use crate::http::observe::streams::{EndReason, Outcome, StreamEnd};

pub(crate) const UNMATCHED: &str = "unmatched";

/// Labels of reasons for shedding work, besides the bottlenecks of an overloaded server.
const SHED: [(&str, Code); 4] = [
    ("deadline", Code::DeadlineExceeded),
    ("draining", Code::Draining),
    ("not_ready", Code::NotReady),
    ("quota", Code::RateLimited),
];

pub struct Metrics {
    registry: Registry,
    routes: HashMap<Arc<str>, Route>,
    methods: Vec<Counter>,
    dialects: Vec<Counter>,
    /// Ids of keys that have series of their own, from any key file so far.
    key_labels: Mutex<HashSet<String>>,
    nobody: Arc<KeyUse>,
    collections: CollectionSeries,
    collection_ranks: Histogram,
    texts: Counter,
    tokens: Counter,
    unknown_tokens: Counter,
    non_finite: Counter,
    pub in_flight: Gauge,
    pub connections: Gauge,
    pub connections_refused: Counter,
    pub panics: Counter,
    pub reloads: Counter,
    pub reload_failures: Counter,
    pub lateness: Histogram,
}

/// The series of a route that most of its requests need, from the first of them on.
#[derive(Default)]
struct Route {
    duration: OnceLock<Histogram>,
    /// Requests answered with 200, by verb.
    ok: Vec<(Verb, OnceLock<Counter>)>,
}

impl Metrics {
    /// The metrics of these routes (verb, path), with series for this many collections.
    pub fn new(routes: &[(Verb, String)], named_collections: usize) -> Self {
        let registry = Registry::new(&[FAMILIES, collections::FAMILIES].concat());
        let counter = |name, label: &str, value: &str| registry.counter(name, &[(label, value)]);
        let plain = |name| registry.counter(name, &[]);
        let gauge = |name| registry.gauge(name, &[]);
        let mut by_path: HashMap<Arc<str>, Route> =
            HashMap::from([(UNMATCHED.into(), Route::default())]);
        for (verb, path) in routes {
            by_path
                .entry(path.as_str().into())
                .or_default()
                .ok
                .push((verb.clone(), OnceLock::new()));
        }
        for reason in
            SHED.map(|(reason, _)| reason).into_iter().chain(Bottleneck::ALL.map(Bottleneck::name))
        {
            counter("cognate_shed_total", "reason", reason);
        }
        for part in RankPart::ALL {
            counter("cognate_rank_parts_total", "part", part.name());
        }
        for outcome in Outcome::ALL {
            counter("cognate_streams_ended_total", "outcome", outcome.name());
        }
        let method =
            |method: &Method| counter("cognate_method_requests_total", "method", method.name());
        let dialect =
            |dialect: Dialect| counter("cognate_dialect_requests_total", "dialect", dialect.name());
        let features = build::features();
        let built =
            [("version", build::VERSION), ("revision", build::REVISION), ("features", &features)];
        registry.gauge("cognate_build_info", &built).set(1.0);
        Self {
            routes: by_path,
            methods: Method::ALL.iter().map(method).collect(),
            dialects: Dialect::ALL.map(dialect).into(),
            key_labels: Mutex::default(),
            nobody: Arc::new(KeyUse::new(&registry, None, NONE)),
            collections: CollectionSeries::new(named_collections),
            collection_ranks: registry.histogram("cognate_collection_rank_duration_seconds", &[]),
            texts: plain("cognate_texts_total"),
            tokens: plain("cognate_tokens_total"),
            unknown_tokens: plain("cognate_unknown_tokens_total"),
            non_finite: plain("cognate_non_finite_total"),
            in_flight: gauge("cognate_requests_in_flight"),
            connections: gauge("cognate_connections"),
            connections_refused: plain("cognate_connections_refused_total"),
            panics: plain("cognate_panics_total"),
            reloads: plain("cognate_reloads_total"),
            reload_failures: plain("cognate_reload_failures_total"),
            lateness: registry.histogram("cognate_runtime_lateness_seconds", &[]),
            registry,
        }
    }

    /// Counts an answered request; `route` is the matched path. The time of ranking a collection
    /// depends on its size, so it has a histogram of its own.
    pub(crate) fn answered(
        &self,
        route: &str,
        verb: &Verb,
        status: StatusCode,
        (took, ranks_collection): (Duration, bool),
    ) {
        let Some((path, series)) = self.route(route) else { return };
        let labels = [("route", &**path)];
        let of_route = || self.registry.histogram("cognate_request_duration_seconds", &labels);
        match ranks_collection {
            true => self.collection_ranks.record(took.as_secs_f64()),
            false => series.duration.get_or_init(of_route).record(took.as_secs_f64()),
        }
        let counter = || request_counter(&self.registry, path, verb_label(verb), status.as_str());
        let ok = series.ok.iter().find(|(known, _)| known == verb);
        match ok.filter(|_| status == StatusCode::OK) {
            Some((_, ok)) => ok.get_or_init(counter).increment(1),
            None => counter().increment(1),
        }
    }

    /// Counts a stream that ended, and its request, whose status is 200 only if it ended well. If
    /// the request is unknown, only the outcome is counted.
    pub(crate) fn stream_ended(&self, end: StreamEnd, request: Option<(&str, &Verb, Duration)>) {
        let outcome = end.outcome.name();
        self.registry.counter("cognate_streams_ended_total", &[("outcome", outcome)]).increment(1);
        let Some((route, verb, took)) = request else { return };
        let Some((path, _)) = self.route(route) else { return };
        let status = if end.outcome == Outcome::Complete { "200" } else { outcome };
        request_counter(&self.registry, path, verb_label(verb), status).increment(1);
        let labels = [("route", &**path)];
        for (name, time) in [
            ("cognate_stream_duration_seconds", took),
            ("cognate_stream_computed_seconds", end.computed),
        ] {
            self.registry.histogram(name, &labels).record(time.as_secs_f64());
        }
        for (name, number) in [
            ("cognate_stream_lines_total", end.lines),
            ("cognate_stream_items_total", end.items),
            ("cognate_stream_read_bytes_total", end.body_bytes),
            ("cognate_stream_sent_bytes_total", end.answer_bytes),
        ] {
            self.registry.counter(name, &labels).increment(number);
        }
    }

    fn route(&self, route: &str) -> Option<(&Arc<str>, &Route)> {
        self.routes.get_key_value(route).or_else(|| self.routes.get_key_value(UNMATCHED))
    }

    pub(crate) fn refused(&self, error: &ApiError) {
        let of_code = SHED.iter().find(|(_, code)| *code == error.code).map(|(reason, _)| *reason);
        if let Some(reason) = of_code.or(error.bottleneck.map(Bottleneck::name)) {
            self.registry.counter("cognate_shed_total", &[("reason", reason)]).increment(1);
        }
        if error.code == Code::NonFiniteScore {
            self.non_finite.increment(1);
        }
    }

    pub(crate) fn early_end(&self, reason: EndReason) -> Counter {
        self.registry.counter("cognate_connections_ended_total", &[("reason", reason.name())])
    }

    /// The counters of the key of that id, at zero from here on.
    pub(crate) fn key_use(&self, id: &str) -> Arc<KeyUse> {
        let mut labels = self.key_labels.lock().unwrap_or_else(PoisonError::into_inner);
        let is_named = labels.contains(id) || (labels.len() < MAX && labels.insert(id.to_owned()));
        Arc::new(KeyUse::new(&self.registry, Some(id), if is_named { id } else { OTHER }))
    }

    pub(crate) fn nobody(&self) -> Arc<KeyUse> {
        Arc::clone(&self.nobody)
    }

    pub(crate) fn computed(&self, method: Method) {
        if let Some(counter) = self.methods.get(method as usize) {
            counter.increment(1);
        }
    }

    pub(crate) fn spoke(&self, dialect: Dialect) {
        if let Some(counter) = self.dialects.get(dialect as usize) {
            counter.increment(1);
        }
    }

    pub(crate) fn ranked_with(&self, part: RankPart) {
        self.registry.counter("cognate_rank_parts_total", &[("part", part.name())]).increment(1);
    }

    /// Counts texts that were matched against a collection, the events that they began, and texts
    /// that were too old for it.
    pub(crate) fn matched(&self, collection: &str, texts: usize, events: usize, expired: usize) {
        self.collections.matched(collection, texts, events, expired);
    }

    /// Counts the refusal of a write to a collection, if the cause is lack of room, the disk or the
    /// database.
    pub(crate) fn write_refused(&self, collection: &str, error: &ApiError) {
        self.collections.refused(collection, error.code);
    }

    pub(crate) fn read(&self, counts: Counts) {
        self.texts.increment(counts.texts);
        self.tokens.increment(counts.tokens);
        self.unknown_tokens.increment(counts.unknown);
    }

    /// Sets a family of series whose values are stored elsewhere.
    pub(crate) fn set(&self, family: Description, labels: &[(&str, &str)], value: f64) {
        self.registry.set(family, labels, value);
    }

    /// The page, with the series of these collections.
    pub fn render(&self, collections: &[(CollectionInfo, Activity)]) -> String {
        let _one = self.collections.write(&self.registry, collections);
        self.registry.render()
    }
}

fn request_counter(registry: &Registry, route: &str, verb: &str, status: &str) -> Counter {
    let labels = [("route", route), ("method", verb), ("status", status)];
    registry.counter("cognate_requests_total", &labels)
}

pub(crate) fn verb_label(verb: &Verb) -> &'static str {
    const VERBS: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    VERBS.into_iter().find(|known| *known == verb.as_str()).unwrap_or("other")
}

families! {
    /// Every family of counters and histograms.
    FAMILIES:
    Counter cognate_requests_total "Answered requests.";
    Counter cognate_shed_total "Requests refused to keep the others fast, by reason.";
    Counter cognate_connections_refused_total
        "Times that the limit of connections kept a client waiting.";
    Counter cognate_connections_ended_total
        "Connections that ended before everything was answered and read, by reason.";
    Counter cognate_key_requests_total "Requests to routes that ask for a key, by its id.";
    Counter cognate_texts_total "Texts read.";
    Counter cognate_tokens_total "Tokens read.";
    Counter cognate_unknown_tokens_total "Tokens for which the model has no word.";
    Counter cognate_method_requests_total
        "Answers computed, by method; of a stream, chunks of lines.";
    Counter cognate_dialect_requests_total "Answers computed, by the dialect they were asked in.";
    Counter cognate_rank_parts_total "Rankings that were asked for with a part, by the part.";
    Counter cognate_streams_ended_total "Streams of lines that ended, by how they ended.";
    Counter cognate_panics_total "Requests that failed because of a defect.";
    Counter cognate_non_finite_total "Requests that failed because a score was not finite.";
    Counter cognate_reloads_total "Reloads of keys and models that succeeded.";
    Counter cognate_reload_failures_total "Reloads that left old keys or models in place.";
    Gauge cognate_build_info "1, with version, revision and features as labels.";
    Gauge cognate_requests_in_flight "Requests being answered.";
    Gauge cognate_connections "Open connections.";
    Histogram cognate_collection_rank_duration_seconds
        "Time from the head of a request that ranks a collection to the head of its answer.";
    Histogram cognate_request_duration_seconds
        "Time from a request's head to the head of its answer, without streams and rankings of collections.";
    Histogram cognate_stream_duration_seconds
        "Time from the head of a stream's request to the end of its answer.";
    Histogram cognate_stream_computed_seconds "Time that the jobs of a stream computed.";
    Counter cognate_stream_lines_total "Lines read of streams that ended.";
    Counter cognate_stream_items_total
        "Lines answered without an error, and alerts told, of streams that ended.";
    Counter cognate_stream_read_bytes_total "Bytes of the bodies of streams that ended.";
    Counter cognate_stream_sent_bytes_total
        "Bytes of answers that connections took, of streams that ended.";
    Histogram cognate_runtime_lateness_seconds "Delay of the runtime's timers.";
}

named! {
    pub(crate) enum RankPart {
        Queries = "queries",
        Like = "like",
        Exclude = "exclude",
        Boost = "boost",
        Collapse = "collapse",
        Diversify = "diversify",
        Explain = "explain",
        Offset = "offset",
        Collection = "collection",
        Shortlist = "shortlist",
    }
}

/// Ids that get series of their own.
const MAX: usize = 100;
/// The label of requests without a valid key.
const NONE: &str = "none";

#[derive(Debug)]
pub struct KeyUse {
    id: Option<String>,
    outcomes: [Counter; 4],
}

impl KeyUse {
    fn new(registry: &Registry, id: Option<&str>, label: &str) -> Self {
        let counter = |outcome| {
            registry.counter("cognate_key_requests_total", &[("key", label), ("outcome", outcome)])
        };
        let outcomes = ["answered", "refused", "rate_limited", "failed"].map(counter);
        Self { id: id.map(str::to_owned), outcomes }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn count(&self, status: StatusCode) {
        let [answered, refused, rate_limited, failed] = &self.outcomes;
        let outcome = match status {
            StatusCode::TOO_MANY_REQUESTS => rate_limited,
            status if status.is_client_error() => refused,
            status if status.is_server_error() => failed,
            _ => answered,
        };
        outcome.increment(1);
    }
}
