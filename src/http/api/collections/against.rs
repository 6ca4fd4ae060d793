//! A collection that texts are matched against: its turn is waited for before a thread computes, and its
//! disk once that thread is free again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cognate_collections::{Collection, How, Item, Matched, Pending, SharedEngine};

use crate::http::api::collections::{call, refusal};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::ApiError;
use crate::http::request::query::Resolved;
use crate::http::work::turns::Turn;

/// A collection that texts are matched against.
pub(crate) struct Against {
    collection: Arc<dyn Collection>,
    caller: Caller,
    /// What was written and is not known to last.
    pending: Mutex<Vec<Pending>>,
}

impl Against {
    /// A collection that a caller reaches.
    pub(crate) fn of(collection: Arc<dyn Collection>, caller: Caller) -> Self {
        Self { collection, caller, pending: Mutex::default() }
    }

    pub(crate) fn collection(&self) -> &dyn Collection {
        &*self.collection
    }

    /// Waits for the turn to match, as long as an answer may take.
    pub(crate) async fn turn(&self, app: &App) -> Result<Option<Turn>, ApiError> {
        call::turn(app, &self.caller, self.collection.name()).await.map(Some)
    }

    /// Matches items and adds them.
    pub(crate) fn follow(
        &self,
        resolved: &Resolved,
        how: &How,
        items: Vec<Item>,
        app: &App,
    ) -> Result<Vec<Matched>, ApiError> {
        let engine = SharedEngine::of(Arc::clone(&resolved.model));
        let now = cognate_collections::now();
        app.collections.of(&self.caller)?.check_room(&*self.collection, &items, now)?;
        let matched = self.collection.follow(engine, how, items, now);
        let (matched, pending) = matched.map_err(refusal::of_match)?;
        self.pending().push(pending);
        app.metrics.matched(matched.len());
        Ok(matched)
    }

    /// Waits until all that was written lasts.
    pub(crate) async fn settle(&self, app: &App) -> Result<(), ApiError> {
        let pending = std::mem::take(&mut *self.pending());
        let collection = Arc::clone(&self.collection);
        let settle = move || {
            let mut each = pending.into_iter().map(|pending| collection.settle(pending));
            each.try_for_each(|settled| settled.map_err(|error| refusal::of(&error, "/items")))
        };
        call::aside(app, settle).await
    }

    fn pending(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
