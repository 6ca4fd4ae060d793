//! Texts matched against a collection: for each in turn its nearest among the last items, its event,
//! and then it is added.
//!
//! What is found is what `cognate events` finds: both follow a [`Stream`]. The vectors of the last items
//! are kept from one request to the next, in a window for each of the settings that were asked for last.
//! A window takes in what was added meanwhile in any other way. Where items were replaced or taken out, or
//! another model came into use, it is made anew.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::ItemProblem;
use crate::collection::Pending;
use crate::collection::held_window::HeldWindow;
use crate::collection::turn::oldest;
use crate::engine::Engine;
use crate::engine::QueryError;
use crate::window::BATCH;
use crate::window::Limits;
use crate::window::stream::Settings;

/// Most windows that are kept of a collection.
const MOST_WINDOWS: usize = 4;

/// Why texts cannot be matched.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// The collection cannot do what is asked.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// A method cannot do what is asked.
    #[error(transparent)]
    Query(#[from] QueryError),
}

/// How texts are matched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct How {
    /// How the stream is followed.
    pub stream: Settings,
    /// The least score at which a text is a duplicate of its nearest.
    pub duplicate: f32,
}

/// What was found of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// Its nearest items whose scores are not below the least, the best first.
    pub nearest: Vec<(Arc<str>, f32)>,
    /// The item that its event began with: itself where it begins one.
    pub event: Arc<str>,
    /// Whether it begins one.
    pub new: bool,
    /// The score of its event, or of the best of those that it did not join.
    pub score: Option<f32>,
    /// The nearest item of its event, or of any where it joined none.
    pub nearest_of_event: Option<Arc<str>>,
    /// The item that it is a duplicate of.
    pub duplicate_of: Option<Arc<str>>,
}

/// An engine that outlives a request.
#[derive(Clone)]
pub struct SharedEngine(Arc<dyn AsRef<Engine> + Send + Sync>);

impl SharedEngine {
    /// An engine in whatever holds it.
    pub fn of(holder: Arc<impl AsRef<Engine> + Send + Sync + 'static>) -> Self {
        Self(holder)
    }
}

impl Deref for SharedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.0.as_ref().as_ref()
    }
}

impl Collection {
    /// Matches items of different names against those that are there and adds them, in order: all of
    /// them or none. Nobody may be told of it before it was [settled](Self::settle).
    pub fn follow(
        &self,
        engine: SharedEngine,
        how: &How,
        items: Vec<Item>,
        now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        let mut again = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let mut checked = item.check(self.limits().text_bytes);
            if !again.insert(item.id.clone()) {
                let what = "another item of the request has this name".to_owned();
                checked = Err(ItemProblem { field: "/id", what, too_long: false });
            }
            checked.map_err(|problem| CollectionError::Item { index, problem })?;
        }
        let how = within_limits(*how, self);
        let mut turn = self.turn();
        // One that is there already is matched again: what it was is left out.
        again.retain(|id| self.get(id, i64::MIN).is_some());
        let kept = self.take_window(&how.stream, &engine, turn.revision());
        let mut window = match kept.filter(|_| again.is_empty()) {
            Some(window) => window,
            None => {
                let mut fresh = HeldWindow::new(self, engine, how.stream, turn.revision())?;
                fresh.fill(self, now, &again)?;
                fresh
            }
        };
        window.catch_up(self)?;
        let oldest = oldest(self.settings(), now);
        window.leave_out_before(oldest.unwrap_or(i64::MIN));
        let (mut all, mut changes) = (Vec::with_capacity(items.len()), Vec::new());
        let mut items = items.into_iter();
        loop {
            let batch: Vec<Item> = items.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            window.decide(batch, how.duplicate, &mut all, &mut changes)?;
        }
        window.pay(self)?;
        // Where this fails the window is ahead of the collection, and is dropped.
        let (_, pending) = turn.write(changes, now)?;
        window.is_of(turn.revision(), self.next_number());
        self.keep_window(window);
        Ok((all, pending))
    }

    /// The window of these settings, if there is one that can go on. Others that cannot are dropped.
    fn take_window(
        &self,
        settings: &Settings,
        engine: &Engine,
        revision: u64,
    ) -> Option<HeldWindow> {
        let mut windows = self.windows();
        windows.retain(|window| window.can_go_on(engine, revision));
        let place = windows.iter().position(|window| window.settings() == settings)?;
        Some(windows.remove(place))
    }

    /// Keeps a window for the next request, in the place of the one that was not asked for longest.
    fn keep_window(&self, window: HeldWindow) {
        let mut windows = self.windows();
        windows.push(window);
        let many = windows.len().saturating_sub(MOST_WINDOWS);
        windows.drain(..many);
    }
}

/// How texts are matched against a collection that may keep less than is asked for.
fn within_limits(how: How, collection: &Collection) -> How {
    let settings = collection.settings();
    let Limits { last, within } = how.stream.limits;
    let last = last.min(settings.max_items.unwrap_or(usize::MAX)).max(1);
    let within = match (within, settings.ttl_ms) {
        (Some(within), Some(ttl)) => Some(within.min(ttl)),
        (within, ttl) => within.or(ttl),
    };
    let stream = Settings { limits: Limits { last, within }, ..how.stream };
    How { stream, ..how }
}
