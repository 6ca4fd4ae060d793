//! P9: a network that delays, splits, cuts and swallows bytes. What it only delays is answered
//! rightly; what it swallows is forgotten in time.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ground::Ground;
use crate::oracle::Question;
use crate::proxy::{Cut, Faults, Proxy};
use crate::report::{Bar, Report};
use crate::scenarios::slow_readers::large_answer;
use crate::scenarios::stop;
use crate::server::Server;
use crate::wire;
use crate::wire::Connection;

/// Time within which the server must forget every peer that is gone.
const FORGET: Duration = Duration::from_secs(90);
/// Connections frozen in each state.
const FROZEN: usize = 10;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&ground.launch).await?;
    harmless(ground, &server, report).await?;
    let mut kept = Vec::new();
    harmful(ground, &server, &mut kept).await?;
    let proxy = Proxy::start(server.address, Faults::default(), Faults::default()).await?;
    freeze(ground, &proxy, &mut kept).await?;
    let start = Instant::now();
    let held = server.metrics().await?.sum("cognate_connections")?;
    report.figure("connections whose peer is gone", held - 1.0, "", Bar::None);
    let one = |connections| connections <= 1.0;
    let forgotten = server.metric_becomes("cognate_connections", one, FORGET).await?;
    report.must(forgotten, || format!("the server still holds connections after {FORGET:?}"));
    let seconds = start.elapsed().as_secs_f64();
    report.figure("all forgotten after", seconds, "s", Bar::AtMost(FORGET.as_secs_f64()));
    let question = &ground.small[0];
    let right = answered(server.address, question).await;
    report.must(right, || "after all this a plain request is not answered".to_owned());
    drop(kept);
    stop(server, report).await
}

async fn answered(address: std::net::SocketAddr, question: &Question) -> bool {
    let reply = wire::once(address, &question.request, Duration::from_secs(20)).await;
    reply.is_ok_and(|reply| reply.status == 200 && question.check(&reply.body()).is_ok())
}

/// Networks that are only slow: every answer must come and be right.
async fn harmless(ground: &Ground, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let latency = Faults { latency: Duration::from_millis(100), ..Faults::default() };
    let narrow = Faults { bytes_per_second: Some(2000), ..Faults::default() };
    let split = Faults { one_byte_writes: true, ..Faults::default() };
    for (name, faults) in [("latency", latency), ("narrow", narrow), ("one byte at a time", split)]
    {
        let proxy = Proxy::start(server.address, faults, faults).await?;
        let mut lost = 0;
        for question in ground.small.iter().take(10) {
            lost += u64::from(!answered(proxy.address, question).await);
        }
        report.zero(format!("{name}: not answered rightly"), lost);
    }
    Ok(())
}

/// Cuts connections: answers may be lost, but the server must not hold anything for ever.
async fn harmful(
    ground: &Ground,
    server: &Server,
    kept: &mut Vec<TcpStream>,
) -> anyhow::Result<()> {
    let (small, large) = (ground.small[0].request.clone(), large_answer(ground));
    let fine = Faults::default();
    let cut = |after, cut| Faults { cut: Some((after, cut)), ..Faults::default() };
    let swallowed = Faults { never_fin: true, ..Faults::default() };
    let in_body = small.len() as u64 - 10;
    let cases = [
        (cut(30, Cut::Stall), fine, &small),
        (cut(in_body, Cut::Stall), fine, &small),
        (cut(30, Cut::Reset), fine, &small),
        (cut(in_body, Cut::Reset), fine, &small),
        (cut(30, Cut::HalfClose), fine, &small),
        (cut(in_body, Cut::HalfClose), fine, &small),
        (fine, cut(40, Cut::Stall), &small),
        (fine, cut(40, Cut::Reset), &small),
        (fine, cut(40, Cut::Close), &small),
        (fine, cut(40, Cut::HalfClose), &small),
        (fine, cut(100_000, Cut::Stall), &large),
        (fine, cut(100_000, Cut::Reset), &large),
        (fine, cut(100_000, Cut::Close), &large),
        (swallowed, swallowed, &small),
    ];
    for (up, down, request) in cases {
        let proxy = Proxy::start(server.address, up, down).await?;
        for _ in 0..3 {
            let mut stream = TcpStream::connect(proxy.address).await?;
            // A cut while the request is still being written is one of the cases.
            let _ = stream.write_all(request).await;
            if up.never_fin {
                let mut bytes = [0; 1024];
                let _ = stream.read(&mut bytes).await;
                drop(stream);
            } else {
                kept.push(stream);
            }
        }
    }
    Ok(())
}

/// Opens connections in every state, then drops all their packets in both directions for ever.
async fn freeze(ground: &Ground, proxy: &Proxy, kept: &mut Vec<TcpStream>) -> anyhow::Result<()> {
    let small = &ground.small[1].request;
    let large = large_answer(ground);
    for _ in 0..FROZEN {
        let broken = |broken| anyhow::anyhow!("through the proxy: {broken:?}");
        let mut idle = Connection::open(proxy.address).await.map_err(broken)?;
        idle.exchange(small).await.map_err(broken)?;
        kept.push(idle.stream);
        for part in [&small[..20], &small[..small.len() - 5], &large[..]] {
            let mut stream = TcpStream::connect(proxy.address).await?;
            stream.write_all(part).await?;
            kept.push(stream);
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    proxy.freeze();
    Ok(())
}
