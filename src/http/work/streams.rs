//! How many streams of lines there may be at once, and the order to end them all.
//!
//! A stream lasts as long as its client sends, so without a cap of their own streams could take
//! every connection from those who ask one question.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use crate::http::error::ApiError;
use crate::http::error::Bottleneck;

/// Places for streams.
#[derive(Debug)]
pub struct Places {
    open: Arc<AtomicUsize>,
    most: usize,
    ended: watch::Sender<bool>,
}

impl Places {
    /// So many places.
    pub(crate) fn new(most: usize) -> Self {
        Self { open: Arc::default(), most, ended: watch::Sender::new(false) }
    }

    /// Streams that are open, and the most there may be.
    pub fn in_use(&self) -> (usize, usize) {
        (self.open.load(Ordering::Acquire), self.most)
    }

    /// Tells every stream to end after the lines it has.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// A place, if there is one left.
    pub(crate) fn take(&self) -> Result<Place, ApiError> {
        let enter = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Relaxed, enter).map_err(|_| {
            let detail = "as many streams are open as this server takes on (setting `max_streams`); \
                          ask again, or another server";
            ApiError::overloaded(Bottleneck::Streams, detail)
        })?;
        Ok(Place { open: Arc::clone(&self.open), ended: self.ended.subscribe() })
    }
}

/// A stream's place; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Place {
    open: Arc<AtomicUsize>,
    ended: watch::Receiver<bool>,
}

impl Place {
    /// Whether the order to end was given.
    pub(crate) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the order to end.
    pub(crate) async fn ended(&mut self) {
        if self.ended.wait_for(|ended| *ended).await.is_err() {
            // Who could give the order is gone, and so is the service.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}
