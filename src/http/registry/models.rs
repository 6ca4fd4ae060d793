//! The models being served: opened, checked and tested before any request sees them, and replaced
//! all at once.
//!
//! A request reads the models once and keeps its model until it is answered, so an answer never
//! mixes two.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::http::HeaderValue;
use cognate::engine::{Engine, Query, QueryError};
use cognate::model::format::Limits;
use cognate::model::{Model, ModelError, Storage};
use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code, Result};
use crate::http::registry::models;
use crate::http::settings::{NamedModel, Settings};

/// Aligned so that the widest registers can read rows.
#[cfg(feature = "embed-model")]
#[repr(C, align(64))]
struct Aligned<B: ?Sized>(B);
#[cfg(feature = "embed-model")]
static FILE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors")));
#[cfg(feature = "embed-model")]
pub(crate) static EMBEDDED: Option<&[u8]> = Some(&FILE.0);
#[cfg(not(feature = "embed-model"))]
pub(crate) static EMBEDDED: Option<&[u8]> = None;

/// Pairs for which a model must have finite scores before it is served.
const CANARY: [(&str, &str); 3] = [
    ("the earthquake hits the city", "a quake shakes the town"),
    ("the earthquake hits the city", "the earthquake hits the city"),
    ("12 % of 3,400 people, #news", "what people read in the news"),
];

pub struct LoadedModel {
    pub name: Arc<str>,
    pub engine: Engine,
    pub fingerprint: HeaderValue,
}

impl AsRef<Engine> for LoadedModel {
    fn as_ref(&self) -> &Engine {
        &self.engine
    }
}

impl LoadedModel {
    fn new(name: &str, engine: Engine) -> Self {
        // Hexadecimal digits are valid in a header.
        let fingerprint = HeaderValue::from_str(engine.model().fingerprint());
        let fingerprint = fingerprint.unwrap_or(HeaderValue::from_static("unknown"));
        Self { name: name.into(), engine, fingerprint }
    }

    /// Refuses a model whose file was changed in place: its scores may be wrong.
    pub(crate) fn check_sound(&self) -> Result<()> {
        if !self.engine.model().damaged() {
            return Ok(());
        }
        let detail = format!(
            "the file of model `{}` was changed in place; it has to be replaced and reloaded",
            self.name
        );
        Err(ApiError::new(Code::NotReady, detail))
    }
}

#[derive(Default)]
pub struct Models {
    models: Vec<Arc<LoadedModel>>,
    pub document: OnceLock<Bytes>,
}

#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    #[error("model `{name}`: {source}")]
    Model { name: String, source: Box<ModelError> },
    #[error("model `{name}`: {}: expected BLAKE3 digest {expected}, got {got}; this is not the file that `model_digest` names", path.display())]
    Digest { name: String, path: PathBuf, expected: String, got: String },
    #[error("model `{name}`: this process could write to {}; mount it read-only, or serve without `strict`", path.display())]
    Writable { name: String, path: PathBuf },
    #[error(
        "model `{name}`: this program was built without the feature `embed-model` and holds no model"
    )]
    NotEmbedded { name: String },
    #[error(
        "model `{name}`: model_too_large: {need} bytes are needed and {free} are free; raise the memory limit, or serve it mapped with `model_storage = \"map\"`"
    )]
    TooLarge { name: String, need: u64, free: u64 },
    #[error("model `{name}`: {source}; the file is damaged or was packed from damaged vectors")]
    Canary { name: String, source: QueryError },
}

impl ModelsError {
    /// Returns the answer's error for a failed reload. It names no files; the log does.
    pub(crate) fn refusal(&self) -> ApiError {
        let (code, name, why) = match self {
            Self::Model { name, source } if matches!(**source, ModelError::Io { .. }) => {
                (Code::BadModel, name, "the file cannot be read; the log says why")
            }
            Self::Model { name, .. } => (Code::BadModel, name, "the file is not a sound model"),
            Self::NotEmbedded { name } => (Code::BadModel, name, "the program holds no model"),
            Self::Digest { name, .. } => (Code::BadModel, name, "its digest is not the pinned one"),
            Self::Canary { name, .. } => (Code::BadModel, name, "its scores are not finite"),
            Self::TooLarge { name, .. } => (Code::ModelTooLarge, name, "there is no memory for it"),
            Self::Writable { name, .. } => (Code::BadModel, name, "the server could write to it"),
        };
        ApiError::new(code, format!("model `{name}`: {why}; the models before it serve on"))
    }
}

impl Models {
    pub fn open(settings: &Settings) -> Result<Self, ModelsError> {
        let mut models = Vec::new();
        for (place, named) in settings.model.iter().enumerate() {
            let digest = settings.model_digest.as_deref().filter(|_| place == 0);
            let engine = open(named, digest, settings)?;
            models.push(Arc::new(LoadedModel::new(&named.name, engine)));
        }
        Ok(Self { models, document: OnceLock::new() })
    }

    /// A model that is already open, for programs that embed the service.
    pub fn with_engine(name: &str, engine: Engine) -> Self {
        Self { models: vec![Arc::new(LoadedModel::new(name, engine))], document: OnceLock::new() }
    }

    pub fn all(&self) -> &[Arc<LoadedModel>] {
        &self.models
    }

    /// The model of that name, or the default.
    pub fn choose(&self, name: Option<&str>) -> Result<&Arc<LoadedModel>> {
        let Some(default) = self.models.first() else {
            return Err(ApiError::new(Code::NotReady, "the models are not loaded yet"));
        };
        let Some(name) = name else { return Ok(default) };
        self.models.iter().find(|model| *model.name == *name).ok_or_else(|| {
            let names: Vec<&str> = self.models.iter().map(|model| &*model.name).collect();
            let detail =
                format!("no model is named {name:?}; this server has {}", names.join(", "));
            ApiError::at(Code::UnknownModel, "/model", detail)
        })
    }
}

