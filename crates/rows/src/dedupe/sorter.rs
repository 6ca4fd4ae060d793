//! Sorts more records than fit into memory: sorted runs in nameless files, merged when they are
//! read. What the records mean is not known here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;

use cognate::model::disk;
use rayon::slice::ParallelSliceMut;

/// Bytes of a run that are read or written at a time.
const BUFFER: usize = 256 << 10;

/// A number, and a second number that tells records with the same first number apart.
pub(super) type Key = (u64, u32);

/// Records with a unique key, each with some bytes.
pub(super) struct Sorter {
    folder: PathBuf,
    /// Maximum bytes in memory.
    most: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    runs: Vec<BufReader<File>>,
}

#[derive(Clone, Copy)]
struct Entry {
    major: u64,
    from: usize,
    minor: u32,
    count: u32,
}

impl Sorter {
    /// Sorts with at most `memory` bytes; runs are written to the disk of `folder`.
    pub(super) fn new(folder: PathBuf, memory: usize) -> Self {
        // Vectors double their capacity as they grow, so half of it may be unused.
        Self { folder, most: memory / 2, bytes: Vec::new(), entries: Vec::new(), runs: Vec::new() }
    }

    pub(super) fn push(&mut self, key: Key, bytes: &[u8]) -> io::Result<()> {
        let used = self.bytes.len() + self.entries.len() * size_of::<Entry>();
        if used + bytes.len() + size_of::<Entry>() > self.most && !self.entries.is_empty() {
            self.spill()?;
        }
        let count = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let ((major, minor), from) = (key, self.bytes.len());
        self.entries.push(Entry { major, from, minor, count });
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sort(&mut self) {
        self.entries.par_sort_unstable_by_key(Entry::key);
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut run = BufWriter::with_capacity(BUFFER, disk::nameless(&self.folder)?);
        for entry in &self.entries {
            run.write_all(&entry.head().to_le_bytes())?;
            run.write_all(entry.of(&self.bytes))?;
        }
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.rewind()?;
        self.runs.push(BufReader::with_capacity(BUFFER, run));
        self.entries.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Ends the input; returns the records in the order of their keys.
    pub(super) fn finish(mut self) -> io::Result<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            let rest = self.entries.into_iter();
            return Ok(Sorted { source: Source::Memory { bytes: self.bytes, rest }, runs: 0 });
        }
        self.spill()?;
        let runs = self.runs.len();
        let mut merge = Merge { runs: self.runs, heads: BinaryHeap::new() };
        (0..runs).try_for_each(|run| merge.advance(run))?;
        Ok(Sorted { source: Source::Runs(merge), runs })
    }
}

impl Entry {
    fn key(&self) -> Key {
        (self.major, self.minor)
    }

    /// The head of a record in a run: its key, and how many bytes follow.
    fn head(&self) -> u128 {
        u128::from(self.major) | u128::from(self.minor) << 64 | u128::from(self.count) << 96
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.from..self.from + self.count as usize).unwrap_or_default()
    }
}

pub(super) struct Sorted {
    source: Source,
    /// Number of runs on disk; 0 if all records were in memory.
    pub(super) runs: usize,
}

enum Source {
    Memory { bytes: Vec<u8>, rest: std::vec::IntoIter<Entry> },
    Runs(Merge),
}

/// The key of a run's next record, the index of the run, and the record's length.
type Head = (Key, usize, u32);

/// The next record of each run in a heap, the smallest key on top.
struct Merge {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Reverse<Head>>,
}

impl Merge {
    /// Reads the key and length of a run's next record; its bytes stay in the run until the record
    /// is returned.
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let Some(reader) = self.runs.get_mut(run) else { return Ok(()) };
        let mut head = [0; size_of::<u128>()];
        match reader.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        let head = u128::from_le_bytes(head);
        let key = (head as u64, (head >> 64) as u32);
        self.heads.push(Reverse((key, run, (head >> 96) as u32)));
        Ok(())
    }
}

impl Sorted {
    /// Returns the key of the next record and replaces `bytes` by its bytes.
    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Key>> {
        bytes.clear();
        match &mut self.source {
            Source::Memory { bytes: all, rest } => Ok(rest.next().map(|entry| {
                bytes.extend_from_slice(entry.of(all));
                entry.key()
            })),
            Source::Runs(merge) => {
                let Some(Reverse((key, run, count))) = merge.heads.pop() else { return Ok(None) };
                if let Some(reader) = merge.runs.get_mut(run) {
                    bytes.resize(count as usize, 0);
                    reader.read_exact(bytes)?;
                }
                merge.advance(run)?;
                Ok(Some(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;

    use super::*;

    #[test]
    fn records_come_in_order_whatever_the_memory() {
        let mut random = Random::seeded(3);
        let records: Vec<(Key, Vec<u8>)> = (0..5000)
            .map(|minor| {
                let key = (random.below(300) as u64, minor);
                (key, vec![minor as u8; random.below(40)])
            })
            .collect();
        let mut expected = records.clone();
        expected.sort();
        for (memory, least_runs) in [(1 << 30, 0), (100_000, 3), (4000, 100)] {
            let mut sorter = Sorter::new(std::env::temp_dir(), memory);
            for (key, bytes) in &records {
                sorter.push(*key, bytes).unwrap();
            }
            let mut sorted = sorter.finish().unwrap();
            assert!(sorted.runs >= least_runs, "{} runs", sorted.runs);
            let (mut found, mut bytes) = (Vec::new(), Vec::new());
            while let Some(key) = sorted.next(&mut bytes).unwrap() {
                found.push((key, bytes.clone()));
            }
            assert_eq!(found, expected);
        }
    }
}
