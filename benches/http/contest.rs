//! The contestants, and the client that puts the same questions to each of them in turn.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};
use cognate::methods::Method;
use tokio::runtime::Runtime;

use crate::texts::Texts;
use crate::wire::Connection;
use crate::{server, wire};

/// Connections that ask, each as soon as it has its answer.
pub const CONNECTIONS: usize = 4;
/// One that reads vectors of texts, and the default, which compares all words with all words.
pub const METHODS: [Method; 2] = [Method::AvgCos, Method::DynamaxJaccard];
/// Requests of one pair in a turn.
const SMALL: usize = 3000;
/// Requests of a hundred pairs in a turn.
const LARGE: usize = 200;

/// The measurements of one contestant's turn.
pub struct Row {
    /// The contestant.
    pub name: String,
    taken: Counted,
    requests: usize,
}

/// What a server's process has taken since it began.
#[derive(Clone, Copy)]
struct Counted {
    nanos: f64,
    allocations: f64,
    bytes: f64,
}

impl Row {
    /// Microseconds of processor time a request.
    #[allow(dead_code)]
    pub fn micros(&self) -> f64 {
        self.taken.nanos / 1e3 / self.requests as f64
    }

    /// Allocations a request.
    #[allow(dead_code)]
    pub fn allocations(&self) -> f64 {
        self.taken.allocations / self.requests as f64
    }

    /// Bytes allocated a request.
    #[allow(dead_code)]
    pub fn bytes(&self) -> f64 {
        self.taken.bytes / self.requests as f64
    }
}

/// The name of a contestant that is asked over HTTP.
pub fn asked(method: Method, pairs: usize) -> String {
    format!("{} {pairs} over HTTP", method.name())
}

/// The name of a contestant that only computes.
pub fn computed(method: Method, pairs: usize) -> String {
    format!("{} {pairs} computed", method.name())
}

/// The server, the client, and the questions.
pub struct Contest {
    child: Child,
    orders: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
    runtime: Runtime,
    source: &'static str,
    asked: Vec<Resolved>,
}

/// A contestant that is asked over HTTP.
struct Resolved {
    name: String,
    connections: Vec<Connection>,
    requests: Vec<Vec<u8>>,
    turn: usize,
}

impl Contest {
    /// Starts the server and prepares the questions.
    pub fn begin() -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(server::FLAG)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("stdin was piped")?;
        let mut replies = BufReader::new(child.stdout.take().context("stdout was piped")?).lines();
        let addresses = replies.next().context("the server did not start")??;
        let (bare, service) = addresses.split_once(' ').context("two addresses")?;
        let (bare, service): (SocketAddr, SocketAddr) = (bare.parse()?, service.parse()?);
        let engine = server::engine()?;
        let texts = Texts::load(engine.model(), server::SEED);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut contest =
            Self { child, orders, replies, runtime, source: texts.source, asked: Vec::new() };
        contest.enter("bare".to_owned(), bare, "/", &texts, METHODS[0], 1)?;
        contest.enter("null".to_owned(), service, server::NULL, &texts, METHODS[0], 1)?;
        for method in METHODS {
            for pairs in [1, 100] {
                let name = asked(method, pairs);
                contest.enter(name, service, "/similarity", &texts, method, pairs)?;
            }
        }
        Ok(contest)
    }

    fn enter(
        &mut self,
        name: String,
        address: SocketAddr,
        path: &str,
        texts: &Texts,
        method: Method,
        pairs: usize,
    ) -> anyhow::Result<()> {
        let request = |turn| {
            let pairs = texts.run(turn, pairs);
            let body = serde_json::json!({ "pairs": pairs, "method": method.name() });
            wire::post(path, body.to_string().as_bytes())
        };
        let requests = (0..server::QUESTIONS).map(request).collect();
        let open = || self.runtime.block_on(Connection::open(address));
        let connections = (0..CONNECTIONS).map(|_| open()).collect::<Result<_, _>>();
        let connections = connections.map_err(|broken| anyhow::anyhow!("{name}: {broken:?}"))?;
        let turn = if pairs == 1 { SMALL } else { LARGE };
        self.asked.push(Resolved { name, connections, requests, turn });
        Ok(())
    }

    /// Where the texts are from.
    #[allow(dead_code)]
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Every contestant's turn.
    pub fn round(&mut self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for place in 0..self.asked.len() {
            let before = self.order("count")?;
            let asked = &mut self.asked[place];
            let (name, requests) = (asked.name.clone(), asked.turn);
            self.runtime.block_on(asked.all())?;
            let after = self.order("count")?;
            let taken = Counted {
                nanos: after.nanos - before.nanos,
                allocations: after.allocations - before.allocations,
                bytes: after.bytes - before.bytes,
            };
            rows.push(Row { name, taken, requests });
        }
        for method in METHODS {
            for (pairs, requests) in [(1, SMALL), (100, LARGE)] {
                let order = format!("compute {} {pairs} {requests}", method.name());
                let taken = self.order(&order)?;
                rows.push(Row { name: computed(method, pairs), taken, requests });
            }
        }
        Ok(rows)
    }

    fn order(&mut self, order: &str) -> anyhow::Result<Counted> {
        writeln!(self.orders, "{order}")?;
        let reply = self.replies.next().context("the server is gone")??;
        let numbers: Vec<f64> = reply.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [nanos, allocations, bytes] = numbers[..] else {
            anyhow::bail!("three numbers were expected, not {reply}");
        };
        Ok(Counted { nanos, allocations, bytes })
    }
}

impl Drop for Contest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Resolved {
    async fn all(&mut self) -> anyhow::Result<()> {
        let requests = &self.requests;
        let each = self.turn / CONNECTIONS;
        let ask = async |(lane, connection): (usize, &mut Connection)| {
            for turn in 0..each {
                let request = &requests[(turn * CONNECTIONS + lane) % requests.len()];
                let reply = connection.exchange(request).await;
                let reply = reply.map_err(|broken| anyhow::anyhow!("no answer: {broken:?}"))?;
                ensure!(reply.status == 200, "an answer of status {}", reply.status);
            }
            Ok(())
        };
        let lanes = self.connections.iter_mut().enumerate().map(ask);
        futures_util::future::try_join_all(lanes).await?;
        Ok(())
    }
}
