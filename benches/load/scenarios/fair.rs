//! P3: eight connections that send the largest rankings without a pause do not keep small requests
//! or the health check waiting.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::generator::Load;
use crate::ground::Ground;
use crate::oracle::Question;
use crate::report::{Bar, Report};
use crate::scenarios::stop;
use crate::server::Server;
use crate::tally::{Tally, milliseconds};
use crate::wire::{Connection, get};

/// The most candidates that are allowed.
const MAX: usize = 10_000;

/// Rankings of so many candidates.
pub fn rankings(ground: &Ground, candidates: usize) -> anyhow::Result<Rc<Vec<Question>>> {
    let ask = |turn: usize| {
        let candidates = ground.texts.sentences(turn, candidates);
        ground.oracle.rank(&ground.texts.pairs[turn].0, &candidates)
    };
    Ok(Rc::new((0..8).map(ask).collect::<anyhow::Result<_>>()?))
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let heavy = Load { questions: rankings(ground, MAX)?, ..ground.load(&server, 8) };
    let light = ground.load(&server, 8);
    let address = server.address;
    let health = async {
        let mut latencies = Tally::default().served;
        let mut connection = None;
        let mut failed = 0;
        let end = Instant::now() + Duration::from_secs_f64(ground.options.seconds);
        while Instant::now() < end {
            let start = Instant::now();
            let slot = connection.take().filter(Connection::usable);
            let mut open = match slot {
                Some(open) => open,
                None => Connection::open(address).await.map_err(|b| anyhow::anyhow!("{b:?}"))?,
            };
            match open.exchange(&get("/healthz")).await {
                Ok(reply) if reply.status == 200 => connection = Some(open),
                _ => failed += 1,
            }
            latencies.saturating_record(u64::try_from(start.elapsed().as_nanos())?);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok((latencies, failed))
    };
    let (heavy, light, health) = tokio::try_join!(heavy.closed(), light.open(50.0), health)?;
    report.figure("rankings of 10,000", heavy.goodput(), "1/s", Bar::None);
    report.count("rankings turned away", heavy.shed);
    report.answered_or_shed("rankings", &heavy);
    let p99 = milliseconds(&light.scheduled, 0.99);
    report.figure("1 pair, 50 a second: p99", p99, "ms", Bar::AtMost(50.0));
    report.all_answered("1 pair", &light);
    let p99 = milliseconds(&health.0, 0.99);
    report.figure("/healthz: p99", p99, "ms", Bar::AtMost(10.0));
    report.zero("/healthz: not 200", health.1);
    stop(server, report).await
}
