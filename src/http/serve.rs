//! The service's life cycle: the set-up before the first connection, the tasks beside answering,
//! and the shutdown. What is answered is not known here.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use cognate::model::sigbus;
use cognate_kernels::simd;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::http::app::{App, AppError, BLOCKING_THREADS};
use crate::http::build;
use crate::http::net::shutdown::{Drained, Phase, Shutdown, ShutdownTrigger};
use crate::http::net::{ConnectionMetrics, Listener};
use crate::http::settings::Settings;

/// Interval of maintenance: model files are checked, and lines left out of the log are counted.
const CHORES: Duration = Duration::from_secs(5);
/// Interval of checks of the key file: a key removed from it stays valid for no longer.
const KEYS: Duration = Duration::from_secs(30);
/// Interval of checks whether another process waits for the collections.
const LOOK: Duration = Duration::from_millis(20);
/// How long the end waits for work that cannot be interrupted: connections being dropped, and a
/// model still being read.
const LAST_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0}")]
    App(#[from] AppError),
    #[error("the runtime could not be started: {0}")]
    Runtime(io::Error),
    #[error("signals could not be listened for: {0}")]
    Signals(io::Error),
    #[error("cannot listen on {address}: {source}; choose another with `listen` or `admin_listen`")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("the models could not be loaded; the log says why")]
    Models,
    #[error("a part of the service ended by itself: {0}")]
    Ended(String),
    #[error("{dropped} connections were dropped: they were not finished after {grace_s} s")]
    Dropped { dropped: usize, grace_s: u64 },
    #[error("a second signal to stop; {dropped} connections were dropped unfinished")]
    Interrupted { dropped: usize },
}

impl ServeError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::App(AppError::Keys(_) | AppError::Tracer(_)) => 2,
            _ => 1,
        }
    }
}

/// Serves until SIGTERM or SIGINT. SIGHUP reloads keys and models.
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    let (version, revision, features) = (build::VERSION, build::REVISION, build::features());
    tracing::info!(version, revision, features, "starting");
    sigbus::report().map_err(ServeError::Signals)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(available_parallelism().map_or(1, usize::from))
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let mut opened = None;
    let outcome = runtime.block_on(open_and_live(settings, &mut opened));
    runtime.shutdown_timeout(LAST_WAIT);
    if let Some(app) = opened {
        app.tracer.finish();
    }
    outcome
}

/// Opens everything, which waits for a folder that another process has, and serves.
async fn open_and_live(
    settings: Settings,
    opened: &mut Option<Arc<App>>,
) -> Result<(), ServeError> {
    // Before anything is visible from outside, so that an early order to stop is not missed.
    let mut signals = StopSignals::hear().map_err(ServeError::Signals)?;
    let app = tokio::select! {
        biased;
        _ = signals.next() => {
            tracing::info!("stopped before anything was served");
            return Ok(());
        }
        app = spawn_blocking(move || App::new(settings)) => {
            app.map_err(|error| ServeError::Ended(error.to_string()))??
        }
    };
    live(opened.insert(app).clone(), signals).await
}

async fn live(app: Arc<App>, mut signals: StopSignals) -> Result<(), ServeError> {
    let hangups = signal(SignalKind::hangup()).map_err(ServeError::Signals)?;
    let (orders, stop) = ShutdownTrigger::new();
    let begun = Instant::now();
    // In parallel with the routes, which take about as long to assemble.
    let mut loading = tokio::spawn({
        let app = app.clone();
        async move { app.reload().await }
    });
    let mut listeners = open_listeners(&app, &stop)?;
    let mut chores = JoinSet::new();
    chores.spawn(repeat(CHORES, app.clone(), |app| app.request_log.report()));
    chores.spawn(repeat(CHORES, app.clone(), App::look_after_models));
    chores.spawn(repeat(KEYS, app.clone(), App::look_after_keys));
    // Separate from the other maintenance of collections, which may compact a long log.
    chores.spawn(repeat(CHORES, app.clone(), App::look_after_folder));
    chores.spawn(repeat(CHORES, app.clone(), App::look_after_collections));
    chores.spawn(watch_the_clock(app.clone()));
    app.spools.look();
    tokio::select! {
        biased;
        told = signals.next() => return leave(&app, told, orders, listeners, signals).await,
        loaded = &mut loading => if !matches!(loaded, Ok(Ok(_))) {
            return Err(ServeError::Models);
        },
        ended = listeners.join_next() => return Err(ended_early(ended)),
    }
    tracing::info!(seconds = begun.elapsed().as_secs_f64(), "ready");
    chores.spawn(reload_when_told(app.clone(), hangups));
    tokio::select! {
        biased;
        told = signals.next() => leave(&app, told, orders, listeners, signals).await,
        ended = listeners.join_next() => Err(ended_early(ended)),
        ended = chores.join_next() => Err(ended_early(ended)),
    }
}

