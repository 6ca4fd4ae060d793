//! What is counted: every series stands at zero from the start, and its labels come from short
//! fixed lists, so that no client can make them grow.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method as Verb, StatusCode};
use cognate::engine::Counts;
use cognate::methods::Method;
use cognate_collections::{Activity, Calls, CollectionInfo, Totals};
use rustix::process::{Resource, getrlimit};

use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Bottleneck, Code};
use crate::http::observe::collections;
use crate::http::observe::collections::CollectionSeries;
use crate::http::observe::series::{Counter, Description, Gauge, Histogram, Kind, OTHER, Registry};
use crate::http::observe::streams::{EndReason, Outcome, StreamCounters, StreamEnd};

/// The label of requests to no known path.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Why work was shed, as the label has it, beside the bottlenecks of an overloaded server.
const SHED: [(&str, Code); 4] = [
    ("deadline", Code::DeadlineExceeded),
    ("draining", Code::Draining),
    ("not_ready", Code::NotReady),
    ("quota", Code::RateLimited),
];

/// Routes that answer in streams, whose series stand at zero from the start.
const STREAMED: [&str; 6] = [
    "/similarity",
    "/embed",
    "/rank",
    "/collections/{name}/items",
    "/collections/{name}/match",
    "/collections/{name}/events/stream",
];

pub struct Metrics {
    registry: Registry,
    routes: HashMap<Arc<str>, Route>,
    shed: Vec<(Code, Counter)>,
    overloaded: Vec<(Bottleneck, Counter)>,
    methods: Vec<Counter>,
    dialects: Vec<Counter>,
    rank_parts: RankPartCounters,
    early_ends: Vec<(EndReason, Counter)>,
    key_labels: Labels,
    nobody: Arc<KeyUse>,
    streams: StreamCounters,
    collections: CollectionSeries,
    collection_ranks: Histogram,
    texts: Counter,
    tokens: Counter,
    unknown_tokens: Counter,
    non_finite: Counter,
    pub in_flight: Gauge,
    pub connections: Gauge,
    /// Moments in which no more connections were accepted.
    pub connections_refused: Counter,
    /// Jobs that panicked, and handlers.
    pub panics: Counter,
    pub reloads: Counter,
    /// Reloads that left the old models in place.
    pub reload_failures: Counter,
    /// Delay of the runtime's timers.
    pub lateness: Histogram,
}

/// What came of the streams of a route.
struct StreamSeries {
    duration: Histogram,
    computed: Histogram,
    numbers: [Counter; 4],
}

impl StreamSeries {
    fn of(registry: &Registry, route: &str) -> Self {
        let labels = [("route", route)];
        Self {
            duration: registry.histogram("cognate_stream_duration_seconds", &labels),
            computed: registry.histogram("cognate_stream_computed_seconds", &labels),
            numbers: [
                "cognate_stream_lines_total",
                "cognate_stream_items_total",
                "cognate_stream_read_bytes_total",
                "cognate_stream_sent_bytes_total",
            ]
            .map(|name| registry.counter(name, &labels)),
        }
    }
}

struct Route {
    duration: Histogram,
    /// Requests answered with 200, by verb.
    ok: Vec<(Verb, Counter)>,
}

/// Values that are read when metrics are scraped.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Units of admission in use, and all of them.
    pub admission: (usize, usize),
    /// Requests that wait for units of admission.
    pub waiting: usize,
    pub compute: (usize, usize),
    /// Bytes of answers that are not sent yet, and the most there may be.
    pub unsent: (usize, usize),
    /// Streams that are open, and the most there may be.
    pub streams: (usize, usize),
    /// Bytes of files that hold answers of streams, and the most there may be.
    pub spool: (u64, u64),
    /// Collections, and the bytes of memory that they take, of as many as they may.
    pub collections: (Totals, usize),
    /// Most connections of an address.
    pub max_connections: usize,
    /// Each collection, as last known.
    pub each_collection: Vec<(CollectionInfo, Activity)>,
    /// Logs whose ends were cut off when they were opened.
    pub cut_logs: usize,
    /// Collections that are not served because their logs cannot be read.
    pub damaged: usize,
    /// What was asked of a database, if collections are in one.
    pub database: Option<Calls>,
    /// Collections that take no changes any more.
    pub unwritable: usize,
    /// Collections whose last change found no room on the disk.
    pub full: usize,
    pub ready: bool,
    /// Each model's name, bytes, words, and whether its file is intact.
    pub models: Vec<(String, u64, u64, bool)>,
}

