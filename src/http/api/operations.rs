//! Liveness, readiness, metrics, and the order to reload models. None of these waits behind
//! requests that compute.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use cognate::model::Model;
use cognate_collections::{CallCounts, Lag, Totals};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::App;
use crate::http::error::{Code, Result};
use crate::http::middleware::authorize;
use crate::http::observe::series::{Description, Kind};
use crate::http::openapi::refusals::refusals;
use crate::http::registry::models::Reloaded;

/// A summary of the server's state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Status {
    /// `ok` or `ready`.
    status: &'static str,
    /// Collections that are not served because their logs cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged_collections: Option<usize>,
}

/// Tells whether the process lives.
///
/// It says nothing of models or load: restart a process that does not answer. Also under `/livez` and `/healthz`.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operate",
    responses((status = 200, description = "The process lives", body = Status)),
)]
pub(crate) async fn health() -> Json<Status> {
    Json(Status { status: "ok", damaged_collections: None })
}

refusals!(ReadyRefusals: &[Code::NotReady, Code::Draining]);

/// Tells whether the server accepts requests.
///
/// Models are loaded and intact, collections take changes, and the server is not stopping. Also under `/readyz`.
#[utoipa::path(
    get,
    path = "/ready",
    tag = "operate",
    responses((status = 200, description = "The models are loaded", body = Status), ReadyRefusals),
)]
pub async fn ready(State(app): State<Arc<App>>) -> Result<Json<Status>> {
    app.check_ready()?;
    let damaged = app.collections.damaged();
    Ok(Json(Status {
        status: "ready",
        damaged_collections: Some(damaged).filter(|count| *count > 0),
    }))
}

/// Returns counters, gauges and histograms in Prometheus's format.
///
/// Series of a route come with its first request. The page is compressed for a client that accepts it.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operate",
    responses((status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain")),
)]
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let now = cognate_collections::now();
    let page = Page { app: &app, totals: app.collections.totals(now), process: Process::read() };
    for (family, value) in READINGS {
        if let Some(value) = value(&page) {
            app.metrics.set(*family, &[], value);
        }
    }
    for loaded in app.models().all() {
        for (family, value) in OF_MODELS {
            app.metrics.set(*family, &[("model", &loaded.name)], value(loaded.engine.model()));
        }
    }
    let page = app.metrics.render(&app.each_collection(now));
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, media)], page).into_response()
}

/// The sources of values that are not kept in the metrics.
struct Page<'a> {
    app: &'a App,
    totals: Totals,
    /// `None` on systems without `/proc`.
    process: Option<Process>,
}

impl Page<'_> {
    /// Returns a figure of the replica's lag behind the writer; `None` if the server is no replica.
    fn lag(&self, figure: fn(&Lag) -> f64) -> Option<f64> {
        self.totals.behind.as_ref().map(figure)
    }

    fn calls(&self, figure: fn(CallCounts) -> u64) -> f64 {
        self.app.collections.calls().map_or(0, figure) as f64
    }

    fn stat(&self, figure: fn(&Process) -> f64) -> Option<f64> {
        self.process.as_ref().map(figure)
    }
}

fn seconds(milliseconds: Option<i64>) -> f64 {
    milliseconds.unwrap_or(0) as f64 / 1e3
}

/// Declares families of one series each: help text, kind and name, and the value's source.
macro_rules! readings {
    ($list:ident of $source:ty, $value:ty: $(
        #[doc = $help:literal] $kind:ident $name:ident = |$from:pat_param| $read:expr;
    )+) => {
        const $list: &[(Description, fn(&$source) -> $value)] = &[$((
            (stringify!($name), Kind::$kind, $help.trim_ascii()),
            |$from| <$value>::from($read),
        )),+];
    };
}

