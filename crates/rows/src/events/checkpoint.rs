//! The positions of a run in its input and its output, stored with the state, so that the run after
//! a killed one writes no line twice and leaves none out.
//!
//! The output is cut to the length that it had at the checkpoint. Records read by then are skipped:
//! an input that begins with the same record is the same input, read again from its beginning, and
//! all of its records read before must be unchanged. Standard input may also repeat any of the
//! texts in the window, as brokers do; these are recognised by their ids.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cognate::engine::Engine;
use serde::{Deserialize, Serialize};

use crate::events::output::{Order, Output};
use crate::events::source::{Source, Tweet};
use crate::events::{EventsError, NamedStream};

/// Number of bytes at the end of an output by which a later run recognises it.
const TAIL_BYTES: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    /// Whether the input was read to its end: then the next one is another.
    pub(super) ended: bool,
    pub(super) input: InputMark,
    pub(super) output: OutputMark,
    pub(super) newest: Option<i64>,
    /// Number of texts that were read and wait to be put in order.
    pub(super) waiting: usize,
}

/// The part of an input that was read.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct InputMark {
    pub(super) records: u64,
    /// BLAKE3 of the first record; empty if there is none.
    first: String,
    /// BLAKE3 of all of them, each with a line end.
    blake3: String,
}

/// The part of an output that was written.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputMark {
    bytes: u64,
    /// BLAKE3 of the last 64 KiB of them.
    blake3: String,
}

impl Source {
    fn first(&self) -> String {
        self.first.map_or_else(String::new, |hash| hash.to_hex().to_string())
    }

    fn mark(&self) -> InputMark {
        let blake3 = self.all.finalize().to_hex().to_string();
        InputMark { records: self.count, first: self.first(), blake3 }
    }

    /// The positions of a run all of whose lines were written.
    pub(super) fn checkpoint(
        &self,
        order: &Order,
        out: &Output,
        ended: bool,
    ) -> Result<Checkpoint, EventsError> {
        let (input, output) = (self.mark(), out.mark()?);
        let (newest, waiting) = (order.newest, order.waiting().len());
        Ok(Checkpoint { ended, input, output, newest, waiting })
    }

    /// Skips the records that earlier runs read. Returns the first new record if it had to be read
    /// to find the end of the others.
    pub(super) fn pass_over(
        &mut self,
        before: &Checkpoint,
        named: &NamedStream<&Engine>,
        order: &Order,
        state: &Path,
    ) -> Result<Option<Tweet>, EventsError> {
        let InputMark { records, first, .. } = &before.input;
        let goes_on = !before.ended && *records > 0;
        let by_ids = self.standard_input && self.id.is_some();
        if !goes_on && !by_ids {
            return Ok(None);
        }
        let mut next = self.read()?;
        if goes_on && self.first() == *first {
            while self.count < *records && self.read()?.is_some() {}
            return if self.mark() == before.input {
                Ok(None)
            } else {
                Err(other(state, *records))
            };
        }
        if !by_ids {
            return Err(other(state, *records));
        }
        let known: HashSet<(&str, &str)> = named.known().chain(order.known()).collect();
        let is_known = |tweet: &Tweet| {
            tweet.id.as_deref().is_some_and(|id| known.contains(&(id, &*tweet.text)))
        };
        while next.as_ref().is_some_and(is_known) {
            next = self.read()?;
        }
        Ok(next)
    }
}

fn other(state: &Path, records: u64) -> EventsError {
    let problem = format!(
        "the run before was interrupted after {records} records, and this input does not begin with \
         them; it goes on with the same file, or with standard input whose records have ids and that \
         begins with some of the last or right after them"
    );
    EventsError::State { path: state.to_owned(), problem }
}

impl Output {
    /// Makes the output durable, and marks its end.
    pub(super) fn mark(&self) -> Result<OutputMark, EventsError> {
        let (path, file) = self.growing()?;
        let mark = || {
            file.sync_all()?;
            let bytes = file.metadata()?.len();
            Ok(OutputMark { bytes, blake3: tail(file, bytes)? })
        };
        mark().map_err(|source| EventsError::Write { path: path.to_owned(), source })
    }

    /// Cuts off what a killed run wrote after the mark.
    pub(super) fn cut(&self, mark: &OutputMark, state: &Path) -> Result<(), EventsError> {
        let (path, file) = self.growing()?;
        let failed = |source| EventsError::Write { path: path.to_owned(), source };
        let bytes = file.metadata().map_err(failed)?.len();
        let wrong = |problem: String| {
            let problem = format!("{} {problem}", path.display());
            Err(EventsError::State { path: state.to_owned(), problem })
        };
        if bytes < mark.bytes {
            return wrong(format!(
                "has {bytes} bytes; the run that was interrupted had written {}",
                mark.bytes
            ));
        }
        if tail(file, mark.bytes).map_err(failed)? != mark.blake3 {
            return wrong("is not what the run that was interrupted wrote".to_owned());
        }
        file.set_len(mark.bytes).map_err(failed)
    }

    /// An output that can be cut.
    fn growing(&self) -> Result<(&Path, &File), EventsError> {
        match self {
            Self::Growing(path, file) => Ok((path, file)),
            _ => Err(EventsError::Options(
                "checkpoints need a file to write, which a run that goes on can cut (-o)"
                    .to_owned(),
            )),
        }
    }
}

/// Returns the BLAKE3 of the last [`TAIL_BYTES`] of a file's first `bytes` bytes.
fn tail(file: &File, bytes: u64) -> std::io::Result<String> {
    let length = bytes.min(TAIL_BYTES);
    let mut last = vec![0; length as usize];
    file.read_exact_at(&mut last, bytes - length)?;
    Ok(blake3::hash(&last).to_hex().to_string())
}
