//! Writes a model file, new or extended, so that a reader never sees half of one.
//!
//! Sizes are known before the first byte; digests are taken while the bytes stream to the
//! temporary file and checked once more by reading it back before it gets its name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::model::disk;
use crate::model::disk::{Disk, LocalDisk};
pub use crate::model::draft::{Draft, Source, Stream, Table};
use crate::model::error::ModelError;
use crate::model::format::{
    ALIGNMENT, Dtype, FORMAT, HEADER_DIGEST, NO_DIGEST, PADDING, PREFIX, digest_of_header,
};
pub use crate::model::target::{Target, clash, directory_of};

/// A report of the written file. Its text is the last two lines of a report.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Written {
    /// The file, symbolic links resolved.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The model's fingerprint.
    pub fingerprint: String,
    /// BLAKE3 of the whole file, to pin it in a configuration.
    pub digest: String,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  fingerprint {}\n  digest {}", self.fingerprint, self.digest)
    }
}

impl Draft<'_> {
    /// Writes the draft to `target`, which is replaced only after success.
    pub fn write(self, target: &Path) -> Result<Written, ModelError> {
        let found = Target::follow(target).map_err(ModelError::io(target, "write to"))?;
        let lock = LocalDisk.lock(directory_of(&found.path));
        self.write_locked(&lock.map_err(ModelError::io(target, "write"))?, found)
    }

    /// [`Draft::write`] for a caller that holds the lock on the target's directory.
    pub(super) fn write_locked(
        mut self,
        lock: &<LocalDisk as Disk>::Lock,
        target: Target,
    ) -> Result<Written, ModelError> {
        self.metadata.insert("format".to_owned(), FORMAT.to_owned());
        let first_section =
            self.tables.iter().take_while(|t| !t.name.starts_with("section.")).count();
        if let Some(sections) = self.tables.get_mut(first_section..) {
            sections.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let layout = Layout::new(&self.tables, &self.metadata);
        let written = disk::replace_locked(&LocalDisk, lock, &target, layout.end, |file| {
            layout.fill(file, self.tables)
        });
        let (fingerprint, digest) = written.map_err(ModelError::io(&target.path, "write"))?;
        Ok(Written { path: target.path, bytes: layout.end, fingerprint, digest })
    }
}

/// The layout of the file: names and extents in order, padding included.
struct Layout {
    metadata: BTreeMap<String, String>,
    /// (name, type, shape, from, to), offsets counted from the end of the header.
    entries: Vec<(String, Dtype, Vec<u64>, u64, u64)>,
    header: u64,
    end: u64,
}

impl Layout {
    fn new(tables: &[Table<'_>], metadata: &BTreeMap<String, String>) -> Self {
        let mut metadata = metadata.clone();
        metadata.insert(HEADER_DIGEST.to_owned(), NO_DIGEST.to_owned());
        let mut entries = Vec::new();
        let (mut at, mut paddings): (u64, usize) = (0, 0);
        for table in tables {
            let start = at.next_multiple_of(ALIGNMENT);
            if start > at {
                let name = format!("{PADDING}{paddings}");
                entries.push((name, Dtype::U8, vec![start - at], at, start));
                paddings += 1;
            }
            at = start.saturating_add(table.bytes());
            entries.push((table.name.clone(), table.dtype, table.shape.clone(), start, at));
            metadata.insert(format!("b3.{}", table.name), NO_DIGEST.to_owned());
        }
        let mut layout = Self { metadata, entries, header: 0, end: 0 };
        let json = layout.json(&layout.metadata).len() as u64;
        layout.header = (json + PREFIX).next_multiple_of(ALIGNMENT) - PREFIX;
        layout.end = PREFIX + layout.header + at;
        layout
    }

    /// The header. Its length depends on the layout alone, not on the digests in it.
    fn json(&self, metadata: &BTreeMap<String, String>) -> Vec<u8> {
        let mut json = String::from("{\"__metadata__\":");
        json.push_str(&serde_json::json!(metadata).to_string());
        for (name, dtype, shape, from, to) in &self.entries {
            let entry = serde_json::json!({
                "dtype": dtype, "shape": shape, "data_offsets": [from, to],
            });
            json.push_str(&format!(",{}:{entry}", serde_json::json!(name)));
        }
        json.push('}');
        let mut json = json.into_bytes();
        json.resize(json.len().max(self.header as usize), b' ');
        json
    }

    /// Writes header and tensors and gives back fingerprint and digest of the file.
    fn fill(&self, file: &mut File, tables: Vec<Table<'_>>) -> io::Result<(String, String)> {
        let data_start = PREFIX + self.header;
        file.seek(SeekFrom::Start(data_start))?;
        let mut metadata = self.metadata.clone();
        let mut out = io::BufWriter::with_capacity(1 << 20, &mut *file);
        let mut at = 0;
        let extents = self.entries.iter().filter(|entry| !entry.0.starts_with(PADDING));
        for (table, (name, _, _, from, to)) in tables.into_iter().zip(extents) {
            io::copy(&mut io::repeat(0).take(from - at), &mut out)?;
            let mut hashed = Hashed { out: &mut out, hasher: blake3::Hasher::new(), written: 0 };
            match table.source {
                Source::Bytes(bytes) => hashed.write_all(&bytes)?,
                Source::Stream(mut stream) => stream(&mut hashed)?,
            }
            if hashed.written != to - from {
                let wrong = format!("{name}: {} bytes instead of {}", hashed.written, to - from);
                return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
            }
            metadata.insert(format!("b3.{name}"), hashed.hasher.finalize().to_hex().to_string());
            at = *to;
        }
        out.flush()?;
        drop(out);
        let fingerprint = digest_of_header(&self.json(&metadata)).unwrap_or_default();
        metadata.insert(HEADER_DIGEST.to_owned(), fingerprint.clone());
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&self.header.to_le_bytes())?;
        file.write_all(&self.json(&metadata))?;
        let digest = self.read_back(file, &metadata)?;
        Ok((fingerprint.chars().take(16).collect(), digest))
    }

    /// Reads the file again and compares it with the bytes that were to be written.
    fn read_back(
        &self,
        file: &mut File,
        metadata: &BTreeMap<String, String>,
    ) -> io::Result<String> {
        file.seek(SeekFrom::Start(0))?;
        let mut whole = blake3::Hasher::new();
        let mut header = vec![0; (PREFIX + self.header) as usize];
        file.read_exact(&mut header)?;
        whole.update(&header);
        let mut buffer = vec![0; 1 << 18];
        for (name, _, _, from, to) in &self.entries {
            let mut hasher = blake3::Hasher::new();
            let mut left = to - from;
            while left > 0 {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let chunk = buffer.get_mut(..most).unwrap_or_default();
                file.read_exact(chunk)?;
                hasher.update(chunk);
                whole.update(chunk);
                left -= most as u64;
            }
            let stated = metadata.get(&format!("b3.{name}"));
            if stated.is_some_and(|stated| *stated != hasher.finalize().to_hex().as_str()) {
                let wrong = format!("{name}: the disk gave back other bytes than were written");
                return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
            }
        }
        Ok(whole.finalize().to_hex().to_string())
    }
}

/// Passes bytes on and takes their digest.
struct Hashed<W> {
    out: W,
    hasher: blake3::Hasher,
    written: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
