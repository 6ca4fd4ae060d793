//! The file behind a model's bytes: whether it is still the file that was opened.
//!
//! The open file is looked at, not its path, so another file renamed over it changes nothing. What
//! the bytes mean, and whether they matter once the file has changed, is not known here.

use std::fs::{File, Metadata};
use std::io;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// What tells a file that was written to from one that was not. Not the time of its last change of
/// any kind: a rename, a link and another mode move that as well, and leave the bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// What another look at a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Nothing that the last look did not say.
    Same,
    /// It was touched or written to, and its bytes are those it was opened with.
    Sound,
    /// It was cut, written to, or cannot be read any more.
    Damaged,
}

/// A file that was opened.
#[derive(Debug)]
pub(super) struct Origin {
    file: File,
    size: u64,
    /// As it was when it was opened or last looked at.
    seen: Mutex<Identity>,
    /// What that look said.
    damaged: AtomicBool,
}

impl Origin {
    /// Takes an open file and what is known of it.
    pub(super) fn new(file: File, found: &Metadata) -> Self {
        let seen = Mutex::new(Identity::of(found));
        Self { file, size: found.size(), seen, damaged: AtomicBool::new(false) }
    }

    /// Whether nobody wrote to the file since it was opened or last looked at.
    pub(super) fn untouched(&self) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.identity().is_ok_and(|now| now == seen)
    }

    /// What the last look said.
    pub(super) fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// Looks again. Of a file that was touched, `is_sound` reads the bytes from the first on and
    /// says whether they are those that were opened.
    pub(super) fn look_again(
        &self,
        is_sound: impl FnOnce(Bytes<'_>) -> io::Result<bool>,
    ) -> FileState {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(now) = self.identity() else { return self.say(true) };
        if now == *seen {
            return FileState::Same;
        }
        *seen = now;
        let sound = now.size == self.size
            && is_sound(Bytes { file: &self.file, at: 0 }).unwrap_or(false)
            // What was read while somebody wrote says nothing; the next look sees the later time.
            && self.identity().is_ok_and(|after| after == now);
        self.say(!sound)
    }

    fn say(&self, damaged: bool) -> FileState {
        match (self.damaged.swap(damaged, Ordering::AcqRel), damaged) {
            (true, true) => FileState::Same,
            (_, true) => FileState::Damaged,
            (_, false) => FileState::Sound,
        }
    }

    fn identity(&self) -> io::Result<Identity> {
        self.file.metadata().map(|found| Identity::of(&found))
    }
}

/// The bytes of a file, read and not mapped: a file that is cut meanwhile is an end here, where a
/// touch of the missing page would be a signal.
pub(super) struct Bytes<'f> {
    file: &'f File,
    at: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

/// How a set of weights was trained. Nothing is computed with it, so what a file does not say is
/// left empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainingRecord {
    /// The loss, `median` or `contrastive`.
    pub loss: String,
    /// How steep the median loss is, in multiples of `1 / unit`.
    pub kappa: Option<f64>,
    /// What distances were measured in: the median distance under the untrained weights.
    pub unit: f64,
    /// What the sum of the squared weights counts in the loss.
    pub lambda: f64,
    /// How many weights there are, M.
    pub max_length: usize,
    /// What fixed random choices.
    pub seed: u64,
    /// The pairs trained on.
    pub couples: usize,
    /// Pairs left out because a text of theirs has no known word.
    pub left_out: usize,
    /// How often they were gone through.
    pub epochs: usize,
    /// The mean loss of the last epoch.
    pub final_loss: f64,
    /// What the weights are worth on pairs not trained on.
    pub validation: Option<Validation>,
    /// The files of pairs.
    pub files: Vec<TrainingFile>,
    /// The beginning of the digest of the word vectors.
    pub vectors: String,
    /// The version of the program.
    pub version: String,
}

/// What weights are worth on pairs not trained on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Validation {
    /// The pairs.
    pub couples: usize,
    /// With the weights that training began with, the same for every rank: the plain mean.
    pub before: Separation,
    /// With the trained weights.
    pub after: Separation,
}

/// How well distances part related pairs from others.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Separation {
    /// The share on the wrong side of the threshold that is best for the pairs trained on.
    pub split_error: f64,
    /// Jensen-Shannon divergence of the distances of both kinds, base 2, over 100 equal bins of
    /// their joint range.
    pub js_divergence: f64,
}

/// A file of pairs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrainingFile {
    /// Its name without folder.
    pub name: String,
    /// BLAKE3 of its bytes.
    pub digest: String,
}
