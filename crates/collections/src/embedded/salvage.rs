//! Reads a damaged log: every whole frame, whatever stands between two of them. The log is
//! unchanged.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use serde::Serialize;

use crate::embedded::backup::begin;
use crate::embedded::frame::{HEAD, at_marks, newer_mark, read_frame};
use crate::embedded::home::LOG;
use crate::embedded::items::Items;
use crate::embedded::log::LogCopy;
use crate::embedded::replay;
use crate::embedded::storage::{LocalStorage, ReadFrom, Storage, Stored, open_regular};
use crate::transaction::Change;
use crate::{CollectionError, Item, Result, check_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub from_byte: u64,
    pub to_byte: u64,
    /// Number of missing writes; unknown at the end of a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_byte, to_byte, writes } = self;
        match writes {
            Some(writes) => write!(f, "missing: {writes} writes, bytes {from_byte} to {to_byte}"),
            None => write!(f, "missing: the end, bytes {from_byte} to {to_byte}"),
        }
    }
}

#[derive(Debug)]
pub struct Salvaged {
    held: Items,
    pub gaps: Vec<Gap>,
}

impl Salvaged {
    pub fn read(data: &Path, name: &str) -> Result<Self> {
        check_name(name)?;
        let path = data.join(name).join(LOG);
        let file = open_regular(OpenOptions::new().read(true), &path)
            .map_err(|error| replay::unopened(&path, error))?;
        let failed = CollectionError::reading(&path);
        let salvaged = Self::from_log(&file).map_err(failed)?;
        let is_without_frames =
            matches!(salvaged.gaps[..], [Gap { from_byte: 0, writes: None, .. }]);
        match is_without_frames && newer_mark(&file).map_err(failed)?.is_some() {
            true => Err(replay::without_beginning(&path, &file)),
            false => Ok(salvaged),
        }
    }

    fn from_log(file: &dyn Stored) -> io::Result<Self> {
        let (end, mut held) = (file.length()?, Items::default());
        let (mut at, mut number, mut gaps) = (0, 0, Vec::new());
        while at < end {
            let found = match whole_frame(file, (at, end), number)? {
                Some(frame) if frame.number == number => Some(frame),
                _ => at_marks(file, at, end, |at| whole_frame(file, (at, end), number))?,
            };
            let (from_byte, to_byte) = (at, found.as_ref().map_or(end, |frame| frame.offset));
            let writes = found.as_ref().map(|frame| frame.number - number);
            if from_byte < to_byte || writes.is_some_and(|missing| missing > 0) {
                gaps.push(Gap { from_byte, to_byte, writes });
            }
            let Some(frame) = found else { break };
            held.apply_all(frame.changes);
            (at, number) = (frame.end, frame.number.saturating_add(1));
        }
        Ok(Self { held, gaps })
    }

    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.held.table.iter().map(|(_, item)| item)
    }

    pub fn write(&self, to: &Path, data: &Path, name: &str) -> Result<()> {
        let (failed, part) = (CollectionError::writing(to), begin(data, to)?);
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage);
        let folder = part.path().join(name);
        storage.make_folder(&folder).map_err(failed)?;
        let items = self.items().map(AsRef::as_ref);
        let log = LogCopy::new(&storage, &folder.join(LOG), self.held.settings, items, 0)?;
        drop(log.into_place()?);
        part.finish().map_err(failed)
    }
}

struct Frame {
    offset: u64,
    end: u64,
    number: u64,
    changes: Vec<Change>,
}

/// Returns the frame at `offset`, if a whole frame begins there and ends before `end`, and its number is
/// large enough.
fn whole_frame(
    file: &dyn Stored,
    (offset, end): (u64, u64),
    least: u64,
) -> io::Result<Option<Frame>> {
    let (mut reader, mut json) = (ReadFrom { file, offset }, Vec::new());
    let head = read_frame(&mut reader, end - offset, &mut json)?;
    let Some(head) = head.filter(|head| head.number >= least) else { return Ok(None) };
    let whole = offset + (HEAD + head.length) as u64;
    let changes = serde_json::Deserializer::from_slice(&json).into_iter::<Change>().collect();
    let changes: Result<Vec<Change>, _> = changes;
    Ok(changes.ok().map(|changes| Frame { offset, end: whole, number: head.number, changes }))
}
