//! A file that is written from front to back, packed as its name says.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Result, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes written at a time.
const BUFFER: usize = 1 << 20;
/// Bytes of a zstd frame before it is packed; readers of the format take frames one after another.
const FRAME: usize = 4 << 20;

pub enum Written {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    /// A compressed file: the writer, and the bytes of the next frame.
    Zstd(BufWriter<File>, Vec<u8>),
}

/// Whether a file of this name is packed.
pub fn is_packed(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

impl Written {
    /// Packs by gzip if the name ends in `.gz`, by zstd if it ends in `.zst`.
    pub fn new(file: File, name: &Path) -> Self {
        let file = BufWriter::with_capacity(BUFFER, file);
        match name.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Self::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => Self::Zstd(file, Vec::new()),
            _ => Self::Plain(file),
        }
    }

    pub fn into_file(self) -> Result<File> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.finish()?,
            Self::Zstd(mut file, rest) => {
                file.write_all(&frame(&rest))?;
                file
            }
        };
        file.into_inner().map_err(IntoInnerError::into_error)
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
            Self::Zstd(file, next) => {
                let taken = bytes.get(..FRAME - next.len()).unwrap_or(bytes);
                next.extend_from_slice(taken);
                if next.len() == FRAME {
                    file.write_all(&frame(next))?;
                    next.clear();
                }
                Ok(taken.len())
            }
        }
    }

    /// Frames of zstd that are not full are written at the end.
    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(file) | Self::Zstd(file, _) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Input;

    #[test]
    fn a_file_is_packed_as_its_name_says() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (0..700_000).map(|line| format!("line {line}\n")).collect();
        for (name, packing) in [("a.tsv", None), ("a.gz", Some("gzip")), ("a.zst", Some("zstd"))] {
            for text in [text.as_str(), ""] {
                let path = folder.path().join(name);
                let mut written = Written::new(File::create(&path).unwrap(), &path);
                written.write_all(text.as_bytes()).unwrap();
                written.into_file().unwrap();
                let mut input = Input::open(&path).unwrap();
                assert_eq!(input.packing(), packing);
                assert!(input.read_exact(text.len(), "text").unwrap() == text.as_bytes());
                assert!(input.peek(1).unwrap().is_empty(), "{name}");
            }
        }
    }
}