/// Listens on the public address, and on the operators' address if there is one. The server answers
/// nothing unless both succeed.
fn open_listeners(app: &Arc<App>, stop: &Shutdown) -> Result<JoinSet<Drained>, ServeError> {
    let settings = &app.settings;
    let bind = |address| {
        let metrics = ConnectionMetrics {
            open: app.metrics.connections.clone(),
            refused: app.metrics.connections_refused.clone(),
            ended: app.early_ends.clone(),
        };
        Listener::bind(address, settings, metrics)
            .map_err(|source| ServeError::Bind { address, source })
    };
    let public = bind(settings.listen)?;
    let admin = settings.admin_listen.map(bind).transpose()?;
    let mut listeners = JoinSet::new();
    if let Some(admin) = admin {
        tracing::info!(address = %admin.local_addr(), "listening for operators");
        listeners.spawn(admin.serve(app.admin_router(), stop.clone()));
    }
    tracing::info!(address = %public.local_addr(), kernels = simd::name(), "listening");
    listeners.spawn(public.behind(app.gate()).serve(app.router(), stop.clone()));
    Ok(listeners)
}

/// Stops in the order that loses no request: first `/ready` fails, and connections are refused only
/// after load balancers had time to notice. After Ctrl+C it waits for neither.
async fn leave(
    app: &Arc<App>,
    told: Told,
    orders: ShutdownTrigger,
    mut listeners: JoinSet<Drained>,
    mut signals: StopSignals,
) -> Result<(), ServeError> {
    let grace_s = app.settings.shutdown_grace_s;
    let delay_s = match told {
        Told::Terminate => app.settings.shutdown_delay_s,
        Told::Interrupt => 0,
    };
    tracing::info!(delay_s, grace_s, "stopping");
    app.drain();
    orders.order(Phase::Leaving);
    let mut handing_over = JoinSet::new();
    handing_over.spawn(hand_over(Arc::clone(app)));
    let finishing = async {
        sleep(Duration::from_secs(delay_s)).await;
        match told {
            Told::Terminate => orders.order(Phase::Closing),
            Told::Interrupt => orders.order(Phase::Hurried),
        }
        let half = Duration::from_secs(grace_s) / 2;
        let mut all = std::pin::pin!(all_of(&mut listeners));
        if let Ok(drained) = timeout(half, &mut all).await {
            return Ok(drained);
        }
        // Streams last as long as their clients send: the last line tells a client which line comes
        // next elsewhere.
        app.streams.end();
        timeout(half, all).await
    };
    let (finished, told_twice) = tokio::select! {
        biased;
        _ = signals.next() => (Err(()), true),
        finished = finishing => (finished.map_err(drop), false),
    };
    let Drained { dropped } = match finished {
        Ok(drained) => drained,
        Err(()) => {
            orders.order(Phase::Abandoned);
            timeout(LAST_WAIT, all_of(&mut listeners)).await.unwrap_or_default()
        }
    };
    match (told_twice, dropped) {
        (true, _) => Err(ServeError::Interrupted { dropped }),
        (false, 0) => {
            tracing::info!("stopped, everything answered");
            Ok(())
        }
        (false, _) => Err(ServeError::Dropped { dropped, grace_s }),
    }
}

/// Hands the collections over once another process waits for them; reads are still served.
async fn hand_over(app: Arc<App>) {
    let is_awaited = |app: Arc<App>| spawn_blocking(move || app.collections.home().is_awaited());
    while !is_awaited(Arc::clone(&app)).await.unwrap_or(false) {
        sleep(LOOK).await;
    }
    let begun = Instant::now();
    let handed_over = spawn_blocking(move || app.collections.home().hand_over()).await;
    if handed_over.is_ok() {
        tracing::info!(seconds = begun.elapsed().as_secs_f64(), "collections handed over");
    }
}

async fn all_of(listeners: &mut JoinSet<Drained>) -> Drained {
    let mut dropped = 0_usize;
    while let Some(drained) = listeners.join_next().await {
        dropped = dropped.saturating_add(drained.unwrap_or_default().dropped);
    }
    Drained { dropped }
}

fn ended_early<T>(ended: Option<Result<T, tokio::task::JoinError>>) -> ServeError {
    match ended {
        Some(Err(error)) => ServeError::Ended(error.to_string()),
        _ => ServeError::Ended("it had nothing left to do".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Terminate,
    /// SIGINT, from a person at a terminal.
    Interrupt,
}

struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn hear() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Terminate,
            _ = self.interrupt.recv() => Told::Interrupt,
        }
    }
}

/// Reloads keys and models at each SIGHUP; signals during a reload count as one more. The app logs
/// the outcome.
async fn reload_when_told(app: Arc<App>, mut hangups: Signal) {
    // A reload whose models are slow to read does not delay the keys of a later one.
    let mut loads = JoinSet::new();
    while hangups.recv().await.is_some() {
        while loads.try_join_next().is_some() {}
        let app = app.clone();
        app.collections.take_up_soon();
        loads.spawn(async move { app.reload().await.is_ok() });
    }
}

/// Repeats a task on a thread of its own, so that waiting for a disk delays no other task.
async fn repeat(every: Duration, app: Arc<App>, chore: fn(&App)) {
    loop {
        sleep(every).await;
        let app = app.clone();
        if let Err(error) = spawn_blocking(move || chore(&app)).await {
            tracing::error!(%error, "a chore failed");
        }
    }
}

/// Measures how late the runtime fires timers, which shows work that blocks it.
async fn watch_the_clock(app: Arc<App>) {
    let every = Duration::from_millis(app.settings.lateness_tick_ms.max(1));
    loop {
        let due = Instant::now() + every;
        sleep_until(due).await;
        app.metrics.lateness.record(due.elapsed().as_secs_f64());
    }
}
