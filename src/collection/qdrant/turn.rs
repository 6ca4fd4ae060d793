//! What is written to a collection in one turn: points that nobody sees, and then the record.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use qdrant_client::qdrant::Condition;
use qdrant_client::qdrant::Direction;
use qdrant_client::qdrant::Filter;

use crate::collection::Applied;
use crate::collection::Budget;
use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::Limits;
use crate::collection::Settings;
use crate::collection::following::Following;
use crate::collection::following::Windows;
use crate::collection::outcome::Outcome;
use crate::collection::qdrant::condition::Asked;
use crate::collection::qdrant::hold::Hold;
use crate::collection::qdrant::home::Shared;
use crate::collection::qdrant::numbers::Numbers;
use crate::collection::qdrant::points;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::Record;
use crate::collection::qdrant::snapshot::Snapshot;
use crate::collection::qdrant::sweep;

/// Names that are looked up in one question.
const NAMES: usize = 1000;
/// Rows of numbers that are gone from which on the record is made shorter.
const MOST_ROWS: usize = 32;
/// Items that are read at a time to fill a window.
const PAGE: usize = 2000;

/// One turn to write to a collection.
pub(super) struct Turn<'t> {
    shared: &'t Shared,
    windows: &'t Windows,
    hold: &'t mut Hold,
    /// What the record says once the turn [ends](Self::end).
    pub(super) record: Record,
    /// Numbers that go with this turn.
    gone: Numbers,
    /// Whether points may have been written of which the record says nothing.
    pub(super) has_begun: bool,
}

impl<'t> Turn<'t> {
    pub(super) fn of(shared: &'t Shared, windows: &'t Windows, hold: &'t mut Hold) -> Self {
        let record = hold.record.clone();
        Self { shared, windows, hold, record, gone: Numbers::default(), has_begun: false }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { asking: &self.shared.asking, record: &self.record }
    }

    /// How many items are not too old.
    fn live(&self, now: i64) -> Result<usize, CollectionError> {
        match self.record.settings.oldest(now) {
            Some(oldest) => self.snapshot().live(oldest),
            None => Ok(self.record.items),
        }
    }

    /// Adds items, each in the place of another of its name, if there is room for them.
    pub(super) fn put(
        &mut self,
        items: &[Item],
        limits: &Limits,
        now: i64,
    ) -> Result<Applied, CollectionError> {
        let names: Vec<&str> = items.iter().map(|item| &*item.id).collect();
        let mut known = self.numbers(&names)?;
        let distinct: HashSet<&str> = names.iter().copied().collect();
        let fresh = distinct.iter().filter(|name| !known.contains_key(**name)).count();
        let most = self.record.settings.max_items;
        if most.is_none() && fresh > 0 {
            let (wanted, limit) = (self.live(now)? + fresh, limits.items);
            if wanted > limit {
                return Err(CollectionError::TooManyItems { wanted, limit });
            }
        }
        if self.expire(now)? > 0 {
            known = self.numbers(&names)?;
        }
        let oldest = match most {
            Some(_) => self.oldest(items.len())?,
            None => BTreeSet::new(),
        };
        let next = self.record.next;
        let known = known.into_iter().map(|(name, number)| (name, signed(number))).collect();
        let outcome = Outcome::of(&names, signed(next), (known, oldest), self.record.items, most);
        let stays = outcome.stays.iter().filter_map(|place| {
            let item = items.get(*place)?;
            Some((next + *place as u64, item))
        });
        self.has_begun = true;
        points::add(&self.shared.asking, &self.record.place(), stays)?;
        self.record.next += items.len() as u64;
        self.record.items = outcome.items;
        self.record.revision += u64::from(outcome.applied.replaced > 0);
        self.go(outcome.gone.iter().map(|number| number.unsigned_abs()));
        Ok(outcome.applied)
    }

    /// Takes out the items of these names.
    pub(super) fn remove(&mut self, names: &[&str], now: i64) -> Result<Applied, CollectionError> {
        self.expire(now)?;
        let numbers = self.numbers(names)?;
        let removed = numbers.len();
        self.record.items = self.record.items.saturating_sub(removed);
        self.record.revision += u64::from(removed > 0);
        self.go(numbers.into_values());
        Ok(Applied { removed, ..Applied::default() })
    }

    /// Keeps by other settings from now on.
    pub(super) fn set(&mut self, settings: Settings, now: i64) -> Result<Applied, CollectionError> {
        self.expire(now)?;
        if settings == self.record.settings {
            return Ok(Applied::default());
        }
        self.record.settings = settings;
        self.record.revision += 1;
        let most = settings.max_items.unwrap_or(usize::MAX);
        let oldest = self.oldest(self.record.items.saturating_sub(most))?;
        let left = oldest.len();
        self.record.items = self.record.items.saturating_sub(left);
        self.go(oldest.into_iter().map(i64::unsigned_abs));
        Ok(Applied { left, ..Applied::default() })
    }

    /// Takes out what is too old by now; how many items that were.
    pub(super) fn expire(&mut self, now: i64) -> Result<usize, CollectionError> {
        let Some(oldest) = self.record.settings.oldest(now) else { return Ok(0) };
        let asked = Asked::not_before(oldest);
        let older = match asked.is_exact {
            true => asked.condition().map(|newer| Filter::must_not([newer]).into()),
            false => None,
        };
        let mut numbers = Vec::new();
        self.snapshot().each(older, vec!["time"].into(), |point| {
            if points::time(&point.payload)? < oldest {
                numbers.push(points::number(point.id.as_ref())?);
            }
            Ok(true)
        })?;
        let many = numbers.len();
        self.record.items = self.record.items.saturating_sub(many);
        self.go(numbers);
        Ok(many)
    }

