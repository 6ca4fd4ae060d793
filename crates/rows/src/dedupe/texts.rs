//! The texts of one or two files or columns, read sequentially as often as needed, numbered from 0
//! through both. What is done with a text is not known here.

use std::fs::File;
use std::io;
use std::io::Seek;
use std::path::{Path, PathBuf};

use cognate::model::disk;
use cognate_files::ReadError;
use cognate_files::input::{Input, is_pipe};
use cognate_files::progress::Progress;
use cognate_files::records::{Column, Record, Records};
use rayon::prelude::*;

use crate::bad_rows::BadRows;
use crate::columnar;
use crate::dedupe::{DedupeError, Options};
use crate::{LeftOut, OnBadRow, STANDARD};

/// Texts read ahead while others are processed.
const CHUNK: usize = 8192;
/// Texts that a thread processes at a time.
const PART: usize = 256;
pub(super) const TEXT: &str = "text";

#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) id: u32,
    pub(super) text: String,
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

pub(super) enum Source<'t> {
    File {
        path: PathBuf,
        options: &'t Options,
        /// A copy of standard input or of a pipe.
        kept: Option<File>,
    },
    /// Texts in memory; a missing text counts as empty.
    Column(&'t [Option<&'t str>]),
}

enum Open<'t> {
    Records(Box<(Records, Column, BadRows)>),
    Column(std::slice::Iter<'t, Option<&'t str>>),
}

impl<'t> Source<'t> {
    /// The records of a file. What can be read once is copied to a file in `folder`.
    pub(super) fn file(path: &Path, options: &'t Options) -> Result<Self, DedupeError> {
        let folder = &options.search.folder;
        let copied = |mut read: Box<dyn io::Read>| {
            let mut file = disk::nameless(folder)?;
            io::copy(&mut read, &mut file)?;
            Ok::<_, io::Error>(file)
        };
        let kept = match path.as_os_str() == STANDARD {
            true => Some(copied(Box::new(io::stdin()))),
            false if is_pipe(path) => {
                Some(File::open(path).and_then(|pipe| copied(Box::new(pipe))))
            }
            false => None,
        };
        let room = |source| DedupeError::Room { folder: folder.clone(), source };
        let kept = kept.transpose().map_err(room)?;
        Ok(Self::File { path: path.to_owned(), options, kept })
    }

    /// The records of a file from the beginning, and its text column; `None` for texts in memory.
    pub(super) fn records(&self) -> Result<Option<(Records, Column)>, DedupeError> {
        let Self::File { path, options, kept } = self else { return Ok(None) };
        let column = options.text.as_deref();
        let records = match kept {
            None => columnar::records(path, options.records, &[column.unwrap_or(TEXT)])?,
            Some(file) => {
                let failed = |source| ReadError::Io { path: path.clone(), source };
                let mut file = file.try_clone().map_err(failed)?;
                file.rewind().map_err(failed)?;
                let name = if path.as_os_str() == STANDARD {
                    "standard input".into()
                } else {
                    path.clone()
                };
                let input = Input::from_stream(name, Box::new(file))?;
                Records::new(input, options.records)?
            }
        };
        let column = match column {
            Some(name) => records.column(name)?,
            // A single column needs no name.
            None if records.names().len() == 1 => records.column("1")?,
            None => records.column(TEXT)?,
        };
        Ok(Some((records, column)))
    }

    /// For records that are read once more.
    pub(super) fn bad_again(&self) -> BadRows {
        match self {
            Self::File { options, .. } => BadRows::again(&options.bad_rows),
            Self::Column(_) => BadRows::again(&OnBadRow::Stop),
        }
    }

    fn open(&self) -> Result<Open<'t>, DedupeError> {
        match self {
            Self::Column(texts) => Ok(Open::Column(texts.iter())),
            Self::File { .. } => {
                let opened = self.records()?;
                Ok(opened.map_or(Open::Column([].iter()), |(records, column)| {
                    Open::Records(Box::new((records, column, self.bad_again())))
                }))
            }
        }
    }
}

