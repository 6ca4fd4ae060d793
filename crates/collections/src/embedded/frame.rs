//! A frame of a log: a head of 40 bytes, and the changes that were made together as JSON objects, one after the
//! other. The head is the mark, the length of the changes (u32), the number of the frame in the file (u64), the
//! bytes of the file that were synced before (u64), the XXH3 of the changes (u64) and that of the 32 bytes before
//! (u64), all of it little-endian. What the changes say is not known here.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

/// The mark at the beginning of every frame.
pub(super) const MARK: [u8; 4] = *b"cgc2";
/// Bytes of a frame before its changes.
pub(super) const HEAD: usize = 40;
/// Bytes of a head before its own checksum.
const SUMMED: usize = 32;
/// Most bytes of the changes of a frame.
pub(super) const MOST_FRAME: usize = 1 << 30;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of its changes.
    pub(super) length: usize,
    /// Its number in the file, from 0.
    pub(super) number: u64,
    /// Bytes of the file that were synced when it was written.
    pub(super) synced: u64,
    /// The checksum of its changes.
    pub(super) sum: u64,
}

impl Head {
    /// The head that these bytes are, if they are one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_at_checked(HEAD)?;
        let (summed, sum) = head.split_at_checked(SUMMED)?;
        let eight =
            |from: usize| Some(u64::from_le_bytes(head.get(from..from + 8)?.try_into().ok()?));
        let length = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let whole =
            head.starts_with(&MARK) && sum == xxh3_64(summed).to_le_bytes() && length <= MOST_FRAME;
        whole.then_some(Self { length, number: eight(8)?, synced: eight(16)?, sum: eight(24)? })
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
