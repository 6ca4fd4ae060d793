//! The number of concurrent streams of lines, and the order to end them all.
//!
//! A stream lasts as long as its client sends, so without a limit of their own streams could take
//! every connection from other requests. Each known client has a share of the slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::http::auth::client::{Client, Resource, share_of};
use crate::http::error::{ApiError, Bottleneck, Result};

#[derive(Debug)]
pub struct Places {
    open: Arc<AtomicUsize>,
    most: usize,
    share: usize,
    ended: watch::Sender<bool>,
}

impl Places {
    /// Allows `most` streams in all, and `percent` percent of them (at least one) to each client.
    pub(crate) fn new(most: usize, percent: usize) -> Self {
        let share = share_of(most, percent);
        Self { open: Arc::default(), most, share, ended: watch::Sender::new(false) }
    }

    /// Open streams, and their limit.
    pub fn in_use(&self) -> (usize, usize) {
        (self.open.load(Ordering::Acquire), self.most)
    }

    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// A slot for a client's stream, if one is free.
    pub(crate) fn take(&self, client: &Client) -> Result<Place> {
        if !client.take(Resource::Streams, 1, self.share) {
            let detail = "this client has as many streams open as one may (settings `max_streams` and \
                          `client_share`); ask again once one has ended";
            return Err(ApiError::overloaded(Bottleneck::Streams, detail));
        }
        let enter = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Relaxed, enter).map_err(|_| {
            client.give_back(Resource::Streams, 1);
            let detail = "as many streams are open as this server takes on (setting `max_streams`); \
                          ask again, or another server";
            ApiError::overloaded(Bottleneck::Streams, detail)
        })?;
        let (open, client) = (Arc::clone(&self.open), client.clone());
        Ok(Place { open, client, ended: self.ended.subscribe() })
    }
}

/// A stream's slot; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Place {
    open: Arc<AtomicUsize>,
    client: Client,
    ended: watch::Receiver<bool>,
}

impl Place {
    pub(crate) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(crate) async fn ended(&mut self) {
        if self.ended.wait_for(|ended| *ended).await.is_err() {
            // The trigger is gone, and so is the service.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.client.give_back(Resource::Streams, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_leaves_half_of_the_places_to_others() {
        let places = Places::new(4, 50);
        let (greedy, other) = (Client::counted(), Client::counted());
        let held = [places.take(&greedy).unwrap(), places.take(&greedy).unwrap()];
        let refused = places.take(&greedy).unwrap_err();
        assert_eq!(refused.bottleneck, Some(Bottleneck::Streams));
        assert!(refused.detail.to_string().contains("`client_share`"), "{}", refused.detail);
        let others = [places.take(&other).unwrap(), places.take(&Client::default()).unwrap()];
        let refused = places.take(&other).unwrap_err();
        assert!(!refused.detail.to_string().contains("`client_share`"), "{}", refused.detail);
        drop((held, others));
        assert_eq!(places.in_use(), (0, 4));
        assert_eq!([&greedy, &other].map(|client| client.holds(Resource::Streams)), [0, 0]);
    }
}
