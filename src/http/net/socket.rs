//! A client's socket, which gives up on clients that do not read, and closes without resetting what
//! was sent. HTTP is not known here.

use std::io;
use std::io::{ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::http::net::gate;
use crate::http::net::gate::{Framing, Gate, Refused};
use crate::http::net::shutdown::{Phase, Shutdown};
use crate::http::net::state::{ConnectionState, Peer, PendingAnswer};

/// Bytes that a client must read within the write timeout. Kernels deliver in bursts of the window
/// that the client opened, so a client that reads a byte a second lets some hundred kilobytes
/// through at once and then nothing for hours; a timeout that any written byte resets would start
/// anew with each such burst.
pub(crate) const MIN_PROGRESS: usize = 64 << 10;
/// Most write timeouts that reading a long answer may take in all: the bytes that must be read
/// within one grow with the answer, so that no client holds a large one for hours.
pub(crate) const MAX_TIMEOUTS: u64 = 64;
/// How long a connection must have been silent before it counts as idle while the service stops:
/// bytes that a client sent right after connecting, or after its last answer, have arrived by then.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// How long the rest of an unwanted request is read and discarded after the last answer. Closing
/// with unread bytes makes the kernel send a reset, which destroys the answer.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

const UNWANTED: usize = 128 << 10;

pub(crate) struct Socket {
    stream: Arc<TcpStream>,
    state: Arc<ConnectionState>,
    write_timeout: Duration,
    pace: Option<Pace>,
    moved: Instant,
    parting: Option<Pin<Box<Sleep>>>,
    door: Option<Door>,
    refusal: Option<Refusal>,
}

/// The progress of a write that the client holds up.
#[derive(Debug)]
struct Pace {
    until: Pin<Box<Sleep>>,
    written: usize,
    /// Whether a body was still being received when this began.
    receiving: bool,
}

impl Socket {
    pub(crate) fn new(
        stream: Arc<TcpStream>,
        state: Arc<ConnectionState>,
        write_timeout: Duration,
    ) -> Self {
        let (moved, pace, parting) = (Instant::now(), None, None);
        Self { stream, state, write_timeout, pace, moved, parting, door: None, refusal: None }
    }

    /// Sets the gate, which may refuse a request by its head.
    pub(super) fn behind(self, door: Option<Door>) -> Self {
        Self { door, ..self }
    }

    fn is_quiet(&self) -> bool {
        let waiting = || SockRef::from(&*self.stream).peek(&mut [MaybeUninit::uninit()]);
        !self.state.owes_answer()
            && (self.state.hurried.get() || self.moved.elapsed() >= QUIET)
            && waiting().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    fn paced(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = outcome {
            self.moved = Instant::now();
            if let (Ok(written), Some(pace)) = (&outcome, &mut self.pace) {
                pace.written = pace.written.saturating_add(*written);
                let share = self.state.delivery.answer_bytes() / MAX_TIMEOUTS;
                if pace.written >= MIN_PROGRESS.max(usize::try_from(share).unwrap_or(usize::MAX)) {
                    self.pace = None;
                }
            }
            return Poll::Ready(outcome);
        }
        self.state.stalled.set(true);
        let timeout = self.write_timeout;
        let receiving = self.state.receiving.get();
        let pace = self.pace.get_or_insert_with(|| Pace {
            until: Box::pin(sleep(timeout)),
            written: 0,
            receiving,
        });
        loop {
            ready!(pace.until.as_mut().poll(context));
            if !receiving && !pace.receiving {
                break;
            }
            // A client that still sends need not read yet; the writer bounds its unread answers.
            pace.receiving = receiving;
            pace.until.as_mut().reset(Instant::now() + timeout);
        }
        self.state.too_slow.set(true);
        self.state.delivery.give_up();
        // Otherwise unread bytes in the kernel's buffer would stay in memory.
        let _ = SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

/// Tries an operation whenever the socket seems ready for it.
fn when_ready<T>(
    mut ready: impl FnMut() -> Poll<io::Result<()>>,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Poll<io::Result<T>> {
    loop {
        ready!(ready())?;
        match attempt() {
            // The readiness was outdated; asking again waits for the next.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            outcome => return Poll::Ready(outcome),
        }
    }
}

/// Discards at most `most` bytes that have arrived, and returns how many. Linux need not even copy
/// them.
fn throw_away(stream: &TcpStream, most: u64) -> io::Result<usize> {
    let mut scratch = [MaybeUninit::uninit(); UNWANTED];
    let most = usize::try_from(most).unwrap_or(UNWANTED).min(UNWANTED);
    let flags = if cfg!(target_os = "linux") { libc::MSG_TRUNC } else { 0 };
    let scratch = scratch.get_mut(..most).unwrap_or_default();
    SockRef::from(stream).recv_with_flags(scratch, flags)
}

impl Socket {
    fn read_some(&self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = when_ready(
            || self.stream.poll_read_ready(context),
            || self.stream.try_read_buf(&mut *into),
        );
        read.map(|outcome| outcome.map(drop))
    }

    fn write_some(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome =
            when_ready(|| self.stream.poll_write_ready(context), || self.stream.try_write(bytes));
        self.paced(context, outcome)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        while ready!(self.poll_refusal(context))? {
            let may_refuse = self.may_refuse();
            let read = self.read_some(context, into);
            let bytes = into.filled().get(before..).unwrap_or_default();
            match read {
                Poll::Ready(Ok(())) if !bytes.is_empty() => {
                    self.moved = Instant::now();
                    self.state.partial.set(true);
                    if !self.refuses(bytes, may_refuse) {
                        return Poll::Ready(Ok(()));
                    }
                    // hyper gets none of it.
                    into.set_filled(before);
                }
                other => return self.without_bytes(other),
            }
        }
        // The connection ends, as if the client had ended it.
        Poll::Ready(Ok(()))
    }
}

impl Socket {
    /// The result for hyper of a read without bytes.
    fn without_bytes(&self, read: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        match read {
            // The client ended its side, so nothing of it can be left unread.
            Poll::Ready(Ok(())) => {
                self.state.partial.set(false);
                Poll::Ready(Ok(()))
            }
            // Reported as the client's end: the one way of closing that cannot lose a request which
            // has arrived and was not read yet.
            Poll::Pending if self.state.closing.get() && self.is_quiet() => {
                self.state.partial.set(false);
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_some(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = when_ready(
            || self.stream.poll_write_ready(context),
            || self.stream.try_write_vectored(parts),
        );
        self.paced(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Called once everything has been written, so nothing waits for the client any more.
    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pace = None;
        self.state.stalled.set(false);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let parting = match &mut this.parting {
            Some(parting) => parting,
            None => {
                match SockRef::from(&*this.stream).shutdown(std::net::Shutdown::Write) {
                    // The client closed first.
                    Err(error) if error.kind() == ErrorKind::NotConnected => {}
                    outcome => outcome?,
                }
                if !this.state.partial.get() {
                    return Poll::Ready(Ok(()));
                }
                // The answer is complete; discarding from here on loses no work.
                this.state.partial.set(false);
                this.parting.insert(Box::pin(sleep(LINGER)))
            }
        };
        loop {
            if parting.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let read = when_ready(
                || this.stream.poll_read_ready(context),
                || this.stream.try_io(Interest::READABLE, || throw_away(&this.stream, u64::MAX)),
            );
            if !matches!(ready!(read), Ok(1..)) {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// How long the answer waits for a body that is on its way. Many clients read only after they have
/// sent all, and abandon a connection whose answer comes earlier; a new connection costs both sides
/// more.
const GRACE: Duration = Duration::from_millis(5);

pub(in crate::http::net) struct Door {
    pub gate: Arc<dyn Gate>,
    pub peer: Peer,
    pub stop: Shutdown,
    pub requests: u64,
    pub body_timeout: Duration,
    /// How long hyper may wait for a head that it can see. It does not see refused requests, so its
    /// clock runs on.
    pub header_timeout: Duration,
    /// When the wait began, if the client waits.
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
        self.gate.may_refuse()
            && !self.stop.is(Phase::Leaving)
            && state.asked().saturating_add(1) < self.requests
            && since.elapsed() < self.header_timeout / 2
    }
}

struct Refusal {
    refused: Refused,
    written: usize,
    /// Until when the answer waits for the body, and then, until when the body is waited for.
    until: Option<Pin<Box<Sleep>>>,
    waited: bool,
    pending: Option<PendingAnswer>,
}

impl Socket {
    /// Whether the next bytes begin a request that may be refused by its head.
    fn may_refuse(&mut self) -> bool {
        self.door.as_mut().is_some_and(|door| door.is_before_request(&self.state))
    }

    /// Refuses the request at the beginning of these bytes, or passes them on.
    fn refuses(&mut self, bytes: &[u8], may_refuse: bool) -> bool {
        let Some(door) = &mut self.door else { return false };
        let refused = may_refuse.then(|| gate::consider(&*door.gate, door.peer, bytes)).flatten();
        let Some(refused) = refused else {
            door.framing.give(bytes, &self.state);
            return false;
        };
        let pending = Some(self.state.begin());
        self.state.delivery.set_answer_bytes(refused.answer.len() as u64);
        let (written, until, waited) = (0, None, false);
        self.refusal = Some(Refusal { refused, written, until, waited, pending });
        true
    }

    /// Completes the current refusal, if any. Returns whether the connection continues.
    fn poll_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
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
        while refusal.refused.left > 0 && !ended {
            let read = when_ready(
                || self.stream.poll_read_ready(context),
                || {
                    self.stream.try_io(Interest::READABLE, || {
                        throw_away(&self.stream, refusal.refused.left)
                    })
                },
            );
            let Poll::Ready(read) = read else { break };
            let read = read?;
            self.moved = Instant::now();
            refusal.refused.left = refusal.refused.left.saturating_sub(read as u64);
            ended = read == 0;
        }
        if ended || refusal.refused.left == 0 {
            self.state.partial.set(false);
        } else {
            ended = self.is_over(refusal, context);
        }
        if ended || refusal.refused.left == 0 || refusal.waited {
            while let Some(rest) =
                refusal.refused.answer.get(refusal.written..).filter(|r| !r.is_empty())
            {
                match ready!(self.write_some(context, rest))? {
                    0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                    written => refusal.written += written,
                }
            }
            self.pace = None;
            self.state.stalled.set(false);
            refusal.pending = None;
            if ended || refusal.refused.closes {
                return Poll::Ready(Ok(false));
            }
        }
        if refusal.refused.left == 0 { Poll::Ready(Ok(true)) } else { Poll::Pending }
    }

    /// Whether the wait for the rest of a body is over.
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
        self.state.closing.get() && self.is_quiet()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    async fn written_to_reader(pause: Duration) -> Option<ErrorKind> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Small buffers at both ends make reads and writes alternate.
        SockRef::from(&listener).set_send_buffer_size(4 << 10).unwrap();
        let client = tokio::net::TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(4 << 10).unwrap();
        let mut client = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let mut socket = Socket::new(Arc::new(accepted), Arc::default(), Duration::from_secs(1));
        tokio::spawn(async move {
            let mut part = vec![0; 4 << 10];
            while let Ok(1..) = client.read(&mut part).await {
                sleep(pause).await;
            }
        });
        let outcome = timeout(Duration::from_secs(4), socket.write_all(&vec![0; 16 << 20])).await;
        outcome.ok().map(|outcome| outcome.unwrap_err().kind())
    }

    #[tokio::test]
    async fn progress_counts_only_when_it_is_enough() {
        let (trickle, flow) = tokio::join!(
            written_to_reader(Duration::from_millis(100)),
            written_to_reader(Duration::from_millis(10)),
        );
        assert_eq!(trickle, Some(ErrorKind::TimedOut));
        assert_eq!(flow, None, "a steady reader was dropped");
    }
}
