//! Reads a file by position, with errors that name the file and the byte.
//!
//! It serves formats that store words and rows in separate places, so that both can be streamed
//! side by side. No format is known here; compressed files have no positions and cannot be read
//! this way.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Place, ReadError, Result};

#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    len: u64,
    bytes: Bytes,
    digested: RefCell<Digested>,
}

/// The first bytes of a source that were read in order, with their digest. Bytes after a gap are
/// not included; [`Source::digest`] reads on from the first gap.
#[derive(Debug, Default)]
struct Digested {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Digested {
    fn see(&mut self, offset: u64, bytes: &[u8]) {
        let seen = self.bytes.checked_sub(offset).and_then(|seen| usize::try_from(seen).ok());
        if let Some(new) = seen.and_then(|seen| bytes.get(seen..)) {
            self.hasher.update(new);
            self.bytes += new.len() as u64;
        }
    }
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a regular file. Pipes are refused: they have no positions, and opening one would
    /// block.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        let regular = std::fs::metadata(path).map_err(io)?.is_file();
        if !regular {
            let problem = "expected a regular file; unpack or save the input to one first".into();
            return Err(ReadError::Unsupported { path: path.to_owned(), problem });
        }
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        Ok(Self {
            path: path.to_owned(),
            len,
            bytes: Bytes::File(file),
            digested: RefCell::default(),
        })
    }

    pub fn memory(name: &str, bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        let digested = RefCell::default();
        Self { path: PathBuf::from(name), len, bytes: Bytes::Memory(bytes), digested }
    }

    #[cfg(feature = "model2vec")]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        match &self.bytes {
            Bytes::File(file) => file.read_exact_at(out, offset).map_err(|source| {
                if source.kind() == std::io::ErrorKind::UnexpectedEof {
                    return self.ends_early(offset, "data", out.len() as u64);
                }
                ReadError::Io { path: self.path.clone(), source }
            }),
            Bytes::Memory(bytes) => {
                let there = usize::try_from(offset)
                    .ok()
                    .and_then(|from| bytes.get(from..from.checked_add(out.len())?))
                    .ok_or_else(|| self.ends_early(offset, "data", out.len() as u64))?;
                out.copy_from_slice(there);
                Ok(())
            }
        }?;
        self.digested.borrow_mut().see(offset, out);
        Ok(())
    }

    pub(crate) fn digest(&self) -> Result<String> {
        let mut bytes = vec![0; BUFFER_BYTES as usize];
        loop {
            let begin = self.digested.borrow().bytes;
            let length = self.len.saturating_sub(begin).min(BUFFER_BYTES);
            if length == 0 {
                return Ok(self.digested.borrow().hasher.finalize().to_hex().to_string());
            }
            bytes.truncate(length as usize);
            self.read_at(begin, &mut bytes)?;
        }
    }

    /// Fills `row` with little-endian floats from `offset` on; `bytes` is a reusable buffer.
    pub(crate) fn floats_at(
        &self,
        offset: u64,
        bytes: &mut Vec<u8>,
        row: &mut [f32],
    ) -> Result<()> {
        bytes.resize(row.len() * 4, 0);
        self.read_at(offset, bytes)?;
        for (value, bytes) in row.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        Ok(())
    }

    pub(crate) fn malformed(&self, offset: u64, problem: impl Into<String>) -> ReadError {
        let (path, place) = (self.path.clone(), Place::Byte(offset));
        ReadError::Malformed { path, place, problem: problem.into() }
    }

    pub(crate) fn unsupported(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Unsupported { path: self.path.clone(), problem: problem.into() }
    }

    fn ends_early(&self, offset: u64, what: &str, expected: u64) -> ReadError {
        let found = self.len.saturating_sub(offset);
        self.malformed(
            offset,
            format!("expected {expected} bytes of {what}, found {found} before the end"),
        )
    }
}

const BUFFER_BYTES: u64 = 64 * 1024;

/// Reads a [`Source`] sequentially through a buffer of fixed size.
#[derive(Debug)]
pub(crate) struct Scan {
    source: Source,
    buffered_to: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer already consumed.
    taken: usize,
}

