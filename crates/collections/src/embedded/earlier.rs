//! Logs of the format before (`cgc1`): who opens one to write it has it written anew in today's format.
//!
//! Their changes are today's, byte for byte, but for the name of the format. A frame's head is 32 bytes:
//! the mark, the length of the changes (u32), the number of the frame (u64), the XXH3 of the changes (u64)
//! and that of the 24 bytes before (u64), all of it little-endian. It does not say what was synced, so a
//! frame that is not whole is damage if a whole head of a later frame stands behind it, else what a
//! crash left.

use std::io;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::CollectionError;
use crate::embedded::frame::MOST_FRAME;
use crate::embedded::log::{FORMAT, LogCopy};
use crate::embedded::storage::{ReadFrom, Storage, Stored};

/// The mark at the beginning of every frame.
pub(super) const MARK: [u8; 4] = *b"cgc1";
/// The first change.
const BEGINNING: &[u8] = b"{\"format\":\"cognate-collection-1\"}";
/// Bytes of a frame before its changes.
const HEAD: usize = 32;
/// Bytes of a head before its own checksum.
const SUMMED: usize = 24;

/// The head of a frame.
struct Head {
    length: usize,
    number: u64,
    sum: u64,
}

impl Head {
    /// The head that these bytes are, if they are one.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_at_checked(HEAD)?;
        let (summed, sum) = head.split_at_checked(SUMMED)?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole =
            head.starts_with(&MARK) && sum == xxh3_64(summed).to_le_bytes() && length <= MOST_FRAME;
        whole.then_some(Self { length, number: eight(8)?, sum: eight(16)? })
    }
}

/// Whether a file begins as a log of this format does.
pub(super) fn is_earlier(file: &dyn Stored) -> io::Result<bool> {
    let mut mark = [0; MARK.len()];
    Ok(file.read_at(&mut mark, 0)? == mark.len() && mark == MARK)
}

/// Writes the log anew in today's format, under a temporary name until it is whole and synced. A crash
/// before that leaves the log as it was. What a crash left at its end is left out.
pub(super) fn convert(
    storage: &Arc<dyn Storage>,
    path: &Path,
    file: &dyn Stored,
) -> Result<(), CollectionError> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let damaged = |offset: u64, problem: String| CollectionError::Damaged {
        path: path.to_owned(),
        offset,
        problem,
    };
    let end = file.length().map_err(failed)?;
    let mut reader = BufReader::new(ReadFrom { file, offset: 0 });
    let mut copy = LogCopy::begin(storage, path)?;
    let (mut offset, mut number, mut changes) = (0, 0, Vec::new());
    while read_frame(&mut reader, number, end - offset, &mut changes).map_err(failed)? {
        offset += (HEAD + changes.len()) as u64;
        if number == 0 {
            let rest = changes.strip_prefix(BEGINNING).map(<[u8]>::to_vec);
            let other = || damaged(0, "another shape than this version reads".to_owned());
            let rest = rest.ok_or_else(other)?;
            changes = format!("{{\"format\":\"{FORMAT}\"}}").into_bytes();
            changes.extend(rest);
        }
        copy.append(&changes)?;
        number += 1;
    }
    if number == 0 {
        return Err(damaged(0, "the beginning of the log is not whole".to_owned()));
    }
    if let Some(later) = later_head(file, offset, end, number).map_err(failed)? {
        let problem = format!("this frame is damaged, and one behind it, at byte {later}, is not");
        return Err(damaged(offset, problem));
    }
    copy.into_place()?;
    Ok(())
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

/// The position of a head with a higher number behind a frame that is not whole.
fn later_head(file: &dyn Stored, from: u64, end: u64, number: u64) -> io::Result<Option<u64>> {
    let mut rest = Vec::new();
    ReadFrom { file, offset: from }.take(end - from).read_to_end(&mut rest)?;
    let mut marks = rest.windows(MARK.len()).enumerate().skip(1).filter(|(_, four)| **four == MARK);
    let later = marks.find(|(place, _)| {
        let head = Head::read(rest.get(*place..).unwrap_or_default());
        head.is_some_and(|head| head.number > number)
    });
    Ok(later.map(|(place, _)| from + place as u64))
}
