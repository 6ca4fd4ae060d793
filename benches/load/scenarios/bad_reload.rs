//! P15: a model file that must not be taken is refused by name, counted, and changes nothing.

use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::Signal;

use crate::chance::Chance;
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::reload::Swap;
use crate::scenarios::stop;
use crate::server::Server;
use crate::wire::Reply;
use crate::{models, wire};

const FAILURES: &str = "cognate_reload_failures_total";

/// Asks for a reload over HTTP.
pub async fn ask_reload(server: &Server) -> anyhow::Result<Reply> {
    let request = wire::post("/-/reload", b"");
    let reply = wire::once(server.address, &request, Duration::from_secs(10)).await;
    reply.map_err(|broken| anyhow::anyhow!("POST /-/reload: {broken:?}"))
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let swap = Swap::prepare(ground)?;
    let server = Server::start(&swap.launch).await?;
    let mut chance = Chance::new(ground.options.seed, "broken models");
    let files = models::broken(&swap.files[0], &mut chance);
    let (mut tried, mut slowest) = (0, 0.0_f64);
    let mut wrong = Vec::new();
    let trying = async {
        for (what, bytes) in &files {
            models::replace(&swap.launch.model, bytes)?;
            let start = Instant::now();
            wrong.extend(refused(&server, tried, what).await?);
            slowest = slowest.max(start.elapsed().as_secs_f64());
            tried += 1;
        }
        let pipe = ground.folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        std::fs::rename(&pipe, &swap.launch.model)?;
        wrong.extend(refused(&server, tried, "a FIFO").await?);
        tried += 1;
        anyhow::Ok(())
    };
    let load = Load { seconds: ground.options.seconds.min(5.0), ..ground.load(&server, 8) };
    let ((), tally) = tokio::try_join!(trying, load.open(200.0))?;
    report.count("bad files tried", tried);
    for wrong in wrong {
        report.must(false, || wrong);
    }
    let failures = server.metrics().await?.sum(FAILURES)? as u64;
    report.must(failures == tried, || format!("{tried} bad files counted as {failures} failures"));
    report.figure("slowest refusal", slowest, "s", Bar::None);
    report.all_answered("meanwhile", &tally);
    let after = Load { seconds: 1.0, ..load }.open(200.0).await?;
    report.all_answered("afterwards", &after);
    models::replace(&swap.launch.model, &swap.files[1])?;
    let good = ask_reload(&server).await?;
    report.must(good.status == 200, || format!("a good file is not taken: {}", good.status));
    stop(server, report).await
}

/// Asks for a reload, every other time by signal, and says what is not as it should be.
async fn refused(server: &Server, tried: u64, what: &str) -> anyhow::Result<Option<String>> {
    if tried.is_multiple_of(2) {
        let reply = ask_reload(server).await?;
        let code = reply.text("code");
        if reply.status != 422 || !reply.problem || code != "bad_model" {
            return Ok(Some(format!("{what}: the reload is answered {} {code}", reply.status)));
        }
    } else {
        server.signal(Signal::HUP)?;
    }
    let counted = |failures| failures >= (tried + 1) as f64;
    if !server.metric_becomes(FAILURES, counted, Duration::from_secs(5)).await? {
        return Ok(Some(format!("{what}: no failure is counted")));
    }
    let ready = server.get("/readyz").await?;
    Ok((ready != 200).then(|| format!("{what}: afterwards /readyz is {ready}")))
}
