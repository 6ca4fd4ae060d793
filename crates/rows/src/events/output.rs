//! Where the lines of a stream go: standard output, a file that is there only when it is whole, or
//! one that grows from run to run.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use cognate::model::disk::{Disk, DiskFile, LocalDisk};
use cognate::model::writer::{Target, directory_of};

use crate::events::EventsError;

pub enum Output {
    Standard(io::Stdout),
    /// To the end of a file, for a stream that goes on from a state.
    Growing(PathBuf, File),
    /// Into a temporary file that takes the place of another when all is written.
    Whole(Target, PathBuf, File),
}

impl Output {
    /// Opens what a path stands for; `-` is standard output. A file that `grows` is added to.
    pub fn open(path: &Path, grows: bool) -> Result<Self, EventsError> {
        let failed = |source| EventsError::Write { path: path.to_owned(), source };
        if path.as_os_str() == "-" {
            return Ok(Self::Standard(io::stdout()));
        }
        if grows {
            let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
            return Ok(Self::Growing(path.to_owned(), file));
        }
        let target = Target::of(path).map_err(failed)?;
        let directory = directory_of(&target.path).to_owned();
        let mode = if target.mode.is_some() { 0o600 } else { 0o666 };
        let (temporary, file) = LocalDisk.create(&directory, mode).map_err(failed)?;
        Ok(Self::Whole(target, temporary, file))
    }

    /// Makes what was written last, and puts a whole file in its place.
    pub fn finish(self) -> Result<(), EventsError> {
        let failed = |path: PathBuf| move |source| EventsError::Write { path, source };
        match self {
            Self::Standard(mut out) => out.flush().map_err(EventsError::Output),
            Self::Growing(path, file) => file.sync_all().map_err(failed(path)),
            Self::Whole(target, temporary, mut file) => {
                let mut put = || {
                    if let Some(mode) = target.mode {
                        file.publish(mode)?;
                    }
                    file.sync()?;
                    LocalDisk.rename(&temporary, &target.path)?;
                    LocalDisk.sync_directory(directory_of(&target.path))
                };
                put().map_err(failed(target.path.clone()))
            }
        }
    }

    /// Removes what was written of a file that will not be whole.
    pub fn give_up(self) {
        if let Self::Whole(_, temporary, _) = self {
            // A leftover is removed by the next writer.
            let _ = LocalDisk.remove(&temporary);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(out) => out.write(bytes),
            Self::Growing(_, file) | Self::Whole(_, _, file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.flush(),
            Self::Growing(..) | Self::Whole(..) => Ok(()),
        }
    }
}
