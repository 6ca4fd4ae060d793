//! The collections of the service as one caller sees them: those that its key may use, and their
//! joint limits. Others look to the caller as if they did not exist.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "postgres")]
use cognate_collections::PostgresHome;
use cognate_collections::{
    CallCounts, Collection, CollectionError, CollectionInfo, Cut, EmbeddedHome, Home, Item,
    ItemPatch, Limits, Opening, Patched, ReplicaHome, SettingsChange, Totals,
};

use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Result};
use crate::http::settings::{Damaged, Settings};

pub(crate) struct Collections {
    home: Box<dyn Home>,
    /// The joint limits of a limited key's collections, if any.
    most: Option<Most>,
    /// Logs whose ends were cut off when they were opened.
    cut_logs: AtomicUsize,
    /// Whether the next maintenance opens collections that were added to the folder.
    is_taking_up: AtomicBool,
}

/// Joint limits of all collections that a limited key may use.
#[derive(Debug, Clone, Copy)]
struct Most {
    collections: usize,
    items: usize,
    bytes: usize,
}

impl Most {
    fn from_settings(settings: &Settings) -> Option<Self> {
        let given = [
            settings.collections_per_key,
            settings.collection_items_per_key,
            settings.collection_bytes_per_key,
        ];
        let [collections, items, bytes] = given.map(|most| most.unwrap_or(usize::MAX));
        given.iter().any(Option::is_some).then_some(Self { collections, items, bytes })
    }
}

impl Collections {
    pub(in crate::http) fn open(settings: &Settings) -> Result<Self, CollectionError> {
        let (home, cut_logs) = open_home(settings)?;
        let (cut_logs, is_taking_up) = (AtomicUsize::new(cut_logs), AtomicBool::new(false));
        Ok(Self { home, most: Most::from_settings(settings), cut_logs, is_taking_up })
    }

    /// Whether collections are stored on another machine, which every question must wait for.
    pub(crate) fn is_remote(&self) -> bool {
        self.home.is_remote()
    }

    pub(crate) fn cut_logs(&self) -> usize {
        self.cut_logs.load(Ordering::Relaxed)
    }

    /// Lets the next maintenance open collections that were added to the folder, so that the caller
    /// waits for no disk.
    pub(in crate::http) fn take_up_soon(&self) {
        self.is_taking_up.store(true, Ordering::Release);
    }

    /// Opens collections that were added to the folder, and mended ones, if requested.
    pub(in crate::http) fn take_up(&self) {
        if !self.is_taking_up.swap(false, Ordering::AcqRel) {
            return;
        }
        match self.home.take_up() {
            Ok((taken, cuts)) => {
                self.cut_logs.fetch_add(tell_of_cuts(cuts), Ordering::Relaxed);
                tell_of_damage(&*self.home);
                if !taken.is_empty() {
                    tracing::info!(collections = taken.join(","), "collections taken up");
                }
            }
            Err(CollectionError::HandedOver) => {}
            Err(error) => tracing::error!(%error, "no collections could be taken up"),
        }
    }

    pub(crate) fn totals(&self, now: i64) -> Totals {
        self.home.totals(now)
    }

    /// The collections of all callers, for maintenance. Requests must use [`of`](Self::of); a test
    /// of the project checks that.
    pub(crate) fn home(&self) -> &dyn Home {
        &*self.home
    }

    pub(crate) fn damaged(&self) -> usize {
        self.home.damaged().len()
    }

    pub(crate) fn unwritable(&self) -> usize {
        self.home.unwritable()
    }

    pub(crate) fn full(&self) -> usize {
        self.home.full()
    }

    pub(crate) fn calls(&self) -> Option<CallCounts> {
        self.home.calls()
    }

    /// The collections that a caller may use. A page whose reader did not mean to call this service
    /// gets none.
    pub(crate) fn of<'c>(&'c self, caller: &'c Caller) -> Result<Reachable<'c>> {
        if caller.is_led_here() {
            let detail = "without keys, collections are not shown to a page of elsewhere, or to whoever \
                          calls this service by a name that others may have pointed here: call it by its \
                          address, or name the host in the setting `allowed_hosts` and the page in \
                          `cors_origins`";
            return Err(ApiError::new(Code::Forbidden, detail));
        }
        let most = self.most.filter(|_| caller.is_limited());
        Ok(Reachable { home: &*self.home, caller, most })
    }
}

pub(crate) struct Reachable<'c> {
    home: &'c dyn Home,
    caller: &'c Caller,
    most: Option<Most>,
}

