//! Texts with times, one after another, each joined to its event: an engine, a window over vectors
//! and, where wanted, a second look at the nearest by another method.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::engine::{Embeddings, Engine, Opposites, Query, QueryError, RankOptions};
use crate::methods::Method;
use crate::window::events::{Considered, Decision, Events, Rule};
use crate::window::nearest::order;
use crate::window::{BATCH, Entry, Limits, Near, Window};

/// Options of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// A method with vectors, by whose cosine the nearest are found.
    pub method: Method,
    /// A method that scores the nearest once more; nothing where the cosine is enough.
    pub second: Option<Method>,
    /// Number of nearest texts that are asked for their events; no more can vote.
    pub nearest: usize,
    /// The least cosine of a text that votes.
    pub floor: f32,
    /// The opposites that leave a text out of the nearest of another, where the model knows opposites;
    /// nothing where all texts stay.
    pub drop_opposed: Option<Opposites>,
    /// How a text finds its event.
    pub rule: Rule,
    /// The limits of the window.
    pub limits: Limits,
}

/// The reasons for the decision on a text.
pub struct Reasons<'f> {
    /// Its nearest as they were asked, the best first: by the second method where there is one.
    pub nearest: &'f [Near],
    /// The events that the text might have joined, in the order of their nearest texts.
    pub considered: &'f [Considered],
    event_of: &'f dyn Fn(u64) -> Option<u64>,
    words: &'f dyn Fn() -> Vec<Box<str>>,
    begins_to_burst: &'f dyn Fn(i64) -> bool,
}

impl Reasons<'_> {
    /// Returns the event that a text of the window had when the newest text was decided.
    pub fn event_of(&self, number: u64) -> Option<u64> {
        (self.event_of)(number)
    }

    /// The words that it shares with the nearest text of the event that it joined, the rarest first.
    pub fn words(&self) -> Vec<Box<str>> {
        (self.words)()
    }

    /// Whether its event [begins to burst](Events::begins_to_burst) with it; no event does with a text that
    /// was not added.
    pub fn begins_to_burst(&self, oldest: i64) -> bool {
        (self.begins_to_burst)(oldest)
    }
}

/// Which texts are added to the collection once they are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AddRule))]
#[serde(rename_all = "snake_case")]
pub enum AddPolicy {
    /// All of them.
    #[default]
    All,
    /// Those that are duplicates of none.
    New,
    /// None: they are looked up, each as if it were the next.
    None,
}

impl AddPolicy {
    /// Whether a text with this decision is added.
    pub fn adds(self, decision: &Decision) -> bool {
        match self {
            Self::All => true,
            Self::New => !decision.duplicate,
            Self::None => false,
        }
    }
}

/// A stream at work, which borrows its engine or holds it in any other way.
pub struct Stream<E> {
    engine: E,
    settings: Settings,
    window: Window,
    events: Events,
    texts: VecDeque<Box<str>>,
    text_bytes: usize,
    first: u64,
}

/// A text of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Item<'t> {
    /// When it was written, in milliseconds.
    pub time: i64,
    /// The text.
    pub text: &'t str,
}

impl<E: Deref<Target = Engine>> Stream<E> {
    /// A new stream, or an error if the method does not support streams.
    pub fn new(engine: E, settings: Settings) -> Result<Self, QueryError> {
        let dims = engine.embedding_dims(settings.method)?;
        if let Some(method) = settings.second {
            engine.check(&Query::new(method))?;
        }
        if settings.drop_opposed.is_some() {
            engine.knows_opposites().map_err(|reason| QueryError::OppositesUnknown { reason })?;
        }
        Ok(Self {
            engine,
            settings,
            window: Window::new(dims, settings.limits),
            events: Events::default(),
            texts: VecDeque::new(),
            text_bytes: 0,
            first: 0,
        })
    }

    /// Gives the first text this number, to go on where another stream ended: texts of the window are
    /// [remembered](Self::remember) then.
    pub fn begin_at(&mut self, number: u64) {
        self.window.begin_at(number);
        self.events = Events::starting_at(number);
        self.first = number;
    }

