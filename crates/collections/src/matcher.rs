//! Matches texts against a collection: finds for each in turn its nearest among the last items and
//! its event, and then adds it, unless the caller says otherwise. A text that was matched before
//! gets its stored answer, so a caller that lost an answer can repeat the request and nothing
//! changes.
//!
//! The results equal those of `cognate events`: both use a [`Stream`]. A window with the vectors of
//! the last items is stored from one request to the next, one window for each of the most recently
//! used settings. A window takes in items that were added meanwhile in any other way. It is rebuilt
//! where items were replaced or removed, came late and left, or where another model came into use.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use cognate::engine::Engine;
use cognate::window;
use cognate::window::BATCH;
use cognate::window::events::Considered;
use cognate::window::stream::{AddPolicy, Settings};

use crate::windows::{Following, HeldWindow, Windows};
use crate::{
    Cancellation, ChooseError, CollectionError, Event, Filter, Item, ItemProblem, Limits, Result,
};

#[derive(Debug, Clone, PartialEq)]
pub struct MatchOptions {
    pub stream: Settings,
    /// The items that texts are matched against; added items must pass it.
    pub filter: Filter,
    pub add: AddPolicy,
    /// Whether to return the reasons of each decision.
    pub explain: bool,
    /// Whether texts whose names exist are matched again and replace the existing items. Otherwise
    /// an equal text gets its stored answer, and a different text is refused.
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// The nearest items that reach the threshold, the best first.
    pub nearest: Vec<(Arc<str>, f32)>,
    /// The item that its event began with: itself if it begins an event.
    pub event: Arc<str>,
    pub new: bool,
    /// The score of its event, or of the best event that it did not join.
    pub score: Option<f32>,
    /// The rarest word that it shares with the nearest text of the event that it joined.
    pub word: Option<Box<str>>,
    pub duplicate_of: Option<Arc<str>>,
    /// Whether this is the stored answer. Its nearest items and its word were not stored.
    pub repeated: bool,
    /// Whether the collection now has the text.
    pub added: bool,
    /// Whether the text is too old for the collection, which does not show it.
    pub expired: bool,
    /// Number of items that were removed when this text and others were added; only the last of those added
    /// texts has the number.
    pub left: usize,
    pub reasons: Option<Box<MatchReasons>>,
}

/// An event that a text might have joined, from [`Considered`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConsideredEvent {
    pub event: Arc<str>,
    pub score: f32,
    pub votes: usize,
    pub wanted: usize,
    pub step: f32,
}

impl ConsideredEvent {
    /// Leaves out the numbers of the window, which differ in another window of the same items.
    pub(super) fn new(event: Arc<str>, considered: Considered) -> Self {
        let Considered { score, votes, wanted, step, .. } = considered;
        Self { event, score, votes, wanted, step }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MatchReasons {
    /// All items compared, also those below the threshold: name, score and event of each.
    pub nearest: Vec<(Arc<str>, f32, Arc<str>)>,
    /// The events that it might have joined, in the order of their nearest items.
    pub considered: Vec<ConsideredEvent>,
    /// Words that it shares with the nearest item of the event that it joined, the rarest first.
    pub words: Vec<Box<str>>,
}

impl Matched {
    /// The stored answer of an item, with the event that it has now.
    fn stored(item: &Item, event: &Event) -> Self {
        Self {
            nearest: Vec::new(),
            event: (&*event.id).into(),
            new: item.is_of_new_event(),
            score: event.score,
            word: None,
            duplicate_of: event.duplicate_of.as_deref().map(Arc::from),
            repeated: true,
            added: true,
            expired: false,
            left: 0,
            reasons: None,
        }
    }
}

#[derive(Clone)]
pub struct SharedEngine(Arc<dyn AsRef<Engine> + Send + Sync>);

impl SharedEngine {
    pub fn share(holder: Arc<impl AsRef<Engine> + Send + Sync + 'static>) -> Self {
        Self(holder)
    }
}

impl Deref for SharedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.0.as_ref().as_ref()
    }
}

pub(super) struct Followed {
    pub(super) matched: Vec<Matched>,
    pub(super) items: Vec<Item>,
    /// The window that they were matched against, if it equals what the collection will hold.
    window: Option<HeldWindow>,
}

impl Followed {
    /// Called once the items are written, which made `left` items leave: stores the window with the
    /// collection's revision and next number. If the write failed, the window is ahead of the
    /// collection and is dropped instead.
    pub(super) fn written(
        mut self,
        (revision, next): (u64, u64),
        windows: &Windows,
        left: usize,
    ) -> Vec<Matched> {
        if let Some(last) = self.matched.last_mut() {
            last.left = left;
        }
        if let Some(mut window) = self.window {
            window.is_of(revision, next);
            windows.keep(window);
        }
        self.matched
    }
}

