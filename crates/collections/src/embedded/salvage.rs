//! What can be read of a damaged log: every whole frame, whatever stands between two of them. The log is
//! left as it is.

use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cognate::model::whole_folder::WholeFolder;
use cognate::model::writer::directory_of;
use xxhash_rust::xxh3::xxh3_64;

use crate::embedded::backup::check_place;
use crate::embedded::frame::{BEFORE, Beginning, Format, HEAD, TODAY, format_of};
use crate::embedded::home::{LOG, UNWHOLE};
use crate::embedded::items::Items;
use crate::embedded::log::{Change, LogCopy};
use crate::embedded::replay;
use crate::embedded::storage::{LocalStorage, ReadFrom, Storage, Stored, open_regular};
use crate::{CollectionError, Item, check_name};

/// Bytes that are looked through at once for another frame.
const WINDOW: usize = 1 << 20;

/// A part of a log that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The bytes from here to there.
    pub from: u64,
    pub to: u64,
    /// Writes that are missing; not known at the end of a log.
    pub writes: Option<u64>,
}

/// What could be read of a damaged log.
#[derive(Debug)]
pub struct Salvaged {
    held: Items,
    pub gaps: Vec<Gap>,
}

impl Salvaged {
    /// Reads what can be read of the log of a collection in a folder.
    pub fn read(data: &Path, name: &str) -> Result<Self, CollectionError> {
        check_name(name)?;
        let path = data.join(name).join(LOG);
        let file = open_regular(OpenOptions::new().read(true), &path)
            .map_err(|error| replay::unopened(&path, error))?;
        let failed = |source| CollectionError::Read { path: path.clone(), source };
        let of = |format| Self::of(&file, format).map_err(failed);
        match format_of(&file).map_err(failed)? {
            Beginning::Known(format) => of(format),
            // Of a damaged beginning the frames behind it say what it was.
            beginning => match (of(TODAY)?, beginning) {
                (today, _) if !today.is_without_frames() => Ok(today),
                (_, Beginning::Newer(mark)) => Err(replay::newer_mark(&path, mark)),
                _ => of(BEFORE),
            },
        }
    }

    fn is_without_frames(&self) -> bool {
        matches!(&self.gaps[..], [Gap { from: 0, writes: None, .. }])
    }

    fn of(file: &dyn Stored, format: Format) -> io::Result<Self> {
        let (end, mut held) = (file.length()?, Items::default());
        let (mut at, mut number, mut gaps) = (0, 0, Vec::new());
        while at < end {
            let found = match whole_frame(file, format, (at, end), number)? {
                Some(frame) if frame.number == number => Some(frame),
                _ => next_frame(file, format, (at, end), number)?,
            };
            let (from, to) = (at, found.as_ref().map_or(end, |frame| frame.offset));
            let writes = found.as_ref().map(|frame| frame.number - number);
            if from < to || writes.is_some_and(|missing| missing > 0) {
                gaps.push(Gap { from, to, writes });
            }
            let Some(frame) = found else { break };
            held.apply_all(frame.changes);
            (at, number) = (frame.end, frame.number.saturating_add(1));
        }
        Ok(Self { held, gaps })
    }

    /// The items, in the order in which they were added.
    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.held.table.iter().map(|(_, item)| item)
    }

    /// Writes them as a collection of this name in a folder that is not there yet.
    pub fn write(&self, to: &Path, data: &Path, name: &str) -> Result<(), CollectionError> {
        let failed = |source| CollectionError::Write { path: to.to_owned(), source };
        if std::fs::symlink_metadata(to).is_ok() {
            return Err(failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it is there already",
            )));
        }
        check_place(data, to).map_err(failed)?;
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage);
        storage.make_folder(directory_of(to)).map_err(failed)?;
        let part = WholeFolder::begin(to, UNWHOLE, 0o700).map_err(failed)?;
        let folder = part.path().join(name);
        storage.make_folder(&folder).map_err(failed)?;
        let items = self.items().map(AsRef::as_ref);
        let log = LogCopy::of(&storage, &folder.join(LOG), self.held.settings, items, 0)?;
        drop(log.into_place()?);
        part.finish().map_err(failed)
    }
}

/// A frame that is whole.
struct Frame {
    offset: u64,
    end: u64,
    number: u64,
    changes: Vec<Change>,
}

/// The frame at this place before `end`, if a whole one begins there whose number is at least this.
fn whole_frame(
    file: &dyn Stored,
    format: Format,
    (offset, end): (u64, u64),
    least: u64,
) -> io::Result<Option<Frame>> {
    let mut reader = ReadFrom { file, offset };
    let mut head = Vec::with_capacity(HEAD);
    Read::take(&mut reader, format.head as u64).read_to_end(&mut head)?;
    let head = format.read_head(&head).filter(|head| head.number >= least);
    let Some(head) = head else { return Ok(None) };
    let whole = offset + (format.head + head.length) as u64;
    if whole > end {
        return Ok(None);
    }
    let mut json = Vec::new();
    Read::take(&mut reader, head.length as u64).read_to_end(&mut json)?;
    if json.len() != head.length || xxh3_64(&json) != head.sum {
        return Ok(None);
    }
    let changes = serde_json::Deserializer::from_slice(&json).into_iter::<Change>().collect();
    let changes: Result<Vec<Change>, _> = changes;
    Ok(changes.ok().map(|changes| Frame { offset, end: whole, number: head.number, changes }))
}

/// The next whole frame behind a place.
fn next_frame(
    file: &dyn Stored,
    format: Format,
    (from, end): (u64, u64),
    least: u64,
) -> io::Result<Option<Frame>> {
    let (mut at, mut window, mark) = (from, Vec::new(), format.mark);
    while at < end {
        window.clear();
        let mut reader = ReadFrom { file, offset: at };
        let most = (end - at).min((WINDOW + mark.len() - 1) as u64);
        Read::take(&mut reader, most).read_to_end(&mut window)?;
        for (place, _) in window.windows(mark.len()).enumerate().filter(|(_, four)| **four == mark)
        {
            let frame = whole_frame(file, format, (at + place as u64, end), least)?;
            if frame.is_some() {
                return Ok(frame);
            }
        }
        at += WINDOW as u64;
    }
    Ok(None)
}
