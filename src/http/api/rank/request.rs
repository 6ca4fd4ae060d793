//! The body of `POST /rank`, as it is read.

use std::borrow::Cow;

use cognate::engine::{BoostBy, Strategy};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::request::fields;
use crate::http::request::fields::{
    Candidate, CandidateId, Count, DislikedText, FusePart, FuseRule, LikedText, List, MeasureName,
    ModelName, Offset, Pool, RankMethod, Share, ShortlistLength, Text, Weight,
};
use crate::http::request::query::OovPolicy;
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
    /// A collection whose items are ranked: all of them, unless `filter` or `within` says otherwise.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) collection: Option<Cow<'b, str>>,
    /// Which items of the collection are ranked, by their attributes: an object of conditions, all of
    /// which must hold. `{"lang": "en"}` or `["en", "de"]` asks for a value, `{"year": {"gte": 2020}}`
    /// has any of `eq`, `ne`, `in`, `gt`, `gte`, `lt`, `lte`, `exists`; under `any` stands a list of
    /// filters of which one must hold, under `not` one that must not.
    // Read, and counted meanwhile, once it is known that a collection is asked.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    pub(crate) filter: Option<&'b RawValue>,
    /// Only items of the collection whose time is no further back than this: `30s`, `15m`, `24h`, `7d`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub(crate) within: Option<Cow<'b, str>>,
    /// How many items of the collection are scored: of each text that is asked about, but for disliked
    /// ones, so many are taken that are nearest to it by `avg-cos`, and only these are scored. Without
    /// it all are up to 200,000 items; of a larger collection 1000 are taken, unless the method's vectors
    /// are kept.
    pub(crate) shortlist: Option<ShortlistLength>,
    #[serde(borrow)]
    pub(crate) model: Option<ModelName<'b>>,
    #[serde(borrow)]
    pub(crate) method: Option<RankMethod<'b>>,
    pub(crate) measure: Option<MeasureName>,
    /// Most results wanted; of a collection ten unless this says otherwise.
    pub(crate) top_k: Option<Count>,
    /// How many of the first results are passed over: `top_k` results come after them.
    pub(crate) offset: Option<Offset>,
    /// The least score wanted, boosts included.
    pub(crate) min_score: Option<Threshold>,
    /// Repeat each result's text.
    pub(crate) return_text: Option<bool>,
    pub(crate) oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    pub(crate) truncate: Option<bool>,
    /// Also tell which share of each text's tokens the model lists, by their stem or a part at least.
    pub(crate) coverage: Option<bool>,
    /// Candidates of these names are left out, as if they had not been sent: neither ranked nor listed
    /// under `unscored`. The others keep their `index`.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<CandidateId<'b>>>, max_items = 10000)]
    pub(crate) exclude: Option<List<CandidateId<'b>>>,
    /// What a candidate's `boost` does to its score.
    pub(crate) boost_by: Option<BoostRule>,
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
    /// Put the best into the order of maximal marginal relevance; for methods of the kind `similarity`.
    pub(crate) diversify: Option<Diversify>,
    /// Also tell, of the first twenty results at most, the words with the largest shares of the score.
    pub(crate) explain: Option<bool>,
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

    /// All candidates in order, as the default model and method have it.
    pub(crate) fn of(query: Text<'b>, candidates: List<Candidate<'b>>) -> Self {
        Self {
            query: Some(query),
            queries: None,
            like: None,
            unlike: None,
            strategy: None,
            unlike_weight: None,
            collapse: None,
            diversify: None,
            explain: None,
            candidates: Some(candidates),
            collection: None,
            filter: None,
            within: None,
            shortlist: None,
            model: None,
            method: None,
            measure: None,
            top_k: None,
            min_score: None,
            return_text: None,
            oov: None,
            truncate: None,
            coverage: None,
            offset: None,
            exclude: None,
            boost_by: None,
            fuse: None,
            fuse_by: None,
        }
    }
}