impl Open<'_> {
    /// The next text; if it is not `wanted`, an empty text in its place.
    fn next(&mut self, wanted: bool) -> Result<Option<String>, DedupeError> {
        match self {
            Self::Column(texts) => {
                Ok(texts.next().map(|text| text.filter(|_| wanted).unwrap_or_default().to_owned()))
            }
            Self::Records(opened) => {
                let (records, column, bad) = &mut **opened;
                let text = |record: &Record<'_>| {
                    let text = record.field(column)?.filter(|_| wanted);
                    Ok(text.unwrap_or_default().into_owned())
                };
                Ok(bad.next(records, text)?)
            }
        }
    }
}

/// The texts of all sources; those of the other file come first.
pub(super) struct Texts<'t> {
    pub(super) sources: Vec<Source<'t>>,
}

struct TextPass<'r, 't> {
    rest: std::slice::Iter<'r, Source<'t>>,
    open: Option<Open<'t>>,
    next: u64,
    /// The number of the first text of each source so far.
    firsts: Vec<u64>,
    progress: Progress,
}

impl TextPass<'_, '_> {
    /// The next wanted texts; empty at the end.
    fn chunk(&mut self, wanted: &(impl Fn(u32) -> bool + Sync)) -> Result<Vec<Text>, DedupeError> {
        let mut texts = Vec::new();
        while texts.len() < CHUNK {
            let open = match &mut self.open {
                Some(open) => open,
                None => match self.rest.next() {
                    Some(source) => {
                        self.firsts.push(self.next);
                        self.open.insert(source.open()?)
                    }
                    None => break,
                },
            };
            if let Open::Records(opened) = open {
                opened.0.follow(&self.progress);
            }
            let id = u32::try_from(self.next).map_err(|_| DedupeError::TooMany)?;
            let wanted = wanted(id);
            let Some(text) = open.next(wanted)? else {
                self.open = None;
                continue;
            };
            self.next += 1;
            if wanted {
                texts.push(Text { id, text });
            }
        }
        Ok(texts)
    }
}

impl Texts<'_> {
    /// Reads all records once for those that cannot be read, unless the run stops at one anyway.
    pub(super) fn left_out(&self, on_bad_row: &OnBadRow) -> Result<LeftOut, DedupeError> {
        let mut bad = BadRows::create(on_bad_row)?;
        if *on_bad_row == OnBadRow::Stop {
            return Ok(bad.finish()?);
        }
        let progress = self.progress("broken rows");
        for source in &self.sources {
            let Some((mut records, column)) = source.records()? else { continue };
            while bad.next(&mut records, |record| record.field(&column).map(drop))?.is_some() {
                records.follow(&progress);
            }
        }
        Ok(bad.finish()?)
    }

    /// A progress bar, unless all texts are in memory: the caller then may not be a terminal
    /// program.
    fn progress(&self, step: &'static str) -> Progress {
        let files = self.sources.iter().any(|source| matches!(source, Source::File { .. }));
        if files { Progress::bytes(step) } else { Progress::hidden() }
    }

    /// Calls `work` with all wanted texts in batches on every core, and `take` with the results in
    /// order. Returns the number of records, and of those in the other file, if there is one.
    pub(super) fn each<T: Send>(
        &self,
        step: &'static str,
        wanted: impl Fn(u32) -> bool + Sync,
        work: impl Fn(&[Text]) -> Result<T, DedupeError> + Sync,
        mut take: impl FnMut(T) -> Result<(), DedupeError>,
    ) -> Result<(u32, Option<u32>), DedupeError> {
        let (rest, progress) = (self.sources.iter(), self.progress(step));
        let mut reading = TextPass { rest, open: None, next: 0, firsts: Vec::new(), progress };
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
        let number = |count: u64| u32::try_from(count).map_err(|_| DedupeError::TooMany);
        let known = reading.firsts.get(1).map(|&first| number(first)).transpose()?;
        Ok((number(reading.next)?, known))
    }
}
