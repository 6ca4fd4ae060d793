//! Copies a folder of collections, while a service writes there or not, and reads the copy back
//! frame by frame before it gets its name. The items are not kept in memory meanwhile: a copy is made
//! beside a service that fills it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io};

use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;
use cognate_files::instant;

use crate::embedded::home::{LOCK, LOG, UNWHOLE, collection_names};
use crate::embedded::storage::{LocalStorage, ReadFrom, Storage, is_nothing, open_regular};
use crate::embedded::{replay, storage};
use crate::{CollectionError, Result};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackedUp {
    pub collections: usize,
    pub bytes: u64,
    /// Collections that are not in the copy, and why their logs cannot be read.
    pub left_out: Vec<(String, String)>,
}

/// Copies the collections of a folder to a new folder, and reads them back. The copy has all that
/// was acknowledged before the call, except collections whose logs cannot be read; if there are no
/// others, no copy is made. Once `stop` is set, nothing is left behind.
pub fn back_up(data: &Path, to: &Path, stop: &AtomicBool) -> Result<BackedUp> {
    let write = CollectionError::writing(to);
    let stopped = || write(io::Error::new(io::ErrorKind::Interrupted, "it was stopped"));
    let names = collection_names(&LocalStorage, data)?;
    let part = begin(data, to)?;
    let mut done = BackedUp::default();
    let mut unread = None;
    for name in names {
        let (from, copied) = (data.join(&name), part.path().join(&name));
        match copy(&from, &copied, stop) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                done.collections += 1;
                done.bytes += bytes;
            }
            Err(_) if stop.load(Ordering::Relaxed) => return Err(stopped()),
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
    if stop.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    part.finish().map_err(write)?;
    Ok(done)
}

/// [`back_up`] into a folder of copies, under the name of this moment, which is returned.
pub fn back_up_among(
    data: &Path,
    copies: &Path,
    now: i64,
    stop: &AtomicBool,
) -> Result<(String, BackedUp)> {
    let name = copy_name(now);
    back_up(data, &copies.join(&name), stop).map(|done| (name, done))
}

/// Removes the oldest copies of a folder until `keep` are left. The newest copy is named, because the
/// clock may have been set back.
pub fn remove_older(copies: &Path, newest: &str, keep: usize) -> Result<()> {
    let mut older = LocalStorage.names(copies).map_err(CollectionError::reading(copies))?;
    older.retain(|other| *other != newest && is_copy_name(other));
    older.sort_unstable();
    let gone = older.len().saturating_sub(keep.saturating_sub(1));
    for other in older.iter().take(gone) {
        // If this process is killed, the next copy removes leftovers under this name.
        let part: PathBuf = copies.join(format!("{UNWHOLE}{other}"));
        let removed = LocalStorage.rename(&copies.join(other), &part);
        let removed = removed.and_then(|()| LocalStorage.remove_folder(&part));
        removed.map_err(CollectionError::writing(&part))?;
    }
    Ok(())
}

/// A time in UTC as a name that sorts by it: `2030-01-02T03-04-05.678Z`.
fn copy_name(now: i64) -> String {
    let second = instant::written(now).replace(':', "-");
    format!("{}.{:03}Z", second.trim_end_matches('Z'), now.rem_euclid(1000))
}

fn is_copy_name(name: &str) -> bool {
    let pattern = copy_name(0);
    let fits = |(byte, like): (u8, u8)| match like.is_ascii_digit() {
        true => byte.is_ascii_digit(),
        false => byte == like,
    };
    name.len() == pattern.len() && name.bytes().zip(pattern.bytes()).all(fits)
}

/// Begins a new folder outside the folder of collections, where it would be taken for a collection.
pub(super) fn begin(data: &Path, to: &Path) -> Result<WholeFolder> {
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

/// Copies the log of a collection, and reads it back: its bytes; `None` if the collection is gone.
fn copy(from: &Path, to: &Path, stop: &AtomicBool) -> Result<Option<u64>> {
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
    let opened = replay::open(&storage, &copy, drop);
    let (mut log, cut) = opened.map_err(|error| match error {
        // The copy is damaged because the log is damaged: report the log.
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
    Ok(Some(log.length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmbeddedHome, Limits, SettingsChange};

    #[test]
    fn copies_have_names_in_their_order_and_the_oldest_leave() {
        let folder = tempfile::tempdir().unwrap();
        let [data, copies] = ["data", "copies"].map(|name| folder.path().join(name));
        let (home, _) = EmbeddedHome::open(&data, Limits::DEFAULT).unwrap();
        home.make("news", SettingsChange::default(), 0).unwrap();
        fs::create_dir_all(copies.join("2030-01-02T03-04-05.678Y")).unwrap();
        let names = || {
            let mut names = LocalStorage.names(&copies).unwrap();
            names.sort_unstable();
            names
        };
        let times = [-1, 0, 999, 1000, 1_893_553_445_678];
        for (made, now) in times.into_iter().enumerate() {
            let (name, done) = back_up_among(&data, &copies, now, &AtomicBool::default()).unwrap();
            remove_older(&copies, &name, 3).unwrap();
            assert_eq!((done.collections, done.left_out.len()), (1, 0));
            assert!(names().contains(&name), "{name}");
            assert_eq!(names().len(), 1 + (made + 1).min(3), "{:?}", names());
        }
        let last =
            ["1970-01-01T00-00-00.999Z", "1970-01-01T00-00-01.000Z", "2030-01-02T03-04-05.678Y"];
        assert_eq!(names(), [&last[..], &["2030-01-02T03-04-05.678Z"]].concat());
        // A clock that was set back does not make the newest copy the removed one.
        let (name, _) = back_up_among(&data, &copies, 5, &AtomicBool::default()).unwrap();
        remove_older(&copies, &name, 1).unwrap();
        assert_eq!(names(), [&*name, "2030-01-02T03-04-05.678Y"]);
        let again = back_up_among(&data, &copies, 5, &AtomicBool::default()).unwrap_err();
        assert!(again.to_string().contains("it is there already"), "{again}");
    }
}
