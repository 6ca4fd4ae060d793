//! Where the lines of a stream go: standard output, a file that is there only when it is whole, or
//! one that grows from run to run.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use cognate::model::disk::{Disk, DiskFile, LocalDisk};
use cognate::model::writer::{Target, directory_of};

use crate::events::EventsError;
use crate::events::source::Tweet;

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

/// Texts that wait for others that may still come before them.
pub(super) struct Order {
    slack: i64,
    newest: Option<i64>,
    waiting: BinaryHeap<Waiting>,
    taken: u64,
}

/// A text that waits; the greatest is the earliest.
struct Waiting {
    tweet: Tweet,
    /// Texts of one time stay in the order in which they came.
    number: u64,
    /// Whether it waits for nothing: it is too late for its place, or nothing is put in order.
    due: bool,
}

impl Waiting {
    /// Those that wait for nothing come first, as they came.
    fn key(&self) -> (bool, i64, u64) {
        match self.due {
            true => (false, 0, self.number),
            false => (true, self.tweet.time, self.number),
        }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl Order {
    /// A text waits until one came that is `slack` milliseconds younger; without slack none waits, and
    /// texts leave as they came.
    pub(super) fn new(slack: i64) -> Self {
        Self { slack, newest: None, waiting: BinaryHeap::new(), taken: 0 }
    }

    /// Takes a text in; whether it came later than the slack allows.
    pub(super) fn take(&mut self, tweet: Tweet) -> bool {
        let (time, slack) = (tweet.time, self.slack);
        let late = self.newest.is_some_and(|newest| newest.saturating_sub(time) > slack);
        self.newest = self.newest.max(Some(time));
        let waiting = Waiting { tweet, number: self.taken, due: late || slack == 0 };
        self.taken += 1;
        self.waiting.push(waiting);
        late
    }

    /// The texts that no other can come before any more; all of them at the end.
    pub(super) fn ready(&mut self, ended: bool) -> Vec<Tweet> {
        let mut ready = Vec::new();
        while let Some(first) = self.waiting.peek() {
            let newest = self.newest.unwrap_or(first.tweet.time);
            let due = first.due || newest.saturating_sub(first.tweet.time) >= self.slack;
            if !due && !ended {
                break;
            }
            ready.extend(self.waiting.pop().map(|waiting| waiting.tweet));
        }
        ready
    }
}
