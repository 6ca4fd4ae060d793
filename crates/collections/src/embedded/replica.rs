//! A replica: the collections of a folder that another process writes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;

use crate::embedded::home::{LOCK, LOG, Registry, collection_names};
use crate::embedded::items::Items;
use crate::embedded::storage::{LocalStorage, Storage, is_nothing, modified};
use crate::embedded::tail::{Stamp, Tail};
use crate::embedded::{EmbeddedCollection, replay};
use crate::{Collection, CollectionError, Home, Lag, Limits, Result, Totals, check_name};

const EVERY: Duration = Duration::from_millis(100);
const MAX_PASSED: u32 = 300;

/// The collections of a folder that another process writes. The replica writes nothing, not even a
/// lock.
#[derive(Debug)]
pub struct ReplicaHome {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    registry: Registry,
    /// The findings of the last look, by name of the collection, and under an empty name for the
    /// folder. Only one thread looks at a time.
    found: Mutex<BTreeMap<String, Found>>,
    unreadable: AtomicUsize,
    /// When a change was last applied, and when the writer last touched its lock; 0 if never.
    changed: AtomicI64,
    writer: AtomicI64,
}

#[derive(Debug, Default)]
struct Found {
    tail: Option<Tail>,
    /// The log's stamp, if the log needs no more reading until it changes.
    stamp: Option<Stamp>,
    problem: Option<String>,
    /// Looks to skip before it is read again, and how many were skipped the last time.
    passes: u32,
    passed: u32,
}

impl ReplicaHome {
    pub fn open(path: &Path, limits: Limits) -> Result<Self> {
        let (home, problems) = Self::open_others(path, limits)?;
        problems.into_iter().next().map_or(Ok(home), Err)
    }

    /// [`open`](Self::open) without the collections that cannot be read; also returns the errors.
    /// Later looks try them again.
    pub fn open_others(path: &Path, limits: Limits) -> Result<(Self, Vec<CollectionError>)> {
        let shared = Shared::new(path, limits);
        let problems = shared.look();
        let is_folder = |problem: &CollectionError| matches!(problem, CollectionError::Read { path: at, .. } if at == path);
        match problems.iter().position(is_folder) {
            Some(place) => Err(problems.into_iter().nth(place).unwrap_or(CollectionError::Unknown)),
            None => Ok((Self { shared }, problems)),
        }
    }

    /// The collections that a start would find in a folder now, to be read once: the whole parts of
    /// their logs. Logs that cannot be read are [damaged](Home::damaged).
    pub fn open_whole(path: &Path, limits: Limits) -> Result<Self> {
        let shared = Shared::new(path, limits);
        for name in collection_names(&LocalStorage, path)? {
            let collection = EmbeddedCollection::replica(&name, &shared.registry);
            let read = replay::read_only(&path.join(&name).join(LOG), |change| {
                collection.take_over(|held| held.apply_all([change]));
            });
            match read {
                Ok(bytes) => {
                    collection.note_read(bytes, bytes);
                    shared.registry.add(&name, Arc::new(collection));
                }
                Err(error) => {
                    shared.registry.damaged.write().insert(name.into(), error.to_string());
                }
            }
        }
        Ok(Self { shared })
    }

    #[cfg(test)]
    pub(super) fn make_room(&self) {
        self.shared.registry.budget.make_room();
    }

    /// Reads the bytes that were written since. Each error is returned once, as long as it stays
    /// the same; data that was read before is still shown.
    pub fn look(&self) -> Vec<CollectionError> {
        self.shared.look()
    }

