//! A file read once from front to back: buffered, counted, and never further than asked.
//!
//! Every foreign file comes through here: vectors, vocabularies, counts, corpora, labelled texts. Packed files
//! (gzip, zstd) are unpacked on the way. No number that stands in a file decides how much memory
//! is taken: the buffer grows only while bytes really arrive, and only up to the caller's limit.
//! What the bytes mean is not known here.

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::compression::{Stored, Unpacked};
use super::{Place, ReadError};

/// Bytes asked of the system at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Longest line of running text or of a table of counts.
const LINE_BYTES: usize = 16 << 20;

/// A file, or bytes in memory that stand for one.
pub struct Input {
    path: PathBuf,
    source: Unpacked,
    /// Bytes as they are stored; nothing for a stream, whose size nobody knows.
    total: Option<u64>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    position: u64,
    lines: u64,
}

impl Input {
    /// Opens a regular file. Pipes, folders and devices are refused, because they have no size to
    /// check a header against and some have no end.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        // Without NONBLOCK, opening a pipe would wait for somebody to write to it.
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

    /// Reads bytes as if they stood in the file `name`, which only messages show.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<Self, ReadError> {
        let path = name.into();
        let total = bytes.len() as u64;
        match Unpacked::new(Stored::memory(bytes)) {
            Ok(source) => Ok(Self::new(path, source, Some(total))),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// Reads a stream, which messages call `name`, as far as it goes.
    pub fn from_stream(
        name: impl Into<PathBuf>,
        stream: Box<dyn Read + Send>,
    ) -> Result<Self, ReadError> {
        let path = name.into();
        match Unpacked::new(Stored::stream(stream)) {
            Ok(source) => Ok(Self::new(path, source, None)),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// Reads what the process is given.
    pub fn standard_input() -> Result<Self, ReadError> {
        Self::from_stream("standard input", Box::new(std::io::stdin()))
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

    /// What the file is packed with, `gzip` or `zstd`.
    pub fn packing(&self) -> Option<&'static str> {
        self.source.packing()
    }

    /// Bytes of the file used up so far, counted as it is stored, and its size, which for a stream is
    /// what was used up.
    pub fn progress(&self) -> (u64, u64) {
        let consumed = match self.packing() {
            None => self.position,
            Some(_) => self.source.consumed(),
        };
        (consumed, self.total.unwrap_or(consumed))
    }

    /// Whether a whole line lies in memory, so that reading it waits for nobody.
    pub fn has_line(&self) -> bool {
        self.buffer[self.start..self.end].contains(&b'\n')
    }

    /// Unpacked bytes handed over so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Lines handed over so far, so the number of the line last read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes still to come. `None` for a stream and for a packed file, whose unpacked size nobody can
    /// vouch for.
    pub fn bytes_left(&self) -> Option<u64> {
        match self.packing() {
            None => self.total.map(|total| total.saturating_sub(self.position)),
            Some(_) => None,
        }
    }

    /// The next bytes without taking them: `count`, or fewer where the file ends.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], ReadError> {
        while self.end - self.start < count && self.fill()? {}
        let end = self.end.min(self.start.saturating_add(count));
        Ok(&self.buffer[self.start..end])
    }

    /// Takes `prefix` if the next bytes are just that.
    pub fn skip_prefix(&mut self, prefix: &[u8]) -> Result<bool, ReadError> {
        let found = self.peek(prefix.len())? == prefix;
        if found {
            self.consume(prefix.len());
        }
        Ok(found)
    }

    /// Takes the mark that some editors put before UTF-8 text, if it is there.
    pub fn skip_byte_order_mark(&mut self) -> Result<bool, ReadError> {
        self.skip_prefix("\u{feff}".as_bytes())
    }

    /// The next line without its end (`\n` or `\r\n`), or `None` at the end of the file. A line
    /// longer than `limit` is an error that names its number.
    pub fn read_line_bounded(&mut self, limit: usize) -> Result<Option<&[u8]>, ReadError> {
        let Some(found) = self.find_line(limit)? else {
            return Err(self.too_long(limit));
        };
        if found == Found::default() {
            return Ok(None);
        }
        let from = self.start;
        self.lines = self.lines.saturating_add(1);
        self.consume(found.bytes + usize::from(found.delimited));
        Ok(Some(without_return(&self.buffer[from..from + found.bytes])))
    }

    /// The next line of running text or of a table, at most 16 MiB long.
    pub fn read_line(&mut self) -> Result<Option<&[u8]>, ReadError> {
        self.read_line_bounded(LINE_BYTES)
    }

    /// The line that [`read_line_bounded`](Self::read_line_bounded) would hand over, not taken.
    /// `None` also where the line is longer than `limit`.
    pub fn peek_line(&mut self, limit: usize) -> Result<Option<&[u8]>, ReadError> {
        match self.find_line(limit)? {
            Some(found) if found != Found::default() => {
                Ok(Some(without_return(&self.buffer[self.start..self.start + found.bytes])))
            }
            _ => Ok(None),
        }
    }

    /// The bytes before the next `delimiter`, which is taken too and must come within `limit`
    /// bytes. `what` names them in messages.
    pub fn read_until(
        &mut self,
        delimiter: u8,
        limit: usize,
        what: &str,
    ) -> Result<&[u8], ReadError> {
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

    /// Exactly `count` bytes. The caller answers for `count`: it must be bounded by a limit of its
    /// own or by [`bytes_left`](Self::bytes_left). `what` names them in messages.
    pub fn read_exact(&mut self, count: usize, what: &str) -> Result<&[u8], ReadError> {
        let found = self.peek(count)?.len();
        if found < count {
            let problem = format!("expected {count} bytes of {what}, found {found}");
            return Err(self.malformed(Place::Byte(self.position), problem));
        }
        let from = self.start;
        self.consume(count);
        Ok(&self.buffer[from..from + count])
    }

    /// Passes over `count` bytes; the file must hold them.
    pub fn skip(&mut self, count: u64) -> Result<(), ReadError> {
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
                let problem = format!("expected {count} bytes to pass over, found {found}");
                return Err(self.malformed(Place::Byte(from), problem));
            }
        }
        Ok(())
    }

    /// BLAKE3 of the file as it is stored, in hexadecimal. What was not read yet is read for it, so
    /// that nothing can be read afterwards.
    pub fn digest(&mut self) -> Result<String, ReadError> {
        let digest = self.source.digest();
        (self.start, self.end, self.ended) = (0, 0, true);
        match digest {
            Ok(digest) => Ok(digest.to_hex().to_string()),
            Err(source) => Err(ReadError::Io { path: self.path.clone(), source }),
        }
    }

    /// An error in the bytes of this file.
    pub fn malformed(&self, place: Place, problem: impl Into<String>) -> ReadError {
        ReadError::Malformed { path: self.path.clone(), place, problem: problem.into() }
    }

    /// The error that this file is of a kind that is not read.
    pub fn unsupported(&self, problem: impl Into<String>) -> ReadError {
        ReadError::Unsupported { path: self.path.clone(), problem: problem.into() }
    }

    /// The error that the next line is longer than `limit`.
    pub fn too_long(&self, limit: usize) -> ReadError {
        let place = Place::Line(self.lines.saturating_add(1));
        let end = self.end.min(self.start.saturating_add(limit));
        match self.lines == 0 && self.buffer[self.start..end].contains(&b'\r') {
            true => self.malformed(place, RETURNS_ALONE),
            false => self.malformed(place, format!("the line is longer than {limit} bytes")),
        }
    }

    /// Finds the end of the line; the return of a `\r\n` does not count towards its limit. A file
    /// without any line feed whose lines end in returns is refused: it would be read as one line.
    fn find_line(&mut self, limit: usize) -> Result<Option<Found>, ReadError> {
        let found = self.find(b'\n', limit.saturating_add(1))?;
        if let Some(Found { bytes, delimited: false }) = found
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

    /// How far the next `delimiter` is, `None` if further than `limit`; without delimiter where
    /// the file ends first.
    fn find(&mut self, delimiter: u8, limit: usize) -> Result<Option<Found>, ReadError> {
        let mut bytes = 0;
        loop {
            let mut fresh = &self.buffer[self.start + bytes..self.end];
            // The standard library searches fast here and nowhere else in its public face;
            // reading from a slice cannot fail.
            let passed = fresh.skip_until(delimiter).unwrap_or(0);
            bytes += passed;
            let delimited = passed > 0 && self.buffer[self.start + bytes - 1] == delimiter;
            bytes -= usize::from(delimited);
            if bytes > limit {
                return Ok(None);
            }
            if delimited || !self.fill()? {
                return Ok(Some(Found { bytes, delimited }));
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
        self.position = self.position.saturating_add(count as u64);
    }

    /// Appends bytes to the buffer; `false` at the end of the file.
    fn fill(&mut self) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                // A small file needs no large buffer; one byte more lets its end be seen.
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

    /// A failure of the system, or of unpacking, which is a fault in the file.
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

/// Where a search ended: after how many bytes, and whether at the delimiter or the file's end.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Found {
    bytes: usize,
    delimited: bool,
}

/// What is wrong with text of the first Macintosh systems.
const RETURNS_ALONE: &str = "lines end in carriage returns alone, and no line feed is there; expected \
     `\\n` or `\\r\\n` at the end of a line: convert the file, for instance with `tr '\\r' '\\n'`";

/// Most bytes of a file quoted in a message.
const SHOWN_BYTES: usize = 40;

/// The beginning of `bytes` in a form that is safe to print.
pub fn shown(bytes: &[u8]) -> String {
    match bytes.get(..SHOWN_BYTES) {
        Some(beginning) => format!("`{}…`", beginning.escape_ascii()),
        None => format!("`{}`", bytes.escape_ascii()),
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
