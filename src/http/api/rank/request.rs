//! The body of `POST /rank`, as it is read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use cognate::engine;
use cognate::engine::fuse::FuseBy;
use cognate::engine::rank::{Asked, Question};
use cognate::engine::{BoostBy, Candidates, Liked, Likes, Opposites, PageOptions, Strategy};
use cognate_collections::rank::{NamedItems, PER_GROUP, RESULTS};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::api::pipeline;
use crate::http::api::rank::ItemBoostFields;
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::observe::metrics::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::fields;
use crate::http::request::fields::{
    Candidate, CandidateId, Count, DislikedText, FusePart, LikedText, List, MeasureName, ModelName,
    Offset, OpposedPolicy, Pool, RankMethod, Share, ShortlistLength, Text, Weight,
};
use crate::http::request::query::{OovPolicy, Resolved, Selection};
use crate::http::request::threshold::Threshold;

pub(crate) const NEGATIVE_BOOST: &str =
    "a score is multiplied by a boost of 0 or more; `boost_by` may also be `add`";
pub(crate) const UNUSED_SCORES: &str = "nothing in the question uses `scores`";

/// The body of `POST /rank`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub struct RankRequest<'b> {
    /// What the candidates are compared with. Give one of `query`, `queries` and `like`, or of a collection
    /// `boosts` alone.
    #[schema(value_type = Option<fields::NonEmptyText>)]
    pub(crate) query: Option<Text<'b>>,
    /// Several of them: the answer has a ranking for each, in order, as each alone would have it.
    #[schema(value_type = Option<Vec<fields::NonEmptyText>>, min_items = 1, max_items = 100)]
    pub(crate) queries: Option<List<Text<'b>>>,
    /// Texts that candidates should be like, for methods of the kind `similarity`; their order does not
    /// matter.
    #[schema(value_type = Option<Vec<LikedText<'b>>>, min_items = 1, max_items = 100)]
    pub(crate) like: Option<List<LikedText<'b>>>,
    /// Texts that they should not be like, beside `like`.
    #[schema(value_type = Option<Vec<DislikedText<'b>>>, max_items = 100)]
    pub(crate) unlike: Option<List<DislikedText<'b>>>,
    /// What the scores with several liked texts come to.
    pub(crate) strategy: Option<Strategy>,
    /// What a candidate's best score with a disliked text is multiplied by before it is taken off its
    /// score; default: 0.5.
    pub(crate) unlike_weight: Option<Weight>,
    /// The candidates. Give either these or `collection`.
    #[schema(value_type = Option<Vec<Candidate<'b>>>, min_items = 1, max_items = 10000)]
    pub(crate) candidates: Option<List<Candidate<'b>>>,
    /// A collection whose items are ranked: all of them, unless `filter`, `event` or `within` says
    /// otherwise.
    #[schema(value_type = Option<String>)]
    pub(crate) collection: Option<Cow<'b, str>>,
    /// Which items of the collection are ranked, by their attributes: an object of conditions, all of
    /// which must hold. `{"lang": "en"}` or `["en", "de"]` asks for a value, `{"year": {"gte": 2020}}`
    /// has any of `eq`, `ne`, `in`, `gt`, `gte`, `lt`, `lte`, `exists`; under `any` stands a list of
    /// filters of which one must hold, under `not` one that must not.
    // Read, and counted, once the collection is known.
    #[schema(value_type = Option<Object>)]
    pub(crate) filter: Option<&'b RawValue>,
    /// Only items of the collection that belong to the event of this name.
    #[schema(value_type = Option<String>)]
    pub(crate) event: Option<Cow<'b, str>>,
    /// Only items of the collection whose time is no further back than this: `30s`, `15m`, `24h`, `7d`.
    #[schema(value_type = Option<String>)]
    pub(crate) within: Option<Cow<'b, str>>,
    /// How many items of the collection are scored: those nearest by `avg-cos` to the query, to each of
    /// several queries, or to the liked texts by their strategy; of a fusion also the best by each of its
    /// methods that has an index. Without it 1000 are, or ten times as many as are wanted, of more than 5,000
    /// items by fusions and by methods of which that misses next to none of the best, of more than 200,000 by
    /// others; all by a method whose vectors are kept.
    pub(crate) shortlist: Option<ShortlistLength>,
    pub(crate) model: Option<ModelName<'b>>,
    pub(crate) method: Option<RankMethod<'b>>,
    pub(crate) measure: Option<MeasureName>,
    pub(crate) opposites: Option<Opposites>,
    /// Most results wanted; default: all candidates, or ten items of a collection.
    pub(crate) top_k: Option<Count>,
    /// How many of the first results are skipped: `top_k` results come after them.
    pub(crate) offset: Option<Offset>,
    /// The least score wanted, boosts included: of opposed candidates, too, unless `opposes` leaves them out.
    pub(crate) min_score: Option<Threshold>,
    /// Return for each result with a score whether it is related to the query: whether the score reaches this.
    pub(crate) threshold: Option<Threshold>,
    /// Repeat each result's text.
    pub(crate) return_text: Option<bool>,
    pub(crate) oov: Option<OovPolicy>,
    /// Whether to cut a text that is too long instead of refusing it.
    pub(crate) truncate: Option<bool>,
    /// Whether to return, for each text, the share of tokens that the model lists, or whose stem or part it
    /// lists.
    pub(crate) coverage: Option<bool>,
    /// The least share of known words of a query or a liked text, as `query_known` tells it: one that has
    /// fewer is taken for one without a known word, so that it ranks nothing.
    pub(crate) min_known: Option<Share>,
    /// Candidates of these names are left out, as if they had not been sent: neither ranked nor listed
    /// under `unscored`. The others keep their `index`.
    #[schema(value_type = Option<Vec<CandidateId<'b>>>, max_items = 10000)]
    pub(crate) exclude: Option<List<CandidateId<'b>>>,
    /// What a candidate's `boost` does to its score.
    pub(crate) boost_by: Option<BoostRule>,
    /// Boosts of the collection's items, each a number from 0 to 1 that counts beside the similarity. A score is
    /// the sum of similarity and boosts by their weights; the similarity's weight is the rest to 1. Without a
    /// text to rank for a score is the sum of the boosts by their weights.
    #[schema(value_type = Option<Vec<ItemBoostFields<'b>>>, max_items = 8)]
    pub(crate) boosts: Option<List<ItemBoostFields<'b>>>,
    /// Several rankings made one, instead of `method`: by methods, and by numbers that the candidates
    /// bring under `scores`.
    #[schema(value_type = Option<Vec<FusePart<'b>>>, min_items = 1, max_items = 16)]
    pub(crate) fuse: Option<List<FusePart<'b>>>,
    /// How the parts of `fuse` become one.
    pub(crate) fuse_by: Option<FuseBy>,
    /// Candidates at least so much like a better candidate are listed under its `duplicates`; for
    /// methods of the kind `similarity`.
    pub(crate) collapse: Option<Threshold>,
    /// The name of an attribute of the items of the collection, such as their series: only the best of the
    /// items with the same value is a result. All items without the attribute are results.
    #[schema(value_type = Option<String>)]
    pub(crate) collapse_by: Option<Cow<'b, str>>,
    /// How many items with the same value of `collapse_by` are results; default: one.
    pub(crate) per_group: Option<Count>,
    /// Put the best into the order of maximal marginal relevance; for methods of the kind `similarity`.
    pub(crate) diversify: Option<Diversify>,
    /// Also return, for the first twenty results at most, the words with the largest shares of the
    /// score.
    pub(crate) explain: Option<bool>,
    /// Also return how each result is opposed to the query.
    pub(crate) return_opposes: Option<bool>,
    /// What is done with candidates that are opposed to the query, whatever their scores.
    pub(crate) opposes: Option<OpposedPolicy>,
}

