//! P6: a thousand connections that never finish a request's head are closed in time, and the load
//! beside them does not notice.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::attackers::{Head, hold_head};
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{P99_MS, P999_MS, gauge_returns, peak, stop};
use crate::server::Server;

const EACH: usize = 250;
/// The server's `header_timeout_s`, and how far from it is still right.
const TIMEOUT_S: f64 = 15.0;
const ROOM_S: f64 = 1.0;
/// How long a wave of attackers lasts: every one must be gone by then.
const WAVE_S: f64 = 20.0;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let peak = peak(&ground.load(&server, 64), report, "1 pair, 64 connections").await?;
    let descriptors = server.descriptors();
    let waves = ((ground.options.seconds / WAVE_S).round() as usize).max(1);
    let mut left_over = Vec::new();
    for wave in 0..waves {
        let mut attackers = JoinSet::new();
        for number in 0..EACH * Head::ALL.len() {
            let (kind, address) = (Head::ALL[number % Head::ALL.len()], server.address);
            attackers.spawn_local(async move {
                (kind, hold_head(address, kind, Duration::from_secs_f64(WAVE_S)).await)
            });
        }
        let load = Load { seconds: WAVE_S, ..ground.load(&server, 64) };
        let tally = load.open(0.5 * peak).await?;
        let run = format!("wave {}", wave + 1);
        report.latency(&run, &tally, 2.0 * P99_MS, 2.0 * P999_MS);
        report.all_answered(&run, &tally);
        let (mut open, mut ends) = (0, Vec::new());
        while let Some(Ok((kind, seconds))) = attackers.join_next().await {
            match seconds {
                Some(seconds) => ends.push((kind, seconds)),
                None => open += 1,
            }
        }
        report.zero(format!("{run}: attackers not closed within {WAVE_S} s"), open);
        tell(report, &run, &ends);
        gauge_returns(&server, report, "cognate_connections", 1.0, Duration::from_secs(1)).await?;
        left_over.push(server.descriptors().saturating_sub(descriptors));
    }
    let most = left_over.iter().max().copied().unwrap_or(0);
    report.figure("descriptors left over after a wave", most as f64, "", Bar::AtMost(4.0));
    stop(server, report).await
}

fn tell(report: &mut Report, run: &str, ends: &[(Head, f64)]) {
    for kind in Head::ALL {
        // Without one end there is no figure, and what is no number is missed.
        let of_kind = ends.iter().filter(|end| end.0 == kind).map(|end| end.1);
        let earliest = of_kind.clone().fold(f64::NAN, f64::min);
        let latest = of_kind.fold(f64::NAN, f64::max);
        let most = Bar::AtMost(TIMEOUT_S + ROOM_S);
        report.figure(format!("{run}: {kind:?} closed, latest"), latest, "s", most);
        // A client that said it will send no more may be let go at once.
        if kind != Head::HalfClosed {
            let least = Bar::AtLeast(TIMEOUT_S - ROOM_S);
            report.figure(format!("{run}: {kind:?} closed, earliest"), earliest, "s", least);
        }
    }
}
