//! The built binary as a process of its own: started, waited for without a pause, asked, weighed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

const ANSWERED: &str = "HTTP/1.1 200";

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
    /// What no other process has: of several servers, all that each adds.
    pub private: f64,
}

impl Server {
    /// From the start of a process to its first answer, for a client that knows the port and waits for it.
    pub fn first_answer_after(model: &Path, body: &str) -> Duration {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.expect("a free port");
        let begun = Instant::now();
        let mut command = command(model);
        command.stderr(Stdio::null()).args(["--listen", &address.to_string()]);
        let mut child = command.spawn().expect("the binary was just built");
        let request = question(body);
        let answered = || exchange(address, &request).is_ok_and(|told| told.starts_with(ANSWERED));
        while !answered() {
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing is ever answered");
            std::thread::sleep(Duration::from_micros(200));
        }
        let taken = begun.elapsed();
        let _ = child.kill();
        let _ = child.wait();
        taken
    }

    /// Starts a server on a free port and waits until it is ready.
    pub fn start(model: &Path, flags: &[&str]) -> Self {
        let begun = Instant::now();
        let mut command = command(model);
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        let mut child = command.spawn().expect("the binary was just built");
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
        let ready = "GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        while !exchange(address, ready).expect("the server answers").starts_with(ANSWERED) {
            assert!(begun.elapsed() < Duration::from_secs(20), "the server is never ready");
        }
        server.ready_after = begun.elapsed();
        server
    }

    /// Asks for scores and sees that they come.
    pub fn ask(&self, body: &str) {
        let answer = exchange(self.address, &question(body)).expect("the server answers");
        assert!(answer.starts_with(ANSWERED), "{answer}");
    }

    /// What the process holds in memory.
    pub fn resident(&self) -> Resident {
        let file = format!("/proc/{}/smaps_rollup", self.child.id());
        let rollup = std::fs::read_to_string(file).expect("the server runs");
        let megabytes = |key: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
            number.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
        };
        let (all, anonymous) = (megabytes("Rss:"), megabytes("Anonymous:"));
        let private = megabytes("Private_Clean:") + megabytes("Private_Dirty:");
        Resident { all, anonymous, file: all - anonymous, private }
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
    let output = command(model)
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .expect("the binary was just built");
    assert!(!output.status.success(), "a model that is not there was served");
    begun.elapsed()
}

fn question(body: &str) -> String {
    format!(
        "POST /similarity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn exchange(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn command(model: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
    command.args(["serve", "--model"]).arg(format!("default={}", model.display()));
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
