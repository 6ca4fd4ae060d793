//! A log read from its beginning: its changes in their order, and what a crash left at its end.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64;

use crate::collection::CollectionError;
use crate::collection::log::Change;
use crate::collection::log::FORMAT;
use crate::collection::log::HEAD;
use crate::collection::log::Head;
use crate::collection::log::Log;
use crate::collection::log::MARK;
use crate::collection::log::cut;

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
    path: &Path,
    mut tell: impl FnMut(Change),
) -> Result<(Log, Option<Cut>), CollectionError> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let damaged = |offset: u64, problem: &str| CollectionError::Damaged {
        path: path.to_owned(),
        offset,
        problem: problem.to_owned(),
    };
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    let end = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(WINDOW, &file);
    let (mut offset, mut frames, mut changes) = (0_u64, 0_u64, Vec::new());
    while offset < end {
        if !read_frame(&mut reader, frames, end - offset, &mut changes).map_err(failed)? {
            break;
        }
        let read = serde_json::Deserializer::from_slice(&changes).into_iter::<Change>();
        for (told, change) in read.enumerate() {
            let newer = "its changes cannot be read, as if a newer version had written them";
            let change = change.map_err(|_| damaged(offset, newer))?;
            let is_format = matches!(&change, Change::Format(format) if &**format == FORMAT);
            if (frames, told) == (0, 0) && !is_format {
                return Err(damaged(offset, "another shape than this version reads"));
            }
            tell(change);
        }
        offset += (HEAD + changes.len()) as u64;
        frames += 1;
    }
    drop(reader);
    if frames == 0 {
        return Err(damaged(0, "the beginning of the log is not whole"));
    }
    // A process that was killed may have written it without a sync.
    file.sync_data().map_err(failed)?;
    if offset == end {
        return Ok((Log::at(path.to_owned(), file, offset, frames), None));
    }
    if let Some(whole) = next_frame(&mut file, offset, end, frames).map_err(failed)? {
        let problem = format!("this frame is damaged, and the one at byte {whole} is whole");
        return Err(damaged(offset, &problem));
    }
    let rest = end - offset;
    let write = |source| CollectionError::Write { path: path.to_owned(), source };
    let kept = cut(path, &mut file, offset, rest).map_err(write)?;
    let cut = Cut { path: path.to_owned(), bytes: rest, kept };
    Ok((Log::at(path.to_owned(), file, offset, frames), Some(cut)))
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

/// Where, after a frame that is not whole, the head of a later one stands.
fn next_frame(file: &mut File, from: u64, end: u64, number: u64) -> io::Result<Option<u64>> {
    let (mut at, mut window) = (from + 1, Vec::new());
    loop {
        window.clear();
        file.seek(SeekFrom::Start(at))?;
        Read::by_ref(file).take((WINDOW + HEAD) as u64).read_to_end(&mut window)?;
        let marks = window.windows(MARK.len()).enumerate().filter(|(_, four)| **four == MARK);
        for (place, _) in marks {
            let head = Head::read(window.get(place..).unwrap_or_default());
            // What only looks like a head, in a text for example, has no frame behind it.
            let starts = at + place as u64;
            let fits = |head: &Head| (HEAD + head.length) as u64 <= end.saturating_sub(starts);
            if head.filter(fits).is_some_and(|head| head.number > number) {
                return Ok(Some(starts));
            }
        }
        if window.len() < WINDOW + HEAD {
            return Ok(None);
        }
        at += WINDOW as u64;
    }
}
