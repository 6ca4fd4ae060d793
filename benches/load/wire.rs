//! A client's side of HTTP/1.1 on one connection: a request's bytes out, an answer's bytes in.
//!
//! It reads while it still writes, because a server may answer before it has read a large body, and
//! a client that only writes would lose that answer. What an answer should be is not known here.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection and how often it was used.
pub struct Connection {
    /// The socket.
    pub stream: TcpStream,
    buffer: Vec<u8>,
    exchanges: u64,
    usable: bool,
}

/// A whole answer.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Whether it says when to come back, in whole seconds.
    pub retry_after: bool,
    /// Whether it says that it is a problem in the shape of RFC 9457.
    pub problem: bool,
    /// Whether the connection ends with it.
    pub close: bool,
    /// Whether it came before the whole request was sent, after which the connection is no use.
    pub early: bool,
    /// Every byte of it.
    pub raw: Vec<u8>,
    body_at: usize,
    body_is: Body,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Body {
    Bytes(usize),
    Chunked,
    #[default]
    UntilTheEnd,
}

/// Why no whole answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No connection could be made.
    Connect,
    /// The other side's kernel reset the connection.
    Reset,
    /// The other side ended the connection in good order.
    Ended,
    /// What came is not HTTP.
    Garbled,
    /// The time allowed ran out.
    Late,
}

/// An exchange that ended without a whole answer.
#[derive(Debug, Clone, Copy)]
pub struct Broken {
    /// Why.
    pub fault: Fault,
    /// Whether every byte of the request had been taken by the kernel.
    pub sent: bool,
    /// Whether the connection served an earlier exchange.
    pub reused: bool,
    /// Whether part of an answer had come.
    pub begun: bool,
}

impl Broken {
    /// Without a connection there is nothing else to say.
    pub const CONNECT: Self =
        Self { fault: Fault::Connect, sent: false, reused: false, begun: false };

    /// Whether the server closed an idle connection while the request was on its way: its kernel
    /// refused the bytes, so nobody read them and they may be sent again (RFC 9112 section 9.3.1).
    pub fn idle_close(&self) -> bool {
        self.reused && !self.begun && self.fault == Fault::Reset
    }
}

impl Reply {
    /// The body, put together if it came in chunks.
    pub fn body(&self) -> Cow<'_, [u8]> {
        let rest = self.raw.get(self.body_at..).unwrap_or_default();
        match self.body_is {
            Body::Chunked => Cow::Owned(joined(rest).unwrap_or_default()),
            Body::Bytes(_) | Body::UntilTheEnd => Cow::Borrowed(rest),
        }
    }

    /// A member of the JSON body that is a string, `code` of a problem for instance.
    pub fn text(&self, member: &str) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body()).unwrap_or_default();
        body.get(member).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    }

    /// Reads what has come so far. None means that more must come.
    fn parse(raw: &[u8]) -> Result<Option<Self>, Fault> {
        let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&raw[..end]).map_err(|_| Fault::Garbled)?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
        let status = status.and_then(|line| line.get(..3)).and_then(|code| code.parse().ok());
        let mut reply = Self { body_at: end + 4, ..Self::default() };
        reply.status = status.ok_or(Fault::Garbled)?;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Fault::Garbled)?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    reply.body_is = Body::Bytes(value.parse().map_err(|_| Fault::Garbled)?);
                }
                "transfer-encoding" => reply.body_is = Body::Chunked,
                "connection" => reply.close = value.eq_ignore_ascii_case("close"),
                "retry-after" => reply.retry_after = value.parse::<u32>().is_ok(),
                "content-type" => reply.problem = value.starts_with("application/problem+json"),
                _ => {}
            }
        }
        Ok(Some(reply))
    }

    /// Whether `raw` holds the whole body.
    fn whole(&self, raw: &[u8]) -> bool {
        let rest = raw.get(self.body_at..).unwrap_or_default();
        match self.body_is {
            Body::Bytes(length) => rest.len() >= length,
            Body::Chunked => joined(rest).is_some(),
            Body::UntilTheEnd => self.status == 204 || self.status == 304,
        }
    }
}

