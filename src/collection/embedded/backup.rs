//! A copy of a folder of collections, while a service writes there or not, and read back before it has
//! its name.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use crate::collection::Applied;
use crate::collection::CollectionError;
use crate::collection::check_name;
use crate::collection::embedded::folder::LOG;
use crate::collection::embedded::folder::UNWHOLE;
use crate::collection::embedded::held::Held;
use crate::collection::embedded::replay;
use crate::collection::embedded::storage::LocalStorage;
use crate::collection::embedded::storage::Storage;
use crate::model::target::directory_of;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackedUp {
    /// Collections.
    pub collections: usize,
    /// Items of all of them.
    pub items: usize,
    /// Bytes of their logs.
    pub bytes: u64,
}

/// Copies the collections of a folder to another, which is not there yet, and reads them back. All that
/// was acknowledged before this began is in the copy.
pub fn back_up(data: &Path, to: &Path) -> Result<BackedUp, CollectionError> {
    let write = |source| CollectionError::Write { path: to.to_owned(), source };
    let read = |source| CollectionError::Read { path: data.to_owned(), source };
    if fs::symlink_metadata(to).is_ok() {
        return Err(write(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already")));
    }
    let storage = LocalStorage;
    let names = storage.names(data).map_err(read)?;
    let part = part_of(to).map_err(write)?;
    storage.make_folder(&part).map_err(write)?;
    let copied = names.iter().filter(|name| check_name(name).is_ok()).try_fold(
        BackedUp::default(),
        |mut done, name| {
            if let Some((items, bytes)) = copy(&storage, &data.join(name), &part.join(name))? {
                done.collections += 1;
                done.items += items;
                done.bytes += bytes;
            }
            Ok(done)
        },
    );
    let named = copied.and_then(|done| {
        storage.sync_folder(&part).map_err(write)?;
        storage.rename(&part, to).map_err(write)?;
        storage.sync_folder(directory_of(to)).map_err(write)?;
        Ok(done)
    });
    named.inspect_err(|_| drop(storage.remove_folder(&part)))
}

/// Copies the log of a collection, and reads it back: its items and bytes; nothing where there is none, or
/// none any more.
fn copy(
    storage: &LocalStorage,
    from: &Path,
    to: &Path,
) -> Result<Option<(usize, u64)>, CollectionError> {
    let (source, copy) = (from.join(LOG), to.join(LOG));
    let read = |error| CollectionError::Read { path: source.clone(), source: error };
    let write = |error| CollectionError::Write { path: copy.clone(), source: error };
    // Whatever takes its place meanwhile, this is what was acknowledged so far.
    let mut file = match File::open(&source) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(read)?,
    };
    let length = file.metadata().map_err(read)?.len();
    storage.make_folder(to).map_err(write)?;
    let out = storage.create(&copy).map_err(write)?;
    let (mut piece, mut done) = (vec![0; PIECE], 0);
    while done < length {
        let most = usize::try_from(length - done).unwrap_or(PIECE).min(PIECE);
        let read = file.read(piece.get_mut(..most).unwrap_or_default()).map_err(read)?;
        if read == 0 {
            break;
        }
        out.write_at(piece.get(..read).unwrap_or_default(), done).map_err(write)?;
        done += read as u64;
    }
    out.sync().map_err(write)?;
    let (mut held, mut applied) = (Held::default(), Applied::default());
    let opened = replay::open(storage, &copy, |change| held.apply(change, &mut applied));
    let (log, cut) = opened.map_err(|error| match error {
        // The copy is as the log is, which is what has to be known.
        CollectionError::Damaged { offset, problem, .. } => {
            CollectionError::Damaged { path: source.clone(), offset, problem }
        }
        other => other,
    })?;
    if let Some(cut) = cut {
        // What was being written at this moment.
        storage.remove_file(&cut.kept).map_err(write)?;
    }
    storage.sync_folder(to).map_err(write)?;
    Ok(Some((held.table.len(), log.length())))
}

/// Where a copy is made before it has its name.
fn part_of(to: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("{UNWHOLE}{:016x}", u64::from_ne_bytes(random));
    Ok(directory_of(to).join(name))
}
