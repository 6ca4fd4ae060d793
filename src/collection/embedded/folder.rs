//! The folder of all collections: a folder each, and in it the log.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::Settings;
use crate::collection::check_name;
use crate::collection::embedded::Cut;
use crate::collection::embedded::kept::Kept;
use crate::collection::embedded::log;
use crate::collection::embedded::log::Change;
use crate::collection::embedded::log::Log;
use crate::collection::embedded::replay;
use crate::collection::embedded::storage::Lock;
use crate::collection::embedded::storage::Storage;
use crate::model::target::directory_of;

/// The file that one process at a time holds.
const LOCK: &str = ".lock";
/// The log of a collection, in its folder.
pub(super) const LOG: &str = "items.log";
/// How the names of folders begin that are not whole yet, or not any more.
pub(super) const UNWHOLE: &str = ".cognate-part-";

/// The folder of all collections.
#[derive(Debug)]
pub(super) struct Folder {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Held as long as the process lives.
    _lock: Lock,
}

impl Folder {
    /// Takes a folder, which is made if it is not there, for this process alone.
    pub(super) fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self, CollectionError> {
        let failed = |source| CollectionError::Write { path: path.to_owned(), source };
        storage.make_folder(path).map_err(failed)?;
        let lock = storage.lock(&path.join(LOCK)).map_err(failed)?;
        let lock = lock.ok_or_else(|| CollectionError::InUse { path: path.to_owned() })?;
        Ok(Self { storage, path: path.to_owned(), _lock: lock })
    }

    /// The names of the collections. What a crash left of others is removed.
    pub(super) fn names(&self) -> Result<Vec<String>, CollectionError> {
        let failed = |source| CollectionError::Read { path: self.path.clone(), source };
        let mut names = self.storage.names(&self.path).map_err(failed)?;
        names.retain(|name| {
            let folder = self.path.join(name);
            if name.starts_with(UNWHOLE) {
                // Neither the name nor the items of one that was not whole were told to anybody.
                let _ = self.storage.remove_folder(&folder);
                return false;
            }
            check_name(name).is_ok() && self.storage.has_file(&folder.join(LOG))
        });
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the log of a collection and tells each of its changes.
    pub(super) fn read(
        &self,
        name: &str,
        tell: impl FnMut(Change),
    ) -> Result<(Log, Option<Cut>), CollectionError> {
        let path = self.path.join(name).join(LOG);
        // What a crash left of a log that was being written anew.
        let _ = self.storage.remove_file(&path.with_extension(log::UNWHOLE));
        replay::open(&*self.storage, &path, tell)
    }

    /// A log as its collection keeps it.
    pub(super) fn keep(&self, log: Log) -> Kept {
        Kept::of(Arc::clone(&self.storage), log)
    }

    /// Makes the folder of a collection, with a log of these settings. It is there as a whole or not at
    /// all.
    pub(super) fn create(&self, name: &str, settings: Settings) -> Result<Log, CollectionError> {
        let (part, path) = (self.part()?, self.path.join(name));
        let failed = |source| CollectionError::Write { path: path.clone(), source };
        let storage = &*self.storage;
        let made = storage.make_folder(&part).map_err(failed).and_then(|()| {
            let nothing = std::iter::empty::<&Item>();
            let log = Log::create(storage, &part.join(LOG), settings, nothing)?;
            storage.rename(&part, &path).map_err(failed)?;
            Ok(log)
        });
        let log = made.inspect_err(|_| drop(storage.remove_folder(&part)))?;
        storage.sync_folder(&self.path).map_err(failed).inspect_err(|_| {
            // Under this name another one can be made then.
            let _ = storage.rename(&path, &part).and_then(|()| storage.remove_folder(&part));
        })?;
        Ok(log.moved(path.join(LOG)))
    }

    /// Takes the folder of a collection out of those that are opened; where it is now.
    pub(super) fn put_aside(&self, name: &str) -> Result<PathBuf, CollectionError> {
        let (part, path) = (self.part()?, self.path.join(name));
        let failed = |source| CollectionError::Write { path: path.clone(), source };
        self.storage.rename(&path, &part).map_err(failed)?;
        Ok(part)
    }

    /// Removes what was put aside.
    pub(super) fn remove(&self, part: &Path) -> Result<(), CollectionError> {
        let synced = self.storage.sync_folder(directory_of(part));
        // What cannot be removed now is removed when the folder is opened again.
        let _ = self.storage.remove_folder(part);
        // It is gone, and nobody knows for how long.
        synced.map_err(|_| CollectionError::Unsynced { path: self.path.clone() })
    }

    /// A name for what is not whole.
    fn part(&self) -> Result<PathBuf, CollectionError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| CollectionError::Write {
            path: self.path.clone(),
            source: io::Error::other(error),
        })?;
        Ok(self.path.join(format!("{UNWHOLE}{:016x}", u64::from_ne_bytes(random))))
    }
}