/// The bytes of all chunks, once the last has come.
fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        rest = rest.get(line + 2..)?;
        if size == 0 {
            return rest.starts_with(b"\r\n").then_some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self, Broken> {
        let stream = TcpStream::connect(address).await.map_err(|_| Broken::CONNECT)?;
        stream.set_nodelay(true).map_err(|_| Broken::CONNECT)?;
        Ok(Self { stream, buffer: Vec::new(), exchanges: 0, usable: true })
    }

    /// Whether another request may be sent on it.
    pub fn usable(&self) -> bool {
        self.usable
    }

    /// Sends a request and reads its answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Reply, Broken> {
        self.exchange_in_parts(&[request], Duration::ZERO).await
    }

    /// The same; every other request goes out as many clients send it, its head in one write and
    /// its body in the next.
    pub async fn exchange_in_turn(&mut self, request: &[u8]) -> Result<Reply, Broken> {
        let head = request.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        match head.filter(|&head| head < request.len() && self.exchanges % 2 == 1) {
            Some(head) => {
                let parts = [&request[..head], &request[head..]];
                self.exchange_in_parts(&parts, Duration::ZERO).await
            }
            None => self.exchange(request).await,
        }
    }

    /// Does what `exchange` does, with a pause before each part but the first.
    pub async fn exchange_in_parts(
        &mut self,
        parts: &[&[u8]],
        pause: Duration,
    ) -> Result<Reply, Broken> {
        let reused = self.exchanges > 0;
        self.exchanges += 1;
        self.usable = false;
        self.buffer.clear();
        let (mut incoming, mut outgoing) = self.stream.split();
        let sending = async {
            for (place, part) in parts.iter().enumerate() {
                if place > 0 {
                    tokio::time::sleep(pause).await;
                }
                outgoing.write_all(part).await?;
            }
            Ok::<(), std::io::Error>(())
        };
        tokio::pin!(sending);
        let (mut ended, mut sent) = (false, false);
        let mut head: Option<Reply> = None;
        let fault = loop {
            self.buffer.reserve(16 << 10);
            let read = tokio::select! {
                biased;
                result = &mut sending, if !ended => {
                    // After a refused write the answer may still wait to be read.
                    ended = true;
                    sent = result.is_ok();
                    continue;
                }
                read = incoming.read_buf(&mut self.buffer) => read,
            };
            match read {
                Ok(0) => {
                    if let Some(reply) = head.take_if(|reply| reply.body_is == Body::UntilTheEnd) {
                        return Ok(Reply { raw: std::mem::take(&mut self.buffer), ..reply });
                    }
                    break Fault::Ended;
                }
                Ok(_) => {}
                Err(_) => break Fault::Reset,
            }
            if head.is_none() {
                match Reply::parse(&self.buffer) {
                    Ok(parsed) => head = parsed,
                    Err(fault) => break fault,
                }
            }
            if let Some(reply) = head.take_if(|reply| reply.whole(&self.buffer)) {
                self.usable = sent && !reply.close;
                let raw = std::mem::take(&mut self.buffer);
                return Ok(Reply { raw, early: !sent, ..reply });
            }
        };
        // A reset can stand behind a FIN that was sent before the request arrived.
        let refused = (ended && !sent) || incoming.as_ref().take_error().ok().flatten().is_some();
        let fault = if fault == Fault::Ended && refused { Fault::Reset } else { fault };
        Err(Broken { fault, sent, reused, begun: !self.buffer.is_empty() })
    }
}

/// One request on a connection of its own, within a time.
pub async fn once(
    address: SocketAddr,
    request: &[u8],
    patience: Duration,
) -> Result<Reply, Broken> {
    let work = async { Connection::open(address).await?.exchange(request).await };
    let late = Broken { fault: Fault::Late, ..Broken::CONNECT };
    tokio::time::timeout(patience, work).await.unwrap_or(Err(late))
}

/// A GET request's bytes.
pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// A POST request's bytes.
pub fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}
