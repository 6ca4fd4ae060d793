//! P14: models swapped again and again under load. No request fails, and each answer is that of the
//! model whose fingerprint it bears.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::generator::Load;
use crate::ground::{Ground, small_questions};
use crate::models;
use crate::oracle::Oracle;
use crate::report::{Bar, Report};
use crate::scenarios::{mebibytes, peak, stop};
use crate::server::{Launch, Server};

const CONNECTIONS: usize = 200;
const ROUNDS: usize = 200;
/// Least seconds of load, in which so many reloads fit.
const SECONDS: f64 = 20.0;

/// Two models with different answers, the path from which one of them is served, and an oracle for both.
pub struct Swap {
    /// The server's flags, with the place as its model.
    pub launch: Launch,
    /// The bytes of both.
    pub files: [Arc<Vec<u8>>; 2],
    /// The answers of both.
    pub oracle: Oracle,
}

impl Swap {
    /// Makes the second model, and puts the first in its place.
    pub fn prepare(ground: &Ground) -> anyhow::Result<Self> {
        let folder = ground.folder.path();
        let (place, other) = (folder.join("model.safetensors"), folder.join("other.safetensors"));
        models::write_variant(ground.oracle.engine().model(), &other)?;
        let first = std::fs::read(&ground.launch.model)?;
        models::replace(&place, &first)?;
        Ok(Self {
            oracle: Oracle::open(&[&ground.launch.model, &other])?,
            files: [Arc::new(first), Arc::new(std::fs::read(&other)?)],
            launch: Launch { model: place, ..ground.launch.clone() },
        })
    }

    /// Puts one of the two in place and waits until the server has taken it.
    pub async fn reload(&self, server: &Server, file: usize) -> anyhow::Result<bool> {
        let before = server.metrics().await?.sum("cognate_reloads_total")?;
        models::replace_behind(&self.launch.model, &self.files[file]).await?;
        server.signal(Signal::HUP)?;
        let more = |reloads| reloads > before;
        server.metric_becomes("cognate_reloads_total", more, Duration::from_secs(5)).await
    }
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let swap = Swap::prepare(ground)?;
    let server = Server::start(&swap.launch).await?;
    let questions = small_questions(&swap.oracle, &ground.texts)?;
    let load = ground.load(&server, CONNECTIONS);
    let load = Load { questions, seconds: load.seconds.max(SECONDS), ..load };
    let peak = peak(&load, report, "1 pair, 200 connections").await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let one_model = server.resident_kib();
    let rounds = ground.options.rounds.unwrap_or(ROUNDS);
    let reloading = async {
        let end = Instant::now() + Duration::from_secs_f64(load.seconds - 0.5);
        let (mut done, mut missing) = (0, 0);
        while Instant::now() < end && done < rounds {
            done += 1;
            missing += u64::from(!swap.reload(&server, done % 2).await?);
        }
        Ok((done, missing))
    };
    let (tally, (done, missing)) = tokio::try_join!(load.open(0.4 * peak), reloading)?;
    report.figure("reloads", done as f64, "", Bar::AtLeast(rounds as f64));
    report.zero("reloads that did not happen", missing);
    let failures = server.metrics().await?.sum("cognate_reload_failures_total")?;
    report.zero("reloads that failed", failures as u64);
    // Twenty times a second a core verifies every byte of a model, which latency shows and nothing is promised of.
    report.told_latency("during reloads", &tally, [Bar::None; 3]);
    report.all_answered("during reloads", &tally);
    for (model, right) in ["first", "second"].into_iter().zip(tally.right) {
        report.must(right > 0, || format!("the {model} model never answered"));
        report.count(format!("answers of the {model} model"), right);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let more = mebibytes(server.resident_kib()) - mebibytes(one_model);
    report.figure("memory before", mebibytes(one_model), "MiB", Bar::None);
    // Less than one of the models.
    report.figure("memory after, over before", more, "MiB", Bar::AtMost(8.0));
    stop(server, report).await
}
