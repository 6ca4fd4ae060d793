//! Clients that mean no good: they send or read as slowly as they can, and time how long the server
//! puts up with it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::wire;
use crate::wire::Connection;

/// The pace of the slow ones.
const SECOND: Duration = Duration::from_secs(1);

/// How a client keeps the server waiting for a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// It sends nothing.
    Silent,
    /// It sends a byte a second.
    Dribbled,
    /// It makes one request and then no other.
    Idle,
    /// It sends part of a head and then a FIN.
    HalfClosed,
}

impl Head {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Silent, Self::Dribbled, Self::Idle, Self::HalfClosed];
}

/// Reads until the other side ends the connection.
async fn closed(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut bytes = [0; 4096];
    while matches!(stream.read(&mut bytes).await, Ok(1..)) {}
}

async fn keep_waiting(address: SocketAddr, kind: Head) -> Option<f64> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let mut since = Instant::now();
    match kind {
        Head::Silent => closed(&mut stream).await,
        Head::Dribbled => {
            let (mut incoming, mut outgoing) = stream.split();
            let dribble = async {
                let head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: ".iter();
                for byte in head.chain(b"a".iter().cycle()) {
                    if outgoing.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(SECOND).await;
                }
            };
            tokio::select! {
                () = closed(&mut incoming) => {}
                () = dribble => {}
            }
        }
        Head::Idle => {
            let mut connection = Connection::open(address).await.ok()?;
            connection.exchange(&wire::get("/healthz")).await.ok()?;
            since = Instant::now();
            closed(&mut connection.stream).await;
        }
        Head::HalfClosed => {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.ok()?;
            stream.shutdown().await.ok()?;
            closed(&mut stream).await;
        }
    }
    Some(since.elapsed().as_secs_f64())
}

/// How many seconds the server waited for a head, or none if it still does after `bound`.
pub async fn hold_head(address: SocketAddr, kind: Head, bound: Duration) -> Option<f64> {
    tokio::time::timeout(bound, keep_waiting(address, kind)).await.ok().flatten()
}

/// How the server ended a request whose body came too slowly.
#[derive(Debug)]
pub struct BodyEnd {
    /// The answer's status.
    pub status: u16,
    /// The answer's code.
    pub code: String,
    /// Seconds until the connection was closed.
    pub seconds: f64,
}

/// Sends a body at a byte a second, by length or in chunks.
pub async fn hold_body(address: SocketAddr, chunked: bool, bound: Duration) -> Option<BodyEnd> {
    let framing = if chunked { "transfer-encoding: chunked" } else { "content-length: 60" };
    let head = format!(
        "POST /similarity HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {framing}\r\n\r\n"
    );
    let byte: &[u8] = if chunked { b"1\r\n \r\n" } else { b" " };
    let mut parts = vec![head.as_bytes()];
    parts.resize(60, byte);
    let work = async {
        let mut connection = Connection::open(address).await.ok()?;
        let since = Instant::now();
        let reply = connection.exchange_in_parts(&parts, SECOND).await.ok()?;
        closed(&mut connection.stream).await;
        let seconds = since.elapsed().as_secs_f64();
        Some(BodyEnd { status: reply.status, code: reply.text("code"), seconds })
    };
    tokio::time::timeout(bound, work).await.ok().flatten()
}

/// Asks for a large answer and reads a byte a second of it, for as long as it is let.
pub async fn read_slowly(address: SocketAddr, request: &[u8]) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    // The less the kernel takes on this side, the sooner the server has to wait.
    socket.set_recv_buffer_size(4096)?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(request).await?;
    let mut byte = [0; 1];
    while stream.read(&mut byte).await? > 0 {
        tokio::time::sleep(SECOND).await;
    }
    Ok(())
}

/// Sends half a request and goes away.
pub async fn leave_halfway(address: SocketAddr, request: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.get(..request.len() / 2).unwrap_or_default()).await
}

/// Asks, reads the status and then nothing more for as long as is asked; the status.
pub async fn stop_reading(address: SocketAddr, request: &[u8], held: Duration) -> Option<u16> {
    let socket = TcpSocket::new_v4().ok()?;
    // The less the kernel takes on this side, the more the server has to hold.
    socket.set_recv_buffer_size(4096).ok()?;
    let mut stream = socket.connect(address).await.ok()?;
    stream.write_all(request).await.ok()?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.ok()?;
    tokio::time::sleep(held).await;
    std::str::from_utf8(status.get(9..)?).ok()?.parse().ok()
}

/// Sends all of a body but its end, and waits; the status that it is ended with.
pub async fn never_finish(address: SocketAddr, chunked: bool, body: usize) -> Option<u16> {
    let framing = match chunked {
        true => "transfer-encoding: chunked".to_owned(),
        false => format!("content-length: {}", body + 1),
    };
    let head = format!(
        "POST /rank HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
    );
    let piece = vec![b' '; 64 << 10];
    let piece = match chunked {
        true => [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat(),
        false => piece,
    };
    let mut parts = vec![head.as_bytes()];
    parts.resize(1 + body / (64 << 10), &piece);
    let mut connection = Connection::open(address).await.ok()?;
    let work = connection.exchange_in_parts(&parts, Duration::ZERO);
    tokio::time::timeout(Duration::from_secs(15), work).await.ok()?.ok().map(|reply| reply.status)
}

/// Opens a stream of lines and sends a byte of its first line every three seconds; its status, and how
/// many seconds it lived.
pub async fn drip(address: SocketAddr, bound: Duration) -> Option<(u16, f64)> {
    let work = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let head = b"POST /similarity HTTP/1.1\r\nhost: localhost\r\n\
            content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).await.ok()?;
        let since = Instant::now();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.ok()?;
        let status = std::str::from_utf8(status.get(9..)?).ok()?.parse().ok()?;
        let (mut incoming, mut outgoing) = stream.split();
        let letters = async {
            while outgoing.write_all(b"1\r\n[\r\n").await.is_ok() {
                tokio::time::sleep(3 * SECOND).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = closed(&mut incoming) => {}
            () = letters => {}
        }
        Some((status, since.elapsed().as_secs_f64()))
    };
    tokio::time::timeout(bound, work).await.ok().flatten()
}
