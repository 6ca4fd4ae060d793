//! What no setting can tell of itself alone: whether they fit each other and the machine.

use std::collections::BTreeSet;
use std::path::Path;

use cognate_collections::NO_POSTGRES;

use crate::http::observe::trace;
use crate::http::settings::names::{check_host, check_model_name, check_origin};
use crate::http::settings::value::quoted;
use crate::http::settings::{Loaded, NamedModel, Settings};

/// File descriptors that are not connections: models, logs, listeners, the runtime's own.
const OTHER_FILES: u64 = 64;

/// The facts about the machine that checks need.
pub trait Environment {
    /// Files that the process may have open at once.
    fn open_files(&self) -> u64;

    /// Whether a model file can be served. The settings name no other, and a digest only if it is
    /// this file's.
    fn model(&self, model: &NamedModel, alone: &Settings) -> Result<(), String>;

    fn keys(&self, path: &Path) -> Result<(), String>;

    /// Whether collections can be stored in a folder, which may not exist yet.
    fn data(&self, path: &Path) -> Result<(), String>;

    /// Whether collections can be read along in this folder.
    fn replica_of(&self, path: &Path) -> Result<(), String>;

    /// Whether this is a filter for the log.
    fn log(&self, filter: &str) -> Result<(), String>;

    /// What a start with these settings would meet that may be otherwise at the next moment, where a check
    /// is to look for it.
    fn outlook(&self, _: &Settings) -> Outlook {
        Outlook::default()
    }
}

/// What a start would meet.
#[derive(Debug, Default)]
pub struct Outlook {
    /// Lines that are told.
    pub notes: Vec<String>,
    /// What would end it, by the settings.
    pub problems: Vec<(&'static str, String)>,
}

impl Loaded {
    /// Checks the settings against each other and the machine, and notes every problem.
    pub fn check(&mut self, around: &dyn Environment) {
        if self.unread {
            // A default in place of the file's value could fail checks that the value passes.
            return;
        }
        let settings = self.settings.clone();
        self.check_addresses(&settings);
        self.check_models(&settings, around);
        if let Some(path) = &settings.keys_file
            && let Err(what) = around.keys(path)
        {
            self.wrong("keys_file", what);
        }
        if let Some(path) = &settings.data
            && let Err(what) = around.data(path)
        {
            self.wrong("data", what);
        }
        if let Some(path) = &settings.replica_of
            && let Err(what) = around.replica_of(path)
        {
            self.wrong("replica_of", what);
        }
        let homes = [
            ("data", settings.data.is_some()),
            ("replica_of", settings.replica_of.is_some()),
            ("postgres", settings.postgres.is_some()),
        ];
        for (home, _) in homes.into_iter().filter(|(_, is_given)| *is_given).skip(1) {
            let one = "give one of `data`, `replica_of` and `postgres`".to_owned();
            self.wrong(home, one);
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
            if let Err(what) = check_host(host) {
                self.wrong("allowed_hosts", what);
            }
        }
        for origin in &settings.cors_origins {
            if let Err(what) = check_origin(origin, settings.keys_file.is_some()) {
                self.wrong("cors_origins", what);
            }
        }
        let spooled = settings.spool_files();
        let needed =
            (settings.max_connections as u64).saturating_add(spooled).saturating_add(OTHER_FILES);
        let allowed = around.open_files();
        if needed > allowed {
            self.wrong(
                "max_connections",
                format!(
                    "{} connections, with {spooled} files for streams that are read late, need \
                     {needed} open files and this process may have {allowed}: raise `ulimit -n` or \
                     lower max_connections or max_streams",
                    settings.max_connections
                ),
            );
        }
        if let Some(streams) = settings.max_streams
            && streams >= settings.max_connections
        {
            self.wrong(
                "max_streams",
                format!(
                    "{streams} streams could take all {} connections: lower it, or raise \
                     max_connections",
                    settings.max_connections
                ),
            );
        }
        let each = settings.stream_spool();
        if each > settings.spool_bytes {
            self.wrong(
                "stream_spool_bytes",
                format!(
                    "{each} bytes of one stream are more than the {} of all streams: lower it, or \
                     raise spool_bytes",
                    settings.spool_bytes
                ),
            );
        }
        let largest = settings.max_texts.max(settings.max_pairs).max(settings.max_candidates);
        if settings.admission_units < largest {
            self.wrong(
                "admission_units",
                format!(
                    "{} is less than the {largest} items that one request may have, which could \
                     then never be admitted: raise it, or lower max_texts, max_pairs and \
                     max_candidates",
                    settings.admission_units
                ),
            );
        }
        if let Some(endpoint) = &settings.otlp_endpoint
            && let Err(what) = trace::check_endpoint(endpoint)
        {
            self.wrong("otlp_endpoint", format!("{}: {what}", quoted(endpoint)));
        }
        if let Err(what) = around.log(&settings.log) {
            self.wrong("log", what);
        }
        let Outlook { notes, problems } = around.outlook(&settings);
        self.notes.extend(notes);
        for (key, what) in problems {
            self.wrong(key, what);
        }
    }

    fn check_addresses(&mut self, settings: &Settings) {
        let protected = settings.keys_file.is_some() || settings.allow_no_auth;
        let listens = [("listen", Some(settings.listen)), ("admin_listen", settings.admin_listen)];
        for (key, address) in listens {
            let Some(address) = address else { continue };
            if !protected && !address.ip().to_canonical().is_loopback() {
                self.wrong(
                    key,
                    format!(
                        "others can reach {address} and no keys are asked for: give keys_file (see \
                         `cognate keygen`), listen on 127.0.0.1, or set allow_no_auth"
                    ),
                );
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
            if let Err(what) = check_model_name(&model.name) {
                self.wrong("model", what);
            }
            if !names.insert(&model.name) {
                self.wrong("model", format!("{} names two models", quoted(&model.name)));
            }
            // The digest is that of the first.
            let (model_digest, one) = (digest.take(), vec![model.clone()]);
            let alone = Settings { model_digest, model: one, ..settings.clone() };
            if let Err(what) = around.model(model, &alone) {
                self.wrong("model", what);
            }
        }
    }
}
