//! Rows on their way from a foreign file to a model file, kept on disk, not in memory.
//!
//! Some changes (principal components, the scale of a row) need to see all rows before the first
//! can be written. The file has no name, so that it is gone however the process ends.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::BufWriter;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;

use crate::model::disk;

/// Bytes moved at once.
const BUFFER: usize = 1 << 20;

/// A growing table of f32 rows in a nameless file.
#[derive(Debug)]
pub struct Spool {
    out: BufWriter<File>,
    dims: usize,
    rows: u64,
}

impl Spool {
    /// An empty table in `directory`, the one the model will be written to.
    pub fn create(directory: &Path, dims: usize) -> io::Result<Self> {
        let file = disk::nameless(directory)?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER, file), dims, rows: 0 })
    }

    /// Adds a row of `dims` numbers.
    pub fn push(&mut self, row: &[f32]) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.dims);
        self.rows += 1;
        self.out.write_all(bytemuck::cast_slice(row))
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Numbers a row.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Reads the first `most` rows, one after another.
    pub fn each(
        &mut self,
        most: u64,
        mut use_row: impl FnMut(&[f32]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.flush()?;
        let file = self.out.get_mut();
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(BUFFER, &*file);
        let mut row = vec![0.0_f32; self.dims];
        for _ in 0..self.rows.min(most) {
            reader.read_exact(bytemuck::cast_slice_mut(&mut row))?;
            use_row(&row)?;
        }
        self.out.seek(SeekFrom::End(0))?;
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
        for n in 0..1000 {
            spool.push(&[n as f32, 0.5, -1.0]).unwrap();
        }
        for _ in 0..2 {
            let mut seen = 0;
            let check = |row: &[f32]| {
                assert_eq!(row, [seen as f32, 0.5, -1.0]);
                seen += 1;
                Ok(())
            };
            spool.each(700, check).unwrap();
            assert_eq!(seen, 700);
        }
        spool.push(&[1000.0, 0.5, -1.0]).unwrap();
        assert_eq!(spool.len(), 1001);
    }
}
