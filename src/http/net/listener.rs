//! The accept loop: how many connections are open at once, what happens at the limit, and how the
//! listener stops without resetting a connection that a client already has. Requests and answers
//! are not known here.

use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::http::net::ConnectionMetrics;
use crate::http::net::connection::{ConnectionEnd, ConnectionOptions, serve_connection};
use crate::http::net::gate::Gate;
use crate::http::net::kernel;
use crate::http::net::shutdown::{Drained, Shutdown};
use crate::http::observe::series::Gauge;
use crate::http::settings::Settings;

/// Pause of accepting when the process has no descriptors left.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How long sent bytes may stay unacknowledged before the peer counts as gone.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long clients that have begun to connect may take for the rest of it while the service stops:
/// a round trip across the world. Connections without a request are kept for longer than that.
const HANDSHAKE: Duration = Duration::from_millis(500);
/// Connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 1024;
/// Number of spare descriptors.
const RESERVED: usize = 8;
/// Bytes of an answer that the kernel holds unsent. Without a bound it takes in megabytes and then
/// nothing until a third has gone, so a slow reader looks like one that does not read at all.
const UNSENT: u32 = 64 << 10;

pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    most: u32,
    options: ConnectionOptions,
    metrics: ConnectionMetrics,
}

impl Listener {
    /// Binds a port. To be called inside a runtime that can wait for sockets.
    pub fn bind(
        address: SocketAddr,
        settings: &Settings,
        metrics: ConnectionMetrics,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // A restarted service must get its port although old connections still fade away on it.
        socket.set_reuse_address(true)?;
        // Connections inherit all of these, already while they wait to be accepted.
        socket.set_tcp_nodelay(true)?;
        let probes = TcpKeepalive::new().with_time(Duration::from_secs(60));
        let probes = probes.with_interval(Duration::from_secs(10)).with_retries(3);
        socket.set_tcp_keepalive(&probes)?;
        kernel::end_unacknowledged(SockRef::from(&socket), Some(USER_TIMEOUT))?;
        kernel::limit_unsent(SockRef::from(&socket), UNSENT)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(socket.into())?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            most: u32::try_from(settings.max_connections).unwrap_or(u32::MAX).max(1),
            options: ConnectionOptions::of(settings),
            metrics,
        })
    }

    pub fn behind(self, gate: Arc<dyn Gate>) -> Self {
        Self { options: self.options.behind(gate), ..self }
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the order to close, and from then on until the last connection has ended or
    /// the order came to abandon them.
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
            () = stop.closing() => {}
            () = acceptor.accept(&self.socket) => {}
        }
        if kernel::refuse_handshakes(SockRef::from(&self.socket)) {
            tokio::select! {
                biased;
                () = stop.hurried() => {}
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

/// State that all connections of a listener share.
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
    /// Accepts connections for as long as it is let.
    async fn accept(&self, socket: &TcpListener) {
        let spare = SpareDescriptors::default();
        spare.fill();
        let mut exhausted = false;
        loop {
            // The place is taken first: a full acceptor leaves clients to the kernel's queue.
            let place = self.place().await;
            match socket.accept().await {
                Ok((stream, peer)) => {
                    if std::mem::take(&mut exhausted) {
                        spare.fill();
                    }
                    self.spawn(stream, peer, place, None);
                }
                Err(error) if is_only_the_clients(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut exhausted, true) {
                        tracing::error!(%error, "cannot accept connections");
                    }
                    if is_out_of_descriptors(&error) {
                        self.serve_from_spare(&spare, socket, place);
                    }
                    // The client stays in the queue, so asking again at once would spin.
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
        lent: Option<LentDescriptor>,
    ) {
        let open = OpenConnection::enters(&self.metrics, place);
        let options =
            if lent.is_some() { self.single_request.clone() } else { self.options.clone() };
        let (router, stop) = (self.router.clone(), self.stop.clone());
        let (dropped, ends) = (self.dropped.clone(), self.metrics.ended.clone());
        tokio::spawn(async move {
            if serve_connection(stream, peer, router, &options, &ends, stop).await
                == ConnectionEnd::Dropped
            {
                dropped.fetch_add(1, Relaxed);
            }
            // The descriptor is free again from here on, not before.
            drop(lent);
            drop(open);
        });
    }

    /// With no descriptor left, a few clients at a time are still accepted, for one request each: a
    /// health check that gets no answer would take the service for dead.
    fn serve_from_spare(
        &self,
        spare: &SpareDescriptors,
        socket: &TcpListener,
        place: OwnedSemaphorePermit,
    ) {
        let mut place = Some(place);
        while let Some(lent) = spare.lend() {
            let free = || self.places.clone().try_acquire_owned().ok();
            let Some(place) = place.take().or_else(free) else { return };
            let Some(Ok((stream, peer))) = socket.accept().now_or_never() else { return };
            self.spawn(stream, peer, place, Some(lent));
        }
    }

    /// Stops listening. Clients that the kernel already accepted have a connection as far as they
    /// can know and may have sent their request; closing the socket over them would reset them.
    async fn close(&self, socket: TcpListener, stop: &mut Shutdown) -> io::Result<()> {
        // Asked directly, since the runtime may not have heard yet of the latest arrivals.
        let socket = socket.into_std()?;
        // Where the socket cannot stop listening, connections may arrive for ever; the queue holds at most
        // this many.
        for _ in 0..=BACKLOG {
            let accepted = tokio::select! {
                biased;
                () = stop.abandoned() => return Ok(()),
                accepted = self.accept_waiting(&socket) => accepted?,
            };
            let Some((stream, peer, place)) = accepted else {
                return Ok(());
            };
            self.spawn(stream, peer, place, None);
        }
        Ok(())
    }

    /// The next client in the kernel's queue, if there is one.
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

    /// Waits until the last connection has ended.
    async fn empty(&self) -> Drained {
        let all = self.places.acquire_many(self.most).await;
        drop(all);
        Drained { dropped: self.dropped.load(Relaxed) }
    }
}

/// Whether accepting failed for this one client, and the next may well succeed.
fn is_only_the_clients(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// A connection counted as open, and its place.
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

/// Spare descriptors for when the process has none left.
#[derive(Clone, Default)]
struct SpareDescriptors(Arc<Mutex<Vec<UnixDatagram>>>);

impl SpareDescriptors {
    /// Holds as many as there may be; fewer where the system has no more to give.
    fn fill(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Descriptors in use come back by themselves.
        let wanted = RESERVED.saturating_sub(Arc::strong_count(&self.0) - 1);
        while held.len() < wanted {
            let Ok(descriptor) = UnixDatagram::unbound() else { return };
            held.push(descriptor);
        }
    }

    /// Gives a descriptor away; it is taken back when the returned value is dropped.
    fn lend(&self) -> Option<LentDescriptor> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        held.map(|descriptor| {
            drop(descriptor);
            LentDescriptor(self.clone())
        })
    }
}

struct LentDescriptor(SpareDescriptors);

impl Drop for LentDescriptor {
    fn drop(&mut self) {
        let mut held = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If another thread took the descriptor, `fill` tries again later.
        held.extend(UnixDatagram::unbound());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::observe::series::Counter;
    use crate::http::observe::streams::EarlyEnds;

    #[tokio::test]
    async fn connections_inherit_what_finds_out_dead_peers() {
        let settings = Settings { listen: ([127, 0, 0, 1], 0).into(), ..Settings::default() };
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
            assert_eq!(accepted.tcp_user_timeout().unwrap(), Some(USER_TIMEOUT));
            assert_eq!(accepted.tcp_notsent_lowat().unwrap(), UNSENT);
        }
    }
}
