//! The accept loop: how many connections are open at once, what happens at the limit, and how the
//! listener stops without resetting a connection that a client already has. Requests and answers
//! are not known here.

use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::http::net::connection::{ConnectionEnd, ConnectionOptions, serve_connection};
use crate::http::net::gate::Gate;
use crate::http::net::shutdown::{Drained, Phase, Shutdown};
use crate::http::net::{ConnectionMetrics, kernel};
use crate::http::observe::series::Gauge;
use crate::http::settings::Settings;

/// Pause of accepting when the process has no descriptors left.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How long sent bytes may stay unacknowledged before the peer counts as gone, unless a reader has longer:
/// one that stops reading closes its window, which the kernel counts alike.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long clients that have begun to connect may take for the rest of it while the service stops:
/// a round trip across the world. Connections without a request are kept open for longer than that.
const HANDSHAKE: Duration = Duration::from_millis(500);
const BACKLOG: i32 = 1024;
const SPARE: usize = 8;
/// Bytes of an answer that the kernel buffers unsent. Without a bound it takes in megabytes and
/// then nothing until a third has gone, so a slow reader looks like one that does not read at all.
const UNSENT: u32 = 64 << 10;

pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    most: u32,
    options: ConnectionOptions,
    metrics: ConnectionMetrics,
}

impl Listener {
    /// Binds a port, inside a runtime that can wait for sockets.
    pub fn bind(
        address: SocketAddr,
        settings: &Settings,
        metrics: ConnectionMetrics,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // A restarted service must get its port although old connections still close on it.
        socket.set_reuse_address(true)?;
        // Accepted connections inherit all of these.
        socket.set_tcp_nodelay(true)?;
        let probes = TcpKeepalive::new().with_time(Duration::from_secs(60));
        let probes = probes.with_interval(Duration::from_secs(10)).with_retries(3);
        socket.set_tcp_keepalive(&probes)?;
        let gone = USER_TIMEOUT.max(Duration::from_secs(settings.write_timeout_s));
        kernel::end_unacknowledged(SockRef::from(&socket), Some(gone))?;
        kernel::limit_unsent(SockRef::from(&socket), UNSENT)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(socket.into())?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            most: u32::try_from(settings.max_connections).unwrap_or(u32::MAX).max(1),
            options: ConnectionOptions::from_settings(settings),
            metrics,
        })
    }

    pub fn behind(self, gate: Arc<dyn Gate>) -> Self {
        Self { options: self.options.behind(gate), ..self }
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the order to close, and then until the last connection has ended or the order
    /// to abandon them comes.
    pub async fn serve(self, router: Router, mut stop: Shutdown) -> Drained {
        let acceptor = Acceptor {
            single_request: Arc::new(self.options.single_request()),
            options: Arc::new(self.options),
            metrics: self.metrics,
            router,
            stop: stop.clone(),
            most: self.most,
            places: Arc::new(Semaphore::new(self.most as usize)),
            dropped: Arc::default(),
        };
        tokio::select! {
            biased;
            () = stop.reached(Phase::Closing) => {}
            () = acceptor.accept(&self.socket) => {}
        }
        if kernel::refuse_handshakes(SockRef::from(&self.socket)) {
            tokio::select! {
                biased;
                () = stop.reached(Phase::Hurried) => {}
                () = sleep(HANDSHAKE) => {}
                () = acceptor.accept(&self.socket) => {}
            }
        }
        if let Err(error) = acceptor.close(self.socket, &mut stop).await {
            tracing::error!(%error, "clients that waited to be accepted were turned away");
        }
        acceptor.empty().await
    }
}

struct Acceptor {
    options: Arc<ConnectionOptions>,
    single_request: Arc<ConnectionOptions>,
    metrics: ConnectionMetrics,
    router: Router,
    stop: Shutdown,
    most: u32,
    places: Arc<Semaphore>,
    dropped: Arc<AtomicUsize>,
}

