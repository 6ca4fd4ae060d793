//! The texts of one file, or of two, read from front to back as often as needed, numbered from 0
//! through both. What is done with a text is not known here.

use std::fs::File;
use std::io;
use std::io::Seek;
use std::path::Path;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::dedupe::DedupeError;
use crate::files::input::Input;
use crate::files::progress::Progress;
use crate::files::records::Column;
use crate::files::records::Options;
use crate::files::records::Records;
use crate::model::disk;

/// Texts read while others are worked on.
const CHUNK: usize = 8192;
/// Texts that a thread works on at a time.
const PART: usize = 256;
/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// The column taken where none is named.
const TEXT: &str = "text";

/// A text with its number.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) id: u32,
    pub(super) text: String,
}

/// A file that can be read again and again.
pub(super) struct Source {
    path: PathBuf,
    options: Options,
    column: Option<String>,
    /// What standard input held.
    kept: Option<File>,
}

impl Source {
    /// Keeps what standard input holds in a file of `folder`.
    pub(super) fn new(
        path: &Path,
        options: Options,
        column: Option<&str>,
        folder: &Path,
    ) -> Result<Self, DedupeError> {
        let kept = (path.as_os_str() == STANDARD_INPUT).then(|| {
            let mut file = disk::nameless(folder)?;
            io::copy(&mut io::stdin().lock(), &mut file)?;
            Ok::<_, io::Error>(file)
        });
        let kept = kept.transpose().map_err(DedupeError::Room)?;
        Ok(Self { path: path.to_owned(), options, column: column.map(str::to_owned), kept })
    }

    /// The records from the first on, and the column of texts.
    pub(super) fn open(&self) -> Result<(Records, Column), DedupeError> {
        let records = match &self.kept {
            None => Records::open(&self.path, self.options)?,
            Some(file) => {
                let mut file = file.try_clone().map_err(DedupeError::Room)?;
                file.rewind().map_err(DedupeError::Room)?;
                let input = Input::from_stream("standard input", Box::new(file))?;
                Records::of(input, self.options)?
            }
        };
        let column = match &self.column {
            Some(name) => records.column(name)?,
            // The only column needs no name.
            None if records.names().len() == 1 => records.column("1")?,
            None => records.column(TEXT)?,
        };
        Ok((records, column))
    }
}

/// The texts of all files, those of the other file first.
pub(super) struct Texts {
    pub(super) sources: Vec<Source>,
}

/// A reading on its way.
struct Reading<'t> {
    rest: std::slice::Iter<'t, Source>,
    open: Option<(Records, Column)>,
    next: u64,
    progress: Progress,
}

impl Reading<'_> {
    /// The next texts that are wanted; none at the end.
    fn chunk(&mut self, wanted: &(impl Fn(u32) -> bool + Sync)) -> Result<Vec<Text>, DedupeError> {
        let mut texts = Vec::new();
        while texts.len() < CHUNK {
            let (records, column) = match &mut self.open {
                Some(open) => open,
                None => match self.rest.next() {
                    Some(source) => self.open.insert(source.open()?),
                    None => break,
                },
            };
            records.follow(&self.progress);
            let Some(record) = records.read()? else {
                self.open = None;
                continue;
            };
            let id = u32::try_from(self.next).map_err(|_| DedupeError::TooMany)?;
            self.next += 1;
            if !wanted(id) {
                continue;
            }
            match record.field(column) {
                Ok(text) => {
                    texts.push(Text { id, text: text.unwrap_or_default().into_owned() });
                }
                Err(problem) => return Err(records.wrong(problem).into()),
            }
        }
        Ok(texts)
    }
}

impl Texts {
    /// Hands all texts that are wanted to `work`, some at a time on every core, and what comes of
    /// them in their order to `take`. Gives back how many records there are.
    pub(super) fn each<T: Send>(
        &self,
        step: &'static str,
        wanted: impl Fn(u32) -> bool + Sync,
        work: impl Fn(&[Text]) -> Result<T, DedupeError> + Sync,
        mut take: impl FnMut(T) -> Result<(), DedupeError>,
    ) -> Result<u32, DedupeError> {
        let mut reading = Reading {
            rest: self.sources.iter(),
            open: None,
            next: 0,
            progress: Progress::bytes(step),
        };
        let mut chunk = reading.chunk(&wanted)?;
        while !chunk.is_empty() {
            let (done, next) = rayon::join(
                || chunk.par_chunks(PART).map(&work).collect::<Vec<_>>(),
                || reading.chunk(&wanted),
            );
            for done in done {
                take(done?)?;
            }
            chunk = next?;
        }
        u32::try_from(reading.next).map_err(|_| DedupeError::TooMany)
    }
}
