//! What is kept of a collection's items from one question to the next, in blocks by the items' numbers: made
//! when it is first asked for, and again for items that are new.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognate::engine::Engine;
use cognate_kernels::scan::ROWS;
use parking_lot::Mutex;

use crate::embedded::{EmbeddedCollection, View};
use crate::{Cancellation, ChooseError, Item, ItemSelector};

pub(super) const TILES: usize = 8;
pub(super) const BLOCK: u64 = (TILES * ROWS) as u64;
/// Number of blocks that are made before they are shared.
const TOLD: usize = 16;

/// Items of a block, a bit each.
pub(super) type Bits = [u64; TILES];

pub(super) fn ones(bits: &Bits) -> usize {
    bits.iter().map(|bits| bits.count_ones() as usize).sum()
}

pub(super) fn set(bits: &mut Bits, place: usize) {
    bits[place / ROWS] |= 1 << (place % ROWS);
}

/// The places in a block of these items, in order.
pub(super) fn places(bits: Bits) -> impl Iterator<Item = usize> {
    bits.into_iter().enumerate().flat_map(|(tile, mut rest)| {
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(tile * ROWS + bit)
        })
    })
}

pub(super) fn without(one: &Bits, other: &Bits) -> Bits {
    std::array::from_fn(|tile| one[tile] & !other[tile])
}

pub(super) fn number(at: u64, place: usize) -> u64 {
    at * BLOCK + place as u64
}

pub(super) trait Kept {
    fn known(&self) -> &Bits;

    /// Whether its memory was granted; else it is used once.
    fn is_paid(&self) -> bool;
}

type Blocks<B> = Arc<BTreeMap<u64, Arc<B>>>;

/// Blocks of one kind for the model of this fingerprint, as they were at one moment.
#[derive(Debug)]
pub(super) struct BlockStore<B>(Mutex<Option<(Arc<str>, Blocks<B>)>>);

impl<B> Default for BlockStore<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B> BlockStore<B> {
    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// The blocks of a collection for one question: kept ones, and those made for it.
pub(super) struct BlockMaker<'l, B> {
    collection: &'l EmbeddedCollection,
    store: &'l BlockStore<B>,
    fingerprint: Arc<str>,
    blocks: Blocks<B>,
    fresh: Vec<u64>,
}

impl<'l, B: Kept> BlockMaker<'l, B> {
    pub(super) fn of(
        collection: &'l EmbeddedCollection,
        store: &'l BlockStore<B>,
        engine: &Engine,
    ) -> Self {
        let fingerprint = engine.model().fingerprint();
        let kept = store.0.lock().clone().filter(|(known, _)| **known == *fingerprint);
        let (fingerprint, blocks) = kept.unwrap_or_else(|| (fingerprint.into(), Arc::default()));
        Self { collection, store, fingerprint, blocks, fresh: Vec::new() }
    }

    /// A block in which these items are. One that lacks some is made anew by `make`, of what it holds and
    /// of the missing items with their places.
    pub(super) fn block(
        &mut self,
        at: u64,
        wanted: &Bits,
        view: &View,
        make: impl FnOnce(Option<&B>, &[(usize, &Item)]) -> Result<B, ChooseError>,
    ) -> Result<Arc<B>, ChooseError> {
        let kept = self.blocks.get(&at);
        let missing = kept.map_or(*wanted, |kept| without(wanted, kept.known()));
        if let Some(kept) = kept.filter(|_| missing == [0; TILES]) {
            return Ok(Arc::clone(kept));
        }
        let item = |place| Some((place, &**view.item(number(at, place))?));
        let missing: Vec<(usize, &Item)> = places(missing).filter_map(item).collect();
        let block = Arc::new(make(kept.map(Arc::as_ref), &missing)?);
        if block.is_paid() {
            Arc::make_mut(&mut self.blocks).insert(at, Arc::clone(&block));
            self.fresh.push(at);
            if self.fresh.len() >= TOLD {
                self.tell();
            }
        }
        Ok(block)
    }
}

impl<B> BlockMaker<'_, B> {
    fn tell(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        // Drops blocks of which all items have left.
        let first = self.collection.first_number().map_or(0, |number| number / BLOCK);
        let mut kept = self.store.0.lock();
        match kept.as_mut().filter(|(known, _)| *known == self.fingerprint) {
            Some((_, kept)) => {
                let kept = Arc::make_mut(kept);
                for at in &self.fresh {
                    if let Some(block) = self.blocks.get(at) {
                        kept.insert(*at, Arc::clone(block));
                    }
                }
                *kept = kept.split_off(&first);
            }
            None => *kept = Some((Arc::clone(&self.fingerprint), Arc::clone(&self.blocks))),
        }
        self.fresh.clear();
    }
}

impl<B> Drop for BlockMaker<'_, B> {
    /// Blocks made for a cancelled question are shared too.
    fn drop(&mut self) {
        self.tell();
    }
}

impl EmbeddedCollection {
    pub(super) fn wanted(
        &self,
        which: &ItemSelector<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(View, Vec<(u64, Bits)>), ChooseError> {
        let (view, without) = self.view_with(which, now);
        let mut wanted: Vec<(u64, Bits)> = Vec::new();
        let mut want = |number: u64| {
            let (at, place) = (number / BLOCK, (number % BLOCK) as usize);
            if wanted.last().is_none_or(|(last, _)| *last != at) {
                wanted.push((at, [0; TILES]));
            }
            if let Some((_, bits)) = wanted.last_mut() {
                set(bits, place);
            }
        };
        if which.filter.is_empty() && which.event.is_none() {
            // An item that nothing has to be asked of is not touched.
            view.numbered().for_each(|(number, _)| want(number));
        } else {
            which.each(view.numbered(), cancel, |number, _| want(number))?;
        }
        for number in without {
            let found = wanted.binary_search_by_key(&(number / BLOCK), |(at, _)| *at);
            if let Some((_, bits)) = found.ok().and_then(|at| wanted.get_mut(at)) {
                let place = (number % BLOCK) as usize;
                bits[place / ROWS] &= !(1 << (place % ROWS));
            }
        }
        Ok((view, wanted))
    }
}

/// The items of a view that stand in blocks of it, numbered and in order.
pub(super) fn items_of(view: &View, wanted: &[(u64, Bits)]) -> Vec<(u64, Arc<Item>)> {
    let mut blocks = wanted.iter().peekable();
    let mut is_wanted = |number: u64| {
        while blocks.next_if(|(at, _)| *at < number / BLOCK).is_some() {}
        let place = (number % BLOCK) as usize;
        let block = blocks.peek().filter(|(at, _)| *at == number / BLOCK);
        block.is_some_and(|(_, bits)| bits[place / ROWS] >> (place % ROWS) & 1 == 1)
    };
    let items = view.numbered().filter(|(number, _)| is_wanted(*number));
    items.map(|(number, item)| (number, Arc::clone(item))).collect()
}
