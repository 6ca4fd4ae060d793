//! Every collection of a process, in memory or in a folder: a folder each, and in it the log.

use std::collections::BTreeMap;
use std::fs;
use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::RwLock;

use crate::collection::Applied;
use crate::collection::Budget;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::Cut;
use crate::collection::Item;
use crate::collection::Limits;
use crate::collection::Settings;
use crate::collection::check_name;
use crate::collection::held::Held;
use crate::collection::log::Log;
use crate::collection::replay;
use crate::model::disk::Disk;
use crate::model::disk::LocalDisk;

/// The file that one process at a time holds.
const LOCK: &str = ".lock";
/// The log of a collection, in its folder.
const LOG: &str = "items.log";
/// How the names of folders begin that are not whole yet, or not any more.
const UNWHOLE: &str = ".cognate-part-";

/// Every collection of a process.
#[derive(Debug)]
pub struct Collections {
    limits: Limits,
    budget: Arc<Budget>,
    all: RwLock<BTreeMap<Box<str>, Arc<Collection>>>,
    /// Collections come and go one at a time.
    changing: Mutex<()>,
    folder: Option<Folder>,
}

/// Where collections are kept.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Held as long as the process lives.
    _lock: File,
}

impl Collections {
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
        let write = |source| CollectionError::Write { path: path.to_owned(), source };
        let read = |source| CollectionError::Read { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(write)?;
        let lock = lock(path)?;
        let mut collections = Self::in_memory(limits);
        let (mut all, mut cuts) = (BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(path).map_err(read)? {
            let entry = entry.map_err(read)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(UNWHOLE) {
                // Neither the name nor the items of one that was not whole were told to anybody.
                let _ = fs::remove_dir_all(entry.path());
                continue;
            }
            let log = entry.path().join(LOG);
            if check_name(&name).is_err() || !log.is_file() {
                continue;
            }
            // What a crash left of a log that was being written anew.
            LocalDisk.sweep(&entry.path()).map_err(read)?;
            let (mut held, mut applied) = (Held::default(), Applied::default());
            let (log, cut) = replay::open(&log, |change| held.apply(change, &mut applied))?;
            cuts.extend(cut);
            let budget = Arc::clone(&collections.budget);
            let collection = Collection::new(&name, limits, budget, held, Some(log));
            all.insert(name.into(), Arc::new(collection));
        }
        collections.all = RwLock::new(all);
        collections.folder = Some(Folder { path: path.to_owned(), _lock: lock });
        Ok((collections, cuts))
    }

    /// Whether they outlive the process.
    pub fn are_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// The collection of this name.
    pub fn get(&self, name: &str) -> Result<Arc<Collection>, CollectionError> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().ok_or(CollectionError::Unknown)
    }

    /// Every collection, by name.
    pub fn all(&self) -> Vec<Arc<Collection>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// Makes a collection, or gives the one of this name other settings; whether it is new.
    pub fn set(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<Collection>, bool), CollectionError> {
        check_name(name)?;
        let limit = self.limits.items;
        if let Some(wanted) = settings.max_items.filter(|most| *most > limit) {
            return Err(CollectionError::TooManyItems { wanted, limit });
        }
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(known) = self.get(name) {
            if known.settings() != settings {
                known.set(settings, now)?;
            }
            return Ok((known, false));
        }
        if self.all().len() >= self.limits.collections {
            return Err(CollectionError::TooMany { limit: self.limits.collections });
        }
        let log = self.folder.as_ref().map(|folder| folder.create(name, settings)).transpose()?;
        let held = Held::keeping(settings);
        let collection =
            Arc::new(Collection::new(name, self.limits, Arc::clone(&self.budget), held, log));
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.into(), Arc::clone(&collection));
        Ok((collection, true))
    }

    /// Deletes a collection.
    pub fn delete(&self, name: &str) -> Result<(), CollectionError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let collection = self.get(name)?;
        let part = self.folder.as_ref().map(|folder| folder.put_aside(name)).transpose()?;
        // From here on it is gone, whatever becomes of its files: nothing more may be told as written.
        collection.end();
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        match (&self.folder, part) {
            (Some(folder), Some(part)) => folder.remove(&part),
            _ => Ok(()),
        }
    }

    /// Takes out what is too old, and writes logs anew where most of them is of the past.
    pub fn tidy(&self, now: i64) -> Vec<CollectionError> {
        let tidied = self.all().into_iter().map(|collection| collection.tidy(now));
        tidied.filter_map(Result::err).collect()
    }
}

impl Folder {
    /// Makes the folder of a collection, with a log of these settings. It is there as a whole or not at
    /// all.
    fn create(&self, name: &str, settings: Settings) -> Result<Log, CollectionError> {
        let (part, path) = (self.part()?, self.path.join(name));
        let failed = |source| CollectionError::Write { path: path.clone(), source };
        DirBuilder::new().mode(0o700).create(&part).map_err(failed)?;
        let made = Log::create(&part.join(LOG), settings, std::iter::empty::<&Item>());
        let moved = made.and_then(|log| {
            drop(log);
            LocalDisk.rename(&part, &path).map_err(failed)?;
            LocalDisk.sync_directory(&self.path).map_err(failed)
        });
        if moved.is_err() {
            let _ = fs::remove_dir_all(&part);
        }
        moved?;
        // Opened again by its name, which is what messages say.
        Ok(replay::open(&path.join(LOG), |_| ())?.0)
    }

    /// Takes the folder of a collection out of those that are opened; where it is now.
    fn put_aside(&self, name: &str) -> Result<PathBuf, CollectionError> {
        let (part, path) = (self.part()?, self.path.join(name));
        let failed = |source| CollectionError::Write { path: path.clone(), source };
        LocalDisk.rename(&path, &part).map_err(failed)?;
        Ok(part)
    }

    /// Removes what was put aside.
    fn remove(&self, part: &Path) -> Result<(), CollectionError> {
        let synced = LocalDisk.sync_directory(&self.path);
        // What cannot be removed now is removed when the folder is opened again.
        let _ = fs::remove_dir_all(part);
        synced.map_err(|source| CollectionError::Write { path: self.path.clone(), source })
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

/// Takes the lock of a folder.
fn lock(folder: &Path) -> Result<File, CollectionError> {
    let path = folder.join(LOCK);
    let failed = |source| CollectionError::Write { path: path.clone(), source };
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CollectionError::InUse { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
