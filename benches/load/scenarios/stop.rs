//! P17: SIGTERM at random times under mixed load. No request is lost that was sent in full on a
//! connection that was made; what a client may send again (RFC 9112 section 9.3.1) is told apart:
//! the server closed an idle connection while the request was on its way and never read it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::ground::Ground;
use crate::oracle::Question;
use crate::report::{Bar, Report};
use crate::server::Server;
use crate::wire::{Broken, Connection, Fault, Reply};

const CONNECTIONS: usize = 256;
const DELAY: [&str; 2] = ["--shutdown-delay-s", "1"];

/// What became of requests.
#[derive(Debug, Default)]
struct Count {
    right: u64,
    wrong: u64,
    turned_away: u64,
    strange: u64,
    sent_again: u64,
    cut_while_sending: u64,
    lost: u64,
    example: Option<String>,
}

/// What every client knows.
struct Crowd {
    address: SocketAddr,
    gone: Cell<bool>,
    count: RefCell<Count>,
    small: Rc<Vec<Question>>,
    large: Rc<Vec<Question>>,
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let fit = (ground.options.seconds / 2.0).max(3.0) as usize;
    let rounds = ground.options.rounds.unwrap_or(fit);
    let mut chance = Chance::new(ground.options.seed, "when to stop");
    let (mut sum, mut slowest) = (Count::default(), 0.0_f64);
    for round in 0..rounds {
        let before = sum.lost;
        slowest = slowest.max(one_round(ground, &mut chance, &mut sum, report).await?);
        if sum.lost > before {
            report.note(format!("round {round} lost {}", sum.lost - before));
        }
    }
    report.count("rounds", rounds as u64);
    report.count("answered rightly", sum.right);
    report.count("turned away properly", sum.turned_away);
    report.count("sent again after an idle close", sum.sent_again);
    report.count("not yet sent in full when the connection ended", sum.cut_while_sending);
    report.zero("wrong answers", sum.wrong);
    report.zero("other statuses", sum.strange);
    report.zero("lost", sum.lost);
    if let Some(example) = sum.example {
        report.note(format!("first of what should not be: {example}"));
    }
    report.figure("slowest end after SIGTERM", slowest, "s", Bar::AtMost(30.0));
    second_signal(ground, report).await
}

async fn one_round(
    ground: &Ground,
    chance: &mut Chance,
    sum: &mut Count,
    report: &mut Report,
) -> anyhow::Result<f64> {
    let mut server = Server::start(&ground.launch.with(&DELAY)).await?;
    let crowd = Rc::new(Crowd {
        address: server.address,
        gone: Cell::new(false),
        count: RefCell::new(std::mem::take(sum)),
        small: Rc::clone(&ground.small),
        large: Rc::clone(&ground.large),
    });
    let mut clients = JoinSet::new();
    for number in 0..CONNECTIONS {
        let chance = Chance::new(chance.next(), "a client");
        clients.spawn_local(client(Rc::clone(&crowd), number, chance));
    }
    tokio::time::sleep(Duration::from_secs_f64(0.1 + 0.8 * chance.unit())).await;
    let start = std::time::Instant::now();
    server.signal(Signal::TERM)?;
    let status = server.wait(Duration::from_secs(35)).await?;
    let seconds = start.elapsed().as_secs_f64();
    report.must(status.is_some_and(|status| status.success()), || {
        format!("after SIGTERM under load the server ended with {status:?}")
    });
    crowd.gone.set(true);
    let all = async { while clients.join_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(20), all).await?;
    *sum = crowd.count.take();
    Ok(seconds)
}

/// One of four kinds: small and kept alive, small and each on a new connection, large and kept
/// alive, slowly sent and each on a new connection.
async fn client(crowd: Rc<Crowd>, number: usize, mut chance: Chance) {
    let (fresh, large, slow) = (number % 2 == 1, number % 4 == 2, number % 4 == 3);
    let questions = if large { &crowd.large } else { &crowd.small };
    let rest = if large { 0.4 } else { 0.04 };
    let mut slot = None;
    while !crowd.gone.get() {
        let question = &questions[chance.below(questions.len())];
        let request = &question.request[..];
        let halves = request.split_at(request.len() / 2);
        let both = [halves.0, halves.1];
        let parts = if slow { &both[..] } else { &[request] };
        if fresh {
            slot = None;
        }
        let result = ask(&mut slot, crowd.address, parts).await;
        if matches!(result, Err(Broken { fault: Fault::Connect, .. })) {
            // The listener is closed: from now on nobody can lose anything.
            return;
        }
        crowd.count.borrow_mut().add(question, &result);
        tokio::time::sleep(Duration::from_secs_f64(rest * chance.unit())).await;
    }
}

async fn ask(
    slot: &mut Option<Connection>,
    address: SocketAddr,
    parts: &[&[u8]],
) -> Result<Reply, Broken> {
    let exchange = async {
        let connection = match slot {
            Some(connection) if connection.usable() => connection,
            _ => slot.insert(Connection::open(address).await?),
        };
        connection.exchange_in_parts(parts, Duration::from_millis(100)).await
    };
    let late = Broken { fault: Fault::Late, sent: true, reused: false, begun: false };
    tokio::time::timeout(Duration::from_secs(12), exchange).await.unwrap_or(Err(late))
}

impl Count {
    fn add(&mut self, question: &Question, result: &Result<Reply, Broken>) {
        let unexpected = match result {
            Ok(reply) if reply.status == 200 => match question.check(&reply.body()) {
                Ok(_) => {
                    self.right += 1;
                    return;
                }
                Err(reason) => {
                    self.wrong += 1;
                    reason
                }
            },
            Ok(reply) if reply.status == 503 && reply.retry_after => {
                self.turned_away += 1;
                return;
            }
            Ok(reply) => {
                self.strange += 1;
                format!("status {}", reply.status)
            }
            Err(broken) if broken.idle_close() => {
                self.sent_again += 1;
                return;
            }
            Err(broken) if !broken.sent => {
                self.cut_while_sending += 1;
                return;
            }
            Err(broken) => {
                self.lost += 1;
                format!("{broken:?}")
            }
        };
        self.example.get_or_insert(unexpected);
    }
}

/// A second SIGTERM does not wait for requests in flight, and the exit code says so.
async fn second_signal(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let mut server = Server::start(&ground.launch.with(&DELAY)).await?;
    let request = &ground.small[0].request;
    let mut stream = TcpStream::connect(server.address).await?;
    stream.write_all(&request[..request.len() - 1]).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.signal(Signal::TERM)?;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let early = server.ended()?;
    report.must(early.is_none(), || format!("with a request in flight it ended: {early:?}"));
    server.signal(Signal::TERM)?;
    let status = server.wait(Duration::from_secs(5)).await?;
    report.must(status.is_some_and(|status| status.code() == Some(1)), || {
        format!("after a second SIGTERM with a request in flight it ended with {status:?}")
    });
    Ok(())
}
