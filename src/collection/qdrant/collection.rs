//! A collection in Qdrant, as every home has them.

use std::sync::Arc;
use std::sync::PoisonError;

use qdrant_client::qdrant::Condition;
use qdrant_client::qdrant::Direction;

use crate::collection::Applied;
use crate::collection::Cancellation;
use crate::collection::Choice;
use crate::collection::ChooseError;
use crate::collection::Chosen;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::How;
use crate::collection::Item;
use crate::collection::Limits;
use crate::collection::MatchError;
use crate::collection::Matched;
use crate::collection::Page;
use crate::collection::Pending;
use crate::collection::SharedEngine;
use crate::collection::Told;
use crate::collection::Which;
use crate::collection::Write;
use crate::collection::matcher;
use crate::collection::qdrant::condition::Asked;
use crate::collection::qdrant::home::Shared;
use crate::collection::qdrant::points;
use crate::collection::qdrant::snapshot;
use crate::collection::qdrant::turn::Turn;
use crate::collection::qdrant::vectors;

/// Most items that are sent here to be ranked.
const MOST_CHOSEN: usize = 200_000;
/// Names that are looked up in one question.
const NAMES: usize = 1000;

/// A collection in Qdrant.
#[derive(Debug)]
pub(super) struct QdrantCollection {
    name: Box<str>,
    pub(super) shared: Arc<Shared>,
}

impl QdrantCollection {
    pub(super) fn new(name: &str, shared: Arc<Shared>) -> Self {
        Self { name: name.into(), shared }
    }

    /// Takes the turn to write, which ends with what is written.
    fn turn<T>(
        &self,
        now: i64,
        mut question: impl FnMut(&mut Turn<'_>) -> Result<T, CollectionError>,
    ) -> Result<T, CollectionError> {
        let shared = &*self.shared;
        let line = shared.line(&self.name);
        let mut slot = line.slot.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let was_held = slot.hold.is_some();
            let hold = match &mut slot.hold {
                Some(hold) => hold,
                None => slot.take(shared, &line, &self.name, now)?,
            };
            let mut has_begun = false;
            let mut ask = || {
                hold.check(shared)?;
                let mut turn = Turn::of(shared, &line.windows, hold);
                let answer = question(&mut turn);
                has_begun = turn.has_begun;
                answer
            };
            let answer = ask();
            match &answer {
                Ok(_) => return answer,
                // It was deleted by another server, and may be there again.
                Err(CollectionError::Unknown) if was_held => slot.hold = None,
                // What points there are now that nobody sees is not known.
                Err(error) => {
                    if has_begun || matches!(error, CollectionError::OtherWriter { .. }) {
                        slot.hold = None;
                    }
                    return answer;
                }
            }
        }
    }
}

