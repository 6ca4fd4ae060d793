//! The collections of a process, in memory or in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use cognate::model::disk::drawn_name;
use cognate::model::writer::directory_of;
use parking_lot::{Mutex, RwLock};

use crate::embedded::durable::DurableItems;
use crate::embedded::items::Items;
use crate::embedded::log::{Log, LogCopy};
use crate::embedded::reserve::Reserve;
use crate::embedded::storage::{LocalStorage, Storage, Stored};
use crate::embedded::{Cut, EmbeddedCollection, log, replay};
use crate::transaction::Change;
use crate::{
    Budget, Collection, CollectionError, Home, Item, Limits, Result, Settings, SettingsChange,
    Totals, check_name,
};

#[derive(Debug)]
pub(super) struct Registry {
    pub(super) limits: Limits,
    pub(super) budget: Arc<Budget>,
    pub(super) all: RwLock<BTreeMap<Box<str>, Arc<EmbeddedCollection>>>,
    /// Why the logs of collections that are not served cannot be read.
    pub(super) damaged: RwLock<BTreeMap<Box<str>, String>>,
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        let budget = Arc::new(Budget::new(limits.bytes));
        Self { limits, budget, all: RwLock::default(), damaged: RwLock::default() }
    }

    pub(super) fn named(&self, name: &str) -> Result<Arc<EmbeddedCollection>> {
        // Held until `damaged` is read: a mended collection enters `all` before it leaves
        // `damaged`.
        let all = self.all.read();
        all.get(name).cloned().ok_or_else(|| match self.damaged.read().get(name) {
            Some(problem) => CollectionError::NotServed { problem: problem.clone() },
            None => CollectionError::Unknown,
        })
    }

    pub(super) fn each(&self) -> Vec<Arc<EmbeddedCollection>> {
        self.all.read().values().cloned().collect()
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Collection>> {
        self.each().into_iter().map(|one| one as Arc<dyn Collection>).collect()
    }

    pub(super) fn add(&self, name: &str, collection: Arc<EmbeddedCollection>) {
        self.budget.register(&collection);
        self.all.write().insert(name.into(), collection);
    }

    pub(super) fn totals(&self, now: i64) -> Totals {
        let all = self.each();
        let items = all.iter().map(|one| one.count(now)).sum();
        Totals { collections: all.len(), items, bytes: self.budget.used(), behind: None }
    }

    pub(super) fn damaged(&self) -> Vec<(String, String)> {
        let damaged = self.damaged.read();
        damaged.iter().map(|(name, problem)| (name.to_string(), problem.clone())).collect()
    }
}

#[derive(Debug)]
pub struct EmbeddedHome {
    registry: Registry,
    /// Held while a collection is created or deleted, so that this happens one at a time.
    changing: Mutex<()>,
    folder: Option<Folder>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Opening {
    /// How long to wait for another process that has the folder open.
    pub patience: Duration,
    /// Whether a log that cannot be read stops only its own collection.
    pub serve_others: bool,
}

impl EmbeddedHome {
    pub fn in_memory(limits: Limits) -> Self {
        Self { registry: Registry::new(limits), changing: Mutex::default(), folder: None }
    }

    /// Opens the collections of a folder, which is made if necessary; also returns the unfinished
    /// ends that were cut off their logs.
    pub fn open(path: &Path, limits: Limits) -> Result<(Self, Vec<Cut>)> {
        Self::open_each(Arc::new(LocalStorage), path, limits, false)
    }

    /// [`open`](Self::open) with options. A process that has the folder open can see that
    /// this process waits.
    pub fn open_with(
        path: &Path,
        limits: Limits,
        Opening { patience, serve_others }: Opening,
    ) -> Result<(Self, Vec<Cut>)> {
        let (until, awaited) = (Instant::now() + patience, path.join(AWAITED));
        let mut waiting = None;
        loop {
            match Self::open_each(Arc::new(LocalStorage), path, limits, serve_others) {
                Err(CollectionError::InUse { .. }) if Instant::now() < until => {
                    waiting = waiting.or_else(|| LocalStorage.create(&awaited).ok());
                    thread::sleep(LOOK);
                }
                opened => {
                    if waiting.is_some() {
                        let _ = LocalStorage.remove_file(&awaited);
                    }
                    return opened;
                }
            }
        }
    }

