//! The bytes of an input (a file, memory or a stream), decompressed if necessary.
//!
//! The compression is recognised by the first bytes, not by the file's name: browsers decompress
//! downloads and keep the `.gz`. What the decompressed bytes mean is not known here.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Result, Seek};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Maximum window of a zstd frame, which is the memory that decompression takes.
///
/// The format requires readers to support 8 MiB, and `zstd` up to `-19` stays below that.
const ZSTD_WINDOW_BYTES: u64 = 8 << 20;

const REST_BYTES: usize = 256 << 10;

/// Bytes as stored on disk or in memory; counts and hashes those that were read.
#[derive(Debug)]
pub(super) struct Stored {
    place: Storage,
    taken: u64,
    hasher: Box<blake3::Hasher>,
}

#[derive(Debug)]
enum Storage {
    File(File),
    Memory(Cursor<Vec<u8>>),
    Stream(Replayed),
}

/// A stream that can be restarted once, after its first bytes were examined.
struct Replayed {
    source: Box<dyn Read + Send>,
    first: Vec<u8>,
    /// Number of first bytes that were returned again; `None` before the restart.
    again: Option<usize>,
}

impl std::fmt::Debug for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayed").finish_non_exhaustive()
    }
}

impl Read for Replayed {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let Some(again) = &mut self.again else {
            let read = self.source.read(out)?;
            self.first.extend_from_slice(out.get(..read).unwrap_or_default());
            return Ok(read);
        };
        let mut kept = self.first.get(*again..).unwrap_or_default();
        if kept.is_empty() {
            return self.source.read(out);
        }
        let read = kept.read(out)?;
        *again += read;
        Ok(read)
    }
}

impl Stored {
    pub(super) fn file(file: File) -> Self {
        Self::at(Storage::File(file))
    }

    pub(super) fn memory(bytes: Vec<u8>) -> Self {
        Self::at(Storage::Memory(Cursor::new(bytes)))
    }

    pub(super) fn stream(source: Box<dyn Read + Send>) -> Self {
        Self::at(Storage::Stream(Replayed { source, first: Vec::new(), again: None }))
    }

    fn at(place: Storage) -> Self {
        Self { place, taken: 0, hasher: Box::default() }
    }

    fn rewind(&mut self) -> Result<()> {
        self.taken = 0;
        self.hasher.reset();
        match &mut self.place {
            Storage::File(file) => file.rewind(),
            Storage::Memory(bytes) => bytes.rewind(),
            Storage::Stream(stream) => {
                stream.again = Some(0);
                Ok(())
            }
        }
    }
}

impl Read for Stored {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = match &mut self.place {
            Storage::File(file) => file.read(out)?,
            Storage::Memory(bytes) => bytes.read(out)?,
            Storage::Stream(stream) => stream.read(out)?,
        };
        self.taken = self.taken.saturating_add(read as u64);
        self.hasher.update(out.get(..read).unwrap_or_default());
        Ok(read)
    }
}

pub(super) enum Unpacked {
    Plain(Stored),
    Gzip(Box<MultiGzDecoder<BufReader<Stored>>>),
    Zstd(Box<ZstdFrames>),
}

impl Unpacked {
    pub(super) fn new(mut stored: Stored) -> Result<Self> {
        let mut magic = [0; 4];
        let mut known = 0;
        while known < magic.len() {
            match stored.read(&mut magic[known..]) {
                Ok(0) => break,
                Ok(read) => known += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        stored.rewind()?;
        Ok(match magic {
            [0x1f, 0x8b, 0x08, _] => {
                Self::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(stored))))
            }
            // Parallel compressors begin a file with a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                Self::Zstd(Box::new(ZstdFrames::new(BufReader::new(stored))))
            }
            _ => Self::Plain(stored),
        })
    }

    pub(super) fn packing(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(_) => Some("gzip"),
            Self::Zstd(_) => Some("zstd"),
        }
    }

    pub(super) fn consumed(&self) -> u64 {
        let (stored, buffered) = match self {
            Self::Plain(stored) => (stored, 0),
            Self::Gzip(gzip) => (gzip.get_ref().get_ref(), gzip.get_ref().buffer().len()),
            Self::Zstd(zstd) => (zstd.stored.get_ref(), zstd.stored.buffer().len()),
        };
        stored.taken.saturating_sub(buffered as u64)
    }

    /// Returns the BLAKE3 of all stored bytes. Reads the bytes that were not read yet.
    pub(super) fn digest(&mut self) -> Result<blake3::Hash> {
        let stored = match self {
            Self::Plain(stored) => stored,
            Self::Gzip(gzip) => gzip.get_mut().get_mut(),
            Self::Zstd(zstd) => zstd.stored.get_mut(),
        };
        let mut rest = vec![0; REST_BYTES];
        loop {
            match stored.read(&mut rest) {
                Ok(0) => return Ok(stored.hasher.finalize()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(stored) => stored.read(out),
            Self::Gzip(gzip) => gzip.read(out),
            Self::Zstd(zstd) => zstd.read(out),
        }
    }
}

/// All frames of a zstd file as one stream.
///
/// The library's own stream ends after the first frame and does not verify checksums.
pub(super) struct ZstdFrames {
    stored: BufReader<Stored>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl ZstdFrames {
    fn new(stored: BufReader<Stored>) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW_BYTES);
        Self { stored, decoder, in_frame: false }
    }

    /// Opens the next frame that is not to be skipped; `false` at the end of the file.
    fn next_frame(&mut self) -> Result<bool> {
        while !self.stored.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.stored) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let mut skipped = (&mut self.stored).take(length);
                    if std::io::copy(&mut skipped, &mut std::io::sink())? < length {
                        return Err(Error::from(ErrorKind::UnexpectedEof));
                    }
                }
                Err(error @ FrameDecoderError::WindowSizeTooBig { .. }) => {
                    let problem =
                        format!("{error}; compress it with zstd -19 or lower, not --long");
                    return Err(Error::new(ErrorKind::InvalidData, problem));
                }
                Err(error) => return Err(Error::new(ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }

    fn check_sum(&self) -> Result<()> {
        let Some(expected) = self.decoder.get_checksum_from_data() else {
            return Ok(());
        };
        if self.decoder.get_calculated_checksum() == Some(expected) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidData, "the checksum of a frame does not match its bytes"))
    }
}

impl Read for ZstdFrames {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.stored, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(out);
            }
            self.check_sum()?;
            self.in_frame = false;
        }
    }
}