impl Reachable<'_> {
    fn check(&self, name: &str) -> Result<(), CollectionError> {
        if self.caller.reaches(name) { Ok(()) } else { Err(CollectionError::Unknown) }
    }

    pub(crate) fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError> {
        self.check(name)?;
        self.home.get(name)
    }

    pub(crate) fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError> {
        let mut all = self.home.all()?;
        all.retain(|one| self.caller.reaches(one.name()));
        Ok(all)
    }

    /// Refuses a name under which the caller may not make a collection.
    pub(crate) fn check_name(&self, name: &str) -> Result<()> {
        self.check(name).map_err(|_| {
            let detail = "this key may not make a collection of this name: its line in the key file \
                          names the collections that it reaches";
            ApiError::new(Code::Forbidden, detail)
        })
    }

    /// Makes a collection, or changes its settings; returns whether it is new.
    pub(crate) fn set(
        &self,
        name: &str,
        change: SettingsChange,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        self.check(name)?;
        self.home.set(name, change, now)
    }

    pub(crate) fn delete(&self, name: &str) -> Result<(), CollectionError> {
        self.check(name)?;
        self.home.delete(name)
    }

    /// Whether the caller's writes count against a joint limit, so that they are serialised.
    pub(crate) fn are_counted(&self) -> bool {
        self.most.is_some()
    }

    /// Refuses a new collection beyond the number that the caller's key may have.
    pub(crate) fn check_another(&self, name: &str) -> Result<()> {
        let Some(Most { collections: limit, .. }) = self.most else { return Ok(()) };
        let all = self.all().map_err(|error| failed(&error))?;
        if all.len() < limit || all.iter().any(|one| one.name() == name) {
            return Ok(());
        }
        let detail = format!(
            "there are {} collections that this key reaches; the limit is {limit} (setting \
             `collections_per_key`)",
            all.len()
        );
        Err(ApiError::new(Code::CollectionFull, detail))
    }

    /// Refuses items for which the collections of the caller's key have no room. The caller's
    /// writes must be serialised meanwhile.
    pub(crate) fn check_room(
        &self,
        collection: &dyn Collection,
        items: &[Item],
        now: i64,
    ) -> Result<()> {
        let Some(most) = self.most else { return Ok(()) };
        let room = Room::new(self, collection, now).map_err(|error| failed(&error))?;
        let (mut more, mut bytes) = (items.len(), items.iter().map(Item::bytes).sum());
        let fits = |there: usize, more: usize, most: usize| there.saturating_add(more) <= most;
        if !fits(room.items, more, most.items) || !fits(room.bytes, bytes, most.bytes) {
            // Only then is it worth finding out which items replace others.
            (more, bytes) = room.growth(collection, items, now).map_err(|error| failed(&error))?;
        }
        room.check_growth((more, bytes), most)
    }

    /// [`Self::check_room`] for patched items.
    pub(crate) fn check_room_to_patch(
        &self,
        collection: &dyn Collection,
        patches: &[(Box<str>, ItemPatch)],
        now: i64,
    ) -> Result<()> {
        if !self.are_counted() {
            return Ok(());
        }
        let ids: Vec<&str> = patches.iter().map(|(id, _)| &**id).collect();
        let found = collection.find(&ids, now).map_err(|error| failed(&error))?;
        let mut patched = Patched::default();
        for ((id, patch), item) in patches.iter().zip(found) {
            // Missing items and invalid patches are refused by the write itself.
            let _ = patched.apply(id, patch, || item);
        }
        self.check_room(collection, &patched.into_items().collect::<Vec<_>>(), now)
    }

    /// The bytes by which the collections may still grow.
    pub(crate) fn bytes_left(&self, collection: &dyn Collection, now: i64) -> Result<usize> {
        let Some(most) = self.most else { return Ok(usize::MAX) };
        let room = Room::new(self, collection, now).map_err(|error| failed(&error))?;
        Ok(most.bytes.saturating_sub(room.bytes))
    }
}

/// The contents of all collections of a caller together.
struct Room {
    items: usize,
    bytes: usize,
    written: Option<CollectionInfo>,
}

impl Room {
    fn new(
        reachable: &Reachable<'_>,
        collection: &dyn Collection,
        now: i64,
    ) -> Result<Self, CollectionError> {
        let mut room = Self { items: 0, bytes: 0, written: None };
        for one in reachable.all()? {
            let told = one.told(now)?;
            room.items = room.items.saturating_add(told.items);
            room.bytes = room.bytes.saturating_add(told.bytes);
            if told.name == collection.name() {
                room.written = Some(told);
            }
        }
        Ok(room)
    }

    /// Refuses growth by this many items and bytes beyond joint limits.
    fn check_growth(&self, (more, bytes): (usize, usize), most: Most) -> Result<()> {
        for (there, more, limit, what, setting) in [
            (self.items, more, most.items, "items", "collection_items_per_key"),
            (self.bytes, bytes, most.bytes, "bytes of items", "collection_bytes_per_key"),
        ] {
            let wanted = there.saturating_add(more);
            if more > 0 && wanted > limit {
                let detail = format!(
                    "the collections that this key reaches would have {wanted} {what}; the limit is \
                     {limit} (setting `{setting}`)"
                );
                return Err(ApiError::new(Code::CollectionFull, detail));
            }
        }
        Ok(())
    }

