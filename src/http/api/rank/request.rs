//! The body of `POST /rank`, as it is read.

use std::borrow::Cow;

use cognate::engine::{BoostBy, Liked, Likes, Place, Strategy};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::api::pipeline;
use crate::http::api::rank::ItemBoostFields;
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::request::fields;
use crate::http::request::fields::{
    Candidate, CandidateId, Count, DislikedText, FusePart, FuseRule, LikedText, List, MeasureName,
    ModelName, Offset, OpposedPolicy, OppositesRule, Pool, RankMethod, Share, ShortlistLength,
    Text, Weight,
};
use crate::http::request::query::{OovPolicy, Resolved};
use crate::http::request::threshold::Threshold;

/// The body of `POST /rank`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RankRequest<'b> {
    /// What the candidates are compared with. Give one of `query`, `queries` and `like`.
    #[serde(borrow)]
    #[schema(value_type = Option<fields::NonEmptyText>)]
    pub(crate) query: Option<Text<'b>>,
    /// Several of them: the answer has a ranking for each, in order, as each alone would have it.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<fields::NonEmptyText>>, min_items = 1, max_items = 100)]
    pub(crate) queries: Option<List<Text<'b>>>,
    /// Texts that candidates should be like, for methods of the kind `similarity`; their order does not
    /// matter.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<LikedText<'b>>>, min_items = 1, max_items = 100)]
    pub(crate) like: Option<List<LikedText<'b>>>,
    /// Texts that they should not be like, beside `like`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<DislikedText<'b>>>, max_items = 100)]
    pub(crate) unlike: Option<List<DislikedText<'b>>>,
    /// What the scores with several liked texts come to.
    pub(crate) strategy: Option<LikeStrategy>,
    /// What a candidate's best score with a disliked text is multiplied by before it is taken off its
    /// score: 0.5 unless this says otherwise.
    pub(crate) unlike_weight: Option<Weight>,
    /// The candidates. Give either these or `collection`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Candidate<'b>>>, min_items = 1, max_items = 10000)]
    pub(crate) candidates: Option<List<Candidate<'b>>>,
    /// A collection whose items are ranked: all of them, unless `filter`, `event` or `within` says
    /// otherwise.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) collection: Option<Cow<'b, str>>,
    /// Which items of the collection are ranked, by their attributes: an object of conditions, all of
    /// which must hold. `{"lang": "en"}` or `["en", "de"]` asks for a value, `{"year": {"gte": 2020}}`
    /// has any of `eq`, `ne`, `in`, `gt`, `gte`, `lt`, `lte`, `exists`; under `any` stands a list of
    /// filters of which one must hold, under `not` one that must not.
    // Read, and counted, once the collection is known.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    pub(crate) filter: Option<&'b RawValue>,
    /// Only items of the collection that belong to the event of this name.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) event: Option<Cow<'b, str>>,
    /// Only items of the collection whose time is no further back than this: `30s`, `15m`, `24h`, `7d`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) within: Option<Cow<'b, str>>,
    /// How many items of the collection are scored: those nearest by `avg-cos` to the query, to each of
    /// several queries, or to the liked texts by their strategy. Without it 1000 are, or ten times as many
    /// as are wanted, of more than 5,000 items by methods of which that misses next to none of the best, of
    /// more than 200,000 by others; all by a method whose vectors are kept.
    pub(crate) shortlist: Option<ShortlistLength>,
    #[serde(borrow)]
    pub(crate) model: Option<ModelName<'b>>,
    #[serde(borrow)]
    pub(crate) method: Option<RankMethod<'b>>,
    pub(crate) measure: Option<MeasureName>,
    pub(crate) opposites: Option<OppositesRule>,
    /// Most results wanted; of a collection ten unless this says otherwise.
    pub(crate) top_k: Option<Count>,
    /// How many of the first results are passed over: `top_k` results come after them.
    pub(crate) offset: Option<Offset>,
    /// The least score wanted, boosts included: of opposed candidates, too, unless `opposes` leaves them out.
    pub(crate) min_score: Option<Threshold>,
    /// Also tell, of each result that has a score, whether it is related to the query.
    pub(crate) threshold: Option<Threshold>,
    /// Repeat each result's text.
    pub(crate) return_text: Option<bool>,
    pub(crate) oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    pub(crate) truncate: Option<bool>,
    /// Also tell which share of each text's tokens the model lists, by their stem or a part at least.
    pub(crate) coverage: Option<bool>,
    /// The least share of known words of a query or a liked text, as `query_known` tells it: one that has
    /// fewer is taken for one without a known word, so that it ranks nothing.
    pub(crate) min_known: Option<Share>,
    /// Candidates of these names are left out, as if they had not been sent: neither ranked nor listed
    /// under `unscored`. The others keep their `index`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<CandidateId<'b>>>, max_items = 10000)]
    pub(crate) exclude: Option<List<CandidateId<'b>>>,
    /// What a candidate's `boost` does to its score.
    pub(crate) boost_by: Option<BoostRule>,
    /// What counts of the items of the collection beside how alike they are: each boost is a number from 0 to
    /// 1, and a score is the similarity and the boosts by their weights; the weight of the similarity is what the
    /// others leave of 1.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<ItemBoostFields<'b>>>, max_items = 8)]
    pub(crate) boosts: Option<List<ItemBoostFields<'b>>>,
    /// What the boosts of items leave of the similarity.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) similarity_share: Option<f32>,
    /// Several rankings made one, instead of `method`: by methods, and by numbers that the candidates
    /// bring under `scores`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<FusePart<'b>>>, min_items = 1, max_items = 16)]
    pub(crate) fuse: Option<List<FusePart<'b>>>,
    /// How the parts of `fuse` become one.
    pub(crate) fuse_by: Option<FuseRule>,
    /// Candidates at least so much like a better one are folded into it and listed under its
    /// `duplicates`; for methods of the kind `similarity`.
    pub(crate) collapse: Option<Threshold>,
    /// The name of an attribute of the items of the collection, such as their series: of items that have the
    /// same value of it the best alone is a result. Items without it all are.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) collapse_by: Option<Cow<'b, str>>,
    /// Put the best into the order of maximal marginal relevance; for methods of the kind `similarity`.
    pub(crate) diversify: Option<Diversify>,
    /// Also tell, of the first twenty results at most, the words with the largest shares of the score.
    pub(crate) explain: Option<bool>,
    /// Also tell how each result is opposed to the query.
    pub(crate) return_opposes: Option<bool>,
    /// What becomes of candidates that are opposed to the query, whatever their scores.
    pub(crate) opposes: Option<OpposedPolicy>,
}

