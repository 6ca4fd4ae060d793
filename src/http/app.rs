//! What all requests share: the settings, the models, the room for work, the counters.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

use arc_swap::ArcSwap;
use arc_swap::Guard;

use crate::http::admission::Admission;
use crate::http::compute::Compute;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::frame::Ids;
use crate::http::guard::Access;
use crate::http::metrics::Metrics;
use crate::http::metrics::Moment;
use crate::http::models::Served;
use crate::http::models::Shelf;
use crate::http::models::ShelfError;
use crate::http::openapi;
use crate::http::serve::ServeError;
use crate::http::settings::Settings;
use crate::http::status::LoadedModel;
use crate::http::trace::Tracer;

/// The service's state.
pub struct App {
    /// The settings.
    pub settings: Settings,
    /// Room for work.
    pub admission: Admission,
    /// The threads that compute.
    pub compute: Compute,
    /// The counters.
    pub metrics: Metrics,
    /// Where requests get their ids.
    pub ids: Ids,
    /// Where requests get their spans.
    pub tracer: Tracer,
    shelf: ArcSwap<Shelf>,
    access: ArcSwap<Option<Access>>,
    draining: AtomicBool,
    intact: AtomicBool,
    /// One reload at a time.
    reloading: Mutex<()>,
}

impl App {
    /// A service without models yet; [`App::reload`] loads them.
    pub fn new(settings: Settings) -> Result<Arc<Self>, ServeError> {
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = settings.compute_threads.unwrap_or_else(cores);
        Ok(Arc::new(Self {
            admission: Admission::new(settings.admission_units),
            compute: Compute::new(threads, settings.compute_queue)?,
            metrics: Metrics::new(&openapi::routes())?,
            ids: Ids::new(),
            tracer: Tracer::new(settings.otlp_endpoint.as_deref()).map_err(ServeError::Tracer)?,
            shelf: ArcSwap::default(),
            access: ArcSwap::from_pointee(Access::open(&settings)?),
            draining: AtomicBool::new(false),
            intact: AtomicBool::new(true),
            reloading: Mutex::new(()),
            settings,
        }))
    }

    /// A service with models that are open already.
    pub fn with_models(settings: Settings, shelf: Shelf) -> Result<Arc<Self>, ServeError> {
        let app = Self::new(settings)?;
        app.shelf.store(Arc::new(shelf));
        Ok(app)
    }

    /// The models. A request looks once and keeps what it got.
    pub fn shelf(&self) -> Arc<Shelf> {
        self.shelf.load_full()
    }

    /// The keys that are let in; none if everybody is.
    pub fn access(&self) -> Guard<Arc<Option<Access>>> {
        self.access.load()
    }

    /// Opens the key file and the model files again, checks them, and takes them into use; what is
    /// in use stays if any of them is bad. Blocks while files are read.
    pub fn reload(&self) -> Result<Vec<LoadedModel>, ApiError> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = Access::open(&self.settings)
            .map_err(ShelfError::Keys)
            .and_then(|access| Ok((Shelf::open(&self.settings)?, access)));
        match opened {
            Ok((shelf, access)) => {
                let loaded = |served: &Arc<Served>| LoadedModel {
                    name: served.name.clone(),
                    fingerprint: served.engine.model().fingerprint().to_owned(),
                };
                let models: Vec<LoadedModel> = shelf.models().iter().map(loaded).collect();
                self.shelf.store(Arc::new(shelf));
                self.access.store(Arc::new(access));
                self.intact.store(true, Ordering::Release);
                self.metrics.reloads.increment(1);
                let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
                tracing::info!(models = names.join(","), "models loaded");
                Ok(models)
            }
            Err(error) => {
                self.metrics.reload_failures.increment(1);
                tracing::error!(%error, "models not loaded");
                Err(error.refusal())
            }
        }
    }

    /// Looks whether a mapped file was changed in place, which makes its scores doubtful.
    pub fn look_after_models(&self) {
        let intact = self.shelf().intact();
        if self.intact.swap(intact, Ordering::AcqRel) && !intact {
            tracing::error!(
                "a model file was changed in place under its map; scores may be wrong until it is \
                 replaced by a rename and reloaded"
            );
        }
    }

    /// Tells load balancers to look elsewhere, while everything is still answered.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Why requests are not welcome, if they are not.
    pub fn check_ready(&self) -> Result<(), ApiError> {
        if self.draining.load(Ordering::Acquire) {
            return Err(ApiError::new(Code::Draining, "the server is about to stop"));
        }
        if self.shelf().models().is_empty() {
            return Err(ApiError::new(Code::NotReady, "the models are not loaded yet"));
        }
        if !self.intact.load(Ordering::Acquire) {
            let detail = "a model file was changed in place; it has to be replaced and reloaded";
            return Err(ApiError::new(Code::NotReady, detail));
        }
        Ok(())
    }

    /// What the metrics page shows of this moment.
    pub fn moment(&self) -> Moment {
        let shelf = self.shelf();
        let models = shelf.models().iter().map(|served| {
            let model = served.engine.model();
            let words = model.vocabulary().len() as u64;
            (served.name.clone(), model.bytes(), words, !model.damaged())
        });
        Moment {
            admission: (self.admission.in_use(), self.settings.admission_units),
            compute: self.compute.census(),
            ready: self.check_ready().is_ok(),
            models: models.collect(),
        }
    }
}