readings! {
    READINGS of Page<'_>, Option<f64>:
    /// Limit of open connections of an address.
    Gauge cognate_connections_limit = |page| page.app.settings.max_connections as f64;
    /// Limit of texts, pairs and candidates in progress.
    Gauge cognate_admission_units = |page| page.app.settings.admission_units as f64;
    /// Texts, pairs and candidates in progress.
    Gauge cognate_admission_units_in_use = |page| page.app.admission.in_use() as f64;
    /// Requests that wait until fewer texts, pairs and candidates are in progress.
    Gauge cognate_admission_waiting = |page| page.app.admission.waiting() as f64;
    /// Large requests being computed.
    Gauge cognate_compute_jobs = |page| page.app.compute.counts().0 as f64;
    /// Large requests that wait for a compute thread.
    Gauge cognate_compute_queued = |page| page.app.compute.counts().1 as f64;
    /// Bytes of answers that clients have not read yet.
    Gauge cognate_unsent_bytes = |page| page.app.unsent.in_use().0 as f64;
    /// Limit of bytes of unread answers.
    Gauge cognate_unsent_bytes_limit = |page| page.app.unsent.in_use().1 as f64;
    /// Open streams of lines.
    Gauge cognate_streams = |page| page.app.streams.in_use().0 as f64;
    /// Limit of open streams of lines.
    Gauge cognate_streams_limit = |page| page.app.streams.in_use().1 as f64;
    /// Bytes of files that hold unread answers of streams.
    Gauge cognate_stream_spool_bytes = |page| page.app.spools.in_use().0 as f64;
    /// Limit of bytes of such files.
    Gauge cognate_stream_spool_bytes_limit = |page| page.app.spools.in_use().1 as f64;
    /// Collections.
    Gauge cognate_collections = |page| page.totals.collections as f64;
    /// Memory of all collections: items, and windows that are matched against.
    Gauge cognate_collection_bytes = |page| page.totals.bytes as f64;
    /// Limit of memory of all collections.
    Gauge cognate_collection_bytes_limit = |page| page.app.settings.collection_bytes as f64;
    /// Logs whose ends, which a crash had left, were cut off and kept beside them at the start.
    Gauge cognate_collection_logs_cut = |page| page.app.collections.cut_logs() as f64;
    /// Questions to the database that keeps the collections.
    Counter cognate_database_calls_total = |page| page.calls(|calls| calls.all);
    /// Those that it did not answer in time, or refused.
    Counter cognate_database_failures_total = |page| page.calls(|calls| calls.failed);
    /// When this replica last took a change over, in seconds since 1970.
    Gauge cognate_replica_changed_timestamp_seconds =
        |page| page.lag(|behind| seconds(behind.changed));
    /// When the writer last looked after the folder that this replica reads, in seconds since 1970.
    Gauge cognate_replica_writer_timestamp_seconds =
        |page| page.lag(|behind| seconds(behind.writer));
    /// When a copy of the collections was last made by `POST /-/backup` since the start, in seconds since 1970.
    Gauge cognate_backup_timestamp_seconds =
        |page| seconds(Some(page.app.backed_up.load(Ordering::Relaxed)));
    /// Collections that are not served because their logs cannot be read.
    Gauge cognate_collections_damaged = |page| page.app.collections.damaged() as f64;
    /// Collections that take no changes until the server starts again.
    Gauge cognate_collections_unwritable = |page| page.app.collections.unwritable() as f64;
    /// Collections whose last change found no room on the disk; 1 where the room for deletions is not there.
    Gauge cognate_collections_disk_full = |page| page.app.collections.full() as f64;
    /// Bytes of collections' logs that this replica has not read yet.
    Gauge cognate_replica_unread_bytes = |page| page.lag(|behind| behind.bytes as f64);
    /// Collections' logs that this replica cannot read on.
    Gauge cognate_replica_unreadable_logs = |page| page.lag(|behind| behind.unreadable as f64);
    /// 1 if the server is ready for requests, else 0.
    Gauge cognate_ready = |page| f64::from(u8::from(page.app.check_ready().is_ok()));
    /// User and system time spent.
    Counter process_cpu_seconds_total = |page| page.stat(|stat| stat.cpu_seconds);
    /// Resident memory.
    Gauge process_resident_memory_bytes = |page| page.stat(|stat| stat.resident_bytes);
    /// Threads.
    Gauge process_threads = |page| page.stat(|stat| stat.threads);
    /// Start, in seconds since 1970.
    Gauge process_start_time_seconds = |page| page.process.as_ref().and_then(Process::started);
    /// Open file descriptors.
    Gauge process_open_fds = |_| fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as f64);
    /// Limit of open file descriptors.
    Gauge process_max_fds = |_| getrlimit(Resource::Nofile).current.map(|most| most as f64);
}

readings! {
    OF_MODELS of Model, f64:
    /// Size of a model's file.
    Gauge cognate_model_bytes = |model| model.bytes() as f64;
    /// Words of a model.
    Gauge cognate_model_words = |model| model.vocabulary().len() as f64;
    /// 0 if a model's file was changed in place, else 1.
    Gauge cognate_model_intact = |model| u8::from(!model.damaged());
}

struct Process {
    cpu_seconds: f64,
    resident_bytes: f64,
    threads: f64,
    /// Seconds from the system's start to this process's.
    after_boot: f64,
}

impl Process {
    fn read() -> Option<Self> {
        let line = fs::read_to_string("/proc/self/stat").ok()?;
        // The name is in brackets and may have spaces; the numbers follow the last bracket.
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

refusals!(
    ReloadRefusals: &[Code::Forbidden, Code::BadKeys, Code::BadModel, Code::ModelTooLarge]
);

/// Opens the key file and the model files again, checks them, and takes them into use.
///
/// Keys and models do not wait for each other: a bad model file leaves the models as they are and
/// the new keys in force, and the other way round; the refusal says which were taken over. Collections
/// that were put into the folder of the server since its start, or mended there, are opened some seconds
/// later, of which its log tells. Needs a key of the scope `admin`; where no keys are set, it must come
/// from a program of this machine.
#[utoipa::path(
    post,
    path = "/-/reload",
    tag = "operate",
    responses(
        (status = 200, description = "The keys and models now in use", body = Reloaded),
        ReloadRefusals,
    ),
)]
pub(crate) async fn reload(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<Reloaded>> {
    authorize::check_admin(&request)?;
    app.collections.take_up_soon();
    Ok(Json(app.reload().await?))
}
