//! A file that is written from front to back, compressed or plain.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Result, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes written at a time.
const BUFFER: usize = 1 << 20;

pub enum Written {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Written {
    pub fn new(file: File, packed: bool) -> Self {
        let file = BufWriter::with_capacity(BUFFER, file);
        match packed {
            true => Self::Gzip(GzEncoder::new(file, Compression::default())),
            false => Self::Plain(file),
        }
    }

    pub fn into_file(self) -> Result<File> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.finish()?,
        };
        file.into_inner().map_err(IntoInnerError::into_error)
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}