fn open(
    named: &NamedModel,
    digest: Option<&str>,
    settings: &Settings,
) -> Result<Engine, ModelsError> {
    let name = || named.name.clone();
    let failed = |source: ModelError| ModelsError::Model { name: name(), source: Box::new(source) };
    let model = if named.is_embedded() {
        let bytes = EMBEDDED.ok_or_else(|| ModelsError::NotEmbedded { name: name() })?;
        Model::from_program(bytes, &settings.open_options()).map_err(failed)?
    } else {
        open_file(named, settings)?
    };
    if let Some(expected) = digest {
        let got = model.digest();
        if !got.eq_ignore_ascii_case(expected) {
            let (path, expected) = (named.path.clone(), expected.to_owned());
            return Err(ModelsError::Digest { name: name(), path, expected, got });
        }
    }
    let engine = Engine::new(model).map_err(failed)?;
    // The test sentences may be longer than the limit of texts.
    let query = Query { truncate: true, ..Query::new(engine.auto()) };
    engine
        .similarity(&CANARY, &query)
        .map_err(|source| ModelsError::Canary { name: name(), source })?;
    Ok(engine.with_limits(settings.text_limits()))
}

fn open_file(named: &NamedModel, settings: &Settings) -> Result<Model, ModelsError> {
    let path = &named.path;
    if settings.strict
        && let Some(path) = writable(path)
    {
        return Err(ModelsError::Writable { name: named.name.clone(), path });
    }
    // A file that cannot be examined is refused when it is opened, with the reason.
    let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
    check_memory(named, bytes, settings.model_storage == Storage::Copy)?;
    Model::open(path, &settings.open_options())
        .map_err(|source| ModelsError::Model { name: named.name.clone(), source: Box::new(source) })
}

fn check_memory(named: &NamedModel, bytes: u64, copied: bool) -> Result<(), ModelsError> {
    let lacking = models::lacking(bytes, if copied { bytes } else { 0 });
    match lacking.filter(|_| bytes <= Limits::DEFAULT.model_bytes) {
        Some(free) => Err(ModelsError::TooLarge { name: named.name.clone(), need: bytes, free }),
        None => Ok(()),
    }
}

/// The part of a path that this process could write to: the file or its folder.
fn writable(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let both = [path, folder.unwrap_or(Path::new("."))];
    let found = both.into_iter().find(|path| rustix::fs::access(*path, Access::WRITE_OK).is_ok());
    found.map(Path::to_owned)
}

/// Memory reserved for requests besides a model.
const RESERVE: u64 = 32 << 20;

/// How many bytes are free, if that is too few for a model that takes `addresses` bytes of address
/// space and `resident` bytes of memory. `None` if it fits, or if no limit of this process is
/// known.
pub(crate) fn lacking(addresses: u64, resident: u64) -> Option<u64> {
    let limits = [(free_addresses(), addresses), (free_in_group(), resident)];
    let short = |(free, need): (Option<u64>, u64)| {
        free.filter(|&free| need > 0 && free < need.saturating_add(RESERVE))
    };
    limits.into_iter().filter_map(short).min()
}

/// Bytes that this process may use: the least of the rest of its address limit, its control group's
/// limit, and the machine's memory. `None` if none of them is known.
pub(crate) fn limit() -> Option<u64> {
    [free_addresses(), group_limit(), machine()].into_iter().flatten().min()
}

fn machine() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemTotal:")
}

/// A number of kilobytes in a table of the kernel, in bytes.
fn kilobytes(table: &str, name: &str) -> Option<u64> {
    let table = fs::read_to_string(table).ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

fn free_addresses() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// Memory that the control group of this process may still take. Cached pages of files count as
/// used there, but can be reclaimed.
fn free_in_group() -> Option<u64> {
    let (folder, names) = group()?;
    let limit = number(&folder, names.limit)?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix(names.inactive_files));
    let files = files.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number(&folder, names.used)?.saturating_sub(files)))
}

fn group_limit() -> Option<u64> {
    let (folder, names) = group()?;
    number(&folder, names.limit)
}

struct Names {
    limit: &'static str,
    used: &'static str,
    inactive_files: &'static str,
}

const SECOND_VERSION: Names =
    Names { limit: "memory.max", used: "memory.current", inactive_files: "inactive_file " };
const FIRST_VERSION: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive_files: "total_inactive_file ",
};

/// The folder of the control group of this process, of either version. In a container a group of
/// the first version is at the root, whatever its path outside.
fn group() -> Option<(PathBuf, Names)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let under = |root: &str, own: &str| Path::new(root).join(own.trim_start_matches('/'));
    let own = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then(|| path.to_owned())
    };
    if let Some(own) = groups.lines().find_map(own) {
        let root = "/sys/fs/cgroup/memory";
        let folders = [under(root, &own), PathBuf::from(root)];
        let found = folders.into_iter().find(|folder| folder.join(FIRST_VERSION.limit).exists());
        return found.map(|folder| (folder, FIRST_VERSION));
    }
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((under("/sys/fs/cgroup", own), SECOND_VERSION))
}

/// A number of a control group; `None` for `max`.
fn number(group: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
}

/// What a reload took over.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reloaded {
    /// How many keys are let in, where keys are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<usize>,
    /// Name and fingerprint of each model.
    pub models: Vec<ModelSummary>,
}

/// A model that was loaded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelSummary {
    /// The model's name.
    pub name: String,
    /// Sixteen hexadecimal digits that change with the model.
    pub fingerprint: String,
}
