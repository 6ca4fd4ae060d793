//! Copies a folder of collections, while a service writes there or not, and reads the copy back
//! before it gets its name.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;

use crate::CollectionError;
use crate::embedded::home::{LOCK, LOG, UNWHOLE, collection_names};
use crate::embedded::items::Items;
use crate::embedded::storage::{LocalStorage, ReadFrom, Storage, is_nothing, open_regular};
use crate::embedded::{replay, storage};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackedUp {
    pub collections: usize,
    pub items: usize,
    pub bytes: u64,
    /// Collections that are not in the copy, and why their logs cannot be read.
    pub left_out: Vec<(String, String)>,
}

/// Copies the collections of a folder to a new folder, and reads them back. The copy has all that
/// was acknowledged before the call, except collections whose logs cannot be read; if there are no
/// others, no copy is made. Once `stop` is set, nothing is left behind.
pub fn back_up(data: &Path, to: &Path, stop: &AtomicBool) -> Result<BackedUp, CollectionError> {
    let write = CollectionError::writing(to);
    let names = collection_names(&LocalStorage, data)?;
    let part = begin(data, to)?;
    let mut done = BackedUp::default();
    let mut unread = None;
    for name in names {
        let (from, copied) = (data.join(&name), part.path().join(&name));
        match copy(&from, &copied, stop) {
            Ok(None) => {}
            Ok(Some((items, bytes))) => {
                done.collections += 1;
                done.items += items;
                done.bytes += bytes;
            }
            Err(_) if stop.load(Ordering::Relaxed) => {
                return Err(write(io::Error::new(io::ErrorKind::Interrupted, "it was stopped")));
            }
            Err(error) if error.log().is_some_and(|log| *log == from.join(LOG)) => {
                match LocalStorage.remove_folder(&copied) {
                    Err(error) if !is_nothing(&error) => return Err(write(error)),
                    _ => done.left_out.push((name, error.to_string())),
                }
                unread = unread.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(error) = unread.filter(|_| done.collections == 0) {
        return Err(error);
    }
    part.finish().map_err(write)?;
    Ok(done)
}

/// Begins a new folder outside the folder of collections, where it would be taken for a collection.
pub(super) fn begin(data: &Path, to: &Path) -> Result<WholeFolder, CollectionError> {
    let failed = CollectionError::writing(to);
    let refused = |kind, problem| Err(failed(io::Error::new(kind, problem)));
    if fs::symlink_metadata(to).is_ok() {
        return refused(io::ErrorKind::AlreadyExists, "it is there already");
    }
    let beside = directory_of(to);
    let is_data = || fs::canonicalize(beside).ok() == fs::canonicalize(data).ok();
    if beside.join(LOCK).exists() || is_data() {
        let problem = "it is among collections; name a place outside their folder";
        return refused(io::ErrorKind::InvalidInput, problem);
    }
    LocalStorage.make_folder(beside).map_err(failed)?;
    WholeFolder::begin(to, UNWHOLE, 0o700).map_err(failed)
}

/// Copies the log of a collection, and reads it back: its items and bytes; `None` if the collection
/// is gone.
fn copy(
    from: &Path,
    to: &Path,
    stop: &AtomicBool,
) -> Result<Option<(usize, u64)>, CollectionError> {
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage);
    let (source, copy) = (from.join(LOG), to.join(LOG));
    let (read, write) = (CollectionError::reading(&source), CollectionError::writing(&copy));
    // Another log may replace this one meanwhile; this file has all that was acknowledged so far.
    let file = match open_regular(OpenOptions::new().read(true), &source) {
        Err(error) if is_nothing(&error) && !from.is_dir() => return Ok(None),
        other => other.map_err(|error| replay::unopened(&source, error))?,
    };
    let length = file.metadata().map_err(read)?.len();
    storage.make_folder(to).map_err(write)?;
    let out = storage.create(&copy).map_err(write)?;
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    };
    let copied = storage::copy(ReadFrom { file: &file, offset: 0 }, length, &*out, go_on);
    copied.and_then(|()| out.sync()).map_err(write)?;
    // Releases the lock.
    drop(out);
    let mut held = Items::default();
    let opened = replay::open(&storage, &copy, |change| held.apply_all([change]));
    let (mut log, cut) = opened.map_err(|error| match error {
        // The copy is damaged because the log is: report the log.
        CollectionError::Damaged { offset, problem, .. } => {
            CollectionError::Damaged { path: source.clone(), offset, problem }
        }
        CollectionError::NewerFormat { offset, problem, .. } => {
            CollectionError::NewerFormat { path: source.clone(), offset, problem }
        }
        other => other,
    })?;
    if let Some(cut) = cut {
        // The frame that the writer was writing at this moment.
        let kept = cut.kept.ok_or_else(|| write(io::ErrorKind::StorageFull.into()))?;
        storage.remove_file(&kept).map_err(write)?;
    }
    log.record()?;
    Ok(Some((held.table.len(), log.length)))
}
