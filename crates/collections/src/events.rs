//! The events of a collection, computed from its items: their items, rates and hours, and how a
//! merge or a split by hand changes them. Which event an item joins is decided elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::settings::allocated;
use crate::{CollectionError, Item, Result};

const HOUR: i64 = 3_600_000;
/// Shortest span that has a rate.
const MIN_SPAN: i64 = 60_000;
/// Highest number of an item within its event that every home can store.
pub(crate) const MAX_COUNTED: u64 = (i64::MAX / 2) as u64;

#[derive(Debug)]
pub struct EventItems<'i> {
    /// The name of the event: the id of its first item, which may have left the collection.
    pub id: &'i str,
    /// By time; items of the same time in the order in which they were added.
    pub items: Vec<&'i Arc<Item>>,
}

impl<'i> EventItems<'i> {
    /// The events of some items, ordered by their first items. Unmatched items have no event.
    pub fn group(items: impl IntoIterator<Item = &'i Arc<Item>>) -> Vec<Self> {
        let (mut events, mut places) = (Vec::<Self>::new(), HashMap::<&str, usize>::new());
        for item in items {
            let Some(event) = &item.event else { continue };
            let place = *places.entry(&event.id).or_insert(events.len());
            match events.get_mut(place) {
                Some(event) => event.items.push(item),
                None => events.push(Self { id: &event.id, items: vec![item] }),
            }
        }
        for event in &mut events {
            event.items.sort_by_key(|item| item.time);
        }
        events
    }

    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// Number of different values of an attribute; items without it do not count.
    pub fn distinct(&self, name: &str) -> usize {
        let values = self.items.iter().filter_map(|item| item.attributes.get(name));
        let values = values.map(|value| xxh3_128(value.to_string().as_bytes()));
        values.collect::<HashSet<u128>>().len()
    }

    pub fn first(&self) -> i64 {
        self.items.first().map_or(0, |item| item.time)
    }

    pub fn last(&self) -> i64 {
        self.items.last().map_or(0, |item| item.time)
    }

    /// Items an hour from the first to the last; `None` if these are less than a minute apart.
    pub fn per_hour(&self) -> Option<f64> {
        let span = self.last().saturating_sub(self.first());
        (span >= MIN_SPAN).then(|| self.size() as f64 / (span as f64 / HOUR as f64))
    }

    /// For each hour of the clock that has items, their number and when the hour begins.
    pub fn hours(&self) -> impl Iterator<Item = (usize, i64)> {
        let hour = |item: &Arc<Item>| item.time.div_euclid(HOUR);
        let hours = self.items.chunk_by(move |one, other| hour(one) == hour(other));
        hours.filter_map(move |items| Some((items.len(), hour(items.first()?) * HOUR)))
    }

