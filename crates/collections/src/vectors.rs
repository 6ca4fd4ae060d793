//! The vectors of a collection's items by one method of one model, computed once and stored for
//! later questions, in blocks by the items' numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognate::engine::{KeptText, Reason};
use cognate::methods::Method;

use crate::settings::Paid;
use crate::{Budget, Result};

const BLOCK: u64 = 512;

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
    paid: Paid,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Unread,
    Vector,
    Unscored(Reason),
}

impl Block {
    fn new(dims: usize, budget: &Arc<Budget>) -> Result<Self> {
        let numbers = BLOCK as usize * dims;
        let bytes = numbers * size_of::<f32>() + BLOCK as usize * size_of::<State>();
        Ok(Self {
            paid: budget.take_spare(bytes)?,
            states: vec![State::Unread; BLOCK as usize],
            rows: vec![0.0; numbers],
        })
    }

    fn copy(&self, dims: usize) -> Result<Self> {
        let mut copy = Self::new(dims, &self.paid.budget)?;
        copy.states.copy_from_slice(&self.states);
        copy.rows.copy_from_slice(&self.rows);
        Ok(copy)
    }
}

/// The block of an item's number, and its index there.
fn place(number: u64) -> (u64, usize) {
    (number / BLOCK, (number % BLOCK) as usize)
}

impl Vectors {
    /// Drops blocks whose items all have lower numbers than this.
    pub(crate) fn forget_before(&mut self, number: u64) {
        self.blocks = self.blocks.split_off(&place(number).0);
    }

    pub(crate) fn new(fingerprint: Arc<str>, method: Method, dims: usize) -> Self {
        Self { fingerprint, method, dims, blocks: BTreeMap::new() }
    }

    pub(crate) fn are_of(&self, fingerprint: &str, method: Method) -> bool {
        (&*self.fingerprint, self.method) == (fingerprint, method)
    }

    /// The vector of the item of this number, or why it has none; `None` if it was not computed.
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

    pub(crate) fn add(
        &mut self,
        made: Vec<(u64, Result<&[f32], Reason>)>,
        budget: &Arc<Budget>,
    ) -> Result<()> {
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
                            row.copy_from_slice(vector);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_stand_by_the_numbers_of_their_items_until_they_are_forgotten() {
        let budget = Arc::new(Budget::new(1 << 20));
        let mut vectors = Vectors::new("model".into(), Method::Sif, 2);
        assert!(vectors.are_of("model", Method::Sif));
        assert!(!vectors.are_of("other", Method::Sif) && !vectors.are_of("model", Method::Usif));
        let rows: Vec<[f32; 2]> = (0..=BLOCK).map(|number| [number as f32, 1.0]).collect();
        let of = |number: u64| (number, Ok(&rows[number as usize][..]));
        vectors.add(vec![of(0), of(BLOCK - 1), of(BLOCK)], &budget).unwrap();
        vectors.add(vec![of(1)], &budget).unwrap();
        let row = |vectors: &Vectors, number| match vectors.of(number) {
            Some(KeptText::Vector(row)) => Some(row.to_vec()),
            _ => None,
        };
        for number in [0, 1, BLOCK - 1, BLOCK] {
            assert_eq!(row(&vectors, number), Some(vec![number as f32, 1.0]), "{number}");
        }
        assert_eq!(row(&vectors, 2), None);
        let used = budget.used();
        vectors.forget_before(BLOCK - 1);
        assert_eq!(budget.used(), used, "one of the block is left");
        vectors.forget_before(BLOCK);
        assert_eq!(budget.used(), used / 2);
        assert_eq!(row(&vectors, BLOCK - 1), None);
        assert_eq!(row(&vectors, BLOCK), Some(vec![BLOCK as f32, 1.0]));
        drop(vectors);
        assert_eq!(budget.used(), 0);
    }
}
