//! Work shared by threads while the interpreter is let go.
//!
//! Threads are started for one call and joined at its end: a pool would not live on in a process
//! that was forked, and the pools of Python (`multiprocessing`, Spark, Dask) fork.

use std::iter::Enumerate;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Problem;

/// How long the user waits for Ctrl-C to be heard, beside the part at work.
pub(crate) const LISTENS_EVERY: Duration = Duration::from_millis(50);

/// Who does the work of a call: so many threads, and who is told the share of it that is done.
#[derive(Clone, Copy)]
pub(crate) struct Crew<'p> {
    pub threads: usize,
    pub progress: Option<&'p Py<PyAny>>,
}

/// Parts that threads take in turn, and the first part's problem.
struct Parts<I: Iterator> {
    left: Mutex<Enumerate<I>>,
    failed: AtomicBool,
    problem: Mutex<Option<(usize, Problem)>>,
}

/// A thread that panics ends the whole call, so what it left behind is never looked at.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Iterator> Parts<I> {
    fn next(&self) -> Option<(usize, I::Item)> {
        if self.failed.load(Ordering::Relaxed) { None } else { lock(&self.left).next() }
    }

    /// Parts are handed out in order, so the first of all problems is among those that are noted.
    fn note(&self, number: usize, problem: Problem) {
        self.failed.store(true, Ordering::Relaxed);
        let mut noted = lock(&self.problem);
        if noted.as_ref().is_none_or(|(earlier, _)| number < *earlier) {
            *noted = Some((number, problem));
        }
    }
}

/// Does `work` for each part, on up to as many threads, this one among them. The answer to a
/// problem is that of the first part that has one. `count` is how many parts there are. Long work asks
/// whether to go on; once that says no, what it made is thrown away.
pub(crate) fn each<I>(
    py: Python<'_>,
    Crew { threads, progress }: Crew<'_>,
    count: usize,
    parts: I,
    work: impl Fn(I::Item, &mut dyn FnMut() -> bool) -> Result<(), Problem> + Sync,
) -> Result<(), Problem>
where
    I: Iterator + Send,
{
    let parts = Parts {
        left: Mutex::new(parts.enumerate()),
        failed: AtomicBool::new(false),
        problem: Mutex::new(None),
    };
    let done = AtomicUsize::new(0);
    let tell = |py: Python<'_>| {
        py.check_signals()?;
        let share = done.load(Ordering::Relaxed) as f64 / count.max(1) as f64;
        progress.map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
    };
    let run = |go_on: &mut dyn FnMut() -> bool| {
        while let Some((number, part)) = parts.next() {
            if let Err(problem) = work(part, go_on) {
                parts.note(number, problem);
            }
            done.fetch_add(1, Ordering::Relaxed);
            go_on();
        }
    };
    let goes_on = || !parts.failed.load(Ordering::Relaxed);
    py.detach(|| {
        thread::scope(|scope| {
            for _ in 1..threads.min(count) {
                let run = || run(&mut { goes_on });
                // Without another thread the work takes longer, and that is all.
                let _ = thread::Builder::new().name("cognate".to_owned()).spawn_scoped(scope, run);
            }
            let mut listened = Instant::now();
            run(&mut || {
                if listened.elapsed() > LISTENS_EVERY {
                    listened = Instant::now();
                    if let Err(interrupt) = Python::attach(tell) {
                        parts.note(0, Problem::Python(interrupt));
                    }
                }
                goes_on()
            });
        });
    });
    match parts.problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, problem)) => Err(problem),
        None => Ok(()),
    }
}
