//! The candidates that are ranked: all of a request but those that it excludes by their names, each
//! with its boost and its place among all.

use std::collections::HashSet;
use std::ops::Range;

use cognate::engine::fuse::{FuseSession, PartScores};
use cognate::engine::{
    BoostBy, Boosts, Engine, Likes, Place, QueryError, RankOptions, RankSession, Ranking, Rankings,
};

use crate::http::error::ApiError;
use crate::http::request::fields::{Candidate, CandidateId, Text};

/// The candidates that are ranked.
pub(super) struct Contenders<'r, 'b> {
    all: &'r [Candidate<'b>],
    /// Nothing where none is excluded.
    kept: Option<Kept<'r, 'b>>,
    by: BoostBy,
    /// One each, or none at all.
    boosts: Vec<Option<f32>>,
}

/// Candidates that are not excluded.
struct Kept<'r, 'b> {
    list: Vec<&'r Candidate<'b>>,
    places: Vec<usize>,
}

impl<'r, 'b> Contenders<'r, 'b> {
    /// Those of a list that none of these names excludes.
    pub(super) fn of(
        all: &'r [Candidate<'b>],
        exclude: &[CandidateId<'_>],
        by: BoostBy,
    ) -> Contenders<'r, 'b> {
        let mut contenders = Contenders { all, kept: None, by, boosts: Vec::new() };
        if !exclude.is_empty() {
            let names: HashSet<&CandidateId<'_>> = exclude.iter().collect();
            let stays =
                |candidate: &Candidate<'_>| candidate.id().is_none_or(|id| !names.contains(id));
            let kept = all.iter().enumerate().filter(|(_, candidate)| stays(candidate));
            let (places, list) = kept.unzip();
            contenders.kept = Some(Kept { list, places });
        }
        if contenders.each().any(|candidate| candidate.boost().is_some()) {
            contenders.boosts = contenders.each().map(Candidate::boost).collect();
        }
        contenders
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.all.len(), |kept| kept.list.len())
    }

    /// One after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = &'r Candidate<'b>> + Clone + use<'_, 'r, 'b> {
        let kept = self.kept.as_ref().map_or(&[][..], |kept| &kept.list);
        let all = if self.kept.is_none() { self.all } else { &[] };
        all.iter().chain(kept.iter().copied())
    }

    /// Their texts, each with its place in the request.
    pub(super) fn places(&self) -> impl Iterator<Item = (Place, &'r str)> + Clone {
        let text = |(index, candidate): (usize, &'r Candidate<'b>)| {
            (Place::Candidate(self.place(index)), candidate.as_ref())
        };
        self.each().enumerate().map(text)
    }

    /// The place among all candidates of one of those that are ranked.
    pub(super) fn place(&self, index: usize) -> usize {
        let kept = self.kept.as_ref().and_then(|kept| kept.places.get(index));
        kept.copied().unwrap_or(index)
    }

    /// Ranks some of them.
    pub(super) fn rank(
        &self,
        part: Range<usize>,
        session: &mut RankSession<'_, '_>,
        go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let boosts = self.boosts(&part);
        match &self.kept {
            None => session.rank_boosted(self.all.get(part).unwrap_or_default(), &boosts, go_on),
            Some(kept) => {
                session.rank_boosted(kept.list.get(part).unwrap_or_default(), &boosts, go_on)
            }
        }
    }

    /// Scores some of them by every method of a fusion.
    pub(super) fn score(
        &self,
        part: Range<usize>,
        session: &mut FuseSession<'_, '_>,
        go_on: impl FnMut() -> bool,
    ) -> Result<PartScores, QueryError> {
        match &self.kept {
            None => session.score(self.all.get(part).unwrap_or_default(), go_on),
            Some(kept) => session.score(kept.list.get(part).unwrap_or_default(), go_on),
        }
    }

    /// What their scores are changed by.
    pub(super) fn all_boosts(&self) -> Boosts<'_> {
        Boosts { by: self.by, of: &self.boosts }
    }

    /// Ranks some of them for each of several queries.
    pub(super) fn rank_each(
        &self,
        part: Range<usize>,
        engine: &Engine,
        queries: &[Text<'_>],
        options: &RankOptions,
        go_on: impl FnMut() -> bool,
    ) -> Result<Rankings, QueryError> {
        let boosts = self.boosts(&part);
        match &self.kept {
            None => {
                let part = self.all.get(part).unwrap_or_default();
                engine.rank_each(queries, part, &boosts, options, go_on)
            }
            Some(kept) => {
                let part = kept.list.get(part).unwrap_or_default();
                engine.rank_each(queries, part, &boosts, options, go_on)
            }
        }
    }

    /// Ranks some of them by liked and disliked texts.
    pub(super) fn rank_liked(
        &self,
        part: Range<usize>,
        engine: &Engine,
        likes: &Likes<'_>,
        options: &RankOptions,
        go_on: impl FnMut() -> bool,
    ) -> Result<Ranking, QueryError> {
        let boosts = self.boosts(&part);
        match &self.kept {
            None => {
                let part = self.all.get(part).unwrap_or_default();
                engine.rank_liked(likes, part, &boosts, options, go_on)
            }
            Some(kept) => {
                let part = kept.list.get(part).unwrap_or_default();
                engine.rank_liked(likes, part, &boosts, options, go_on)
            }
        }
    }

    fn boosts(&self, part: &Range<usize>) -> Boosts<'_> {
        Boosts { by: self.by, of: self.boosts.get(part.clone()).unwrap_or_default() }
    }

    /// Gives the candidates of a ranking the places they have in the request.
    pub(super) fn restore(&self, ranking: &mut Ranking) {
        let Some(kept) = &self.kept else { return };
        let listed = ranking.unscored.iter_mut().chain(&mut ranking.truncated);
        listed.for_each(|index| *index = self.place(*index));
        ranking.results.iter_mut().for_each(|one| one.index = self.place(one.index));
        if !ranking.known.is_empty() {
            let mut known = vec![0.0; self.all.len()];
            for (&place, &share) in kept.places.iter().zip(&ranking.known) {
                if let Some(of_place) = known.get_mut(place) {
                    *of_place = share;
                }
            }
            ranking.known = known;
        }
    }

    /// Gives a fault the place that it has in the request.
    pub(super) fn locate(&self, error: ApiError) -> ApiError {
        let index = error
            .faults
            .first()
            .and_then(|fault| fault.pointer.strip_prefix("/candidates/")?.parse::<usize>().ok());
        let Some(index) = index.filter(|_| self.kept.is_some()) else { return error };
        let place = self.place(index);
        let (name, pointer) = (format!("candidates[{place}]"), format!("/candidates/{place}"));
        error.moved(Place::Candidate(index), &name, &pointer)
    }
}
