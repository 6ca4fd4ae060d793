//! The events of a collection as its items tell them: which items each has, and when. What an item joins is
//! decided elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Item;

const HOUR: i64 = 3_600_000;
/// A rate says nothing of a shorter time.
const LEAST_SPAN: i64 = 60_000;

/// An event, by the items that the collection has of it now.
#[derive(Debug)]
pub struct EventItems<'i> {
    /// The name of the item that it began with, which may have left.
    pub id: &'i str,
    /// By time, those of one time in the order in which they were added.
    pub items: Vec<&'i Arc<Item>>,
}

impl<'i> EventItems<'i> {
    /// The events of some items, in the order of their first ones. Items that were not matched have none.
    pub fn of(items: impl IntoIterator<Item = &'i Arc<Item>>) -> Vec<Self> {
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

    /// Number of items.
    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// The time of its first item.
    pub fn first(&self) -> i64 {
        self.items.first().map_or(0, |item| item.time)
    }

    /// The time of its last item.
    pub fn last(&self) -> i64 {
        self.items.last().map_or(0, |item| item.time)
    }

    /// Items an hour from the first to the last; none where these are less than a minute apart.
    pub fn per_hour(&self) -> Option<f64> {
        let span = self.last().saturating_sub(self.first());
        (span >= LEAST_SPAN).then(|| self.size() as f64 / (span as f64 / HOUR as f64))
    }

    /// The most items within one hour, and when that hour begins. Of several the first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attributes, Event};

    fn item(id: &str, event: Option<&str>, minutes: i64) -> Arc<Item> {
        let event =
            event.map(|id| Event { id: id.into(), size: 1, score: None, duplicate_of: None });
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
        let events = EventItems::of(&items);
        let told = |event: &EventItems<'_>| {
            let names = event.items.iter().map(|item| &*item.id).collect::<Vec<_>>().join("");
            (event.id.to_owned(), names, event.first() / 60_000, event.last() / 60_000)
        };
        let expected = [("a", "daef", 0, 89), ("c", "c", 0, 0), ("left", "g", 5, 5)];
        let expected =
            expected.map(|(id, names, first, last)| (id.into(), names.into(), first, last));
        assert_eq!(events.iter().map(told).collect::<Vec<_>>(), expected);
        assert_eq!(events.iter().map(EventItems::size).collect::<Vec<_>>(), [4, 1, 1]);
        // From minute 30 to 89 is less than an hour, from 0 to 89 is more.
        assert_eq!((events[0].peak(), events[1].peak()), ((3, 30 * 60_000), (1, 0)));
        assert!((events[0].per_hour().unwrap() - 4.0 * 60.0 / 89.0).abs() < 1e-9);
        assert_eq!(events[1].per_hour(), None);
    }
}
