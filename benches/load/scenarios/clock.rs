//! P22: the wall clock jumps by a day, forward and back. No timeout, no quota and no answer changes.
//! It needs the preloaded library `libfaketime`; without it the scenario is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::attackers::{Head, hold_body, hold_head};
use crate::generator::Load;
use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::stop;
use crate::server::{Launch, Server};
use crate::wire;
use crate::wire::Connection;

const JUMPS: [&str; 4] = ["+1d", "-1d", "+1d", "+0"];
const KEY: &str = "a-key-for-the-clock-scenario-and-nothing-else";
/// Requests a second that a key may make.
const QUOTA: u64 = 20;
const QUOTA_SECONDS: f64 = 6.0;

/// Where Debian's package puts the library.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let paths = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    paths.into_iter().find(|path| path.is_file())
}

/// Moves the server's wall clock every second and a half.
async fn jump(control: &Path, seconds: f64) -> anyhow::Result<()> {
    let start = Instant::now();
    for offset in JUMPS.iter().cycle() {
        if start.elapsed().as_secs_f64() > seconds {
            break;
        }
        fs::write(control, offset)?;
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    Ok(())
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let Some(library) = library() else {
        report.skip("libfaketime is not installed (Debian: apt-get install libfaketime)");
        return Ok(());
    };
    let control = ground.folder.path().join("clock");
    fs::write(&control, "+0")?;
    let variables = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", control.display().to_string()),
        ("FAKETIME_CACHE_DURATION", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let launch = Launch {
        environment: variables.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        ..ground.launch.clone()
    };
    timeouts(ground, &launch, &control, report).await?;
    quota(ground, &launch, &control, report).await
}

/// The `date` of an answer, to see that the clock was really moved.
async fn date(server: &Server) -> anyhow::Result<String> {
    let reply = wire::once(server.address, &wire::get("/healthz"), Duration::from_secs(5)).await;
    let reply = reply.map_err(|broken| anyhow::anyhow!("GET /healthz: {broken:?}"))?;
    let head = String::from_utf8_lossy(&reply.raw).into_owned();
    let date = head.lines().find_map(|line| line.strip_prefix("date: "));
    Ok(date.unwrap_or_default().chars().take(16).collect())
}

async fn timeouts(
    ground: &Ground,
    launch: &Launch,
    control: &Path,
    report: &mut Report,
) -> anyhow::Result<()> {
    let server = Server::start(launch).await?;
    let load = Load { seconds: 16.0, ..ground.load(&server, 8) };
    let (address, bound) = (server.address, Duration::from_secs(25));
    let dates = async {
        let mut dates = std::collections::BTreeSet::new();
        for _ in 0..30 {
            dates.insert(date(&server).await?);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        anyhow::Ok(dates)
    };
    let waiting = async {
        let ends = tokio::join!(
            hold_head(address, Head::Silent, bound),
            hold_head(address, Head::Dribbled, bound),
            hold_body(address, false, bound)
        );
        anyhow::Ok(ends)
    };
    let ((), tally, dates, (silent, dribbled, body)) =
        tokio::try_join!(jump(control, 16.0), load.open(200.0), dates, waiting)?;
    report.must(dates.len() > 1, || "the clock was not moved: nothing is shown".to_owned());
    report.count("days seen in answers", dates.len() as u64);
    report.all_answered("while the clock jumps", &tally);
    let heads = [("silent connection closed", silent), ("slow head closed", dribbled)];
    for (name, seconds) in heads {
        report.must(seconds.is_some(), || format!("{name}: never"));
        let seconds = seconds.unwrap_or(f64::INFINITY);
        report.figure(name, seconds, "s", Bar::Between(14.0, 16.0));
    }
    let proper = body.as_ref().is_some_and(|end| end.status == 408);
    report.must(proper, || format!("a slow body is answered {body:?}"));
    let seconds = body.map_or(f64::INFINITY, |end| end.seconds);
    report.figure("slow body closed", seconds, "s", Bar::Between(4.5, 5.5));
    fs::write(control, "+0")?;
    stop(server, report).await
}

async fn quota(
    ground: &Ground,
    launch: &Launch,
    control: &Path,
    report: &mut Report,
) -> anyhow::Result<()> {
    let keys = ground.folder.path().join("keys");
    let digest = blake3::hash(KEY.as_bytes()).to_hex();
    fs::write(&keys, format!("clock:query:{digest}\n"))?;
    let (keys, each) = (keys.display().to_string(), QUOTA.to_string());
    let flags = ["--keys-file", &keys, "--rate-limit-per-key", &each];
    let server = Server::start(&launch.with(&flags)).await?;
    let request = &ground.small[0].request;
    let request = String::from_utf8_lossy(request)
        .replacen("\r\n", &format!("\r\nauthorization: Bearer {KEY}\r\n"), 1)
        .into_bytes();
    let asking = async {
        let (mut granted, mut limited, mut other) = (0_u64, 0, 0);
        let mut connection = Connection::open(server.address).await;
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < QUOTA_SECONDS {
            if let Ok(open) = &mut connection {
                match open.exchange(&request).await {
                    Ok(reply) if reply.status == 200 => granted += 1,
                    Ok(reply) if reply.status == 429 && reply.retry_after => limited += 1,
                    _ => other += 1,
                }
            }
            if !connection.as_ref().is_ok_and(Connection::usable) {
                connection = Connection::open(server.address).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok((granted, limited, other))
    };
    let ((), (granted, limited, other)) = tokio::try_join!(jump(control, QUOTA_SECONDS), asking)?;
    // A second's quota may be used at once, and then it grows back at its rate.
    let fair = QUOTA as f64 * QUOTA_SECONDS;
    let bar = Bar::Between(0.8 * fair, 1.2 * fair + QUOTA as f64);
    report.figure("requests granted under the quota", granted as f64, "", bar);
    report.must(limited > 0, || "the quota never turned a request away".to_owned());
    report.zero("neither granted nor limited", other);
    fs::write(control, "+0")?;
    stop(server, report).await
}
