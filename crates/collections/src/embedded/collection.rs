//! An embedded collection as every home has them.

use std::sync::Arc;

use cognate::engine::Engine;
use cognate::methods::Method;

use crate::embedded::log::Change;
use crate::embedded::{EmbeddedCollection, EmbeddedHome, Pending, Vectors};
use crate::following::Following;
use crate::{
    Applied, Cancellation, Choice, ChooseError, Chosen, Collection, CollectionError, Home, How,
    Item, Limits, MatchError, Matched, Page, Settings, SharedEngine, Told, Totals, Which, Write,
    matcher,
};

impl Home for EmbeddedHome {
    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError> {
        Ok(self.named(name)?)
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError> {
        Ok(self.each().into_iter().map(|one| one as Arc<dyn Collection>).collect())
    }

    fn set(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        let (collection, is_new) = self.make(name, settings, now)?;
        Ok((collection, is_new))
    }

    fn delete(&self, name: &str) -> Result<(), CollectionError> {
        self.remove(name)
    }

    fn totals(&self, now: i64) -> Totals {
        let all = self.each();
        let items = all.iter().map(|one| one.told(now).items).sum();
        Totals { collections: all.len(), items, bytes: self.bytes(), behind: None }
    }

    fn look_after(&self) -> Result<(), CollectionError> {
        self.look_after()
    }

    fn unwritable(&self) -> usize {
        self.unwritable()
    }
}

impl Collection for EmbeddedCollection {
    fn name(&self) -> &str {
        self.name()
    }

    fn limits(&self) -> &Limits {
        self.limits()
    }

    fn told(&self, now: i64) -> Result<Told, CollectionError> {
        Ok(self.told(now))
    }

    fn find(&self, ids: &[&str], now: i64) -> Result<Vec<Option<Arc<Item>>>, CollectionError> {
        Ok(ids.iter().map(|id| self.get(id, now)).collect())
    }

    fn page(
        &self,
        which: &Which<'_>,
        Page { offset, limit }: Page,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<(Vec<Arc<Item>>, usize), ChooseError> {
        let view = self.view(now);
        let (mut items, mut total) = (Vec::new(), 0);
        which.each(view.numbered(), cancel, |_, item| {
            if total >= offset && items.len() < limit {
                items.push(Arc::clone(item));
            }
            total += 1;
        })?;
        Ok((items, total))
    }

    fn choose(
        &self,
        which: &Which<'_>,
        choice: &Choice<'_>,
        now: i64,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        match choice {
            Choice::Shortlist(shortlist) => self.nearest(which, shortlist, now, cancel),
            Choice::Best(best) => self.narrowed(which, best, now, cancel),
            Choice::All => {
                let (view, mut items) = (self.view(now), Vec::new());
                which.each(view.numbered(), cancel, |number, item| {
                    items.push((number, Arc::clone(item)));
                })?;
                Ok(Chosen::all(items))
            }
        }
    }

    fn vectors(
        &self,
        engine: &Engine,
        method: Method,
        items: &[(u64, Arc<Item>)],
        cancel: Cancellation<'_>,
    ) -> Result<Option<Arc<Vectors>>, ChooseError> {
        self.vectors_of(engine, method, items, cancel)
    }

    fn write(&self, wanted: Write, now: i64) -> Result<(Applied, Pending), CollectionError> {
        self.write(wanted, now)
    }

    fn settle(&self, pending: Pending) -> Result<(), CollectionError> {
        self.settle(pending)
    }

    fn follow(
        &self,
        engine: SharedEngine,
        how: &How,
        items: Vec<Item>,
        now: i64,
    ) -> Result<(Vec<Matched>, Pending), MatchError> {
        matcher::check(&items, self.limits())?;
        let mut turn = self.turn();
        let mut followed = matcher::follow(&mut turn, engine, how, items, now)?;
        let changes = std::mem::take(&mut followed.items).into_iter().map(Change::put);
        let (_, pending) = turn.write(changes.collect(), now)?;
        let state = (turn.revision(), turn.next_number());
        Ok((followed.written(state, turn.windows()), pending))
    }

    fn tidy(&self, now: i64) -> Result<(), CollectionError> {
        self.tidy(now)
    }
}
