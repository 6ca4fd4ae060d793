//! P32: a body is paid for as it comes, whether or not its head says how long it is.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::attackers::never_finish;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{gauge_returns, mebibytes, stop};
use crate::server::Server;

const CLIENTS: u64 = 60;
/// Bytes of a body, a little less than the server reads.
const BODY: usize = (8 << 20) - 4096;
/// Bodies that the server's units admit: 65,536 of them, 10,000 a body.
const ADMITTED: f64 = 6.0;
/// What the server may take beside those.
const BESIDE_MIB: f64 = 64.0;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    for (kind, chunked) in [("announced", false), ("chunked", true)] {
        let server = Server::start(&ground.launch).await?;
        let idle = server.resident_kib();
        server.limit_data(480 << 10)?;
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn_local(never_finish(server.address, chunked, BODY));
        }
        let (mut most, mut statuses) = (0, Vec::new());
        loop {
            tokio::select! {
                ended = clients.join_next() => match ended {
                    Some(status) => statuses.push(status?),
                    None => break,
                },
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            most = most.max(server.resident_kib());
        }
        let count =
            |wanted: u16| statuses.iter().filter(|status| **status == Some(wanted)).count() as u64;
        let (refused, late) = (count(503), count(408));
        report.count(format!("{kind}: refused with 503"), refused);
        report.count(format!("{kind}: read and then ended with 408"), late);
        report.zero(format!("{kind}: ended otherwise"), CLIENTS - refused - late);
        report.must(refused > 0, || format!("{kind}: every body was let in"));
        let over = mebibytes(most.saturating_sub(idle));
        let bar = ADMITTED * BODY as f64 / f64::from(1 << 20) + BESIDE_MIB;
        report.figure(format!("{kind}: memory over idle"), over, "MiB", Bar::AtMost(bar));
        report.must(over <= bar, || format!("{kind}: {over:.0} MiB over idle"));
        let units = "cognate_admission_units_in_use";
        gauge_returns(&server, report, units, 0.0, Duration::from_secs(2)).await?;
        stop(server, report).await?;
    }
    Ok(())
}
