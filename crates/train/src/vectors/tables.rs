//! Tables of rows in training: how gradients change a row, how a table is split into blocks for
//! threads, and three ways for a worker to access a table: exclusively, shared with a lock for each
//! row, or through private copies of changed rows whose changes are added later in a fixed order.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cognate_kernels::simd;

pub trait Table {
    fn read(&mut self, word: u32, see: impl FnOnce(&[f32]));

    fn prefetch(&self, _word: u32) {}

    fn change(&mut self, word: u32, change: impl FnOnce(&mut [f32]));
}

#[derive(Debug)]
pub struct Alone<'t> {
    pub values: &'t mut [f32],
    pub dims: usize,
}

impl Table for Alone<'_> {
    #[inline]
    fn read(&mut self, word: u32, see: impl FnOnce(&[f32])) {
        let from = word as usize * self.dims;
        see(&self.values[from..from + self.dims]);
    }

    #[inline]
    fn prefetch(&self, word: u32) {
        let from = word as usize * self.dims;
        simd::prefetch(&self.values[from..from + self.dims]);
    }

    #[inline]
    fn change(&mut self, word: u32, change: impl FnOnce(&mut [f32])) {
        let from = word as usize * self.dims;
        change(&mut self.values[from..from + self.dims]);
    }
}

#[derive(Debug)]
pub struct LockedRows<'t, 'r>(pub &'t [Mutex<&'r mut [f32]>]);

impl Table for LockedRows<'_, '_> {
    fn read(&mut self, word: u32, see: impl FnOnce(&[f32])) {
        see(&self.0[word as usize].lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&mut self, word: u32, change: impl FnOnce(&mut [f32])) {
        change(&mut self.0[word as usize].lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A worker's private copies of rows, with its changes.
#[derive(Debug)]
pub struct Changes {
    dims: usize,
    /// Index of each word's copy; `NONE` if its row was not touched.
    place: Vec<u32>,
    touched: Vec<u32>,
    copies: Vec<f32>,
    before: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl Changes {
    pub fn new(rows: usize, dims: usize) -> Self {
        let (touched, copies, before) = (Vec::new(), Vec::new(), Vec::new());
        Self { dims, place: vec![NONE; rows], touched, copies, before }
    }

    pub fn add_to(&self, table: &mut [f32]) {
        let dims = self.dims;
        let copies = self.copies.chunks_exact(dims).zip(self.before.chunks_exact(dims));
        for (&word, (copy, before)) in self.touched.iter().zip(copies) {
            let from = word as usize * dims;
            let row = &mut table[from..from + dims];
            for ((value, copy), before) in row.iter_mut().zip(copy).zip(before) {
                *value += copy - before;
            }
        }
    }

    pub fn forget(&mut self) {
        for &word in &self.touched {
            self.place[word as usize] = NONE;
        }
        self.touched.clear();
        self.copies.clear();
        self.before.clear();
    }

    fn row(&mut self, table: &[f32], word: u32) -> &mut [f32] {
        let mut place = self.place[word as usize];
        if place == NONE {
            place = self.touched.len() as u32;
            self.place[word as usize] = place;
            self.touched.push(word);
            let from = word as usize * self.dims;
            self.copies.extend_from_slice(&table[from..from + self.dims]);
            self.before.extend_from_slice(&table[from..from + self.dims]);
        }
        let from = place as usize * self.dims;
        &mut self.copies[from..from + self.dims]
    }
}

/// A table as one worker sees it, with that worker's changes.
#[derive(Debug)]
pub struct Through<'t> {
    pub table: &'t [f32],
    pub changes: &'t mut Changes,
}

impl Table for Through<'_> {
    fn read(&mut self, word: u32, see: impl FnOnce(&[f32])) {
        see(self.changes.row(self.table, word));
    }

    fn change(&mut self, word: u32, change: impl FnOnce(&mut [f32])) {
        change(self.changes.row(self.table, word));
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Update {
    Descend(f32),
    /// Adagrad (Duchi et al. 2011): each number has its own rate, divided by the root of the sum of
    /// its squared gradients so far.
    Adagrad(f32),
}

/// Added to the sum of squares, to keep the first steps finite.
const SMALLEST: f32 = 1e-8;

impl Update {
    pub fn rate(self) -> f32 {
        match self {
            Self::Descend(rate) | Self::Adagrad(rate) => rate,
        }
    }

    /// Sorts mentions of words, given in the order of the batch, into the order in which they are
    /// applied. Adagrad needs all gradients of a word together; plain descent adds each gradient
    /// separately, so the order of words makes no difference.
    pub fn prepare(self, mentions: &mut [(u32, u32)]) {
        if matches!(self, Self::Adagrad(_)) {
            mentions.sort_unstable();
        }
    }

    /// Applies gradients to a row one after another.
    pub fn apply<'g>(
        self,
        row: &mut [f32],
        squares: &mut [f32],
        mut gradients: impl Iterator<Item = &'g [f32]>,
    ) {
        match self {
            Self::Descend(rate) => {
                gradients.for_each(|gradient| simd::add_scaled(row, [-rate], [gradient]));
            }
            Self::Adagrad(rate) => {
                let Some(first) = gradients.next() else { return };
                let Some(second) = gradients.next() else {
                    return by_own_rates(row, squares, first, rate);
                };
                let mut sum = first.to_vec();
                simd::add_scaled(&mut sum, [1.0], [second]);
                gradients.for_each(|gradient| simd::add_scaled(&mut sum, [1.0], [gradient]));
                by_own_rates(row, squares, &sum, rate);
            }
        }
    }
}

/// One Adagrad step. Slices of equal length let the compiler vectorise the loop.
fn by_own_rates(row: &mut [f32], squares: &mut [f32], gradient: &[f32], rate: f32) {
    let dims = row.len();
    let (squares, gradient) = (&mut squares[..dims], &gradient[..dims]);
    for at in 0..dims {
        squares[at] += gradient[at] * gradient[at];
        row[at] -= rate * gradient[at] / (squares[at] + SMALLEST).sqrt();
    }
}

#[derive(Debug)]
pub struct Blocks {
    bounds: Vec<usize>,
    of: Vec<u16>,
    dims: usize,
}

/// Number of blocks: enough that threads seldom wait for each other.
const BLOCKS: u64 = 64;

impl Blocks {
    pub fn of_words(counts: &[u64], dims: usize) -> Self {
        let total: u64 = counts.iter().sum();
        let (mut bounds, mut of) = (vec![0], Vec::with_capacity(counts.len()));
        let mut seen = 0;
        for (word, count) in counts.iter().enumerate() {
            of.push((bounds.len() - 1) as u16);
            seen += count;
            if seen * BLOCKS >= total * bounds.len() as u64 || word + 1 == counts.len() {
                bounds.push(word + 1);
            }
        }
        Self { bounds, of, dims }
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn word_count(&self) -> usize {
        self.of.len()
    }

    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn of(&self, word: u32) -> usize {
        usize::from(self.of[word as usize])
    }

    pub fn first(&self, block: usize) -> usize {
        self.bounds[block]
    }

    /// Splits a table at the block boundaries; an empty table gives empty blocks.
    pub fn split<'t>(&self, mut table: &'t mut [f32]) -> Vec<&'t mut [f32]> {
        let whole = !table.is_empty();
        let sizes = self.bounds.windows(2).map(|ends| Range { start: ends[0], end: ends[1] });
        sizes
            .map(|words| {
                let size = if whole { words.len() * self.dims } else { 0 };
                let (block, rest) = std::mem::take(&mut table).split_at_mut(size);
                table = rest;
                block
            })
            .collect()
    }
}