/// How much results should differ from each other.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diversify {
    /// What a candidate's score counts, against how much it is like results before it: 1 leaves the
    /// order of scores as it is; 0.7 unless this says otherwise.
    pub(crate) lambda: Option<Share>,
    /// How many of the best are reordered, at most 1000; the others follow by their scores. Without it
    /// four times `top_k`, or 1000.
    pub(crate) pool: Option<Pool>,
}

/// What the scores with several liked texts come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LikeStrategy {
    /// The best of the scores, each times its text's weight.
    #[default]
    Best,
    /// The mean of the scores, by the weights.
    Mean,
    /// The sum of the scores, each times its text's weight.
    Sum,
}

impl From<LikeStrategy> for Strategy {
    fn from(strategy: LikeStrategy) -> Self {
        match strategy {
            LikeStrategy::Best => Self::Best,
            LikeStrategy::Mean => Self::Mean,
            LikeStrategy::Sum => Self::Sum,
        }
    }
}

/// What a boost does to a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoostRule {
    /// It is added.
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
    /// The candidates; those of a collection once it was looked at.
    pub(crate) fn candidates(&self) -> &[Candidate<'b>] {
        self.candidates.as_ref().map_or(&[], |list| &list.items)
    }

    /// A request without options: the default model and method, all candidates.
    pub(crate) fn of(query: Text<'b>, candidates: List<Candidate<'b>>) -> Self {
        Self {
            query: Some(query),
            queries: None,
            like: None,
            unlike: None,
            strategy: None,
            unlike_weight: None,
            collapse: None,
            collapse_by: None,
            diversify: None,
            explain: None,
            return_opposes: None,
            opposes: None,
            candidates: Some(candidates),
            collection: None,
            filter: None,
            event: None,
            within: None,
            shortlist: None,
            model: None,
            method: None,
            measure: None,
            opposites: None,
            top_k: None,
            min_score: None,
            threshold: None,
            return_text: None,
            oov: None,
            truncate: None,
            coverage: None,
            min_known: None,
            offset: None,
            exclude: None,
            boost_by: None,
            boosts: None,
            similarity_share: None,
            fuse: None,
            fuse_by: None,
        }
    }
}

/// What candidates are compared with.
pub(crate) enum Asked<'r, 'b> {
    Query(&'r Text<'b>),
    /// Several, a ranking each.
    Queries(&'r [Text<'b>]),
    /// Liked texts and disliked ones.
    Likes(Likes<'r>),
}

impl<'b> RankRequest<'b> {
    /// The text that candidates are compared with, where it is one.
    pub(crate) fn query_text(&self) -> &str {
        self.query.as_ref().map_or("", AsRef::as_ref)
    }

