//! What a request is refused for, and how much work it is.

use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};

use cognate::engine::fuse::{FuseSession, PartScores};
use cognate::engine::{
    BoostBy, Boosts, Counts, Engine, KeptFor, KeptText, Likes, Measure, Place, QueryError,
    RankOptions, RankSession, Ranking, Rankings, Strategy, UnscoredLikes,
};
use cognate_collections::{SHORTLIST_METHOD, TopQuery};

use crate::http::api::explain::explaining;
use crate::http::api::pipeline;
use crate::http::api::pipeline::{ANSWER_HEAD, INDEX_BYTES, NUMBER_BYTES, Plan, Question};
use crate::http::api::rank::page::{MOST_EXPLAINED, WORDS};
use crate::http::api::rank::request::{Asked, BoostRule};
use crate::http::api::rank::response::RankingsResponse;
use crate::http::api::rank::{Page, RankRequest, RankResponse};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::observe::metrics::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::fields::{
    Candidate, CandidateId, Count, MeasureName, ShortlistLength, Text,
};
use crate::http::request::query::{Resolved, Selection};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Weights of liked texts with which scores keep their digits.
const PLAIN_WEIGHTS: RangeInclusive<f32> = 1e-3..=1e3;
/// Bytes of a result beside its numbers: `{"index":,"score":},`.
const RESULT_BYTES: usize = 20;
/// Bytes of an id beside itself: `"id":"",`.
const ID_BYTES: usize = 8;
/// Bytes of `"known":,` and a share.
const SHARE_BYTES: usize = 9 + NUMBER_BYTES;
/// Bytes of a text beside itself: `,"text":""`.
const TEXT_BYTES: usize = 10;
/// Bytes of a candidate's data beside itself: `,"data":`.
const DATA_BYTES: usize = 8;
/// Bytes of a word with its share.
const WORD_BYTES: usize = 60;

/// What is wrong with a boost below 0 that a score would be multiplied by.
pub(crate) const NEGATIVE_BOOST: &str =
    "a score is multiplied by a boost of 0 or more; `boost_by` may also be `add`";
/// What is wrong with scores of the caller's own.
pub(crate) const UNUSED_SCORES: &str = "nothing in the question uses `scores`";

