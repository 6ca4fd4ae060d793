//! Texts matched against a collection: for each in turn its nearest among the last items, its event,
//! and then it is added, if that was not said otherwise. A text that was matched before has the answer
//! that it had then: who did not get it asks again, and nothing is changed.
//!
//! What is found is what `cognate events` finds: both follow a [`Stream`]. The vectors of the last items
//! are kept from one request to the next, in a window for each of the settings that were asked for last.
//! A window takes in what was added meanwhile in any other way. Where items were replaced or taken out, came
//! late and left, or another model came into use, it is made anew.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use cognate::engine::{Engine, QueryError};
use cognate::window;
use cognate::window::BATCH;
use cognate::window::events::Considered;
use cognate::window::stream::{AddPolicy, Settings};

use crate::windows::HeldWindow;
use crate::windows::{Following, Windows};
use crate::{Cancellation, ChooseError, CollectionError, Event, Filter, Item, ItemProblem, Limits};

#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    #[error(transparent)]
    Collection(#[from] CollectionError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The request was cancelled, and nothing was changed.
    #[error("what was asked is not wanted any more")]
    Stopped,
}

impl From<ChooseError> for MatchError {
    fn from(error: ChooseError) -> Self {
        match error {
            ChooseError::Collection(error) => Self::Collection(error),
            ChooseError::Query(error) => Self::Query(error),
            ChooseError::Stopped => Self::Stopped,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MatchOptions {
    pub stream: Settings,
    /// The items that texts are matched against, of which those are that are added.
    pub filter: Filter,
    pub add: AddPolicy,
    /// Whether each is told why.
    pub explain: bool,
    /// Whether texts whose names are there are matched anew and take the places of those. Otherwise one of
    /// the same text has its stored answer, and another text is refused.
    pub replace: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Matched {
    /// Its nearest items whose scores are not below the least, the best first.
    pub nearest: Vec<(Arc<str>, f32)>,
    /// The item that its event began with: itself where it begins one.
    pub event: Arc<str>,
    pub new: bool,
    /// The score of its event, or of the best of those that it did not join.
    pub score: Option<f32>,
    /// The rarest word that it shares with the nearest text of the event that it joined.
    pub word: Option<Box<str>>,
    pub duplicate_of: Option<Arc<str>>,
    /// Whether this is what was told of the text before. Its nearest and its word were not stored.
    pub repeated: bool,
    /// Whether the collection has the text by now.
    pub added: bool,
    /// Whether the text is too old for the collection, which does not show it.
    pub expired: bool,
    /// How many items left when it was added with others; said of the last of these alone.
    pub left: usize,
    pub reasons: Option<Box<MatchReasons>>,
}

/// An event that a text might have joined, as [`Considered`] tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsideredEvent {
    pub event: Arc<str>,
    pub score: f32,
    pub votes: usize,
    pub wanted: usize,
    pub step: f32,
}

impl ConsideredEvent {
    /// Without the numbers of a window, which another window of the same items has not.
    pub(super) fn new(event: Arc<str>, considered: Considered) -> Self {
        let Considered { score, votes, wanted, step, .. } = considered;
        Self { event, score, votes, wanted, step }
    }
}

/// Why a text has its event.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchReasons {
    /// All items that were asked, below the least score too: the name, the score and the event of each.
    pub nearest: Vec<(Arc<str>, f32, Arc<str>)>,
    /// The events that it might have joined, in the order of their nearest items.
    pub considered: Vec<ConsideredEvent>,
    /// Words that it shares with the nearest item of the event that it joined, the rarest first.
    pub words: Vec<Box<str>>,
}

impl Matched {
    /// What was told of an item when it was matched, and the event that it has now.
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

/// An engine that outlives a request.
#[derive(Clone)]
pub struct SharedEngine(Arc<dyn AsRef<Engine> + Send + Sync>);

impl SharedEngine {
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
    pub(super) matched: Vec<Matched>,
    /// The items with their events that are to be written.
    pub(super) items: Vec<Item>,
    /// The window that they were matched against, where it holds what the collection will have.
    window: Option<HeldWindow>,
}

impl Followed {
    /// The items were written, for which so many `left`, so the window holds what the collection has, whose
    /// revision and next number are these. Where that failed the window is ahead of it, and is dropped instead.
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

/// Items that are to be matched, with all that is needed of the collection for it: its turn may end.
pub(super) struct Prepared {
    how: MatchOptions,
    now: i64,
    /// The stored answer of each item, where it has one.
    stored: Vec<Option<Matched>>,
    fresh: Vec<Item>,
    /// The names of those that take the places of items.
    again: HashSet<Box<str>>,
    settings: crate::Settings,
    is_empty: bool,
    /// Whether the window may be kept for the next request.
    keeps: bool,
    /// The window of the collection, where there is anything to be matched.
    window: Option<HeldWindow>,
}

/// Matches items of different names against those that are there, in a turn in which they are then to be
/// written.
pub(super) fn follow(
    turn: &mut dyn Following,
    engine: SharedEngine,
    how: &MatchOptions,
    (items, now): (Vec<Item>, i64),
    cancel: Cancellation<'_>,
) -> Result<Followed, MatchError> {
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
) -> Result<Prepared, MatchError> {
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
        // One that was added in another way was told nothing of an event.
        let told = known.and_then(|known| Some(Matched::stored(known, known.event.as_ref()?)));
        match told {
            Some(_) => drop(there.remove(&item.id)),
            None => fresh.push(item),
        }
        stored.push(told);
    }
    // The earlier text of an item that is matched anew is left out.
    let again: HashSet<Box<str>> = there.into_keys().collect();
    let (settings, is_empty) = (turn.settings(), turn.live(oldest)? == 0);
    // Those that a filter admits reach further back than the items that newer ones push out, which a window
    // does not see.
    let keeps = how.filter.is_empty() || settings.max_items.is_none();
    let asked = how.clone();
    let mut prepared =
        Prepared { how: asked, now, stored, fresh, again, settings, is_empty, keeps, window: None };
    if prepared.fresh.is_empty() {
        return Ok(prepared);
    }
    let again = &prepared.again;
    let kept = turn.windows().take((&how.stream, &how.filter), &engine, turn.revision());
    // The clock of a collection that lost its last item is that of the next, by which what a window holds
    // of it may not be too old.
    let mut kept = kept.filter(|_| again.is_empty() && !is_empty && keeps);
    if let Some(window) = &mut kept {
        match window.catch_up(turn, oldest, cancel) {
            Ok(true) => {}
            Ok(false) => kept = None,
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

/// Keeps what a request that was cancelled has made of a window: the next one goes on with it.
fn given_up(window: Option<HeldWindow>, error: MatchError, turn: &mut dyn Following) -> MatchError {
    if let (Some(mut window), MatchError::Stopped) = (window, &error)
        && window.pay(turn).is_ok()
    {
        turn.windows().keep(window);
    }
    error
}

impl Prepared {
    pub(super) fn decide(self, cancel: Cancellation<'_>) -> Result<Followed, MatchError> {
        let Self { how, now, stored, fresh, again, mut settings, mut is_empty, keeps, window } =
            self;
        let Some(mut window) = window else {
            let matched = stored.into_iter().flatten().collect();
            return Ok(Followed { matched, items: fresh, window });
        };
        let (mut matched, mut decided) = (Vec::with_capacity(fresh.len()), Vec::new());
        let mut batch: Vec<Item> = Vec::new();
        let by = (how.add, how.explain, cancel);
        for item in fresh {
            let next = settings.with_item(is_empty, item.time, now);
            // What a late text sees goes by the clock as those before it left it, however they are cut into
            // requests. One by which the clock goes on sees by `within` nothing so old.
            let is_late = !is_empty && next == settings;
            let oldest = settings.oldest(now).filter(|_| !is_empty).unwrap_or(i64::MIN);
            if batch.len() >= BATCH || (is_late && oldest != window.oldest()) {
                window.decide(std::mem::take(&mut batch), by, &mut matched, &mut decided)?;
            }
            if batch.is_empty() {
                window.leave_out_before(oldest);
            }
            batch.push(item);
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
        // A window without texts whose places are taken by none is not that of the collection.
        let is_whole = keeps && (how.add == AddPolicy::All || again.is_empty());
        let window = is_whole.then_some(window);
        Ok(Followed { matched: matched.collect(), items: decided, window })
    }
}

impl MatchOptions {
    /// Refuses an item that no collection takes, and one to be added that its own filter would not find.
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

/// Refuses items that no collection takes or the options do not, and two of one name.
pub(super) fn check(
    items: &[Item],
    how: &MatchOptions,
    limits: &Limits,
) -> Result<(), CollectionError> {
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

/// An item that is to be explained, with all that is needed of the collection for it: the turn may end.
pub(super) struct Explaining {
    item: Arc<Item>,
    /// Those before it that are there.
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
    ) -> Result<Self, MatchError> {
        let how = within_limits(how.clone(), turn.settings());
        let window = HeldWindow::new(turn, engine, &how)?;
        let before = window.read(turn, HashSet::new(), (Some(number), now), cancel)?;
        Ok(Self { item, before, window })
    }

    /// What a text would be told that came when the item did.
    pub(super) fn tell(mut self, cancel: Cancellation<'_>) -> Result<Matched, MatchError> {
        self.window.remember(&self.before, cancel)?;
        let (mut told, item) = (Vec::new(), vec![Item::clone(&self.item)]);
        self.window.decide(item, (AddPolicy::None, true, cancel), &mut told, &mut Vec::new())?;
        let told = told.pop().ok_or(MatchError::Stopped)?;
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
