//! P8: clients that ask for large answers and read a byte a second are dropped in time, their
//! answers take no more memory than they must, and the others do not notice.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::attackers::read_slowly;
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::{P99_MS, P999_MS, mebibytes, peak, stop};
use crate::server::Server;
use crate::wire;

const READERS: usize = 100;
/// Texts whose vectors each asks for: an answer several times as large as socket buffers.
const TEXTS: usize = 2000;
/// The server's `write_timeout_s`, and how much later is still right.
const TIMEOUT_S: f64 = 30.0;
const ROOM_S: f64 = 3.0;
/// When the scenario gives up waiting.
const BOUND_S: f64 = 45.0;

/// Returns a request whose answer is large.
pub fn large_answer(ground: &Ground) -> Vec<u8> {
    let texts = ground.texts.sentences(0, TEXTS);
    let body = serde_json::json!({ "texts": texts, "method": "avg-cos" }).to_string();
    wire::post("/embed", body.as_bytes())
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    let peak = peak(&ground.load(&server, 64), report, "1 pair, 64 connections").await?;
    let request = large_answer(ground);
    let whole = wire::once(server.address, &request, Duration::from_secs(20)).await;
    let whole = whole.map_err(|broken| anyhow::anyhow!("no large answer: {broken:?}"))?;
    anyhow::ensure!(whole.status == 200, "a large answer is {}", whole.text("code"));
    let size = whole.raw.len() as f64 / (1 << 20) as f64;
    report.figure("size of an answer", size, "MiB", Bar::None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (idle, descriptors) = (server.resident_kib(), server.descriptors());
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (address, request) = (server.address, request.clone());
        readers.spawn_local(async move { read_slowly(address, &request).await });
        // Not all in one instant: that would test admission, which has a scenario of its own.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let last = Instant::now();
    let load = Load { seconds: ground.options.seconds.min(25.0), ..ground.load(&server, 64) };
    let watching = async {
        let (mut most, mut held, mut dropped) = (0, 0, None);
        while dropped.is_none() && last.elapsed().as_secs_f64() < BOUND_S {
            most = most.max(server.resident_kib());
            let open = server.descriptors().saturating_sub(descriptors);
            held = held.max(open);
            // The load's own connections are gone by the time that matters.
            if open <= 4 && last.elapsed().as_secs_f64() > load.seconds + 1.0 {
                dropped = Some(last.elapsed().as_secs_f64());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok((most, held, dropped))
    };
    let (tally, (most, held, dropped)) = tokio::try_join!(load.open(0.5 * peak), watching)?;
    report.latency("others", &tally, P99_MS, P999_MS);
    report.all_answered("others", &tally);
    report.count("connections held at once", held);
    report.must(dropped.is_some(), || format!("slow readers are still held after {BOUND_S} s"));
    let dropped = dropped.unwrap_or(f64::INFINITY);
    report.figure("last reader dropped", dropped, "s", Bar::AtMost(TIMEOUT_S + ROOM_S));
    let bound = mebibytes(idle) + size * READERS as f64;
    report.figure("memory, at most", mebibytes(most), "MiB", Bar::AtMost(bound));
    stop(server, report).await
}