impl Scan {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, buffered_to: 0, buffer: Vec::new(), taken: 0 }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn position(&self) -> u64 {
        self.buffered_to - self.waiting().len() as u64
    }

    pub(crate) fn left(&self) -> u64 {
        self.source.len.saturating_sub(self.position())
    }

    pub(crate) fn seek(&mut self, offset: u64) {
        self.buffer.clear();
        self.taken = 0;
        self.buffered_to = offset;
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut out = [0; N];
        self.exact(&mut out, what)?;
        Ok(out)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self, what: &str) -> Result<i32> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self, what: &str) -> Result<i64> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// Reads `len` bytes, at most `most`, into `word`.
    pub(crate) fn counted_word(&mut self, word: &mut Vec<u8>, len: u32, most: usize) -> Result<()> {
        let len = len as usize;
        if len > most {
            let problem = format!("expected a word of at most {most} bytes, found {len}");
            return Err(self.source.malformed(self.position(), problem));
        }
        word.clear();
        word.resize(len, 0);
        self.exact(word, "a word")
    }

    /// Reads at most `most` bytes into `word`, up to a zero byte, which is consumed but not
    /// included.
    pub(crate) fn terminated_word(&mut self, word: &mut Vec<u8>, most: usize) -> Result<()> {
        let begin = self.position();
        word.clear();
        loop {
            self.refill()?;
            let waiting = self.waiting();
            if waiting.is_empty() {
                return Err(self.source.malformed(begin, "the file ends inside a word"));
            }
            let end = waiting.iter().position(|&byte| byte == 0);
            let length = end.unwrap_or(waiting.len());
            if word.len() + length > most {
                let problem = format!("a word does not end within {most} bytes");
                return Err(self.source.malformed(begin, problem));
            }
            word.extend_from_slice(&waiting[..length]);
            self.taken += length + usize::from(end.is_some());
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        if self.left() < out.len() as u64 {
            return Err(self.source.ends_early(self.position(), what, out.len() as u64));
        }
        let mut filled = 0;
        while filled < out.len() {
            self.refill()?;
            let waiting = self.waiting();
            let length = waiting.len().min(out.len() - filled);
            if length == 0 {
                return Err(self.source.ends_early(self.position(), what, out.len() as u64));
            }
            out[filled..filled + length].copy_from_slice(&waiting[..length]);
            self.taken += length;
            filled += length;
        }
        Ok(())
    }

    fn waiting(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Fills the buffer if it is empty and the source is not at its end.
    fn refill(&mut self) -> Result<()> {
        if !self.waiting().is_empty() {
            return Ok(());
        }
        let length = self.left().min(BUFFER_BYTES);
        // At most BUFFER_BYTES, so it fits.
        self.buffer.resize(length as usize, 0);
        self.taken = self.buffer.len();
        self.source.read_at(self.buffered_to, &mut self.buffer)?;
        self.taken = 0;
        self.buffered_to += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_across_the_edge_of_the_buffer_come_whole() {
        let word_bytes = 1000;
        let mut bytes = Vec::new();
        for index in 0..200u32 {
            bytes.extend(std::iter::repeat_n(b'a' + (index % 26) as u8, word_bytes));
            bytes.push(0);
            bytes.extend(index.to_le_bytes());
        }
        assert!(bytes.len() as u64 > 3 * BUFFER_BYTES);
        let mut scan = Scan::new(Source::memory("words", bytes));
        let mut word = Vec::new();
        for index in 0..200u32 {
            assert_eq!(scan.position(), u64::from(index) * 1005);
            scan.terminated_word(&mut word, word_bytes).unwrap();
            assert_eq!(word, [b'a' + (index % 26) as u8].repeat(word_bytes));
            assert_eq!(scan.u32("a number").unwrap(), index);
        }
        assert_eq!(scan.left(), 0);
        scan.seek(1005 + 1001);
        assert_eq!(scan.u32("a number").unwrap(), 1);
    }

    #[test]
    fn what_is_missing_or_too_long_is_named_with_its_place() {
        let mut scan = Scan::new(Source::memory("tiny", b"abc\0de".to_vec()));
        let mut word = Vec::new();
        scan.terminated_word(&mut word, 3).unwrap();
        let error = scan.u32("a count").unwrap_err().to_string();
        assert_eq!(error, "tiny, byte 4: expected 4 bytes of a count, found 2 before the end");
        let error = scan.terminated_word(&mut word, 9).unwrap_err().to_string();
        assert_eq!(error, "tiny, byte 4: the file ends inside a word");
        scan.seek(0);
        let error = scan.terminated_word(&mut word, 2).unwrap_err().to_string();
        assert_eq!(error, "tiny, byte 0: a word does not end within 2 bytes");
        scan.seek(7);
        assert_eq!(scan.left(), 0);
        assert!(scan.array::<1>("anything").is_err());
        assert!(scan.source().read_at(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn the_digest_is_that_of_all_bytes_in_whatever_order_they_were_read() {
        let bytes: Vec<u8> = (0..3 * BUFFER_BYTES).map(|at| (at % 251) as u8).collect();
        let expected = blake3::hash(&bytes).to_hex();
        let orders: [&[(u64, usize)]; 4] = [
            &[],
            &[(0, 10), (10, 1000), (5, 100_000)],
            &[(500, 10), (0, 505), (505, 3), (0, 4)],
            &[(0, 3 * BUFFER_BYTES as usize), (7, 7)],
        ];
        for order in orders {
            let source = Source::memory("bytes", bytes.clone());
            for &(offset, length) in order {
                source.read_at(offset, &mut vec![0; length]).unwrap();
            }
            assert_eq!(source.digest().unwrap(), expected.as_str());
            assert_eq!(source.digest().unwrap(), expected.as_str());
        }
    }

    #[test]
    fn a_folder_is_not_read_as_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = Source::open(folder.path()).unwrap_err();
        assert!(matches!(error, ReadError::Unsupported { .. }), "{error}");
    }
}
