//! A collection of a replica: held in memory as it is where it is written, and read on from its log.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cognate::engine::Engine;
use cognate::methods::Method;

use crate::embedded::held::Held;
use crate::embedded::tail::{Stamp, Tail};
use crate::embedded::{EmbeddedCollection, Pending, Vectors};
use crate::{
    Applied, Budget, Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError, How,
    Item, Limits, MatchError, Matched, Page, SharedEngine, Told, Which, Write,
};

/// A collection of a replica.
#[derive(Debug)]
pub(super) struct ReplicatedCollection {
    held: EmbeddedCollection,
    /// One reads on at a time.
    tail: Mutex<Tail>,
    read_bytes: AtomicU64,
    unread_bytes: AtomicU64,
}

impl ReplicatedCollection {
    /// A collection of which nothing was read; it is read before it is shown.
    pub(super) fn open(
        name: &str,
        path: &Path,
        limits: Limits,
        budget: &Arc<Budget>,
    ) -> io::Result<Self> {
        Ok(Self {
            held: EmbeddedCollection::new(name, limits, Arc::clone(budget), Held::default(), None),
            tail: Mutex::new(Tail::open(path)?),
            read_bytes: AtomicU64::new(0),
            unread_bytes: AtomicU64::new(0),
        })
    }

    /// Reads on what was written to the log, which is of this stamp now; whether nothing is left that
    /// might still be found to last.
    pub(super) fn read_on(&self, path: &Path, stamp: Stamp) -> Result<bool, CollectionError> {
        let failed = |source| CollectionError::Read { path: path.to_owned(), source };
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it is read nothing of it is.
        self.unread_bytes.store(stamp.length(), Ordering::Relaxed);
        let came = match tail.goes_on_in(stamp).map_err(failed)? {
            true => tail.read_on(|changes| self.held.take_over(changes)),
            false => {
                // It was written anew, mostly with what is held here.
                let mut fresh = Tail::open(path).map_err(failed)?;
                // What cannot be read to its end takes the place of nothing.
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

    /// Brings what is held to what another log says; whether nothing of that is left.
    fn take_over_all(&self, log: &mut Tail) -> Result<bool, CollectionError> {
        let (mut held, mut applied) = (Held::default(), Applied::default());
        let came = log.read_on(|changes| {
            let before = held.bytes;
            changes.into_iter().for_each(|change| held.apply(change, &mut applied));
            self.held.budget().give_back(before);
            self.held.budget().take_anyhow(held.bytes);
        });
        if came.is_ok() {
            let changes = self.held.held().towards(&held);
            self.held.take_over(changes);
        }
        self.held.budget().give_back(held.bytes);
        came
    }

    /// How many items it has.
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

    fn told(&self, now: i64) -> Result<Told, CollectionError> {
        let log_bytes = Some(self.read_bytes.load(Ordering::Relaxed));
        Ok(Told { durable: true, log_bytes, ..self.held.told(now) })
    }

    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        self.held.find(ids, now)
    }

    fn page(
        &self,
        which: &Which<'_>,
        page: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        self.held.page(which, page, now, cancel)
    }

    fn choose(
        &self,
        which: &Which<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        self.held.choose(which, choice, now, cancel)
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

    fn settle(&self, _pending: Pending) -> Result<(), CollectionError> {
        Ok(())
    }

    fn follow(
        &self,
        _engine: SharedEngine,
        _how: &How,
        _items: Vec<Item>,
        _now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        Err(CollectionError::ReadOnly.into())
    }

    /// What is too old leaves once the process that writes has taken it out.
    fn tidy(&self, _now: i64) -> Result<(), CollectionError> {
        Ok(())
    }
}
