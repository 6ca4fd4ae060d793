//! One client's connection: requests handed to the router, answers handed back, until either side
//! has had enough. Where connections come from and what is asked on them is not known here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::Request;
use axum::http::Response;
use axum::http::header::CONNECTION;
use hyper::body::Body as HttpBody;
use hyper::body::Frame;
use hyper::body::Incoming;
use hyper::body::SizeHint;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tower::Service;

use crate::http::Settings;
use crate::http::exchange::Answering;
use crate::http::exchange::Exchange;
use crate::http::socket::Socket;
use crate::http::stop::Stop;

/// How often a connection is looked at while the service waits for it to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long the head of a hurried request may take. It waited in the kernel's queue already, so
/// mostly it is there.
const HURRY: Duration = Duration::from_millis(250);
/// Below this hyper's reader panics; the settings keep above it, tests may not.
const LEAST_HEADER_BYTES: usize = 8 << 10;

/// Who is at the other end: a request extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What a client must put up with.
#[derive(Debug, Clone)]
pub struct Terms {
    protocol: http1::Builder,
    write_timeout: Duration,
    requests: u64,
}

impl Terms {
    /// The usual terms.
    pub fn of(settings: &Settings) -> Self {
        let mut protocol = http1::Builder::new();
        // Without a timer hyper accepts the timeout and never applies it.
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(settings.header_timeout_s))
            .max_buf_size(settings.header_bytes.max(LEAST_HEADER_BYTES))
            .max_headers(settings.header_count)
            .half_close(false)
            .keep_alive(true);
        Self {
            protocol,
            write_timeout: Duration::from_secs(settings.write_timeout_s),
            requests: settings.requests_per_connection,
        }
    }

    /// One request at once: the terms of a connection that all others wait behind.
    pub fn hurried(&self) -> Self {
        let mut terms = self.clone();
        terms.protocol.header_read_timeout(HURRY);
        terms.requests = 1;
        terms
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing was left to do.
    Finished,
    /// It was dropped with something unfinished.
    Dropped,
}

/// Serves one connection to its end.
///
/// hyper's own graceful shutdown closes a connection whose request has arrived but was not read
/// yet, or was read in part. So this one is not used: from the order to stop on every answer says
/// that it is the last, and a connection on which nothing is asked is closed by its socket, which
/// knows what has arrived.
pub async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    terms: &Terms,
    mut stop: Stop,
) -> Ending {
    let exchange = Arc::new(Exchange::default());
    let socket = Socket::new(stream, exchange.clone(), terms.write_timeout);
    let conversation = Conversation {
        router,
        peer: Peer(peer),
        exchange: exchange.clone(),
        stop: stop.clone(),
        served: AtomicU64::new(0),
        most: terms.requests,
    };
    // A type that implements the trait of services would have to box each answer to name it.
    let service = service_fn(move |request| conversation.answer(request));
    let served = terms.protocol.serve_connection(TokioIo::new(socket), service);
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        () = stop.closing() => {
            exchange.close_when_quiet();
            loop {
                // Each turn asks hyper first, and hyper asks the socket.
                tokio::select! {
                    biased;
                    ended = served.as_mut() => break ended,
                    () = stop.abandoned() => return match exchange.is_unfinished() {
                        true => Ending::Dropped,
                        false => Ending::Finished,
                    },
                    () = sleep(LOOK) => {}
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended early");
    }
    Ending::Finished
}

struct Conversation {
    router: Router,
    peer: Peer,
    exchange: Arc<Exchange>,
    stop: Stop,
    served: AtomicU64,
    most: u64,
}

impl Conversation {
    fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Reply>, Infallible>> + use<> {
        let last = self.served.fetch_add(1, Relaxed).saturating_add(1) >= self.most;
        let answering = self.exchange.begin();
        let stop = self.stop.clone();
        request.extensions_mut().insert(self.peer);
        let request = request.map(|body| Received::new(body, self.exchange.clone()));
        let answer = self.router.clone().call(request);
        async move {
            let Ok(mut response) = answer.await;
            if last || stop.is_leaving() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Reply { body, _answering: answering }))
        }
    }
}

/// A request's body, watched for its end.
struct Received {
    body: Incoming,
    exchange: Arc<Exchange>,
}

impl Received {
    fn new(body: Incoming, exchange: Arc<Exchange>) -> Self {
        exchange.set_partial(!body.is_end_stream());
        Self { body, exchange }
    }
}

impl HttpBody for Received {
    type Data = <Incoming as HttpBody>::Data;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let ended = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            _ => false,
        };
        if ended {
            self.exchange.set_partial(false);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body; hyper drops it when the last of it has been taken.
struct Reply {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Reply {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
