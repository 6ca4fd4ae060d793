//! Rows between a foreign file and a model file, stored on disk, not in memory.
//!
//! Their number, and the changes fitted to them, are known only when all rows have been read. The
//! temporary file has no name, so it disappears however the process ends.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cognate::model::disk;

const BUFFER: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    out: BufWriter<File>,
    dims: usize,
    rows: u64,
}

impl Spool {
    pub(crate) fn create(directory: &Path, dims: usize) -> io::Result<Self> {
        let file = disk::nameless(directory)?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER, file), dims, rows: 0 })
    }

    pub(crate) fn push(&mut self, row: &[f32]) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.dims);
        self.rows += 1;
        self.out.write_all(bytemuck::cast_slice(row))
    }

    pub(crate) fn rows(&mut self) -> io::Result<Rows<'_>> {
        self.out.flush()?;
        Ok(Rows { file: self.out.get_ref(), dims: self.dims, range: 0..self.rows })
    }
}

/// The rows of a spool, which can be read several times.
#[derive(Debug, Clone)]
pub(crate) struct Rows<'s> {
    file: &'s File,
    dims: usize,
    range: Range<u64>,
}

impl Rows<'_> {
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The first `count` rows (or all, if there are fewer), and the remaining rows.
    pub(crate) fn split_at(self, count: u64) -> (Self, Self) {
        let Range { start, end } = self.range;
        let middle = start.saturating_add(count).min(end);
        (Self { range: start..middle, ..self }, Self { range: middle..end, ..self })
    }

    pub(crate) fn each(
        &self,
        mut use_row: impl FnMut(&mut [f32]) -> io::Result<()>,
    ) -> io::Result<()> {
        let row_bytes = self.dims.max(1) * size_of::<f32>();
        let at_once = (BUFFER / row_bytes).max(1);
        let mut buffer = vec![0.0_f32; at_once * self.dims];
        for first in self.range.clone().step_by(at_once) {
            let count = at_once.min((self.range.end - first) as usize);
            let rows = buffer.get_mut(..count * self.dims).unwrap_or_default();
            let bytes = bytemuck::cast_slice_mut(rows);
            self.file.read_exact_at(bytes, first * row_bytes as u64)?;
            rows.chunks_exact_mut(self.dims.max(1)).try_for_each(&mut use_row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path(), 3).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        let rows = 2 * (BUFFER / 12) as u64 + 1;
        for n in 0..rows {
            spool.push(&[n as f32, 0.5, -1.0]).unwrap();
        }
        let seen = |part: &Rows<'_>, first: u64| {
            let mut next = first;
            let check = |row: &mut [f32]| {
                assert_eq!(row, [next as f32, 0.5, -1.0]);
                row.fill(0.0);
                next += 1;
                Ok(())
            };
            part.each(check).unwrap();
            next - first
        };
        for _ in 0..2 {
            assert_eq!(seen(&spool.rows().unwrap(), 0), rows);
        }
        spool.push(&[rows as f32, 0.5, -1.0]).unwrap();
        let (listed, others) = spool.rows().unwrap().split_at(700);
        assert_eq!((listed.len(), others.len()), (700, rows + 1 - 700));
        assert_eq!((seen(&listed, 0), seen(&others, 700)), (700, rows + 1 - 700));
        let (all, none) = others.split_at(u64::MAX);
        assert_eq!((none.len(), seen(&none, 0)), (0, 0));
        assert_eq!(all.len(), rows + 1 - 700);
    }
}
