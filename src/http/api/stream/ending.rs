//! The end of a stream: counted, and told in the log where it did not end well.

use std::sync::Arc;

use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::observe::streams::{Named, Outcome};
use crate::http::work::spool::{Full, Stopped};

/// Why a stream ends before its client ends it.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// What its last line says: the first line that is not answered, and why. Nothing where nobody
    /// reads it.
    pub(super) last: Option<(u64, ApiError)>,
}

impl End {
    /// An end that the client is told of in its last line.
    pub(super) fn told(outcome: Outcome, line: u64, error: ApiError) -> Self {
        Self { outcome, last: Some((line, error)) }
    }

    /// Nobody reads any more.
    pub(super) fn gone() -> Self {
        Self { outcome: Outcome::ClientGone, last: None }
    }

    /// The service stops before it answers this line.
    pub(super) fn stopping(line: u64) -> Self {
        let detail = "the server is about to stop; this line and those after it were not answered";
        Self::told(Outcome::Draining, line, ApiError::new(Code::Draining, detail))
    }

    /// A body that broke off in this line.
    pub(super) fn broken(line: u64) -> Self {
        let error = ApiError::new(Code::RequestTimeout, "the body broke off");
        Self::told(Outcome::BrokenBody, line, error)
    }

    /// A body that does not get on.
    pub(super) fn slow_sender(line: u64) -> Self {
        let detail = "neither a line nor 1024 bytes of one arrived in time (setting \
                      `body_timeout_s`)";
        Self::told(Outcome::SlowSender, line, ApiError::new(Code::RequestTimeout, detail))
    }

    /// A client that neither reads nor sends.
    pub(super) fn stuck(line: u64) -> Self {
        let detail = "answers wait to be read, and the client neither reads them nor sends enough to \
                      need the time (setting `write_timeout_s`)";
        Self::told(Outcome::SlowReader, line, ApiError::new(Code::RequestTimeout, detail))
    }

    /// The answer to this line could not be written.
    pub(super) fn unwritten(stopped: Stopped, line: u64) -> Self {
        let full = match stopped {
            Stopped::Gone => return Self::gone(),
            Stopped::Ordered => return Self::stopping(line),
            Stopped::Full(full) => full,
        };
        let limit = match full {
            Full::Each(bytes) => {
                format!(
                    "of this stream at most {bytes} bytes may wait (setting `stream_spool_bytes`)"
                )
            }
            Full::All(bytes) => {
                format!("of all streams at most {bytes} bytes may wait (setting `spool_bytes`)")
            }
            Full::Folder => "the server has no more room for answers that wait (settings \
                             `stream_spool_bytes` and `spool_folder`)"
                .to_owned(),
        };
        let detail =
            format!("the client does not read its answers, and {limit}; read while sending");
        Self::told(Outcome::SpoolFull, line, ApiError::new(Code::ResponseTooLarge, detail))
    }
}

/// What is told of a stream when it ends. One that is dropped without an outcome has failed.
pub(super) struct Record {
    app: Arc<App>,
    named: Named,
    /// Lines that were read.
    pub(super) lines: u64,
    /// Lines whose answers were written, or that were taken into account.
    pub(super) answered: u64,
    outcome: Outcome,
}

impl Record {
    /// The record of a stream that begins.
    pub(super) fn new(app: Arc<App>, named: Named) -> Self {
        Self { app, named, lines: 0, answered: 0, outcome: Outcome::Failed }
    }

    /// Settles how the stream ended.
    pub(super) async fn settle(mut self, outcome: Outcome) {
        self.named.known().await;
        self.outcome = outcome;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let name = self.named.name();
        self.app.metrics.stream_ended(self.outcome, name.as_ref());
        let request_id = name.as_ref().and_then(|name| name.id.to_str().ok()).unwrap_or_default();
        let route = name.as_ref().map_or("", |name| &*name.route);
        let (outcome, lines, answered) = (self.outcome.name(), self.lines, self.answered);
        match self.outcome {
            Outcome::Complete => {}
            Outcome::Failed => {
                tracing::error!(request_id, route, outcome, lines, answered, "stream failed");
            }
            _ => tracing::info!(request_id, route, outcome, lines, answered, "stream ended early"),
        }
    }
}
