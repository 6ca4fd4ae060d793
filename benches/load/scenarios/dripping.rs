//! P34: a stream that drips ends. As many streams as there may be, each of which sends a byte
//! of one line every three seconds, leave room for others and are ended.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::attackers::drip;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{gauge_returns, stop};
use crate::server::Server;

const CONNECTIONS: u64 = 60;
/// The server's `body_timeout_s`, and how much later is still right.
const TIMEOUT_S: f64 = 5.0;
const ROOM_S: f64 = 1.0;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let connections = CONNECTIONS.to_string();
    let server = Server::start(&ground.launch.with(&["--max-connections", &connections])).await?;
    let places = server.metrics().await?.sum("cognate_streams_limit")?;
    let mut streams = JoinSet::new();
    // Those that are refused hold no connection, so one is left for who looks after health.
    for _ in 0..CONNECTIONS - 2 {
        streams.spawn_local(drip(server.address, Duration::from_secs(40)));
    }
    let (mut healthy, mut slowest) = (0, 0.0_f64);
    let (mut open, mut refused, mut latest) = (0, 0, 0.0_f64);
    let start = Instant::now();
    while !streams.is_empty() && start.elapsed() < Duration::from_secs(50) {
        tokio::select! {
            ended = streams.join_next() => match ended {
                Some(end) => match end? {
                    Some((503, _)) => refused += 1,
                    Some((_, seconds)) => { open += 1; latest = latest.max(seconds); }
                    None => report.must(false, || "a stream was never ended".to_owned()),
                },
                None => break,
            },
            () = tokio::time::sleep(Duration::from_millis(250)) => {
                let asked = Instant::now();
                if server.get("/health").await? == 200 {
                    healthy += 1;
                }
                slowest = slowest.max(asked.elapsed().as_secs_f64());
            }
        }
    }
    report.count("streams that were let in", open);
    report.count("streams refused with 503", refused);
    report.must(open > 0 && open as f64 <= places, || format!("{open} streams of {places}"));
    report.figure("last stream ended", latest, "s", Bar::AtMost(TIMEOUT_S + ROOM_S));
    report.must(latest <= 2.0 * TIMEOUT_S, || format!("a stream lived for {latest:.1} s"));
    report.count("health answered meanwhile", healthy);
    report.figure("health, slowest", slowest, "s", Bar::AtMost(1.0));
    gauge_returns(&server, report, "cognate_streams", 0.0, Duration::from_secs(1)).await?;
    stop(server, report).await
}
