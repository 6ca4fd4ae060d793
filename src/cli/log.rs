//! The log of a service: JSON lines on standard error, or plain ones on a terminal.
//!
//! Lines go through a bounded queue to a thread that writes them. When standard error is stuck or
//! full, only lines are lost: no request waits for the log.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use std::{io, panic, thread};

use tracing::Dispatch;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, fmt};

/// Lines that wait to be written; more are lost.
const WAITING_LINES: usize = 8192;
/// Waiting lines are written together, up to so many bytes.
const BYTES_AT_ONCE: usize = 64 << 10;
/// How long a closing log waits for its thread.
const PATIENCE: Duration = Duration::from_secs(1);
/// Levels, which a filter may have without a module's name.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The queue of lines, as the writer of the log's layer: each write is one line, which is lost if
/// the queue is full.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Option<Vec<u8>>>,
}

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.lines.try_send(Some(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the lines of the queue until `None` comes; an error loses the lines of that write.
fn write_lines(queue: &Receiver<Option<Vec<u8>>>, mut writer: impl Write) {
    let mut together = Vec::new();
    while let Ok(Some(line)) = queue.recv() {
        together.extend(line);
        let mut is_last = false;
        while together.len() < BYTES_AT_ONCE
            && !is_last
            && let Ok(next) = queue.try_recv()
        {
            is_last = next.is_none();
            together.extend(next.into_iter().flatten());
        }
        let _ = writer.write_all(&together);
        together.clear();
        if is_last {
            return;
        }
    }
}

/// Ends the log on drop: waiting lines are written first, for at most a second.
pub(super) struct Logs {
    queue: Queue,
    ended: Receiver<()>,
}

impl Drop for Logs {
    fn drop(&mut self) {
        let begun = Instant::now();
        // The thread may be stuck in a write with the queue full: then it cannot be told to end.
        while self.queue.lines.try_send(None).is_err() {
            let thread_is_gone = self.ended.recv_timeout(Duration::from_millis(10));
            if thread_is_gone != Err(RecvTimeoutError::Timeout) || begun.elapsed() > PATIENCE {
                return;
            }
        }
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

/// Whether lines of the log are JSON: unless standard error is a terminal.
pub(super) fn is_json() -> bool {
    !io::stderr().is_terminal()
}

/// Logs to standard error from here on, panics included.
pub(super) fn set_up(filter: &str) -> Result<Logs, String> {
    // A descriptor of its own: a thread stuck in a write would hold the lock of the shared one.
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let stderr = stderr.map_err(|error| format!("cannot log to standard error: {error}"))?;
    let (dispatch, logs) = writing_to(stderr, self::filter(filter)?, is_json())
        .map_err(|error| format!("cannot start the thread of the log: {error}"))?;
    tracing::dispatcher::set_global_default(dispatch).map_err(|error| error.to_string())?;
    panic::set_hook(Box::new(|panic| {
        // Not the message: that of a wrong slice of a text quotes the text.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panicked");
    }));
    Ok(logs)
}

/// Parses a filter, or returns what is wrong with it.
pub(super) fn filter(text: &str) -> Result<Targets, String> {
    let is_level = |part: &str| LEVELS.iter().any(|level| part.eq_ignore_ascii_case(level));
    for part in text.split(',').map(str::trim) {
        // Such a part would be taken for the name of a module, and log everything.
        let bare = part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if bare && !is_level(part) && part != crate::PROGRAM {
            return Err(format!("`{part}` is none of {}", LEVELS.join(", ")));
        }
        if let Some(other) = part.chars().find(|&c| !c.is_alphanumeric() && !":_=-".contains(c)) {
            return Err(format!(
                "`{part}` is no filter: no part of the program is written with `{other}`"
            ));
        }
    }
    text.parse().map_err(|error| format!("is no filter: {error}"))
}

fn writing_to(
    writer: impl Write + Send + 'static,
    filter: Targets,
    is_json: bool,
) -> io::Result<(Dispatch, Logs)> {
    let (lines, waiting) = sync_channel(WAITING_LINES);
    let (thread_lives, ended) = sync_channel(0);
    let queue = Queue { lines };
    thread::Builder::new().name("log".to_owned()).spawn(move || {
        write_lines(&waiting, writer);
        drop(thread_lives);
    })?;
    // Errors of the log are not logged: on a full disk that would end in a panic.
    let writer = queue.clone();
    let layer = fmt::layer().with_writer(move || writer.clone()).log_internal_errors(false);
    let layer = if is_json {
        let json = layer.json().flatten_event(true).with_current_span(true);
        json.with_span_list(false).boxed()
    } else {
        layer.with_ansi(false).boxed()
    };
    let registry = tracing_subscriber::registry().with(filter).with(layer);
    Ok((Dispatch::new(registry), Logs { queue, ended }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs far more lines than may wait; returns the time, including closing the log.
    fn flood(writer: impl Write + Send + 'static) -> Duration {
        let begun = Instant::now();
        let (dispatch, logs) = writing_to(writer, filter("info").unwrap(), true).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            for number in 0..4 * WAITING_LINES {
                tracing::info!(number, "a line of a log, long enough to fill a pipe in a while");
            }
        });
        drop(logs);
        begun.elapsed()
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(flood(full) < Duration::from_secs(20));
    }

    #[test]
    fn a_stuck_reader_costs_lines_and_nothing_else() {
        // The pipe takes 64 KiB; nobody reads them while the log is written.
        let (reader, writer) = io::pipe().unwrap();
        assert!(flood(writer) < Duration::from_secs(20));
        drop(reader);
    }

    #[test]
    fn a_filter_is_levels_and_parts_of_the_program() {
        for good in ["info", "WARN", "off", "info,cognate=debug", "cognate::http=trace,hyper=off"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for wrong in ["", "infos", "5", "info,", "cognate=loud", "info,[x"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
