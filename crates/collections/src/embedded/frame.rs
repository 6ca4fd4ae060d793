//! A frame of a log: a head of 40 bytes, and the changes that were made together as JSON objects, one after the
//! other. The head is the mark, the length of the changes (u32), the number of the frame in the file (u64), the
//! bytes of the file that were synced before (u64), the XXH3 of the changes (u64) and that of the 32 bytes before
//! (u64), all of it little-endian. Heads of the format before lack the bytes that were synced, and are the same
//! otherwise. What the changes say is not known here.

use std::io;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::storage::Stored;

/// Bytes of a frame before its changes, in today's format.
pub(super) const HEAD: usize = 40;
/// Most bytes of the changes of a frame.
const MOST_FRAME: usize = 1 << 30;
/// What the marks of all formats begin with, those of later versions included: then comes a digit.
const FAMILY: &[u8] = b"cgc";

/// A format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    /// The mark at the beginning of every frame.
    pub(super) mark: [u8; 4],
    /// The name of the shape, which the first frame begins with.
    pub(super) name: &'static str,
    /// Bytes of a frame before its changes.
    pub(super) head: usize,
}

pub(super) const TODAY: Format =
    Format { mark: *b"cgc2", name: "cognate-collection-2", head: HEAD };
pub(super) const BEFORE: Format =
    Format { mark: *b"cgc1", name: "cognate-collection-1", head: HEAD - size_of::<u64>() };

/// How a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// As a log of a format that is read here.
    Known(Format),
    /// As a log of a later version, with this mark.
    Newer([u8; TODAY.mark.len()]),
    /// As no log.
    None,
}

/// In which format a file begins; whether its first frame is whole is not looked at.
pub(super) fn format_of(file: &dyn Stored) -> io::Result<Beginning> {
    let mut head = [0; HEAD];
    let read = file.read_at(&mut head, 0)?;
    let head = head.get(..read).unwrap_or_default();
    let Some(mark) = head.first_chunk() else { return Ok(Beginning::None) };
    let formats = [TODAY, BEFORE];
    if let Some(format) = formats.into_iter().find(|format| format.mark == *mark) {
        return Ok(Beginning::Known(format));
    }
    let [.., digit] = mark;
    let is_later = mark.starts_with(FAMILY) && digit.is_ascii_digit() && *mark > TODAY.mark;
    // A head that is whole but for its mark: the digit is what was damaged.
    let is_damaged = formats.iter().any(|format| {
        let whole = [&format.mark, head.get(mark.len()..).unwrap_or_default()].concat();
        format.read_head(&whole).is_some()
    });
    Ok(if is_later && !is_damaged { Beginning::Newer(*mark) } else { Beginning::None })
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of its changes.
    pub(super) length: usize,
    /// Its number in the file, from 0.
    pub(super) number: u64,
    /// Bytes of the file that were synced when it was written; 0 where the format does not say it.
    pub(super) synced: u64,
    /// The checksum of its changes.
    pub(super) sum: u64,
}

impl Head {
    /// The head in today's format that these bytes are, if they are one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        TODAY.read_head(bytes)
    }
}

impl Format {
    /// The head that these bytes are, if they are one.
    pub(super) fn read_head(self, bytes: &[u8]) -> Option<Head> {
        let (head, _) = bytes.split_at_checked(self.head)?;
        let (summed, sum) = head.split_last_chunk()?;
        let (_, changes_sum) = summed.split_last_chunk()?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole = head.starts_with(&self.mark)
            && u64::from_le_bytes(*sum) == xxh3_64(summed)
            && length <= MOST_FRAME;
        let synced = if self == TODAY { eight(16)? } else { 0 };
        let sum = u64::from_le_bytes(*changes_sum);
        whole.then_some(Head { length, number: eight(8)?, synced, sum })
    }

    /// Reads the changes of the next frame; whether it is whole.
    pub(super) fn read_frame(
        self,
        reader: &mut impl Read,
        number: u64,
        left: u64,
        changes: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let Some(left) = left.checked_sub(self.head as u64) else { return Ok(false) };
        let mut head = [0; HEAD];
        let head = head.get_mut(..self.head).unwrap_or_default();
        reader.read_exact(head)?;
        let Some(head) = self.read_head(head).filter(|head| head.number == number) else {
            return Ok(false);
        };
        if head.length as u64 > left {
            return Ok(false);
        }
        changes.clear();
        changes.resize(head.length, 0);
        reader.read_exact(changes)?;
        Ok(xxh3_64(changes) == head.sum)
    }
}

/// Adds a frame to bytes.
pub(super) fn add_frame(
    number: u64,
    synced: u64,
    changes: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "too much is changed at once");
    let length = u32::try_from(changes.len()).ok().filter(|_| changes.len() <= MOST_FRAME);
    let start = out.len();
    out.extend_from_slice(&TODAY.mark);
    out.extend_from_slice(&length.ok_or_else(too_long)?.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&synced.to_le_bytes());
    out.extend_from_slice(&xxh3_64(changes).to_le_bytes());
    let sum = xxh3_64(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(changes);
    Ok(())
}
