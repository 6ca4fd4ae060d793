//! Items in the order in which they were added, in chunks that readers and the writer share: a
//! reader has a table that no longer changes, and the writer copies only the chunks that it
//! changes.

use std::sync::Arc;

use crate::Item;
use crate::embedded::bits::{BLOCK, set, unset};
use crate::embedded::columns::{Chunk, Columns};

/// Allocated slots of a chunk, for each used one, above which it is shrunk.
const SPARE: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct Table {
    chunks: Vec<Arc<Chunk>>,
    len: usize,
}

impl Table {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Arc<Item>)> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.numbers.iter().copied().zip(&chunk.items))
    }

    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let is_before =
            |chunk: &Arc<Chunk>| chunk.numbers.last().is_some_and(|&last| last < number);
        let first = self.chunks.partition_point(is_before);
        let chunks = self.chunks.iter().skip(first);
        let each = chunks.flat_map(|chunk| chunk.numbers.iter().copied().zip(&chunk.items));
        each.skip_while(move |(at, _)| *at < number)
    }

    pub(super) fn chunks(&self) -> impl DoubleEndedIterator<Item = &Chunk> {
        self.chunks.iter().map(Arc::as_ref)
    }

    /// The items of these numbers, which rise.
    pub(super) fn those(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = (u64, &Arc<Item>)> {
        let mut chunks = self.chunks().peekable();
        numbers.filter_map(move |number| {
            while chunks.next_if(|chunk| chunk.block() < number / BLOCK).is_some() {}
            let chunk = chunks.peek()?;
            Some((number, chunk.items.get(chunk.index(number)?)?))
        })
    }

    pub fn get(&self, number: u64) -> Option<&Arc<Item>> {
        let (chunk, place) = self.place(number)?;
        self.chunks.get(chunk)?.items.get(place)
    }

    pub(super) fn push(&mut self, number: u64, item: Arc<Item>) {
        if self.chunks.last().is_none_or(|chunk| chunk.block() != number / BLOCK) {
            self.chunks.push(Arc::default());
        }
        if let Some(chunk) = self.changed(self.chunks.len() - 1) {
            set(&mut chunk.places, (number % BLOCK) as usize);
            chunk.numbers.push(number);
            chunk.items.push(item);
            self.len += 1;
        }
    }

    pub(super) fn replace(&mut self, number: u64, item: Arc<Item>) -> Option<Arc<Item>> {
        let (chunk, place) = self.place(number)?;
        let chunk = self.changed(chunk)?;
        Some(std::mem::replace(chunk.items.get_mut(place)?, item))
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Arc<Item>> {
        let (at, place) = self.place(number)?;
        let chunk = self.changed(at)?;
        unset(&mut chunk.places, (number % BLOCK) as usize);
        chunk.numbers.remove(place);
        let item = chunk.items.remove(place);
        if chunk.items.capacity() > SPARE * chunk.items.len() {
            chunk.numbers.shrink_to_fit();
            chunk.items.shrink_to_fit();
        }
        if chunk.items.is_empty() {
            self.chunks.remove(at);
        }
        self.len -= 1;
        Some(item)
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.chunks.first()?.numbers.first().copied()
    }

    /// A chunk to be changed; drops its columns.
    fn changed(&mut self, at: usize) -> Option<&mut Chunk> {
        let chunk = Arc::make_mut(self.chunks.get_mut(at)?);
        chunk.columns = Columns::default();
        Some(chunk)
    }

    fn place(&self, number: u64) -> Option<(usize, usize)> {
        let at = self.chunks.partition_point(|chunk| chunk.block() < number / BLOCK);
        Some((at, self.chunks.get(at)?.index(number)?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::Attributes;

    fn item(number: u64) -> Arc<Item> {
        let id = number.to_string().into();
        Arc::new(Item {
            id,
            text: "a".into(),
            time: 0,
            attributes: Attributes::default(),
            data: None,
            event: None,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn a_table_holds_what_a_map_holds(
            runs in prop::collection::vec((0usize..900, 0usize..900, 0u64..1000), 1..8),
        ) {
            let (mut table, mut map, mut next) = (Table::default(), BTreeMap::new(), 0_u64);
            let mut seen: Vec<(Table, Vec<u64>)> = Vec::new();
            for (added, removed, seed) in runs {
                for _ in 0..added {
                    table.push(next, item(next));
                    map.insert(next, ());
                    next += 1 + seed % 3;
                }
                for step in 0..removed as u64 {
                    let number = (seed * 7919 + step * 31) % next.max(1);
                    prop_assert_eq!(table.remove(number).is_some(), map.remove(&number).is_some());
                }
                let numbers: Vec<u64> = map.keys().copied().collect();
                seen.push((table.clone(), numbers));
            }
            // Earlier snapshots have not changed.
            for (table, numbers) in seen {
                prop_assert_eq!(table.len(), numbers.len());
                prop_assert_eq!(table.first(), numbers.first().copied());
                let found: Vec<u64> = table.iter().map(|(number, _)| number).collect();
                prop_assert_eq!(&found, &numbers);
                for number in numbers.iter().step_by(17) {
                    let id = number.to_string();
                    prop_assert_eq!(&*table.get(*number).unwrap().id, id.as_str());
                }
                let empty = table.chunks.iter().filter(|chunk| chunk.items.is_empty());
                prop_assert_eq!(empty.count(), 0);
            }
        }
    }
}
