//! The bytes of a model file in memory, mapped or copied.
//!
//! Why mapping is `unsafe`, and who takes the risk: another process may shrink or overwrite the
//! file under the map. Shrinking ends this process with SIGBUS, overwriting changes scores.
//! Everything cognate writes goes to a new file that is renamed into place, which leaves the old
//! bytes alone; who must live with other writers chooses [`Storage::Copy`].
//! Which bytes mean what is not known here.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{Mmap, MmapMut, MmapOptions};

use crate::model::error::ModelError;
use crate::model::options::Storage;
use crate::model::origin::Origin;
use crate::model::sigbus::RegisteredMap;

/// The smallest file that can hold a header.
pub const MIN_BYTES: u64 = 64;

/// A model file's bytes, the first at an address that is a multiple of 64.
#[derive(Debug)]
pub struct Mapping {
    /// The message for the case that another process truncates the file. Dropped before the map.
    known: Option<RegisteredMap>,
    map: Mmap,
    origin: Origin,
}

impl Mapping {
    /// Opens a regular file of at most `most` bytes. Pipes, devices and directories are refused
    /// without waiting for them.
    pub fn open(path: &Path, storage: Storage, most: u64) -> Result<Self, ModelError> {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map_err(ModelError::io(path, "open"))?;
        let found = file.metadata().map_err(ModelError::io(path, "look at"))?;
        if !found.is_file() {
            return Err(ModelError::NotAFile { path: path.to_owned(), found: kind(&found) });
        }
        let size = found.len();
        if !(MIN_BYTES..=most).contains(&size) {
            let path = path.to_owned();
            return Err(ModelError::Size { path, least: MIN_BYTES, most, got: size });
        }
        let (known, map) = match storage {
            Storage::Copy => (None, copied(&file, size).map_err(ModelError::io(path, "copy"))?),
            Storage::Map => {
                // SAFETY: the map is read-only and private to this value; that nobody shrinks or
                // overwrites the file meanwhile is the promise stated at the top of this file.
                let map = unsafe { MmapOptions::new().map_copy_read_only(&file) }
                    .map_err(ModelError::io(path, "map"))?;
                (Some(RegisteredMap::new(path, &map)), map)
            }
        };
        let mapping = Self { known, map, origin: Origin::new(file, &found) };
        if mapping.as_slice().len() as u64 != size || !mapping.untouched() {
            return Err(ModelError::Changed { path: path.to_owned() });
        }
        Ok(mapping)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.map
    }

    /// Whether nobody wrote to the file behind the bytes since it was opened or last looked at.
    pub fn untouched(&self) -> bool {
        self.origin.untouched()
    }

    /// The file, if writing to it changes the bytes: a copy has nothing to fear.
    pub(super) fn file_under_map(&self) -> Option<&Origin> {
        self.known.as_ref().map(|_| &self.origin)
    }

    /// Brings `range` into memory now. A file cut short under the map is an error here, where a
    /// touch of the missing page would be a signal. Where the system cannot do that, pages come in as they are
    /// touched.
    pub fn populate(&self, range: std::ops::Range<usize>) -> std::io::Result<()> {
        let page = rustix::param::page_size();
        let start = range.start / page * page;
        let end = range.end.min(self.map.len());
        let Some(length) = end.checked_sub(start).filter(|&length| length > 0) else {
            return Ok(());
        };
        let address = self.map.as_ptr().wrapping_add(start).cast_mut().cast();
        #[cfg(target_os = "linux")]
        let advice = rustix::mm::Advice::LinuxPopulateRead;
        #[cfg(not(target_os = "linux"))]
        let advice = rustix::mm::Advice::WillNeed;
        // SAFETY: `address..address + length` lies within the map, which outlives the call, and
        // neither advice changes a byte.
        match unsafe { rustix::mm::madvise(address, length, advice) } {
            // Kernels before 5.14 do not know it; pages then come in as they are touched.
            Err(rustix::io::Errno::INVAL) => Ok(()),
            other => other.map_err(std::io::Error::from),
        }
    }
}

fn kind(found: &std::fs::Metadata) -> &'static str {
    let kind = found.file_type();
    match () {
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () if kind.is_char_device() || kind.is_block_device() => "device",
        () => "special file",
    }
}

/// Copies the file into memory of this process alone, which is then only read. Large pages, where
/// the system has them for who asks: words and rows lie all over the file, and with small pages
/// finding their addresses would take as long as fetching them.
fn copied(file: &File, size: u64) -> std::io::Result<Mmap> {
    // `Storage` and the file limit decide what is copied; a file beyond the address space is refused here.
    let length = usize::try_from(size).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    let mut memory = MmapMut::map_anon(length)?;
    // A kernel without large pages says so, and that is no fault.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(Advice::HugePage);
    let mut file = file;
    file.read_exact(&mut memory)?;
    memory.make_read_only()
}