    /// The items and bytes that a write adds, less those that it replaces and the oldest that
    /// leave.
    fn growth(
        &self,
        collection: &dyn Collection,
        items: &[Item],
        now: i64,
    ) -> Result<(usize, usize), CollectionError> {
        let last: HashMap<&str, usize> =
            items.iter().map(|item| (&*item.id, item.bytes())).collect();
        let names: Vec<&str> = last.keys().copied().collect();
        let replaced = collection.find(&names, now)?;
        let replaced: Vec<usize> = replaced.iter().flatten().map(|item| item.bytes()).collect();
        let new = last.len().saturating_sub(replaced.len());
        let bytes: usize = last.values().sum();
        let (there, most) =
            (self.written.as_ref()).map_or((0, None), |told| (told.items, told.settings.max_items));
        let leave = most.map_or(0, |most| (there + new).saturating_sub(most));
        // Replaced items are the newest, so they are not among those that leave.
        let oldest = match leave {
            0 => Vec::new(),
            _ => collection.added(Some(0), leave.saturating_add(names.len()), now)?.items,
        };
        let leaving = oldest.iter().filter(|(_, item)| !last.contains_key(&*item.id)).take(leave);
        let freed = replaced.iter().sum::<usize>();
        let freed = freed + leaving.map(|(_, item)| item.bytes()).sum::<usize>();
        Ok((new.saturating_sub(leave), bytes.saturating_sub(freed)))
    }
}

/// Counting reads only this process's memory, so it cannot fail for another reason.
fn failed(error: &CollectionError) -> ApiError {
    ApiError::internal(&error.to_string())
}

/// Opens the collections of the settings, and counts the logs whose ends were cut off. The log gets
/// a line for each unfinished end that a crash left, with its length.
fn open_home(settings: &Settings) -> Result<(Box<dyn Home>, usize), CollectionError> {
    let mut cut_logs = 0;
    let limits = settings.collection_limits();
    let begun = Instant::now();
    let folder = settings.folder().map(|folder| folder.display().to_string());
    let database = settings.postgres.is_some().then_some(true);
    if folder.is_some() || database.is_some() {
        tracing::info!(folder, database, "opening collections");
    }
    let home: Box<dyn Home> = match (&settings.postgres, &settings.replica_of, &settings.data) {
        (Some(_), _, _) => open_database(settings)?,
        (None, Some(folder), _) => Box::new(open_replica(folder, limits, settings.damaged)?),
        (None, None, None) => return Ok((Box::new(EmbeddedHome::in_memory(limits)), 0)),
        (None, None, Some(folder)) => {
            let patience = Duration::from_secs(settings.wait_for_data_s);
            let serve_others = settings.damaged == Damaged::ServeOthers;
            let (home, cuts) =
                EmbeddedHome::open_with(folder, limits, Opening { patience, serve_others })?;
            tell_of_damage(&home);
            cut_logs = tell_of_cuts(cuts);
            Box::new(home)
        }
    };
    let Totals { collections, items, .. } = home.totals(cognate_collections::now());
    let took_s = begun.elapsed().as_secs_f64();
    tracing::info!(collections, items, folder, database, took_s, "collections opened");
    Ok((home, cut_logs))
}

fn tell_of_damage(home: &dyn Home) {
    for (collection, problem) in home.damaged() {
        tracing::error!(collection, problem, "a collection is not served: its log cannot be read");
    }
}

/// Logs each unfinished end that a crash left; returns how many were cut off.
fn tell_of_cuts(cuts: Vec<Cut>) -> usize {
    let mut count = 0;
    for Cut { path, bytes, kept } in cuts {
        let outcome = match kept {
            Some(_) => "it was cut off",
            None => {
                "the disk has no room to keep it aside, so it stays there, and until there is the \
                 collection takes no changes"
            }
        };
        count += usize::from(kept.is_some());
        let (log, kept) = (path.display(), kept.map(|kept| kept.display().to_string()));
        tracing::warn!(
            %log, bytes, kept,
            "the end of a collection's log was not whole, as a crash leaves it; {outcome}"
        );
    }
    count
}

/// Opens a replica. A log line names each collection that cannot be read.
fn open_replica(
    folder: &Path,
    limits: Limits,
    damaged: Damaged,
) -> Result<ReplicaHome, CollectionError> {
    let tell = |error: CollectionError| {
        tracing::error!(%error, "a collection cannot be read on; it is shown as it was before, if at all");
    };
    let home = match damaged {
        Damaged::Refuse => ReplicaHome::open(folder, limits)?,
        Damaged::ServeOthers => {
            let (home, _) = ReplicaHome::open_others(folder, limits)?;
            tell_of_damage(&home);
            home
        }
    };
    let home = home.watched(tell);
    home.map_err(|source| CollectionError::Read { path: folder.to_owned(), source })
}

#[cfg(feature = "postgres")]
fn open_database(settings: &Settings) -> Result<Box<dyn Home>, CollectionError> {
    let url = settings.postgres.as_ref().map_or("", |url| url.secret());
    let patience = Duration::from_millis(settings.compute_deadline_ms);
    Ok(Box::new(PostgresHome::open(url, settings.collection_limits(), patience)?))
}

/// The settings were checked, so this is never called.
#[cfg(not(feature = "postgres"))]
fn open_database(_: &Settings) -> Result<Box<dyn Home>, CollectionError> {
    Err(CollectionError::NotSetUp { problem: cognate_collections::NO_POSTGRES.to_owned() })
}
