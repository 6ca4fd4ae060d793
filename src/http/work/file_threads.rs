//! Threads that may wait: for files, or for a lock. Each kind of work has a share of them, so that
//! a disk that hangs delays only the work that needs it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

const THREADS: usize = 8;
/// Kinds of work that may take all of their threads: writing to collections, lookups in them and
/// reading bodies of items, and spooled answers of streams.
const KINDS: usize = 3;
/// Threads for single tasks: reloads and maintenance.
const OTHERS: usize = 8;

/// Threads of the runtime for blocking work.
pub(crate) const ALL: usize = KINDS * THREADS + OTHERS;

#[derive(Debug, Clone)]
pub(crate) struct FileThreads(Arc<Semaphore>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfinished {
    #[error("the work was not begun")]
    NotBegun,
    #[error("the work goes on")]
    GoesOn,
    #[error("the work failed: {0}")]
    Failed(#[from] JoinError),
}

impl Default for FileThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(THREADS)))
    }
}

impl FileThreads {
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        Ok(self.begin(work).await.await?)
    }

    /// Runs work on a file thread; waits at most `patience` for a free thread, then until the work ends.
    pub(crate) async fn run_within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let begun = timeout(patience, self.begin(work)).await;
        let begun = begun.map_err(|_| Unfinished::NotBegun)?;
        Ok(timeout(patience, begun).await.map_err(|_| Unfinished::GoesOn)??)
    }

    async fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        // The semaphore is never closed.
        let place = Arc::clone(&self.0).acquire_owned().await;
        spawn_blocking(move || {
            let _place = place;
            work()
        })
    }
}

pub(crate) fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    #[cfg(test)]
    if let Some(delay) = delays::next() {
        return tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            work()
        });
    }
    task::spawn_blocking(work)
}

/// Replaces threads that may block by tasks of the calling thread's runtime, each of which waits a
/// random time before it does its work. So a seed fixes the order of all work.
#[cfg(test)]
pub(crate) mod delays {
    use std::cell::RefCell;
    use std::time::Duration;

    use cognate_testing::Chance;

    thread_local! {
        static CHANCE: RefCell<Option<Chance>> = const { RefCell::new(None) };
    }

    /// From now on tasks do the work that this thread hands over.
    pub(crate) fn draw_from(chance: Chance) {
        CHANCE.set(Some(chance));
    }

    pub(super) fn next() -> Option<Duration> {
        let delay = |chance: &mut Chance| Duration::from_millis(chance.below(30) as u64);
        CHANCE.with_borrow_mut(|chance| chance.as_mut().map(delay))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn work_that_hangs_is_left_and_keeps_the_threads_of_its_kind_alone() {
        let (collections, streams) = (FileThreads::default(), FileThreads::default());
        let patience = Duration::from_millis(20);
        let hanging: Vec<_> = (0..THREADS)
            .map(|_| {
                let (go_on, told) = channel::<()>();
                (go_on, move || told.recv().is_err())
            })
            .collect();
        let mut go_on = Vec::new();
        for (sender, work) in hanging {
            go_on.push(sender);
            let left = collections.run_within(patience, work).await;
            assert!(matches!(left, Err(Unfinished::GoesOn)), "{left:?}");
        }
        let refused = collections.run_within(patience, || ()).await;
        assert!(matches!(refused, Err(Unfinished::NotBegun)), "{refused:?}");
        assert_eq!(streams.run(|| 3).await.unwrap(), 3);
        drop(go_on);
        assert_eq!(collections.run(|| 4).await.unwrap(), 4);
    }
}
