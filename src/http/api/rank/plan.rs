//! What a request is refused for, and how much work it is.

use cognate::engine::{Counts, KeptText, Page, PageOptions, RankedFor, UnscoredLikes};
use cognate_collections::{Choice, TopQuery};

use crate::http::api::explain::explaining;
use crate::http::api::pipeline;
use crate::http::api::pipeline::{ANSWER_HEAD, INDEX_BYTES, NUMBER_BYTES};
use crate::http::api::rank::request::{Asked, BoostRule};
use crate::http::api::rank::response::RankingsResponse;
use crate::http::api::rank::{RankRequest, RankResponse};
use crate::http::api::unplanned::{Plan, Question};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::observe::metrics::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::fields::{Candidate, CandidateId, Count, MeasureName, ShortlistLength};
use crate::http::request::query::{Resolved, Selection, reading};
use crate::http::request::threshold::Cutoff;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

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
/// Bytes of `"opposes":[],` and the names of two kinds: hardly a text has more.
const OPPOSES_BYTES: usize = 13 + 22;
/// Bytes of `"related":false,`.
const RELATED_BYTES: usize = 16;
/// Bytes of a word with its share.
const WORD_BYTES: usize = 60;

/// The refusal of a negative boost that would multiply a score.
pub(crate) const NEGATIVE_BOOST: &str =
    "a score is multiplied by a boost of 0 or more; `boost_by` may also be `add`";
/// The refusal of scores that no part of the fusion uses.
pub(crate) const UNUSED_SCORES: &str = "nothing in the question uses `scores`";

impl RankRequest<'_> {
    /// Refuses fields of candidates that cannot be used.
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
        // Duplicates are listed with the results.
        let most = self.top_k.filter(|_| self.collapse.is_none());
        let wanted = most.map_or(length, |Count(most)| most.min(length));
        let (all, longest) = self
            .candidates()
            .iter()
            .map(bytes_of)
            .fold((0, 0), |(all, longest), bytes| (all + bytes, bytes.max(longest)));
        let share = if self.coverage == Some(true) { SHARE_BYTES } else { 0 };
        let alike = if self.collapse.is_some() { SHARE_BYTES } else { 0 };
        let opposes = if self.return_opposes == Some(true) { OPPOSES_BYTES } else { 0 };
        let related = self.threshold.map_or(0, |_| RELATED_BYTES);
        let each = RESULT_BYTES + NUMBER_BYTES + INDEX_BYTES + share + alike + opposes + related;
        let explained =
            if self.explain == Some(true) { wanted.min(PageOptions::MOST_EXPLAINED) } else { 0 };
        let ranking = ANSWER_HEAD
            .saturating_add(wanted.saturating_mul(each))
            .saturating_add(longest.saturating_mul(wanted).min(all))
            .saturating_add(explained * PageOptions::WORDS * WORD_BYTES);
        ranking.saturating_mul(self.queries.as_ref().map_or(1, |queries| queries.items.len()))
    }

    /// Multiplications that comparing candidates with each other takes, at least and at most, where
    /// comparing them with what is asked takes so many.
    fn comparing(&self, page: &PageOptions, candidates: usize, asked: u64) -> [u64; 2] {
        let (texts, all) = (self.asked_length().max(1) as u64, candidates as u64);
        let each = asked / texts.saturating_mul(all).max(1);
        let rankings = self.queries.as_ref().map_or(1, |queries| queries.items.len() as u64);
        let wanted = page.end().map_or(all, |wanted| (wanted as u64).min(all));
        let pool = (page.pool() as u64).min(all);
        let diversified = pool.saturating_mul(wanted.min(pool)) / 2;
        let (least, most) = match self.collapse {
            // Each candidate up to the last result is compared with all results before it.
            Some(_) => (wanted.max(pool), all.saturating_mul(wanted.max(pool))),
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
        let wanted = self.top_k.map_or(PageOptions::MOST_EXPLAINED, |Count(most)| {
            most.min(PageOptions::MOST_EXPLAINED)
        });
        let likes = self.like.as_ref().map_or(1, |like| like.items.len() as u64);
        explaining(&asked, &candidate, resolved)
            .saturating_mul(wanted as u64)
            .saturating_mul(rankings.saturating_mul(likes))
    }

    /// The parts of a ranking that the request uses, for metrics.
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
    /// The text of a candidate or a liked text given as an object is in the field `text`.
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
        let candidates = self.ranked_candidates();
        let texts = candidates.ranked().iter().map(|candidate| candidate.as_ref());
        let asked = self.asked_places().map(|(_, text)| text);
        let bytes = asked.clone().chain(texts.clone()).map(str::len).sum::<usize>();
        let page = self.page_options(&resolved)?;
        let only_best = page.needed().is_some() || self.min_score.is_some();
        let work = if self.keeps_vectors(&resolved) {
            // Only the texts of the query are read.
            let dims = resolved.model.engine.model().dims() as u64;
            [dims.saturating_mul((candidates.ranked().len() * self.asked_length()) as u64); 2]
        } else {
            resolved.multiplications_of_ranking(asked, texts, only_best)
        };
        let more = self.comparing(&page, candidates.ranked().len(), work[1]);
        // To see who is opposed, texts are read again.
        let query = &resolved.query;
        let looks = page.drop_opposed || query.opposes || query.threshold.is_some();
        let again = if looks { reading(bytes) } else { 0 };
        let most = work[1].saturating_add(more[1]).saturating_add(again);
        let work = [work[0].saturating_add(more[0]), most];
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
        self.tell(&told, &[], plan, answer)
    }
}