    /// The query, queries or liked texts, or the refusal of fields that exclude each other.
    pub(crate) fn asked(&self) -> Result<Asked<'_, 'b>, ApiError> {
        let wrong = |pointer: &'static str, detail: &'static str| {
            Err(ApiError::at(Code::InvalidField, pointer, detail))
        };
        if self.like.is_none() {
            for (field, is_given) in [
                ("/unlike", self.unlike.is_some()),
                ("/strategy", self.strategy.is_some()),
                ("/unlike_weight", self.unlike_weight.is_some()),
            ] {
                if is_given {
                    return wrong(field, "this stands beside `like` alone");
                }
            }
        }
        let unlike = self.unlike.iter().flat_map(|list| &list.items).map(|one| &one.0);
        let like = self.like.iter().flat_map(|list| &list.items);
        for (field, place, one) in like
            .enumerate()
            .map(|(place, one)| ("/like", place, one))
            .chain(unlike.enumerate().map(|(place, one)| ("/unlike", place, one)))
        {
            if one.id.is_some() {
                let pointer = Pointer::from(field).index(place).field("id");
                let detail = "items are named where `collection` is given";
                return Err(ApiError::at(Code::InvalidField, pointer, detail));
            }
        }
        match (&self.query, &self.queries, &self.like) {
            (Some(query), None, None) => Ok(Asked::Query(query)),
            (None, Some(queries), None) => Ok(Asked::Queries(&queries.items)),
            (None, None, Some(like)) => Ok(Asked::Likes(self.likes(&like.items))),
            (None, None, None) => wrong(
                "",
                "the field `query` is missing; `queries` or `like` may stand in its place",
            ),
            (_, Some(_), _) => wrong("/queries", "give one of `query`, `queries` and `like`"),
            (_, None, Some(_)) => wrong("/like", "give one of `query`, `queries` and `like`"),
        }
    }

    fn likes<'r>(&'r self, like: &'r [LikedText<'b>]) -> Likes<'r> {
        let weight = |liked: &LikedText<'_>| liked.weight.map_or(1.0, |Weight(weight)| weight);
        let liked = |one: &'r LikedText<'b>| Liked { text: one.as_ref(), weight: weight(one) };
        let disliked = self.unlike.iter().flat_map(|list| &list.items);
        Likes {
            liked: like.iter().map(liked).collect(),
            disliked: disliked.map(AsRef::as_ref).collect(),
            strategy: self.strategy.unwrap_or_default().into(),
            unlike_weight: self.unlike_weight.map_or(Likes::UNLIKE_WEIGHT, |Weight(weight)| weight),
        }
    }

    /// Refuses lists of texts that are empty or too long.
    pub(crate) fn check_lengths(&self, app: &App) -> Result<(), ApiError> {
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

    /// Refuses options that the method does not support.
    pub(crate) fn check_method(&self, resolved: &Resolved) -> Result<(), ApiError> {
        if resolved.fused.is_some() && self.queries.is_some() {
            let detail = "rankings are made one for one query: send several queries by themselves";
            return Err(ApiError::at(Code::InvalidField, "/queries", detail));
        }
        resolved.check_page(self.like.is_some(), &self.page_options(resolved)?)?;
        self.least(resolved)?;
        Ok(())
    }

    /// The least similarity at which a candidate is a duplicate of a better one.
    pub(super) fn sameness(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.collapse.map(|threshold| threshold.resolve(resolved, "/collapse"));
        Ok(cutoff.transpose()?.map(|cutoff| cutoff.least))
    }

    /// The texts that candidates are compared with, with their places.
    pub(super) fn asked_places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        let query = self.query.iter().map(|text| (Place::Query, text.as_ref()));
        let queries = self.queries.iter().flat_map(|list| list.items.iter().enumerate());
        let queries = queries.map(|(index, text)| (Place::QueryOf(index), text.as_ref()));
        let like = self.like.iter().flat_map(|list| list.items.iter().enumerate());
        let like = like.map(|(index, text)| (Place::Liked(index), text.as_ref()));
        let unlike = self.unlike.iter().flat_map(|list| list.items.iter().enumerate());
        let unlike = unlike.map(|(index, text)| (Place::Disliked(index), text.as_ref()));
        query.chain(queries).chain(like).chain(unlike)
    }

    /// Number of texts that candidates are compared with.
    pub(super) fn asked_length(&self) -> usize {
        let lengths = [
            self.query.iter().len(),
            self.queries.as_ref().map_or(0, |list| list.items.len()),
            self.like.as_ref().map_or(0, |list| list.items.len()),
            self.unlike.as_ref().map_or(0, |list| list.items.len()),
        ];
        lengths.into_iter().sum()
    }
}