impl Collection for QdrantCollection {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn told(&self, now: i64) -> Result<Told, CollectionError> {
        snapshot::read(&self.shared.asking, &self.name, |snapshot| {
            let settings = snapshot.record.settings;
            let items = match settings.oldest(now) {
                Some(oldest) => snapshot.live(oldest)?,
                None => snapshot.record.items,
            };
            let name = self.name.to_string();
            // Qdrant does not tell how many bytes a collection of its takes.
            Ok(Told { name, settings, items, bytes: 0, durable: true, log_bytes: None })
        })
    }

    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        let found = snapshot::read(&self.shared.asking, &self.name, |snapshot| {
            let oldest = snapshot.record.settings.oldest(now);
            let mut found = Vec::new();
            for ids in ids.chunks(NAMES) {
                let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
                let named = Condition::matches("id", names);
                snapshot.each([named], true.into(), |point| {
                    let (_, item) = points::item(point.id.as_ref(), &point.payload)?;
                    if oldest.is_none_or(|oldest| item.time >= oldest) {
                        found.push(item);
                    }
                    Ok(true)
                })?;
            }
            Ok(found)
        })?;
        let of = |id: &&str| found.iter().find(|item| &*item.id == *id);
        Ok(ids.iter().map(|id| of(id).cloned()).collect())
    }

    fn page(
        &self,
        which: &Which<'_>,
        Page { offset, limit }: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        let page = snapshot::read(&self.shared.asking, &self.name, |snapshot| {
            let oldest = snapshot.record.settings.oldest(now);
            let asked = Asked::of(which, oldest);
            if asked.is_none() {
                return Ok((Vec::new(), 0));
            }
            let (mut items, mut total) = (Vec::new(), 0);
            if asked.is_exact {
                let condition = asked.condition();
                total = snapshot.count(condition.clone())?;
                if offset < total && limit > 0 {
                    let page = (offset, limit);
                    let found = snapshot.in_order(condition, Direction::Asc, page)?;
                    for point in &found {
                        items.push(points::item(point.id.as_ref(), &point.payload)?.1);
                    }
                }
                return Ok((items, total));
            }
            snapshot.each(asked.condition(), true.into(), |point| {
                let (_, item) = points::item(point.id.as_ref(), &point.payload)?;
                if admits(which, oldest, &item) {
                    if total >= offset && items.len() < limit {
                        items.push(item);
                    }
                    total += 1;
                }
                Ok(cancel.check().is_ok())
            })?;
            Ok((items, total))
        });
        cancel.check()?;
        Ok(page?)
    }

    fn choose(
        &self,
        which: &Which<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        if let Choice::Shortlist(shortlist) = choice {
            let found = vectors::nearest(self, which, shortlist, now, cancel)?;
            return Ok(Chosen::all(found));
        }
        let items = snapshot::read(&self.shared.asking, &self.name, |snapshot| {
            let oldest = snapshot.record.settings.oldest(now);
            let asked = Asked::of(which, oldest);
            let mut items = Vec::new();
            if asked.is_none() {
                return Ok(items);
            }
            snapshot.each(asked.condition(), true.into(), |point| {
                let (number, item) = points::item(point.id.as_ref(), &point.payload)?;
                if admits(which, oldest, &item) {
                    items.push((number, item));
                }
                Ok(items.len() <= MOST_CHOSEN && cancel.check().is_ok())
            })?;
            match items.len() > MOST_CHOSEN {
                true => Err(CollectionError::TooManyChosen { limit: MOST_CHOSEN }),
                false => Ok(items),
            }
        });
        cancel.check()?;
        Ok(Chosen::all(items?))
    }

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        let limits = &self.shared.limits;
        if let Write::Put(items) = &wanted {
            limits.check(items)?;
        }
        let applied = self.turn(now, |turn| {
            turn.sweep(now)?;
            let applied = match &wanted {
                Write::Put(items) => turn.put(items, limits, now)?,
                Write::Remove(names) => {
                    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                    turn.remove(&names, now)?
                }
                Write::Set(settings) => turn.set(*settings, now)?,
            };
            turn.end()?;
            Ok(applied)
        })?;
        Ok((applied, Pending::default()))
    }

    /// What Qdrant was seen to have lasts as long as Qdrant makes it last.
    fn settle(&self, _: Pending) -> Result<(), CollectionError> {
        Ok(())
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &How,
        items: Vec<Item>,
        now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        let limits = &self.shared.limits;
        matcher::check(&items, limits)?;
        let line = self.shared.line(&self.name);
        let followed = self.turn(now, |turn| {
            turn.sweep(now)?;
            match matcher::follow(turn, engine.clone(), how, items.clone(), now) {
                Ok(followed) => {
                    turn.put(&followed.items, limits, now)?;
                    turn.end()?;
                    // Only now is it certain that the collection has what the window holds.
                    let state = (turn.record.revision, turn.record.next);
                    Ok(Ok(followed.written(state, &line.windows)))
                }
                Err(MatchError::Query(error)) => Ok(Err(error)),
                Err(MatchError::Collection(error)) => Err(error),
            }
        })?;
        Ok((followed?, Pending::default()))
    }

    /// Only the writer puts anything in order: what is too old is shown by nobody meanwhile.
    fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        let line = self.shared.line(&self.name);
        let is_writer = line.slot.lock().unwrap_or_else(PoisonError::into_inner).hold.is_some();
        if !is_writer {
            return Ok(());
        }
        self.turn(now, |turn| {
            turn.expire(now)?;
            turn.end()?;
            turn.sweep(now)
        })?;
        let mut slot = line.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut slot.hold {
            Some(hold) if hold.is_idle() => {
                slot.let_go(&self.shared.asking, self.shared.next_commit())
            }
            Some(hold) => hold.show(&self.shared),
            None => Ok(()),
        }
    }
}

/// Whether an item is meant that Qdrant may have admitted beside those that are.
pub(super) fn admits(which: &Which<'_>, oldest: Option<i64>, item: &Item) -> bool {
    oldest.is_none_or(|oldest| item.time >= oldest) && which.admits(item)
}
