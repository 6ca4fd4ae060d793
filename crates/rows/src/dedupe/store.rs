//! Bytes that are written once and read again in any order: the first of them stay in memory, the
//! rest lies in a nameless file. What they mean is not known here.

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use cognate::model::disk;

/// Bytes that are written to the file at a time.
const BUFFER: usize = 256 << 10;

pub(super) struct Store {
    folder: PathBuf,
    /// Maximum bytes in memory.
    most: usize,
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    end: u64,
}

impl Store {
    /// Keeps at most `memory` bytes in memory; the others are written to the disk of `folder`.
    pub(super) fn new(folder: PathBuf, memory: usize) -> Self {
        Self { folder, most: memory, memory: Vec::new(), file: None, end: 0 }
    }

    /// Appends bytes, which are never divided; returns where they begin.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let begin = self.end;
        match &mut self.file {
            None if self.memory.len() + bytes.len() <= self.most => {
                self.memory.extend_from_slice(bytes);
            }
            Some(file) => file.write_all(bytes)?,
            empty => {
                let file = BufWriter::with_capacity(BUFFER, disk::nameless(&self.folder)?);
                empty.insert(file).write_all(bytes)?;
            }
        }
        self.end += bytes.len() as u64;
        Ok(begin)
    }

    /// To be called before the first bytes are read.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Bytes that were appended, by where they begin; those from the file are read into `room`.
    pub(super) fn read<'b>(
        &'b self,
        (begin, count): (u64, usize),
        room: &'b mut Vec<u8>,
    ) -> io::Result<&'b [u8]> {
        let in_memory = self.memory.len() as u64;
        match &self.file {
            Some(file) if begin >= in_memory => {
                room.resize(count, 0);
                file.get_ref().read_exact_at(room, begin - in_memory)?;
                Ok(room)
            }
            _ => {
                let bytes = self.memory.get(begin as usize..).and_then(|rest| rest.get(..count));
                Ok(bytes.ok_or(io::ErrorKind::UnexpectedEof)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_whatever_the_memory() {
        for memory in [0, 1000, 1 << 20] {
            let mut store = Store::new(std::env::temp_dir(), memory);
            let bytes: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n; usize::from(n % 13)]).collect();
            let begins: Vec<u64> = bytes.iter().map(|bytes| store.push(bytes).unwrap()).collect();
            store.finish().unwrap();
            assert_eq!(store.file.is_some(), memory < 1 << 20);
            for (begin, bytes) in begins.iter().zip(&bytes).rev() {
                let mut room = Vec::new();
                assert_eq!(store.read((*begin, bytes.len()), &mut room).unwrap(), bytes);
            }
            assert!(store.read((store.end, 1), &mut Vec::new()).is_err());
        }
    }
}
