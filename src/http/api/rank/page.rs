//! What is made of a ranking before it is told: duplicates folded, the best made to differ, a page of
//! the results, and why they are there.

use std::collections::HashMap;

use cognate::engine::{Duplicate, Engine, Likes, Query, QueryError, RankOptions, Ranking};

use crate::http::api::rank::asked::Asked;
use crate::http::api::rank::response::{DuplicateCandidate, SharedWord};
use crate::http::api::rank::{RankRequest, RankedCandidate};
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{Count, Offset, Pool, Share};
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;

/// Most results that are explained.
pub(super) const MOST_EXPLAINED: usize = 20;
/// Words of an explanation.
pub(super) const WORDS: usize = 5;
/// How many times the results wanted the pool is unless a request says otherwise.
const POOL: usize = 4;
/// What a score counts against likeness unless a request says otherwise.
const LAMBDA: f64 = 0.7;

/// A ranking as it is told.
pub(crate) struct Page {
    pub(crate) ranking: Ranking,
    options: RankOptions,
    /// The duplicates of candidates that have such, by index.
    duplicates: HashMap<usize, Vec<Duplicate>>,
    /// Of the first results, the liked text that speaks most for each, and the words that do.
    reasons: Vec<(Option<usize>, Vec<SharedWord>)>,
}

/// A result of a page.
pub(crate) struct Placed {
    /// Its place among the candidates.
    pub(crate) index: usize,
    /// What it stands for.
    pub(crate) duplicates: Vec<Duplicate>,
    /// The liked text that speaks most for it.
    pub(crate) like: Option<usize>,
    pub(crate) words: Option<Vec<SharedWord>>,
}

impl RankRequest<'_> {
    /// How many of the first results are passed over.
    pub(crate) fn passed_over(&self) -> usize {
        self.offset.map_or(0, |Offset(passed)| passed)
    }

    /// How many results there are to the end of the page.
    pub(crate) fn wanted(&self) -> Option<usize> {
        self.top_k.map(|Count(most)| most.saturating_add(self.passed_over()))
    }

    /// How many candidates are made to differ, if any.
    pub(super) fn pool(&self) -> Option<usize> {
        let diversify = self.diversify?;
        let of_page = self.top_k.map_or(Pool::MOST, |Count(most)| most.saturating_mul(POOL));
        Some(diversify.pool.map_or(of_page, |Pool(pool)| pool).min(Pool::MOST))
    }

    /// How many candidates are needed in the order of their scores.
    pub(crate) fn needed(&self) -> Option<usize> {
        match self.collapse {
            // Duplicates may stand anywhere.
            Some(_) => None,
            None => self.wanted().map(|wanted| wanted.max(self.pool().unwrap_or(0))),
        }
    }

    /// Makes a page of a ranking for what was asked.
    pub(crate) fn page(
        &self,
        ranking: Ranking,
        options: RankOptions,
        asked: &Asked<'_, '_>,
        resolved: &Resolved,
        work: &JobContext,
    ) -> Result<Page, ApiError> {
        let options = RankOptions { top_k: self.wanted(), ..options };
        let mut page = Page { ranking, options, duplicates: HashMap::new(), reasons: Vec::new() };
        let (engine, query) = (&resolved.model.engine, &resolved.query);
        let (candidates, results) = (self.candidates(), &mut page.ranking.results);
        let wanted = self.wanted().unwrap_or(usize::MAX);
        if let Some(least) = self.sameness(resolved)? {
            let most = wanted.max(self.pool().unwrap_or(0));
            let folds =
                engine.collapse(results, candidates, (least, most), query, || work.check())?;
            results.clear();
            for fold in folds {
                results.push(fold.best);
                if !fold.duplicates.is_empty() {
                    page.duplicates.insert(fold.best.index, fold.duplicates);
                }
            }
        }
        if let Some(diversify) = self.diversify {
            let pool = self.pool().unwrap_or(0).min(results.len());
            let lambda = diversify.lambda.map_or(LAMBDA, |Share(lambda)| lambda);
            let pool = results.get_mut(..pool).unwrap_or_default();
            let check = || work.check();
            engine.diversify(pool, candidates, (lambda, wanted), query, check)?;
        }
        results.truncate(wanted);
        if self.explain == Some(true) {
            page.explain(self, asked, engine, query, work)?;
        }
        Ok(page)
    }
}

