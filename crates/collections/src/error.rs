//! Why a request to a collection fails.

use std::io;
use std::path::{Path, PathBuf};

use cognate::model::IoCause;

use crate::item::ItemProblem;
use crate::settings::NAME_BYTES;

/// What a request to a collection comes to, or why it fails.
pub type Result<T, E = CollectionError> = std::result::Result<T, E>;

/// Messages of refusals are for the caller; messages that name files or hosts are for the log.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    #[error("there is no collection of this name")]
    Unknown,
    #[error(
        "a collection's name has at most {NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, the first a \
         letter or digit"
    )]
    BadName,
    #[error("there are {limit} collections (setting `max_collections`)")]
    TooMany { limit: usize },
    #[error(
        "the collection would have {wanted} items; the limit is {limit} (setting `collection_items`). With \
         `max_items` the oldest leave"
    )]
    TooManyItems { wanted: usize, limit: usize },
    /// The new settings would delete items, and the caller did not allow that.
    #[error("by these settings {items} items would be deleted")]
    WouldDrop { items: usize },
    #[error("{problem}")]
    Item { index: usize, problem: ItemProblem },
    #[error(
        "the collection has another text of this `id`; with `replace` this one takes its place"
    )]
    OtherText { index: usize },
    #[error("the collection has no item of an event of this name")]
    NoEvent,
    #[error("{problem}")]
    EventChange {
        /// JSON pointer to the list that names the items.
        field: &'static str,
        index: Option<usize>,
        problem: &'static str,
    },
    #[error(
        "collections would take more than {limit} bytes of memory (setting `collection_bytes`)"
    )]
    NoMemory { limit: usize },
    /// Items that move between events would take more memory than the caller may have.
    #[error("items that move would take up to {more} bytes more; {room} are left")]
    NoRoom { more: usize, room: usize },
    /// The change could not be written; nothing of it was applied.
    #[error("cannot write {}: {}", path.display(), IoCause(source))]
    Write { path: PathBuf, source: io::Error },
    /// The system could not make a write durable. The write is undone in memory, though it may be
    /// there after a restart; until then no changes are accepted.
    #[error(
        "{}: what was written could not be made to last, so it is taken back and nothing more is \
         written until the process starts again",
        path.display()
    )]
    Unsynced { path: PathBuf },
    /// A file that is written to, or the lock of its folder, was replaced or removed. The change
    /// was not written.
    #[error(
        "{} is not as this process left it: it was deleted, moved, replaced or cut off meanwhile. Nothing \
         is written until the process starts again",
        path.display()
    )]
    Away { path: PathBuf },
    #[error(
        "{}: {problem}. Bring back a copy of this file, or move its folder away to start without this \
         collection",
        path.display()
    )]
    NoLog { path: PathBuf, problem: &'static str },
    #[error("cannot read {}: {}", path.display(), IoCause(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: another process has these collections open", path.display())]
    InUse { path: PathBuf },
    /// Another process, whose lock this system does not show, touches the lock file.
    #[error(
        "{}: a process has touched its lock just now, perhaps on another machine, so it still writes there; \
         stop it first",
        path.display()
    )]
    Alive { path: PathBuf },
    #[error("{} has no collections in it, and never had", path.display())]
    NoCollections { path: PathBuf },
    #[error(
        "the server is about to stop and handed its collections over to the one that follows it; send this to \
         that one"
    )]
    HandedOver,
    #[error(
        "this server is a replica, which takes no changes; send them to the server that keeps the \
         collections"
    )]
    ReadOnly,
    #[error(
        "{}, byte {offset}: {problem}; nothing was changed. Bring back a copy of this file, or move \
         its folder away to start without this collection",
        path.display()
    )]
    Damaged { path: PathBuf, offset: u64, problem: String },
    #[error(
        "{}, byte {offset}: {problem}, so a newer version than this one ({}) wrote it; nothing was changed. \
         The version that wrote it reads it, or a later one",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    NewerFormat { path: PathBuf, offset: u64, problem: String },
    /// The log of the collection cannot be read; the other collections are served.
    #[error("this collection is not served, because its log cannot be read: {problem}")]
    NotServed { problem: String },
    /// The database cannot be reached. The change was not written.
    #[error("the database of the collections cannot be reached: {problem}")]
    Unreachable { problem: String },
    #[error("the database of the collections takes too long: {problem}")]
    Slow { problem: String },
    /// The database is read-only or full; the change was not written.
    #[error("the database of the collections takes nothing: {problem}")]
    Unwritable { problem: String },
    /// The connection was lost while the database wrote: the change may be there or not.
    #[error("the database of the collections did not say whether it wrote: {problem}")]
    Uncertain { problem: String },
    /// An unforeseen error of the database.
    #[error("the database of the collections: {problem}")]
    Database { problem: String },
    #[error("{problem}")]
    NotSetUp { problem: String },
    #[error(
        "more than {limit} items would be sent from the database to be ranked; ask for a `shortlist`, or \
         filter them"
    )]
    TooManyChosen { limit: usize },
}

impl CollectionError {
    pub(super) fn reading(path: &Path) -> impl Fn(io::Error) -> Self + Copy + '_ {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn writing(path: &Path) -> impl Fn(io::Error) -> Self + Copy + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }

    /// The log that failed, if other collections do not need it.
    pub(super) fn log(&self) -> Option<&PathBuf> {
        match self {
            Self::Damaged { path, .. }
            | Self::NewerFormat { path, .. }
            | Self::NoLog { path, .. }
            | Self::Read { path, .. } => Some(path),
            _ => None,
        }
    }
}
