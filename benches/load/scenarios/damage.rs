//! P16: a model file damaged in place, which no writer of ours does. A copied model does not care; a
//! mapped one ends the process or its readiness, never in silence; and the file is refused after.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::generator::Load;
use crate::ground::Ground;
use crate::models;
use crate::report::{Bar, Report};
use crate::scenarios::stop;
use crate::server::{Launch, Server};

/// Within which damage must show.
const NOTICE_S: f64 = 5.0;

fn truncate(path: &Path) -> anyhow::Result<()> {
    let file = fs::OpenOptions::new().write(true).open(path)?;
    Ok(file.set_len(file.metadata()?.len() / 2)?)
}

fn overwrite(path: &Path) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.seek(SeekFrom::Start(file.metadata()?.len() / 4))?;
    Ok(file.write_all(&[0x55; 1 << 16])?)
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let good = fs::read(&ground.launch.model)?;
    let place = ground.folder.path().join("model.safetensors");
    let launch = Launch { model: place.clone(), ..ground.launch.clone() };
    for (what, damage) in [
        ("cut short", truncate as fn(&Path) -> anyhow::Result<()>),
        ("overwritten", overwrite as fn(&Path) -> anyhow::Result<()>),
    ] {
        models::replace(&place, &good)?;
        let server = Server::start(&launch.with(&["--model-storage", "copy"])).await?;
        let load = Load { seconds: 2.0, ..ground.load(&server, 8) };
        damage(&place)?;
        report.all_answered(&format!("copied, {what}"), &load.open(500.0).await?);
        stop(server, report).await?;

        models::replace(&place, &good)?;
        let mut server = Server::start(&launch).await?;
        damage(&place)?;
        let took = notice(ground, &mut server, report, what).await?;
        report.figure(format!("mapped, {what}: seen"), took, "s", Bar::AtMost(NOTICE_S + 0.5));
        drop(server);
        let again = Server::start(&launch).await;
        report.must(again.is_err(), || format!("{what}: the damaged file is served after all"));
    }
    Ok(())
}

/// Waits until the damage shows, and says after how many seconds it did.
async fn notice(
    ground: &Ground,
    server: &mut Server,
    report: &mut Report,
    what: &str,
) -> anyhow::Result<f64> {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 3.0 * NOTICE_S {
        let load = Load { seconds: 0.2, ..ground.load(server, 2) };
        // What is answered in the meantime is not judged: the file is not what it was.
        load.open(50.0).await?;
        if let Some(status) = server.ended()? {
            let by_signal = status.signal() == Some(7) || status.code() == Some(135);
            report.must(by_signal, || format!("{what}: the server ended with {status}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
            let named = server.logged("model.safetensors");
            report.must(named, || format!("{what}: the last words do not name the file"));
            report.note(format!("mapped, {what}: {status}"));
            return Ok(start.elapsed().as_secs_f64());
        }
        if server.get("/ready").await.is_ok_and(|status| status == 503) {
            report.note(format!("mapped, {what}: no longer ready"));
            return Ok(start.elapsed().as_secs_f64());
        }
    }
    report.must(false, || format!("{what}: a mapped file was damaged and nothing shows it"));
    Ok(f64::INFINITY)
}
