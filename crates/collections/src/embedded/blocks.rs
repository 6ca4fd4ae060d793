//! Data computed from a collection's items and stored for later questions, in blocks by the items'
//! numbers: made at first use, and again when items are added.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cognate::engine::Engine;
use parking_lot::Mutex;

use crate::embedded::bits::{BLOCK, Bits, TILES, number, numbers, places, unset, without};
use crate::embedded::columns::MAX_COLUMNS;
use crate::embedded::{EmbeddedCollection, View};
use crate::{AskedAttribute, Budget, Cancellation, ChooseError, Item, ItemSelector};

/// Number of blocks that are made before they are shared.
const TOLD: usize = 16;

/// A snapshot of the items, and by block the selected items.
pub(super) type Wanted = (View, Vec<(u64, Bits)>);

pub(super) trait Kept {
    fn known(&self) -> &Bits;

    /// Whether memory for the block was granted; a block without it is used once and not stored.
    fn is_paid(&self) -> bool;
}

type Blocks<B> = Arc<BTreeMap<u64, Arc<B>>>;

/// Blocks of one kind for the model of this fingerprint, as of one moment.
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

/// The blocks of a collection for one question: stored blocks, and blocks made for it.
pub(super) struct BlockMaker<'l, B> {
    collection: &'l EmbeddedCollection,
    store: &'l BlockStore<B>,
    fingerprint: Arc<str>,
    blocks: Blocks<B>,
    fresh: Vec<u64>,
}

impl<'l, B: Kept> BlockMaker<'l, B> {
    pub(super) fn new(
        collection: &'l EmbeddedCollection,
        store: &'l BlockStore<B>,
        engine: &Engine,
    ) -> Self {
        let fingerprint = engine.model().fingerprint();
        let kept = store.0.lock().clone().filter(|(known, _)| **known == *fingerprint);
        let (fingerprint, blocks) = kept.unwrap_or_else(|| (fingerprint.into(), Arc::default()));
        Self { collection, store, fingerprint, blocks, fresh: Vec::new() }
    }

    /// A block that has these items. If the stored one lacks some, `make` extends it by the missing
    /// items, given with their indices.
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
        // Drops blocks whose items have all left.
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
    ) -> Result<Wanted, ChooseError> {
        let (view, without) = self.view_and_excluded(which, now);
        let budget = self.columns_of(&which.filter.names());
        let mut wanted: Vec<(u64, Bits)> = Vec::new();
        for chunk in view.table.chunks() {
            cancel.check()?;
            let meant = chunk.meant(which, view.oldest, budget);
            if meant != [0; TILES] {
                wanted.push((chunk.block(), meant));
            }
        }
        for number in without {
            let found = wanted.binary_search_by_key(&(number / BLOCK), |(at, _)| *at);
            if let Some((_, bits)) = found.ok().and_then(|at| wanted.get_mut(at)) {
                unset(bits, (number % BLOCK) as usize);
            }
        }
        Ok((view, wanted))
    }

    /// The budget that pays for columns of these attributes; `None` if they are too many.
    pub(super) fn columns_of(&self, asked: &BTreeSet<AskedAttribute<'_>>) -> Option<&Arc<Budget>> {
        let names: BTreeSet<&str> = asked.iter().map(|(name, _)| *name).collect();
        (names.len() < MAX_COLUMNS).then_some(&self.budget)
    }
}

pub(super) fn items_of((view, wanted): &Wanted) -> Vec<(u64, Arc<Item>)> {
    let items = view.table.those(numbers(wanted));
    items.map(|(number, item)| (number, Arc::clone(item))).collect()
}
