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

use cognate::engine::{Engine, QueryError};
use cognate::window;
use cognate::window::BATCH;
use cognate::window::stream::Settings;

use crate::windows::HeldWindow;
use crate::windows::{Following, Windows};
use crate::{CollectionError, Item, ItemProblem, Limits};

/// Why texts cannot be matched.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    #[error(transparent)]
    Collection(#[from] CollectionError),
    #[error(transparent)]
    Query(#[from] QueryError),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatchOptions {
    /// The options of the stream of events.
    pub stream: Settings,
}

/// The result of a match.
#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// Its nearest items whose scores are not below the least, the best first.
    pub nearest: Vec<(Arc<str>, f32)>,
    /// The item that its event began with: itself where it begins one.
    pub event: Arc<str>,
    /// Whether the text begins an event.
    pub new: bool,
    /// The score of its event, or of the best of those that it did not join.
    pub score: Option<f32>,
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

/// The results for some items, and the changes to write.
pub(super) struct Followed {
    /// The result for each item.
    pub(super) matched: Vec<Matched>,
    /// The items with their events.
    pub(super) items: Vec<Item>,
    window: HeldWindow,
}

impl Followed {
    /// The items were written, so the window holds what the collection has, whose revision and next
    /// number are these. Where that failed the window is ahead of it, and is dropped instead.
    pub(super) fn written(self, (revision, next): (u64, u64), windows: &Windows) -> Vec<Matched> {
        let Self { matched, mut window, .. } = self;
        window.is_of(revision, next);
        windows.keep(window);
        matched
    }
}

/// Matches items of different names against those that are there, in a turn in which they are then to be
/// written.
pub(super) fn follow(
    turn: &mut dyn Following,
    engine: SharedEngine,
    how: &MatchOptions,
    items: Vec<Item>,
    now: i64,
) -> Result<Followed, MatchError> {
    let how = within_limits(*how, turn.settings());
    let names = items.iter().map(|item| item.id.clone()).collect();
    // An item that is there already is matched anew: its earlier text is left out.
    let again = turn.known(names)?;
    let kept = turn.windows().take(&how.stream, &engine, turn.revision());
    let mut window = match kept.filter(|_| again.is_empty()) {
        Some(window) => window,
        None => {
            let mut fresh = HeldWindow::new(turn, engine, how.stream)?;
            fresh.fill(turn, now, &again)?;
            fresh
        }
    };
    window.catch_up(turn)?;
    let oldest = turn.settings().oldest(now);
    window.leave_out_before(oldest.unwrap_or(i64::MIN));
    let (mut matched, mut decided) = (Vec::with_capacity(items.len()), Vec::new());
    let mut items = items.into_iter();
    loop {
        let batch: Vec<Item> = items.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        window.decide(batch, &mut matched, &mut decided)?;
    }
    window.pay(turn)?;
    Ok(Followed { matched, items: decided, window })
}

/// Refuses items that no collection takes, and two of one name.
pub(super) fn check(items: &[Item], limits: &Limits) -> Result<(), CollectionError> {
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let mut checked = item.check(limits.text_bytes);
        if !names.insert(&*item.id) {
            let what = "another item of the request has this name".to_owned();
            checked = Err(ItemProblem { field: "/id", what, too_long: false });
        }
        checked.map_err(|problem| CollectionError::Item { index, problem })?;
    }
    Ok(())
}

/// The options, limited to what the collection keeps.
fn within_limits(how: MatchOptions, settings: crate::Settings) -> MatchOptions {
    let window::Limits { last, within } = how.stream.limits;
    let last = last.min(settings.max_items.unwrap_or(usize::MAX)).max(1);
    let within = match (within, settings.ttl_ms) {
        (Some(within), Some(ttl)) => Some(within.min(ttl)),
        (within, ttl) => within.or(ttl),
    };
    let stream = Settings { limits: window::Limits { last, within }, ..how.stream };
    MatchOptions { stream }
}