    pub(super) fn open_each(
        storage: Arc<dyn Storage>,
        path: &Path,
        limits: Limits,
        serve_others: bool,
    ) -> Result<(Self, Vec<Cut>)> {
        let folder = Folder::open(storage, path)?;
        let mut collections = Self::in_memory(limits);
        let mut cuts = Vec::new();
        for name in folder.names()? {
            match collections.open_one(&folder, &name) {
                Err(error) if serve_others && error.log().is_some() => {
                    collections.registry.damaged.write().insert(name.into(), error.to_string());
                }
                opened => cuts.extend(opened?),
            }
        }
        // With the locks of all logs this process has the folder to itself.
        folder.sweep()?;
        folder.reserve.set_aside();
        collections.folder = Some(folder);
        Ok((collections, cuts))
    }

    fn open_one(&self, folder: &Folder, name: &str) -> Result<Option<Cut>> {
        let mut held = Items::default();
        let (log, cut) = folder.read(name, |change| held.apply_all([change]))?;
        let collection = EmbeddedCollection::new(
            name,
            &self.registry,
            held,
            Some(DurableItems::new(Arc::clone(&folder.reserve), log)),
        );
        self.registry.add(name, Arc::new(collection));
        Ok(cut)
    }

    pub fn bytes(&self) -> usize {
        self.registry.budget.used()
    }

    pub fn named(&self, name: &str) -> Result<Arc<EmbeddedCollection>> {
        self.registry.named(name)
    }

    pub fn each(&self) -> Vec<Arc<EmbeddedCollection>> {
        self.registry.each()
    }

    pub fn make(
        &self,
        name: &str,
        change: impl Into<SettingsChange>,
        now: i64,
    ) -> Result<(Arc<EmbeddedCollection>, bool)> {
        let change = change.into();
        check_name(name)?;
        self.registry.limits.check_kept(change)?;
        let _one = self.changing.lock();
        match self.named(name) {
            Ok(known) => {
                known.set(change, now)?;
                return Ok((known, false));
            }
            Err(CollectionError::Unknown) => {}
            Err(error) => return Err(error),
        }
        let limit = self.registry.limits.collections;
        if self.each().len() >= limit {
            return Err(CollectionError::TooMany { limit });
        }
        self.check_folder()?;
        let settings = change.apply(Settings::default(), |_| Ok::<_, CollectionError>(0))?;
        let folder = self.folder.as_ref();
        let kept = folder.map(|folder| {
            let log = folder.create(name, settings);
            log.map(|log| DurableItems::new(Arc::clone(&folder.reserve), log))
        });
        let (held, kept) = (Items::keeping(settings), kept.transpose()?);
        let collection = Arc::new(EmbeddedCollection::new(name, &self.registry, held, kept));
        self.registry.add(name, Arc::clone(&collection));
        Ok((collection, true))
    }

    /// Refuses changes if the folder no longer belongs to this process, and ends all logs there.
    fn check_folder(&self) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        folder.check().inspect_err(|error| {
            // A hand-over ends log by log, each once it is durable.
            if matches!(error, CollectionError::HandedOver) {
                return;
            }
            for one in self.each() {
                let _ = one.turn().with_log(|log| {
                    log.end_away(folder.lock_path());
                    Ok(())
                });
            }
        })
    }
}

/// The file that only one process at a time can lock.
pub(super) const LOCK: &str = ".lock";
/// The file that a process locks while it waits for the lock.
const AWAITED: &str = ".awaited";
/// Pause between two attempts at a lock that another process has.
pub(super) const LOOK: Duration = Duration::from_millis(20);
pub(super) const LOG: &str = "items.log";
/// Prefix of folders that are incomplete or being deleted.
pub(super) const UNWHOLE: &str = ".cognate-part-";

#[derive(Debug)]
pub(super) struct Folder {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Open for the life of the process; the lock on it makes the folder this process's own.
    lock: Arc<dyn Stored>,
    reserve: Arc<Reserve>,
    /// Whether the lock file was found replaced or removed.
    is_lost: AtomicBool,
    is_handed_over: AtomicBool,
}