impl Metrics {
    /// Registers everything for these routes (verb, path), and series of their own for so many collections.
    pub fn new(routes: &[(Verb, String)], named_collections: usize) -> Self {
        let families = FAMILIES.iter().chain(&collections::FAMILIES);
        let registry = Registry::new(&families.copied().collect::<Vec<_>>());
        let counter = |name, label: (&str, &str)| registry.counter(name, &[label]);
        let plain = |name| registry.counter(name, &[]);
        let gauge = |name| registry.gauge(name, &[]);
        let series = |path: &Arc<str>| Route {
            duration: registry.histogram("cognate_request_duration_seconds", &[("route", path)]),
            ok: Vec::new(),
        };
        let mut by_path = HashMap::new();
        for (verb, path) in routes {
            let path: Arc<str> = path.as_str().into();
            let ok = request_counter(&registry, &path, verb_label(verb), "200");
            let route = by_path.entry(path).or_insert_with_key(series);
            route.ok.push((verb.clone(), ok));
        }
        for route in STREAMED.iter().filter(|&&route| by_path.contains_key(route)) {
            StreamSeries::of(&registry, route);
        }
        let unmatched: Arc<str> = UNMATCHED.into();
        request_counter(&registry, &unmatched, "GET", "404");
        by_path.entry(unmatched).or_insert_with_key(series);
        let shed = |reason| counter("cognate_shed_total", ("reason", reason));
        let dialects = Dialect::ALL
            .map(|dialect| counter("cognate_dialect_requests_total", ("dialect", dialect.name())));
        let methods = Method::ALL
            .iter()
            .map(|method| counter("cognate_method_requests_total", ("method", method.name())));
        let early_end = |reason: EndReason| {
            (reason, counter("cognate_connections_ended_total", ("reason", reason.name())))
        };
        for name in ["cognate_database_calls_total", "cognate_database_failures_total"] {
            plain(name);
        }
        registry.gauge("cognate_build_info", &[("version", env!("CARGO_PKG_VERSION"))]).set(1.0);
        Self {
            routes: by_path,
            shed: SHED.map(|(reason, code)| (code, shed(reason))).into(),
            overloaded: Bottleneck::ALL
                .map(|bottleneck| (bottleneck, shed(bottleneck.name())))
                .into(),
            methods: methods.collect(),
            dialects: dialects.into(),
            rank_parts: RankPartCounters::new(|part| {
                counter("cognate_rank_parts_total", ("part", part))
            }),
            early_ends: EndReason::ALL.map(early_end).into(),
            key_labels: Labels::default(),
            nobody: Arc::new(KeyUse::new(None, |outcome| key_counter(&registry, NONE, outcome))),
            streams: StreamCounters::new(|outcome| {
                counter("cognate_streams_ended_total", ("outcome", outcome))
            }),
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

    /// Counts an answered request; `route` is the matched path. A ranking of a collection reads as much
    /// as is there, so it has a histogram of its own.
    pub(crate) fn answered(
        &self,
        route: &str,
        verb: &Verb,
        status: StatusCode,
        (took, ranks_collection): (Duration, bool),
    ) {
        let Some((path, series)) = self.route(route) else { return };
        let duration = if ranks_collection { &self.collection_ranks } else { &series.duration };
        duration.record(took.as_secs_f64());
        let ok = series.ok.iter().find(|(known, _)| known == verb);
        match ok.filter(|_| status == StatusCode::OK) {
            Some((_, ok)) => ok.increment(1),
            None => {
                let verb = verb_label(verb);
                request_counter(&self.registry, path, verb, status.as_str()).increment(1);
            }
        }
    }

    /// Counts a stream that ended: as a request, too, whose status is 200 only if it ended well. Of one
    /// whose request is not known the outcome alone is counted.
    pub(crate) fn stream_ended(&self, end: StreamEnd, request: Option<(&str, &Verb, Duration)>) {
        self.streams.count(end.outcome);
        let Some((route, verb, took)) = request else { return };
        let Some((path, _)) = self.route(route) else { return };
        let status = if end.outcome == Outcome::Complete { "200" } else { end.outcome.name() };
        request_counter(&self.registry, path, verb_label(verb), status).increment(1);
        let series = StreamSeries::of(&self.registry, path);
        series.duration.record(took.as_secs_f64());
        series.computed.record(end.computed.as_secs_f64());
        let numbers = [end.lines, end.items, end.body_bytes, end.answer_bytes];
        series.numbers.iter().zip(numbers).for_each(|(counter, number)| counter.increment(number));
    }

    /// The series of a matched path, or of those that match none.
    fn route(&self, route: &str) -> Option<(&Arc<str>, &Route)> {
        self.routes.get_key_value(route).or_else(|| self.routes.get_key_value(UNMATCHED))
    }

    pub(crate) fn refused(&self, error: &ApiError) {
        let by_code = self.shed.iter().find(|(reason, _)| *reason == error.code);
        let by_bottleneck = self.overloaded.iter().find(|(one, _)| Some(*one) == error.bottleneck);
        let counter = by_code.map(|(_, counter)| counter);
        if let Some(counter) = counter.or(by_bottleneck.map(|(_, counter)| counter)) {
            counter.increment(1);
        }
        if error.code == Code::NonFiniteScore {
            self.non_finite.increment(1);
        }
    }

    /// The counter of connections that ended early for this reason.
    pub(crate) fn early_end(&self, reason: EndReason) -> Counter {
        let found = self.early_ends.iter().find(|(known, _)| *known == reason);
        found.map(|(_, counter)| counter.clone()).unwrap_or_default()
    }

    /// The counters of the key of that id, which stand at zero from here on.
    pub(crate) fn key_use(&self, id: &str) -> Arc<KeyUse> {
        let label = self.key_labels.of(id);
        let counter = |outcome| key_counter(&self.registry, &label, outcome);
        Arc::new(KeyUse::new(Some(id), counter))
    }

    /// The counters of requests that brought no key.
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

    /// Counts a ranking that uses this part.
    pub(crate) fn ranked_with(&self, part: RankPart) {
        self.rank_parts.count(part);
    }

    /// Counts texts that were matched against a collection, the events that they began, and those of
    /// them that were too old for it.
    pub(crate) fn matched(&self, collection: &str, texts: usize, events: usize, expired: usize) {
        self.collections.matched(collection, texts, events, expired);
    }

    /// Counts the refusal of a write to a collection, where it is for want of room, disk or database.
    pub(crate) fn write_refused(&self, collection: &str, error: &ApiError) {
        self.collections.refused(collection, error.code);
    }

    pub(crate) fn read(&self, counts: Counts) {
        self.texts.increment(counts.texts);
        self.tokens.increment(counts.tokens);
        self.unknown_tokens.increment(counts.unknown);
    }

    pub fn render(&self, snapshot: &Snapshot) -> String {
        let set = |name, value: f64| self.registry.gauge(name, &[]).set(value);
        set("cognate_admission_units_in_use", snapshot.admission.0 as f64);
        set("cognate_admission_units", snapshot.admission.1 as f64);
        set("cognate_admission_waiting", snapshot.waiting as f64);
        set("cognate_compute_jobs", snapshot.compute.0 as f64);
        set("cognate_compute_queued", snapshot.compute.1 as f64);
        set("cognate_connections_limit", snapshot.max_connections as f64);
        set("cognate_unsent_bytes", snapshot.unsent.0 as f64);
        set("cognate_unsent_bytes_limit", snapshot.unsent.1 as f64);
        set("cognate_streams", snapshot.streams.0 as f64);
        set("cognate_streams_limit", snapshot.streams.1 as f64);
        set("cognate_stream_spool_bytes", snapshot.spool.0 as f64);
        set("cognate_stream_spool_bytes_limit", snapshot.spool.1 as f64);
        let (collections, limit) = snapshot.collections;
        set("cognate_collections", collections.collections as f64);
        set("cognate_collection_bytes", collections.bytes as f64);
        set("cognate_collection_bytes_limit", limit as f64);
        set("cognate_collections_unwritable", snapshot.unwritable as f64);
        set("cognate_collections_disk_full", snapshot.full as f64);
        set("cognate_collections_damaged", snapshot.damaged as f64);
        set("cognate_collection_logs_cut", snapshot.cut_logs as f64);
        if let Some(behind) = collections.behind {
            let seconds = |time: Option<i64>| time.unwrap_or(0) as f64 / 1e3;
            set("cognate_replica_unread_bytes", behind.bytes as f64);
            set("cognate_replica_unreadable_logs", behind.unreadable as f64);
            set("cognate_replica_changed_timestamp_seconds", seconds(behind.changed));
            set("cognate_replica_writer_timestamp_seconds", seconds(behind.writer));
        }
        if let Some(Calls { all, failed }) = snapshot.database {
            let total = |name, value| self.registry.counter(name, &[]).raise(value);
            total("cognate_database_calls_total", all);
            total("cognate_database_failures_total", failed);
        }
        set("cognate_ready", f64::from(u8::from(snapshot.ready)));
        for (name, bytes, words, intact) in &snapshot.models {
            let of_model = |series, value| {
                self.registry.gauge(series, &[("model", name)]).set(value);
            };
            of_model("cognate_model_bytes", *bytes as f64);
            of_model("cognate_model_words", *words as f64);
            of_model("cognate_model_intact", f64::from(u8::from(*intact)));
        }
        let _one = self.collections.write(&self.registry, &snapshot.each_collection);
        let mut page = self.registry.render();
        page.push_str(&series());
        page
    }
}

fn key_counter(registry: &Registry, key: &str, outcome: &str) -> Counter {
    registry.counter("cognate_key_requests_total", &[("key", key), ("outcome", outcome)])
}

fn request_counter(registry: &Registry, route: &str, verb: &str, status: &str) -> Counter {
    let labels = [("route", route), ("method", verb), ("status", status)];
    registry.counter("cognate_requests_total", &labels)
}

/// One of nine methods, or `other`.
pub(crate) fn verb_label(verb: &Verb) -> &'static str {
    const VERBS: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    VERBS.into_iter().find(|known| *known == verb.as_str()).unwrap_or("other")
}

/// Every metric family, with its help text.
const FAMILIES: [Description; 57] = [
    ("cognate_requests_total", Kind::Counter, "Answered requests."),
    ("cognate_shed_total", Kind::Counter, "Requests refused to keep the others fast, by reason."),
    (
        "cognate_connections_refused_total",
        Kind::Counter,
        "Times that the limit of connections kept a client waiting.",
    ),
    (
        "cognate_connections_ended_total",
        Kind::Counter,
        "Connections that ended before everything was answered and read, by reason.",
    ),
    (
        "cognate_key_requests_total",
        Kind::Counter,
        "Requests to routes that ask for a key, by its id.",
    ),
    ("cognate_texts_total", Kind::Counter, "Texts read."),
    ("cognate_tokens_total", Kind::Counter, "Tokens read."),
    ("cognate_unknown_tokens_total", Kind::Counter, "Tokens for which the model has no word."),
    (
        "cognate_method_requests_total",
        Kind::Counter,
        "Answers computed, by method; of a stream, chunks of lines.",
    ),
    (
        "cognate_dialect_requests_total",
        Kind::Counter,
        "Answers computed, by the dialect they were asked in.",
    ),
    (
        "cognate_rank_parts_total",
        Kind::Counter,
        "Rankings that were asked for with a part, by the part.",
    ),
    (
        "cognate_streams_ended_total",
        Kind::Counter,
        "Streams of lines that ended, by how they ended.",
    ),
    ("cognate_panics_total", Kind::Counter, "Requests that failed because of a defect."),
    (
        "cognate_non_finite_total",
        Kind::Counter,
        "Requests that failed because a score was not finite.",
    ),
    ("cognate_reloads_total", Kind::Counter, "Reloads of keys and models that succeeded."),
    (
        "cognate_reload_failures_total",
        Kind::Counter,
        "Reloads that left old keys or models in place.",
    ),
    ("cognate_build_info", Kind::Gauge, "1, with the version as a label."),
    ("cognate_requests_in_flight", Kind::Gauge, "Requests being answered."),
    ("cognate_connections", Kind::Gauge, "Open connections."),
    ("cognate_connections_limit", Kind::Gauge, "Limit of open connections of an address."),
    ("cognate_admission_units", Kind::Gauge, "Limit of texts, pairs and candidates in progress."),
    ("cognate_admission_units_in_use", Kind::Gauge, "Texts, pairs and candidates in progress."),
    (
        "cognate_admission_waiting",
        Kind::Gauge,
        "Requests that wait until fewer texts, pairs and candidates are in progress.",
    ),
    ("cognate_compute_jobs", Kind::Gauge, "Large requests being computed."),
    ("cognate_compute_queued", Kind::Gauge, "Large requests that wait for a compute thread."),
    ("cognate_unsent_bytes", Kind::Gauge, "Bytes of answers that clients have not read yet."),
    ("cognate_unsent_bytes_limit", Kind::Gauge, "Limit of bytes of unread answers."),
    ("cognate_streams", Kind::Gauge, "Open streams of lines."),
    ("cognate_streams_limit", Kind::Gauge, "Limit of open streams of lines."),
    (
        "cognate_stream_spool_bytes",
        Kind::Gauge,
        "Bytes of files that hold unread answers of streams.",
    ),
    ("cognate_stream_spool_bytes_limit", Kind::Gauge, "Limit of bytes of such files."),
    ("cognate_collections", Kind::Gauge, "Collections."),
    (
        "cognate_collection_bytes",
        Kind::Gauge,
        "Memory of all collections: items, and windows that are matched against.",
    ),
    ("cognate_collection_bytes_limit", Kind::Gauge, "Limit of memory of all collections."),
    (
        "cognate_collection_logs_cut",
        Kind::Gauge,
        "Logs whose ends, which a crash had left, were cut off and kept beside them at the start.",
    ),
    (
        "cognate_collection_rank_duration_seconds",
        Kind::Histogram,
        "Time from the head of a request that ranks a collection to the head of its answer.",
    ),
    (
        "cognate_database_calls_total",
        Kind::Counter,
        "Questions to the database that keeps the collections.",
    ),
    (
        "cognate_database_failures_total",
        Kind::Counter,
        "Those that it did not answer in time, or refused.",
    ),
    (
        "cognate_replica_changed_timestamp_seconds",
        Kind::Gauge,
        "When this replica last took a change over, in seconds since 1970.",
    ),
    (
        "cognate_replica_writer_timestamp_seconds",
        Kind::Gauge,
        "When the writer last looked after the folder that this replica reads, in seconds since 1970.",
    ),
    (
        "cognate_collections_damaged",
        Kind::Gauge,
        "Collections that are not served because their logs cannot be read.",
    ),
    (
        "cognate_collections_unwritable",
        Kind::Gauge,
        "Collections that take no changes until the server starts again.",
    ),
    (
        "cognate_collections_disk_full",
        Kind::Gauge,
        "Collections whose last change found no room on the disk; 1 where the room for deletions is not there.",
    ),
    (
        "cognate_replica_unread_bytes",
        Kind::Gauge,
        "Bytes of collections' logs that this replica has not taken over.",
    ),
    (
        "cognate_replica_unreadable_logs",
        Kind::Gauge,
        "Collections' logs that this replica cannot read on.",
    ),
    ("cognate_ready", Kind::Gauge, "1 if the server is ready for requests, else 0."),
    ("cognate_model_bytes", Kind::Gauge, "Size of a model's file."),
    ("cognate_model_words", Kind::Gauge, "Words of a model."),
    ("cognate_model_intact", Kind::Gauge, "0 if a model's file was changed in place, else 1."),
    (
        "cognate_request_duration_seconds",
        Kind::Histogram,
        "Time from a request's head to the head of its answer, without streams and rankings of collections.",
    ),
    (
        "cognate_stream_duration_seconds",
        Kind::Histogram,
        "Time from the head of a stream's request to the end of its answer.",
    ),
    (
        "cognate_stream_computed_seconds",
        Kind::Histogram,
        "Time that the jobs of a stream computed.",
    ),
    ("cognate_stream_lines_total", Kind::Counter, "Lines read of streams that ended."),
    (
        "cognate_stream_items_total",
        Kind::Counter,
        "Lines answered without an error, and alerts told, of streams that ended.",
    ),
    (
        "cognate_stream_read_bytes_total",
        Kind::Counter,
        "Bytes of the bodies of streams that ended.",
    ),
    (
        "cognate_stream_sent_bytes_total",
        Kind::Counter,
        "Bytes of answers that connections took, of streams that ended.",
    ),
    ("cognate_runtime_lateness_seconds", Kind::Histogram, "Delay of the runtime's timers."),
];

/// The process metrics in Prometheus' format. Values that the system does not provide are left out.
pub(crate) fn series() -> String {
    let mut page = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    };
    let stat = Stat::read();
    let of = |number: fn(&Stat) -> f64| stat.as_ref().map(number);
    let cpu = of(|stat| stat.cpu_seconds);
    add("process_cpu_seconds_total", "counter", "User and system time spent.", cpu);
    let memory = of(|stat| stat.resident_bytes);
    add("process_resident_memory_bytes", "gauge", "Resident memory.", memory);
    add("process_threads", "gauge", "Threads.", of(|stat| stat.threads));
    let started = stat.as_ref().and_then(Stat::started);
    add("process_start_time_seconds", "gauge", "Start, in seconds since 1970.", started);
    let open = fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as f64);
    add("process_open_fds", "gauge", "Open file descriptors.", open);
    let most = getrlimit(Resource::Nofile).current.map(|most| most as f64);
    add("process_max_fds", "gauge", "Limit of open file descriptors.", most);
    page
}

