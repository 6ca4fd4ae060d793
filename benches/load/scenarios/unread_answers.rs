//! P31: answers that nobody reads are bounded. Clients that ask for the largest answers and stop
//! reading take the memory set aside for that and no more, and the others do not notice.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::attackers::stop_reading;
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{P99_MS, P999_MS, mebibytes, peak, stop};
use crate::server::Server;
use crate::wire;

const CLIENTS: u64 = 64;
const TEXTS: usize = 10_000;
/// Memory that the server may take in addition to the memory set aside for answers.
const BESIDE_MIB: f64 = 64.0;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let peak = peak(&ground.load(&server, 64), report, "1 pair, 64 connections").await?;
    let limit = server.metrics().await?.sum("cognate_unsent_bytes_limit")?;
    let idle = server.resident_kib();
    server.limit_data(480 << 10)?;
    let texts = vec!["the"; TEXTS];
    let body = serde_json::json!({ "texts": texts, "method": "avg-cos" }).to_string();
    let request = wire::post("/embed", body.as_bytes());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (address, request) = (server.address, request.clone());
        let held = Duration::from_secs_f64(ground.options.seconds.min(20.0) + 4.0);
        clients.spawn_local(async move { stop_reading(address, &request, held).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let load = Load { seconds: ground.options.seconds.min(20.0), ..ground.load(&server, 64) };
    let watching = async {
        let (mut most, mut charged) = (0, 0.0_f64);
        for _ in 0..(load.seconds * 5.0) as u64 {
            most = most.max(server.resident_kib());
            charged = charged.max(server.metrics().await?.sum("cognate_unsent_bytes")?);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok((most, charged))
    };
    let (tally, (most, charged)) = tokio::try_join!(load.open(0.5 * peak), watching)?;
    report.latency("others", &tally, P99_MS, P999_MS);
    report.all_answered("others", &tally);
    let (mut answered, mut refused, mut other) = (0, 0, 0);
    while let Some(status) = clients.join_next().await {
        match status? {
            Some(200) => answered += 1,
            Some(503) => refused += 1,
            _ => other += 1,
        }
    }
    report.count("unread answers begun", answered);
    report.count("refused with 503", refused);
    report.zero("neither", other);
    report.must(answered > 0 && refused > 0, || "the budget was not reached".to_owned());
    let limit_mib = limit / f64::from(1 << 20);
    report.figure("charged, at most", charged / f64::from(1 << 20), "MiB", Bar::AtMost(limit_mib));
    let over = mebibytes(most.saturating_sub(idle));
    report.figure("memory over idle", over, "MiB", Bar::AtMost(limit_mib + BESIDE_MIB));
    report.must(over <= limit_mib + BESIDE_MIB, || format!("{over:.0} MiB over idle"));
    let within = Duration::from_secs(5);
    crate::scenarios::gauge_returns(&server, report, "cognate_unsent_bytes", 0.0, within).await?;
    stop(server, report).await
}
