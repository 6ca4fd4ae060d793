//! An input that is read once from front to back, with a buffer and counters.
//!
//! Every foreign file is read through this type: vectors, vocabularies, counts, corpora, labelled
//! texts. Compressed files (gzip, zstd) are decompressed. A number in a file never decides how much
//! memory is allocated: the buffer grows only as bytes arrive, and only up to the caller's limit.
//! What the bytes mean is not known here.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::compression::{Stored, Unpacked};
use super::{Place, ReadError, Result};

const CHUNK_BYTES: usize = 256 << 10;

/// Maximum bytes of a line of running text or of a table of counts.
const LINE_BYTES: usize = 16 << 20;

pub struct Input {
    path: PathBuf,
    source: Unpacked,
    total: Option<u64>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    position: u64,
    lines: u64,
}

impl Input {
    /// Opens a regular file. Pipes, folders and devices are refused: they have no size to check a
    /// header against, and some have no end.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        // Without NONBLOCK, opening a pipe would block until another process opens it for writing.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            let problem = "not a regular file; folders, pipes and devices are not read".into();
            return Err(ReadError::Unsupported { path: path.to_owned(), problem });
        }
        let source = Unpacked::new(Stored::file(file)).map_err(io)?;
        Ok(Self::new(path.to_owned(), source, Some(metadata.len())))
    }

    /// Opens a regular file, or a pipe, which is read to its end; `-` is standard input.
    pub fn open_stream(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Self::from_stream("standard input", Box::new(std::io::stdin()));
        }
        if !is_pipe(path) {
            return Self::open(path);
        }
        match File::open(path) {
            Ok(pipe) => Self::from_stream(path, Box::new(pipe)),
            Err(source) => Err(ReadError::Io { path: path.to_owned(), source }),
        }
    }

    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<Self> {
        let path = name.into();
        let total = bytes.len() as u64;
        match Unpacked::new(Stored::memory(bytes)) {
            Ok(source) => Ok(Self::new(path, source, Some(total))),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// Reads a stream to its end; messages call it `name`.
    pub fn from_stream(name: impl Into<PathBuf>, stream: Box<dyn Read + Send>) -> Result<Self> {
        let path = name.into();
        match Unpacked::new(Stored::stream(stream)) {
            Ok(source) => Ok(Self::new(path, source, None)),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    fn new(path: PathBuf, source: Unpacked, total: Option<u64>) -> Self {
        Self {
            path,
            source,
            total,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            position: 0,
            lines: 0,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn packing(&self) -> Option<&'static str> {
        self.source.packing()
    }

    /// Stored bytes consumed, and the stored size of the file; for a stream both are the bytes
    /// consumed.
    pub fn progress(&self) -> (u64, u64) {
        let consumed = self.packing().map_or(self.position, |_| self.source.consumed());
        (consumed, self.total.unwrap_or(consumed))
    }

    /// Whether the buffer holds a whole line, so that reading it does not block.
    pub fn has_line(&self) -> bool {
        self.buffer[self.start..self.end].contains(&b'\n')
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Number of remaining bytes. `None` for a stream and for a compressed file, whose real size is
    /// unknown.
    pub fn bytes_left(&self) -> Option<u64> {
        match self.packing() {
            None => self.total.map(|total| total.saturating_sub(self.position)),
            Some(_) => None,
        }
    }

    /// The next `count` bytes (fewer at the end of the file), without consuming them.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        while self.end - self.start < count && self.fill()? {}
        let end = self.end.min(self.start.saturating_add(count));
        Ok(&self.buffer[self.start..end])
    }

    /// Consumes `prefix` if the next bytes are equal to it.
    pub fn skip_prefix(&mut self, prefix: &[u8]) -> Result<bool> {
        let found = self.peek(prefix.len())? == prefix;
        if found {
            self.consume(prefix.len());
        }
        Ok(found)
    }

    pub fn skip_byte_order_mark(&mut self) -> Result<bool> {
        self.skip_prefix("\u{feff}".as_bytes())
    }

    /// The next line without its end (`\n` or `\r\n`), or `None` at the end of the file. A line
    /// longer than `limit` is an error that states its number.
    pub fn read_line_bounded(&mut self, limit: usize) -> Result<Option<&[u8]>> {
        let Some(found) = self.find_line(limit)? else {
            return Err(self.too_long(limit));
        };
        if found == SearchEnd::default() {
            return Ok(None);
        }
        let from = self.start;
        self.lines = self.lines.saturating_add(1);
        self.consume(found.bytes + usize::from(found.delimited));
        Ok(Some(without_return(&self.buffer[from..from + found.bytes])))
    }

    /// Passes over the rest of a line of any length, and returns its first bytes, `shown` at most.
    pub fn skip_line(&mut self, shown: usize) -> Result<Vec<u8>> {
        let beginning = self.peek(shown)?.to_vec();
        self.lines = self.lines.saturating_add(1);
        loop {
            let rest = &self.buffer[self.start..self.end];
            let passed = rest.iter().position(|&byte| byte == b'\n');
            let all = rest.len();
            self.consume(passed.map_or(all, |at| at + 1));
            if passed.is_some() || !self.fill()? {
                return Ok(beginning);
            }
        }
    }

    /// The next line of running text or of a table, at most 16 MiB long.
    pub fn read_line(&mut self) -> Result<Option<&[u8]>> {
        self.read_line_bounded(LINE_BYTES)
    }

    /// The line that [`read_line_bounded`](Self::read_line_bounded) would return, without consuming
    /// it. Also `None` if the line is longer than `limit`.
    pub fn peek_line(&mut self, limit: usize) -> Result<Option<&[u8]>> {
        match self.find_line(limit)? {
            Some(found) if found != SearchEnd::default() => {
                Ok(Some(without_return(&self.buffer[self.start..self.start + found.bytes])))
            }
            _ => Ok(None),
        }
    }

    /// The bytes before the next `delimiter`, which is consumed and must come within `limit` bytes.
    /// `what` names the bytes in messages.
    pub fn read_until(&mut self, delimiter: u8, limit: usize, what: &str) -> Result<&[u8]> {
        let problem = match self.find(delimiter, limit)? {
            Some(found) if found.delimited => {
                let from = self.start;
                self.consume(found.bytes + 1);
                return Ok(&self.buffer[from..from + found.bytes]);
            }
            Some(found) => format!("the file ends {} bytes into {what}", found.bytes),
            None => format!("{what} is not ended within {limit} bytes"),
        };
        Err(self.malformed(Place::Byte(self.position), problem))
    }

    /// Exactly `count` bytes. The caller must limit `count`, by a constant or by
    /// [`bytes_left`](Self::bytes_left). `what` names the bytes in messages.
    pub fn read_exact(&mut self, count: usize, what: &str) -> Result<&[u8]> {
        let found = self.peek(count)?.len();
        if found < count {
            let problem = format!("expected {count} bytes of {what}, found {found}");
            return Err(self.malformed(Place::Byte(self.position), problem));
        }
        let from = self.start;
        self.consume(count);
        Ok(&self.buffer[from..from + count])
    }

    pub fn skip(&mut self, count: u64) -> Result<()> {
        let from = self.position;
        let target = from.saturating_add(count);
        while self.position < target {
            let wanted = target - self.position;
            let buffered = self.end - self.start;
            if buffered > 0 {
                self.consume(buffered.min(usize::try_from(wanted).unwrap_or(usize::MAX)));
                continue;
            }
            if !self.fill()? {
                let found = self.position - from;
                let problem = format!("expected {count} bytes to skip, found {found}");
                return Err(self.malformed(Place::Byte(from), problem));
            }
        }
        Ok(())
    }

    /// BLAKE3 of the file as stored, in hexadecimal. Consumes the rest of the file.
    pub fn digest(&mut self) -> Result<String> {
        let digest = self.source.digest();
        (self.start, self.end, self.ended) = (0, 0, true);
        match digest {
            Ok(digest) => Ok(digest.to_hex().to_string()),
            Err(source) => Err(ReadError::Io { path: self.path.clone(), source }),
        }
    }

    pub fn malformed(&self, place: Place, problem: impl Into<String>) -> ReadError {
        ReadError::Malformed { path: self.path.clone(), place, problem: problem.into() }
    }

    pub fn unsupported(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Unsupported { path: self.path.clone(), problem: problem.into() }
    }

    pub fn too_long(&self, limit: usize) -> ReadError {
        let place = Place::Line(self.lines.saturating_add(1));
        let end = self.end.min(self.start.saturating_add(limit));
        match self.lines == 0 && self.buffer[self.start..end].contains(&b'\r') {
            true => self.malformed(place, RETURNS_ALONE),
            false => self.malformed(place, format!("the line is longer than {limit} bytes")),
        }
    }

    /// Finds the end of the line; the `\r` of a `\r\n` does not count towards the limit. A file
    /// with `\r` but no `\n` is refused: it would be read as one line.
    fn find_line(&mut self, limit: usize) -> Result<Option<SearchEnd>> {
        let found = self.find(b'\n', limit.saturating_add(1))?;
        if let Some(SearchEnd { bytes, delimited: false }) = found
            && self.lines == 0
            && without_return(&self.buffer[self.start..self.start + bytes]).contains(&b'\r')
        {
            return Err(self.malformed(Place::Line(1), RETURNS_ALONE));
        }
        Ok(found.filter(|found| {
            let line = &self.buffer[self.start..self.start + found.bytes];
            without_return(line).len() <= limit
        }))
    }

    /// Finds the next `delimiter` or the end of the file; `None` if it is further away than
    /// `limit`.
    fn find(&mut self, delimiter: u8, limit: usize) -> Result<Option<SearchEnd>> {
        let mut bytes = 0;
        loop {
            let mut fresh = &self.buffer[self.start + bytes..self.end];
            // The standard library exposes its fast byte search only through this function; reading
            // from a slice cannot fail.
            let passed = fresh.skip_until(delimiter).unwrap_or(0);
            bytes += passed;
            let delimited = passed > 0 && self.buffer[self.start + bytes - 1] == delimiter;
            bytes -= usize::from(delimited);
            if bytes > limit {
                return Ok(None);
            }
            if delimited || !self.fill()? {
                return Ok(Some(SearchEnd { bytes, delimited }));
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.position = self.position.saturating_add(count as u64);
    }

    fn fill(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                // A small file needs only a small buffer; one more byte lets the reader see its
                // end.
                let whole = self.total.filter(|_| self.packing().is_none());
                let whole = whole.and_then(|total| usize::try_from(total.saturating_add(1)).ok());
                let first = whole.unwrap_or(CHUNK_BYTES);
                let grown = first.min(CHUNK_BYTES).max(self.buffer.len().saturating_mul(2));
                self.buffer.resize(grown, 0);
            }
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(read) => {
                    self.end += read;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Converts an I/O error; an error of decompression becomes an error in the file.
    fn failed(&self, source: std::io::Error) -> ReadError {
        match self.packing() {
            Some(packing) if source.raw_os_error().is_none() => {
                let problem = format!("damaged {packing} data: {source}");
                self.malformed(Place::Byte(self.source.consumed()), problem)
            }
            _ => ReadError::Io { path: self.path.clone(), source },
        }
    }
}

/// Whether a path is that of a pipe, which can be read once.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

/// The result of a search: the number of bytes before its end, and what ended it.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct SearchEnd {
    bytes: usize,
    delimited: bool,
}

/// The error for line ends of classic Mac OS.
const RETURNS_ALONE: &str = "lines end in carriage returns alone, and no line feed is there; expected \
     `\\n` or `\\r\\n` at the end of a line: convert the file, for instance with `tr '\\r' '\\n'`";

const SHOWN_BYTES: usize = 40;

/// The beginning of `bytes`, escaped for a message.
pub fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES) {
        Some(beginning) => format!("`{}…`", beginning.escape_ascii()),
        None => format!("`{}`", bytes.escape_ascii()),
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;
    use crate::ReadError;

    fn bytes(bytes: impl AsRef<[u8]>) -> Input {
        Input::from_bytes("memory", bytes.as_ref().to_vec()).unwrap()
    }

    #[track_caller]
    fn says(message: &str, parts: &[&str]) {
        for part in parts {
            assert!(message.contains(part), "`{part}` is missing in: {message}");
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn lines(mut input: Input) -> Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        while let Some(line) = input.read_line_bounded(1 << 20)? {
            lines.push(line.to_vec());
        }
        Ok(lines)
    }

    #[test]
    fn packed_files_read_like_plain_ones_whatever_they_are_called() {
        let text: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        let plain = lines(bytes(&text)).unwrap();
        assert_eq!(plain.len(), 100_000);
        let folder = tempfile::tempdir().unwrap();
        for (packing, packed) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))]
        {
            let path = folder.path().join("renamed.txt");
            std::fs::write(&path, &packed).unwrap();
            let mut input = Input::open(&path).unwrap();
            assert_eq!((input.packing(), input.bytes_left()), (Some(packing), None));
            assert_eq!(input.progress().1, packed.len() as u64, "counted as the file is stored");
            input.read_line_bounded(99).unwrap();
            let (early, total) = input.progress();
            assert!(early > 0 && early <= total);
            while input.read_line_bounded(99).unwrap().is_some() {}
            assert_eq!(input.progress(), (total, total), "{packing} is used up to its last byte");
            assert_eq!(lines(Input::open(&path).unwrap()).unwrap(), plain);
        }
    }

    #[test]
    fn several_packed_parts_in_one_file_are_one_text() {
        let gz = [gzip(b"one\n"), gzip(b"two\n")].concat();
        let skippable = b"\x5e\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let zst = [skippable.clone(), zstd(b"one\n"), skippable, zstd(b"two\n")].concat();
        for packed in [gz, zst] {
            assert_eq!(lines(bytes(&packed)).unwrap(), [b"one", b"two"]);
        }
    }

    #[test]
    fn a_packed_file_cut_anywhere_is_named_as_damaged() {
        for (name, packed) in [("gzip", gzip(b"one\ntwo\n")), ("zstd", zstd(b"one\ntwo\n"))] {
            for length in 4..packed.len() {
                let fault = lines(bytes(&packed[..length])).unwrap_err().to_string();
                says(&fault, &["memory, byte", "damaged", name]);
            }
        }
    }

    #[test]
    fn a_zstd_frame_that_would_take_much_memory_is_refused_with_a_way_out() {
        // Descriptor 0, then a window of 2^(10 + 17) bytes; 2^(10 + 13) is the maximum.
        let fault = lines(bytes(b"\x28\xb5\x2f\xfd\x00\x88")).unwrap_err().to_string();
        says(&fault, &["zstd", "134217728", "8388608", "-19"]);
    }

    #[test]
    fn folders_devices_and_pipes_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo makes a pipe");
        for path in [folder.path(), Path::new("/dev/zero"), &pipe] {
            let Err(refusal) = Input::open(path) else { panic!("{path:?} was opened") };
            assert!(matches!(refusal, ReadError::Unsupported { .. }), "{refusal}");
            says(&refusal.to_string(), &["not a regular file"]);
        }
        let missing = Input::open(&folder.path().join("missing")).err();
        assert!(matches!(missing, Some(ReadError::Io { .. })));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let mut input = bytes("four\r\nfour\nfive5\nx");
        for _ in 0..2 {
            assert_eq!(input.read_line_bounded(4).unwrap(), Some(b"four".as_slice()));
        }
        assert_eq!(input.peek_line(4).unwrap(), None);
        let fault = input.read_line_bounded(4).unwrap_err().to_string();
        assert_eq!(fault, "memory, line 3: the line is longer than 4 bytes");
        assert_eq!(input.read_line_bounded(5).unwrap(), Some(b"five5".as_slice()));
        assert_eq!(input.peek_line(5).unwrap(), Some(b"x".as_slice()));
        assert_eq!(input.read_line_bounded(5).unwrap(), Some(b"x".as_slice()), "without line end");
        assert_eq!(input.read_line_bounded(5).unwrap(), None);
        assert_eq!(input.lines(), 4);
    }

    #[test]
    fn short_bytes_are_named_by_their_offset() {
        let mut input = bytes("word rest");
        assert_eq!(input.read_until(b' ', 4, "a word").unwrap(), b"word");
        let fault = input.read_exact(5, "numbers").unwrap_err().to_string();
        assert_eq!(fault, "memory, byte 5: expected 5 bytes of numbers, found 4");
        let fault = input.read_until(b' ', 3, "a word").unwrap_err().to_string();
        assert_eq!(fault, "memory, byte 5: a word is not ended within 3 bytes");
        let fault = input.read_until(b' ', 4, "a word").unwrap_err().to_string();
        assert_eq!(fault, "memory, byte 5: the file ends 4 bytes into a word");
        input.skip(3).unwrap();
        assert_eq!(input.read_exact(1, "a letter").unwrap(), b"t");
        assert!(input.skip(1).is_err());
    }

    #[test]
    fn bytes_are_passed_over_in_plain_and_in_packed_files() {
        let text: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        for stored in [text.clone(), gzip(&text), zstd(&text)] {
            let mut input = bytes(&stored);
            input.read_exact(10, "the beginning").unwrap();
            input.skip(900_000).unwrap();
            assert_eq!(input.position(), 900_010);
            assert_eq!(input.read_exact(9, "the end").unwrap(), &text[900_010..900_019]);
            assert!(input.skip(u64::MAX).is_err());
        }
    }

    /// Whether a file is read fully, partly, skipped or not at all, the digest is that of its
    /// stored bytes.
    #[test]
    fn a_file_has_one_digest_however_much_of_it_was_read() {
        let text: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        for stored in [text.clone(), gzip(&text), zstd(&text)] {
            let expected = blake3::hash(&stored).to_hex();
            let uses: [fn(&mut Input); 4] = [
                |_| {},
                |input| assert_eq!(input.read_exact(300_000, "a part").unwrap().len(), 300_000),
                |input| input.skip(700_000).unwrap(),
                |input| input.skip(1_000_000).unwrap(),
            ];
            for used in uses {
                let mut input = bytes(&stored);
                used(&mut input);
                assert_eq!(input.digest().unwrap(), expected.as_str());
                assert!(input.peek(1).unwrap().is_empty(), "nothing is left to read");
            }
        }
    }

    proptest! {
        #[test]
        fn lines_come_back_as_they_were_split(
            parts in prop::collection::vec("[a-z\u{85}\u{a0}]{0,300}", 0..40),
            ended in any::<bool>(),
        ) {
            let mut text = parts.join("\n");
            let mut expected: Vec<Vec<u8>> = parts.into_iter().map(String::into_bytes).collect();
            if ended {
                text.push('\n');
                expected = if expected.is_empty() { vec![vec![]] } else { expected };
            } else if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(lines(bytes(&text)).unwrap(), expected.clone());
            prop_assert_eq!(lines(bytes(gzip(text.as_bytes()))).unwrap(), expected);
        }
    }
}
