//! What became of requests: counts by class, and latencies in histograms.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::oracle::Question;
use crate::wire::{Broken, Fault, Reply};

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 200, and every bit as it should be; the model that answered.
    Right(usize),
    /// 200, and not what it should be.
    Wrong,
    /// 503 that says when to come back.
    Shed,
    /// 503 that does not, or is no problem document.
    ShedBare,
    /// Any other 4xx.
    Refused,
    /// Any other status.
    Strange,
    /// No whole answer.
    Broken(Fault),
}

/// Counts and latencies of many requests.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Right answers by the model that gave them.
    pub right: [u64; 2],
    /// Wrong answers.
    pub wrong: u64,
    /// Refusals that say when to come back.
    pub shed: u64,
    /// 503 that do not.
    pub shed_bare: u64,
    /// Answers that came before the whole request was sent.
    pub early: u64,
    /// Other 4xx.
    pub refused: u64,
    /// Other statuses.
    pub strange: u64,
    /// Number of connections that were reset or ended while a request was unanswered.
    pub reset: u64,
    /// Number of answers that did not come in time.
    pub late: u64,
    /// Connections that could not be made.
    pub unconnected: u64,
    /// Arrivals for which no connection was free before the end.
    pub unsent: u64,
    /// Right answers that came before the run's end; the others came after load had stopped.
    pub in_time: u64,
    /// When the run ends.
    pub end: Option<Instant>,
    /// Latency of right answers, from the time at which the request was scheduled.
    pub scheduled: Histogram<u64>,
    /// Latency of right answers, from the first byte of the request.
    pub served: Histogram<u64>,
    /// Refusals' latency from the first byte sent.
    pub shed_reply: Histogram<u64>,
    /// How long the run took.
    pub seconds: f64,
    /// What the first wrong answer looked like.
    pub example: Option<String>,
}

impl Default for Tally {
    fn default() -> Self {
        let empty =
            || Histogram::new_with_bounds(1_000, 100_000_000_000, 3).expect("bounds in order");
        Self {
            right: [0; 2],
            wrong: 0,
            shed: 0,
            shed_bare: 0,
            early: 0,
            refused: 0,
            strange: 0,
            reset: 0,
            late: 0,
            unconnected: 0,
            unsent: 0,
            in_time: 0,
            end: None,
            scheduled: empty(),
            served: empty(),
            shed_reply: empty(),
            seconds: 0.0,
            example: None,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A quantile in milliseconds.
pub fn milliseconds(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    if histogram.is_empty() {
        return f64::NAN;
    }
    histogram.value_at_quantile(quantile) as f64 / 1e6
}

impl Tally {
    /// Right answers, whichever model gave them.
    pub fn answered(&self) -> u64 {
        self.right.iter().sum()
    }

    /// Right answers a second, for as long as there was load.
    pub fn goodput(&self) -> f64 {
        if self.seconds > 0.0 { self.in_time as f64 / self.seconds } else { 0.0 }
    }

    /// Counts one request: when it was due, when its first byte was sent, and what came.
    pub fn count(
        &mut self,
        question: &Question,
        due: Instant,
        sent: Instant,
        result: &Result<Reply, Broken>,
    ) -> Outcome {
        let outcome = self.classify(question, result);
        self.early += u64::from(result.as_ref().is_ok_and(|reply| reply.early));
        let now = Instant::now();
        let in_time = self.end.is_none_or(|end| now <= end);
        let (due, sent) = (nanoseconds(now - due), nanoseconds(now - sent));
        match outcome {
            Outcome::Right(model) => {
                self.right[model.min(1)] += 1;
                self.in_time += u64::from(in_time);
                self.scheduled.saturating_record(due);
                self.served.saturating_record(sent);
            }
            Outcome::Wrong => self.wrong += 1,
            Outcome::Shed => {
                self.shed += 1;
                self.shed_reply.saturating_record(sent);
            }
            Outcome::ShedBare => self.shed_bare += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Strange => self.strange += 1,
            Outcome::Broken(Fault::Connect) => self.unconnected += 1,
            Outcome::Broken(Fault::Late) => self.late += 1,
            Outcome::Broken(_) => self.reset += 1,
        }
        outcome
    }

    fn classify(&mut self, question: &Question, result: &Result<Reply, Broken>) -> Outcome {
        let reply = match result {
            Ok(reply) => reply,
            Err(broken) => return Outcome::Broken(broken.fault),
        };
        let outcome = match reply.status {
            200 => match question.check(&reply.body()) {
                Ok(model) => return Outcome::Right(model),
                Err(reason) => {
                    self.example.get_or_insert(reason);
                    return Outcome::Wrong;
                }
            },
            503 if reply.retry_after && reply.problem => return Outcome::Shed,
            503 => Outcome::ShedBare,
            400..500 => Outcome::Refused,
            _ => Outcome::Strange,
        };
        let said = || String::from_utf8_lossy(&reply.raw).chars().take(400).collect();
        self.example.get_or_insert_with(said);
        outcome
    }

    /// Adds another run's counts and latencies.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.right.iter_mut().zip(other.right) {
            *sum += more;
        }
        self.wrong += other.wrong;
        self.shed += other.shed;
        self.shed_bare += other.shed_bare;
        self.early += other.early;
        self.refused += other.refused;
        self.strange += other.strange;
        self.reset += other.reset;
        self.late += other.late;
        self.unconnected += other.unconnected;
        self.unsent += other.unsent;
        self.in_time += other.in_time;
        self.seconds += other.seconds;
        let pairs = [
            (&mut self.scheduled, &other.scheduled),
            (&mut self.served, &other.served),
            (&mut self.shed_reply, &other.shed_reply),
        ];
        for (sum, more) in pairs {
            sum.add(more).expect("histograms that resize can be added");
        }
        if self.example.is_none() {
            self.example.clone_from(&other.example);
        }
    }
}
