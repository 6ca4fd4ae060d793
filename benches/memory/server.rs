//! The built binary as a process of its own: started, waited for without a pause, asked, weighed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server; dropping it ends the process.
pub struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open, so that the log always has a reader's end.
    _log: BufReader<ChildStderr>,
    /// From the start of the process to the first 200 of `/ready`.
    pub ready_after: Duration,
}

/// Resident memory in MB.
#[derive(Clone, Copy)]
pub struct Resident {
    pub all: f64,
    /// Of its own: heap, stacks, copies.
    pub anonymous: f64,
    /// Pages of files, the program's own among them; the kernel may take them back at any time.
    pub file: f64,
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    pub fn start(model: &Path, flags: &[&str]) -> Self {
        let begun = Instant::now();
        let mut child = command(model).args(flags).spawn().expect("the binary was just built");
        let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            let read = log.read_line(&mut line).expect("the log is text");
            assert!(read > 0, "the server ended before it listened");
            if let Some(address) = listening(&line) {
                break address;
            }
        };
        let mut server = Self { child, address, _log: log, ready_after: Duration::MAX };
        while !server.get("/ready").starts_with("HTTP/1.1 200") {
            assert!(begun.elapsed() < Duration::from_secs(20), "the server is never ready");
        }
        server.ready_after = begun.elapsed();
        server
    }

    fn get(&self, path: &str) -> String {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    /// Asks for scores and sees that they come.
    pub fn ask(&self, body: &str) {
        let answer = self.exchange(&format!(
            "POST /similarity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers and closes");
        answer
    }

    /// What the process holds in memory.
    pub fn resident(&self) -> Resident {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("the server runs");
        let megabytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
            number.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
        };
        Resident {
            all: megabytes("VmRSS:"),
            anonymous: megabytes("RssAnon:"),
            file: megabytes("RssFile:"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long a start takes that ends in refusing its model: what all starts share.
pub fn refused_after(model: &Path) -> Duration {
    let begun = Instant::now();
    let output = command(model).output().expect("the binary was just built");
    assert!(!output.status.success(), "a model that is not there was served");
    begun.elapsed()
}

fn command(model: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--model"]);
    command.arg(format!("default={}", model.display()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The address in the log line that says where the server listens.
fn listening(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    let said = fields.get("message")?.as_str()?;
    let address = fields.get("address")?.as_str()?.parse().ok()?;
    (said == "listening").then_some(address)
}
