//! Every setting of the service: one list, from which the struct, the defaults, flags, names of
//! variables, keys of the file, help and checks are derived.
//!
//! Values come in as text through [`Layers`]; this module never reads the environment or files.

mod checks;
mod file;
mod layers;
mod list;
mod names;
mod value;
mod written;

pub use checks::{Environment, Outlook};
use std::path::PathBuf;

use cognate::engine::TextLimits;
use cognate::model::OpenOptions;
use cognate::model::format::Limits;
pub use layers::{
    FILE_VARIABLE, Layers, Loaded, Origin, Problem, SettingsFile, nearest, read_text,
};
pub use list::{LIST, Setting, Settings};
pub use value::{DatabaseUrl, NamedModel, RawValue, Rule, ValueShape};
pub use written::example;

/// Files that the largest unread answer of a stream is divided into, within the two bounds of their
/// size: room is freed a file at a time.
const SPOOL_FILES: u64 = 16;
const MIN_SPOOL_FILE: u64 = 64 << 10;
const MAX_SPOOL_FILE: u64 = 8 << 20;

/// Bytes of a body that count as one item before items are counted: a pair of tweets.
const BYTES_PER_ITEM: usize = 128;
/// Collections that have series of their own where only operators read them.
const NAMED_COLLECTIONS: usize = 100;

/// What an unreadable log stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    Refuse,
    ServeOthers,
}

impl Settings {
    pub(crate) fn open_options(&self) -> OpenOptions {
        OpenOptions { verify: self.verify, storage: self.model_storage, limits: Limits::DEFAULT }
    }

    pub(crate) fn most_streams(&self) -> usize {
        self.max_streams.unwrap_or(self.max_connections / 4).max(1)
    }

    /// Bytes of unread answers of a stream that may be in files; 0 for no files.
    pub(crate) fn stream_spool(&self) -> u64 {
        self.stream_spool_bytes.unwrap_or(0)
    }

    /// Bytes after which the next file for unread answers of a stream is begun.
    pub(crate) fn spool_file_bytes(&self) -> u64 {
        (self.stream_spool() / SPOOL_FILES).clamp(MIN_SPOOL_FILE, MAX_SPOOL_FILE)
    }

    /// Files for unread answers of streams that may be open at once.
    pub(crate) fn spool_files(&self) -> u64 {
        let streams = self.most_streams() as u64;
        let bytes = self.spool_bytes.min(self.stream_spool().saturating_mul(streams));
        // The last file of each stream may be incomplete.
        if bytes == 0 { 0 } else { (bytes / self.spool_file_bytes()).saturating_add(streams) }
    }

    pub(crate) fn named_collections(&self) -> usize {
        let usual = if self.admin_listen.is_some() { NAMED_COLLECTIONS } else { 0 };
        self.collection_series.unwrap_or(usual)
    }

    /// The folder whose collections are served.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.replica_of.as_ref().or(self.data.as_ref())
    }

    pub(crate) fn collection_limits(&self) -> cognate_collections::Limits {
        cognate_collections::Limits {
            collections: self.max_collections,
            items: self.collection_items,
            bytes: self.collection_bytes,
            text_bytes: self.text_bytes,
        }
    }

    /// Number of items that a body of this length counts as before its items are counted.
    pub(crate) fn items_in(&self, bytes: usize) -> usize {
        let most = self.max_pairs.max(self.max_candidates).max(self.max_texts);
        (bytes / BYTES_PER_ITEM).min(most)
    }

    pub fn text_limits(&self) -> TextLimits {
        TextLimits { bytes: self.text_bytes, chars: self.text_chars, tokens: self.tokens_per_text }
    }
}