impl RankRequest<'_> {
    /// Refuses what candidates bring that cannot be used.
    fn check_extras(&self, resolved: &Resolved, app: &App) -> Result<(), ApiError> {
        let (excluded, limit) =
            (self.exclude.as_ref().map_or(0, |list| list.length), app.settings.max_candidates);
        if excluded > limit {
            let most = ("max_candidates", limit);
            pipeline::check_length("/exclude", "ids to exclude", excluded, most)?;
        }
        let mut runs = resolved.fused.iter().flat_map(|fused| fused.fusion.runs());
        let uses_scores = runs.next().is_some();
        if uses_scores && self.collection.is_some() {
            let detail = "items of a collection bring no `scores`";
            return Err(ApiError::at(Code::InvalidField, "/fuse", detail));
        }
        let multiplied = self.boost_by == Some(BoostRule::Multiply);
        for (index, candidate) in self.candidates().iter().enumerate() {
            let pointer = |field| Pointer::from("/candidates").index(index).field(field);
            if multiplied && candidate.boost().is_some_and(|boost| boost < 0.0) {
                return Err(ApiError::at(Code::OutOfRange, pointer("boost"), NEGATIVE_BOOST));
            }
            if candidate.scores().is_some() && !uses_scores {
                return Err(ApiError::at(Code::InvalidField, pointer("scores"), UNUSED_SCORES));
            }
        }
        Ok(())
    }

    /// Bytes of the answer, roughly: texts and ids as they stand, escapes aside. Which candidates are
    /// the best is not known yet, so of fewer than all the longest count.
    fn answer_bytes(&self) -> usize {
        let with_text = self.return_text.unwrap_or(false);
        let bytes_of = |candidate: &Candidate<'_>| {
            let id = match candidate.id() {
                Some(CandidateId::Text(id)) => ID_BYTES + id.len(),
                Some(CandidateId::Number(_)) => ID_BYTES + NUMBER_BYTES,
                None => 0,
            };
            let data = candidate.data().map_or(0, |data| DATA_BYTES + data.written().len());
            let text = if with_text { TEXT_BYTES + candidate.as_ref().len() } else { 0 };
            id + data + text
        };
        let length = self.candidates().len();
        // Duplicates are told beside the results.
        let most = self.top_k.filter(|_| self.collapse.is_none());
        let wanted = most.map_or(length, |Count(most)| most.min(length));
        let (all, longest) = self
            .candidates()
            .iter()
            .map(bytes_of)
            .fold((0, 0), |(all, longest), bytes| (all + bytes, bytes.max(longest)));
        let share = if self.coverage == Some(true) { SHARE_BYTES } else { 0 };
        let alike = if self.collapse.is_some() { SHARE_BYTES } else { 0 };
        let each = RESULT_BYTES + NUMBER_BYTES + INDEX_BYTES + share + alike;
        let explained = if self.explain == Some(true) { wanted.min(MOST_EXPLAINED) } else { 0 };
        let ranking = ANSWER_HEAD
            .saturating_add(wanted.saturating_mul(each))
            .saturating_add(longest.saturating_mul(wanted).min(all))
            .saturating_add(explained * WORDS * WORD_BYTES);
        ranking.saturating_mul(self.queries.as_ref().map_or(1, |queries| queries.items.len()))
    }

    /// Multiplications that comparing candidates with each other takes, at least and at most, where
    /// comparing them with what is asked takes so many.
    fn comparing(&self, candidates: usize, asked: u64) -> [u64; 2] {
        let (texts, all) = (self.asked_length().max(1) as u64, candidates as u64);
        let each = asked / texts.saturating_mul(all).max(1);
        let rankings = self.queries.as_ref().map_or(1, |queries| queries.items.len() as u64);
        let wanted = self.wanted().map_or(all, |wanted| (wanted as u64).min(all));
        let pool = self.pool().map_or(0, |pool| (pool as u64).min(all));
        let diversified = pool.saturating_mul(wanted.min(pool)) / 2;
        let (least, most) = match self.collapse {
            // Each is compared with those that stand for themselves.
            Some(_) => (all, all.saturating_mul(wanted.max(pool))),
            None => (0, 0),
        };
        [least, most].map(|collapsed| {
            collapsed.saturating_add(diversified).saturating_mul(each).saturating_mul(rankings)
        })
    }

    /// Multiplications that explaining the first results takes.
    fn explaining(&self, resolved: &Resolved) -> u64 {
        if self.explain != Some(true) {
            return 0;
        }
        let longest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.max_by_key(|text| text.len()).unwrap_or_default().to_owned()
        };
        let asked = longest(&mut self.asked_places().map(|(_, text)| text));
        let candidate = longest(&mut self.candidates().iter().map(AsRef::as_ref));
        let rankings = self.queries.as_ref().map_or(1, |queries| queries.items.len() as u64);
        let wanted = self.top_k.map_or(MOST_EXPLAINED, |Count(most)| most.min(MOST_EXPLAINED));
        let likes = self.like.as_ref().map_or(1, |like| like.items.len() as u64);
        explaining(&asked, &candidate, resolved)
            .saturating_mul(wanted as u64)
            .saturating_mul(rankings.saturating_mul(likes))
    }

    /// What is asked beyond an order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = RankPart> {
        let boosted = || self.candidates().iter().any(|one| one.boost().is_some());
        let parts = [
            (RankPart::Queries, self.queries.is_some()),
            (RankPart::Like, self.like.is_some()),
            (RankPart::Exclude, self.exclude.is_some()),
            (RankPart::Boost, boosted()),
            (RankPart::Collapse, self.collapse.is_some()),
            (RankPart::Diversify, self.diversify.is_some()),
            (RankPart::Explain, self.explain == Some(true)),
            (RankPart::Offset, self.offset.is_some()),
        ];
        parts.into_iter().filter(|(_, is_asked)| *is_asked).map(|(part, _)| part)
    }
}

