//! A frame of a log: a head of 40 bytes, and changes that were made together as JSON objects, one
//! after the other. The head is the mark, the length of the changes (u32), the number of the frame
//! in the file (u64), the bytes of the file that were synced before (u64), the XXH3 of the changes
//! (u64) and that of the preceding 32 bytes (u64), all little-endian. This module does not know
//! what the changes mean.

use std::io;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::storage::{ReadFrom, Stored};

/// Bytes of a frame before its changes.
pub(super) const HEAD: usize = 40;
pub(super) const MARK: [u8; 4] = *b"cgc2";
/// The name of the format, with which the first frame begins.
pub(super) const FORMAT: &str = "cognate-collection-2";
const MAX_FRAME: usize = 1 << 30;
/// Bytes that are searched at a time for the next frame.
const WINDOW: usize = 1 << 20;
/// The common prefix of the marks of all formats; a digit follows.
const FAMILY: &[u8] = b"cgc";

/// The mark of a later format, if the file begins with one.
pub(super) fn newer_mark(file: &dyn Stored) -> io::Result<Option<[u8; MARK.len()]>> {
    let mut head = [0; HEAD];
    let read = file.read_at(&mut head, 0)?;
    let mut head = head.get(..read).unwrap_or_default().to_vec();
    let Some(mark) = head.first_chunk_mut() else { return Ok(None) };
    let found = std::mem::replace(mark, MARK);
    let [.., digit] = found;
    let is_later = found.starts_with(FAMILY) && digit.is_ascii_digit() && found > MARK;
    // A head that is whole except for its mark has a damaged digit.
    Ok((is_later && Head::read(&head).is_none()).then_some(found))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    /// The frame's number in the file, from 0.
    pub(super) number: u64,
    /// Bytes of the file that were synced when the frame was written.
    pub(super) synced: u64,
    pub(super) sum: u64,
}

impl Head {
    /// The head at this offset of a file.
    pub(super) fn at(file: &dyn Stored, offset: u64) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD];
        let read = file.read_at(&mut head, offset)?;
        Ok(Self::read(head.get(..read).unwrap_or_default()))
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let (summed, sum) = head.split_last_chunk()?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole = head.starts_with(&MARK)
            && u64::from_le_bytes(*sum) == xxh3_64(summed)
            && length <= MAX_FRAME;
        whole.then_some(Self { length, number: eight(8)?, synced: eight(16)?, sum: eight(24)? })
    }
}

/// Reads the changes of the next frame, of a file that has `left` more bytes; returns its head, if
/// the frame is whole.
pub(super) fn read_frame(
    reader: &mut impl Read,
    left: u64,
    changes: &mut Vec<u8>,
) -> io::Result<Option<Head>> {
    let Some(left) = left.checked_sub(HEAD as u64) else { return Ok(None) };
    let mut head = [0; HEAD];
    reader.read_exact(&mut head)?;
    let Some(head) = Head::read(&head).filter(|head| head.length as u64 <= left) else {
        return Ok(None);
    };
    changes.clear();
    changes.resize(head.length, 0);
    reader.read_exact(changes)?;
    Ok((xxh3_64(changes) == head.sum).then_some(head))
}

/// The first result that `find` has at a mark of a frame between two offsets.
pub(super) fn at_marks<T>(
    file: &dyn Stored,
    from: u64,
    end: u64,
    mut find: impl FnMut(u64) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let (mut at, mut window) = (from, Vec::new());
    while at < end {
        window.clear();
        // If another process writes, bytes beyond `end` are newer.
        let most = (end - at).min((WINDOW + MARK.len() - 1) as u64);
        ReadFrom { file, offset: at }.take(most).read_to_end(&mut window)?;
        for (place, _) in window.windows(MARK.len()).enumerate().filter(|(_, four)| **four == MARK)
        {
            let found = find(at + place as u64)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        at += WINDOW as u64;
    }
    Ok(None)
}

pub(super) fn add_frame(
    number: u64,
    synced: u64,
    changes: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "too much is changed at once");
    let length = u32::try_from(changes.len()).ok().filter(|_| changes.len() <= MAX_FRAME);
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&length.ok_or_else(too_long)?.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&synced.to_le_bytes());
    out.extend_from_slice(&xxh3_64(changes).to_le_bytes());
    let sum = xxh3_64(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(changes);
    Ok(())
}