impl Page {
    /// Finds the words with the largest shares of the score of each of the first results.
    fn explain(
        &mut self,
        request: &RankRequest<'_>,
        asked: &Asked<'_, '_>,
        engine: &Engine,
        query: &Query,
        work: &JobContext,
    ) -> Result<(), ApiError> {
        let shown = self.ranking.results.iter().skip(request.passed_over()).take(MOST_EXPLAINED);
        for ranked in shown {
            work.check()?;
            let candidate = request.candidates().get(ranked.index).map_or("", AsRef::as_ref);
            let (text, liked) = match asked {
                Asked::Query(text) => (text.as_ref(), None),
                Asked::Queries(texts) => (texts.first().map_or("", AsRef::as_ref), None),
                Asked::Likes(likes) => best_liked(likes, candidate, engine, query)?,
            };
            let explained = engine.explain(text, candidate, query)?;
            if explained.shares.is_none() && !explained.unscored {
                let method = query.method.name();
                let detail = format!("what {method} scores does not divide into words");
                return Err(ApiError::at(Code::MethodUnavailable, "/explain", detail));
            }
            self.reasons.push((liked, SharedWord::largest(&explained, WORDS)));
        }
        Ok(())
    }

    /// Why the result at a place after the first `offset` is there, where that was asked.
    pub(super) fn reason(&self, place: usize) -> Option<&(Option<usize>, Vec<SharedWord>)> {
        self.reasons.get(place)
    }

    /// The duplicates that a candidate stands for.
    pub(super) fn duplicates_of(&self, index: usize) -> &[Duplicate] {
        self.duplicates.get(&index).map_or(&[], Vec::as_slice)
    }

    /// The scored results after the first `offset`, and how many those are.
    pub(crate) fn placed(mut self, offset: usize) -> (Vec<Placed>, usize) {
        let results = std::mem::take(&mut self.ranking.results);
        let passed_over = offset.min(results.len());
        let mut reasons = std::mem::take(&mut self.reasons).into_iter();
        let placed = results.into_iter().skip(offset).map(|ranked| {
            let (like, words) =
                reasons.next().map_or((None, None), |(like, words)| (like, Some(words)));
            let duplicates = self.duplicates.remove(&ranked.index).unwrap_or_default();
            Placed { index: ranked.index, duplicates, like, words }
        });
        (placed.collect(), passed_over)
    }

    /// What is listed, the unscored last: index, score, words and duplicates of each.
    pub(crate) fn lines(
        &self,
        offset: usize,
    ) -> impl Iterator<Item = (usize, Option<f32>, &[SharedWord], &[Duplicate])> {
        let listed = self.ranking.listed(&self.options).skip(offset).enumerate();
        listed.map(|(place, (index, score))| {
            let words = self.reasons.get(place).map_or(&[][..], |(_, words)| words);
            let duplicates = self.duplicates.get(&index).map_or(&[][..], Vec::as_slice);
            (index, score, words, duplicates)
        })
    }

    /// The results of the page, the unscored last where everything is wanted.
    pub(crate) fn results<'r>(&'r self, request: &'r RankRequest<'_>) -> Vec<RankedCandidate<'r>> {
        let with_text = request.return_text.unwrap_or(false);
        let candidate = |(index, score): (usize, Option<f32>)| {
            let candidate = request.candidates().get(index)?;
            let text = with_text.then_some(candidate.as_ref());
            let known = self.ranking.known.get(index).copied();
            Some(RankedCandidate::of(index, score, text).with(candidate, known))
        };
        let listed = self.ranking.listed(&self.options).skip(request.passed_over());
        let mut results: Vec<RankedCandidate<'r>> = listed.filter_map(candidate).collect();
        for (result, (liked, words)) in results.iter_mut().zip(&self.reasons) {
            result.explained_by(*liked, words);
        }
        if !self.duplicates.is_empty() {
            let duplicate = |duplicate: &Duplicate| {
                let index = duplicate.ranked.index;
                let id = request.candidates().get(index).and_then(|candidate| candidate.id());
                DuplicateCandidate::of(duplicate, id)
            };
            for result in &mut results {
                let found = self.duplicates.get(&result.index());
                result.stand_for(found.into_iter().flatten().map(duplicate).collect());
            }
        }
        results
    }
}

/// The liked text that speaks most for a candidate, and its place.
fn best_liked<'t>(
    likes: &Likes<'t>,
    candidate: &str,
    engine: &Engine,
    query: &Query,
) -> Result<(&'t str, Option<usize>), QueryError> {
    let texts: Vec<&str> = likes.liked.iter().map(|liked| liked.text).collect();
    // Scores are the same in either order of the texts.
    let ranking = engine.rank(candidate, &texts, query)?;
    let weighted = ranking.results.iter().filter_map(|ranked| {
        let liked = likes.liked.get(ranked.index)?;
        Some((f64::from(liked.weight) * f64::from(ranked.score), ranked.index, liked.text))
    });
    let best = weighted.reduce(|a, b| if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a });
    Ok(best.map_or(("", None), |(_, index, text)| (text, Some(index))))
}
