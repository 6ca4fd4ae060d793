//! Checks that involve several settings or the machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cognate_collections::NO_POSTGRES;

use crate::http::observe::trace;
use crate::http::settings::names::{check_host, check_model_name, check_origin};
use crate::http::settings::value::quoted;
use crate::http::settings::{Loaded, NamedModel, Settings};

/// File descriptors that are not connections: models, logs, listeners, the runtime's own.
const OTHER_FILES: u64 = 64;

/// Resolves symbolic links in the longest existing ancestor of a path; keeps the rest as it is.
fn real(path: &Path) -> PathBuf {
    let known = |part: &Path| {
        let named = if part.as_os_str().is_empty() { Path::new(".") } else { part };
        Some(fs::canonicalize(named).ok()?.join(path.strip_prefix(part).ok()?))
    };
    path.ancestors().find_map(known).unwrap_or_else(|| path.to_owned())
}

pub trait Environment {
    fn open_files(&self) -> u64;

    /// Whether a model file can be served. The settings name no other, and a digest only if it is
    /// this file's.
    fn model(&self, model: &NamedModel, alone: &Settings) -> Result<(), String>;

    fn keys(&self, path: &Path) -> Result<(), String>;

    /// Whether collections can be stored in a folder, which may not exist yet.
    fn data(&self, path: &Path) -> Result<(), String>;

    fn replica_of(&self, path: &Path) -> Result<(), String>;

    fn log(&self, filter: &str) -> Result<(), String>;

    /// The problems that would prevent a start with these settings now but may change at any
    /// moment, if a check is to look for them.
    fn outlook(&self, _: &Settings) -> Outlook {
        Outlook::default()
    }
}

#[derive(Debug, Default)]
pub struct Outlook {
    pub notes: Vec<String>,
    /// Problems that would end the start, by setting.
    pub problems: Vec<(&'static str, String)>,
}

impl Loaded {
    /// Checks the settings against each other and the machine, and records every problem.
    pub fn check(&mut self, around: &dyn Environment) {
        if self.unread {
            // A default in place of the file's value could fail checks that the value passes.
            return;
        }
        let settings = self.settings.clone();
        self.check_addresses(&settings);
        self.check_models(&settings, around);
        self.hold(
            "keys_file",
            settings.keys_file.as_deref().map_or(Ok(()), |path| around.keys(path)),
        );
        self.hold("data", settings.data.as_deref().map_or(Ok(()), |path| around.data(path)));
        let replica_of = settings.replica_of.as_deref();
        self.hold("replica_of", replica_of.map_or(Ok(()), |path| around.replica_of(path)));
        let homes = [
            ("data", settings.data.is_some()),
            ("replica_of", settings.replica_of.is_some()),
            ("postgres", settings.postgres.is_some()),
        ];
        for (home, _) in homes.into_iter().filter(|(_, is_given)| *is_given).skip(1) {
            self.wrong(home, "give one of `data`, `replica_of` and `postgres`".to_owned());
        }
        if let Some(backups) = &settings.backups {
            match settings.folder() {
                None => {
                    self.wrong("backups", "give `data` or `replica_of`, which is copied".to_owned())
                }
                Some(data) if real(backups).starts_with(real(data)) => {
                    self.wrong(
                        "backups",
                        format!("it is within {}: name another place", data.display()),
                    );
                }
                Some(_) => {}
            }
        }
        if settings.postgres.is_some() && !cfg!(feature = "postgres") {
            self.wrong("postgres", NO_POSTGRES.to_owned());
        }
        let quotas = [
            ("collections_per_key", settings.collections_per_key.is_some()),
            ("collection_items_per_key", settings.collection_items_per_key.is_some()),
            ("collection_bytes_per_key", settings.collection_bytes_per_key.is_some()),
        ];
        let is_remote = settings.postgres.is_some();
        for (quota, _) in quotas.into_iter().filter(|(_, is_given)| *is_given && is_remote) {
            let what = "this server does not count what others write to a database: leave it out, or \
                        keep collections in a folder";
            self.wrong(quota, what.to_owned());
        }
        for host in &settings.allowed_hosts {
            self.hold("allowed_hosts", check_host(host));
        }
        for origin in &settings.cors_origins {
            self.hold("cors_origins", check_origin(origin, settings.keys_file.is_some()));
        }
        let (connections, spooled) = (settings.max_connections, settings.spool_files());
        let needed = (connections as u64).saturating_add(spooled).saturating_add(OTHER_FILES);
        let allowed = around.open_files();
        if needed > allowed {
            let what = format!(
                "{connections} connections, with {spooled} files for streams that are read late, need \
                 {needed} open files and this process may have {allowed}: raise `ulimit -n` or lower \
                 max_connections or max_streams"
            );
            self.wrong("max_connections", what);
        }
        if let Some(streams) = settings.max_streams.filter(|streams| *streams >= connections) {
            let what = format!(
                "{streams} streams could take all {connections} connections: lower it, or raise \
                 max_connections"
            );
            self.wrong("max_streams", what);
        }
        let (each, all) = (settings.stream_spool(), settings.spool_bytes);
        if each > all {
            let what = format!(
                "{each} bytes of one stream are more than the {all} of all streams: lower it, or raise \
                 spool_bytes"
            );
            self.wrong("stream_spool_bytes", what);
        }
        let largest = settings.max_texts.max(settings.max_pairs).max(settings.max_candidates);
        let units = settings.admission_units;
        if units < largest {
            let what = format!(
                "{units} is less than the {largest} items that one request may have, which could then \
                 never be admitted: raise it, or lower max_texts, max_pairs and max_candidates"
            );
            self.wrong("admission_units", what);
        }
        if let Some(endpoint) = &settings.otlp_endpoint {
            let checked = trace::check_endpoint(endpoint);
            self.hold(
                "otlp_endpoint",
                checked.map_err(|what| format!("{}: {what}", quoted(endpoint))),
            );
        }
        self.hold("log", around.log(&settings.log));
        let Outlook { notes, problems } = around.outlook(&settings);
        self.notes.extend(notes);
        for (key, what) in problems {
            self.wrong(key, what);
        }
    }