/// How much results should differ from each other.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diversify {
    /// The weight of a candidate's score against its similarity to results before it: 1 leaves the
    /// order of scores as it is; default: 0.7.
    pub(crate) lambda: Option<Share>,
    /// How many of the best candidates are reordered; the others follow by their scores. Default: four
    /// times `top_k`, at most 1000.
    pub(crate) pool: Option<Pool>,
}

/// What a boost does to a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoostRule {
    /// The boost is added.
    #[default]
    Add,
    /// The score is multiplied by it. A negative score is further from 0 after a boost above 1.
    Multiply,
}

impl From<BoostRule> for BoostBy {
    fn from(rule: BoostRule) -> Self {
        match rule {
            BoostRule::Add => Self::Add,
            BoostRule::Multiply => Self::Multiply,
        }
    }
}

impl<'b> RankRequest<'b> {
    pub(crate) fn candidates(&self) -> &[Candidate<'b>] {
        self.candidates.as_ref().map_or(&[], |list| &list.items)
    }

    pub(crate) fn resolve(&self, models: &Models) -> Result<Resolved> {
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
        let mut resolved = self.fused(selection.resolve_ranking(models)?)?;
        Threshold::ask(self.threshold, &mut resolved)?;
        Ok(resolved)
    }

    /// The texts that candidates are ranked for, some of which may be items' texts; refuses fields
    /// that exclude each other.
    pub(crate) fn asked(&self, named: Option<&[NamedItems; 2]>) -> Result<Asked<'b>> {
        let wrong = |pointer: &'static str, detail: &'static str| {
            Err(ApiError::at(Code::InvalidField, pointer, detail))
        };
        if self.like.is_none() {
            let beside = [
                ("/unlike", self.unlike.is_some()),
                ("/strategy", self.strategy.is_some()),
                ("/unlike_weight", self.unlike_weight.is_some()),
            ];
            refuse_given(beside, "this stands beside `like` alone")?;
        }
        let per_group = self.per_group.is_some() && self.collapse_by.is_none();
        refuse_given([("/per_group", per_group)], "this stands beside `collapse_by` alone")?;
        let sides = [("/like", self.liked()), ("/unlike", self.disliked())];
        for (field, side) in sides.into_iter().filter(|_| named.is_none()) {
            if let Some(place) = side.iter().position(|one| one.id.is_some()) {
                let pointer = Pointer::from(field).index(place).field("id");
                let detail = "items are named where `collection` is given";
                return Err(ApiError::at(Code::InvalidField, pointer, detail));
            }
        }
        match (&self.query, &self.queries, &self.like) {
            (Some(Text(query)), None, None) => Ok(Asked::One(query.clone())),
            (None, Some(queries), None) => {
                Ok(Asked::Each(queries.items.iter().map(|Text(text)| text.clone()).collect()))
            }
            (None, None, Some(_)) => Ok(Asked::Likes(self.likes(named))),
            (None, None, None) if self.boosts.as_ref().is_some_and(|list| list.length > 0) => {
                let compared = [("/threshold", self.threshold.is_some())];
                refuse_given(compared, "where `boosts` rank alone no texts are compared")?;
                Ok(Asked::Nothing)
            }
            (None, None, None) => wrong(
                "",
                "the field `query` is missing; `queries` or `like` may stand in its place, and of a \
                 collection `boosts` alone",
            ),
            (_, Some(_), _) => wrong("/queries", "give one of `query`, `queries` and `like`"),
            (_, None, Some(_)) => wrong("/like", "give one of `query`, `queries` and `like`"),
        }
    }

    /// The attribute that items are grouped by, and how many of a group are results.
    pub(super) fn group_by(&self) -> Option<(&str, usize)> {
        let per_group = self.per_group.map_or(PER_GROUP, |Count(most)| most);
        Some((self.collapse_by.as_deref()?, per_group))
    }

    /// Whether there is no text to rank for, so that boosts alone rank.
    pub(super) fn asks_nothing(&self) -> bool {
        self.query.is_none() && self.queries.is_none() && self.like.is_none()
    }

    pub(super) fn liked(&self) -> Vec<&LikedText<'b>> {
        self.like.iter().flat_map(|list| &list.items).collect()
    }

    pub(super) fn disliked(&self) -> Vec<&LikedText<'b>> {
        let list = self.unlike.iter().flat_map(|list| &list.items);
        list.map(|DislikedText(one)| one).collect()
    }

    /// The liked and disliked texts; missing items count in no score.
    fn likes(&self, named: Option<&[NamedItems; 2]>) -> Likes<'b> {
        let text = |side: usize, place: usize, one: &LikedText<'b>| match &one.id {
            None => Some(one.text.0.clone()),
            Some(_) => Some(named?.get(side)?.text(place)?.to_owned().into()),
        };
        let weight =
            |one: &LikedText<'_>| one.weight.map_or(engine::Weight::ONE, |Weight(weight)| weight);
        let liked = self.liked().into_iter().enumerate();
        let disliked = self.disliked().into_iter().enumerate();
        Likes {
            liked: liked
                .filter_map(|(at, one)| {
                    Some(Liked { text: text(0, at, one)?, weight: weight(one) })
                })
                .collect(),
            disliked: disliked.filter_map(|(at, one)| text(1, at, one)).collect(),
            strategy: self.strategy.unwrap_or_default(),
            unlike_weight: self.unlike_weight.map_or(Likes::UNLIKE_WEIGHT, |Weight(weight)| weight),
        }
    }

    pub(crate) fn check_lengths(&self, app: &App) -> Result<()> {
        let most = ("max_queries", app.settings.max_queries);
        if let Some(queries) = &self.queries {
            pipeline::check_length("/queries", "queries", queries.length, most)?;
        }
        if let Some(like) = &self.like {
            pipeline::check_length("/like", "liked texts", like.length, most)?;
        }
        if let Some(unlike) = self.unlike.as_ref().filter(|unlike| unlike.length > 0) {
            pipeline::check_length("/unlike", "disliked texts", unlike.length, most)?;
        }
        Ok(())
    }

    /// The question of these texts; refuses options that the method does not support.
    pub(crate) fn question<'t>(
        &self,
        asked: Asked<'t>,
        resolved: &Resolved,
    ) -> Result<Question<'t>> {
        if resolved.fused.is_some() && self.queries.is_some() {
            let detail = "rankings are made one for one query: send several queries by themselves";
            return Err(ApiError::at(Code::InvalidField, "/queries", detail));
        }
        if resolved.fused.is_some() && asked.is_nothing() {
            let detail = "rankings are made one for a query, and the field `query` is missing";
            return Err(ApiError::at(Code::InvalidField, "", detail));
        }
        let least = |threshold: Option<Threshold>, pointer| {
            let cutoff = threshold.map(|threshold| threshold.resolve(resolved, pointer));
            Ok::<_, ApiError>(cutoff.transpose()?.map(|cutoff| cutoff.least))
        };
        let diversify = |asked: &Diversify| engine::Diversify {
            lambda: asked.lambda.map_or(engine::Diversify::LAMBDA, |Share(lambda)| lambda),
            pool: asked.pool.map(|Pool(pool)| pool),
        };
        let usual = self.collection.as_ref().map(|_| RESULTS);
        let page = PageOptions {
            offset: self.offset.map_or(0, |Offset(offset)| offset),
            top_k: self.top_k.map(|Count(most)| most).or(usual),
            collapse: least(self.collapse, "/collapse")?,
            diversify: self.diversify.as_ref().map(diversify),
            explain: self.explain == Some(true),
            drop_opposed: self.opposes == Some(OpposedPolicy::Drop),
        };
        let question = Question {
            fusion: resolved.fused.as_ref().map(|fused| Arc::clone(&fused.fusion)),
            min_score: least(self.min_score, "/min_score")?,
            page,
            ..Question::new(asked, resolved.query)
        };
        resolved.check_page(&question)?;
        // Candidates of a stream may be boosted.
        let boosted =
            |list: &List<Candidate<'b>>| list.items.iter().any(|one| one.boost().is_some());
        let is_of_list = self.collection.is_none();
        let are_boosted =
            self.boosts.is_some() || is_of_list && self.candidates.as_ref().is_none_or(boosted);
        resolved.check_reach(&question, are_boosted)?;
        Ok(question)
    }

    /// Refuses fields of candidates that cannot be used.
    pub(super) fn check_extras(&self, resolved: &Resolved, app: &App) -> Result<()> {
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

    pub(super) fn check_candidates(&self, app: &App) -> Result<()> {
        refuse_given(self.of_collections(), "this stands beside `collection` alone")?;
        let Some(candidates) = &self.candidates else {
            let detail = "the field `candidates` is missing; `collection` may stand in its place";
            return Err(ApiError::at(Code::InvalidField, "", detail));
        };
        let limit = ("max_candidates", app.settings.max_candidates);
        pipeline::check_length("/candidates", "candidates", candidates.length, limit)
    }

    /// Refuses fields that the first line of a stream cannot have.
    pub(crate) fn check_first_line(&self) -> Result<()> {
        if self.queries.is_some() {
            let detail =
                "a stream ranks for one query, or by liked texts: send several queries as JSON";
            return Err(ApiError::at(Code::InvalidField, "/queries", detail));
        }
        let others = [
            ("/candidates", self.candidates.is_some()),
            ("/collection", self.collection.is_some()),
            ("/coverage", self.coverage.is_some()),
            ("/fuse", self.fuse.is_some()),
            ("/fuse_by", self.fuse_by.is_some()),
        ];
        let detail = "this does not stand in a stream: send the question as JSON";
        refuse_given(others.into_iter().chain(self.of_collections()), detail)
    }

    /// The fields that only rankings of collections have, and whether they are present.
    fn of_collections(&self) -> [(&'static str, bool); 7] {
        [
            ("/filter", self.filter.is_some()),
            ("/event", self.event.is_some()),
            ("/within", self.within.is_some()),
            ("/shortlist", self.shortlist.is_some()),
            ("/boosts", self.boosts.is_some()),
            ("/collapse_by", self.collapse_by.is_some()),
            ("/per_group", self.per_group.is_some()),
        ]
    }

    /// The parts of a ranking that the request uses, for metrics.
    pub(crate) fn parts(&self) -> impl Iterator<Item = RankPart> {
        let boosted = || self.candidates().iter().any(|one| one.boost().is_some());
        let parts = [
            (RankPart::Queries, self.queries.is_some()),
            (RankPart::Like, self.like.is_some()),
            // The items of a collection are excluded when they are looked up.
            (RankPart::Exclude, self.exclude.is_some() && self.collection.is_none()),
            (RankPart::Boost, self.boosts.is_some() || boosted()),
            (RankPart::Collapse, self.collapse.is_some()),
            (RankPart::Diversify, self.diversify.is_some()),
            (RankPart::Explain, self.explain == Some(true)),
            (RankPart::Offset, self.offset.is_some()),
        ];
        parts.into_iter().filter(|(_, is_asked)| *is_asked).map(|(part, _)| part)
    }

    /// The candidates of the request that are ranked.
    pub(super) fn ranked_candidates(&self) -> Candidates<'_, Candidate<'b>> {
        let exclude = self.exclude.as_ref().map_or(&[][..], |list| &list.items);
        let names: HashSet<&CandidateId<'_>> = exclude.iter().collect();
        let all = Candidates::new(self.candidates());
        let ranked = match names.is_empty() {
            true => all,
            false => all.without(|one| one.id().is_some_and(|id| names.contains(id))),
        };
        ranked.boosted(self.boost_by.unwrap_or_default().into(), Candidate::boost)
    }
}

/// Refuses the first of these fields that is present.
fn refuse_given(
    fields: impl IntoIterator<Item = (&'static str, bool)>,
    detail: &'static str,
) -> Result<()> {
    match fields.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(ApiError::at(Code::InvalidField, field, detail)),
        None => Ok(()),
    }
}
