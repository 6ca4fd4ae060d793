//! The models being served: opened, checked and tried out before any request sees them, and
//! replaced all at once.
//!
//! A request takes one look at the shelf and keeps the model it found until it is answered, so an
//! answer never mixes two.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::HeaderValue;
use rustix::fs::Access;

use crate::engine::Engine;
use crate::engine::Query;
use crate::engine::QueryError;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::keys::KeysError;
use crate::http::memory;
use crate::http::settings::Settings;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::Storage;
use crate::model::mapped::AUTO_COPY_BYTES;

/// Pairs that a model must have finite scores for before it is published.
const CANARY: [(&str, &str); 3] = [
    ("the earthquake hits the city", "a quake shakes the town"),
    ("the earthquake hits the city", "the earthquake hits the city"),
    ("12 % of 3,400 people, #news", "what people read in the news"),
];

/// One model and its name.
pub struct Served {
    /// What requests choose it by.
    pub name: String,
    /// The model with its methods.
    pub engine: Engine,
    /// The model's fingerprint as answers carry it.
    pub fingerprint: HeaderValue,
}

impl Served {
    fn new(name: &str, engine: Engine) -> Self {
        // Hexadecimal digits are fit for a header.
        let fingerprint = HeaderValue::from_str(engine.model().fingerprint());
        let fingerprint = fingerprint.unwrap_or(HeaderValue::from_static("unknown"));
        Self { name: name.to_owned(), engine, fingerprint }
    }
}

/// All models, the default first.
#[derive(Default)]
pub struct Shelf {
    models: Vec<Arc<Served>>,
}

/// Why a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// The file is not sound.
    #[error("model `{name}`: {source}")]
    Model {
        /// The model's name.
        name: String,
        /// What is wrong.
        source: Box<ModelError>,
    },
    /// The file has another digest than the settings demand.
    #[error("model `{name}`: {}: expected BLAKE3 digest {expected}, got {got}; this is not the file that `model_digest` names", path.display())]
    Digest {
        /// The model's name.
        name: String,
        /// The file.
        path: PathBuf,
        /// The digest wanted.
        expected: String,
        /// The digest found.
        got: String,
    },
    /// The settings demand a file that this process cannot change.
    #[error("model `{name}`: this process could write to {}; mount it read-only, or serve without `strict`", path.display())]
    Writable {
        /// The model's name.
        name: String,
        /// The file or its folder.
        path: PathBuf,
    },
    /// There is no memory for it beside what is in use.
    #[error(
        "model `{name}`: model_too_large: {need} bytes are needed and {free} are free; raise the memory limit, or serve it mapped with `model_storage = \"map\"`"
    )]
    TooLarge {
        /// The model's name.
        name: String,
        /// Bytes it takes.
        need: u64,
        /// Bytes there are.
        free: u64,
    },
    /// The key file is not sound.
    #[error("{0}")]
    Keys(KeysError),
    /// Scores of ordinary sentences are not numbers.
    #[error("model `{name}`: {source}; the file is damaged or was packed from damaged vectors")]
    Canary {
        /// The model's name.
        name: String,
        /// What scoring said.
        source: QueryError,
    },
}

impl ShelfError {
    /// The refusal of a reload. Files are named in the log alone.
    pub fn refusal(&self) -> ApiError {
        let (code, name, why) = match self {
            Self::Model { name, .. } => (Code::BadModel, name, "the file is not a sound model"),
            Self::Digest { name, .. } => (Code::BadModel, name, "its digest is not the pinned one"),
            Self::Canary { name, .. } => (Code::BadModel, name, "its scores are not finite"),
            Self::TooLarge { name, .. } => (Code::ModelTooLarge, name, "there is no memory for it"),
            Self::Writable { name, .. } => (Code::BadModel, name, "the server could write to it"),
            Self::Keys(_) => {
                let detail = "the key file is not sound; the keys before it are in force";
                return ApiError::new(Code::BadModel, detail);
            }
        };
        ApiError::new(code, format!("model `{name}`: {why}; the models before it serve on"))
    }
}

impl Shelf {
    /// Opens every model that the settings name.
    pub fn open(settings: &Settings) -> Result<Self, ShelfError> {
        let mut models = Vec::new();
        for (place, named) in settings.model.iter().enumerate() {
            let digest = settings.model_digest.as_deref().filter(|_| place == 0);
            let engine = open(&named.name, &named.path, digest, settings)?;
            models.push(Arc::new(Served::new(&named.name, engine)));
        }
        Ok(Self { models })
    }

    /// A shelf of one model that is already open, for programs that bring their own.
    pub fn of(name: &str, engine: Engine) -> Self {
        Self { models: vec![Arc::new(Served::new(name, engine))] }
    }

    /// The models, the default first.
    pub fn models(&self) -> &[Arc<Served>] {
        &self.models
    }

    /// The model of that name, or the default.
    pub fn choose(&self, name: Option<&str>) -> Result<&Arc<Served>, ApiError> {
        let Some(default) = self.models.first() else {
            return Err(ApiError::new(Code::NotReady, "the models are not loaded yet"));
        };
        let Some(name) = name else { return Ok(default) };
        self.models.iter().find(|served| served.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|served| served.name.as_str()).collect();
            let detail = format!("no such model; this server has {}", names.join(", "));
            ApiError::at(Code::UnknownModel, "/model", detail)
        })
    }

    /// Whether every mapped file is as it was when it was opened.
    pub fn intact(&self) -> bool {
        self.models.iter().all(|served| !served.engine.model().damaged())
    }
}

fn open(
    name: &str,
    path: &Path,
    digest: Option<&str>,
    settings: &Settings,
) -> Result<Engine, ShelfError> {
    let failed =
        |source: ModelError| ShelfError::Model { name: name.to_owned(), source: Box::new(source) };
    if settings.strict
        && let Some(path) = writable(path)
    {
        return Err(ShelfError::Writable { name: name.to_owned(), path });
    }
    // What cannot be looked at is refused by the opening itself, with its reason.
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    let copied = match settings.model_storage {
        Storage::Map => false,
        Storage::Copy => true,
        Storage::Auto => bytes <= AUTO_COPY_BYTES,
    };
    let lacking = memory::lacking(bytes, if copied { bytes } else { 0 });
    if let Some(free) = lacking.filter(|_| bytes <= settings.model_bytes) {
        return Err(ShelfError::TooLarge { name: name.to_owned(), need: bytes, free });
    }
    let model = Model::open(path, &settings.open_options()).map_err(failed)?;
    if let Some(expected) = digest {
        let got = model.digest();
        if !got.eq_ignore_ascii_case(expected) {
            let (name, path) = (name.to_owned(), path.to_owned());
            return Err(ShelfError::Digest { name, path, expected: expected.to_owned(), got });
        }
    }
    let engine = Engine::new(model).map_err(failed)?.with_limits(settings.text_limits());
    let query = Query { truncate: true, ..Query::new(engine.auto()) };
    engine
        .similarity(&CANARY, &query)
        .map_err(|source| ShelfError::Canary { name: name.to_owned(), source })?;
    Ok(engine)
}

/// What of a file and its folder this process could change.
fn writable(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let both = [path, folder.unwrap_or(Path::new("."))];
    let found = both.into_iter().find(|path| rustix::fs::access(*path, Access::WRITE_OK).is_ok());
    found.map(Path::to_owned)
}
