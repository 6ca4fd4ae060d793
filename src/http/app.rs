//! The state that all requests share: settings, models, limits of work, counters.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use axum::http::Method as Verb;
use cognate::model::{FileIdentity, FileState, freed};
use cognate_collections::{Activity, Collection, CollectionError, CollectionInfo};
use tokio::sync::Mutex;
use tokio::task::JoinError;

use crate::http::auth::access::Access;
use crate::http::auth::client::Peers;
use crate::http::auth::keys::{Keys, KeysError};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::observe::budget::Budget;
use crate::http::observe::metrics::Metrics;
use crate::http::observe::request_log::{Ids, RequestLog};
use crate::http::observe::streams::EarlyEnds;
use crate::http::observe::trace::Tracer;
use crate::http::registry::collections::Collections;
use crate::http::registry::models;
use crate::http::registry::models::{LoadedModel, ModelSummary, Models, ModelsError, Reloaded};
use crate::http::settings::Settings;
use crate::http::work::admission::Admission;
use crate::http::work::file_threads;
use crate::http::work::file_threads::{FileThreads, spawn_blocking};
use crate::http::work::pool::Pool;
use crate::http::work::spool::Spools;
use crate::http::work::streams::Places;
use crate::http::work::turns::Turns;
use crate::http::work::unsent::Unsent;

