//! How much memory this process may use, and how much of it is left for another model: asked before
//! a file is opened, so that a reload is refused where it would end the process.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Kept free for requests beside what a model takes.
const RESERVE: u64 = 32 << 20;

/// How many bytes are free, if that is too few for a model that takes `addresses` bytes of address
/// space and `resident` bytes of memory. Nothing if it fits, or if nothing is known to limit this process.
pub(crate) fn lacking(addresses: u64, resident: u64) -> Option<u64> {
    let limits = [(free_addresses(), addresses), (free_in_group(), resident)];
    let short = |(free, need): (Option<u64>, u64)| {
        free.filter(|&free| need > 0 && free < need.saturating_add(RESERVE))
    };
    limits.into_iter().filter_map(short).min()
}

/// Bytes that this process may use: what its address limit leaves, its control group's limit, or
/// the machine's memory, whichever is least. Nothing if none of them is known.
pub(crate) fn limit() -> Option<u64> {
    [free_addresses(), group_limit(), machine()].into_iter().flatten().min()
}

/// Bytes of memory that the machine has.
fn machine() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemTotal:")
}

/// A number of kilobytes that a table of the kernel gives, in bytes.
fn kilobytes(table: &str, name: &str) -> Option<u64> {
    let table = fs::read_to_string(table).ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1024))
}

/// What the address limit of this process leaves.
fn free_addresses() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// What the control group of this process may still take. Pages of files count among what is in
/// use there, but are given up for others.
fn free_in_group() -> Option<u64> {
    let (folder, names) = group()?;
    let limit = number(&folder, names.limit)?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix(names.inactive_files));
    let files = files.and_then(|bytes| bytes.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number(&folder, names.used)?.saturating_sub(files)))
}

/// The limit of the control group of this process.
fn group_limit() -> Option<u64> {
    let (folder, names) = group()?;
    number(&folder, names.limit)
}

/// What the files of a control group are called.
struct Names {
    limit: &'static str,
    used: &'static str,
    inactive_files: &'static str,
}

const SECOND_VERSION: Names =
    Names { limit: "memory.max", used: "memory.current", inactive_files: "inactive_file " };
const FIRST_VERSION: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive_files: "total_inactive_file ",
};

/// The folder of the control group of this process, of either version. In a container a group of
/// the first version lies at the root, whatever its path outside.
fn group() -> Option<(PathBuf, Names)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let under = |root: &str, own: &str| Path::new(root).join(own.trim_start_matches('/'));
    let own = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then(|| path.to_owned())
    };
    if let Some(own) = groups.lines().find_map(own) {
        let root = "/sys/fs/cgroup/memory";
        let folders = [under(root, &own), PathBuf::from(root)];
        let found = folders.into_iter().find(|folder| folder.join(FIRST_VERSION.limit).exists());
        return found.map(|folder| (folder, FIRST_VERSION));
    }
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((under("/sys/fs/cgroup", own), SECOND_VERSION))
}

/// A number that a control group gives; nothing for `max`.
fn number(group: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
}
