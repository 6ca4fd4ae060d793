//! The folder of all collections: a folder each, and in it the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cognate::model::disk::drawn_name;
use cognate::model::writer::directory_of;

use crate::embedded::kept::Kept;
use crate::embedded::log::{Change, Log};
use crate::embedded::storage::{Storage, Stored};
use crate::embedded::{Cut, log, replay};
use crate::{CollectionError, Item, Settings, check_name};

/// The file that one process at a time holds.
pub(super) const LOCK: &str = ".lock";
/// The log of a collection, in its folder.
pub(super) const LOG: &str = "items.log";
/// How the names of folders begin that are not whole yet, or not any more.
pub(super) const UNWHOLE: &str = ".cognate-part-";

/// The folder of all collections.
#[derive(Debug)]
pub(super) struct Folder {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Open as long as the process lives, which has the folder to itself by it.
    lock: Arc<dyn Stored>,
    /// Whether the lock was found not to be where it was opened any more.
    is_lost: AtomicBool,
}

impl Folder {
    /// Takes a folder, which is made if it is not there, for this process alone.
    pub(super) fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self, CollectionError> {
        let failed = |source| CollectionError::Write { path: path.to_owned(), source };
        storage.make_folder(path).map_err(failed)?;
        let lock = storage.lock(&path.join(LOCK)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => CollectionError::InUse { path: path.to_owned() },
            _ => failed(error),
        })?;
        Ok(Self { storage, path: path.to_owned(), lock, is_lost: AtomicBool::new(false) })
    }

    /// Where the lock is.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    /// Whether the lock was found not to be there any more.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Refuses changes once the lock is not where it was: the folder is another one, or another process
    /// may have it.
    pub(super) fn check(&self) -> Result<(), CollectionError> {
        let path = self.lock_path();
        if matches!(self.lock.is_at(&path), Ok(false)) {
            self.is_lost.store(true, Ordering::Release);
        }
        if self.is_lost() { Err(CollectionError::Away { path }) } else { Ok(()) }
    }

    /// The names of the collections: of folders that may have such a name.
    pub(super) fn names(&self) -> Result<Vec<String>, CollectionError> {
        let mut names = Vec::new();
        for name in self.all_names()?.into_iter().filter(|name| check_name(name).is_ok()) {
            let path = self.path.join(&name);
            match self.storage.is_folder(&path) {
                Ok(true) => names.push(name),
                Ok(false) => {}
                Err(source) => return Err(CollectionError::Read { path, source }),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes what a crash left of collections that were being made or deleted: neither their names nor
    /// their items were told to anybody.
    pub(super) fn sweep(&self) -> Result<(), CollectionError> {
        for name in self.all_names()?.iter().filter(|name| name.starts_with(UNWHOLE)) {
            let _ = self.storage.remove_folder(&self.path.join(name));
        }
        Ok(())
    }

    fn all_names(&self) -> Result<Vec<String>, CollectionError> {
        let failed = |source| CollectionError::Read { path: self.path.clone(), source };
        self.storage.names(&self.path).map_err(failed)
    }

    /// Opens the log of a collection and tells each of its changes.
    pub(super) fn read(
        &self,
        name: &str,
        tell: impl FnMut(Change),
    ) -> Result<(Log, Option<Cut>), CollectionError> {
        let path = self.path.join(name).join(LOG);
        let opened = replay::open(&*self.storage, &path, tell)?;
        // What a crash left of a log that was being written anew. Only who has the log may remove it.
        let _ = self.storage.remove_file(&path.with_extension(log::UNWHOLE));
        Ok(opened)
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
        // Another process may have taken the folder meanwhile, without a look at what is made here.
        let kept = storage.sync_folder(&self.path).map_err(failed).and_then(|()| self.check());
        kept.inspect_err(|_| {
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
        let failed = |source| CollectionError::Write { path: self.path.clone(), source };
        drawn_name(&self.path, UNWHOLE).map_err(failed)
    }
}
