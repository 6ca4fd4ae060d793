//! The items of a collection that may be among the best of a ranking. Rows are compared as signed
//! bytes with a bound of the rounding error, so that none of the best is left out, and only few
//! items have to be scored.

use std::sync::Arc;

use cognate_kernels::scan::{Probe, Shelf};

use crate::embedded::EmbeddedCollection;
use crate::embedded::bits::{count, number, places, without};
use crate::embedded::blocks::{Wanted, items_of};
use crate::embedded::quantised::{Best, Found, Seek, ShelfMaker, look};
use crate::{Cancellation, ChooseError, Chosen, Several, TopQuery};

/// Largest number of items that are all scored in no more time.
pub(super) const FEW: usize = 1_000;
/// At most one item in this many may remain. With more, scoring the remaining items takes as long as
/// scoring all.
pub(super) const SHARE: usize = 8;

impl EmbeddedCollection {
    pub(super) fn narrowed(
        &self,
        wanted: &Wanted,
        best: &TopQuery<'_>,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        Ok(match self.contenders(wanted, best, cancel)? {
            Some(numbers) => chosen(wanted, numbers),
            None => Chosen::complete(items_of(wanted)),
        })
    }

    /// The numbers of the items that may be among the best; `None` if that is unknown, or if they
    /// are too many to be worth it.
    fn contenders(
        &self,
        (view, wanted): &Wanted,
        best: &TopQuery<'_>,
        cancel: Cancellation<'_>,
    ) -> Result<Option<Vec<u64>>, ChooseError> {
        let meant = count(wanted);
        let most = meant / SHARE;
        let count = match best.several {
            Several::Sum => 1,
            Several::Each | Several::Best => best.texts.len().max(1),
        };
        if meant <= FEW || best.length.max(1).saturating_mul(count) > most {
            return Ok(None);
        }
        let Some(probes) = probes(best) else { return Ok(None) };
        let mut maker = ShelfMaker::new(self, best.engine)?;
        let mut races: Vec<Pruner<'_>> =
            probes.iter().map(|probe| Pruner::new(probe, best.length, most / count)).collect();
        let mut numbers = Vec::new();
        for (at, bits) in wanted {
            cancel.check()?;
            let block = maker.block(*at, bits, view)?;
            look(*at, &block, bits, &mut races);
            // An item without a direction may still have a score, or must be counted.
            numbers.extend(places(without(bits, &block.rows)).map(|place| number(*at, place)));
            if numbers.len() > most || races.iter().any(|race| race.is_lost) {
                return Ok(None);
            }
        }
        for race in &mut races {
            race.leave_behind();
            numbers.extend(race.reached.iter().map(|(_, number)| number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok((numbers.len() <= most).then_some(numbers))
    }
}

/// Returns the items of these numbers: those of the selected items that may be among the best.
pub(super) fn chosen((view, wanted): &Wanted, numbers: Vec<u64>) -> Chosen {
    let meant = count(wanted);
    let item = |number| Some((number, Arc::clone(view.item(number)?)));
    Chosen { items: numbers.into_iter().filter_map(item).collect(), meant }
}

/// The vectors to compare rows with; `None` if a text has no vector or the ranking will refuse it.
fn probes(best: &TopQuery<'_>) -> Option<Vec<Probe>> {
    let directions = best.directions().ok()?;
    if directions.iter().any(Option::is_none) {
        return None;
    }
    if best.several == Several::Sum {
        return Some(vec![Probe::new(&best.sum(&directions)?)]);
    }
    Some(directions.iter().flatten().map(|row| Probe::new(row)).collect())
}

struct Pruner<'p> {
    probe: &'p Probe,
    floors: Best,
    /// Upper bounds of items that could still be among the best when they were compared.
    reached: Vec<(f32, u64)>,
    most: usize,
    is_lost: bool,
}

impl<'p> Pruner<'p> {
    /// A pruner for `length` results, given up when more than `most` items remain.
    fn new(probe: &'p Probe, length: usize, most: usize) -> Self {
        Self { probe, floors: Best::new(length), reached: Vec::new(), most, is_lost: false }
    }

    fn leave_behind(&mut self) {
        let least = self.least();
        self.reached.retain(|(reaches, _)| *reaches >= least);
        self.is_lost = self.reached.len() > self.most;
    }
}

impl Seek for Pruner<'_> {
    const IS_EXACT: bool = true;

    fn probe(&self) -> &Probe {
        self.probe
    }

    fn least(&self) -> f32 {
        self.floors.least()
    }

    fn offer(&mut self, shelf: &Shelf, place: usize, sum: i32, number: u64) {
        let score = shelf.product(place, self.probe, sum);
        let slack = shelf.slack(place, self.probe);
        if self.is_lost {
            return;
        }
        self.reached.push((score + slack, number));
        self.floors.offer(Found { score: score - slack, number });
        if self.reached.len() > 2 * self.most {
            self.leave_behind();
        }
    }
}
