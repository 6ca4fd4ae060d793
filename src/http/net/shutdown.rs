//! The order to stop, as it reaches listeners and connections: who gives it, and how far it has
//! gone. Why the process stops is not known here.

use tokio::sync::watch;

/// The phase of a shutdown. Each phase includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// Continue serving; every answer carries `Connection: close`.
    Leaving,
    /// Accept no more connections; finish what has begun.
    Closing,
    /// Finish requests that have begun, and close idle connections.
    Hurried,
    Abandoned,
}

/// Gives the orders. Dropping it counts as [`Phase::Closing`].
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<Phase>);

impl ShutdownTrigger {
    pub fn new() -> (Self, Shutdown) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (Self(sender), Shutdown(receiver))
    }

    pub fn order(&self, to: Phase) {
        self.0.send_if_modified(|now| {
            let later = to > *now;
            *now = to.max(*now);
            later
        });
    }
}

#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Phase>);

impl Shutdown {
    pub(super) fn is(&self, phase: Phase) -> bool {
        *self.0.borrow() >= phase
    }

    pub(super) async fn reached(&mut self, phase: Phase) {
        let heard = self.0.wait_for(|now| *now >= phase).await.is_ok();
        if !heard && phase == Phase::Abandoned {
            // A dropped trigger only closes; it abandons nothing.
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections dropped with a request or an answer unfinished.
    pub dropped: usize,
}