/// Returns the names of the collections' folders within a folder, in order.
pub(super) fn collection_names(storage: &dyn Storage, path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let all = storage.names(path).map_err(CollectionError::reading(path))?;
    for name in all.into_iter().filter(|name| check_name(name).is_ok()) {
        let path = path.join(&name);
        if storage.is_folder(&path).map_err(CollectionError::reading(&path))? {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

impl Folder {
    /// Takes a folder, which is made if necessary, for this process alone.
    pub(super) fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let failed = CollectionError::writing(path);
        storage.make_folder(path).map_err(failed)?;
        let lock = storage.create(&path.join(LOCK)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => CollectionError::InUse { path: path.to_owned() },
            _ => failed(error),
        })?;
        let [is_lost, is_handed_over] = [false; 2].map(AtomicBool::new);
        let reserve = Arc::new(Reserve::new(Arc::clone(&storage), path));
        Ok(Self { storage, path: path.to_owned(), lock, reserve, is_lost, is_handed_over })
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Acquire)
    }

    /// Refuses changes once the lock file was replaced: the folder is another one, or another
    /// process may have it.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_handed_over() {
            return Err(CollectionError::HandedOver);
        }
        let path = self.lock_path();
        if matches!(self.lock.is_at(&path), Ok(false)) {
            self.is_lost.store(true, Ordering::Release);
        }
        if self.is_lost() { Err(CollectionError::Away { path }) } else { Ok(()) }
    }

    pub(super) fn names(&self) -> Result<Vec<String>> {
        collection_names(&*self.storage, &self.path)
    }

    /// Removes what a crash left of collections that were being made or deleted: neither was
    /// acknowledged.
    pub(super) fn sweep(&self) -> Result<()> {
        let names = self.storage.names(&self.path).map_err(CollectionError::reading(&self.path))?;
        for name in names.iter().filter(|name| name.starts_with(UNWHOLE)) {
            let _ = self.storage.remove_folder(&self.path.join(name));
        }
        Ok(())
    }

    pub(super) fn read(&self, name: &str, tell: impl FnMut(Change)) -> Result<(Log, Option<Cut>)> {
        let path = self.path.join(name).join(LOG);
        let opened = replay::open(&self.storage, &path, tell)?;
        // An unfinished copy of the log, left by a crash. Only the holder of the log may remove it.
        let _ = self.storage.remove_file(&path.with_extension(log::UNWHOLE));
        Ok(opened)
    }

    /// Makes the folder of a collection, with a log of these settings. It appears as a whole or not
    /// at all.
    pub(super) fn create(&self, name: &str, settings: Settings) -> Result<Log> {
        let (part, path) = (self.part()?, self.path.join(name));
        let failed = CollectionError::writing(&path);
        let storage = &*self.storage;
        let made = storage.make_folder(&part).map_err(failed).and_then(|()| {
            let nothing = std::iter::empty::<&Item>();
            let log = LogCopy::new(&self.storage, &part.join(LOG), settings, nothing, 0)?;
            let log = log.into_place()?;
            storage.rename(&part, &path).map_err(failed)?;
            Ok(log)
        });
        let log = made.inspect_err(|_| drop(storage.remove_folder(&part)))?;
        // Another process may have taken the folder meanwhile, unaware of the new collection.
        let kept = storage.sync_folder(&self.path).map_err(failed).and_then(|()| self.check());
        kept.inspect_err(|_| {
            // So that another collection of this name can be made.
            let _ = storage.rename(&path, &part).and_then(|()| storage.remove_folder(&part));
        })?;
        Ok(log.moved(&path.join(LOG)))
    }

    /// Renames the folder of a collection so that it is not opened any more; returns its new path.
    pub(super) fn put_aside(&self, name: &str) -> Result<PathBuf> {
        let (part, path) = (self.part()?, self.path.join(name));
        self.storage.rename(&path, &part).map_err(CollectionError::writing(&path))?;
        Ok(part)
    }

    pub(super) fn remove(&self, part: &Path) -> Result<()> {
        let synced = self.storage.sync_folder(directory_of(part));
        // If this fails, the folder is removed at the next start.
        let _ = self.storage.remove_folder(part);
        // The collection is deleted, but a power failure may bring it back.
        synced.map_err(|_| CollectionError::Unsynced { path: self.path.clone() })
    }

    fn part(&self) -> Result<PathBuf> {
        drawn_name(&self.path, UNWHOLE).map_err(CollectionError::writing(&self.path))
    }
}

