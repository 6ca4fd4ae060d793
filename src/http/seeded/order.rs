//! Tasks that go on in an order of chance, which a seed fixes: which of those that were woken is next, which
//! is gone, when work goes on that the service handed to other tasks or to its pool, how time passes. What
//! the tasks do is not known here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use cognate_testing::Chance;
use rayon::Yield;
use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;

/// A task, and whether it asked to be looked at again.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Task {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }

    fn look(&mut self) -> bool {
        self.woken.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
    }
}

pub(super) struct Order {
    pub chance: Chance,
    pub lossy: bool,
    pub gone: usize,
    tasks: Vec<Task>,
    choices: DefaultHasher,
}

impl Order {
    pub fn of(chance: Chance) -> Self {
        let (tasks, choices) = (Vec::new(), DefaultHasher::new());
        Self { chance, lossy: false, gone: 0, tasks, choices }
    }

    pub fn begin(&mut self, task: impl Future<Output = ()> + 'static) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        // All of them are one task of the runtime, which would make them rest after a while.
        self.tasks.push(Task { future: Box::pin(unconstrained(task)), woken });
    }

    /// Whether all tasks have ended, those of the runtime too.
    pub fn is_over(&self) -> bool {
        self.tasks.is_empty() && Handle::current().metrics().num_alive_tasks() == 0
    }

    /// A number that differs where anything went in another order.
    pub fn trace(&self) -> u64 {
        self.choices.finish()
    }

    pub async fn step(&mut self) {
        let woken: Vec<usize> =
            (0..self.tasks.len()).filter(|&at| self.tasks[at].is_woken()).collect();
        (&woken, self.tasks.len()).hash(&mut self.choices);
        match self.chance.below(16) {
            0..2 => drop(rayon::yield_now()),
            2..5 => tokio::task::yield_now().await,
            // Not while all wait: whoever is never woken would be gone in the end.
            5 if self.lossy && !woken.is_empty() && self.chance.below(8) == 0 => {
                drop(self.tasks.swap_remove(self.chance.below(self.tasks.len())));
                self.gone += 1;
            }
            _ if !woken.is_empty() => {
                let at = woken[self.chance.below(woken.len())];
                if self.tasks[at].look() {
                    drop(self.tasks.swap_remove(at));
                }
            }
            _ if rayon::yield_now() == Some(Yield::Executed) => {}
            // All of them wait. Time passes in steps, so that whoever is never woken is found.
            _ => {
                let step = Duration::from_millis(1 + self.chance.below(20) as u64);
                tokio::time::advance(step).await;
            }
        }
    }
}
