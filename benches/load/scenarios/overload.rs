//! P2 and P4: beyond the peak the server keeps working at its peak, answers what it admits in time,
//! turns the rest away at once and properly, and its runtime is never blocked.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::generator::Load;
use crate::ground::Ground;
use crate::report::Bar;
use crate::report::Report;
use crate::scenarios::P99_MS;
use crate::scenarios::P999_MS;
use crate::scenarios::mebibytes;
use crate::scenarios::peak;
use crate::scenarios::stop;
use crate::server::Server;
use crate::tally::milliseconds;

const CONNECTIONS: usize = 256;
const LATENESS: &str = "cognate_runtime_lateness_seconds";

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    large(ground, report, Wait::No).await?;
    large(ground, report, Wait::Usual).await?;
    small(ground, report).await
}

/// Whether requests wait for admission. Who waits is answered later, and may be refused later, so
/// their latencies are bounded only where nobody does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    No,
    Usual,
}

impl Wait {
    fn bar(self, bar: Bar) -> Bar {
        if self == Self::No { bar } else { Bar::None }
    }
}

/// Requests of a thousand pairs, sixteen of which take all units that large requests may take.
async fn large(ground: &Ground, report: &mut Report, wait: Wait) -> anyhow::Result<()> {
    let mut flags = vec!["--admission-units", "16260", "--lateness-tick-ms", "1"];
    if wait == Wait::No {
        flags.extend(["--admission-wait-ms", "0"]);
    }
    let of = if wait == Wait::No { "1,000 pairs" } else { "1,000 pairs that may wait" };
    let server = Rc::new(Server::start(&ground.launch.with(&flags)).await?);
    let load = Load { questions: Rc::clone(&ground.large), ..ground.load(&server, CONNECTIONS) };
    let small_peak = peak(&ground.load(&server, 64), report, "1 pair, 64 connections").await?;
    // Fewer connections than fit, so that the peak is one without refusals.
    let few = Load { connections: 8, ..load.clone() };
    let peak = peak(&few, report, "1,000 pairs, 8 connections").await?;
    let idle = server.resident_kib();
    let (most, watcher) = watch_memory(&server);
    let before = server.metrics().await?;
    for factor in [1.0, 2.0, 4.0, 10.0] {
        let run = format!("{of} at {factor} x peak");
        let tally = load.open(factor * peak).await?;
        let kept = if factor >= 4.0 { Bar::AtLeast(80.0) } else { Bar::None };
        report.figure(format!("{run}: goodput of peak"), 100.0 * tally.goodput() / peak, "%", kept);
        let p99 = milliseconds(&tally.served, 0.99);
        report.figure(
            format!("{run}: admitted, p99"),
            p99,
            "ms",
            wait.bar(Bar::AtMost(2.0 * P99_MS)),
        );
        if tally.shed > 0 {
            let p99 = milliseconds(&tally.shed_reply, 0.99);
            report.figure(
                format!("{run}: turned away, p99"),
                p99,
                "ms",
                wait.bar(Bar::AtMost(10.0)),
            );
        }
        report.count(format!("{run}: turned away"), tally.shed);
        report.answered_or_shed(&run, &tally);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let run = format!("2 s after {factor} x");
        let light = Load { seconds: 3.0, ..ground.load(&server, 64) };
        let tally = light.open(0.5 * small_peak).await?;
        report.latency(&run, &tally, P99_MS, P999_MS);
        report.all_answered(&run, &tally);
    }
    let after = server.metrics().await?;
    match after.quantile_since(&before, LATENESS, 0.999) {
        Some(late) => {
            report.figure("runtime lateness, p99.9", late * 1e3, "ms", Bar::AtMost(20.0));
        }
        None => report.must(false, || format!("{LATENESS} counted nothing")),
    }
    let grown = mebibytes(most.get().saturating_sub(idle));
    report.figure("memory over idle, at most", grown, "MiB", Bar::AtMost(64.0));
    watcher.abort();
    // Once it is over it no longer holds the server, however it ended.
    let _ = watcher.await;
    match Rc::into_inner(server) {
        Some(server) => stop(server, report).await,
        None => anyhow::bail!("the server is still watched"),
    }
}

/// Requests of one pair: peak goodput is kept; latency is told, not bounded.
async fn small(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let load = ground.load(&server, CONNECTIONS);
    let peak = peak(&load, report, "1 pair, 256 connections").await?;
    for factor in [1.0, 2.0, 4.0, 10.0] {
        let run = format!("1 pair at {factor} x peak");
        let tally = load.open(factor * peak).await?;
        let kept = if factor >= 4.0 { Bar::AtLeast(80.0) } else { Bar::None };
        report.figure(format!("{run}: goodput of peak"), 100.0 * tally.goodput() / peak, "%", kept);
        let p99 = milliseconds(&tally.served, 0.99);
        report.figure(format!("{run}: answered, p99"), p99, "ms", Bar::None);
        report.count(format!("{run}: turned away"), tally.shed);
        report.answered_or_shed(&run, &tally);
    }
    stop(server, report).await
}

/// Looks at the server's memory ten times a second and keeps the most it saw.
fn watch_memory(server: &Rc<Server>) -> (Rc<Cell<u64>>, JoinHandle<()>) {
    let most = Rc::new(Cell::new(0));
    let (seen, server) = (Rc::clone(&most), Rc::clone(server));
    let watcher = tokio::task::spawn_local(async move {
        loop {
            seen.set(seen.get().max(server.resident_kib()));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    (most, watcher)
}
