//! P7: a body that comes too slowly is answered 408 in time and the connection closed; nothing of
//! what it occupied stays occupied.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::attackers::hold_body;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{gauge_returns, stop};
use crate::server::Server;

const CONNECTIONS: u64 = 200;
/// The server's `body_timeout_s`, and how far from it is still right.
const TIMEOUT_S: f64 = 5.0;
const ROOM_S: f64 = 0.5;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    for (kind, chunked) in [("with a length", false), ("chunked", true)] {
        let mut senders = JoinSet::new();
        for _ in 0..CONNECTIONS {
            senders.spawn_local(hold_body(server.address, chunked, Duration::from_secs(15)));
        }
        let (mut proper, mut earliest, mut latest) = (0, f64::NAN, f64::NAN);
        let mut other = None;
        while let Some(Ok(end)) = senders.join_next().await {
            match end {
                Some(end) if end.status == 408 && end.code == "request_timeout" => {
                    proper += 1;
                    (earliest, latest) = (earliest.min(end.seconds), latest.max(end.seconds));
                }
                end => other = Some(end),
            }
        }
        if let Some(other) = other {
            report.note(format!("{kind}: an end that was not proper: {other:?}"));
        }
        report.zero(format!("{kind}: not answered 408 and closed"), CONNECTIONS - proper);
        let bar = Bar::Between(TIMEOUT_S - ROOM_S, TIMEOUT_S + ROOM_S);
        report.figure(format!("{kind}: closed, earliest"), earliest, "s", bar);
        report.figure(format!("{kind}: closed, latest"), latest, "s", bar);
    }
    let units = "cognate_admission_units_in_use";
    gauge_returns(&server, report, units, 0.0, Duration::from_secs(1)).await?;
    gauge_returns(&server, report, "cognate_connections", 1.0, Duration::from_secs(1)).await?;
    stop(server, report).await
}