    fn hold(&mut self, key: &'static str, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.wrong(key, what);
        }
    }

    fn check_addresses(&mut self, settings: &Settings) {
        let protected = settings.keys_file.is_some() || settings.allow_no_auth;
        let listens = [("listen", Some(settings.listen)), ("admin_listen", settings.admin_listen)];
        for (key, address) in listens {
            let Some(address) = address else { continue };
            if !protected && !address.ip().to_canonical().is_loopback() {
                let what = format!(
                    "others can reach {address} and no keys are asked for: give keys_file (see \
                     `cognate keygen`), listen on 127.0.0.1, or set allow_no_auth"
                );
                self.wrong(key, what);
            }
        }
        if settings.admin_listen == Some(settings.listen) && settings.listen.port() != 0 {
            self.wrong("admin_listen", format!("{} is taken by listen", settings.listen));
        }
    }

    fn check_models(&mut self, settings: &Settings, around: &dyn Environment) {
        let hex = |digest: &String| {
            digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let mut digest = settings.model_digest.clone();
        if let Some(wrong) = digest.take_if(|digest| !hex(digest)) {
            self.wrong("model_digest", format!("{} is not 64 hex digits", quoted(&wrong)));
        }
        let mut names = BTreeSet::new();
        for model in &settings.model {
            self.hold("model", check_model_name(&model.name));
            if !names.insert(&model.name) {
                self.wrong("model", format!("{} names two models", quoted(&model.name)));
            }
            // `model_digest` is the digest of the first model only.
            let (model_digest, one) = (digest.take(), vec![model.clone()]);
            let alone = Settings { model_digest, model: one, ..settings.clone() };
            self.hold("model", around.model(model, &alone));
        }
    }
}
