//! The built binary serving the tiny model: started, watched through its log, sent signals.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cognate::model::format::Dtype;
use rustix::process::{Pid, Resource, Rlimit};
use tempfile::TempDir;

use crate::support;

/// A serving process; killed when dropped.
pub struct Process {
    /// Where it listens; port 0 if it does not.
    pub address: SocketAddr,
    child: Child,
    model: PathBuf,
    folder: TempDir,
}

impl Process {
    /// Serves the tiny model on a free port, and waits until it is ready.
    pub fn start(arguments: &[String]) -> Self {
        Self::start_with_variables(arguments, &[])
    }

    /// The same in an environment with more variables.
    pub fn start_with_variables(arguments: &[String], variables: &[(&str, &Path)]) -> Self {
        Self::begin_with_variables(arguments, variables).ready()
    }

    /// Serves a model on a free port, and waits until it is ready.
    pub fn serve(model: &Path, arguments: &[String]) -> Self {
        Self::start_with(model, arguments).ready()
    }

    /// Begins to serve the tiny model on a free port, and waits for nothing.
    pub fn begin(arguments: &[String]) -> Self {
        Self::begin_with_variables(arguments, &[])
    }

    fn begin_with_variables(arguments: &[String], variables: &[(&str, &Path)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.safetensors");
        std::fs::write(&model, support::tiny(Dtype::F32)).unwrap();
        Self::spawn(folder, model, arguments, variables)
    }

    /// Waits until it is ready.
    pub fn ready(self) -> Self {
        let mut process = self;
        process.until_log("the start", |log| log.contains("\"ready\""));
        let log = process.log();
        let (_, rest) = log.split_once("\"listening\",\"address\":\"").expect("it listens");
        process.address = rest.split('"').next().unwrap().parse().unwrap();
        process
    }

    /// Tries to serve a file that may not be a model.
    pub fn start_with(model: &Path, arguments: &[String]) -> Self {
        Self::spawn(tempfile::tempdir().unwrap(), model.to_owned(), arguments, &[])
    }

    fn spawn(
        folder: TempDir,
        model: PathBuf,
        arguments: &[String],
        variables: &[(&str, &Path)],
    ) -> Self {
        let mut named = std::ffi::OsString::from("default=");
        named.push(&model);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
        command.arg("serve").arg("--model").arg(named);
        if !arguments.iter().any(|argument| argument == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let log = File::create(folder.path().join("log")).unwrap();
        command.args(arguments).current_dir(folder.path()).envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { address, child: command.spawn().unwrap(), model, folder }
    }

    /// The file it serves.
    pub fn model(&self) -> &Path {
        &self.model
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Waits until the log says so.
    pub fn until_log(&mut self, what: &str, says: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !says(&self.log()) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended before {what}: {ended:?}\n{}", self.log());
            assert!(begun.elapsed() < Duration::from_secs(10), "no {what}:\n{}", self.log());
            sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn wait(&mut self, most: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < most, "still running:\n{}", self.log());
            sleep(Duration::from_millis(10));
        }
    }
}

/// A line of the kernel's table of a process, in bytes.
pub fn memory(process: &Process, name: &str) -> u64 {
    let table = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = table.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Leaves a process so many bytes of memory that it may write, beside what it has. A limit on addresses would
/// also count the 64 MiB that the allocator of C reserves for each of its arenas and mostly never writes.
pub fn limit_data(process: &Process, more: u64) {
    let limit = Some(memory(process, "VmData:") + more);
    let pid = Pid::from_raw(process.id() as i32).unwrap();
    let limit = Rlimit { current: limit, maximum: limit };
    rustix::process::prlimit(Some(pid), Resource::Data, limit).unwrap();
}

/// Lets a process make no file longer than so many bytes, which is a full disk to whoever writes more; or any
/// length again.
pub fn limit_files(process: &Process, bytes: Option<u64>) {
    let pid = Pid::from_raw(process.id() as i32).unwrap();
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: bytes.or(maximum), maximum };
    rustix::process::prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
