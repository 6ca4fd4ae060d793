//! Runs tasks in a random order that a seed fixes: which woken task is next, which disconnects,
//! when the work continues that the service handed to other tasks or to its pool, how time passes.
//! What the tasks do is not known here.

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
    pub fn new(chance: Chance) -> Self {
        let (tasks, choices) = (Vec::new(), DefaultHasher::new());
        Self { chance, lossy: false, gone: 0, tasks, choices }
    }

    pub fn begin(&mut self, task: impl Future<Output = ()> + 'static) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        // All of them are one task of the runtime, which would otherwise be made to yield.
        self.tasks.push(Task { future: Box::pin(unconstrained(task)), woken });
    }

    /// Whether all tasks have ended, those of the runtime included.
    pub fn is_over(&self) -> bool {
        self.tasks.is_empty() && Handle::current().metrics().num_alive_tasks() == 0
    }

    /// A number that differs if any step came in another order.
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
            // Not while all wait: a task that is never woken would be dropped in the end.
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
            // All of them wait. Time passes in steps, so that a task that is never woken is found.
            _ => {
                let step = Duration::from_millis(1 + self.chance.below(20) as u64);
                tokio::time::advance(step).await;
            }
        }
    }
}