/// Bounds of the memory for unsent answers, where the settings name no number.
const MIN_UNSENT: u64 = 1 << 20;
const MAX_UNSENT: u64 = 256 << 20;
/// Fewest expired items that are logged.
const MIN_TOLD: u64 = 100;
/// Threads of the runtime for blocking file access.
pub(crate) const BLOCKING_THREADS: usize = file_threads::ALL;
/// Threads for requests to another machine.
const WAITING_THREADS: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("{0}")]
    Keys(#[from] KeysError),
    #[error("the compute threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("the collections cannot be opened: {0}")]
    Collections(#[from] CollectionError),
    #[error("spans cannot be exported: {0}")]
    Tracer(String),
}

pub struct App {
    pub settings: Settings,
    pub admission: Admission,
    pub compute: Pool,
    /// Threads for requests to another machine, if collections are stored there.
    waiting: Option<Pool>,
    pub unsent: Unsent,
    pub spools: Arc<Spools>,
    /// Slots for streams of lines.
    pub streams: Places,
    pub metrics: Metrics,
    pub early_ends: EarlyEnds,
    pub(crate) collections: Collections,
    /// Collections on another machine, as the last maintenance found them.
    found_collections: ArcSwap<Vec<(CollectionInfo, Activity)>>,
    /// How many items of each collection had expired at the last maintenance.
    outlived: std::sync::Mutex<HashMap<String, u64>>,
    pub(crate) peers: Peers,
    /// Turns to write to the collections.
    pub(crate) turns: Turns,
    /// Threads that wait for the collections' disk.
    pub(crate) writers: FileThreads,
    /// Threads for lookups in collections and for reading bodies of items: they never wait for a
    /// disk.
    pub(crate) readers: FileThreads,
    pub(crate) request_log: RequestLog,
    pub ids: Ids,
    pub tracer: Tracer,
    /// The dialect of each route; `None` if several share it.
    dialects: HashMap<String, Option<Dialect>>,
    models: ArcSwap<Models>,
    access: ArcSwap<Option<Access>>,
    /// Identity of the key file in force, taken before it was read.
    seen_keys: ArcSwapOption<FileIdentity>,
    draining: AtomicBool,
    /// One task at a time reads keys, and one reads models; neither waits for the other. The
    /// reading task holds the lock, not the request, which may be gone by then: otherwise an older
    /// file could replace a newer one.
    loading_keys: Arc<Mutex<()>>,
    loading_models: Arc<Mutex<()>>,
    /// Held by the task that copies the collections; when the last whole copy was made, in milliseconds
    /// since 1970.
    pub(crate) backing_up: Arc<Mutex<()>>,
    pub(crate) backed_up: AtomicI64,
}

impl App {
    /// A service without models yet. Each route has its verb, its path and its dialect, if it has
    /// only one.
    pub(in crate::http) fn with_routes(
        settings: Settings,
        routes: &[(Verb, String)],
        dialects: HashMap<String, Option<Dialect>>,
    ) -> Result<Arc<Self>, AppError> {
        let metrics = Metrics::new(routes, settings.named_collections());
        let budget = Arc::new(Budget::default());
        let early_ends = |reason| metrics.early_end(reason);
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = settings.compute_threads.unwrap_or_else(cores);
        let collections = Collections::open(&settings)?;
        let waiting = collections
            .is_remote()
            .then(|| Pool::new(WAITING_THREADS, settings.compute_queue, settings.client_share))
            .transpose()?;
        Ok(Arc::new(Self {
            admission: Admission::new(
                settings.admission_units,
                settings.compute_queue,
                Duration::from_millis(settings.admission_wait_ms),
                settings.client_share,
            ),
            compute: Pool::new(threads, settings.compute_queue, settings.client_share)?,
            unsent: Unsent::new(
                settings.unsent_bytes.unwrap_or_else(usual_unsent_bytes),
                settings.response_bytes,
                settings.client_share,
            ),
            spools: Arc::new(Spools::new(
                settings.spool_folder.clone(),
                settings.stream_spool(),
                settings.spool_bytes,
                settings.spool_file_bytes(),
            )),
            streams: Places::new(settings.most_streams(), settings.client_share),
            collections,
            found_collections: ArcSwap::default(),
            outlived: Default::default(),
            peers: Peers::default(),
            waiting,
            turns: Turns::default(),
            writers: FileThreads::default(),
            readers: FileThreads::default(),
            early_ends: EarlyEnds::new(early_ends, Arc::clone(&budget)),
            request_log: RequestLog::new(settings.log_requests, budget),
            ids: Ids::new(),
            tracer: Tracer::new(settings.otlp_endpoint.as_deref()).map_err(AppError::Tracer)?,
            dialects,
            models: ArcSwap::default(),
            access: ArcSwap::from_pointee(Access::open(&settings, &metrics, None)?),
            seen_keys: ArcSwapOption::default(),
            metrics,
            draining: AtomicBool::new(false),
            loading_keys: Arc::default(),
            loading_models: Arc::default(),
            backing_up: Arc::default(),
            backed_up: AtomicI64::new(0),
            settings,
        }))
    }

    /// Puts models into use; requests in progress keep theirs.
    pub(in crate::http) fn set_models(&self, models: Models) {
        self.models.store(Arc::new(models));
    }

    pub fn models(&self) -> Arc<Models> {
        self.models.load_full()
    }

    /// The dialect of a route, if it has only one.
    pub(crate) fn dialect_of(&self, route: &str) -> Option<Dialect> {
        self.dialects.get(route).copied().unwrap_or(Some(Dialect::Native))
    }

    /// The accepted keys; `None` if no key is required.
    pub(crate) fn access(&self) -> Guard<Arc<Option<Access>>> {
        self.access.load()
    }

    /// Reads and checks the key file and the model files again, and puts them into use. Keys and
    /// models are independent: a bad model file, or one that cannot be read, does not keep a
    /// revoked key valid.
    pub async fn reload(self: &Arc<Self>) -> Result<Reloaded> {
        let failed = |error: JoinError| ApiError::internal(&error.to_string());
        let app = Arc::clone(self);
        let keys = {
            let one = Arc::clone(&self.loading_keys).lock_owned().await;
            let reload = move || {
                let _one = one;
                app.reload_keys()
            };
            spawn_blocking(reload).await.map_err(failed)?
        };
        let app = Arc::clone(self);
        let models = {
            let one = Arc::clone(&self.loading_models).lock_owned().await;
            let reload = move || {
                let _one = one;
                app.reload_models()
            };
            spawn_blocking(reload).await.map_err(failed)?
        };
        match (keys, models) {
            (Ok(keys), Ok(models)) => {
                self.metrics.reloads.increment(1);
                Ok(Reloaded { keys, models })
            }
            (keys, models) => {
                self.metrics.reload_failures.increment(1);
                Err(refuse_reload(keys, models.map(|_| ())))
            }
        }
    }

    fn reload_keys(&self) -> Result<Option<usize>, KeysError> {
        // The next check sees a change made while the file is read.
        let seen = self.key_file();
        let before = self.access.load();
        match Access::open(&self.settings, &self.metrics, Option::as_ref(&before)) {
            Ok(access) => {
                let access = Arc::new(access);
                self.access.store(Arc::clone(&access));
                self.seen_keys.store(seen.map(Arc::new));
                let Some(keys) = Option::as_ref(&access).map(Access::keys) else { return Ok(None) };
                self.log_keys(keys, Option::as_ref(&before).map(Access::keys));
                Ok(Some(keys.all().len()))
            }
            Err(error) => {
                self.seen_keys.store(None);
                tracing::error!(%error, "keys not loaded; the keys before are in force");
                Err(error)
            }
        }
    }

    fn log_keys(&self, keys: &Keys, before: Option<&Keys>) {
        let count = keys.all().len();
        // A start reads the file twice, the first time before there are models: nothing changed
        // between.
        let Some(before) = before.filter(|_| !self.models().all().is_empty()) else {
            tracing::info!(keys = count, "keys loaded");
            return;
        };
        let [added, removed] = [keys.ids_not_in(before), before.ids_not_in(keys)];
        let unchanged = (added.is_none() && removed.is_none()).then_some(true);
        tracing::info!(keys = count, added, removed, unchanged, "keys loaded");
    }

    fn key_file(&self) -> Option<FileIdentity> {
        let found = fs::metadata(self.settings.keys_file.as_ref()?).ok()?;
        Some(FileIdentity::from(&found))
    }

    /// Reloads a key file that was replaced or written. An unusable file is read again at each
    /// check, and counted and logged until it is mended.
    pub fn look_after_keys(&self) {
        // A reload in progress reads the file now.
        let Ok(_one) = self.loading_keys.try_lock() else { return };
        let seen = self.seen_keys.load().as_deref().copied();
        if self.settings.keys_file.is_none() || (seen.is_some() && seen == self.key_file()) {
            return;
        }
        match self.reload_keys() {
            Ok(_) => self.metrics.reloads.increment(1),
            Err(_) => self.metrics.reload_failures.increment(1),
        }
    }

    /// Reloads the model files, all or none.
    fn reload_models(&self) -> Result<Vec<ModelSummary>, ModelsError> {
        match Models::open(&self.settings) {
            Ok(models) => {
                let summary = |model: &Arc<LoadedModel>| ModelSummary {
                    name: model.name.to_string(),
                    fingerprint: model.engine.model().fingerprint().to_owned(),
                };
                let summaries: Vec<ModelSummary> = models.all().iter().map(summary).collect();
                self.set_models(models);
                freed::give_back();
                let names: Vec<&str> = summaries.iter().map(|model| model.name.as_str()).collect();
                tracing::info!(models = names.join(","), "models loaded");
                Ok(summaries)
            }
            Err(error) => {
                match self.models().all() {
                    [] => tracing::error!(%error, "models not loaded"),
                    _ => tracing::error!(%error, "models not loaded; the models before serve on"),
                }
                Err(error)
            }
        }
    }

    /// Checks that the folder of the collections belongs to this server, and touches its lock,
    /// which replicas watch.
    pub fn look_after_folder(&self) {
        if let Err(error) = self.collections.home().look_after() {
            tracing::error!(%error, "the folder of the collections is not this server's any more");
        }
    }

    /// Checks whether a mapped file was changed in place, which makes its scores doubtful. Reads
    /// the whole of a file that was touched, so that a new time alone takes no model out of
    /// service.
    pub fn look_after_models(&self) {
        for loaded in self.models().all() {
            let model = loaded.engine.model();
            let (name, file) = (&*loaded.name, model.path().display());
            match model.look_again() {
                FileState::Same => {}
                FileState::Sound => tracing::info!(
                    model = name,
                    %file,
                    "a model file was touched; its bytes are those it was opened with"
                ),
                FileState::Damaged => tracing::error!(
                    model = name,
                    %file,
                    "a model file was changed in place under its map; the model is refused until \
                     the file is replaced by a rename and reloaded"
                ),
            }
        }
    }

    /// Tells load balancers to stop sending requests; requests are still answered.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Why the server is not ready, if so. Only the default model counts: another damaged model is
    /// refused by itself, and requests for other models are unaffected.
    pub(crate) fn check_ready(&self) -> Result<()> {
        if self.draining.load(Ordering::Acquire) {
            return Err(ApiError::new(Code::Draining, "the server is about to stop"));
        }
        self.models().choose(None)?.check_sound()?;
        match self.collections.home().unwritable() {
            0 => Ok(()),
            unwritable => {
                let detail = format!(
                    "collections that take no changes until the server starts again: {unwritable}; its \
                     log says why"
                );
                Err(ApiError::new(Code::NotReady, detail))
            }
        }
    }

    /// Removes expired items, compacts logs, and checks that the files of collections are in place.
    /// Opens new collections if a reload asked for it.
    pub fn look_after_collections(&self) {
        self.collections.take_up();
        let all = match self.collections.home().all() {
            Ok(all) => all,
            Err(error) => {
                tracing::error!(%error, "the collections could not be looked after");
                return;
            }
        };
        let (before, mut found) = (self.found_collections.load(), Vec::new());
        self.tell_outlived(&all);
        for collection in all {
            if self.collections.is_remote() {
                let known = || before.iter().find(|(known, _)| known.name == collection.name());
                match collection.told(cognate_collections::now()) {
                    Ok(told) => found.push((told, collection.activity())),
                    // The collection's series stay until the database reports that it is gone.
                    Err(_) => found.extend(known().cloned()),
                }
            }
            if let Err(error) = self.tidy(&*collection) {
                tracing::error!(%error, "a collection could not be put in order");
            }
        }
        self.found_collections.store(Arc::new(found));
    }

    /// Logs collections in which many items expired since the last check, as where a live stream
    /// follows an archive.
    fn tell_outlived(&self, all: &[Arc<dyn Collection>]) {
        let mut before = self.outlived.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = HashMap::with_capacity(all.len());
        for collection in all {
            let (name, outlived) = (collection.name(), collection.activity().outlived);
            let gone = outlived.saturating_sub(before.get(name).copied().unwrap_or(0));
            if gone >= MIN_TOLD
                && let Ok(CollectionInfo { items, .. }) =
                    collection.told(cognate_collections::now())
                && gone > (gone + items as u64) / 10
            {
                tracing::warn!(
                    collection = name,
                    gone,
                    items,
                    "more than a tenth of a collection was older than its `ttl` by its clock, and is deleted"
                );
            }
            known.insert(name.to_owned(), outlived);
        }
        *before = known;
    }

    /// Removes expired items in a turn; others write while a log is compacted.
    fn tidy(&self, collection: &dyn Collection) -> Result<(), CollectionError> {
        let turn = self.turns.wait_here(collection.name());
        let expired = collection.expire(cognate_collections::now())?;
        drop(turn);
        let Some(pending) = expired else { return Ok(()) };
        collection.wait_durable(pending)?;
        collection.compact_log()
    }

    /// Each collection, without waiting: on another machine, as the last maintenance found it.
    pub(crate) fn each_collection(&self, now: i64) -> Vec<(CollectionInfo, Activity)> {
        if self.collections.is_remote() {
            return self.found_collections.load().to_vec();
        }
        let all = self.collections.home().all().unwrap_or_default();
        let told = |one: &Arc<dyn Collection>| Some((one.told(now).ok()?, one.activity()));
        all.iter().filter_map(told).collect()
    }

    pub(crate) fn pool(&self, waits: bool) -> &Pool {
        self.waiting.as_ref().filter(|_| waits).unwrap_or(&self.compute)
    }
}

fn refuse_reload(
    keys: Result<Option<usize>, KeysError>,
    models: Result<(), ModelsError>,
) -> ApiError {
    const BAD_KEYS: &str = "the key file is not sound; the keys before it are in force";
    match (keys, models) {
        (Ok(Some(_)), Err(error)) => {
            let error = error.refusal();
            ApiError::new(error.code, format!("the keys were taken over; {}", error.detail))
        }
        (Ok(None), Err(error)) => error.refusal(),
        (_, Ok(())) => {
            ApiError::new(Code::BadKeys, format!("{BAD_KEYS}; the models were taken over"))
        }
        (Err(_), Err(error)) => {
            ApiError::new(Code::BadKeys, format!("{BAD_KEYS}; {}", error.refusal().detail))
        }
    }
}

/// A quarter of the memory that this process may use, within bounds.
fn usual_unsent_bytes() -> usize {
    let quarter = models::limit().map_or(MAX_UNSENT, |bytes| bytes / 4);
    usize::try_from(quarter.clamp(MIN_UNSENT, MAX_UNSENT)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use cognate_testing::Chance;
    use tokio::runtime::Builder;
    use tokio::time::sleep;

    use super::*;
    use crate::http::settings::NamedModel;
    use crate::http::work::file_threads::delays;

    #[test]
    fn a_reload_whose_request_has_gone_keeps_its_turn_until_its_file_is_read() {
        let run = || {
            // With this seed, each file takes some milliseconds.
            delays::draw_from(Chance(2));
            let mut runtime = Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            let model = NamedModel { name: "none".to_owned(), path: "/none".into() };
            let settings = Settings { model: vec![model], ..Settings::default() };
            let app = runtime.block_on(async { App::new(settings).unwrap() });
            runtime.block_on(async {
                for turn in [&app.loading_keys, &app.loading_models] {
                    let mut reload = Box::pin(app.reload());
                    while turn.try_lock().is_ok() {
                        tokio::select! {
                            biased;
                            _ = &mut reload => panic!("it was not seen to read"),
                            () = sleep(Duration::from_millis(1)) => {}
                        }
                    }
                    drop(reload);
                    assert!(turn.try_lock().is_err());
                    drop(turn.lock().await);
                }
            });
        };
        // The simulated delay of files is set per thread.
        thread::spawn(run).join().unwrap();
    }
}
