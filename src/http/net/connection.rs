//! One client's connection: requests go to the router and answers back, until either side ends it.
//! Where connections come from and what they request is not known here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use axum::{Error, Router};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};
use tower::Service;

use crate::http::net::gate::{FaultyHead, Framing, Gate};
use crate::http::net::shutdown::{Phase, Shutdown};
use crate::http::net::socket::{Door, Socket};
use crate::http::net::state::{ConnectionState, Peer, SKIPPED_BYTES};
use crate::http::net::{gate, kernel};
use crate::http::observe::streams::{EarlyEnds, EndReason};
use crate::http::request::body;
use crate::http::settings::Settings;

/// Interval of checks of a connection while the service waits for it to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long the head of a request on a spare descriptor may take. It waited in the kernel's queue
/// already, so mostly it is there.
const HURRY: Duration = Duration::from_millis(100);
const MIN_HEADER_BYTES: usize = 8 << 10;

/// Limits for a client: times, and numbers of requests.
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
    pub fn from_settings(settings: &Settings) -> Self {
        let mut protocol = http1::Builder::new();
        // Without a timer hyper accepts the timeout and never applies it.
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(settings.header_timeout_s))
            .max_buf_size(settings.header_bytes.max(MIN_HEADER_BYTES))
            // The buffer's size alone would let through a longer head that comes in one piece.
            .max_header_size(settings.header_bytes.max(MIN_HEADER_BYTES))
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

    /// A single request without delay: the options of a connection that all others wait behind.
    pub(crate) fn single_request(&self) -> Self {
        let mut options = self.clone();
        options.protocol.header_read_timeout(HURRY);
        options.requests = 1;
        options.gate = None;
        options
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    Finished,
    Dropped,
}

/// Serves one connection to its end.
///
/// hyper's own graceful shutdown closes a connection whose request has arrived but was not read
/// yet, or was read in part. So this one is not used: from the order to stop on every answer
/// carries `Connection: close`, and an idle connection is closed by its socket, which knows what
/// has arrived.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    options: &ConnectionOptions,
    ends: &EarlyEnds,
    mut stop: Shutdown,
) -> ConnectionEnd {
    let state = Arc::new(ConnectionState::default());
    let stream = Arc::new(stream);
    let socket = Socket::new(stream.clone(), state.clone(), options.write_timeout)
        .behind(options.door(peer, &stop));
    let requests = RequestService {
        router,
        stream: stream.clone(),
        peer: Peer(peer),
        state: state.clone(),
        stop: stop.clone(),
        most: options.requests,
        body_timeout: options.body_timeout,
    };
    // A type that implements the trait of services would have to box each answer to name it.
    let service = service_fn(move |request| requests.answer(request));
    let served = options.protocol.serve_connection(TokioIo::new(socket), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        // Nobody is left to read: dropping the request frees what computes its answer. A client
        // that only closed its own side is not gone.
        _ = stream.ready(Interest::ERROR) => {
            if state.is_unfinished() {
                ends.tell(EndReason::ClientGone, peer);
            }
            return ConnectionEnd::Finished;
        }
        () = stop.reached(Phase::Closing) => {
            state.closing.set(true);
            loop {
                if stop.is(Phase::Hurried) {
                    state.hurried.set(true);
                }
                // Each turn polls hyper first, and hyper polls the socket.
                tokio::select! {
                    biased;
                    ended = served.as_mut() => break ended,
                    () = stop.reached(Phase::Abandoned) => return match state.is_unfinished() {
                        true => ConnectionEnd::Dropped,
                        false => ConnectionEnd::Finished,
                    },
                    () = sleep(LOOK) => {}
                }
            }
        }
    };
    if let Err(error) = ended {
        match early_end(&error, &state) {
            Some(reason) => ends.tell(reason, peer),
            None => tracing::debug!(%peer, %error, "connection ended"),
        }
    }
    ConnectionEnd::Finished
}

/// Why a connection ended early, if it did: an idle connection that timed out, or was closed
/// between requests, did not.
fn early_end(error: &hyper::Error, state: &ConnectionState) -> Option<EndReason> {
    if state.too_slow.get() {
        return Some(EndReason::WriteTimeout);
    }
    if error.is_timeout() {
        let idle = state.asked() > 0 && !state.partial.get();
        return (!idle).then_some(EndReason::HeaderTimeout);
    }
    if error.is_parse() {
        return Some(EndReason::InvalidHead);
    }
    let broken_off = error.is_incomplete_message() || state.is_unfinished();
    broken_off.then_some(EndReason::ClientGone)
}

struct RequestService {
    router: Router,
    stream: Arc<TcpStream>,
    peer: Peer,
    state: Arc<ConnectionState>,
    stop: Shutdown,
    most: u64,
    body_timeout: Duration,
}