    /// Deletes what is gone for long enough.
    pub(super) fn sweep(&mut self, now: i64) -> Result<(), CollectionError> {
        let swept = sweep::sweep(&self.shared.asking, self.hold, now)?;
        swept.forget(&mut self.record, now);
        self.end()?;
        swept.is_written(self.hold);
        Ok(())
    }

    /// Writes what the record says now: with that all of this turn is seen.
    pub(super) fn end(&mut self) -> Result<(), CollectionError> {
        if self.record == self.hold.record {
            return Ok(());
        }
        if self.record.gone.rows().len() > MOST_ROWS {
            self.shorten()?;
        }
        self.has_begun = true;
        self.record.name_commit(self.shared.next_commit());
        record::swap(&self.shared.asking, &self.hold.record, &self.record)?;
        self.hold.wrote(self.record.clone());
        if !self.gone.is_empty() {
            self.hold.pending.push((Instant::now(), std::mem::take(&mut self.gone)));
        }
        self.has_begun = false;
        Ok(())
    }

    /// What lies below the first item that is there need not be listed.
    fn shorten(&mut self) -> Result<(), CollectionError> {
        let found = self.snapshot().in_order([], Direction::Asc, (0, 1))?;
        let first = found.first().map(|point| points::number(point.id.as_ref())).transpose()?;
        self.record.first = first.unwrap_or(self.record.next);
        self.record.gone.take_out_below(self.record.first);
        Ok(())
    }

    /// Numbers go.
    fn go(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let numbers = Numbers::of(numbers);
        self.record.gone.add(&numbers);
        self.gone.add(&numbers);
    }

    /// The numbers of the items of these names that are there.
    fn numbers(&self, names: &[&str]) -> Result<HashMap<String, u64>, CollectionError> {
        let mut found = HashMap::with_capacity(names.len());
        for names in names.chunks(NAMES) {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let named = Condition::matches("id", names);
            self.snapshot().each([named], vec!["id"].into(), |point| {
                let name = points::name(&point.payload)?.to_owned();
                found.insert(name, points::number(point.id.as_ref())?);
                Ok(true)
            })?;
        }
        Ok(found)
    }

    /// The numbers of the oldest items.
    fn oldest(&self, count: usize) -> Result<BTreeSet<i64>, CollectionError> {
        let mut found = BTreeSet::new();
        if count > 0 {
            self.snapshot().each([], false.into(), |point| {
                found.insert(signed(points::number(point.id.as_ref())?));
                Ok(found.len() < count)
            })?;
        }
        Ok(found)
    }

    /// At most so many of the last items of which these conditions hold, in order, none before a number.
    fn last_of(
        &self,
        conditions: &[Condition],
        most: usize,
        from: u64,
    ) -> Result<Vec<Arc<Item>>, CollectionError> {
        let mut record = self.record.clone();
        record.first = record.first.max(from);
        let mut items = Vec::new();
        while items.len() < most {
            let snapshot = Snapshot { asking: &self.shared.asking, record: &record };
            let limit = PAGE.min(most - items.len());
            let found =
                snapshot.in_order(conditions.iter().cloned(), Direction::Desc, (0, limit))?;
            let Some(last) = found.last() else { break };
            record.next = points::number(last.id.as_ref())?;
            for point in &found {
                items.push(points::item(point.id.as_ref(), &point.payload)?.1);
            }
            if found.len() < limit {
                break;
            }
        }
        items.reverse();
        Ok(items)
    }
}

/// Numbers stay far below those of 63 bits.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Following for Turn<'_> {
    fn settings(&self) -> Settings {
        self.record.settings
    }

    fn revision(&self) -> u64 {
        self.record.revision
    }

    fn next_number(&self) -> u64 {
        self.record.next
    }

    fn known(
        &mut self,
        mut names: HashSet<Box<str>>,
    ) -> Result<HashSet<Box<str>>, CollectionError> {
        let asked: Vec<&str> = names.iter().map(|name| &**name).collect();
        let there = self.numbers(&asked)?;
        names.retain(|name| there.contains_key(&**name));
        Ok(names)
    }

    fn last(
        &mut self,
        most: usize,
        except: &HashSet<Box<str>>,
        now: i64,
    ) -> Result<Vec<Arc<Item>>, CollectionError> {
        let mut conditions = Vec::new();
        let except: Vec<String> = except.iter().map(ToString::to_string).collect();
        if !except.is_empty() {
            conditions.push(Filter::must_not([Condition::matches("id", except)]).into());
        }
        let oldest = self.record.settings.oldest(now);
        let mut is_exact = true;
        if let Some(oldest) = oldest {
            let asked = Asked::not_before(oldest);
            is_exact = asked.is_exact;
            conditions.extend(asked.condition());
        }
        let mut items = self.last_of(&conditions, if is_exact { most } else { usize::MAX }, 0)?;
        items.retain(|item| oldest.is_none_or(|oldest| item.time >= oldest));
        items.drain(..items.len().saturating_sub(most));
        Ok(items)
    }

    fn since(&mut self, number: u64, most: usize) -> Result<Vec<Arc<Item>>, CollectionError> {
        self.last_of(&[], most, number)
    }

    fn windows(&self) -> &Windows {
        self.windows
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.shared.budget
    }
}
