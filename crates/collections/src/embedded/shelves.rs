//! The vectors of a collection's items as signed bytes, by which shortlists are found: made once, and
//! kept from one question to the next in blocks by the items' numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognate::engine::{Engine, KeptText, Query};
use cognate_kernels::scan::{ROWS, Shelf};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::embedded::{EmbeddedCollection, Vectors, View};
use crate::{Budget, ChooseError, SHORTLIST_METHOD};

/// Tiles of a block.
pub(super) const TILES: usize = 8;
/// Items of a block.
pub(super) const BLOCK: u64 = (TILES * ROWS) as u64;
/// Blocks that are made before all are told of them.
const TOLD: usize = 16;

/// Items of a block, a bit each.
pub(super) type Bits = [u64; TILES];

/// The rows of items, as they were at one moment.
#[derive(Debug, Clone)]
pub(super) struct Shelves {
    fingerprint: Arc<str>,
    dims: usize,
    blocks: BTreeMap<u64, Arc<Block>>,
}

/// Rows of items whose numbers follow each other.
#[derive(Debug)]
pub(super) struct Block {
    /// Items that were looked at.
    known: Bits,
    /// Those that have a vector.
    pub(super) rows: Bits,
    pub(super) shelf: Shelf,
    /// What it was taken of; nothing where there was no memory, and then it is used once.
    budget: Option<Arc<Budget>>,
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give_back(bytes(self.shelf.dims()));
        }
    }
}

/// Bytes of a block.
fn bytes(dims: usize) -> usize {
    Shelf::bytes_of(dims, BLOCK as usize) + 2 * size_of::<Bits>()
}

impl Block {
    /// A block without anything, or as another is.
    fn of(like: Option<&Self>, dims: usize, budget: &Arc<Budget>) -> Self {
        let (known, rows, shelf) = match like {
            Some(like) => (like.known, like.rows, like.shelf.clone()),
            None => ([0; TILES], [0; TILES], Shelf::new(dims, BLOCK as usize)),
        };
        let taken = budget.take_spare(bytes(shelf.dims())).is_ok();
        Self { known, rows, shelf, budget: taken.then(|| Arc::clone(budget)) }
    }

    /// Notes the vector of an item, if it has one.
    fn put(&mut self, place: usize, vector: Option<&[f32]>) {
        let (tile, bit) = (place / ROWS, 1 << (place % ROWS));
        self.known[tile] |= bit;
        if let Some(row) = vector.and_then(unit) {
            self.rows[tile] |= bit;
            self.shelf.put(place, &row);
        }
    }
}

/// A vector brought to length 1, if it has a direction.
pub(super) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector::norm(Row::F32(vector));
    let sound = length.is_finite() && length > 0.0;
    sound.then(|| vector.iter().map(|number| number / length).collect())
}

/// The rows of a collection for one question: those that are kept, and those that it makes.
pub(super) struct ShelfMaker<'l> {
    collection: &'l EmbeddedCollection,
    engine: &'l Engine,
    /// Vectors that were kept for rankings.
    vectors: Option<Arc<Vectors>>,
    shelves: Arc<Shelves>,
    /// Blocks that nobody was told of yet.
    fresh: Vec<u64>,
}

impl<'l> ShelfMaker<'l> {
    pub(super) fn of(
        collection: &'l EmbeddedCollection,
        engine: &'l Engine,
    ) -> Result<Self, ChooseError> {
        let (fingerprint, dims) =
            (engine.model().fingerprint(), engine.embedding_dims(SHORTLIST_METHOD)?);
        let kept = collection.shelves().clone();
        let kept = kept.filter(|kept| (&*kept.fingerprint, kept.dims) == (fingerprint, dims));
        let none = || Shelves { fingerprint: fingerprint.into(), dims, blocks: BTreeMap::new() };
        let vectors = collection.kept_vectors().clone();
        Ok(Self {
            collection,
            engine,
            vectors: vectors.filter(|kept| kept.are_of(fingerprint, SHORTLIST_METHOD)),
            shelves: kept.unwrap_or_else(|| Arc::new(none())),
            fresh: Vec::new(),
        })
    }

    /// A block in which the rows of these items are, of those that have one.
    pub(super) fn block(
        &mut self,
        at: u64,
        wanted: &Bits,
        view: &View,
    ) -> Result<Arc<Block>, ChooseError> {
        let known = self.shelves.blocks.get(&at);
        let is_known = |block: &&Arc<Block>| {
            block.known.iter().zip(wanted).all(|(known, wanted)| wanted & !known == 0)
        };
        if let Some(known) = known.filter(is_known) {
            return Ok(Arc::clone(known));
        }
        let known = known.map(Arc::as_ref);
        let mut block = Block::of(known, self.shelves.dims, self.collection.budget());
        let (mut places, mut texts) = (Vec::new(), Vec::new());
        for (tile, wanted) in wanted.iter().enumerate() {
            let mut missing = wanted & !block.known[tile];
            while missing != 0 {
                let place = tile * ROWS + missing.trailing_zeros() as usize;
                missing &= missing - 1;
                let number = at * BLOCK + place as u64;
                match self.vectors.as_ref().and_then(|vectors| vectors.of(number)) {
                    Some(KeptText::Vector(vector)) => block.put(place, Some(vector)),
                    Some(KeptText::Unscored(_)) => block.put(place, None),
                    None => {
                        if let Some(item) = view.item(number) {
                            places.push(place);
                            texts.push(&*item.text);
                        }
                    }
                }
            }
        }
        let made = self.engine.embed(&texts, &Query::new(SHORTLIST_METHOD))?;
        for (place, vector) in places.into_iter().zip(made.vectors) {
            block.put(place, vector.as_deref());
        }
        let block = Arc::new(block);
        if block.budget.is_some() {
            Arc::make_mut(&mut self.shelves).blocks.insert(at, Arc::clone(&block));
            self.fresh.push(at);
            if self.fresh.len() >= TOLD {
                self.tell();
            }
        }
        Ok(block)
    }

    /// Keeps what was made for the next question.
    pub(super) fn tell(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        // Of blocks whose items all left nothing is needed any more.
        let first = self.collection.first_number().map_or(0, |number| number / BLOCK);
        let mut kept = self.collection.shelves();
        match kept.as_mut().filter(|kept| kept.fingerprint == self.shelves.fingerprint) {
            Some(kept) => {
                let kept = Arc::make_mut(kept);
                for at in &self.fresh {
                    if let Some(block) = self.shelves.blocks.get(at) {
                        kept.blocks.insert(*at, Arc::clone(block));
                    }
                }
                kept.blocks = kept.blocks.split_off(&first);
            }
            None => *kept = Some(Arc::clone(&self.shelves)),
        }
        self.fresh.clear();
    }
}

impl Drop for ShelfMaker<'_> {
    /// Also where the question was given up what it made stays.
    fn drop(&mut self) {
        self.tell();
    }
}