impl RequestService {
    fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> impl Future<
        Output = Result<Response<impl HttpBody<Data = Bytes, Error = Error> + use<>>, Infallible>,
    > + use<> {
        let pending = self.state.begin();
        let last = self.state.asked() >= self.most;
        let declared = body::declared(request.headers());
        self.state.set_body_bytes(framed_bytes(request.headers(), declared));
        let (stop, state) = (self.stop.clone(), self.state.clone());
        if let Err(fault) = gate::check(&request) {
            request.extensions_mut().insert(FaultyHead(fault));
        }
        request.extensions_mut().insert(self.peer);
        if body::is_lines(request.headers()) {
            // The kernel would end a connection whose client does not read for that long, though
            // this client need not while it sends. A client that is gone sends nothing, which the
            // stream notices sooner.
            let _ = kernel::end_unacknowledged(SockRef::from(&*self.stream), None);
            request.extensions_mut().insert(Arc::clone(&self.state.delivery));
        }
        let skip =
            may_be_skipped(request.headers(), declared).then(|| Instant::now() + self.body_timeout);
        let request = request.map(|body| Received::new(body, state.clone(), skip));
        let answer = self.router.clone().call(request);
        async move {
            let Ok(mut response) = answer.await;
            if last || stop.is(Phase::Leaving) || state.abandoned.get() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            let length = response.body().size_hint().exact();
            state.delivery.set_answer_bytes(length.unwrap_or(0));
            Ok(response.map(|body| {
                body.map_frame(move |frame| {
                    // hyper drops the body, and `pending` with it, after the last part was taken.
                    let _ = &pending;
                    frame
                })
            }))
        }
    }
}

/// The length of a request's body if the head states it in bytes; `None` for an upgrade.
fn framed_bytes(headers: &HeaderMap, declared: Option<u64>) -> Option<u64> {
    if headers.contains_key(TRANSFER_ENCODING) || headers.contains_key(UPGRADE) {
        return None;
    }
    if headers.contains_key(CONTENT_LENGTH) { declared } else { Some(0) }
}

/// Whether an unread body is short enough to be read anyway, so that the connection can be used
/// again. Reading a body that waits for `100 Continue` would request it.
fn may_be_skipped(headers: &HeaderMap, declared: Option<u64>) -> bool {
    declared.is_some_and(|length| length <= SKIPPED_BYTES) && !headers.contains_key(EXPECT)
}

/// A request's body, watched for its end. If it is dropped before its end, the rest is read until
/// the moment `skip`; without `skip`, or after it, the connection ends with the answer.
struct Received {
    body: Option<Incoming>,
    state: Arc<ConnectionState>,
    skip: Option<Instant>,
}

impl Received {
    fn new(body: Incoming, state: Arc<ConnectionState>, skip: Option<Instant>) -> Self {
        state.partial.set(!body.is_end_stream());
        state.receiving.set(!body.is_end_stream());
        Self { body: Some(body), state, skip }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.state.receiving.set(false);
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        let skip = self.skip.filter(|skip| Instant::now() < *skip);
        let (Some(skip), Ok(runtime)) = (skip, Handle::try_current()) else {
            self.state.abandoned.set(true);
            return;
        };
        let mut rest = Self { body: Some(body), state: self.state.clone(), skip: None };
        // Drains the body beside the answer, so that an error does not wait for the body.
        runtime
            .spawn(timeout_at(skip, async move { while let Some(Ok(_)) = rest.frame().await {} }));
    }
}

impl HttpBody for Received {
    type Data = <Incoming as HttpBody>::Data;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(&mut *body).poll_frame(context);
        let ended = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => body.is_end_stream(),
            _ => false,
        };
        if ended {
            self.state.partial.set(false);
            self.state.receiving.set(false);
        }
        if matches!(frame, Poll::Ready(None)) {
            // A chunked body does not report by itself that it has ended.
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use axum::routing::post;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::http::net::shutdown::ShutdownTrigger;
    use crate::http::observe::series::Counter;

    /// A client may send lines for longer than the kernel lets others leave answers unread.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_kernel_does_not_end_a_stream_that_is_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let limit = Some(Duration::from_secs(30));
        SockRef::from(&accepted).set_tcp_user_timeout(limit).unwrap();
        let same = accepted.as_fd().try_clone_to_owned().unwrap();
        let timeout = || SockRef::from(&same).tcp_user_timeout().unwrap();
        let (seen, mut requests) = mpsc::channel::<()>(2);
        let router = Router::new().route("/", post(async move || seen.send(()).await.unwrap()));
        let (_orders, stop) = ShutdownTrigger::new();
        let options = ConnectionOptions::from_settings(&Settings::default());
        let ends = EarlyEnds::new(|_| Counter::default(), Arc::default());
        tokio::spawn(async move {
            serve_connection(accepted, peer, router, &options, &ends, stop).await
        });
        for (media, expected) in [("json", limit), ("x-ndjson", None)] {
            let head = format!(
                "POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/{media}\r\n\
                 content-length: 0\r\n\r\n"
            );
            client.write_all(head.as_bytes()).await.unwrap();
            requests.recv().await.unwrap();
            assert_eq!(timeout(), expected, "{media}");
        }
    }
}
