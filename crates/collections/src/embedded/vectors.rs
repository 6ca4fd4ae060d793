//! The vectors of a collection's items by one method of one model, made once and kept from one question
//! to the next, in blocks by the items' numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognate::engine::{Engine, KeptText, Query, Reason};
use cognate::methods::Method;

use crate::embedded::EmbeddedCollection;
use crate::{Budget, Cancellation, ChooseError, CollectionError, Item};

/// Items of a block.
const BLOCK: u64 = 512;
/// Items whose vectors are made between two looks at whether they are still wanted.
const PIECE: usize = 1024;

/// The vectors of items, as they were at one moment.
#[derive(Debug, Clone)]
pub struct Vectors {
    fingerprint: Arc<str>,
    method: Method,
    dims: usize,
    blocks: BTreeMap<u64, Arc<Block>>,
}

/// Vectors of items whose numbers follow each other.
#[derive(Debug)]
struct Block {
    states: Vec<State>,
    rows: Vec<f32>,
    budget: Arc<Budget>,
}

/// What is known of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Unread,
    Vector,
    Unscored(Reason),
}

impl Drop for Block {
    fn drop(&mut self) {
        self.budget.give_back(bytes(self.rows.len()));
    }
}

fn bytes(numbers: usize) -> usize {
    numbers * size_of::<f32>() + BLOCK as usize * size_of::<State>()
}

impl Block {
    /// A block without anything, if there is memory for it.
    fn new(dims: usize, budget: &Arc<Budget>) -> Result<Self, CollectionError> {
        let numbers = BLOCK as usize * dims;
        budget.take_spare(bytes(numbers))?;
        Ok(Self {
            states: vec![State::Unread; BLOCK as usize],
            rows: vec![0.0; numbers],
            budget: Arc::clone(budget),
        })
    }

    fn copy(&self, dims: usize) -> Result<Self, CollectionError> {
        let mut copy = Self::new(dims, &self.budget)?;
        copy.states.copy_from_slice(&self.states);
        copy.rows.copy_from_slice(&self.rows);
        Ok(copy)
    }
}

/// The block of a number, and its place there.
fn place(number: u64) -> (u64, usize) {
    (number / BLOCK, (number % BLOCK) as usize)
}

impl Vectors {
    fn new(fingerprint: Arc<str>, method: Method, dims: usize) -> Self {
        Self { fingerprint, method, dims, blocks: BTreeMap::new() }
    }

    /// Whether they are those of a method of a model.
    pub(super) fn are_of(&self, fingerprint: &str, method: Method) -> bool {
        (&*self.fingerprint, self.method) == (fingerprint, method)
    }

    /// What is known of the item of a number; nothing where its vector was not made.
    pub fn of(&self, number: u64) -> Option<KeptText<'_>> {
        let (block, place) = place(number);
        let block = self.blocks.get(&block)?;
        match block.states.get(place)? {
            State::Unread => None,
            State::Vector => {
                let row = block.rows.get(place * self.dims..(place + 1) * self.dims)?;
                Some(KeptText::Vector(row))
            }
            State::Unscored(reason) => Some(KeptText::Unscored(*reason)),
        }
    }

    /// Adds what was made of items.
    fn add(
        &mut self,
        made: Vec<(u64, Result<Vec<f32>, Reason>)>,
        budget: &Arc<Budget>,
    ) -> Result<(), CollectionError> {
        let mut made = made.into_iter().peekable();
        while let Some(&(first, _)) = made.peek() {
            let (at, _) = place(first);
            let mut block = match self.blocks.get(&at) {
                Some(block) => block.copy(self.dims)?,
                None => Block::new(self.dims, budget)?,
            };
            while let Some((number, vector)) = made.next_if(|(number, _)| place(*number).0 == at) {
                let (_, place) = place(number);
                let state = match vector {
                    Ok(vector) => {
                        let row = place * self.dims..(place + 1) * self.dims;
                        if let Some(row) = block.rows.get_mut(row)
                            && row.len() == vector.len()
                        {
                            row.copy_from_slice(&vector);
                        }
                        State::Vector
                    }
                    Err(reason) => State::Unscored(reason),
                };
                if let Some(known) = block.states.get_mut(place) {
                    *known = state;
                }
            }
            self.blocks.insert(at, Arc::new(block));
        }
        Ok(())
    }
}

impl EmbeddedCollection {
    /// The vectors of these items, numbered and in order, by a method: those that are kept, and those
    /// that are missing, which are made and kept. Nothing where there is no memory for them.
    pub(super) fn vectors_of(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        let fingerprint = engine.model().fingerprint();
        let dims = engine.embedding_dims(method)?;
        let mut kept = self.kept_vectors().clone().filter(|kept| kept.are_of(fingerprint, method));
        let known = |number| kept.as_ref().is_some_and(|kept| kept.of(number).is_some());
        let missing: Vec<&(u64, Arc<Item>)> =
            items.iter().filter(|(number, _)| !known(*number)).collect();
        for piece in missing.chunks(PIECE) {
            cancel.check()?;
            let texts: Vec<&str> = piece.iter().map(|(_, item)| &*item.text).collect();
            let made = engine.embed(&texts, &Query::new(method))?;
            let mut reasons = made.reasons.into_iter();
            let made = piece.iter().zip(made.vectors).map(|((number, _), vector)| {
                let unscored = || reasons.next().unwrap_or(Reason::Unknown);
                (*number, vector.ok_or_else(unscored))
            });
            let made = made.collect();
            let fresh = || Vectors::new(fingerprint.into(), method, dims);
            let mut more = kept.as_deref().cloned().unwrap_or_else(fresh);
            // Of blocks whose items all left nothing is needed any more.
            let first = self.first_number().map_or(0, |number| place(number).0);
            more.blocks = more.blocks.split_off(&first);
            let added = more.add(made, self.budget());
            let more = Arc::new(more);
            *self.kept_vectors() = Some(Arc::clone(&more));
            if added.is_err() {
                return Ok(None);
            }
            kept = Some(more);
        }
        Ok(Some(kept.unwrap_or_else(|| Arc::new(Vectors::new(fingerprint.into(), method, dims)))))
    }
}
