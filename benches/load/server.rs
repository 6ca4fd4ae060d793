//! The server under test, as a process of its own: started, asked how it is, signalled, ended.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use tokio::sync::oneshot;

use crate::metrics_page::Page;
use crate::processor::on_servers_core;
use crate::wire;

/// Most log lines kept to be looked at.
const KEPT_LINES: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Options with which a server is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The binary.
    pub binary: PathBuf,
    /// The default model's file.
    pub model: PathBuf,
    /// Further flags of `cognate serve`.
    pub flags: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Maximum address space in KiB; `None`: no limit.
    pub address_space_kib: Option<u64>,
    /// Whether the server runs on a core of its own.
    pub pinned: bool,
    /// Where its log is appended to.
    pub log: PathBuf,
}

impl Launch {
    /// The same with more flags.
    pub fn with(&self, flags: &[&str]) -> Self {
        let mut launch = self.clone();
        launch.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        launch
    }
}

/// A running server. Dropping it kills the process.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    pub async fn start(launch: &Launch) -> anyhow::Result<Self> {
        let mut command = match launch.address_space_kib {
            // The limit must stand before the program's first instruction.
            Some(kib) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kib.to_string()]);
                shell.arg(&launch.binary);
                shell
            }
            None => Command::new(&launch.binary),
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--model"]);
        command.arg(format!("default={}", launch.model.display())).args(&launch.flags);
        command.envs(launch.environment.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = match launch.pinned {
            true => on_servers_core(|| command.spawn()),
            false => command.spawn(),
        };
        let mut child = child.context("the server's binary does not start")?;
        let stderr = child.stderr.take().context("stderr was piped")?;
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, told) = oneshot::channel();
        let (kept, path) = (Arc::clone(&lines), launch.log.clone());
        std::thread::spawn(move || follow(stderr, &path, &kept, tell));
        let mut server = Self { address: SocketAddr::from(([127, 0, 0, 1], 0)), child, lines };
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(address)) => server.address = address,
            _ => bail!("the server does not listen; its last words: {}", server.last_words()),
        }
        let deadline = Instant::now() + PATIENCE;
        while server.get("/ready").await? != 200 {
            if Instant::now() > deadline {
                bail!("the server listens but is never ready");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(server)
    }

    /// The status of a GET.
    pub async fn get(&self, path: &str) -> anyhow::Result<u16> {
        let reply = wire::once(self.address, &wire::get(path), PATIENCE).await;
        Ok(reply.map_err(|broken| anyhow::anyhow!("GET {path}: {broken:?}"))?.status)
    }

    /// What `/metrics` says.
    pub async fn metrics(&self) -> anyhow::Result<Page> {
        let reply = wire::once(self.address, &wire::get("/metrics"), PATIENCE).await;
        let reply = reply.map_err(|broken| anyhow::anyhow!("GET /metrics: {broken:?}"))?;
        Ok(Page::parse(&String::from_utf8_lossy(&reply.body())))
    }

    /// Waits until a metric is as wanted, and says whether it came to be in time.
    pub async fn metric_becomes(
        &self,
        name: &str,
        wanted: impl Fn(f64) -> bool,
        within: Duration,
    ) -> anyhow::Result<bool> {
        let deadline = Instant::now() + within;
        loop {
            if wanted(self.metrics().await?.sum(name)?) {
                return Ok(true);
            }
            if Instant::now() > deadline {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(rustix::process::kill_process(pid.context("a process id")?, signal)?)
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until it has ended.
    pub async fn wait(&mut self, within: Duration) -> anyhow::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the server's resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.status_number("VmRSS:")
    }

    /// Threads.
    pub fn threads(&self) -> u64 {
        self.status_number("Threads:")
    }

    /// Leaves it so many KiB of memory that it may write, beside what it has.
    pub fn limit_data(&self, more_kib: u64) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let limit = Some((self.status_number("VmData:") + more_kib) << 10);
        let limit = Rlimit { current: limit, maximum: limit };
        rustix::process::prlimit(Some(pid.context("a process id")?), Resource::Data, limit)?;
        Ok(())
    }

    /// Open file descriptors.
    pub fn descriptors(&self) -> u64 {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, |found| found.count() as u64)
    }

    fn status_number(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Whether a log line contains the words.
    pub fn logged(&self, words: &str) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().any(|line| line.contains(words))
    }

    fn last_words(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().rev().take(3).rev().cloned().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log to its end, so that the server never waits for a reader.
fn follow(
    stderr: ChildStderr,
    path: &PathBuf,
    kept: &Mutex<VecDeque<String>>,
    tell: oneshot::Sender<SocketAddr>,
) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).ok();
    let mut tell = Some(tell);
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(file) = &mut file {
            let _ = writeln!(file, "{line}");
        }
        if let Some(address) = listening(&line)
            && let Some(tell) = tell.take()
        {
            let _ = tell.send(address);
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// Returns the address in the log line that tells where the server listens.
fn listening(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    let said = fields.get("message")?.as_str()?;
    let address = fields.get("address")?.as_str()?.parse().ok()?;
    (said == "listening").then_some(address)
}