    /// The most items within one hour, and when that hour begins; the first such hour.
    pub fn peak(&self) -> (usize, i64) {
        let (mut from, mut peak) = (0, (0, self.first()));
        for (at, item) in self.items.iter().enumerate() {
            while let Some(first) = self.items.get(from)
                && item.time.saturating_sub(first.time) >= HOUR
            {
                from += 1;
            }
            let items = at + 1 - from;
            if items > peak.0 {
                peak = (items, self.items.get(from).map_or(0, |first| first.time));
            }
        }
        peak
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventChange {
    /// All items of `events` become items of `into`.
    Merge { into: Box<str>, events: Vec<Box<str>> },
    /// Some items of an event become a new event, named after the first of them whose name no other
    /// event has.
    Split { event: Box<str>, ids: Vec<Box<str>> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    pub(super) id: Box<str>,
    pub(super) event: Box<str>,
    /// The number of items of that event, with this item, in the order in which they are counted.
    pub(super) size: u64,
    /// When events were merged, if the event moves by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<i64>,
}

impl Move {
    /// Most bytes of memory that the item takes more: it keeps the name of the event that it leaves.
    pub(super) fn growth(&self) -> usize {
        allocated(self.event.len())
    }
}

/// An item, its event, and how many items the event had with it.
pub(super) type Member<'i> = (&'i str, &'i str, u64);

impl EventChange {
    pub(super) fn events(&self) -> HashSet<&str> {
        let (one, others) = match self {
            Self::Merge { into, events } => (into, events),
            // Items outside the event may have the name of the new event.
            Self::Split { event, ids } => (event, ids),
        };
        std::iter::once(one).chain(others).map(AsRef::as_ref).collect()
    }

    pub(super) fn members<'i>(
        &self,
        items: impl Iterator<Item = &'i Arc<Item>>,
    ) -> Vec<Member<'i>> {
        let events = self.events();
        let of = items.filter_map(|item| {
            let event = item.event.as_ref().filter(|event| events.contains(&*event.id))?;
            Some((&*item.id, &*event.id, event.size))
        });
        of.collect()
    }

    /// Returns which items move to which event, given all items of [`events`](Self::events) in the order in
    /// which they were added. `at` is the time of the change; no other merge of the collection has it.
    pub(super) fn moves(&self, members: &[Member<'_>], at: i64) -> Result<Vec<Move>> {
        let refused =
            |field, index, problem| CollectionError::EventChange { field, index, problem };
        match self {
            Self::Merge { into, events } => {
                let mut had: HashMap<&str, (u64, u64)> = HashMap::new();
                for (_, event, size) in members {
                    let (most, there) = had.entry(event).or_default();
                    (*most, *there) = ((*most).max(*size), *there + 1);
                }
                if !had.contains_key(&**into) {
                    return Err(CollectionError::NoEvent);
                }
                for (index, event) in events.iter().enumerate() {
                    if event == into {
                        let problem = "an event is not merged with itself";
                        return Err(refused("/events", Some(index), problem));
                    }
                    if !had.contains_key(&**event) {
                        let problem = "the collection has no item of an event of this name";
                        return Err(refused("/events", Some(index), problem));
                    }
                }
                // Items are numbered as if they had always been one event, including those that
                // left, so numbers rise in the order of the items, as in any event.
                let all = had.values().map(|(most, there)| *most.max(there));
                // Loaded items may carry any number.
                let all = all.fold(0, u64::saturating_add).min(MAX_COUNTED);
                let counted = members.iter().zip(all.saturating_sub(members.len() as u64) + 1..);
                let moved =
                    counted.filter(|((_, event, own), size)| **event != **into || own != size);
                let moved = moved.map(|((id, ..), size)| Move {
                    id: (*id).into(),
                    event: into.clone(),
                    size,
                    at: Some(at),
                });
                Ok(moved.collect())
            }
            Self::Split { event, ids } => {
                let of = members.iter().filter(|(_, of, _)| **of == **event);
                let of: Vec<&str> = of.map(|(id, ..)| *id).collect();
                let all: HashSet<&str> = of.iter().copied().collect();
                if all.is_empty() {
                    return Err(CollectionError::NoEvent);
                }
                if let Some(index) = ids.iter().position(|id| !all.contains(&**id)) {
                    return Err(refused("/ids", Some(index), "the event has no item of this name"));
                }
                let named: HashSet<&str> = ids.iter().map(AsRef::as_ref).collect();
                if named.len() == all.len() {
                    let problem = "these are all items of the event, so that nothing is split";
                    return Err(refused("/ids", None, problem));
                }
                let taken: HashSet<&str> = members.iter().map(|(_, event, _)| *event).collect();
                let moved = || of.iter().copied().filter(|id| named.contains(id));
                let called = moved().find(|id| !taken.contains(id)).ok_or_else(|| {
                    let problem = "an event is called by one of its items, and others are called by all \
                                   of these; name the items that stay instead";
                    refused("/ids", None, problem)
                })?;
                let moved = moved().zip(1..);
                let moved = moved.map(|(id, size)| Move {
                    id: id.into(),
                    event: called.into(),
                    size,
                    at: None,
                });
                Ok(moved.collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attributes, Event};

    fn item(id: &str, event: Option<&str>, minutes: i64) -> Arc<Item> {
        let event = event.map(|id| Event {
            id: id.into(),
            size: 1,
            score: None,
            duplicate_of: None,
            moved_from: None,
            moved_at: None,
            bursts: false,
        });
        let (id, time) = (id.into(), minutes * 60_000);
        let attributes = Attributes::default();
        Arc::new(Item { id, text: "t".into(), time, attributes, data: None, event })
    }

    #[test]
    fn events_are_told_by_the_items_that_are_there() {
        let items = [
            item("a", Some("a"), 30),
            item("b", None, 0),
            item("c", Some("c"), 0),
            item("d", Some("a"), 0),
            item("e", Some("a"), 89),
            item("f", Some("a"), 89),
            item("g", Some("left"), 5),
        ];
        let events = EventItems::group(&items);
        let told = |event: &EventItems<'_>| {
            let names = event.items.iter().map(|item| &*item.id).collect::<Vec<_>>().join("");
            (event.id.to_owned(), names, event.first() / 60_000, event.last() / 60_000)
        };
        let expected = [("a", "daef", 0, 89), ("c", "c", 0, 0), ("left", "g", 5, 5)];
        let expected =
            expected.map(|(id, names, first, last)| (id.into(), names.into(), first, last));
        assert_eq!(events.iter().map(told).collect::<Vec<_>>(), expected);
        assert_eq!(events.iter().map(EventItems::size).collect::<Vec<_>>(), [4, 1, 1]);
        // Minutes 30 to 89 are less than an hour, 0 to 89 are more.
        assert_eq!((events[0].peak(), events[1].peak()), ((3, 30 * 60_000), (1, 0)));
        let hours = [(2, 0), (2, 60)].map(|(items, minutes)| (items, minutes * 60_000));
        assert!(events[0].hours().eq(hours));
        assert!(EventItems::group(&[item("x", Some("x"), -1)])[0].hours().eq([(1, -HOUR)]));
        assert!((events[0].per_hour().unwrap() - 4.0 * 60.0 / 89.0).abs() < 1e-9);
        assert_eq!(events[1].per_hour(), None);
    }

    #[test]
    fn what_moves_is_counted_on_and_called_by_an_item_of_its_own() {
        let members = [
            ("b", "b", 1),
            ("a", "a", 1),
            ("c", "b", 2),
            ("d", "a", 7),
            ("e", "e", 1),
            ("b2", "b", 3),
        ];
        let told = |change: EventChange| {
            let moves = change.moves(&members, 0);
            moves.map(|moves| {
                let each = moves.iter().map(|one| format!("{}:{}:{}", one.id, one.event, one.size));
                each.collect::<Vec<_>>().join(" ")
            })
        };
        let merge = |into: &str, events: &[&str]| {
            let events = events.iter().map(|event| (*event).into()).collect();
            told(EventChange::Merge { into: into.into(), events })
        };
        let split = |event: &str, ids: &[&str]| {
            let ids = ids.iter().map(|id| (*id).into()).collect();
            told(EventChange::Split { event: event.into(), ids })
        };
        // Event `a` had seven items; `rest` lists those that the merge still has to move.
        let rest = &members[..4];
        let all = EventChange::Merge { into: "a".into(), events: vec!["b".into()] };
        let sizes: Vec<u64> = all.moves(rest, 0).unwrap().iter().map(|one| one.size).collect();
        assert_eq!(sizes, [6, 7, 8, 9]);
        // An item that keeps its event and its number does not move.
        let one = [("a", "a", 1), ("b", "b", 1), ("a2", "a", 2)];
        let all = EventChange::Merge { into: "a".into(), events: vec!["b".into(), "b".into()] };
        let moved = all.moves(&one, 0).unwrap();
        assert_eq!(
            moved.iter().map(|one| (&*one.id, one.size)).collect::<Vec<_>>(),
            [("b", 2), ("a2", 3)]
        );
        assert_eq!(split("b", &["b2", "c"]).unwrap(), "c:c:1 b2:c:2");
        // The rest keeps the name `b`, so the new event cannot have it.
        assert_eq!(split("b", &["b", "c", "c"]).unwrap(), "b:c:1 c:c:2");
        let refused = |moves: Result<String>| match moves.unwrap_err() {
            CollectionError::EventChange { field, index, .. } => (field, index),
            CollectionError::NoEvent => ("", None),
            other => panic!("{other}"),
        };
        assert_eq!(refused(split("b", &["b"])), ("/ids", None));
        assert_eq!(refused(split("b", &["b", "c", "b2"])), ("/ids", None));
        assert_eq!(refused(split("b", &["c", "d"])), ("/ids", Some(1)));
        assert_eq!(refused(split("x", &["c"])), ("", None));
        assert_eq!(refused(merge("x", &["a"])), ("", None));
        assert_eq!(refused(merge("a", &["b", "a"])), ("/events", Some(1)));
        assert_eq!(refused(merge("a", &["b", "x"])), ("/events", Some(1)));
        assert_eq!(merge("e", &["a", "b"]).unwrap(), "b:e:6 a:e:7 c:e:8 d:e:9 e:e:10 b2:e:11");
    }
}