/// The computed ranking, before it is serialised.
pub(super) struct Computed {
    pub(super) pages: Vec<Page>,
    /// Liked and disliked texts that are part of no score.
    pub(super) passed: UnscoredLikes,
    pub(super) counts: Counts,
}

impl RankRequest<'_> {
    /// Writes what was computed for the queries, as they were read.
    pub(super) fn tell(
        &self,
        told: &Computed,
        read_as: &[Option<String>],
        plan: &Plan,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        if self.queries.is_some() {
            let each = told.pages.iter().map(|page| (page, self.results(page)));
            answer.write_json(&RankingsResponse::of(each, read_as, &plan.resolved))?;
        } else if let Some(page) = told.pages.first() {
            let results = self.results(page);
            let response = RankResponse::of(&page.ranking, results, &plan.resolved);
            let read_as = read_as.first().and_then(Option::as_deref);
            answer.write_json(&response.passing(&told.passed).reading(read_as))?;
        }
        Ok(told.counts)
    }

    /// Ranks the candidates, by stored vectors if there are any.
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
                self.page(ranking, &options, RankedFor::Query(query.as_ref()), resolved, work)
            });
            let pages = pages.collect::<Result<Vec<_>, _>>()?;
            return Ok(Computed { pages, passed: UnscoredLikes::default(), counts });
        }
        let asked = match &asked {
            Asked::Likes(likes) => RankedFor::Likes(likes),
            Asked::Query(_) | Asked::Queries(_) => RankedFor::Query(self.query_text()),
        };
        let (ranking, options, counts) = match kept {
            None => self.ranking(plan, app, work)?,
            Some(kept) => self.ranking_of_kept(asked, kept, plan, work)?,
        };
        let passed = match asked {
            RankedFor::Likes(likes) => resolved.model.engine.passed_likes(likes, &options)?,
            RankedFor::Query(_) | RankedFor::QueryOf(..) => UnscoredLikes::default(),
        };
        let page = self.page(ranking, &options, asked, resolved, work)?;
        Ok(Computed { pages: vec![page], passed, counts })
    }

    /// Finds the model, and the method or fusion that ranks.
    pub(super) fn resolve(&self, models: &Models) -> Result<Resolved, ApiError> {
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            opposites: self.opposites,
            oov: self.oov,
            truncate: self.truncate,
            coverage: self.coverage,
            min_known: self.min_known,
            return_opposes: self.return_opposes,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        Cutoff::ask(self.threshold, self.fused(selection.resolve_ranking(models)?)?)
    }

    /// Whether candidates are those of a collection that has vectors of them. The few of a shortlist are
    /// read: kept vectors lie in blocks, of which these would take nearly all.
    pub(super) fn keeps_vectors(&self, resolved: &Resolved) -> bool {
        let all = self.shortlist.is_none_or(|shortlist| shortlist == ShortlistLength::All);
        let of_collection = self.collection.is_some() && all;
        of_collection && resolved.ranks_kept()
    }

    /// The items of a collection that may be among the best, where the collection can tell: by bounds of
    /// their vectors, or by their tokens. It cannot where any two of them have to be looked at together.
    pub(super) fn best<'s>(&'s self, resolved: &'s Resolved, app: &App) -> Option<Choice<'s>> {
        // Faults of the question are reported by `plan`.
        self.check_lengths(app).ok()?;
        let length = self.page_options(resolved).ok()?.needed()?;
        let is_plain = self.unlike.is_none() && self.boosts.is_none() && self.collapse_by.is_none();
        let top = self.top_query(resolved, length).ok().filter(|_| is_plain)?;
        if resolved.counts_tokens() {
            return Some(Choice::TopByTokens(top, resolved.query));
        }
        let is_bounded = self.keeps_vectors(resolved) && top.is_bounded(&resolved.query);
        is_bounded.then_some(Choice::TopQuery(top))
    }

    /// The `length` best items by the vectors of what is asked about; disliked texts say nothing of them.
    pub(super) fn top_query<'s>(
        &'s self,
        resolved: &'s Resolved,
        length: usize,
    ) -> Result<TopQuery<'s>, ApiError> {
        let engine = &resolved.model.engine;
        Ok(match self.asked()? {
            Asked::Query(text) => TopQuery::of_each(engine, [text.as_ref()].into_iter(), length),
            Asked::Queries(texts) => {
                TopQuery::of_each(engine, texts.iter().map(AsRef::as_ref), length)
            }
            Asked::Likes(likes) => TopQuery::of_liked(engine, &likes, length),
        })
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
            ("/event", self.event.is_some()),
            ("/within", self.within.is_some()),
            ("/shortlist", self.shortlist.is_some()),
            ("/boosts", self.boosts.is_some()),
            ("/collapse_by", self.collapse_by.is_some()),
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