/// Items to match, with all data of the collection that this needs: the turn may end.
pub(super) struct Prepared {
    how: MatchOptions,
    now: i64,
    /// The stored answer of each item that has one.
    stored: Vec<Option<Matched>>,
    fresh: Vec<Item>,
    /// The names of those that replace items.
    again: HashSet<Box<str>>,
    settings: crate::Settings,
    is_empty: bool,
    /// Whether the window may be stored for the next request.
    keeps: bool,
    /// The window of the collection, if there is anything to match.
    window: Option<HeldWindow>,
}

/// Matches items of different names against those of the collection, in the turn in which they are
/// to be written.
pub(super) fn follow(
    turn: &mut dyn Following,
    engine: SharedEngine,
    how: &MatchOptions,
    (items, now): (Vec<Item>, i64),
    cancel: Cancellation<'_>,
) -> Result<Followed, ChooseError> {
    let mut followed = prepare(turn, engine, how, (items, now), cancel)?.decide(cancel)?;
    if let Some(window) = &mut followed.window {
        window.pay(turn)?;
    }
    Ok(followed)
}

pub(super) fn prepare(
    turn: &mut dyn Following,
    engine: SharedEngine,
    how: &MatchOptions,
    (items, now): (Vec<Item>, i64),
    cancel: Cancellation<'_>,
) -> Result<Prepared, ChooseError> {
    let how = within_limits(how.clone(), turn.settings());
    let oldest = turn.settings().oldest(now);
    let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
    let mut there = turn.there(&ids)?;
    let (mut stored, mut fresh) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.into_iter().enumerate() {
        let stays = |known: &&Arc<Item>| oldest.is_none_or(|oldest| known.time >= oldest);
        let known = there.get(&item.id).filter(|_| !how.replace).filter(stays);
        if known.is_some_and(|known| known.text != item.text) {
            return Err(CollectionError::OtherText { index }.into());
        }
        // An item that was added in another way was given no event.
        let told = known.and_then(|known| Some(Matched::stored(known, known.event.as_ref()?)));
        match told {
            Some(_) => drop(there.remove(&item.id)),
            None => fresh.push(item),
        }
        stored.push(told);
    }
    // The earlier text of an item that is matched again is left out.
    let again: HashSet<Box<str>> = there.into_keys().collect();
    let (settings, is_empty) = (turn.settings(), turn.live(oldest)? == 0);
    // A filtered window reaches further back than the items that newer ones evict, which a window
    // does not notice.
    let keeps = how.filter.is_empty() || settings.max_items.is_none();
    let asked = how.clone();
    let mut prepared =
        Prepared { how: asked, now, stored, fresh, again, settings, is_empty, keeps, window: None };
    if prepared.fresh.is_empty() {
        return Ok(prepared);
    }
    let again = &prepared.again;
    let kept = turn.windows().take((&how.stream, &how.filter), &engine, turn.revision());
    // A collection that lost its last item takes its clock from the next one, by which the items of
    // a stored window may be too old.
    let mut kept = kept.filter(|_| again.is_empty() && !is_empty && keeps);
    if let Some(window) = &mut kept {
        match window.catch_up(turn, oldest, cancel) {
            Ok(true) => {}
            // For its texts and the new ones together there may be no room where there is for one window.
            Ok(false) | Err(ChooseError::Collection(CollectionError::NoMemory { .. })) => {
                kept = None
            }
            Err(error) => return Err(given_up(kept, error, turn)),
        }
    }
    if kept.is_none() {
        let mut made = HeldWindow::new(turn, engine, &how)?;
        let without = again.iter().map(|id| Cow::Borrowed(&**id)).collect();
        let filled = made.fill(turn, without, (None, now), cancel);
        kept = Some(made);
        if let Err(error) = filled {
            return Err(given_up(kept.filter(|_| again.is_empty()), error, turn));
        }
    }
    prepared.window = kept;
    Ok(prepared)
}

/// Stores the window of a cancelled request: the next request continues it.
fn given_up(
    window: Option<HeldWindow>,
    error: ChooseError,
    turn: &mut dyn Following,
) -> ChooseError {
    if let (Some(mut window), ChooseError::Stopped) = (window, &error)
        && window.pay(turn).is_ok()
    {
        turn.windows().keep(window);
    }
    error
}

