//! `cargo bench --bench http_allocations`: how often the service asks for memory for a request.
//!
//! The contestants of `--bench http` under an allocator that counts, which would spoil the times.

#[allow(dead_code)]
#[path = "../load/chance.rs"]
mod chance;
mod contest;
mod server;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)]
#[path = "../load/texts.rs"]
mod texts;
#[allow(dead_code)]
#[path = "../load/wire.rs"]
mod wire;

use std::alloc::System;

use contest::Contest;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> anyhow::Result<()> {
    if std::env::args().any(|argument| argument == server::FLAG) {
        return server::run(|| {
            let counted = COUNTING.stats();
            // Growing a buffer is a request for memory too.
            (counted.allocations + counted.reallocations, counted.bytes_allocated)
        });
    }
    let mut contest = Contest::begin()?;
    contest.round()?;
    let mut figures = serde_json::Map::new();
    println!("{:>34} {:>12} {:>12}", "", "allocations", "bytes");
    for row in contest.round()? {
        println!("{:>34} {:>12.1} {:>12.0}", row.name, row.allocations(), row.bytes());
        let counted = serde_json::json!({
            "allocations": row.allocations(), "bytes": row.bytes(),
        });
        figures.insert(row.name.clone(), counted);
    }
    support::record("http_allocations", &figures.into());
    Ok(())
}
