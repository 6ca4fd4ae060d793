//! A listener with its own runtime to try connections on, and clients that speak HTTP badly.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use cognate_server::http::net::Gate;
use cognate_server::http::net::shutdown::{Drained, Phase, ShutdownTrigger};
use cognate_server::http::observe::series::{Counter, Gauge};
use cognate_server::http::observe::streams::{EarlyEnds, EndReason};
use cognate_server::http::{ConnectionMetrics, Listener, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A request as short as can be.
pub const ASK: &[u8] = b"GET /hello HTTP/1.1\r\nhost: h\r\n\r\n";

/// Settings with an odd choice here and there.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut settings = Settings { listen, ..Settings::default() };
    change(&mut settings);
    settings
}

/// A listener being served.
pub struct Served {
    pub address: SocketAddr,
    pub orders: ShutdownTrigger,
    pub ended: JoinHandle<Drained>,
    open: Gauge,
    refused: Counter,
    early: [Counter; 5],
}

impl Served {
    pub fn start(settings: &Settings, router: Router) -> Self {
        Self::behind(settings, router, None)
    }

    /// A listener with a gate before it.
    pub fn behind(settings: &Settings, router: Router, gate: Option<Arc<dyn Gate>>) -> Self {
        let (open, refused) = (Gauge::default(), Counter::default());
        let early: [Counter; 5] = Default::default();
        let counter = |reason: EndReason| {
            let place = EndReason::ALL.iter().position(|known| *known == reason).unwrap();
            early[place].clone()
        };
        let metrics = ConnectionMetrics {
            open: open.clone(),
            refused: refused.clone(),
            ended: EarlyEnds::new(counter, Arc::default()),
        };
        let listener = Listener::bind(settings.listen, settings, metrics).unwrap();
        let listener = match gate {
            Some(gate) => listener.behind(gate),
            None => listener,
        };
        let address = listener.local_addr();
        let (orders, stop) = ShutdownTrigger::new();
        let served = tokio::spawn(listener.serve(router, stop));
        Self { address, orders, ended: served, open, refused, early }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.open.value() as usize
    }

    /// How often there was no room.
    pub fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Connections that ended early, by the reasons that there were.
    pub fn early_ends(&self) -> Vec<(&'static str, u64)> {
        let counts = EndReason::ALL.iter().zip(self.early.iter());
        let counts = counts.map(|(reason, count)| (reason.name(), count.value()));
        counts.filter(|&(_, count)| count > 0).collect()
    }

    /// Waits until that many connections are open.
    pub async fn until_open(&self, expected: usize) {
        let begun = Instant::now();
        while self.open() != expected {
            let open = self.open();
            assert!(begun.elapsed() < Duration::from_secs(8), "{open} open, not {expected}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops as the service does, without its delays.
    pub async fn stop(self, grace: Duration) -> Drained {
        self.orders.order(Phase::Leaving);
        self.orders.order(Phase::Closing);
        let mut ended = self.ended;
        if let Ok(drained) = timeout(grace, &mut ended).await {
            return drained.unwrap();
        }
        self.orders.order(Phase::Abandoned);
        ended.await.unwrap()
    }
}

/// Reads one answer whose length its head tells; `None` if the connection ended before its end.
pub async fn answer(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..end].to_vec()).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            let body = &read[end + 4..];
            if body.len() >= length {
                return Some((head, body[..length].to_vec()));
            }
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// Asks once and reads the answer.
pub async fn ask(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    stream.write_all(ASK).await.ok()?;
    answer(stream).await
}

/// How long it takes until the other side closes; `None` if it does not within `most`.
pub async fn closed_within(stream: &mut TcpStream, most: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let mut part = [0; 4 << 10];
    let end = async {
        while let Ok(count) = stream.read(&mut part).await {
            if count == 0 {
                return;
            }
        }
    };
    timeout(most, end).await.ok().map(|()| begun.elapsed())
}
