//! A socket before which a gate stands: a request that it refuses is answered here, and its body thrown
//! away, so that hyper never learns of it.

use std::io;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::Interest;
use tokio::time::{Instant, Sleep, sleep};

use crate::http::net::connection::Peer;
use crate::http::net::framing::Framing;
use crate::http::net::gate;
use crate::http::net::gate::{Gate, Refused};
use crate::http::net::shutdown::Shutdown;
use crate::http::net::socket::{Socket, throw_away, when_ready};
use crate::http::net::state::{ConnectionState, PendingAnswer};

/// How long the answer waits for a body that is on its way. Many clients read only after they have sent
/// all, and give a connection up whose answer comes earlier; to make another costs both sides more.
const GRACE: Duration = Duration::from_millis(5);

/// The gate before one connection.
pub(in crate::http::net) struct Door {
    pub gate: Arc<dyn Gate>,
    pub peer: Peer,
    pub stop: Shutdown,
    /// Most requests on the connection.
    pub requests: u64,
    /// How long the rest of a refused body is waited for.
    pub body_timeout: Duration,
    /// How long hyper may wait for a head that it can see. What is refused here it does not see, so
    /// that its clock runs on.
    pub header_timeout: Duration,
    /// Since when it waits, if it does.
    pub waits: Option<Instant>,
    pub framing: Framing,
}

impl Door {
    /// Whether the next bytes begin a request, which may be refused.
    fn is_before_request(&mut self, state: &ConnectionState) -> bool {
        if !self.framing.is_between(state) {
            self.waits = None;
            return false;
        }
        let since = *self.waits.get_or_insert_with(Instant::now);
        // Half of the time is left for the body. Who says that the connection ends is hyper.
        self.gate.may_refuse()
            && !self.stop.is_leaving()
            && state.asked().saturating_add(1) < self.requests
            && since.elapsed() < self.header_timeout / 2
    }
}

/// A refusal on its way.
pub(super) struct Refusal {
    answer: Vec<u8>,
    written: usize,
    /// Bytes of the body that are still to come.
    left: u64,
    closes: bool,
    /// Until when the answer waits for the body, and then, until when the body is waited for.
    until: Option<Pin<Box<Sleep>>>,
    waited: bool,
    pending: Option<PendingAnswer>,
}

impl Socket {
    /// Whether the next bytes begin a request that may be refused by its head.
    pub(super) fn may_refuse(&mut self) -> bool {
        self.door.as_mut().is_some_and(|door| door.is_before_request(&self.state))
    }

    /// Refuses the request that these bytes begin with, or passes them on.
    pub(super) fn refuses(&mut self, bytes: &[u8], may_refuse: bool) -> bool {
        let Some(door) = &mut self.door else { return false };
        let refused = may_refuse.then(|| gate::consider(&*door.gate, door.peer, bytes)).flatten();
        let Some(Refused { answer, left, closes }) = refused else {
            door.framing.give(bytes, &self.state);
            return false;
        };
        let pending = Some(self.state.begin());
        self.state.delivery().set_answer_bytes(answer.len() as u64);
        let (written, until, waited) = (0, None, false);
        self.refusal = Some(Refusal { answer, written, left, closes, until, waited, pending });
        true
    }

    /// Brings the present refusal to its end, if there is one. Whether the connection goes on.
    pub(super) fn poll_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(mut refusal) = self.refusal.take() else { return Poll::Ready(Ok(true)) };
        let outcome = self.poll_present(&mut refusal, context);
        if outcome.is_pending() {
            self.refusal = Some(refusal);
        }
        outcome
    }

    fn poll_present(
        &mut self,
        refusal: &mut Refusal,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let mut ended = false;
        while refusal.left > 0 && !ended {
            let read = when_ready(
                || self.stream.poll_read_ready(context),
                || {
                    self.stream
                        .try_io(Interest::READABLE, || throw_away(&self.stream, refusal.left))
                },
            );
            let Poll::Ready(read) = read else { break };
            let read = read?;
            self.moved = Instant::now();
            refusal.left = refusal.left.saturating_sub(read as u64);
            ended = read == 0;
        }
        if ended || refusal.left == 0 {
            self.state.set_partial(false);
        } else {
            ended = self.is_over(refusal, context);
        }
        if ended || refusal.left == 0 || refusal.waited {
            while let Some(rest) = refusal.answer.get(refusal.written..).filter(|r| !r.is_empty()) {
                match ready!(self.write_some(context, rest))? {
                    0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                    written => refusal.written += written,
                }
            }
            self.pace = None;
            self.state.set_stalled(false);
            refusal.pending = None;
            if ended || refusal.closes {
                return Poll::Ready(Ok(false));
            }
        }
        if refusal.left == 0 { Poll::Ready(Ok(true)) } else { Poll::Pending }
    }

    /// Whether the rest of a body is not waited for any more.
    fn is_over(&self, refusal: &mut Refusal, context: &mut Context<'_>) -> bool {
        let until = refusal.until.get_or_insert_with(|| Box::pin(sleep(GRACE)));
        while until.as_mut().poll(context).is_ready() {
            if refusal.waited {
                return true;
            }
            refusal.waited = true;
            let timeouts = self.door.as_ref().map(|door| (door.body_timeout, door.header_timeout));
            let rest = timeouts.map_or(GRACE, |(body, header)| body.min(header / 2));
            until.as_mut().reset(Instant::now() + rest);
        }
        self.state.closes_when_quiet() && self.is_quiet()
    }
}