impl Question for RankRequest<'_> {
    /// The text of a candidate or of a liked text that is an object stands in a field.
    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        let is_object = match *pointer.segments() {
            [Segment::Field("candidates"), Segment::Index(index)] => {
                matches!(self.candidates().get(index), Some(Candidate::Named(_)))
            }
            [Segment::Field("like"), Segment::Index(index)] => {
                let liked = self.like.as_ref().and_then(|like| like.items.get(index));
                liked.is_some_and(|liked| liked.named)
            }
            _ => false,
        };
        if is_object { pointer.field("text") } else { pointer }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        self.check_candidates(app)?;
        let length = self.candidates().len();
        self.asked()?;
        self.check_lengths(app)?;
        let resolved = self.resolve(models)?;
        self.check_extras(&resolved, app)?;
        resolved.model.engine.check(&resolved.query)?;
        self.check_method(&resolved)?;
        let contenders = self.contenders();
        let texts = contenders.each().map(AsRef::as_ref);
        let asked = self.asked_places().map(|(_, text)| text);
        let bytes = asked.clone().chain(texts.clone()).map(str::len).sum::<usize>();
        let only_best = self.needed().is_some() || self.min_score.is_some();
        let mut work = [0_u64; 2];
        if self.keeps_vectors(&resolved) {
            // Nothing is read but what is asked.
            let dims = resolved.model.engine.model().vectors().dims() as u64;
            work = [dims.saturating_mul((contenders.len() * self.asked_length()) as u64); 2];
        }
        for text in asked.filter(|_| !self.keeps_vectors(&resolved)) {
            let of_text = resolved.multiplications_of_ranking(text, texts.clone(), only_best);
            work = [work[0].saturating_add(of_text[0]), work[1].saturating_add(of_text[1])];
        }
        let more = self.comparing(contenders.len(), work[1]);
        let work = [work[0].saturating_add(more[0]), work[1].saturating_add(more[1])];
        let (answer, asked) = (self.answer_bytes(), self.asked_length());
        let explained = self.explaining(&resolved);
        let plan = Plan::at_least(resolved, length.saturating_mul(asked), bytes, work, app)?;
        let plan = if explained > 0 { plan.heavier(explained, app)? } else { plan };
        plan.answering(answer, "/candidates", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let told = self.told(plan, app, work, None)?;
        if self.queries.is_some() {
            let listed = told.pages.iter().map(|page| (&page.ranking, page.results(self)));
            answer.write_json(&RankingsResponse::of(listed, &plan.resolved))?;
        } else if let Some(page) = told.pages.first() {
            let results = page.results(self);
            let response = RankResponse::of(&page.ranking, results, &plan.resolved);
            answer.write_json(&response.passing(&told.passed))?;
        }
        Ok(told.counts)
    }
}

/// What is told of candidates.
pub(super) struct Computed {
    pub(super) pages: Vec<Page>,
    /// Liked and disliked texts that are part of no score.
    pub(super) passed: UnscoredLikes,
    pub(super) counts: Counts,
}

