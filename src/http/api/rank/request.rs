//! The body of `POST /rank`, as it is read.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::engine::BoostBy;
use crate::http::request::fields;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::CandidateId;
use crate::http::request::fields::Count;
use crate::http::request::fields::FusePart;
use crate::http::request::fields::FuseRule;
use crate::http::request::fields::List;
use crate::http::request::fields::MeasureName;
use crate::http::request::fields::ModelName;
use crate::http::request::fields::Offset;
use crate::http::request::fields::RankMethod;
use crate::http::request::fields::Text;
use crate::http::request::query::OovPolicy;
use crate::http::request::threshold::Threshold;

/// The body of `POST /rank`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RankRequest<'b> {
    /// What the candidates are compared with.
    #[serde(borrow)]
    #[schema(value_type = fields::NonEmptyText)]
    pub(crate) query: Text<'b>,
    /// The candidates.
    #[serde(borrow)]
    #[schema(value_type = Vec<Candidate<'b>>, min_items = 1, max_items = 10000)]
    pub(crate) candidates: List<Candidate<'b>>,
    #[serde(borrow)]
    pub(crate) model: Option<ModelName<'b>>,
    #[serde(borrow)]
    pub(crate) method: Option<RankMethod<'b>>,
    pub(crate) measure: Option<MeasureName>,
    /// Most results wanted.
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
    /// All candidates in order, as the default model and method have it.
    pub(crate) fn of(query: Text<'b>, candidates: List<Candidate<'b>>) -> Self {
        Self {
            query,
            candidates,
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
