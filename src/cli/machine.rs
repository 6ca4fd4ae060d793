//! What settings and their checks read from the machine: files, the environment, limits, models.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use cognate::model::IoCause;
use cognate_collections::{CollectionError, check_logs};
use rustix::process::{Resource, Rlimit};

use crate::cli::{log, model};
use crate::http::auth::keys::Keys;
use crate::http::registry::models::EMBEDDED;
use crate::http::settings::{
    Damaged, Environment, FILE_VARIABLE, Layers, Loaded, Outlook, SettingsFile, read_text,
};
use crate::http::{Models, NamedModel, Settings};

const SETTINGS_FILE: &str = "cognate.toml";

/// The settings of this machine; searches for a model if no layer names one.
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

/// The layers of settings on this machine, and the error of the settings file, if it cannot be
/// read.
pub(super) fn layers(
    config: Option<&Path>,
    flags: Vec<(String, Vec<String>)>,
) -> (Layers, Option<String>) {
    let environment: Vec<_> = std::env::vars_os().collect();
    let is_named = |name: &OsStr, path: &OsStr| name == FILE_VARIABLE && !path.is_empty();
    let named = environment.iter().find(|(name, path)| is_named(name, path));
    let named = config.or(named.map(|(_, path)| Path::new(path)));
    let path = named.unwrap_or(Path::new(SETTINGS_FILE));
    let (file, unread) = match read_text(path) {
        Ok(text) => (Some(SettingsFile { name: path.display().to_string(), text }), None),
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => (None, None),
        Err(error) => (None, Some(format!("cannot read {}: {}", path.display(), IoCause(&error)))),
    };
    (Layers { file, environment, flags, ..Layers::default() }, unread)
}

/// This machine, queried by the checks.
pub(super) struct Machine {
    /// Whether models are opened as for serving, and not only searched for.
    pub(super) thorough: bool,
}

impl Environment for Machine {
    /// As many as the process may allow itself: it raises its limit here.
    fn open_files(&self) -> u64 {
        let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
        // If it cannot be raised, the limit stays.
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
            Err(error) => Err(format!("cannot open {}: {}", model.path.display(), IoCause(&error))),
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

    fn outlook(&self, settings: &Settings) -> Outlook {
        let mut found = Outlook::default();
        if !self.thorough {
            return found;
        }
        try_address(&mut found, "listen", settings.listen);
        if let Some(address) = settings.admin_listen.filter(|admin| *admin != settings.listen) {
            try_address(&mut found, "admin_listen", address);
        }
        if let Some(folder) = settings.data.as_deref().filter(|folder| folder.is_dir()) {
            let stops = settings.damaged == Damaged::Refuse;
            read_logs(&mut found, "data", check_logs(folder, false), stops);
        }
        if let Some(folder) = settings.replica_of.as_deref().filter(|folder| folder.is_dir()) {
            let stops = settings.damaged == Damaged::Refuse;
            read_logs(&mut found, "replica_of", check_logs(folder, true), stops);
        }
        found
    }
}

/// Listens on an address for a moment. An address in use may belong to the running service of these
/// settings.
fn try_address(found: &mut Outlook, key: &'static str, address: SocketAddr) {
    match TcpListener::bind(address) {
        Ok(_) => found.notes.push(format!("{key}: {address} can be listened on")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => found.notes.push(format!(
            "{key}: {address} is in use, by this service if it runs or by another program; a start needs \
             it free"
        )),
        Err(error) => {
            found.problems.push((key, format!("cannot listen on {address}: {error}")));
        }
    }
}

fn read_logs(
    found: &mut Outlook,
    key: &'static str,
    logs: Result<Vec<Result<u64, CollectionError>>, CollectionError>,
    stops: bool,
) {
    let logs = match logs {
        Ok(logs) => logs,
        Err(error) => return found.problems.push((key, error.to_string())),
    };
    let (mut collections, mut bytes) = (0, 0);
    for log in logs {
        match log {
            Ok(length) => {
                collections += 1;
                bytes += length;
            }
            Err(error) if stops => found.problems.push((key, error.to_string())),
            Err(error) => found.notes.push(format!("{key}: is not served: {error}")),
        }
    }
    found
        .notes
        .push(format!("{key}: the logs of {collections} collections are whole, {bytes} bytes"));
}

fn is_folder(path: &Path, found: io::Result<Metadata>) -> Result<(), String> {
    match found {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(format!("{} is not a folder", path.display())),
        Err(error) => Err(format!("cannot open {}: {}", path.display(), IoCause(&error))),
    }
}