/// Fields of `/proc/self/stat`.
struct Stat {
    cpu_seconds: f64,
    resident_bytes: f64,
    threads: f64,
    /// Seconds from the system's start to this process's.
    after_boot: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        let line = fs::read_to_string("/proc/self/stat").ok()?;
        // The name is in brackets and may hold spaces; the numbers follow the last bracket.
        let (_, numbers) = line.rsplit_once(')')?;
        let field: Vec<f64> =
            numbers.split_whitespace().map(|n| n.parse().unwrap_or(0.0)).collect();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: (field.get(11)? + field.get(12)?) / ticks,
            threads: *field.get(17)?,
            after_boot: field.get(19)? / ticks,
            resident_bytes: field.get(21)? * rustix::param::page_size() as f64,
        })
    }

    fn started(&self) -> Option<f64> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(boot.trim().parse::<f64>().ok()? + self.after_boot)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankPart {
    Queries,
    Like,
    Exclude,
    Boost,
    Collapse,
    Diversify,
    Explain,
    Offset,
    Collection,
    Shortlist,
}

impl RankPart {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Queries, "queries"),
        (Self::Like, "like"),
        (Self::Exclude, "exclude"),
        (Self::Boost, "boost"),
        (Self::Collapse, "collapse"),
        (Self::Diversify, "diversify"),
        (Self::Explain, "explain"),
        (Self::Offset, "offset"),
        (Self::Collection, "collection"),
        (Self::Shortlist, "shortlist"),
    ];
}

