//! P2 and P4: beyond the peak the server keeps working at its peak, answers what it admits in time,
//! turns the rest away at once and properly, and its runtime is never blocked.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

use crate::generator::Load;
use crate::ground::Ground;
use crate::processor::{Meter, Spent, Usage};
use crate::report::{Bar, Report};
use crate::scenarios::{P99_MS, P999_MS, PEAK_SECONDS, mebibytes, peak, stop};
use crate::server::Server;
use crate::tally::{Tally, milliseconds};
use crate::wire;
use crate::wire::Connection;

const CONNECTIONS: usize = 256;
/// Requests of a thousand pairs that are admitted at once.
const ADMITTED: f64 = 16.0;
const LATENESS: &str = "cognate_runtime_lateness_seconds";

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    refusals(ground, report).await?;
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

/// How much of the peak must stay at so many times its load. Of ten times, refusals take a sixth of a core.
fn kept(factor: f64) -> Bar {
    if factor >= 10.0 { Bar::AtLeast(70.0) } else { Bar::AtLeast(80.0) }
}

/// What a refusal costs while nothing else is done: bodies that never end hold all units, and
/// connections that never rest are refused.
async fn refusals(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let flags = ["--admission-units", "10000", "--admission-wait-ms", "0"];
    let long = ["--body-timeout-s", "120", "--header-timeout-s", "120"];
    let server = Server::start(&ground.launch.with(&flags).with(&long)).await?;
    let mut holder =
        Connection::open(server.address).await.map_err(|_| anyhow!("no connection"))?;
    let unfinished = wire::post("/similarity", &vec![b' '; 4 << 20]);
    holder.stream.write_all(unfinished.get(..1000).unwrap_or_default()).await?;
    let held = |units| units > 9000.0;
    let full = server
        .metric_becomes("cognate_admission_units_in_use", held, Duration::from_secs(5))
        .await?;
    report.must(full, || "one body does not hold all units".to_owned());
    let questions = Rc::clone(&ground.large);
    let load = Load { questions, seconds: 0.5, ..ground.load(&server, 64) };
    load.closed().await?;
    let meter = Meter::begin(&server);
    let tally = Load { seconds: ground.options.seconds, ..load }.closed().await?;
    let usage = meter.end(&server);
    let shed = tally.shed as f64;
    report.must(shed > 0.0, || "nothing was refused".to_owned());
    report.zero("refusals alone: answers", tally.answered());
    report.zero("refusals alone: of another form", tally.shed_bare + tally.refused + tally.strange);
    report.zero("refusals alone: resets and timeouts", tally.reset + tally.late);
    report.count("refusals alone: sent before all of the request was", tally.early);
    report.figure("refusals alone", shed / usage.seconds, "1/s", Bar::None);
    let Spent { computing, serving, kernel } = usage.server;
    for (part, seconds) in [
        ("in the program", computing + serving),
        ("in the kernel", kernel),
        ("the generator", usage.generator.all()),
    ] {
        report.figure(format!("a refusal alone, {part}"), 1e6 * seconds / shed, "us", Bar::None);
    }
    drop(holder);
    stop(server, report).await
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
    let meter = Meter::begin(&server);
    let peak = peak(&few, report, "1,000 pairs, 8 connections").await?;
    // A peak is warmed up for a quarter as long as it is measured.
    let answered = 1.25 * PEAK_SECONDS * peak;
    let usual = Answering::new(&meter.end(&server), answered, report);
    let idle = server.resident_kib();
    let (most, watcher) = watch_memory(&server);
    let before = server.metrics().await?;
    for factor in [1.0, 2.0, 4.0, 10.0] {
        let run = format!("{of} at {factor} x peak");
        let meter = Meter::begin(&server);
        let tally = load.open(factor * peak).await?;
        let usage = meter.end(&server);
        let goodput = 100.0 * tally.goodput() / peak;
        report.figure(format!("{run}: goodput of peak"), goodput, "%", kept(factor));
        usual.tell_refusals(&run, &usage, &tally, report);
        let p99 = milliseconds(&tally.served, 0.99);
        // An answer may wait for all others that are admitted, and their bodies arrive meanwhile.
        let most = wait.bar(Bar::AtMost(3e3 * ADMITTED / peak));
        report.figure(format!("{run}: admitted, p99"), p99, "ms", most);
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
        report.count(format!("{run}: answered before all was sent"), tally.early);
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
    // After this task has ended, well or not, it no longer holds the server.
    let _ = watcher.await;
    match Rc::into_inner(server) {
        Some(server) => stop(server, report).await,
        None => anyhow::bail!("the server is still watched"),
    }
}

/// What an answer costs the server while it refuses nobody, in seconds of processor time.
struct Answering {
    /// To compute it.
    computing: f64,
    /// All else, in the program and in the kernel.
    serving: (f64, f64),
}

impl Answering {
    fn new(usage: &Usage, answered: f64, report: &mut Report) -> Self {
        let Spent { computing, serving, kernel } = usage.server;
        let each = Self {
            computing: computing / answered,
            serving: (serving / answered, kernel / answered),
        };
        let mut tell = |what: &str, seconds: f64| {
            report.figure(format!("an answer, {what}"), 1e6 * seconds, "us", Bar::None);
        };
        tell("computing", each.computing);
        tell("all else, in the program", each.serving.0);
        tell("all else, in the kernel", each.serving.1);
        tell("the generator", usage.generator.all() / answered);
        each
    }

    /// What a refusal costs, which is what was spent less what the answers take.
    fn tell_refusals(&self, run: &str, usage: &Usage, tally: &Tally, report: &mut Report) {
        tell_cores(run, usage, report);
        let computing = 100.0 * usage.server.computing / usage.seconds;
        report.figure(format!("{run}: computing alone"), computing, "%", Bar::None);
        if tally.shed > 0 {
            let answered = tally.answered() as f64;
            let each = |spent: f64, usual: f64| {
                1e6 * (spent - answered * usual).max(0.0) / tally.shed as f64
            };
            let program = each(usage.server.serving, self.serving.0);
            let kernel = each(usage.server.kernel, self.serving.1);
            report.figure(format!("{run}: a refusal, in the program"), program, "us", Bar::None);
            report.figure(format!("{run}: a refusal, in the kernel"), kernel, "us", Bar::None);
        }
    }
}

/// How much of a core both sides used, which says whose limit was met.
fn tell_cores(run: &str, usage: &Usage, report: &mut Report) {
    for (side, spent) in [("server", usage.server), ("generator", usage.generator)] {
        let share = 100.0 * spent.all() / usage.seconds;
        report.figure(format!("{run}: the {side}'s share of a core"), share, "%", Bar::None);
    }
}

/// Sends requests of one pair: goodput must stay at its peak; latency is reported, not bounded.
async fn small(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let load = ground.load(&server, CONNECTIONS);
    let peak = peak(&load, report, "1 pair, 256 connections").await?;
    for factor in [1.0, 2.0, 4.0, 10.0] {
        let run = format!("1 pair at {factor} x peak");
        let meter = Meter::begin(&server);
        let tally = load.open(factor * peak).await?;
        let usage = meter.end(&server);
        let goodput = 100.0 * tally.goodput() / peak;
        report.figure(format!("{run}: goodput of peak"), goodput, "%", kept(factor));
        tell_cores(&run, &usage, report);
        let p99 = milliseconds(&tally.served, 0.99);
        report.figure(format!("{run}: answered, p99"), p99, "ms", Bar::None);
        report.count(format!("{run}: turned away"), tally.shed);
        report.answered_or_shed(&run, &tally);
    }
    stop(server, report).await
}

/// Reads the server's memory ten times a second and keeps the largest reading.
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