    /// Calls [`look`](Self::look) on a thread of its own until this is dropped; `tell` gets the
    /// errors.
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
    fn new(path: &Path, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            registry: Registry::new(limits),
            found: Mutex::default(),
            unreadable: AtomicUsize::new(0),
            changed: AtomicI64::new(0),
            writer: AtomicI64::new(0),
        })
    }

    fn look(&self) -> Vec<CollectionError> {
        let mut found = self.found.lock();
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
                self.registry.all.write().retain(|name, _| names.contains(&**name));
                found.retain(|name, _| name.is_empty() || names.contains(name));
                let unread = found.iter().filter(|(name, _)| !name.is_empty());
                let damaged = unread.filter(|(_, found)| found.tail.is_none());
                let damaged = damaged.filter_map(|(name, found)| {
                    Some((name.as_str().into(), found.problem.clone()?))
                });
                *self.registry.damaged.write() = damaged.collect();
            }
        }
        if let Ok(touched) = modified(&self.path.join(LOCK)) {
            self.writer.store(touched, Ordering::Relaxed);
        }
        let unreadable = found.values().filter(|found| found.problem.is_some()).count();
        self.unreadable.store(unreadable, Ordering::Relaxed);
        problems
    }

    fn look_at(
        &self,
        name: &str,
        found: &mut BTreeMap<String, Found>,
        problems: &mut Vec<CollectionError>,
    ) -> bool {
        let path = self.path.join(name).join(LOG);
        let failed = CollectionError::reading(&path);
        let stamp = match Stamp::read(&path) {
            Ok(None) => return false,
            Ok(Some(stamp)) => Ok(stamp),
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
            let came = self.read_on(name, &path, stamp, &mut found.tail);
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
            Err(_) => (2 * found.passed + 1).min(MAX_PASSED),
        };
        found.passes = found.passed;
        problems.extend(found.note(came));
        true
    }

    /// Reads the new bytes of the log, which now has this stamp; returns whether all of them are
    /// known to be durable. A collection is shown once its log was read.
    fn read_on(
        &self,
        name: &str,
        path: &Path,
        stamp: Stamp,
        known: &mut Option<Tail>,
    ) -> Result<bool> {
        let failed = CollectionError::reading(path);
        let open = || Tail::open(path).map_err(failed);
        let Some(tail) = known else {
            let (mut tail, fresh) = (open()?, EmbeddedCollection::replica(name, &self.registry));
            let whole = tail.read_on(|changes| fresh.take_over(|held| held.apply_all(changes)))?;
            fresh.note_read(tail.read_bytes(), stamp.length());
            self.registry.add(name, Arc::new(fresh));
            self.changed.store(crate::now(), Ordering::Relaxed);
            *known = Some(tail);
            return Ok(whole);
        };
        let collection = self.registry.named(name)?;
        let before = tail.read_bytes();
        // Until the log is read, no byte of it counts as read.
        collection.note_read(before, before.saturating_add(stamp.length()));
        let came = match tail.goes_on_in(stamp).map_err(failed)? {
            true => tail.read_on(|changes| collection.take_over(|held| held.apply_all(changes))),
            false => {
                // The log was rewritten, mostly with the items that are here already.
                let mut fresh = open()?;
                // A log that cannot be read to its end replaces nothing.
                let whole = take_over_all(&collection, &mut fresh)?;
                *tail = fresh;
                Ok(whole)
            }
        };
        collection.note_read(tail.read_bytes(), stamp.length());
        if tail.read_bytes() != before {
            self.changed.store(crate::now(), Ordering::Relaxed);
        }
        came
    }
}

/// Turns the items into those of another log; returns whether none of the old ones remains.
fn take_over_all(collection: &EmbeddedCollection, log: &mut Tail) -> Result<bool> {
    let (mut held, budget) = (Items::default(), &collection.budget);
    let came = log.read_on(|changes| {
        let before = held.bytes;
        held.apply_all(changes);
        budget.give_back(before);
        budget.charge_unchecked(held.bytes);
    });
    if came.is_ok() {
        collection.take_over(|items| items.turn_into(&held));
    }
    budget.give_back(held.bytes);
    came
}

impl Found {
    /// Stores the result of reading a log; returns the error if it differs from the last one.
    fn note<T>(&mut self, came: Result<T>) -> Option<CollectionError> {
        let problem = came.as_ref().err().map(ToString::to_string);
        let is_known = problem == self.problem;
        self.problem = problem;
        came.err().filter(|_| !is_known)
    }
}

impl Home for ReplicaHome {
    fn limits(&self) -> &Limits {
        &self.shared.registry.limits
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>> {
        Ok(self.shared.registry.named(name)?)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>> {
        Ok(self.shared.registry.all())
    }

    fn totals(&self, now: i64) -> Totals {
        let all = self.shared.registry.each();
        let bytes = all.iter().filter_map(|one| one.status.lock().unread_bytes).sum();
        let unreadable = self.shared.unreadable.load(Ordering::Relaxed);
        let time = |time: &AtomicI64| Some(time.load(Ordering::Relaxed)).filter(|time| *time > 0);
        let (changed, writer) = (time(&self.shared.changed), time(&self.shared.writer));
        let behind = Some(Lag { bytes, unreadable, changed, writer });
        Totals { behind, ..self.shared.registry.totals(now) }
    }

    fn damaged(&self) -> Vec<(String, String)> {
        self.shared.registry.damaged()
    }
}
