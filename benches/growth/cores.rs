//! Measures how many pairs a second the service scores on growing numbers of cores.

use std::cell::RefCell;
use std::thread::available_parallelism;

use cognate::engine::Engine;
use rayon::ThreadPool;
use rayon::prelude::*;
use rustix::time::ClockId;

use crate::panels::Panel;
use crate::requests::scores;
use crate::support::{Clock, Contestant};
use crate::{METHODS, ROUNDS, support};

/// Pairs that a thread takes at a time: a part of an answer as the service cuts it.
const PART: usize = 100;
/// How often the pairs are scored a turn, so that waking threads and
/// finding them a core does not show.
const TIMES: usize = 8;

/// By the clock on the wall, because nothing else shows what a second core brings, and by what the
/// threads were given of the cores: whoever else uses the machine takes from the first and not from
/// the second, which shows whether threads are in each other's way.
pub fn panel(engine: &Engine, pairs: &[(String, String)]) -> Panel {
    let cores = available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&n| n < cores).collect();
    counts.push(cores);
    let pool = |&threads: &usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("the machine has room for as many threads as cores")
    };
    let pools: Vec<ThreadPool> = counts.iter().map(pool).collect();
    let mut panel = Panel::new("cores", "Cores", "threads", "pairs a second");
    for method in METHODS {
        let given: Vec<RefCell<Vec<f64>>> = counts.iter().map(|_| RefCell::default()).collect();
        let contestant = |pool: &ThreadPool, given: &RefCell<Vec<f64>>| -> u64 {
            let timed = |part: &[(String, String)]| {
                let begun = given_of_a_core();
                std::hint::black_box(scores(engine, method, part, PART));
                given_of_a_core() - begun
            };
            let parts = || pairs.par_chunks(PART).map(timed).sum::<f64>();
            let seconds: f64 = pool.install(|| (0..TIMES).map(|_| parts()).sum());
            given.borrow_mut().push(seconds);
            pairs.len() as u64
        };
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (pool, given) in pools.iter().zip(&given) {
            contestants.push(("", Box::new(move || contestant(pool, given))));
        }
        let taken = support::interleaved_by(Clock::Wall, &mut contestants, ROUNDS);
        drop(contestants);
        let scored = (pairs.len() * TIMES) as f64;
        let clock = counts.iter().zip(taken).map(|(&n, taken)| (n as f64, scored / taken));
        let given = counts.iter().zip(given).map(|(&n, given)| {
            let threads = n as f64;
            // The first turn was to warm up.
            let measured = given.into_inner().split_off(1);
            (threads, scored * threads / support::median(measured))
        });
        panel = panel
            .line(&format!("{}, clock", method.name()), clock.collect())
            .line(&format!("{}, CPU", method.name()), given.collect());
    }
    panel
}

/// Seconds that this thread was given of a core so far.
fn given_of_a_core() -> f64 {
    let now = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