impl RankRequest<'_> {
    /// What is told of the candidates, of which vectors may have been kept.
    pub(super) fn told(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        kept: Option<&[KeptText<'_>]>,
    ) -> Result<Computed, ApiError> {
        let (asked, resolved) = (self.asked()?, &plan.resolved);
        self.parts().for_each(|part| app.metrics.ranked_with(part));
        if let Asked::Queries(queries) = asked {
            let (rankings, options, counts) = match kept {
                None => self.rankings(queries, plan, app, work)?,
                Some(kept) => self.rankings_of_kept(queries, kept, plan, work)?,
            };
            let pages = rankings.into_iter().zip(queries).map(|(ranking, query)| {
                self.page(ranking, options, &Asked::Query(query), resolved, work)
            });
            let pages = pages.collect::<Result<Vec<_>, _>>()?;
            return Ok(Computed { pages, passed: UnscoredLikes::default(), counts });
        }
        let (ranking, options, counts) = match (kept, &asked) {
            (None, _) | (_, Asked::Queries(_)) => self.ranking(plan, app, work)?,
            (Some(kept), Asked::Query(text)) => {
                self.ranking_of_kept(KeptFor::Query(text.as_ref()), kept, plan, work)?
            }
            (Some(kept), Asked::Likes(likes)) => {
                self.ranking_of_kept(KeptFor::Likes(likes), kept, plan, work)?
            }
        };
        let passed = match &asked {
            Asked::Likes(likes) => resolved.model.engine.passed_likes(likes, &options)?,
            Asked::Query(_) | Asked::Queries(_) => UnscoredLikes::default(),
        };
        let page = self.page(ranking, options, &asked, resolved, work)?;
        Ok(Computed { pages: vec![page], passed, counts })
    }

    /// Finds the model and what ranks.
    pub(super) fn resolve(&self, models: &Models) -> Result<Resolved, ApiError> {
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            oov: self.oov,
            truncate: self.truncate,
            coverage: self.coverage,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        self.fused(selection.resolve_ranking(models)?)
    }

    /// Whether candidates are those of a collection that has vectors of them. The few of a shortlist are
    /// read: kept vectors lie in blocks, of which these would take nearly all.
    pub(super) fn keeps_vectors(&self, resolved: &Resolved) -> bool {
        let engine = &resolved.model.engine;
        let all = self.shortlist.is_none_or(|shortlist| shortlist == ShortlistLength::All);
        let of_collection = self.collection.is_some() && all;
        of_collection && resolved.fused.is_none() && engine.ranks_kept(&resolved.query)
    }

    /// Which of the items of a collection are wanted, where that can be told by the bounds of their
    /// vectors: the best by the cosine, without a look at how alike any two of them are.
    pub(super) fn best<'s>(&'s self, resolved: &'s Resolved, app: &App) -> Option<TopQuery<'s>> {
        // What is wrong with the question is told where it is planned.
        self.check_lengths(app).ok()?;
        let query = &resolved.query;
        let by_cosine = query.method == SHORTLIST_METHOD && resolved.measure() == Measure::Cosine;
        let plain = by_cosine && self.keeps_vectors(resolved) && self.unlike.is_none();
        let length = self.needed().filter(|_| plain)?;
        let (texts, summed) = match self.asked().ok()? {
            Asked::Query(text) => (vec![(text.as_ref(), 1.0)], false),
            Asked::Queries(texts) => (texts.iter().map(|one| (one.as_ref(), 1.0)).collect(), false),
            Asked::Likes(likes) => {
                if likes.liked.iter().any(|liked| !PLAIN_WEIGHTS.contains(&liked.weight)) {
                    return None;
                }
                let texts = likes.liked.iter().map(|liked| (liked.text, liked.weight));
                (texts.collect(), likes.strategy != Strategy::Best)
            }
        };
        let engine = &resolved.model.engine;
        Some(TopQuery { engine, texts, summed, length })
    }

    /// Most tokens of all texts together; those of a collection were taken before.
    pub(super) fn most_tokens(&self, app: &App) -> usize {
        match self.collection {
            Some(_) => usize::MAX,
            None => app.settings.tokens_total,
        }
    }

    /// Refuses candidates that are missing, none or too many; the items of a collection may be any.
    fn check_candidates(&self, app: &App) -> Result<(), ApiError> {
        if self.collection.is_some() {
            return Ok(());
        }
        for (field, is_given) in [
            ("/filter", self.filter.is_some()),
            ("/within", self.within.is_some()),
            ("/shortlist", self.shortlist.is_some()),
        ] {
            if is_given {
                let detail = "this stands beside `collection` alone";
                return Err(ApiError::at(Code::InvalidField, field, detail));
            }
        }
        let Some(candidates) = &self.candidates else {
            let detail = "the field `candidates` is missing; `collection` may stand in its place";
            return Err(ApiError::at(Code::InvalidField, "", detail));
        };
        let limit = ("max_candidates", app.settings.max_candidates);
        pipeline::check_length("/candidates", "candidates", candidates.length, limit)
    }
}

/// The candidates that are ranked.
pub(super) struct Candidates<'r, 'b> {
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

impl<'r, 'b> Candidates<'r, 'b> {
    /// Those of a list that none of these names excludes.
    pub(super) fn of(
        all: &'r [Candidate<'b>],
        exclude: &[CandidateId<'_>],
        by: BoostBy,
    ) -> Candidates<'r, 'b> {
        let mut contenders = Candidates { all, kept: None, by, boosts: Vec::new() };
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
    pub(super) fn restored(&self, error: ApiError) -> ApiError {
        error.renamed(|pointer| match *pointer.segments() {
            [Segment::Field("candidates"), Segment::Index(index)] => {
                Pointer::from("/candidates").index(self.place(index))
            }
            _ => pointer,
        })
    }
}