    /// The engine that it asks.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number that the next text will have.
    pub fn next(&self) -> u64 {
        self.window.next()
    }

    /// The events so far.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The events so far, to restore their state.
    pub fn events_mut(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Ignores texts from before this time from now on.
    pub fn leave_out_before(&mut self, oldest: i64) {
        self.window.leave_out_before(oldest);
    }

    /// Bytes of memory that it takes, roughly.
    pub fn bytes(&self) -> usize {
        let texts = self.text_bytes + self.texts.len() * size_of::<Box<str>>();
        let events = self.events.bytes();
        self.window.bytes() + texts + events
    }

    /// The window of the last texts.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Decides the event of each text, in order, as if each had come alone.
    pub fn follow(&mut self, items: &[Item<'_>]) -> Result<Vec<Decision>, QueryError> {
        let mut decisions = Vec::with_capacity(items.len());
        let tell = |decision, _: Reasons<'_>| decisions.push(decision);
        self.follow_with(items, AddPolicy::All, || true, tell)?;
        Ok(decisions)
    }

    /// Follows texts and says for each why it has its event. Texts are added as the policy says. `go_on` is
    /// asked before each text; once it says no, no further text is decided, and the caller drops the
    /// stream, which is not whole.
    pub fn follow_with(
        &mut self,
        items: &[Item<'_>],
        policy: AddPolicy,
        mut go_on: impl FnMut() -> bool,
        mut tell: impl FnMut(Decision, Reasons<'_>),
    ) -> Result<(), QueryError> {
        // Only once a text is decided is it known whether the next one sees it.
        let together = if policy == AddPolicy::New { 1 } else { BATCH };
        for batch in items.chunks(together) {
            let vectors = self.vectors(batch)?;
            let entries = entries(batch, &vectors);
            let before = self.window.next();
            let Settings { nearest, floor, rule, .. } = self.settings;
            let rule = Rule { votes: rule.votes.min(nearest), ..rule };
            let near = match policy {
                AddPolicy::All => self.window.follow(&entries, nearest, floor),
                AddPolicy::New | AddPolicy::None => self.window.look_up(&entries, nearest, floor),
            };
            for (at, (mut near, entry)) in near.into_iter().zip(&entries).enumerate() {
                // A text that is not added yet is the next.
                let number = before + if policy == AddPolicy::All { at as u64 } else { 0 };
                let text_of = |number| self.text(number);
                if let Some(opposites) = self.settings.drop_opposed {
                    let text = batch[at].text;
                    near = without_opposed(&self.engine, text, &near, opposites, text_of)?;
                }
                if let Some(method) = self.settings.second {
                    let text = batch[at].text;
                    near = look_again(&self.engine, method, text, &near, text_of, &mut go_on)?;
                }
                if !go_on() {
                    return Ok(());
                }
                self.forget(number);
                let vector_of = |number| self.window.vector(number);
                let reach = &self.window.reach(entry.time);
                let (decision, considered) =
                    self.events.decide(entry.vector, &near, reach, &rule, vector_of);
                let is_added = policy.adds(&decision);
                if is_added {
                    // Of those that are followed together the window has all.
                    if policy != AddPolicy::All {
                        self.window.add(entry);
                    }
                    self.keep_text(batch[at].text);
                    self.events.add(decision.event, entry.time);
                }
                let joined = decision.nearest.filter(|_| !decision.new);
                let other = joined.and_then(|joined| self.text(joined.number));
                let words = || match other {
                    Some(other) => self.engine.shared_words(batch[at].text, other),
                    None => Vec::new(),
                };
                let (nearest, considered) = (&near[..], &considered[..]);
                let event_of = &|number| self.events.of(number);
                let begins_to_burst =
                    &|oldest| is_added && self.events.begins_to_burst(decision.event, oldest);
                let words = &words;
                tell(decision, Reasons { nearest, considered, event_of, words, begins_to_burst });
            }
        }
        Ok(())
    }

    /// Adds a text whose event is already known.
    pub fn remember(&mut self, item: Item<'_>, event: u64) -> Result<(), QueryError> {
        let vectors = self.vectors(&[item])?;
        for entry in entries(&[item], &vectors) {
            let number = self.window.add(&entry);
            self.forget(number);
            self.events.add(event, entry.time);
        }
        self.keep_text(item.text);
        Ok(())
    }

    /// A text that the window holds.
    pub fn text(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.texts.get(at).map(AsRef::as_ref)
    }

    /// The options of the stream.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn vectors(&self, items: &[Item<'_>]) -> Result<Embeddings, QueryError> {
        let texts: Vec<&str> = items.iter().map(|item| item.text).collect();
        let query = Query { truncate: true, ..Query::new(self.settings.method) };
        self.engine.embed(&texts, &query)
    }

    fn keep_text(&mut self, text: &str) {
        self.text_bytes += text.len();
        self.texts.push_back(text.into());
    }

    /// Forgets what has left the window of a text.
    fn forget(&mut self, number: u64) {
        let kept = number.saturating_sub(self.settings.limits.last as u64);
        self.events.forget_before(kept);
        while self.first < kept {
            self.text_bytes -= self.texts.pop_front().map_or(0, |text| text.len());
            self.first += 1;
        }
    }
}

/// Number of candidates that are scored before the caller is asked whether to continue.
const TOGETHER: usize = 16;

/// Scores the nearest texts again by another method and orders them by its scores. `text_of` gives each text.
/// `go_on` is called repeatedly; once it returns false, the answer is incomplete.
pub fn look_again<'t>(
    engine: &Engine,
    method: Method,
    text: &str,
    near: &[Near],
    text_of: impl Fn(u64) -> Option<&'t str>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Vec<Near>, QueryError> {
    let mut again: Vec<Near> = Vec::with_capacity(near.len());
    if near.is_empty() {
        return Ok(again);
    }
    let options = RankOptions::all(Query { truncate: true, ..Query::new(method) });
    engine.with_text_session(text, &options, |session| {
        for near in near.chunks(TOGETHER) {
            if !again.is_empty() && !go_on() {
                break;
            }
            let texts = near.iter().map(|near| text_of(near.number).unwrap_or(""));
            let ranking = session.rank(&texts.collect::<Vec<_>>())?;
            again.extend(ranking.results.iter().filter_map(|result| {
                let near = near.get(result.index)?;
                Some(Near { number: near.number, score: result.score })
            }));
        }
        Ok::<_, QueryError>(())
    })??;
    again.sort_by(order);
    Ok(again)
}

/// The nearest of a text that are not opposed to it. What each of them says is asked of `text_of`.
pub fn without_opposed<'t>(
    engine: &Engine,
    text: &str,
    near: &[Near],
    opposites: Opposites,
    text_of: impl Fn(u64) -> Option<&'t str>,
) -> Result<Vec<Near>, QueryError> {
    let texts: Vec<&str> = near.iter().map(|near| text_of(near.number).unwrap_or("")).collect();
    let opposites = Some(opposites);
    let query = Query { truncate: true, opposites, ..Query::new(engine.auto()) };
    let kinds = engine.opposes_each(text, &texts, &query)?;
    let both = near.iter().zip(kinds);
    Ok(both.filter(|(_, kinds)| kinds.is_empty()).map(|(near, _)| *near).collect())
}

/// Bytes of memory that a stream takes before its first text.
pub fn least_bytes(dims: usize, settings: &Settings) -> usize {
    Window::bytes_of(dims, settings.limits)
}

fn entries<'v>(items: &[Item<'_>], vectors: &'v Embeddings) -> Vec<Entry<'v>> {
    let both = items.iter().zip(vectors.iter());
    both.map(|(item, vector)| Entry { time: item.time, vector }).collect()
}
