//! The vectors of a collection's items as signed bytes, by which shortlists are found.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use cognate::engine::{Engine, KeptText, Query};
use cognate_kernels::scan::{Probe, QUERIES, ROWS, Shelf};

use crate::embedded::bits::{BLOCK, Bits, TILES, count, number, set};
use crate::embedded::blocks::{BlockMaker, Kept, Wanted};
use crate::embedded::{EmbeddedCollection, View};
use crate::settings::Paid;
use crate::top_query::unit;
use crate::{
    Budget, Cancellation, ChooseError, Chosen, SHORTLIST_METHOD, Several, TopQuery, Vectors,
};

/// Rows of items whose numbers follow each other.
#[derive(Debug)]
pub(super) struct Block {
    known: Bits,
    pub(super) rows: Bits,
    pub(super) shelf: Shelf,
    /// `None` if there was no memory for this block, which is used once.
    paid: Option<Paid>,
}

fn bytes(dims: usize) -> usize {
    Shelf::bytes_of(dims, BLOCK as usize) + 2 * size_of::<Bits>()
}

impl Block {
    fn new(like: Option<&Self>, dims: usize, budget: &Arc<Budget>) -> Self {
        let (known, rows, shelf) = match like {
            Some(like) => (like.known, like.rows, like.shelf.clone()),
            None => ([0; TILES], [0; TILES], Shelf::new(dims, BLOCK as usize)),
        };
        let paid = budget.take_spare(bytes(shelf.dims())).ok();
        Self { known, rows, shelf, paid }
    }

    fn put(&mut self, place: usize, vector: Option<&[f32]>) {
        set(&mut self.known, place);
        if let Some(row) = vector.and_then(unit) {
            set(&mut self.rows, place);
            self.shelf.put(place, &row);
        }
    }
}

impl Kept for Block {
    fn known(&self) -> &Bits {
        &self.known
    }

    fn is_paid(&self) -> bool {
        self.paid.is_some()
    }
}

/// The quantised rows of a collection for one query: stored rows, and rows made for it.
pub(super) struct ShelfMaker<'l> {
    engine: &'l Engine,
    budget: &'l Arc<Budget>,
    dims: usize,
    vectors: Option<Arc<Vectors>>,
    blocks: BlockMaker<'l, Block>,
}

impl<'l> ShelfMaker<'l> {
    pub(super) fn new(
        collection: &'l EmbeddedCollection,
        engine: &'l Engine,
    ) -> Result<Self, ChooseError> {
        let vectors = collection.vectors.lock().clone();
        let fingerprint = engine.model().fingerprint();
        Ok(Self {
            engine,
            budget: &collection.budget,
            dims: engine.embedding_dims(SHORTLIST_METHOD)?,
            vectors: vectors.filter(|kept| kept.are_of(fingerprint, SHORTLIST_METHOD)),
            blocks: BlockMaker::new(collection, &collection.shelves, engine),
        })
    }

    /// A block with the rows of these items, as far as they have one.
    pub(super) fn block(
        &mut self,
        at: u64,
        wanted: &Bits,
        view: &View,
    ) -> Result<Arc<Block>, ChooseError> {
        let Self { engine, budget, dims, vectors, blocks } = self;
        blocks.block(at, wanted, view, |kept, missing| {
            let mut block = Block::new(kept, *dims, budget);
            let (mut places, mut texts) = (Vec::new(), Vec::new());
            for &(place, item) in missing {
                match vectors.as_ref().and_then(|vectors| vectors.of(number(at, place))) {
                    Some(KeptText::Vector(vector)) => block.put(place, Some(vector)),
                    Some(KeptText::Unscored(_)) => block.put(place, None),
                    None => {
                        places.push(place);
                        texts.push(&*item.text);
                    }
                }
            }
            let made = engine.embed(&texts, &Query::new(SHORTLIST_METHOD))?;
            for (place, vector) in places.into_iter().zip(made.iter()) {
                block.put(place, vector);
            }
            Ok(block)
        })
    }
}

/// Most candidates in memory for all texts of a query together: 16 MB.
const MAX_HELD: usize = 1 << 20;

