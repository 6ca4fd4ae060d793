//! Processor time, which says what work costs whoever else uses the machine: of the server by what its
//! threads do, and of this process. Also which core either runs on. Only Linux tells of both.

use std::path::Path;
use std::time::Instant;
use std::{fs, io};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::server::Server;

/// The core of a pinned server, and that of a pinned generator.
const CORES: (usize, usize) = (0, 1);
/// Clock ticks a second of `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;

/// Keeps this thread, and threads and processes that it makes, to the generator's core.
pub fn pin_generator() -> io::Result<()> {
    pin(CORES.1)
}

/// Runs `start` on the server's core, where what it starts will stay.
pub fn on_servers_core<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    pin(CORES.0)?;
    let started = start();
    pin(CORES.1)?;
    started
}

fn pin(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

/// Seconds of processor time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Of the threads that compute answers.
    pub computing: f64,
    /// Of all others, in the program.
    pub serving: f64,
    /// Of all others, in the kernel.
    pub kernel: f64,
}

impl Spent {
    /// What a process has spent so far; nothing where `/proc` does not say.
    fn new(process: &str) -> Self {
        let mut spent = Self::default();
        let threads = fs::read_dir(Path::new("/proc").join(process).join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // A name may hold anything, so fields are counted from its end.
            let Some((name, fields)) = stat.rsplit_once(')') else { continue };
            let ticks = |place| fields.split_whitespace().nth(place).and_then(|t| t.parse().ok());
            let (Some(user), Some(system)) = (ticks(11), ticks(12)) else { continue };
            let (user, system): (f64, f64) = (user, system);
            if name.contains("(compute-") {
                spent.computing += (user + system) / TICKS;
            } else {
                spent.serving += user / TICKS;
                spent.kernel += system / TICKS;
            }
        }
        spent
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            computing: self.computing - earlier.computing,
            serving: self.serving - earlier.serving,
            kernel: self.kernel - earlier.kernel,
        }
    }

    /// All of it.
    pub fn all(&self) -> f64 {
        self.computing + self.serving + self.kernel
    }
}

/// What both sides spent up to a moment.
pub struct Meter {
    at: Instant,
    server: Spent,
    generator: Spent,
}

/// Processor time that the server and the client spent during a measurement.
pub struct Usage {
    /// How long that was, in seconds.
    pub seconds: f64,
    /// The server.
    pub server: Spent,
    /// This process.
    pub generator: Spent,
}

impl Meter {
    /// Begins to measure.
    pub fn begin(server: &Server) -> Self {
        let process = server.pid().to_string();
        Self { at: Instant::now(), server: Spent::new(&process), generator: Spent::new("self") }
    }

    /// What was spent since.
    pub fn end(&self, server: &Server) -> Usage {
        let now = Self::begin(server);
        Usage {
            seconds: (now.at - self.at).as_secs_f64(),
            server: now.server.since(&self.server),
            generator: now.generator.since(&self.generator),
        }
    }
}