/// Rankings by the parts that they use.
pub(super) struct RankPartCounters(Vec<Counter>);

impl RankPartCounters {
    /// Counters by the label of each part.
    pub(super) fn new(counter: impl FnMut(&'static str) -> Counter) -> Self {
        Self(RankPart::ALL.map(|(_, name)| name).map(counter).into())
    }

    pub(super) fn count(&self, part: RankPart) {
        if let Some(counter) = self.0.get(part as usize) {
            counter.increment(1);
        }
    }
}

/// Ids that get series of their own.
pub(crate) const MOST: usize = 100;
/// The label of requests that brought no key that is let in.
pub(crate) const NONE: &str = "none";

/// Values of the label for the outcome of a key's requests.
const OUTCOMES: [&str; 4] = ["answered", "refused", "rate_limited", "failed"];

/// A key's id, and the counters of its requests.
#[derive(Debug)]
pub struct KeyUse {
    /// The id, if a key was presented that is let in.
    id: Option<String>,
    outcomes: [Counter; 4],
}

impl KeyUse {
    /// The use of the key of that id; `counter` makes the counter of an outcome.
    pub(super) fn new(id: Option<&str>, counter: impl FnMut(&'static str) -> Counter) -> Self {
        Self { id: id.map(str::to_owned), outcomes: OUTCOMES.map(counter) }
    }

    /// The id, if a key was presented that is let in.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Counts a request by the status of its answer.
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

#[derive(Debug, Default)]
pub(super) struct Labels(Mutex<HashSet<String>>);

impl Labels {
    /// The label of an id: itself for the first ids, whatever key files they stood in.
    pub(super) fn of(&self, id: &str) -> String {
        let mut labels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !labels.contains(id) {
            if labels.len() >= MOST {
                return OTHER.to_owned();
            }
            labels.insert(id.to_owned());
        }
        id.to_owned()
    }
}
