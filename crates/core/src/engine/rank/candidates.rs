//! The candidates of a list that are ranked: without excluded ones, with their boosts, and with
//! their indices in the whole list. The caller decides which are excluded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::engine::rank::{BoostBy, Boosts, KeptText};
use crate::engine::{Place, QueryError, Ranking};

/// The candidates of a list that are ranked.
#[derive(Debug)]
pub struct Candidates<'c, T> {
    all: &'c [T],
    ranked: Vec<&'c T>,
    /// The index in the whole list of each ranked candidate; `None` if all are ranked.
    places: Option<Vec<usize>>,
    by: BoostBy,
    /// The boost of each ranked candidate; empty if no candidate has one.
    boosts: Vec<Option<f32>>,
    /// The group of each candidate of the whole list; empty if they are not grouped.
    groups: Vec<Option<Cow<'c, str>>>,
    /// Maximum number of results of a group.
    per_group: usize,
    /// The caller's scores of the ranked candidates, for each run.
    runs: Vec<Vec<f64>>,
    /// The vector of each ranked candidate, if they were made before.
    kept: Option<Vec<KeptText<'c>>>,
}

impl<'c, T> Candidates<'c, T> {
    /// All candidates of a list.
    pub fn new(all: &'c [T]) -> Self {
        Self {
            all,
            ranked: all.iter().collect(),
            places: None,
            by: BoostBy::Add,
            boosts: Vec::new(),
            groups: Vec::new(),
            per_group: 1,
            runs: Vec::new(),
            kept: None,
        }
    }

    /// Leaves out excluded candidates; call it before boosts, runs and vectors are set.
    pub fn without(self, excludes: impl Fn(&T) -> bool) -> Self {
        let stays = self.all.iter().enumerate().filter(|(_, candidate)| !excludes(candidate));
        let (places, ranked) = stays.unzip();
        Self { ranked, places: Some(places), ..self }
    }

    /// The same candidates with their boosts.
    pub fn boosted(self, by: BoostBy, boost: impl Fn(&T) -> Option<f32>) -> Self {
        let mut boosts: Vec<_> = self.ranked.iter().map(|candidate| boost(candidate)).collect();
        if boosts.iter().all(Option::is_none) {
            boosts = Vec::new();
        }
        Self { by, boosts, ..self }
    }

    /// Groups the candidates; at most `per_group` of each group, its best, are results.
    pub fn grouped(self, per_group: usize, group: impl Fn(&'c T) -> Option<Cow<'c, str>>) -> Self {
        Self { groups: self.all.iter().map(group).collect(), per_group, ..self }
    }

    /// Adds the caller's scores, a list for each run that a fusion names.
    pub fn with_runs(self, runs: Vec<Vec<f64>>) -> Self {
        Self { runs, ..self }
    }

    /// Adds stored vectors, which [replace the texts](crate::Engine::ranks_kept).
    pub fn with_vectors(self, kept: Option<Vec<KeptText<'c>>>) -> Self {
        Self { kept, ..self }
    }

    /// Whether candidates may be left out for better candidates of their group.
    pub(super) fn are_grouped(&self) -> bool {
        !self.groups.is_empty()
    }

    pub(super) fn leave_best_of_groups(&self, ranking: &mut Ranking, most: usize) {
        let (mut seen, mut left) = (HashMap::<&str, usize>::new(), 0);
        ranking.results.retain(|result| {
            let group = self.groups.get(result.index).and_then(Option::as_deref);
            let stays = left < most
                && group.is_none_or(|group| {
                    let seen = seen.entry(group).or_default();
                    *seen += 1;
                    *seen <= self.per_group
                });
            left += usize::from(stays);
            stays
        });
    }

    /// Whether stored vectors replace their texts.
    pub fn have_vectors(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn runs(&self) -> &[Vec<f64>] {
        &self.runs
    }

    pub(super) fn kept(&self) -> Option<&[KeptText<'c>]> {
        self.kept.as_deref()
    }

    /// The whole list.
    pub fn all(&self) -> &'c [T] {
        self.all
    }

    /// The candidates that are ranked, in the order of the list.
    pub fn ranked(&self) -> &[&'c T] {
        &self.ranked
    }

    pub(super) fn part(&self, part: Range<usize>) -> (&[&'c T], Boosts<'_>) {
        let of = self.boosts.get(part.clone()).unwrap_or_default();
        (self.ranked.get(part).unwrap_or_default(), Boosts { by: self.by, of })
    }

    pub(super) fn boosts(&self) -> Boosts<'_> {
        Boosts { by: self.by, of: &self.boosts }
    }

    /// Returns a ranked candidate's index in the whole list.
    pub fn place(&self, index: usize) -> usize {
        self.places.as_ref().and_then(|places| places.get(index)).copied().unwrap_or(index)
    }

    pub(super) fn restored(&self, error: QueryError) -> QueryError {
        match error.place() {
            Some(Place::Candidate(index)) => error.placed(Place::Candidate(self.place(index))),
            _ => error,
        }
    }

    /// Sets the indices of a ranking to those in the whole list.
    pub(super) fn restore(&self, ranking: &mut Ranking) {
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
