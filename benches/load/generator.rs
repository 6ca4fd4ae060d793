//! Load: an open loop, in which requests arrive when they arrive whether the server keeps up or
//! not, and a closed loop, in which each connection asks as fast as it is answered.
//!
//! In the open loop arrivals are Poisson at a fixed rate from a seed. Whichever connection is free
//! takes the next one in order; when none is free, arrivals wait, and their latency counts from the
//! time they were due. That is what a closed loop hides.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::alarm::Alarm;
use crate::chance::Chance;
use crate::oracle::Question;
use crate::tally::Tally;
use crate::wire::{Broken, Connection, Fault, Reply};

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after the end requests that were due before it may be sent.
const GRACE: Duration = Duration::from_millis(200);

/// A load to be put on a server.
#[derive(Clone)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// Connections, kept alive.
    pub connections: usize,
    /// What is asked, in turn.
    pub questions: Rc<Vec<Question>>,
    /// How long.
    pub seconds: f64,
    /// Seed of the arrivals.
    pub seed: u64,
}

/// The next request: when it is due, and which question it asks.
#[derive(Clone, Copy)]
struct Arrival {
    due: Instant,
    question: usize,
}

/// The queues of arrivals that wait for a connection and of connections that wait for an arrival.
#[derive(Default)]
struct Desk {
    waiting: VecDeque<Arrival>,
    idle: VecDeque<Rc<Seat>>,
    over: bool,
}

/// A connection's place to be called at.
#[derive(Default)]
struct Seat {
    call: Notify,
    arrival: RefCell<Option<Arrival>>,
}

impl Desk {
    fn arrive(&mut self, arrival: Arrival) {
        match self.idle.pop_front() {
            Some(seat) => {
                *seat.arrival.borrow_mut() = Some(arrival);
                seat.call.notify_one();
            }
            None => self.waiting.push_back(arrival),
        }
    }

    fn close(&mut self) -> usize {
        self.over = true;
        for seat in self.idle.drain(..) {
            seat.call.notify_one();
        }
        std::mem::take(&mut self.waiting).len()
    }
}

async fn next_arrival(desk: &RefCell<Desk>, seat: &Rc<Seat>) -> Option<Arrival> {
    {
        let mut desk = desk.borrow_mut();
        if let Some(arrival) = desk.waiting.pop_front() {
            return Some(arrival);
        }
        if desk.over {
            return None;
        }
        desk.idle.push_back(Rc::clone(seat));
    }
    seat.call.notified().await;
    seat.arrival.borrow_mut().take()
}

/// Asks on the connection, opened anew if need be, within the patience of a client.
pub async fn ask(
    slot: &mut Option<Connection>,
    address: SocketAddr,
    request: &[u8],
) -> Result<Reply, Broken> {
    let exchange = async {
        let connection = match slot {
            Some(connection) if connection.usable() => connection,
            _ => slot.insert(Connection::open(address).await?),
        };
        connection.exchange_in_turn(request).await
    };
    let result = tokio::time::timeout(PATIENCE, exchange).await;
    result.unwrap_or_else(|_| {
        *slot = None;
        Err(Broken { fault: Fault::Late, ..Broken::CONNECT })
    })
}

impl Load {
    /// The open loop at `rate` requests a second.
    pub async fn open(&self, rate: f64) -> anyhow::Result<Tally> {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let tally = Rc::new(RefCell::new(Tally::default()));
        let mut tasks = JoinSet::new();
        for _ in 0..self.connections {
            let (desk, load, tally) = (Rc::clone(&desk), self.clone(), Rc::clone(&tally));
            let mut slot = Connection::open(self.address).await.ok();
            tasks.spawn_local(async move {
                let seat = Rc::new(Seat::default());
                while let Some(arrival) = next_arrival(&desk, &seat).await {
                    let question = &load.questions[arrival.question];
                    let sent = Instant::now();
                    let result = ask(&mut slot, load.address, &question.request).await;
                    tally.borrow_mut().count(question, arrival.due, sent, &result);
                }
            });
        }
        let mut alarm = Alarm::new()?;
        let mut chance = Chance::new(self.seed, "arrivals");
        let start = Instant::now() + Duration::from_millis(5);
        let end = start + Duration::from_secs_f64(self.seconds);
        tally.borrow_mut().end = Some(end);
        let (mut at, mut number) = (chance.gap(rate), 0_usize);
        while at < self.seconds {
            let due = start + Duration::from_secs_f64(at);
            alarm.wait_until(due).await?;
            let question = number % self.questions.len();
            desk.borrow_mut().arrive(Arrival { due, question });
            at += chance.gap(rate);
            number += 1;
            // When arrivals are overdue nothing above waits, and the connections must get a turn.
            if number.is_multiple_of(16) {
                tokio::task::yield_now().await;
            }
        }
        // What was due before the end may still be sent, unless there is too much of it.
        let mut moment = end;
        while moment <= end + GRACE && !desk.borrow().waiting.is_empty() {
            moment += Duration::from_millis(5);
            alarm.wait_until(moment).await?;
        }
        let unsent = desk.borrow_mut().close() as u64;
        join(tasks).await?;
        let mut tally = tally.take();
        (tally.unsent, tally.seconds) = (unsent, self.seconds);
        Ok(tally)
    }

    /// The closed loop.
    pub async fn closed(&self) -> anyhow::Result<Tally> {
        let tally = Rc::new(RefCell::new(Tally::default()));
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(self.seconds);
        tally.borrow_mut().end = Some(end);
        let mut tasks = JoinSet::new();
        for place in 0..self.connections {
            let (load, tally) = (self.clone(), Rc::clone(&tally));
            tasks.spawn_local(async move {
                let (mut slot, mut turn) = (None, place);
                while Instant::now() < end {
                    let question = &load.questions[turn % load.questions.len()];
                    turn += load.connections;
                    let sent = Instant::now();
                    let result = ask(&mut slot, load.address, &question.request).await;
                    tally.borrow_mut().count(question, sent, sent, &result);
                    // A server that is gone refuses at once; asking again at once helps nobody.
                    if matches!(result, Err(Broken { fault: Fault::Connect, .. })) {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            });
        }
        join(tasks).await?;
        let mut tally = tally.take();
        tally.seconds = self.seconds;
        Ok(tally)
    }

    /// The most right answers a second, by the closed loop after half a second of warming up.
    pub async fn peak(&self, seconds: f64) -> anyhow::Result<f64> {
        Self { seconds: 0.5, ..self.clone() }.closed().await?;
        Ok(Self { seconds, ..self.clone() }.closed().await?.goodput())
    }
}

async fn join(mut tasks: JoinSet<()>) -> anyhow::Result<()> {
    while let Some(done) = tasks.join_next().await {
        done?;
    }
    Ok(())
}
