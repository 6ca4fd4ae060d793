//! A log read from its beginning: its changes in their order, and what a crash left at its end.

use std::io;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64;

use crate::collection::CollectionError;
use crate::collection::embedded::frame::HEAD;
use crate::collection::embedded::frame::Head;
use crate::collection::embedded::frame::MARK;
use crate::collection::embedded::frame::OLD_MARK;
use crate::collection::embedded::log::Change;
use crate::collection::embedded::log::FORMAT;
use crate::collection::embedded::log::Log;
use crate::collection::embedded::log::cut;
use crate::collection::embedded::storage::ReadFrom;
use crate::collection::embedded::storage::Storage;
use crate::collection::embedded::storage::Stored;

/// Bytes that are looked through at once for another frame.
const WINDOW: usize = 1 << 20;

/// The unwhole end of a log that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The log.
    pub path: PathBuf,
    /// Bytes that were cut off.
    pub bytes: u64,
    /// Where they are kept.
    pub kept: PathBuf,
}

/// Opens a log and tells each of its changes.
pub(super) fn open(
    storage: &dyn Storage,
    path: &Path,
    tell: impl FnMut(Change),
) -> Result<(Log, Option<Cut>), CollectionError> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let file = storage.open(path).map_err(failed)?;
    let end = file.length().map_err(failed)?;
    let (offset, frames) = read(path, &*file, end, tell)?;
    // A process that was killed may have written it without a sync.
    file.sync().map_err(failed)?;
    if offset == end {
        return Ok((Log::at(path.to_owned(), file, offset, frames), None));
    }
    if let Some(proof) = proof(&*file, offset, end, frames).map_err(failed)? {
        let problem = format!("this frame is damaged: the one at byte {proof} says it was synced");
        return Err(damaged(path, offset, &problem));
    }
    let bytes = end - offset;
    let write = |source| CollectionError::Write { path: path.to_owned(), source };
    let kept = cut(storage, path, &*file, (offset, bytes)).map_err(write)?;
    let cut = Cut { path: path.to_owned(), bytes, kept };
    Ok((Log::at(path.to_owned(), file, offset, frames), Some(cut)))
}

/// Tells the changes of all frames up to one that is not whole; where that is, and how many are before.
fn read(
    path: &Path,
    file: &dyn Stored,
    end: u64,
    mut tell: impl FnMut(Change),
) -> Result<(u64, u64), CollectionError> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let mut reader = BufReader::with_capacity(WINDOW, ReadFrom { file, offset: 0 });
    let (mut offset, mut frames, mut changes) = (0_u64, 0_u64, Vec::new());
    while offset < end {
        if !read_frame(&mut reader, frames, end - offset, &mut changes).map_err(failed)? {
            break;
        }
        let read = serde_json::Deserializer::from_slice(&changes).into_iter::<Change>();
        for (told, change) in read.enumerate() {
            let newer = "its changes cannot be read, as if a newer version had written them";
            let change = change.map_err(|_| damaged(path, offset, newer))?;
            let is_format = matches!(&change, Change::Format(format) if &**format == FORMAT);
            if (frames, told) == (0, 0) && !is_format {
                return Err(damaged(path, offset, "another shape than this version reads"));
            }
            tell(change);
        }
        offset += (HEAD + changes.len()) as u64;
        frames += 1;
    }
    if frames > 0 {
        return Ok((offset, frames));
    }
    let mut mark = [0; OLD_MARK.len()];
    let is_old = file.read_at(&mut mark, 0).map_err(failed)? == mark.len() && mark == OLD_MARK;
    let problem = match is_old {
        true => "an older version wrote it, whose logs this one does not read",
        false => "the beginning of the log is not whole",
    };
    Err(damaged(path, 0, problem))
}

fn damaged(path: &Path, offset: u64, problem: &str) -> CollectionError {
    CollectionError::Damaged { path: path.to_owned(), offset, problem: problem.to_owned() }
}

/// Reads the changes of the next frame; whether it is whole.
fn read_frame(
    reader: &mut impl Read,
    number: u64,
    left: u64,
    changes: &mut Vec<u8>,
) -> io::Result<bool> {
    let mut head = [0; HEAD];
    if left < HEAD as u64 {
        return Ok(false);
    }
    reader.read_exact(&mut head)?;
    let Some(head) = Head::read(&head).filter(|head| head.number == number) else {
        return Ok(false);
    };
    if head.length as u64 > left - HEAD as u64 {
        return Ok(false);
    }
    changes.clear();
    changes.resize(head.length, 0);
    reader.read_exact(changes)?;
    Ok(xxh3_64(changes) == head.sum)
}

/// Where the head of a frame stands which says that more was synced than the bytes before `from`, where
/// a frame of this number is not whole. No text looks like a head: JSON has no byte 0.
fn proof(file: &dyn Stored, from: u64, end: u64, number: u64) -> io::Result<Option<u64>> {
    let (mut at, mut window) = (from, Vec::new());
    while at < end {
        window.clear();
        let mut reader = ReadFrom { file, offset: at };
        Read::by_ref(&mut reader).take((WINDOW + HEAD) as u64).read_to_end(&mut window)?;
        let marks = window.windows(MARK.len()).enumerate().filter(|(_, four)| **four == MARK);
        for (place, _) in marks {
            let head = Head::read(window.get(place..).unwrap_or_default());
            if head.is_some_and(|head| head.number >= number && head.synced > from) {
                return Ok(Some(at + place as u64));
            }
        }
        at += WINDOW as u64;
    }
    Ok(None)
}