impl Acceptor {
    /// Accepts connections until it is dropped.
    ///
    /// With no descriptor left, it closes a spare one for the next client, which may then send one
    /// request: a health check without an answer would take the service for dead. So may every
    /// client until all spare descriptors are back.
    async fn accept(&self, socket: &TcpListener) {
        let mut spare = Vec::new();
        fill_up_spare(&mut spare);
        let mut exhausted = false;
        loop {
            // The slot is taken first: a full acceptor leaves clients to the kernel's queue.
            let place = self.place().await;
            match socket.accept().await {
                Ok((stream, peer)) => {
                    exhausted &= !fill_up_spare(&mut spare);
                    self.spawn(stream, peer, place, exhausted);
                }
                Err(error) if is_only_the_clients(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut exhausted, true) {
                        tracing::error!(%error, "cannot accept connections");
                    }
                    if is_out_of_descriptors(&error) && spare.pop().is_some() {
                        continue;
                    }
                    // The client stays in the queue, so accepting again at once would spin.
                    sleep(BACK_OFF).await;
                }
            }
        }
    }

    async fn place(&self) -> OwnedSemaphorePermit {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return place;
        }
        self.metrics.refused.increment(1);
        let place = self.places.clone().acquire_owned().await;
        place.expect("the semaphore lives as long as this value and is never closed")
    }

    fn spawn(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: OwnedSemaphorePermit,
        single_request: bool,
    ) {
        let open = OpenConnection::enters(&self.metrics, place);
        let options = if single_request { &self.single_request } else { &self.options };
        let options = Arc::clone(options);
        let (router, stop) = (self.router.clone(), self.stop.clone());
        let (dropped, ends) = (self.dropped.clone(), self.metrics.ended.clone());
        tokio::spawn(async move {
            if serve_connection(stream, peer, router, &options, &ends, stop).await
                == ConnectionEnd::Dropped
            {
                dropped.fetch_add(1, Relaxed);
            }
            drop(open);
        });
    }

    /// Stops listening. Clients that the kernel already accepted have a connection as far as they
    /// can know and may have sent their request; closing the socket now would reset them.
    async fn close(&self, socket: TcpListener, stop: &mut Shutdown) -> io::Result<()> {
        // Asked directly, since the runtime may not know of the latest arrivals yet.
        let socket = socket.into_std()?;
        // If the socket cannot stop listening, connections may arrive for ever; the queue holds at
        // most this many.
        for _ in 0..=BACKLOG {
            let accepted = tokio::select! {
                biased;
                () = stop.reached(Phase::Abandoned) => return Ok(()),
                accepted = self.accept_waiting(&socket) => accepted?,
            };
            let Some((stream, peer, place)) = accepted else {
                return Ok(());
            };
            self.spawn(stream, peer, place, false);
        }
        Ok(())
    }

    /// The next client in the kernel's queue, if any.
    async fn accept_waiting(
        &self,
        socket: &std::net::TcpListener,
    ) -> io::Result<Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)>> {
        let place = self.place().await;
        loop {
            match socket.accept() {
                Ok((stream, peer)) => {
                    stream.set_nonblocking(true)?;
                    return Ok(Some((TcpStream::from_std(stream)?, peer, place)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_only_the_clients(&error) => {}
                Err(error) if is_out_of_descriptors(&error) => sleep(BACK_OFF).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn empty(&self) -> Drained {
        let all = self.places.acquire_many(self.most).await;
        drop(all);
        Drained { dropped: self.dropped.load(Relaxed) }
    }
}

/// Whether accepting failed for this client alone, and the next may well succeed.
fn is_only_the_clients(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

struct OpenConnection {
    open: Gauge,
    _place: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn enters(metrics: &ConnectionMetrics, place: OwnedSemaphorePermit) -> Self {
        metrics.open.increment(1.0);
        Self { open: metrics.open.clone(), _place: place }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.decrement(1.0);
    }
}

fn fill_up_spare(spare: &mut Vec<UnixDatagram>) -> bool {
    while spare.len() < SPARE {
        let Ok(descriptor) = UnixDatagram::unbound() else { return false };
        spare.push(descriptor);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::observe::series::Counter;
    use crate::http::observe::streams::EarlyEnds;

    #[tokio::test]
    async fn connections_inherit_what_finds_out_dead_peers() {
        // A reader has at least what the kernel gives to any peer.
        for (write_timeout_s, gone) in [(1, USER_TIMEOUT), (90, Duration::from_secs(90))] {
            let listen = ([127, 0, 0, 1], 0).into();
            let settings = Settings { listen, write_timeout_s, ..Settings::default() };
            let metrics = ConnectionMetrics {
                open: Gauge::default(),
                refused: Counter::default(),
                ended: EarlyEnds::new(|_| Counter::default(), Arc::default()),
            };
            let listener = Listener::bind(settings.listen, &settings, metrics).unwrap();
            let _client = TcpStream::connect(listener.local_addr()).await.unwrap();
            let (accepted, _) = listener.socket.accept().await.unwrap();
            let accepted = SockRef::from(&accepted);
            assert!(accepted.keepalive().unwrap() && accepted.tcp_nodelay().unwrap());
            assert_eq!(accepted.tcp_keepalive_time().unwrap(), Duration::from_secs(60));
            assert_eq!(accepted.tcp_keepalive_interval().unwrap(), Duration::from_secs(10));
            assert_eq!(accepted.tcp_keepalive_retries().unwrap(), 3);
            #[cfg(target_os = "linux")]
            {
                assert_eq!(accepted.tcp_user_timeout().unwrap(), Some(gone));
                assert_eq!(accepted.tcp_notsent_lowat().unwrap(), UNSENT);
            }
        }
    }
}
