//! Three ways for a worker to have a table: alone, among others with a lock a row, or a copy of the
//! rows it touches whose changes are added to the table afterwards, in a fixed order.

use std::sync::{Mutex, PoisonError};

use cognate_kernels::simd;

use crate::vectors::word2vec::Table;

/// A table that nobody else touches.
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

/// A table that other threads change at the same time.
#[derive(Debug)]
pub struct Among<'t, 'r>(pub &'t [Mutex<&'r mut [f32]>]);

impl Table for Among<'_, '_> {
    fn read(&mut self, word: u32, see: impl FnOnce(&[f32])) {
        see(&self.0[word as usize].lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&mut self, word: u32, change: impl FnOnce(&mut [f32])) {
        change(&mut self.0[word as usize].lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What a worker that keeps its changes to itself remembers of a table.
#[derive(Debug)]
pub struct Changes {
    dims: usize,
    /// Where the copy of each word's row is, `NONE` for those not touched.
    place: Vec<u32>,
    touched: Vec<u32>,
    copies: Vec<f32>,
    before: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl Changes {
    /// No changes to a table of so many rows.
    pub fn new(rows: usize, dims: usize) -> Self {
        let (touched, copies, before) = (Vec::new(), Vec::new(), Vec::new());
        Self { dims, place: vec![NONE; rows], touched, copies, before }
    }

    /// Adds the changes to the table.
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

/// A table seen through a worker's own changes to it.
#[derive(Debug)]
pub struct Through<'t> {
    /// The table as all workers see it.
    pub table: &'t [f32],
    /// What this worker has changed.
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
