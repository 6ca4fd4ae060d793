//! How much memory there is for another model: asked before a file is opened, so that a reload is
//! refused where it would end the process.

use std::fs;
use std::path::Path;

use rustix::process::Resource;
use rustix::process::getrlimit;

/// Kept free for requests beside what a model takes.
const RESERVE: u64 = 32 << 20;

/// How many bytes are free, if that is too few for a model that takes so many bytes of addresses
/// and so many of memory. Nothing if it fits, or if nothing is known to limit this process.
pub fn lacking(addresses: u64, resident: u64) -> Option<u64> {
    let limits = [(free_addresses(), addresses), (free_in_group(), resident)];
    let short = |(free, need): (Option<u64>, u64)| {
        free.filter(|&free| need > 0 && free < need.saturating_add(RESERVE))
    };
    limits.into_iter().filter_map(short).min()
}

/// What the address limit of this process leaves.
fn free_addresses() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used = line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024);
    Some(limit.saturating_sub(used))
}

/// What the control group of this process may still take. Pages of files count among what is in
/// use there, but are given up for others.
fn free_in_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let limit = number("memory.max")?;
    let statistics = read("memory.stat").unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files = files.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number("memory.current")?.saturating_sub(files)))
}
