//! What settings are read from, and what their checks ask of the machine: files, the environment,
//! limits, models.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::io::Read;
use std::path::Path;

use rustix::process::{Resource, Rlimit};

use crate::cli::{log, model};
use crate::http::auth::keys::Keys;
use crate::http::registry::models::EMBEDDED;
use crate::http::settings::{Environment, FILE_VARIABLE, Layers, Loaded, SettingsFile};
use crate::http::{Models, NamedModel, Settings};

/// The settings file that is read if it is there.
const SETTINGS_FILE: &str = "cognate.toml";
/// Largest settings file.
const SETTINGS_FILE_BYTES: u64 = 1 << 20;

/// The settings of this machine; the model is looked for where no layer names one.
pub(super) fn settings(
    config: Option<&Path>,
    flags: Vec<(String, Vec<String>)>,
    other_flags: &'static [&'static str],
) -> Loaded {
    let (layers, unread) = layers(config, flags);
    let layers = Layers { other_flags, ..layers };
    let mut loaded = Loaded::read(&layers);
    if let Some(what) = unread {
        loaded.note_unread(what);
    }
    if loaded.names_no_model() {
        match model::find(&layers.environment) {
            Ok(found) => loaded.take_found_model(found.path, found.place),
            Err(what) => loaded.note_no_model(what),
        }
    }
    loaded
}

/// The layers of settings on this machine, and why the settings file cannot be read if so.
pub(super) fn layers(
    config: Option<&Path>,
    flags: Vec<(String, Vec<String>)>,
) -> (Layers, Option<String>) {
    let environment: Vec<_> = std::env::vars_os().collect();
    let is_named = |name: &OsStr, path: &OsStr| name == FILE_VARIABLE && !path.is_empty();
    let named = environment.iter().find(|(name, path)| is_named(name, path));
    let named = config.or(named.map(|(_, path)| Path::new(path)));
    let path = named.unwrap_or(Path::new(SETTINGS_FILE));
    let (file, unread) = match read(path) {
        Ok(text) => (Some(SettingsFile { name: path.display().to_string(), text }), None),
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => (None, None),
        Err(error) => (None, Some(format!("cannot read {}: {error}", path.display()))),
    };
    (Layers { file, environment, flags, ..Layers::default() }, unread)
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(SETTINGS_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SETTINGS_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    Ok(text)
}

/// This machine, asked by the checks.
pub(super) struct Machine {
    /// Whether models are opened as for serving, not only looked for.
    pub(super) thorough: bool,
}

impl Environment for Machine {
    /// As many as the process may give itself: it does so here.
    fn open_files(&self) -> u64 {
        let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
        // Where it cannot be raised, what there is stays.
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }

    fn model(&self, model: &NamedModel, alone: &Settings) -> Result<(), String> {
        if !self.thorough && model.is_embedded() && EMBEDDED.is_some() {
            return Ok(());
        }
        if self.thorough || model.is_embedded() {
            return Models::open(alone).map(drop).map_err(|error| error.to_string());
        }
        match model.path.metadata().map(|found| found.is_file()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} is not a regular file", model.path.display())),
            Err(error) => Err(format!("cannot open {}: {error}", model.path.display())),
        }
    }

    fn keys(&self, path: &Path) -> Result<(), String> {
        Keys::read(path).map(drop).map_err(|error| error.to_string())
    }

    fn data(&self, path: &Path) -> Result<(), String> {
        match path.metadata() {
            // It is made at the start.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            found => is_folder(path, found),
        }
    }

    fn replica_of(&self, path: &Path) -> Result<(), String> {
        is_folder(path, path.metadata())
    }

    fn log(&self, filter: &str) -> Result<(), String> {
        log::filter(filter).map(drop)
    }
}

/// Refuses what was found in a path and is no folder.
fn is_folder(path: &Path, found: io::Result<Metadata>) -> Result<(), String> {
    match found {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("{} is not a folder", path.display())),
        Err(error) => Err(format!("cannot open {}: {error}", path.display())),
    }
}
