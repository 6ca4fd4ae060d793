//! The faults of the soak, one at a time.

use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::attackers::{Head, hold_head, leave_halfway, read_slowly};
use crate::generator::Load;
use crate::oracle::Question;
use crate::scenarios::bad_reload::ask_reload;
use crate::scenarios::reload::Swap;
use crate::server::Server;
use crate::{models, wire};

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// Another good model.
    GoodReload,
    /// A file that is no model.
    BadReload,
    /// Fifty clients that never finish a head.
    SlowHeads,
    /// Twenty clients that read a byte a second.
    SlowReaders,
    /// Ten times the peak for two seconds.
    Burst,
    /// One request in a hundred is nonsense.
    Malformed,
    /// The process is stopped for half a second.
    Pause,
    /// Another program takes a core for two seconds.
    Hog,
    /// Clients go away in the middle of a request.
    Leavers,
}

impl Happening {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::GoodReload,
        Self::BadReload,
        Self::SlowHeads,
        Self::SlowReaders,
        Self::Burst,
        Self::Malformed,
        Self::Pause,
        Self::Hog,
        Self::Leavers,
    ];

    /// Whether the server still has what it needs to be quick.
    pub fn spares_latency(self) -> bool {
        !matches!(self, Self::Burst | Self::Pause | Self::Hog)
    }
}

/// What faults need.
pub struct Faulty<'a> {
    /// The server.
    pub server: &'a Server,
    /// Its models.
    pub swap: &'a Swap,
    /// Questions for the burst.
    pub small: Rc<Vec<Question>>,
    /// A request for an answer that fills buffers.
    pub large_answer: Vec<u8>,
    /// The server's peak rate.
    pub peak: f64,
}

impl Faulty<'_> {
    /// Lets it happen, and says how many answers were not as they should be.
    pub async fn happen(&self, happening: Happening, seed: u64) -> anyhow::Result<u64> {
        let address = self.server.address;
        match happening {
            Happening::GoodReload => {
                Ok(u64::from(!self.swap.reload(self.server, (seed % 2) as usize).await?))
            }
            Happening::BadReload => {
                let good = std::fs::read(&self.swap.launch.model)?;
                models::replace(&self.swap.launch.model, &good[..good.len() / 3])?;
                let reply = ask_reload(self.server).await?;
                models::replace(&self.swap.launch.model, &good)?;
                Ok(u64::from(reply.status != 422))
            }
            Happening::SlowHeads => {
                let mut heads = JoinSet::new();
                for _ in 0..50 {
                    heads.spawn_local(hold_head(address, Head::Dribbled, Duration::from_secs(4)));
                }
                while heads.join_next().await.is_some() {}
                Ok(0)
            }
            Happening::SlowReaders => {
                let mut readers = JoinSet::new();
                for _ in 0..20 {
                    let request = self.large_answer.clone();
                    readers.spawn_local(async move { read_slowly(address, &request).await });
                }
                tokio::time::sleep(Duration::from_secs(4)).await;
                Ok(0)
            }
            Happening::Burst => {
                let questions = Rc::clone(&self.small);
                let load = Load { address, connections: 128, questions, seconds: 2.0, seed };
                let tally = load.open(10.0 * self.peak).await?;
                let unexpected = tally.wrong + tally.shed_bare + tally.refused + tally.strange;
                Ok(unexpected + tally.reset + tally.late + tally.unconnected)
            }
            Happening::Malformed => self.malformed().await,
            Happening::Pause => {
                self.server.signal(Signal::STOP)?;
                tokio::time::sleep(Duration::from_millis(500)).await;
                self.server.signal(Signal::CONT)?;
                Ok(0)
            }
            Happening::Hog => {
                let mut hog = Command::new("yes").stdout(Stdio::null()).spawn()?;
                tokio::time::sleep(Duration::from_secs(2)).await;
                hog.kill()?;
                hog.wait()?;
                Ok(0)
            }
            Happening::Leavers => {
                for question in self.small.iter().take(100) {
                    leave_halfway(address, &question.request).await?;
                    leave_halfway(address, &self.large_answer).await?;
                }
                Ok(0)
            }
        }
    }

    /// Nonsense for four seconds; each must be refused as what it is.
    async fn malformed(&self) -> anyhow::Result<u64> {
        let bodies: [(&[u8], u16); 4] = [
            (b"{\"pairs\":", 400),
            (b"{\"pairs\":[]}", 422),
            (b"{\"pairs\":[[\"a\",\"b\"]],\"nonsense\":1}", 422),
            (b"\xff\xfe", 400),
        ];
        let rate = (0.01 * 0.5 * self.peak).clamp(1.0, 500.0);
        let mut unexpected = 0;
        for turn in 0..(4.0 * rate) as usize {
            let (body, status) = bodies[turn % bodies.len()];
            let request = wire::post("/similarity", body);
            let reply = wire::once(self.server.address, &request, Duration::from_secs(10)).await;
            unexpected += u64::from(!reply.is_ok_and(|r| r.status == status && r.problem));
            tokio::time::sleep(Duration::from_secs_f64(1.0 / rate)).await;
        }
        Ok(unexpected)
    }
}
