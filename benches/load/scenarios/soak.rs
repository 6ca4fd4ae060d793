//! P29: half load for a long time, with a fault of some kind every ten seconds. Answers stay right,
//! faults leave nothing behind, and the last minutes are as good as the first.

use std::rc::Rc;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::chance::Chance;
use crate::generator::Load;
use crate::ground::{Ground, small_questions};
use crate::processor::Meter;
use crate::report::{Bar, Report};
use crate::scenarios::reload::Swap;
use crate::scenarios::slow_readers::large_answer;
use crate::scenarios::soak::faults::{Faulty, Happening};
use crate::scenarios::{P99_MS, P999_MS, mebibytes, peak, stop};
use crate::server::Server;
use crate::support::median;
use crate::tally::{Tally, milliseconds};

mod faults;

/// Seconds with a fault, and then as many without.
const WINDOW_S: f64 = 5.0;

/// What was seen at the end of a window without a fault.
struct Sample {
    at_hours: f64,
    resident: f64,
    descriptors: u64,
    threads: u64,
    /// Microseconds of the server's processor time for each answer.
    processor: f64,
    clean: Histogram<u64>,
}

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let seconds = ground.options.minutes.map_or(6.0 * ground.options.seconds, |m| 60.0 * m);
    let swap = Swap::prepare(ground)?;
    let server = Server::start(&swap.launch).await?;
    let questions = small_questions(&swap.oracle, &ground.texts)?;
    let load = Load { questions, seconds: WINDOW_S, ..ground.load(&server, 64) };
    let peak = peak(&load, report, "1 pair, 64 connections").await?;
    let mut chance = Chance::new(ground.options.seed, "faults");
    let faulty = Faulty {
        server: &server,
        swap: &swap,
        small: Rc::clone(&load.questions),
        large_answer: large_answer(ground),
        peak,
    };
    let (mut during, mut between, mut samples) = (Tally::default(), Tally::default(), Vec::new());
    let start = Instant::now();
    let mut happened = Vec::new();
    while start.elapsed().as_secs_f64() < seconds {
        // Every kind comes once before any comes again.
        if happened.len() == samples.len() {
            happened.extend(shuffled(&mut chance));
        }
        let Some(happening) = happened.get(samples.len()).copied() else { break };
        let seed = chance.next();
        let window = Load { seed, ..load.clone() };
        let (tally, unexpected) =
            tokio::try_join!(window.open(0.5 * peak), faulty.happen(happening, seed))?;
        report.must(unexpected == 0, || format!("{happening:?}: {unexpected} unexpected answers"));
        if tally.wrong + tally.reset + tally.late + tally.strange > 0 {
            report.note(format!("{happening:?}: {:?}", tally.example));
        }
        // A server that is stopped or starved cannot be quick; only its answers are judged then.
        if happening.spares_latency() {
            during.add(&tally);
        } else {
            let latencies = Tally::default();
            during.add(&Tally { scheduled: latencies.scheduled, ..tally });
        }
        let meter = Meter::begin(&server);
        let tally = Load { seed: chance.next(), ..load.clone() }.open(0.5 * peak).await?;
        let spent = meter.end(&server).server.all();
        between.add(&tally);
        samples.push(Sample {
            at_hours: start.elapsed().as_secs_f64() / 3600.0,
            resident: mebibytes(server.resident_kib()),
            descriptors: server.descriptors(),
            threads: server.threads(),
            processor: 1e6 * spent / tally.answered() as f64,
            clean: tally.scheduled,
        });
    }
    report.count("faults", samples.len() as u64);
    report.latency("with a fault", &during, 3.0 * P99_MS, 3.0 * P999_MS);
    report.count("with a fault: shed", during.shed);
    report.answered_or_shed("with a fault", &during);
    report.latency("without", &between, P99_MS, P999_MS);
    report.all_answered("without", &between);
    trends(&samples, report);
    stop(server, report).await
}

/// All kinds of faults in some order.
fn shuffled(chance: &mut Chance) -> Vec<Happening> {
    let mut order = Happening::ALL.to_vec();
    for place in (1..order.len()).rev() {
        order.swap(place, chance.below(place + 1));
    }
    order
}

/// Whether the end is as good as the beginning. Memory goes up and down by megabytes with each fault, so that a line
/// through it has a slope by chance; what leaks shows in the median. p99 is the machine's as much as the program's, so
/// the end is compared by processor time.
fn trends(samples: &[Sample], report: &mut Report) {
    let warm = samples.get(samples.len() / 4..).unwrap_or_default();
    let (Some(first), Some(last)) = (warm.first(), warm.last()) else { return };
    if warm.len() < 6 {
        report.note("too short for trends: run it with --minutes 30");
        return;
    }
    report.curve(samples.iter().map(|sample| {
        [60.0 * sample.at_hours, sample.resident, milliseconds(&sample.clean, 0.99)]
    }));
    let (early, late) = warm.split_at(warm.len() / 2);
    let middle = |of: fn(&Sample) -> f64, part: &[Sample]| median(part.iter().map(of).collect());
    let grown = middle(|sample| sample.resident, late) - middle(|sample| sample.resident, early);
    report.figure("memory, median of the last half over the first", grown, "MiB", Bar::AtMost(4.0));
    report.figure("memory at the end", last.resident, "MiB", Bar::None);
    let more = |now: u64, then: u64| now as f64 - then as f64;
    let descriptors = more(last.descriptors, first.descriptors);
    report.figure("descriptors, end over beginning", descriptors, "", Bar::Between(-8.0, 8.0));
    let threads = more(last.threads, first.threads);
    report.figure("threads, end over beginning", threads, "", Bar::Between(-2.0, 2.0));
    let sixth = samples.len().div_ceil(6);
    let (first, last) = (&samples[..sixth], &samples[samples.len() - sixth..]);
    let p99 = |part| middle(|sample| milliseconds(&sample.clean, 0.99), part);
    report.figure("p99 of the last sixth", p99(last), "ms", Bar::AtMost(P99_MS));
    report.figure("p99 of the last sixth over the first", p99(last) / p99(first), "", Bar::None);
    let processor = |part| middle(|sample| sample.processor, part);
    report.figure("processor time of an answer, first sixth", processor(first), "us", Bar::None);
    let more = processor(last) / processor(first);
    report.figure("processor time, last sixth over the first", more, "", Bar::AtMost(1.1));
}
