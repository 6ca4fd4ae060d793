//! The candidates of a list that are ranked: without those that are excluded, with their boosts, and with
//! the places that they have in the whole list. What excludes a candidate is the caller's rule.

use std::borrow::Cow;
use std::ops::Range;

use crate::engine::{BoostBy, Boosts, Ranking};

/// The candidates of a list that are ranked.
#[derive(Debug)]
pub struct Candidates<'c, T> {
    all: &'c [T],
    ranked: Vec<&'c T>,
    /// The place in the whole list of each that is ranked; none where all are.
    places: Option<Vec<usize>>,
    by: BoostBy,
    /// The boost of each ranked candidate; empty if no candidate has one.
    boosts: Vec<Option<f32>>,
    /// The group of each of the whole list that has one; empty if they are not grouped.
    groups: Vec<Option<Cow<'c, str>>>,
}

impl<'c, T> Candidates<'c, T> {
    /// The candidates of a list that `excludes` does not name, with their boosts.
    pub fn of(
        all: &'c [T],
        excludes: Option<impl Fn(&T) -> bool>,
        boost: impl Fn(&T) -> Option<f32>,
        by: BoostBy,
    ) -> Self {
        let (ranked, places): (Vec<&T>, _) = match excludes {
            None => (all.iter().collect(), None),
            Some(excludes) => {
                let stays = all.iter().enumerate().filter(|(_, candidate)| !excludes(candidate));
                let (places, ranked) = stays.unzip();
                (ranked, Some(places))
            }
        };
        let mut boosts: Vec<_> = ranked.iter().map(|candidate| boost(candidate)).collect();
        if boosts.iter().all(Option::is_none) {
            boosts = Vec::new();
        }
        Self { all, ranked, places, by, boosts, groups: Vec::new() }
    }

    /// The same candidates, of which the best of each group alone is a result.
    pub fn grouped(self, group: impl Fn(&'c T) -> Option<Cow<'c, str>>) -> Self {
        Self { groups: self.all.iter().map(group).collect(), ..self }
    }

    /// Whether some of them are left out for a better one of their group.
    pub(super) fn are_grouped(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The group of one of the whole list.
    pub(super) fn group(&self, index: usize) -> Option<&str> {
        self.groups.get(index)?.as_deref()
    }

    /// The whole list.
    pub fn all(&self) -> &'c [T] {
        self.all
    }

    /// The candidates that are ranked, in the order of the list.
    pub fn ranked(&self) -> &[&'c T] {
        &self.ranked
    }

    /// Some of those that are ranked, and their boosts.
    pub fn part(&self, part: Range<usize>) -> (&[&'c T], Boosts<'_>) {
        let of = self.boosts.get(part.clone()).unwrap_or_default();
        (self.ranked.get(part).unwrap_or_default(), Boosts { by: self.by, of })
    }

    /// The boosts of all that are ranked.
    pub fn boosts(&self) -> Boosts<'_> {
        Boosts { by: self.by, of: &self.boosts }
    }

    /// The place in the whole list of one of those that are ranked.
    pub fn place(&self, index: usize) -> usize {
        self.places.as_ref().and_then(|places| places.get(index)).copied().unwrap_or(index)
    }

    /// Gives the candidates of a ranking their places in the whole list.
    pub fn restore(&self, ranking: &mut Ranking) {
        let Some(places) = &self.places else { return };
        let listed = ranking.unscored.iter_mut().chain(&mut ranking.truncated);
        listed.for_each(|index| *index = self.place(*index));
        ranking.results.iter_mut().for_each(|one| one.index = self.place(one.index));
        if !ranking.known.is_empty() {
            let mut known = vec![0.0; self.all.len()];
            for (&place, &share) in places.iter().zip(&ranking.known) {
                if let Some(of_place) = known.get_mut(place) {
                    *of_place = share;
                }
            }
            ranking.known = known;
        }
    }
}
