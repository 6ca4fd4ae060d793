//! P1: at 70 % of the peak, with 64 and with 256 connections, answers come in time and none fails.

use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{P99_MS, P999_MS, peak, stop};
use crate::server::Server;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let peak = peak(&ground.load(&server, 64), report, "1 pair, 64 connections").await?;
    for connections in [64, 256] {
        let run = format!("{connections} connections");
        let tally = ground.load(&server, connections).open(0.7 * peak).await?;
        report.figure(format!("{run}: right answers"), tally.goodput(), "1/s", Bar::None);
        report.latency(&run, &tally, P99_MS, P999_MS);
        report.all_answered(&run, &tally);
    }
    stop(server, report).await
}