impl Prepared {
    pub(super) fn decide(self, cancel: Cancellation<'_>) -> Result<Followed, ChooseError> {
        let Self { how, now, stored, fresh, again, mut settings, mut is_empty, keeps, window } =
            self;
        let Some(mut window) = window else {
            let matched = stored.into_iter().flatten().collect();
            return Ok(Followed { matched, items: fresh, window });
        };
        let (mut matched, mut decided) = (Vec::with_capacity(fresh.len()), Vec::new());
        let mut batch: Vec<(Item, i64)> = Vec::new();
        let by = (how.add, how.explain, cancel);
        for item in fresh {
            let next = settings.with_item(is_empty, item.time, now);
            // A late text is matched by the clock that the texts before it left, however requests
            // divide them. A text that advances the clock sees nothing older than `within`.
            let is_late = !is_empty && next == settings;
            let oldest = settings.oldest(now).filter(|_| !is_empty).unwrap_or(i64::MIN);
            if batch.len() >= BATCH || (is_late && oldest != window.oldest()) {
                window.decide(std::mem::take(&mut batch), by, &mut matched, &mut decided)?;
            }
            if batch.is_empty() {
                window.leave_out_before(oldest);
            }
            batch.push((item, oldest));
            if how.add == AddPolicy::New {
                window.decide(std::mem::take(&mut batch), by, &mut matched, &mut decided)?;
            }
            let is_added = match how.add {
                AddPolicy::All => true,
                AddPolicy::New => matched.last().is_some_and(|one| one.added),
                AddPolicy::None => false,
            };
            if is_added {
                (settings, is_empty) = (next, false);
            }
        }
        window.decide(batch, by, &mut matched, &mut decided)?;
        let mut matched = matched.into_iter();
        let matched = stored.into_iter().filter_map(|stored| stored.or_else(|| matched.next()));
        // A window without texts whose names are taken does not equal the collection.
        let is_whole = keeps && (how.add == AddPolicy::All || again.is_empty());
        let window = is_whole.then_some(window);
        Ok(Followed { matched: matched.collect(), items: decided, window })
    }
}

impl MatchOptions {
    /// Refuses an item that no collection accepts, and an added item that its own filter would not
    /// find.
    pub fn check(&self, item: &Item, text_bytes: usize) -> Result<(), ItemProblem> {
        item.check_matched(text_bytes)?;
        if self.add == AddPolicy::None || self.filter.admits(&item.attributes, item.time) {
            return Ok(());
        }
        let what =
            "the filter does not admit the item, which would be added beside those that it is \
                    matched against"
                .to_owned();
        Err(ItemProblem { field: "/attributes", what, too_long: false })
    }
}

/// Refuses items that no collection or these options accept, and two of one name.
pub(super) fn check(items: &[Item], how: &MatchOptions, limits: &Limits) -> Result<()> {
    let mut names = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let mut checked = how.check(item, limits.text_bytes);
        if !names.insert(&*item.id) {
            let what = "another item of the request has this name".to_owned();
            checked = Err(ItemProblem { field: "/id", what, too_long: false });
        }
        checked.map_err(|problem| CollectionError::Item { index, problem })?;
    }
    Ok(())
}

/// An item to explain, with all data of the collection that this needs: the turn may end.
pub(super) struct Explaining {
    item: Arc<Item>,
    /// The earlier items that remain.
    before: Vec<(u64, Arc<Item>)>,
    window: HeldWindow,
}

impl Explaining {
    pub(super) fn read(
        turn: &mut dyn Following,
        engine: SharedEngine,
        how: &MatchOptions,
        ((number, item), now): ((u64, Arc<Item>), i64),
        cancel: Cancellation<'_>,
    ) -> Result<Self, ChooseError> {
        let how = within_limits(how.clone(), turn.settings());
        let mut window = HeldWindow::new(turn, engine, &how)?;
        let before = window.read(turn, HashSet::new(), (Some(number), now), cancel)?;
        Ok(Self { item, before, window })
    }

    /// The answer that a text would have got at the moment when the item came.
    pub(super) fn tell(mut self, cancel: Cancellation<'_>) -> Result<Matched, ChooseError> {
        self.window.remember(&self.before, cancel)?;
        let (mut told, item) = (Vec::new(), vec![(Item::clone(&self.item), i64::MIN)]);
        self.window.decide(item, (AddPolicy::None, true, cancel), &mut told, &mut Vec::new())?;
        let told = told.pop().ok_or(ChooseError::Stopped)?;
        Ok(Matched { added: true, ..told })
    }
}

fn within_limits(how: MatchOptions, settings: crate::Settings) -> MatchOptions {
    let window::Limits { last, within } = how.stream.limits;
    let last = last.min(settings.max_items.unwrap_or(usize::MAX)).max(1);
    let within = match (within, settings.ttl_ms) {
        (Some(within), Some(ttl)) => Some(within.min(ttl)),
        (within, ttl) => within.or(ttl),
    };
    let stream = Settings { limits: window::Limits { last, within }, ..how.stream };
    MatchOptions { stream, ..how }
}
