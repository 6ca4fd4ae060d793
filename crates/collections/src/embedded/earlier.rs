//! Logs of the format before (`cgc1`): who opens one to write it has it written anew in today's format.
//!
//! Their changes are today's, byte for byte, but for the name of the format. A head does not say what was
//! synced, so a frame that is not whole is damage if a whole head of a later frame stands behind it, else
//! what a crash left.

use std::io;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use crate::CollectionError;
use crate::embedded::frame::{BEFORE, TODAY};
use crate::embedded::log::LogCopy;
use crate::embedded::storage::{ReadFrom, Storage, Stored};

/// Writes the log anew in today's format, under a temporary name until it is whole and synced. A crash
/// before that leaves the log as it was. What a crash left at its end is left out.
pub(super) fn convert(
    storage: &Arc<dyn Storage>,
    path: &Path,
    file: &dyn Stored,
) -> Result<(), CollectionError> {
    let mut copy = LogCopy::begin(storage, path)?;
    read(path, file, |changes| copy.append(changes))?;
    copy.into_place()?;
    Ok(())
}

/// Passes on the changes of each frame, as today's format has them.
pub(super) fn read(
    path: &Path,
    file: &dyn Stored,
    mut tell: impl FnMut(&[u8]) -> Result<(), CollectionError>,
) -> Result<(), CollectionError> {
    let failed = |source| CollectionError::Read { path: path.to_owned(), source };
    let damaged = |offset: u64, problem: String| CollectionError::Damaged {
        path: path.to_owned(),
        offset,
        problem,
    };
    let beginning = |name: &str| format!("{{\"format\":\"{name}\"}}").into_bytes();
    let end = file.length().map_err(failed)?;
    let mut reader = BufReader::new(ReadFrom { file, offset: 0 });
    let (mut offset, mut number, mut changes) = (0, 0, Vec::new());
    while BEFORE.read_frame(&mut reader, number, end - offset, &mut changes).map_err(failed)? {
        offset += (BEFORE.head + changes.len()) as u64;
        if number == 0 {
            let rest = changes.strip_prefix(&*beginning(BEFORE.name)).map(<[u8]>::to_vec);
            let other = || damaged(0, "another shape than this version reads".to_owned());
            let rest = rest.ok_or_else(other)?;
            changes = beginning(TODAY.name);
            changes.extend(rest);
        }
        tell(&changes)?;
        number += 1;
    }
    if number == 0 {
        return Err(damaged(0, "the beginning of the log is not whole".to_owned()));
    }
    if let Some(later) = later_head(file, offset, end, number).map_err(failed)? {
        let problem = format!("this frame is damaged, and one behind it, at byte {later}, is not");
        return Err(damaged(offset, problem));
    }
    Ok(())
}

/// The position of a head with a higher number behind a frame that is not whole.
fn later_head(file: &dyn Stored, from: u64, end: u64, number: u64) -> io::Result<Option<u64>> {
    let mut rest = Vec::new();
    ReadFrom { file, offset: from }.take(end - from).read_to_end(&mut rest)?;
    let marks = rest.windows(BEFORE.mark.len()).enumerate().skip(1);
    let mut marks = marks.filter(|(_, four)| **four == BEFORE.mark);
    let later = marks.find(|(place, _)| {
        let head = BEFORE.read_head(rest.get(*place..).unwrap_or_default());
        head.is_some_and(|head| head.number > number)
    });
    Ok(later.map(|(place, _)| from + place as u64))
}