impl Home for EmbeddedHome {
    fn limits(&self) -> &Limits {
        &self.registry.limits
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>> {
        Ok(self.named(name)?)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>> {
        Ok(self.registry.all())
    }

    fn set(
        &self,
        name: &str,
        change: SettingsChange,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool)> {
        let (collection, is_new) = self.make(name, change, now)?;
        Ok((collection, is_new))
    }

    fn delete(&self, name: &str) -> Result<()> {
        let _one = self.changing.lock();
        let collection = self.named(name)?;
        // A folder that another process put there must not be deleted.
        self.check_folder()?;
        let mut turn = collection.turn();
        turn.with_log(|log| log.last.look())?;
        let part = self.folder.as_ref().map(|folder| folder.put_aside(name)).transpose()?;
        // The collection is now deleted, whatever happens to its files: no write may be
        // acknowledged.
        turn.end();
        drop(turn);
        self.registry.all.write().remove(name);
        match (&self.folder, part) {
            (Some(folder), Some(part)) => folder.remove(&part),
            _ => Ok(()),
        }
    }

    fn look_after(&self) -> Result<()> {
        let is_known = self.folder.as_ref().is_some_and(Folder::is_lost);
        match self.check_folder() {
            Err(CollectionError::HandedOver) => Ok(()),
            Err(_) if is_known => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                if let Some(folder) = &self.folder {
                    // If this fails replicas assume that the writer is gone, which does no harm
                    // here.
                    let _ = folder.lock.touch();
                    folder.reserve.set_aside();
                }
                Ok(())
            }
        }
    }

    /// At least one if no collection can be made. None after a planned hand-over.
    fn unwritable(&self) -> usize {
        if self.folder.as_ref().is_some_and(Folder::is_handed_over) {
            return 0;
        }
        let ended = self.each().iter().filter(|one| one.status.lock().is_ended).count();
        ended.max(usize::from(self.folder.as_ref().is_some_and(Folder::is_lost)))
    }

    /// At least one while there is no room to reserve for deletions.
    fn full(&self) -> usize {
        let full = self.each().iter().filter(|one| one.status.lock().is_full).count();
        full.max(usize::from(
            self.folder.as_ref().is_some_and(|folder| folder.reserve.lacks_room()),
        ))
    }

    fn totals(&self, now: i64) -> Totals {
        self.registry.totals(now)
    }

    fn damaged(&self) -> Vec<(String, String)> {
        self.registry.damaged()
    }

    fn take_up(&self) -> Result<(Vec<String>, Vec<Cut>)> {
        let (mut taken, mut cuts) = (Vec::new(), Vec::new());
        let Some(folder) = &self.folder else { return Ok((taken, cuts)) };
        let _one = self.changing.lock();
        self.check_folder()?;
        let names = folder.names()?;
        self.registry.damaged.write().retain(|known, _| names.iter().any(|name| **name == **known));
        for name in names {
            if self.registry.all.read().contains_key(&*name) {
                continue;
            }
            match self.open_one(folder, &name) {
                Ok(cut) => {
                    cuts.extend(cut);
                    self.registry.damaged.write().remove(&*name);
                    taken.push(name);
                }
                Err(error) => {
                    drop(self.registry.damaged.write().insert(name.into(), error.to_string()))
                }
            }
        }
        Ok((taken, cuts))
    }

    fn is_awaited(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| {
            let waits = folder.storage.open(&folder.path.join(AWAITED));
            waits.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        })
    }

    fn hand_over(&self) {
        let Some(folder) = &self.folder else { return };
        let _one = self.changing.lock();
        folder.is_handed_over.store(true, Ordering::Release);
        for one in self.each() {
            let _ = one.turn().with_log(|log| {
                log.hand_over();
                Ok(())
            });
        }
        // Last: whoever has this lock has the logs.
        let _ = folder.lock.unlock();
    }
}
