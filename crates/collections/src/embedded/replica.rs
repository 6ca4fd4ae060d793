//! A replica: the collections of a folder that another process writes, to be read here.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
use std::{io, thread};

use cognate::engine::Engine;
use cognate::methods::Method;

use crate::embedded::home::{LOCK, LOG};
use crate::embedded::items::Items;
use crate::embedded::storage::{LocalStorage, Storage, is_nothing, modified};
use crate::embedded::tail::{Extent, Stamp, Tail};
use crate::embedded::{EmbeddedCollection, replay};
use crate::{
    Added, Applied, Behind, Budget, Cancellation, Choice, ChooseError, Chosen, Collection,
    CollectionError, CollectionInfo, Home, Item, ItemSelector, Limits, MatchError, MatchOptions,
    Matched, Merged, Page, Pending, Settings, SharedEngine, Totals, Vectors, Write, check_name,
};

/// Interval between two looks at the folder.
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
    extent: Extent,
    budget: Arc<Budget>,
    all: RwLock<BTreeMap<Box<str>, Arc<ReplicatedCollection>>>,
    /// Why those that are not among them cannot be read.
    damaged: RwLock<BTreeMap<Box<str>, String>>,
    /// What was found when the collections were looked at last, by their names; of the folder itself
    /// without one. One looks at a time.
    found: Mutex<BTreeMap<String, Found>>,
    /// Number of logs that could not be read further.
    unreadable: AtomicUsize,
    /// When a change was last taken over, and when the writer last touched its lock; 0 if never.
    changed: AtomicI64,
    writer: AtomicI64,
}

/// The result of a look at a log.
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
        let (home, problems) = Self::open_others(path, limits)?;
        problems.into_iter().next().map_or(Ok(home), Err)
    }

    /// The same, without those that cannot be read, and why they cannot. They are looked at again.
    pub fn open_others(
        path: &Path,
        limits: Limits,
    ) -> Result<(Self, Vec<CollectionError>), CollectionError> {
        Self::open_to(Extent::Lasting, path, limits)
    }

    /// The collections of a folder as a start would find them now, to be read once: their logs as far as
    /// they are whole, also in the format before. Those that cannot be read are [damaged](Home::damaged).
    pub fn open_whole(path: &Path, limits: Limits) -> Result<Self, CollectionError> {
        Ok(Self::open_to(Extent::Whole, path, limits)?.0)
    }

    fn open_to(
        extent: Extent,
        path: &Path,
        limits: Limits,
    ) -> Result<(Self, Vec<CollectionError>), CollectionError> {
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            limits,
            extent,
            budget: Arc::new(Budget::new(limits.bytes)),
            all: RwLock::default(),
            damaged: RwLock::default(),
            found: Mutex::default(),
            unreadable: AtomicUsize::new(0),
            changed: AtomicI64::new(0),
            writer: AtomicI64::new(0),
        });
        let problems = shared.look();
        let is_folder = |problem: &CollectionError| matches!(problem, CollectionError::Read { path: at, .. } if at == path);
        match problems.iter().position(is_folder) {
            Some(place) => Err(problems.into_iter().nth(place).unwrap_or(CollectionError::Unknown)),
            None => Ok((Self { shared }, problems)),
        }
    }

    /// Reads on what was written since. Each reason why that cannot be done is given once, as long as it
    /// stays the same; what was read before is still shown.
    pub fn look(&self) -> Vec<CollectionError> {
        self.shared.look()
    }

    /// Looks at the folder on its own thread until this is dropped; `tell` gets the errors of
    /// [`look`](Self::look).
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
                let unread = found.iter().filter(|(name, _)| !name.is_empty());
                let damaged = unread.filter(|(name, _)| self.named(name).is_none());
                let damaged = damaged.filter_map(|(name, found)| {
                    Some((name.as_str().into(), found.problem.clone()?))
                });
                *self.damaged.write().unwrap_or_else(PoisonError::into_inner) = damaged.collect();
            }
        }
        if let Ok(touched) = modified(&self.path.join(LOCK)) {
            self.writer.store(touched, Ordering::Relaxed);
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
            Ok(Some(stamp)) => Ok(stamp),
            // A start asks for a log in each folder.
            Ok(None) if self.extent == Extent::Whole && self.path.join(name).is_dir() => {
                Err(replay::unopened(&path, io::ErrorKind::NotFound.into()))
            }
            Ok(None) => return false,
            Err(source) => Err(failed(source)),
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
                // A frame that is being written at this moment is whole at the next look.
                Ok(false)
                | Err(CollectionError::Damaged { .. } | CollectionError::NewerFormat { .. }) => {
                    !stamp.is_fresh()
                }
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
            let before = known.read_bytes();
            let came = known.read_on(path, stamp);
            if known.read_bytes() != before {
                self.changed.store(crate::now(), Ordering::Relaxed);
            }
            return came;
        }
        let tail = Tail::open(path, self.extent).map_err(failed)?;
        let fresh = ReplicatedCollection::of(name, tail, self.limits, &self.budget);
        let whole = fresh.read_on(path, stamp)?;
        self.all_mut().insert(name.into(), Arc::new(fresh));
        self.changed.store(crate::now(), Ordering::Relaxed);
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
    /// Notes the result of reading a log; returns the error if it differs from the last one.
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
        if let Some(known) = self.shared.named(name) {
            return Ok(known);
        }
        let damaged = self.shared.damaged.read().unwrap_or_else(PoisonError::into_inner);
        Err(match damaged.get(name) {
            Some(problem) => CollectionError::NotServed { problem: problem.clone() },
            None => CollectionError::Unknown,
        })
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
        let time = |time: &AtomicI64| Some(time.load(Ordering::Relaxed)).filter(|time| *time > 0);
        let (changed, writer) = (time(&self.shared.changed), time(&self.shared.writer));
        let behind = Some(Behind { bytes, unreadable, changed, writer });
        Totals { collections: all.len(), items, bytes: self.shared.budget.used(), behind }
    }

    fn damaged(&self) -> Vec<(String, String)> {
        let damaged = self.shared.damaged.read().unwrap_or_else(PoisonError::into_inner);
        damaged.iter().map(|(name, problem)| (name.to_string(), problem.clone())).collect()
    }
}

