//! The output of a stream: standard output, a file that appears only when it is complete, or a file
//! that grows from run to run; and the buffer that puts late texts in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use cognate::model::disk::{Disk, LocalDisk};
use cognate::model::writer::directory_of;
use cognate_files::records::Format;
use cognate_files::written::is_packed;

use crate::STANDARD;
use crate::events::source::Tweet;
use crate::events::{EventsError, EventsOptions};
use crate::growing::Growing;

pub enum Output {
    Standard(io::Stdout),
    /// Appends to a file, for a stream that resumes from a state.
    Growing(PathBuf, File),
    Whole(PathBuf, Growing),
}

impl Output {
    /// Opens the output at a path; `-` is standard output. With a state, a file is appended to.
    pub fn open(path: &Path, options: &EventsOptions) -> Result<Self, EventsError> {
        let failed = |source| EventsError::Write { path: path.to_owned(), source };
        if path.as_os_str() == STANDARD {
            return Ok(Self::Standard(io::stdout()));
        }
        Format::of_output(path).map_err(EventsError::Options)?;
        if options.state.is_some() && is_packed(path) {
            let problem = format!("{}: a file that --state adds to is not packed", path.display());
            return Err(EventsError::Options(problem));
        }
        if options.checkpoint.is_some() {
            return Self::lock(path);
        }
        if options.state.is_some() {
            let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
            return Ok(Self::Growing(path.to_owned(), file));
        }
        Ok(Self::Whole(path.to_owned(), Growing::create(path).map_err(failed)?))
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Standard(_) => None,
            Self::Growing(path, _) | Self::Whole(path, _) => Some(path),
        }
    }

    /// Opens a file for appending and cutting, locked against other runs.
    fn lock(path: &Path) -> Result<Self, EventsError> {
        let failed = |source| EventsError::Write { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            let problem = format!("checkpoints need a file to write; {} is none", path.display());
            return Err(EventsError::Options(problem));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = format!("another run writes {}", path.display());
                return Err(EventsError::Options(problem));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        LocalDisk.sync_directory(directory_of(path)).map_err(failed)?;
        Ok(Self::Growing(path.to_owned(), file))
    }

    pub fn finish(self) -> Result<(), EventsError> {
        let failed = |path: PathBuf| move |source| EventsError::Write { path, source };
        match self {
            Self::Standard(mut out) => out.flush().map_err(EventsError::Output),
            Self::Growing(path, file) => file.sync_all().map_err(failed(path)),
            Self::Whole(path, file) => file.finish().map(drop).map_err(failed(path)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(out) => out.write(bytes),
            Self::Growing(_, file) => file.write(bytes),
            Self::Whole(_, file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.flush(),
            Self::Growing(..) | Self::Whole(..) => Ok(()),
        }
    }
}

/// Texts that wait because an earlier one may still arrive.
pub(super) struct Order {
    slack: i64,
    pub(super) newest: Option<i64>,
    waiting: BinaryHeap<Waiting>,
    taken: u64,
}

struct Waiting {
    tweet: Tweet,
    /// Texts with equal times keep the order of their arrival.
    number: u64,
    /// Whether it can leave at once: it is late, or ordering is disabled.
    due: bool,
}

impl Waiting {
    /// The position in the order: texts that can leave come first, in the order of their arrival.
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
    /// A text waits until one has arrived that is `slack` milliseconds younger. With a slack of 0
    /// no text waits, and the order of arrival is kept.
    pub(super) fn new(slack: i64) -> Self {
        Self { slack, newest: None, waiting: BinaryHeap::new(), taken: 0 }
    }

    pub(super) fn take(&mut self, tweet: Tweet) -> bool {
        let (time, slack) = (tweet.time, self.slack);
        let late = self.newest.is_some_and(|newest| newest.saturating_sub(time) > slack);
        self.newest = self.newest.max(Some(time));
        let waiting = Waiting { tweet, number: self.taken, due: late || slack == 0 };
        self.taken += 1;
        self.waiting.push(waiting);
        late
    }

    /// Adds a text that waited in an earlier run.
    pub(super) fn wait(&mut self, tweet: Tweet) {
        self.waiting.push(Waiting { tweet, number: self.taken, due: false });
        self.taken += 1;
    }

    /// The waiting texts, in the order of their arrival.
    pub(super) fn waiting(&self) -> Vec<&Tweet> {
        let mut all: Vec<&Waiting> = self.waiting.iter().collect();
        all.sort_unstable_by_key(|waiting| waiting.number);
        all.into_iter().map(|waiting| &waiting.tweet).collect()
    }

    /// Ids and texts of the waiting texts.
    pub(super) fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.waiting.iter().map(|waiting| &waiting.tweet);
        all.filter_map(|tweet| Some((tweet.id.as_deref()?, &*tweet.text)))
    }

    /// The texts that no later arrival can precede; all of them at the end.
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