impl EmbeddedCollection {
    /// The items of a shortlist, in the order in which they were added; none without a vector.
    pub(super) fn nearest(
        &self,
        (view, wanted): &Wanted,
        shortlist: &TopQuery<'_>,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        let targets = shortlist.targets()?;
        let probes: Vec<Probe> = targets.iter().map(|(row, _)| Probe::new(row)).collect();
        let mut maker = ShelfMaker::new(self, shortlist.engine)?;
        let items = count(wanted);
        let length = shortlist.length.min(items).max(1);
        let together = (MAX_HELD / length).max(1).next_multiple_of(QUERIES);
        // The best weighted score of each item that is near to any of the texts.
        let mut found: BTreeMap<u64, f32> = BTreeMap::new();
        for (probes, targets) in probes.chunks(together).zip(targets.chunks(together)) {
            let mut searches: Vec<Search<'_>> =
                probes.iter().map(|probe| Search { probe, best: Best::new(length) }).collect();
            for (at, bits) in wanted {
                cancel.check()?;
                let block = maker.block(*at, bits, view)?;
                look(*at, &block, bits, &mut searches);
            }
            for (search, (_, weight)) in searches.iter().zip(targets) {
                for one in &search.best.rows {
                    let score = found.entry(one.number).or_insert(f32::NEG_INFINITY);
                    *score = score.max(weight * one.score);
                }
            }
        }
        let mut best: Vec<Found> =
            found.into_iter().map(|(number, score)| Found { score, number }).collect();
        if shortlist.several != Several::Each && best.len() > length {
            best.select_nth_unstable(length);
            best.truncate(length);
            best.sort_unstable_by_key(|one| one.number);
        }
        let item = |one: Found| Some((one.number, Arc::clone(view.item(one.number)?)));
        Ok(Chosen::complete(best.into_iter().filter_map(item).collect()))
    }
}

pub(super) trait Seek {
    /// Whether the threshold applies to exact scores rather than to quantised scores.
    const IS_EXACT: bool;

    fn probe(&self) -> &Probe;

    fn least(&self) -> f32;

    /// Takes a row that reached the threshold, and the sum of its product.
    fn offer(&mut self, shelf: &Shelf, place: usize, sum: i32, number: u64);
}

pub(super) fn look<S: Seek>(at: u64, block: &Block, wanted: &Bits, seekers: &mut [S]) {
    let mut sums = [[0; ROWS]; QUERIES];
    for (tile, (wanted, rows)) in wanted.iter().zip(&block.rows).enumerate() {
        let wanted = wanted & rows;
        if wanted == 0 {
            continue;
        }
        for four in seekers.chunks_mut(QUERIES) {
            let probes = (four.len(), |at: usize| (four[at].probe(), four[at].least()));
            let reached = match S::IS_EXACT {
                true => block.shelf.reach(tile, probes, Some(&mut sums)),
                false => block.shelf.near(tile, probes, Some(&mut sums)),
            };
            for ((seeker, reached), sums) in four.iter_mut().zip(reached).zip(&sums) {
                let mut reached = reached & wanted;
                while reached != 0 {
                    let row = reached.trailing_zeros() as usize;
                    reached &= reached - 1;
                    let place = tile * ROWS + row;
                    seeker.offer(&block.shelf, place, sums[row], number(at, place));
                }
            }
        }
    }
}

struct Search<'p> {
    probe: &'p Probe,
    best: Best,
}

/// The best rows so far, the worst of them on top.
pub(super) struct Best {
    length: usize,
    rows: BinaryHeap<Found>,
}

impl Best {
    pub(super) fn new(length: usize) -> Self {
        Self { length, rows: BinaryHeap::new() }
    }

    /// A score that does not exceed this is not among the best.
    pub(super) fn least(&self) -> f32 {
        match self.rows.peek() {
            Some(worst) if self.rows.len() >= self.length => worst.score,
            _ => f32::NEG_INFINITY,
        }
    }

    pub(super) fn offer(&mut self, found: Found) {
        if self.rows.len() < self.length {
            self.rows.push(found);
        } else if let Some(mut worst) = self.rows.peek_mut()
            && found < *worst
        {
            *worst = found;
        }
    }
}

pub(super) struct Found {
    pub(super) score: f32,
    pub(super) number: u64,
}

impl Seek for Search<'_> {
    const IS_EXACT: bool = false;

    fn probe(&self) -> &Probe {
        self.probe
    }

    fn least(&self) -> f32 {
        self.best.least()
    }

    fn offer(&mut self, shelf: &Shelf, place: usize, sum: i32, number: u64) {
        self.best.offer(Found { score: shelf.product(place, self.probe, sum), number });
    }
}

/// The worse row is the greater: it has the lower score, or the same score and is newer.
impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Found {}
