//! The scenarios: one file each, one promise or two each.

mod bad_reload;
mod certain_timeouts;
mod clock;
mod damage;
mod dripping;
mod early_refusals;
mod fair;
mod half_open;
mod held;
mod jobs;
mod memory_guard;
mod overload;
mod reload;
mod revoked_key;
mod slow_bodies;
mod slow_headers;
mod slow_readers;
mod soak;
mod stop;
mod storm;
mod unannounced_bodies;
mod unread_answers;

use std::time::Duration;

use crate::generator::Load;
use crate::ground::Ground;
use crate::options::Choice;
use crate::report::{Bar, Report};
use crate::server::Server;

/// P1's figures: the 99th and the 99.9th percentile in milliseconds.
const P99_MS: f64 = 10.0;
const P999_MS: f64 = 20.0;
/// Seconds that a peak is measured for.
const PEAK_SECONDS: f64 = 2.0;

/// Runs one scenario.
pub async fn run(choice: Choice, ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    match choice {
        Choice::All => Ok(()),
        Choice::Held => held::run(ground, report).await,
        Choice::Overload => overload::run(ground, report).await,
        Choice::Fair => fair::run(ground, report).await,
        Choice::Jobs => jobs::run(ground, report).await,
        Choice::SlowHeaders => slow_headers::run(ground, report).await,
        Choice::SlowBodies => slow_bodies::run(ground, report).await,
        Choice::SlowReaders => slow_readers::run(ground, report).await,
        Choice::HalfOpen => half_open::run(ground, report).await,
        Choice::Reload => reload::run(ground, report).await,
        Choice::BadReload => bad_reload::run(ground, report).await,
        Choice::Damage => damage::run(ground, report).await,
        Choice::Stop => stop::run(ground, report).await,
        Choice::MemoryGuard => memory_guard::run(ground, report).await,
        Choice::Clock => clock::run(ground, report).await,
        Choice::UnreadAnswers => unread_answers::run(ground, report).await,
        Choice::UnannouncedBodies => unannounced_bodies::run(ground, report).await,
        Choice::EarlyRefusals => early_refusals::run(ground, report).await,
        Choice::Dripping => dripping::run(ground, report).await,
        Choice::RevokedKey => revoked_key::run(ground, report).await,
        Choice::CertainTimeouts => certain_timeouts::run(ground, report).await,
        Choice::RestartStorm => storm::restarts(ground, report).await,
        Choice::KillStorm => storm::kills(ground, report).await,
        Choice::Soak => soak::run(ground, report).await,
    }
}

/// The peak rate of a load's questions, told and given back.
async fn peak(load: &Load, report: &mut Report, of: &str) -> anyhow::Result<f64> {
    let peak = load.peak(PEAK_SECONDS).await?;
    report.figure(format!("peak rate, {of}"), peak, "1/s", Bar::None);
    anyhow::ensure!(peak > 0.0, "no request is answered, so there is no peak to load by");
    Ok(peak)
}

/// Says so if a gauge does not come back to what it was.
async fn gauge_returns(
    server: &Server,
    report: &mut Report,
    name: &str,
    most: f64,
    within: Duration,
) -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    let returned = server.metric_becomes(name, |value| value <= most, within).await?;
    let took = start.elapsed().as_secs_f64();
    report.must(returned, || format!("{name} is above {most} after {took:.1} s"));
    report.figure(format!("{name} back"), took, "s", Bar::AtMost(within.as_secs_f64()));
    Ok(())
}

/// That the server still runs, after all that was done to it.
fn still_runs(server: &mut Server, report: &mut Report) -> anyhow::Result<()> {
    let ended = server.ended()?;
    report.must(ended.is_none(), || format!("the server ended: {ended:?}"));
    Ok(())
}

/// Ends the server as an operator does; it must go without complaint.
async fn stop(mut server: Server, report: &mut Report) -> anyhow::Result<()> {
    still_runs(&mut server, report)?;
    server.signal(rustix::process::Signal::TERM)?;
    let status = server.wait(Duration::from_secs(35)).await?;
    report.must(status.is_some_and(|status| status.success()), || {
        format!("after SIGTERM the server did not end with 0: {status:?}")
    });
    Ok(())
}

/// KiB as MiB.
fn mebibytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
