//! The recorded minimum length of a log, in a file beside it, so that a log that was truncated at
//! the end of a frame is told from a complete one.
//!
//! The file holds one frame (`frame`). Its head records how many bytes of the log were synced;
//! instead of changes it has the head of the log's first frame, so that it does not apply to
//! another log that was put there. A rewritten log may begin with the same frame, so the file is
//! removed before.

use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use cognate::model::writer::directory_of;
use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::frame::{HEAD, Head, add_frame};
use crate::embedded::storage::{ReadFrom, Storage, Stored, is_nothing};
use crate::{CollectionError, Result};

/// File beside the log that records its synced length.
const NAME: &str = "items.length";
const UNWHOLE: &str = "items.length-new";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    pub(super) bytes: u64,
    first: [u8; HEAD],
}

impl Length {
    pub(super) fn new(log: &dyn Stored, bytes: u64) -> io::Result<Self> {
        Ok(Self { bytes, first: first_head(log)? })
    }

    /// The recorded length of a log; `None` if no file records it.
    pub(super) fn known(
        storage: &dyn Storage,
        path: &Path,
        log: &dyn Stored,
    ) -> Result<Option<u64>> {
        let file = beside(path, NAME);
        let known = Self::read(storage, &file).map_err(CollectionError::reading(&file))?;
        let failed = CollectionError::reading(path);
        match known {
            Some(known) if known.first == first_head(log).map_err(failed)? => Ok(Some(known.bytes)),
            _ => Ok(None),
        }
    }

    fn read(storage: &dyn Storage, file: &Path) -> io::Result<Option<Self>> {
        let file = match storage.read(file) {
            Err(error) if is_nothing(&error) => return Ok(None),
            other => other?,
        };
        let mut bytes = Vec::new();
        let from = ReadFrom { file: &*file, offset: 0 };
        from.take(2 * HEAD as u64 + 1).read_to_end(&mut bytes)?;
        let (head, first) = bytes.split_at_checked(HEAD).unwrap_or_default();
        let said = Head::read(head).zip(<[u8; HEAD]>::try_from(first).ok());
        let said = said.filter(|(head, first)| head.sum == xxh3_64(first));
        Ok(said.map(|(head, first)| Self { bytes: head.synced, first }))
    }

    pub(super) fn write(&self, storage: &dyn Storage, log: &Path) -> io::Result<()> {
        let (unwhole, mut bytes) = (beside(log, UNWHOLE), Vec::new());
        add_frame(0, self.bytes, &self.first, &mut bytes)?;
        let file = storage.create(&unwhole)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
        // If a power failure undoes the rename, the earlier record is smaller, and still true.
        storage.rename(&unwhole, &beside(log, NAME))
    }

    /// Removes the record of a log, durably.
    pub(super) fn forget(storage: &dyn Storage, log: &Path) -> io::Result<()> {
        match storage.remove_file(&beside(log, NAME)) {
            Err(error) if is_nothing(&error) => Ok(()),
            removed => removed.and_then(|()| storage.sync_folder(directory_of(log))),
        }
    }
}

fn first_head(log: &dyn Stored) -> io::Result<[u8; HEAD]> {
    let mut head = [0; HEAD];
    let mut from = ReadFrom { file: log, offset: 0 };
    from.read_exact(&mut head)?;
    Ok(head)
}

fn beside(log: &Path, name: &str) -> PathBuf {
    log.with_file_name(name)
}

/// The problem of a log that ends after `end` bytes, whose frame after `whole` bytes is incomplete
/// or missing.
pub(super) fn problem(whole: u64, end: u64, known: u64) -> String {
    match known.checked_sub(end).filter(|missing| *missing > 0) {
        Some(missing) => format!(
            "{missing} bytes are missing, as where a copy was interrupted: the log has {end} bytes, and \
             {NAME} beside it says that it had {known} (to go on with what is there, remove {NAME})"
        ),
        None => format!(
            "the frame at byte {whole} is damaged: {NAME} beside the log says that the first {known} \
             bytes of it were synced"
        ),
    }
}
