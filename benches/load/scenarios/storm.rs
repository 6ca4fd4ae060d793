//! Three replicas behind a balancer, one of them restarted or killed every few seconds: with the
//! balancer's one retry no client sees an error.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::balancer::Balancer;
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::peak;
use crate::server::Server;

const REPLICAS: usize = 3;
const EVERY: Duration = Duration::from_secs(5);
/// The share of the peak, so that two replicas carry the load of three.
const SHARE: f64 = 0.3;

/// Replicas stopped in good order.
pub async fn restarts(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    storm(ground, report, Signal::TERM).await
}

/// Replicas killed.
pub async fn kills(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    storm(ground, report, Signal::KILL).await
}

async fn storm(ground: &Ground, report: &mut Report, signal: Signal) -> anyhow::Result<()> {
    let launch = ground.launch.with(&["--shutdown-delay-s", "1"]);
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Server::start(&launch).await?);
    }
    let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
    let balancer = Balancer::start(&addresses).await?;
    let plain = ground.options.seconds.max(20.0);
    let seconds = ground.options.minutes.map_or(plain, |minutes| 60.0 * minutes);
    let few = ground.load(&replicas[0], 64);
    let load = Load { address: balancer.address, seconds, ..few };
    let peak = peak(&load, report, "1 pair through the balancer").await?;
    let striking = async {
        let (start, mut strikes) = (Instant::now(), 0);
        let mut unclean = 0;
        while start.elapsed().as_secs_f64() + EVERY.as_secs_f64() < seconds {
            let next = start + EVERY * (strikes + 1);
            tokio::time::sleep(next.saturating_duration_since(Instant::now())).await;
            let place = strikes as usize % REPLICAS;
            replicas[place].signal(signal)?;
            let status = replicas[place].wait(Duration::from_secs(35)).await?;
            let clean = status.is_some_and(|status| status.success());
            unclean += u64::from(signal == Signal::TERM && !clean);
            replicas[place] = Server::start(&launch).await?;
            balancer.moved(place, replicas[place].address);
            strikes += 1;
        }
        anyhow::Ok((strikes, unclean))
    };
    let (tally, (strikes, unclean)) = tokio::try_join!(load.open(SHARE * peak), striking)?;
    report.count("replicas ended and started again", u64::from(strikes));
    report.zero("replicas that did not end in good order", unclean);
    report.count("requests the balancer sent twice", balancer.retries.get());
    report.figure("right answers", tally.goodput(), "1/s", Bar::None);
    report.told_latency("through the balancer", &tally, [Bar::None; 3]);
    report.all_answered("through the balancer", &tally);
    Ok(())
}
