//! P5: work is bounded by threads and queue, whatever is asked, and nothing goes on computing after
//! its deadline.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::ground::Ground;
use crate::report::{Bar, Report};
use crate::scenarios::fair::rankings;
use crate::scenarios::{gauge_returns, stop};
use crate::server::Server;
use crate::wire::once;

const THREADS: usize = 2;
const QUEUE: usize = 8;
const REQUESTS: usize = 1000;
/// Candidates of each, so many that some are late and none is refused for that.
const CANDIDATES: usize = 400;
const AT_ONCE: usize = 64;

/// Runs it.
pub async fn run(ground: &Ground, report: &mut Report) -> anyhow::Result<()> {
    let (threads, queue) = (THREADS.to_string(), QUEUE.to_string());
    let flags = ["--compute-deadline-ms", "1", "--compute-threads", &threads];
    let more = ["--compute-queue", &queue, "--admission-units", "1000000"];
    let server = Rc::new(Server::start(&ground.launch.with(&flags).with(&more)).await?);
    let questions = rankings(ground, CANDIDATES)?;
    let [asked, unexpected, in_time, late] = std::array::from_fn(|_| Rc::new(Cell::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let [asked, unexpected, in_time, late] =
            [&asked, &unexpected, &in_time, &late].map(Rc::clone);
        let (questions, address) = (Rc::clone(&questions), server.address);
        clients.spawn_local(async move {
            while asked.get() < REQUESTS {
                asked.set(asked.get() + 1);
                let question = &questions[asked.get() % questions.len()];
                match once(address, &question.request, Duration::from_secs(10)).await {
                    Ok(reply) if reply.status == 200 => in_time.set(in_time.get() + 1),
                    Ok(reply) if reply.status == 503 && reply.retry_after => {
                        let is_late =
                            String::from_utf8_lossy(&reply.raw).contains("deadline_exceeded");
                        late.set(late.get() + usize::from(is_late));
                    }
                    _ => unexpected.set(unexpected.get() + 1),
                }
            }
        });
    }
    let (mut running, mut live) = (0.0_f64, 0.0_f64);
    let looking = async {
        loop {
            let page = server.metrics().await?;
            let jobs = page.sum("cognate_compute_jobs")?;
            running = running.max(jobs);
            // A job that a free thread is about to begin still counts as waiting.
            live = live.max(jobs + page.sum("cognate_compute_queued")?);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let finished = async { while clients.join_next().await.is_some() {} };
    let looked: anyhow::Result<()> = tokio::select! {
        result = looking => result,
        () = finished => Ok(()),
    };
    looked?;
    report.figure("jobs running at once, at most", running, "", Bar::AtMost(THREADS as f64));
    let bound = (THREADS + QUEUE) as f64;
    report.figure("jobs running or waiting at once, at most", live, "", Bar::AtMost(bound));
    report.must(running <= THREADS as f64 && live <= bound, || {
        format!("{running} jobs ran, {live} ran or waited; {THREADS} and {bound} are the bounds")
    });
    report.count("asked", asked.get() as u64);
    report.count("answered within a millisecond of compute", in_time.get() as u64);
    report.count("given up at the deadline", late.get() as u64);
    report.must(late.get() > 0, || "no request was given up at its deadline".to_owned());
    report.zero("neither 200 nor a proper 503", unexpected.get() as u64);
    gauge_returns(&server, report, "cognate_compute_jobs", 0.0, Duration::from_secs(1)).await?;
    let units = "cognate_admission_units_in_use";
    gauge_returns(&server, report, units, 0.0, Duration::from_secs(1)).await?;
    match Rc::into_inner(server) {
        Some(server) => stop(server, report).await,
        None => anyhow::bail!("a client still holds the server"),
    }
}