/// A collection of a replica.
#[derive(Debug)]
pub(super) struct ReplicatedCollection {
    held: EmbeddedCollection,
    /// Held by the thread that reads further.
    tail: Mutex<Tail>,
    read_bytes: AtomicU64,
    unread_bytes: AtomicU64,
}

impl ReplicatedCollection {
    /// A collection of a log of which nothing was read; it is read before it is shown.
    fn of(name: &str, tail: Tail, limits: Limits, budget: &Arc<Budget>) -> Self {
        Self {
            held: EmbeddedCollection::new(name, limits, Arc::clone(budget), Items::default(), None),
            tail: Mutex::new(tail),
            read_bytes: AtomicU64::new(0),
            unread_bytes: AtomicU64::new(0),
        }
    }

    /// Reads on what was written to the log, which is of this stamp now; whether nothing is left that
    /// might still be found to last.
    pub(super) fn read_on(&self, path: &Path, stamp: Stamp) -> Result<bool, CollectionError> {
        let failed = |source| CollectionError::Read { path: path.to_owned(), source };
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it is read nothing of it is.
        self.unread_bytes.store(stamp.length(), Ordering::Relaxed);
        let came = match tail.goes_on_in(stamp).map_err(failed)? {
            true => tail.read_on(|changes| self.held.take_over(|held| held.apply_all(changes))),
            false => {
                // The log was written anew, mostly with the items that are here already.
                let mut fresh = Tail::open(path, tail.extent).map_err(failed)?;
                // A log that cannot be read to its end replaces nothing.
                let whole = self.take_over_all(&mut fresh)?;
                *tail = fresh;
                Ok(whole)
            }
        };
        self.read_bytes.store(tail.read_bytes(), Ordering::Relaxed);
        let unread = stamp.length().saturating_sub(tail.read_bytes());
        self.unread_bytes.store(unread, Ordering::Relaxed);
        came
    }

    /// Turns the items into those of another log; returns whether none of the old ones remains.
    fn take_over_all(&self, log: &mut Tail) -> Result<bool, CollectionError> {
        let mut held = Items::default();
        let came = log.read_on(|changes| {
            let before = held.bytes;
            held.apply_all(changes);
            self.held.budget().give_back(before);
            self.held.budget().charge_unchecked(held.bytes);
        });
        if came.is_ok() {
            self.held.take_over(|items| items.turn_into(&held));
        }
        self.held.budget().give_back(held.bytes);
        came
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn items(&self, now: i64) -> usize {
        self.held.told(now).items
    }

    /// Bytes of the log that were not read, or of which it is not known that they last.
    pub(super) fn unread_bytes(&self) -> u64 {
        self.unread_bytes.load(Ordering::Relaxed)
    }
}

impl Collection for ReplicatedCollection {
    fn name(&self) -> &str {
        self.held.name()
    }

    fn limits(&self) -> &Limits {
        self.held.limits()
    }

    fn told(&self, now: i64) -> Result<CollectionInfo, CollectionError> {
        let log_bytes = Some(self.read_bytes.load(Ordering::Relaxed));
        Ok(CollectionInfo { durable: true, log_bytes, ..self.held.told(now) })
    }

    fn added(&self, from: Option<u64>, most: usize, now: i64) -> Result<Added, CollectionError> {
        self.held.added(from, most, now)
    }

    fn number(&self, id: &str, now: i64) -> Result<Option<(u64, Arc<Item>)>, CollectionError> {
        self.held.number(id, now)
    }

    fn merges(
        &self,
        after: i64,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<Merged>, ChooseError> {
        self.held.merges(after, now, cancel)
    }

    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        self.held.find(ids, now)
    }

    fn page(
        &self,
        which: &ItemSelector<'_>,
        page: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        self.held.page(which, page, now, cancel)
    }

    fn choose(
        &self,
        which: &ItemSelector<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        self.held.choose(which, choice, now, cancel)
    }

    fn lacking<'n>(
        &self,
        names: &BTreeSet<&'n str>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Vec<&'n str>, ChooseError> {
        self.held.lacking(names, now, cancel)
    }

    fn vectors(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        self.held.vectors(engine, method, items, cancel)
    }

    fn write(&self, _wanted: Write, _now: i64) -> Result<(Applied, Pending), CollectionError> {
        Err(CollectionError::ReadOnly)
    }

    fn wait_durable(&self, _pending: Pending) -> Result<(), CollectionError> {
        Ok(())
    }

    fn follow(
        &self,
        _engine: SharedEngine,
        _how: &MatchOptions,
        _items: Vec<Item>,
        _now: i64,
        _cancel: Cancellation<'_>,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        Err(CollectionError::ReadOnly.into())
    }

    /// Expired items leave when the writing process removes them.
    fn expire(&self, _now: i64) -> Result<Option<Pending>, CollectionError> {
        Ok(None)
    }

    fn compact_log(&self) -> Result<(), CollectionError> {
        Ok(())
    }
}
