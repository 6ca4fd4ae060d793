//! `cargo bench --bench load -- --scenario NAME|all --seed S --seconds N`: puts load and faults on
//! the built server, as a process of its own on 127.0.0.1, and checks what it promises.
//!
//! Each scenario starts its own server and prints its figures beside the promise's figure. The exit
//! code is 1 if a promise is broken: an answer lost, wrong, or of the wrong status. Latency alone
//! breaks none, because it depends on the machine. What the promises are for is not known here.

#[path = "../support/mod.rs"]
mod support;

mod alarm;
mod attackers;
mod balancer;
mod chance;
mod generator;
mod ground;
mod machine;
mod metrics_page;
mod models;
mod options;
mod oracle;
mod processor;
mod proxy;
mod report;
mod scenarios;
mod server;
mod tally;
mod texts;
mod wire;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit};
use tokio::task::LocalSet;

use crate::ground::Ground;
use crate::options::{Choice, Options};
use crate::report::Report;

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let cores = std::thread::available_parallelism()?;
    println!(
        "seed {}, {} s a measurement, {cores} cores; {}",
        options.seed,
        options.seconds,
        options.setting()
    );
    raise_descriptor_limit()?;
    if options.pin {
        processor::pin_generator()?;
    }
    machine::watch();
    let mut broken = Vec::new();
    for choice in options.scenario.scenarios() {
        let report = run(choice, &options)?;
        report.print();
        let json = report.json(&options);
        support::record(&format!("load-{}", choice.name()), &json);
        if report.is_broken() {
            broken.push(choice.name());
        }
    }
    if broken.is_empty() {
        println!("\nevery promise that was checked is kept");
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nbroken: {} (seed {})", broken.join(", "), options.seed);
    Ok(ExitCode::FAILURE)
}

fn run(choice: Choice, options: &Options) -> anyhow::Result<Report> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    let log = folder.join(format!("load-{}.log", choice.name()));
    fs::write(&log, "")?;
    let ground = Ground::prepare(options, log)?;
    let mut report = Report::new(&choice.name(), choice.promise());
    report.note(format!("texts: {}; {}", ground.texts.source, options.setting()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = scenarios::run(choice, &ground, &mut report);
    // A scenario that cannot go on (the server is gone, say) is a finding, not the end of the others.
    if let Err(error) = LocalSet::new().block_on(&runtime, work) {
        report.must(false, || format!("the scenario could not go on: {error:#}"));
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(report)
}

/// A thousand attackers need a thousand descriptors, here and in the server.
fn raise_descriptor_limit() -> anyhow::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}
