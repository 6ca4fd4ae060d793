//! The order to stop, as it reaches listeners and connections: who gives it, and how far it has
//! gone. Why the process stops is not known here.

use tokio::sync::watch;

/// The phase of a shutdown. Each phase includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Leaving,
    Closing,
    Hurried,
    Abandoned,
}

/// Gives the orders. When it is dropped, no more can come, so that counts as
/// [`ShutdownTrigger::close`].
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<Phase>);

impl ShutdownTrigger {
    pub fn new() -> (Self, Shutdown) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (Self(sender), Shutdown(receiver))
    }

    /// Go on serving, and let every answer say that it is the last one on its connection.
    pub fn leave(&self) {
        self.advance(Phase::Leaving);
    }

    /// Accept no more connections; finish what has begun.
    pub fn close(&self) {
        self.advance(Phase::Closing);
    }

    /// Take no more connections, finish requests that have begun, and close idle connections.
    pub fn hurry(&self) {
        self.advance(Phase::Hurried);
    }

    /// Drop whatever is not finished.
    pub fn abandon(&self) {
        self.advance(Phase::Abandoned);
    }

    fn advance(&self, to: Phase) {
        self.0.send_if_modified(|now| {
            let later = to > *now;
            *now = to.max(*now);
            later
        });
    }
}

/// Receives the phases.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Phase>);

impl Shutdown {
    /// Whether answers are the last ones on their connections.
    pub(super) fn is_leaving(&self) -> bool {
        *self.0.borrow() >= Phase::Leaving
    }

    /// Whether idle connections are to close.
    pub(super) fn is_hurried(&self) -> bool {
        *self.0.borrow() >= Phase::Hurried
    }

    /// Waits for the order to take no more connections.
    pub(super) async fn closing(&mut self) {
        self.reached(Phase::Closing).await;
    }

    /// Waits for the order to close idle connections.
    pub(super) async fn hurried(&mut self) {
        self.reached(Phase::Hurried).await;
    }

    /// Waits until nothing is waited for any more.
    pub(super) async fn abandoned(&mut self) {
        self.reached(Phase::Abandoned).await;
    }

    async fn reached(&mut self, phase: Phase) {
        let heard = self.0.wait_for(|now| *now >= phase).await.is_ok();
        if !heard && phase == Phase::Abandoned {
            // A trigger that is gone only closes; it abandons nothing.
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections dropped with a request or an answer unfinished.
    pub dropped: usize,
}
