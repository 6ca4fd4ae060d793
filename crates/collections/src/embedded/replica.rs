//! A replica: the collections of a folder that another process writes, to be read here.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
use std::{io, thread};

use crate::embedded::folder::LOG;
use crate::embedded::replicated::ReplicatedCollection;
use crate::embedded::storage::{LocalStorage, Storage, is_nothing};
use crate::embedded::tail::Stamp;
use crate::{
    Behind, Budget, Collection, CollectionError, Home, Limits, Settings, Totals, check_name,
};

/// How often the folder is looked at.
const EVERY: Duration = Duration::from_millis(100);
/// Most looks that pass before a log is read again that could not be: half a minute.
const MOST_PASSED: u32 = 300;

/// The collections of a folder that another process writes. Nothing is written here, not even a lock.
#[derive(Debug)]
pub struct ReplicaHome {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    limits: Limits,
    budget: Arc<Budget>,
    all: RwLock<BTreeMap<Box<str>, Arc<ReplicatedCollection>>>,
    /// What was found when the collections were looked at last, by their names; of the folder itself
    /// without one. One looks at a time.
    found: Mutex<BTreeMap<String, Found>>,
    /// How many of them could not be read on.
    unreadable: AtomicUsize,
}

/// What was found when a log was looked at.
#[derive(Debug, Default)]
struct Found {
    /// The log as it was, if there is nothing more to find out about it.
    stamp: Option<Stamp>,
    /// Why it cannot be read on.
    problem: Option<String>,
    /// Looks that pass before it is read again, and how many passed the last time.
    passes: u32,
    passed: u32,
}

impl ReplicaHome {
    /// The collections of a folder as they are now.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, CollectionError> {
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            limits,
            budget: Arc::new(Budget::new(limits.bytes)),
            all: RwLock::default(),
            found: Mutex::default(),
            unreadable: AtomicUsize::new(0),
        });
        shared.look().into_iter().next().map_or(Ok(Self { shared }), Err)
    }

    /// Reads on what was written since. Each reason why that cannot be done is given once, as long as it
    /// stays the same; what was read before is still shown.
    pub fn look(&self) -> Vec<CollectionError> {
        self.shared.look()
    }

    /// Looks again and again on a thread of its own, as long as this is not dropped, and tells what
    /// [`look`](Self::look) gives.
    pub fn watched(self, tell: impl Fn(CollectionError) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::downgrade(&self.shared);
        let watch = move || {
            while let Some(shared) = shared.upgrade() {
                shared.look().into_iter().for_each(&tell);
                drop(shared);
                thread::sleep(EVERY);
            }
        };
        thread::Builder::new().name("replica".to_owned()).spawn(watch)?;
        Ok(self)
    }
}

impl Shared {
    fn look(&self) -> Vec<CollectionError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems = Vec::new();
        let folder = found.entry(String::new()).or_default();
        match LocalStorage.names(&self.path) {
            Err(source) => {
                let error = CollectionError::Read { path: self.path.clone(), source };
                problems.extend(folder.note::<()>(Err(error)));
            }
            Ok(mut names) => {
                folder.problem = None;
                names.retain(|name| {
                    check_name(name).is_ok() && self.look_at(name, &mut found, &mut problems)
                });
                let names: HashSet<String> = names.into_iter().collect();
                self.all_mut().retain(|name, _| names.contains(&**name));
                found.retain(|name, _| name.is_empty() || names.contains(name));
            }
        }
        let unreadable = found.values().filter(|found| found.problem.is_some()).count();
        self.unreadable.store(unreadable, Ordering::Relaxed);
        problems
    }

    /// Reads a collection on, or for the first time; whether there is one.
    fn look_at(
        &self,
        name: &str,
        found: &mut BTreeMap<String, Found>,
        problems: &mut Vec<CollectionError>,
    ) -> bool {
        let path = self.path.join(name).join(LOG);
        let failed = |source| CollectionError::Read { path: path.clone(), source };
        let stamp = match Stamp::of(&path) {
            Ok(None) => return false,
            other => other.map(Option::unwrap_or_default).map_err(failed),
        };
        let found = found.entry(name.to_owned()).or_default();
        if stamp.as_ref().is_ok_and(|stamp| found.stamp == Some(*stamp)) {
            return true;
        }
        // A log that cannot be read may be long.
        if found.passes > 0 {
            found.passes -= 1;
            return true;
        }
        found.stamp = None;
        let came = stamp.and_then(|stamp| {
            let came = self.read_on(name, &path, stamp);
            let is_known = match &came {
                // What was being written at this moment is whole the next time.
                Ok(false) | Err(CollectionError::Damaged { .. }) => !stamp.is_fresh(),
                Ok(true) => true,
                Err(_) => false,
            };
            found.stamp = is_known.then_some(stamp);
            came
        });
        if let Err(CollectionError::Read { source, .. }) = &came
            && is_nothing(source)
        {
            return false;
        }
        found.passed = match came {
            Ok(_) => 0,
            Err(_) => (2 * found.passed + 1).min(MOST_PASSED),
        };
        found.passes = found.passed;
        problems.extend(found.note(came));
        true
    }

    fn read_on(&self, name: &str, path: &Path, stamp: Stamp) -> Result<bool, CollectionError> {
        let failed = |source| CollectionError::Read { path: path.to_owned(), source };
        if let Some(known) = self.named(name) {
            return known.read_on(path, stamp);
        }
        let fresh = ReplicatedCollection::open(name, path, self.limits, &self.budget);
        let fresh = fresh.map_err(failed)?;
        let whole = fresh.read_on(path, stamp)?;
        self.all_mut().insert(name.into(), Arc::new(fresh));
        Ok(whole)
    }

    fn named(&self, name: &str) -> Option<Arc<ReplicatedCollection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn each(&self) -> Vec<Arc<ReplicatedCollection>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn all_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<str>, Arc<ReplicatedCollection>>> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    /// Notes what came of reading on; the error if it is another one than before.
    fn note<T>(&mut self, came: Result<T, CollectionError>) -> Option<CollectionError> {
        let problem = came.as_ref().err().map(ToString::to_string);
        let is_known = problem == self.problem;
        self.problem = problem;
        came.err().filter(|_| !is_known)
    }
}

impl Home for ReplicaHome {
    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError> {
        Ok(self.shared.named(name).ok_or(CollectionError::Unknown)?)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError> {
        let all = self.shared.each().into_iter();
        Ok(all.map(|one| one as Arc<dyn Collection>).collect())
    }

    fn set(
        &self,
        _name: &str,
        _settings: Settings,
        _now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        Err(CollectionError::ReadOnly)
    }

    fn delete(&self, _name: &str) -> Result<(), CollectionError> {
        Err(CollectionError::ReadOnly)
    }

    fn totals(&self, now: i64) -> Totals {
        let all = self.shared.each();
        let items = all.iter().map(|one| one.items(now)).sum();
        let bytes = all.iter().map(|one| one.unread_bytes()).sum();
        let unreadable = self.shared.unreadable.load(Ordering::Relaxed);
        let behind = Some(Behind { bytes, unreadable });
        Totals { collections: all.len(), items, bytes: self.shared.budget.used(), behind }
    }
}
