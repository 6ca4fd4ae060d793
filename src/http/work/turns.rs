//! Turns to write to collections: one at a time for each collection, in the order of arrival,
//! waited for without a thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

pub(crate) struct Turn {
    _collection: OwnedMutexGuard<()>,
    /// The turn of a client whose writes to all collections are serialised.
    _client: Option<OwnedMutexGuard<()>>,
}

#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<Box<str>, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits for the turn to write to the collection of this name. `client` is the client's own
    /// turn, if it has such turns; it is always taken first, so two requests cannot wait for each
    /// other.
    pub(crate) async fn wait(&self, name: &str, client: Option<OwnedMutexGuard<()>>) -> Turn {
        Turn { _collection: self.of(name).lock_owned().await, _client: client }
    }

    /// Waits for the turn on a thread that may block.
    pub(crate) fn wait_here(&self, name: &str) -> Turn {
        Turn { _collection: self.of(name).blocking_lock_owned(), _client: None }
    }

    fn of(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut all: MutexGuard<'_, _> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name).and_then(Weak::upgrade) {
            return known;
        }
        // Turns that nobody holds or awaits are dropped.
        all.retain(|_, one: &mut Weak<_>| one.strong_count() > 0);
        let fresh = Arc::default();
        all.insert(name.into(), Arc::downgrade(&fresh));
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_after_the_other_and_each_collection_for_itself() {
        let turns = Turns::default();
        let first = turns.wait("news", None).await;
        let _other = turns.wait("books", None).await;
        let mut second = Box::pin(turns.wait("news", None));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), &mut second).await;
        assert!(waits.is_err());
        // A request that stops waiting leaves the turn to the next.
        let third = turns.wait("news", None);
        drop(second);
        drop(first);
        let third = third.await;
        drop(third);
        assert_eq!(turns.0.lock().unwrap().len(), 2);
        let _more = turns.wait("more", None).await;
        assert_eq!(turns.0.lock().unwrap().len(), 2, "nobody waits for news");
    }
}
