//! A stream whose texts have outside ids, which name texts and events.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;

use cognate::engine::{Engine, QueryError};
use cognate::window::BATCH;
use cognate::window::events::Decision;
use cognate::window::stream::{Item, Settings, Stream};

/// Texts between two removals of ids that left the window.
const SWEEP: u64 = 4096;

pub struct NamedStream<E> {
    pub(super) stream: Stream<E>,
    pub(super) names: Names,
}

#[derive(Default)]
pub struct Names {
    /// The ids of the texts in the window, beginning with text number `first`.
    pub(super) ids: VecDeque<Option<Box<str>>>,
    pub(super) first: u64,
    pub(super) events: HashMap<u64, Box<str>>,
}

impl Names {
    /// The id of a text of the window, if it has one.
    pub fn of_text(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ids.get(at)?.as_deref()
    }

    pub fn of_event(&self, event: u64) -> Option<&str> {
        self.events.get(&event).map(AsRef::as_ref)
    }

    fn add(&mut self, id: Option<&str>, number: u64, event: u64) {
        if let (true, Some(id)) = (number == event, id) {
            self.events.insert(event, id.into());
        }
        self.ids.push_back(id.map(Into::into));
    }
}

impl<E: Deref<Target = Engine>> NamedStream<E> {
    pub fn new(engine: E, settings: Settings) -> Result<Self, QueryError> {
        Ok(Self { stream: Stream::new(engine, settings)?, names: Names::default() })
    }

    pub fn stream(&self) -> &Stream<E> {
        &self.stream
    }

    /// Decides the event of each text, in order, with the results of single calls for each text.
    pub fn follow(
        &mut self,
        texts: &[(Item<'_>, Option<&str>)],
        mut tell: impl FnMut(&Decision, &Names),
    ) -> Result<(), QueryError> {
        for batch in texts.chunks(BATCH) {
            for decision in self.decide(batch)? {
                tell(&decision, &self.names);
            }
            if self.is_to_sweep(batch.len()) {
                self.sweep();
            }
        }
        Ok(())
    }

    /// Decides one batch whose ids are not forgotten yet: its first texts may refer to ids that its last
    /// texts push out of the window.
    pub(super) fn decide(
        &mut self,
        batch: &[(Item<'_>, Option<&str>)],
    ) -> Result<Vec<Decision>, QueryError> {
        let items: Vec<Item<'_>> = batch.iter().map(|&(item, _)| item).collect();
        let first = self.stream.next();
        let decisions = self.stream.follow(&items)?;
        for ((number, (_, id)), decision) in (first..).zip(batch).zip(&decisions) {
            self.names.add(*id, number, decision.event);
        }
        Ok(decisions)
    }

    /// Whether to remove old ids after these texts.
    pub(super) fn is_to_sweep(&self, texts: usize) -> bool {
        let next = self.stream.next();
        next.saturating_sub(texts as u64) / SWEEP != next / SWEEP
    }

    pub(super) fn sweep(&mut self) {
        let beyond = self.stream.settings().limits.last as u64 + BATCH as u64;
        let kept = self.stream.next().saturating_sub(beyond);
        while self.names.first < kept && self.names.ids.pop_front().is_some() {
            self.names.first += 1;
        }
        let events = self.stream.events();
        self.names.events.retain(|&event, _| events.size(event) > 0);
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = (self.names.first..).zip(&self.names.ids);
        all.filter_map(|(number, id)| Some((id.as_deref()?, self.stream.text(number)?)))
    }
}
