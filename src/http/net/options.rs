//! What a client must put up with on its connection: how long it may take, and how much it may ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;

use crate::http::net::connection::Peer;
use crate::http::net::gate::{Framing, Gate};
use crate::http::net::shutdown::Shutdown;
use crate::http::net::socket::Door;
use crate::http::settings::Settings;

/// How long the head of a request on a spare descriptor may take. It waited in the kernel's queue already, so
/// mostly it is there.
const HURRY: Duration = Duration::from_millis(100);
/// Below this hyper's reader panics; the settings keep above it, tests may not.
const LEAST_HEADER_BYTES: usize = 8 << 10;

#[derive(Clone)]
pub(crate) struct ConnectionOptions {
    pub(super) protocol: http1::Builder,
    gate: Option<Arc<dyn Gate>>,
    header_timeout: Duration,
    pub(super) write_timeout: Duration,
    pub(super) body_timeout: Duration,
    pub(super) requests: u64,
}

impl ConnectionOptions {
    pub fn of(settings: &Settings) -> Self {
        let mut protocol = http1::Builder::new();
        // Without a timer hyper accepts the timeout and never applies it.
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(settings.header_timeout_s))
            .max_buf_size(settings.header_bytes.max(LEAST_HEADER_BYTES))
            // The buffer's size alone would let through a longer head that comes in one piece.
            .max_header_size(settings.header_bytes.max(LEAST_HEADER_BYTES))
            .max_headers(settings.header_count)
            // A client that has sent its request may close its side and still gets the answer.
            .half_close(true)
            .keep_alive(true);
        Self {
            protocol,
            gate: None,
            header_timeout: Duration::from_secs(settings.header_timeout_s),
            write_timeout: Duration::from_secs(settings.write_timeout_s),
            body_timeout: Duration::from_secs(settings.body_timeout_s),
            requests: settings.requests_per_connection,
        }
    }

    /// The same with a gate before each connection.
    pub(crate) fn behind(self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    pub(super) fn door(&self, peer: SocketAddr, stop: &Shutdown) -> Option<Door> {
        Some(Door {
            gate: self.gate.clone()?,
            peer: Peer(peer),
            stop: stop.clone(),
            requests: self.requests,
            body_timeout: self.body_timeout,
            header_timeout: self.header_timeout,
            waits: None,
            framing: Framing::default(),
        })
    }

    /// One request at once: the options of a connection that all others wait behind.
    pub(crate) fn single_request(&self) -> Self {
        let mut options = self.clone();
        options.protocol.header_read_timeout(HURRY);
        options.requests = 1;
        options.gate = None;
        options
    }
}
