//! Why a collection cannot do what is asked.

use std::io;
use std::path::PathBuf;

use cognate::model::IoCause;

use crate::item::ItemProblem;
use crate::settings::NAME_BYTES;

/// Why a collection cannot do what is asked.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// There is none of that name.
    #[error("there is no collection of this name")]
    Unknown,
    /// No name of a collection.
    #[error(
        "a collection's name has at most {NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, the first a \
         letter or digit"
    )]
    BadName,
    /// As many collections as there may be.
    #[error("there are {limit} collections, which is the limit")]
    TooMany { limit: usize },
    /// More items than a collection may have.
    #[error("the collection would have {wanted} items; the limit is {limit}")]
    TooManyItems {
        /// How many there would be.
        wanted: usize,
        limit: usize,
    },
    /// An item that no collection takes.
    #[error("{problem}")]
    Item {
        /// Its place among those that were given.
        index: usize,
        problem: ItemProblem,
    },
    /// A text is to be matched whose name another one has.
    #[error("the collection has another text of this name")]
    OtherText {
        /// Its place among those that were given.
        index: usize,
    },
    /// There is no event of that name.
    #[error("the collection has no item of an event of this name")]
    NoEvent,
    /// Events that cannot be merged, or items that cannot be split off.
    #[error("{problem}")]
    EventChange {
        /// The list that names them, as a JSON pointer.
        field: &'static str,
        /// The place in it.
        index: Option<usize>,
        problem: &'static str,
    },
    /// No memory is left for more items.
    #[error("collections would take more than {limit} bytes of memory, which is the limit")]
    NoMemory { limit: usize },
    /// What was asked could not be written; nothing of it was done.
    #[error("cannot write {}: {}", path.display(), IoCause(source))]
    Write {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system could not promise that what was written stays. It is taken back, and may be there or
    /// not when the process starts again; until then nothing is taken.
    #[error(
        "{}: what was written could not be made to last, so it is taken back and nothing more is \
         written until the process starts again",
        path.display()
    )]
    Unsynced { path: PathBuf },
    /// A file that is written to, or the lock of its folder, is not where it was any more. What was to be
    /// written was not.
    #[error(
        "{} is not as this process left it: it was deleted, moved, replaced or cut off meanwhile. Nothing \
         is written until the process starts again",
        path.display()
    )]
    Away { path: PathBuf },
    /// A collection's folder has no log.
    #[error(
        "{}: {problem}. Bring back a copy of this file, or move its folder away to start without this \
         collection",
        path.display()
    )]
    NoLog {
        /// Where it should be.
        path: PathBuf,
        problem: &'static str,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {}", path.display(), IoCause(source))]
    Read {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process writes there.
    #[error("{}: another process has these collections open", path.display())]
    InUse { path: PathBuf },
    /// Another process, whose lock is not seen, touches its lock.
    #[error(
        "{}: a process has touched its lock just now, perhaps on another machine, so it still writes there; \
         stop it first",
        path.display()
    )]
    Alive { path: PathBuf },
    /// A folder in which nobody ever kept collections.
    #[error("{} has no collections in it, and never had", path.display())]
    NoCollections { path: PathBuf },
    /// The process handed the collections over to another one that waited for them.
    #[error("these collections were handed over to another process")]
    HandedOver,
    /// A replica was asked to change something.
    #[error(
        "these collections are read along with the process that writes them, and take no changes"
    )]
    ReadOnly,
    /// A log that was damaged.
    #[error(
        "{}, byte {offset}: {problem}; nothing was changed. Bring back a copy of this file, or move \
         its folder away to start without this collection",
        path.display()
    )]
    Damaged { path: PathBuf, offset: u64, problem: String },
    /// A log of a later format.
    #[error(
        "{}, byte {offset}: {problem}, so a newer version than this one ({}) wrote it; nothing was changed. \
         The version that wrote it reads it, or a later one",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    NewerFormat { path: PathBuf, offset: u64, problem: String },
    /// The log of the collection cannot be read, and the others are served without it.
    #[error("this collection is not served, because its log cannot be read: {problem}")]
    NotServed { problem: String },
    /// A log of an earlier format, met by a replica, which converts none.
    #[error(
        "{}: an earlier version wrote this log; a service or a command that writes to its folder \
         converts it",
        path.display()
    )]
    EarlierFormat { path: PathBuf },
    /// The database cannot be asked. What was to be written was not.
    #[error("the database of the collections cannot be reached: {problem}")]
    Unreachable { problem: String },
    /// The database takes too long.
    #[error("the database of the collections takes too long: {problem}")]
    Slow { problem: String },
    /// The database takes nothing; what was to be written was not.
    #[error("the database of the collections takes nothing: {problem}")]
    Unwritable { problem: String },
    /// Another server writes to the collection; what was to be written was not.
    #[error("{problem}")]
    OtherWriter { problem: String },
    /// The connection was lost while the database wrote, so that it may be there or not.
    #[error("the database of the collections did not say whether it wrote: {problem}")]
    Uncertain { problem: String },
    /// The database refuses what was asked for a reason that is not foreseen.
    #[error("the database of the collections: {problem}")]
    Database { problem: String },
    /// The database has not what is needed.
    #[error("{problem}")]
    NotSetUp {
        /// What is missing, and how it is made.
        problem: String,
    },
    /// More items are meant than are sent from a database to be ranked.
    #[error("more than {limit} items would be ranked; ask for a `shortlist`, or filter them")]
    TooManyChosen { limit: usize },
}
