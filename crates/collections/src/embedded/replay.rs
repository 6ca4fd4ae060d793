//! Reads a log from its beginning: the changes in order, and what a crash left at the end.

use std::fs::OpenOptions;
use std::io;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::embedded::frame::{FORMAT, HEAD, Head, MARK, at_marks, newer_mark, read_frame};
use crate::embedded::length;
use crate::embedded::length::Length;
use crate::embedded::log::Log;
use crate::embedded::storage::{LocalStorage, ReadFrom, Storage, Stored, is_full, open_regular};
use crate::transaction::Change;
use crate::{CollectionError, Result};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub path: PathBuf,
    pub bytes: u64,
    /// The file with the bytes that were cut off; `None` if the disk has no room for it, so that
    /// they are still at the end of the log, which accepts changes once there is room.
    pub kept: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) frames: u64,
}

impl Place {
    pub(super) fn pass(&mut self, changes: usize) {
        self.offset += (HEAD + changes) as u64;
        self.frames += 1;
    }
}

pub(super) fn open(
    storage: &Arc<dyn Storage>,
    path: &Path,
    tell: impl FnMut(Change),
) -> Result<(Log, Option<Cut>)> {
    let failed = CollectionError::reading(path);
    let file = storage.open(path).map_err(|error| unopened(path, error))?;
    let (Place { offset, frames }, end, known) = read_checked(&**storage, path, &*file, tell)?;
    // A process that was killed may have written it without a sync.
    file.sync().map_err(failed)?;
    let log = Log::at(storage, path, file, (offset, frames)).with_record(known);
    if offset == end {
        return Ok((log, None));
    }
    let bytes = end - offset;
    let mut log = log.with_torn_end(bytes);
    let kept = match log.cut_torn_end() {
        // The log is readable, so it is served.
        Err(CollectionError::Write { source, .. }) if is_full(&source) => None,
        kept => kept?,
    };
    if kept.is_some() {
        let synced = log.file.sync();
        synced.map_err(CollectionError::writing(path))?;
    }
    Ok((log, Some(Cut { path: path.to_owned(), bytes, kept })))
}

/// Reads a log as a start does, and changes nothing; returns the length of its whole frames.
pub(super) fn read_only(path: &Path, tell: impl FnMut(Change)) -> Result<u64> {
    let file = open_regular(OpenOptions::new().read(true), path);
    let file = file.map_err(|error| unopened(path, error))?;
    Ok(read_checked(&LocalStorage, path, &file, tell)?.0.offset)
}

/// Passes on the changes of all whole frames at the beginning, after checking that nothing beyond
/// proves damage; returns where they end, where the file ends, and the synced bytes that the file
/// beside it records.
fn read_checked(
    storage: &dyn Storage,
    path: &Path,
    file: &dyn Stored,
    tell: impl FnMut(Change),
) -> Result<(Place, u64, Option<u64>)> {
    let failed = CollectionError::reading(path);
    // Before the end is read: the log has at least the recorded bytes.
    let known = recorded(storage, path, file)?;
    let end = file.length().map_err(failed)?;
    let at = read(path, file, end, tell)?;
    if let Some(proof) = proof(file, at.offset, end, at.frames).map_err(failed)? {
        return Err(proven_damage(path, at.offset, proof));
    }
    match known.filter(|known| at.offset < *known) {
        Some(known) => Err(damaged(path, at.offset, &length::problem(at.offset, end, known))),
        None => Ok((at, end, known)),
    }
}

/// Synced bytes of a log, as the file beside it records.
pub(super) fn recorded(
    storage: &dyn Storage,
    path: &Path,
    file: &dyn Stored,
) -> Result<Option<u64>> {
    let failed = CollectionError::reading(path);
    if file.length().map_err(failed)? < HEAD as u64 {
        return Ok(None);
    }
    let recorded = Length::known(storage, path, file)?;
    // A log that replaces another may begin with the same frame, and then has a record of its own.
    let is_here = file.is_at(path).map_err(failed)?;
    Ok(recorded.filter(|_| is_here))
}

pub(super) fn unopened(path: &Path, error: io::Error) -> CollectionError {
    let no_log = |problem| CollectionError::NoLog { path: path.to_owned(), problem };
    match error.kind() {
        io::ErrorKind::WouldBlock => CollectionError::InUse { path: path.to_owned() },
        io::ErrorKind::NotFound => no_log("it is missing"),
        io::ErrorKind::InvalidInput => no_log("it is not a regular file"),
        _ => CollectionError::reading(path)(error),
    }
}

/// Passes on the changes of all frames before the first incomplete one; returns its position.
fn read(path: &Path, file: &dyn Stored, end: u64, mut tell: impl FnMut(Change)) -> Result<Place> {
    let failed = CollectionError::reading(path);
    let mut reader = BufReader::with_capacity(PIECE, ReadFrom { file, offset: 0 });
    let (mut at, mut json) = (Place::default(), Vec::new());
    while at.offset < end {
        let left = end - at.offset;
        let head = read_frame(&mut reader, left, &mut json).map_err(failed)?;
        if head.is_none_or(|head| head.number != at.frames) {
            break;
        }
        changes(path, at, &json)?.into_iter().for_each(&mut tell);
        at.pass(json.len());
    }
    if at == Place::default() { Err(without_beginning(path, file)) } else { Ok(at) }
}

pub(super) fn without_beginning(path: &Path, file: &dyn Stored) -> CollectionError {
    match newer_mark(file) {
        Ok(Some(mark)) => {
            let [mark, own] = [mark, MARK].map(|mark| mark.escape_ascii().to_string());
            newer(path, 0, &format!("it begins with `{mark}`, where `{own}` is read"))
        }
        Ok(None) => damaged(path, 0, "the beginning of the log is not whole"),
        Err(error) => CollectionError::reading(path)(error),
    }
}

pub(super) fn changes(
    path: &Path,
    Place { offset, frames }: Place,
    json: &[u8],
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for change in serde_json::Deserializer::from_slice(json).into_iter::<Change>() {
        let problem = "the frame is whole, and its changes cannot be read";
        changes.push(change.map_err(|_| newer(path, offset, problem))?);
    }
    let is_format = matches!(changes.first(), Some(Change::Format(format)) if &**format == FORMAT);
    match frames == 0 && !changes.is_empty() && !is_format {
        true => Err(newer(path, offset, "its shape is another than this version reads")),
        false => Ok(changes),
    }
}

/// The error of an incomplete frame that was synced, as a later frame states.
pub(super) fn proven_damage(path: &Path, offset: u64, proof: u64) -> CollectionError {
    let problem = format!("this frame is damaged: the one at byte {proof} says it was synced");
    damaged(path, offset, &problem)
}

fn newer(path: &Path, offset: u64, problem: &str) -> CollectionError {
    CollectionError::NewerFormat { path: path.to_owned(), offset, problem: problem.to_owned() }
}

pub(super) fn damaged(path: &Path, offset: u64, problem: &str) -> CollectionError {
    CollectionError::Damaged { path: path.to_owned(), offset, problem: problem.to_owned() }
}

/// Offset of a head which states that more than the first `from` bytes were synced, where the frame
/// of this number is incomplete. No text looks like a head: JSON has no byte 0.
pub(super) fn proof(
    file: &dyn Stored,
    from: u64,
    end: u64,
    number: u64,
) -> io::Result<Option<u64>> {
    at_marks(file, from, end, |at| {
        let head = Head::at(file, at)?.filter(|_| at + HEAD as u64 <= end);
        let is_proof = |head: Head| head.number >= number && head.synced > from;
        Ok(head.is_some_and(is_proof).then_some(at))
    })
}
