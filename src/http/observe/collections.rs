//! Counters of collections. A limited number have series of their own, by name; all further ones
//! share one, so that clients that make collections cannot make the page grow.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cognate_collections::{Activity, CollectionInfo};

use crate::http::error::Code;
use crate::http::observe::series::{Counter, Description, Kind, Registry, families};

/// The label of all further collections, which no collection can be named.
const OTHER: &str = "_other";

/// Counted actions of requests on a collection: family, and a label besides the collection's.
const COUNTED: [(&str, Option<(&str, &str)>); 8] = [
    ("cognate_collection_matches_total", None),
    ("cognate_collection_events_total", None),
    ("cognate_collection_expired_total", None),
    ("cognate_collection_left_total", Some(("reason", "ttl"))),
    ("cognate_collection_left_total", Some(("reason", "max_items"))),
    ("cognate_collection_refused_total", Some(("code", "collection_full"))),
    ("cognate_collection_refused_total", Some(("code", "not_written"))),
    ("cognate_collection_refused_total", Some(("code", "database_unavailable"))),
];

families! {
    FAMILIES:
    Gauge cognate_collection_items "Items, by collection.";
    Gauge cognate_collection_item_bytes "Memory of items, by collection.";
    Gauge cognate_collection_log_bytes "Size of the log, by collection.";
    Gauge cognate_collection_synced_timestamp_seconds
        "When a write was last made durable since the start, in seconds since 1970, by collection.";
    Counter cognate_collection_matches_total "Texts matched, by collection.";
    Counter cognate_collection_events_total "Events begun, by collection.";
    Counter cognate_collection_expired_total
        "Texts that were too old for the collection's ttl when they were matched, by collection.";
    Counter cognate_collection_left_total
        "Items that left, because of ttl or of max_items, by collection.";
    Counter cognate_collection_refused_total
        "Writes that were refused for want of room, of a disk or of a database, by collection.";
}

type CollectionUse = [Counter; COUNTED.len()];

pub(super) struct CollectionSeries {
    most: usize,
    named: Mutex<HashMap<Box<str>, Arc<CollectionUse>>>,
    others: Arc<CollectionUse>,
    /// How many items had left each collection at the last page. Locked while the series of a page
    /// are made.
    left: Mutex<HashMap<Box<str>, [u64; 2]>>,
}

impl CollectionSeries {
    pub(super) fn new(most: usize) -> Self {
        let (named, others) = (Mutex::default(), Arc::default());
        Self { most, named, others, left: Mutex::default() }
    }

    fn named(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<CollectionUse>>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of a collection: its own if it has some, or if there is room for them.
    fn of(&self, name: &str) -> Arc<CollectionUse> {
        let mut named = self.named();
        if let Some(known) = named.get(name) {
            return Arc::clone(known);
        }
        if named.len() >= self.most {
            return Arc::clone(&self.others);
        }
        Arc::clone(named.entry(name.into()).or_default())
    }

    pub(super) fn matched(&self, name: &str, texts: usize, events: usize, expired: usize) {
        let uses = self.of(name);
        let more = [texts, events, expired];
        uses.iter().zip(more).for_each(|(counter, more)| counter.increment(more as u64));
    }

    /// Counts the refusal of a write, if it is one of those that are counted.
    pub(super) fn refused(&self, name: &str, code: Code) {
        let label = Some(("code", code.name()));
        let place = COUNTED.iter().position(|(_, known)| *known == label);
        if let Some(place) = place
            && let Some(counter) = self.of(name).get(place)
        {
            counter.increment(1);
        }
    }

    /// Makes the series of these collections, and drops all others. No other page makes them while
    /// the returned guard is held.
    pub(super) fn write(
        &self,
        registry: &Registry,
        all: &[(CollectionInfo, Activity)],
    ) -> MutexGuard<'_, HashMap<Box<str>, [u64; 2]>> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        FAMILIES.iter().for_each(|(name, ..)| registry.clear(name));
        let names: HashSet<&str> = all.iter().map(|(info, _)| &*info.name).collect();
        self.named().retain(|name, uses| {
            // A deleted collection takes its series along; counts that no page has had yet are not
            // lost.
            if !names.contains(&**name) && !left.contains_key(name) {
                let both = self.others.iter().zip(uses.iter());
                both.for_each(|(others, its)| others.increment(its.value()));
            }
            names.contains(&**name)
        });
        left.retain(|name, _| names.contains(&**name));
        for (info, activity) in all {
            let uses = self.of(&info.name);
            let [ttl, items] = [activity.outlived, activity.evicted];
            let before = left.insert(info.name.as_str().into(), [ttl, items]).unwrap_or_default();
            for ((counter, now), before) in uses.iter().skip(3).zip([ttl, items]).zip(before) {
                counter.increment(now.checked_sub(before).unwrap_or(now));
            }
            let is_other = Arc::ptr_eq(&uses, &self.others);
            let label = if is_other { OTHER } else { &info.name };
            if !is_other {
                count(registry, label, &uses);
            }
            hold(registry, label, info, *activity);
        }
        count(registry, OTHER, &self.others);
        hold(registry, OTHER, &CollectionInfo::default(), Activity::default());
        left
    }
}

fn count(registry: &Registry, label: &str, uses: &CollectionUse) {
    for ((name, other), counter) in COUNTED.into_iter().zip(uses) {
        let labels: Vec<_> = [("collection", label)].into_iter().chain(other).collect();
        registry.counter(name, &labels).increment(counter.value());
    }
}

fn hold(registry: &Registry, label: &str, info: &CollectionInfo, activity: Activity) {
    let gauge = |name| registry.gauge(name, &[("collection", label)]);
    gauge("cognate_collection_items").increment(info.items as f64);
    gauge("cognate_collection_item_bytes").increment(info.bytes as f64);
    gauge("cognate_collection_log_bytes").increment(info.log_bytes.unwrap_or(0) as f64);
    let synced = gauge("cognate_collection_synced_timestamp_seconds");
    synced.set(synced.value().max(activity.synced.unwrap_or(0) as f64 / 1e3));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of a database's collections is requested every few seconds, and may fail.
    #[test]
    fn what_was_done_to_a_collection_that_no_page_has_had_is_not_lost() {
        let (series, registry) = (CollectionSeries::new(2), Registry::new(FAMILIES));
        let refused = |label: &str| {
            let labels = [("collection", label), ("code", Code::NotWritten.name())];
            registry.counter("cognate_collection_refused_total", &labels).value()
        };
        series.refused("news", Code::NotWritten);
        drop(series.write(&registry, &[]));
        assert_eq!(refused(OTHER), 1);
        let news = CollectionInfo { name: "news".to_owned(), ..CollectionInfo::default() };
        let all = [(news, Activity::default())];
        series.refused("news", Code::NotWritten);
        drop(series.write(&registry, &all));
        assert_eq!((refused("news"), refused(OTHER)), (1, 1));
        // A deleted collection takes its own series along.
        drop(series.write(&registry, &[]));
        drop(series.write(&registry, &all));
        assert_eq!((refused("news"), refused(OTHER)), (0, 1));
    }
}
