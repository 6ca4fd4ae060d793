//! A small load balancer: replicas in turn, readiness asked for five times a second, and one retry
//! on another replica after a failed connection, a failed exchange or a 503. Scoring is pure, so a
//! request may be sent twice.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::generator::ask;
use crate::wire;
use crate::wire::{Connection, Reply};

/// What the balancer says when no replica answers.
const BAD_GATEWAY: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";

/// How long a connection to a replica is kept unused: shorter than the server keeps it.
const IDLE: Duration = Duration::from_secs(10);

/// A replica as the balancer sees it.
struct Replica {
    address: Cell<SocketAddr>,
    ready: Cell<bool>,
    idle: RefCell<Vec<(Instant, Connection)>>,
}

/// The balancer.
pub struct Balancer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Number of exchanges that were tried a second time.
    pub retries: Rc<Cell<u64>>,
    replicas: Rc<Vec<Replica>>,
}

impl Balancer {
    /// Starts one in front of ready replicas.
    pub async fn start(replicas: &[SocketAddr]) -> anyhow::Result<Self> {
        let replica = |&address| Replica {
            address: Cell::new(address),
            ready: Cell::new(true),
            idle: RefCell::default(),
        };
        let replicas: Rc<Vec<Replica>> = Rc::new(replicas.iter().map(replica).collect());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, retries) = (listener.local_addr()?, Rc::new(Cell::new(0)));
        let (turn, counted, shared) =
            (Rc::new(Cell::new(0)), Rc::clone(&retries), Rc::clone(&replicas));
        tokio::task::spawn_local(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (turn, counted, shared) =
                    (Rc::clone(&turn), Rc::clone(&counted), Rc::clone(&shared));
                tokio::task::spawn_local(serve(client, shared, turn, counted));
            }
        });
        for place in 0..replicas.len() {
            tokio::task::spawn_local(watch(Rc::clone(&replicas), place));
        }
        Ok(Self { address, retries, replicas })
    }

    /// A replica has come back at another address; it counts again once it says it is ready.
    pub fn moved(&self, place: usize, address: SocketAddr) {
        self.replicas[place].address.set(address);
    }
}

/// Asks a replica again and again whether it is ready.
async fn watch(replicas: Rc<Vec<Replica>>, place: usize) {
    let replica = &replicas[place];
    loop {
        let request = wire::get("/ready");
        let reply = wire::once(replica.address.get(), &request, Duration::from_secs(1)).await;
        let ready = reply.is_ok_and(|reply| reply.status == 200);
        if !ready {
            replica.idle.borrow_mut().clear();
        }
        replica.ready.set(ready);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// One request from a client; none when it has gone. Bodies have a length here.
async fn request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1 << 10);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = std::str::from_utf8(&bytes[..end]).ok()?.to_ascii_lowercase();
            let length = head.split("content-length:").nth(1).unwrap_or("0");
            let length: usize = length.split("\r\n").next()?.trim().parse().ok()?;
            if bytes.len() >= end + 4 + length {
                return Some(bytes);
            }
        }
        if client.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

async fn exchange(replica: &Replica, request: &[u8]) -> Option<Reply> {
    let kept = replica.idle.borrow_mut().pop();
    let mut slot = kept.filter(|(since, _)| since.elapsed() < IDLE).map(|(_, kept)| kept);
    let reply = ask(&mut slot, replica.address.get(), request).await.ok()?;
    let kept = slot.filter(Connection::usable).map(|connection| (Instant::now(), connection));
    replica.idle.borrow_mut().extend(kept);
    Some(reply)
}

async fn serve(
    mut client: TcpStream,
    replicas: Rc<Vec<Replica>>,
    turn: Rc<Cell<usize>>,
    retries: Rc<Cell<u64>>,
) {
    let _ = client.set_nodelay(true);
    while let Some(request) = request(&mut client).await {
        let (mut answer, mut tried) = (None, None);
        for attempt in 0..2 {
            turn.set(turn.get().wrapping_add(1));
            let order = (0..replicas.len()).map(|step| (turn.get() + step) % replicas.len());
            let fits = |&place: &usize| replicas[place].ready.get() && tried != Some(place);
            let Some(place) = order.clone().find(fits).or(order.clone().next()) else { return };
            tried = Some(place);
            retries.set(retries.get() + attempt);
            answer = exchange(&replicas[place], &request).await;
            if answer.as_ref().is_some_and(|reply| reply.status != 503) {
                break;
            }
        }
        let bytes = answer.as_ref().map_or(BAD_GATEWAY, |reply| &reply.raw);
        let close = answer.as_ref().is_some_and(|reply| reply.close);
        if client.write_all(bytes).await.is_err() || close {
            return;
        }
    }
}
