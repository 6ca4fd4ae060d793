//! What the operating system says of this process, under the names that Prometheus clients share.

use std::fmt::Write;
use std::fs;

/// The series, as Prometheus reads them. What the system does not tell is left out.
pub(crate) fn series() -> String {
    let mut page = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    };
    let stat = Stat::read();
    let of = |number: fn(&Stat) -> f64| stat.as_ref().map(number);
    let cpu = of(|stat| stat.cpu_seconds);
    add("process_cpu_seconds_total", "counter", "User and system time spent.", cpu);
    let memory = of(|stat| stat.resident_bytes);
    add("process_resident_memory_bytes", "gauge", "Resident memory.", memory);
    add("process_threads", "gauge", "Threads.", of(|stat| stat.threads));
    let started = stat.as_ref().and_then(Stat::started);
    add("process_start_time_seconds", "gauge", "Start, in seconds since 1970.", started);
    let open = fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as f64);
    add("process_open_fds", "gauge", "Open file descriptors.", open);
    page
}

/// Fields of `/proc/self/stat`.
struct Stat {
    cpu_seconds: f64,
    resident_bytes: f64,
    threads: f64,
    /// Seconds from the system's start to this process's.
    after_boot: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        let line = fs::read_to_string("/proc/self/stat").ok()?;
        // The name stands in brackets and may hold spaces; the numbers follow the last one.
        let (_, numbers) = line.rsplit_once(')')?;
        let field: Vec<f64> =
            numbers.split_whitespace().map(|n| n.parse().unwrap_or(0.0)).collect();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: (field.get(11)? + field.get(12)?) / ticks,
            threads: *field.get(17)?,
            after_boot: field.get(19)? / ticks,
            resident_bytes: field.get(21)? * rustix::param::page_size() as f64,
        })
    }

    fn started(&self) -> Option<f64> {
        let system = fs::read_to_string("/proc/stat").ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(boot.trim().parse::<f64>().ok()? + self.after_boot)
    }
}
