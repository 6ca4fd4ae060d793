//! Every collection of a process, in memory or in a folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::embedded::folder::Folder;
use crate::embedded::held::Held;
use crate::embedded::storage::{LocalStorage, Storage};
use crate::embedded::{Cut, EmbeddedCollection};
use crate::{Applied, Budget, CollectionError, Limits, Settings, check_name};

/// Every collection of a process.
#[derive(Debug)]
pub struct EmbeddedHome {
    limits: Limits,
    budget: Arc<Budget>,
    all: RwLock<BTreeMap<Box<str>, Arc<EmbeddedCollection>>>,
    /// Collections come and go one at a time.
    changing: Mutex<()>,
    folder: Option<Folder>,
}

impl EmbeddedHome {
    /// Collections that end with the process.
    pub fn in_memory(limits: Limits) -> Self {
        Self {
            limits,
            budget: Arc::new(Budget::new(limits.bytes)),
            all: RwLock::default(),
            changing: Mutex::default(),
            folder: None,
        }
    }

    /// The collections of a folder, which is made if it is not there; and what a crash had left unwhole
    /// at the ends of their logs.
    pub fn open(path: &Path, limits: Limits) -> Result<(Self, Vec<Cut>), CollectionError> {
        Self::open_in(Arc::new(LocalStorage), path, limits)
    }

    /// The same on any file system.
    pub(super) fn open_in(
        storage: Arc<dyn Storage>,
        path: &Path,
        limits: Limits,
    ) -> Result<(Self, Vec<Cut>), CollectionError> {
        let folder = Folder::open(storage, path)?;
        let mut collections = Self::in_memory(limits);
        let (mut all, mut cuts) = (BTreeMap::new(), Vec::new());
        for name in folder.names()? {
            let (mut held, mut applied) = (Held::default(), Applied::default());
            let (log, cut) = folder.read(&name, |change| held.apply(change, &mut applied))?;
            cuts.extend(cut);
            let (budget, kept) = (Arc::clone(&collections.budget), Some(folder.keep(log)));
            let collection = EmbeddedCollection::new(&name, limits, budget, held, kept);
            all.insert(name.into(), Arc::new(collection));
        }
        // Who has all logs has the folder to itself.
        folder.sweep()?;
        collections.all = RwLock::new(all);
        collections.folder = Some(folder);
        Ok((collections, cuts))
    }

    /// Whether they outlive the process.
    pub fn are_kept(&self) -> bool {
        self.folder.is_some()
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// The collection of this name.
    pub fn named(&self, name: &str) -> Result<Arc<EmbeddedCollection>, CollectionError> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().ok_or(CollectionError::Unknown)
    }

    /// Every collection, by name.
    pub fn each(&self) -> Vec<Arc<EmbeddedCollection>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// Makes a collection, or gives the one of this name other settings; whether it is new.
    pub fn make(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<EmbeddedCollection>, bool), CollectionError> {
        check_name(name)?;
        self.limits.check_kept(settings)?;
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(known) = self.named(name) {
            known.set(settings, now)?;
            return Ok((known, false));
        }
        if self.each().len() >= self.limits.collections {
            return Err(CollectionError::TooMany { limit: self.limits.collections });
        }
        self.check_folder()?;
        let folder = self.folder.as_ref();
        let kept = folder.map(|folder| folder.create(name, settings).map(|log| folder.keep(log)));
        let (held, budget) = (Held::keeping(settings), Arc::clone(&self.budget));
        let kept = kept.transpose()?;
        let collection = Arc::new(EmbeddedCollection::new(name, self.limits, budget, held, kept));
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.into(), Arc::clone(&collection));
        Ok((collection, true))
    }

    pub fn remove(&self, name: &str) -> Result<(), CollectionError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let collection = self.named(name)?;
        // What is in its place by now is not to be deleted.
        self.check_folder()?;
        let mut turn = collection.turn();
        turn.look()?;
        let part = self.folder.as_ref().map(|folder| folder.put_aside(name)).transpose()?;
        // From here on it is gone, whatever becomes of its files: nothing more may be told as written.
        turn.end();
        drop(turn);
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        match (&self.folder, part) {
            (Some(folder), Some(part)) => folder.remove(&part),
            _ => Ok(()),
        }
    }

    /// Looks whether the folder still is this process's. To be called every few seconds; where it is not
    /// that is told once.
    pub fn look_after(&self) -> Result<(), CollectionError> {
        let is_known = self.folder.as_ref().is_some_and(Folder::is_lost);
        self.check_folder().or_else(|error| if is_known { Ok(()) } else { Err(error) })
    }

    /// How many collections take no changes any more; at least one where none can be made.
    pub fn unwritable(&self) -> usize {
        let ended = self.each().iter().filter(|one| one.is_ended()).count();
        ended.max(usize::from(self.folder.as_ref().is_some_and(Folder::is_lost)))
    }

    /// Refuses changes where the folder is not this process's any more, and ends all logs there.
    fn check_folder(&self) -> Result<(), CollectionError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        folder.check().inspect_err(|_| {
            self.each().iter().for_each(|one| one.turn().end_away(&folder.lock_path()));
        })
    }
}
