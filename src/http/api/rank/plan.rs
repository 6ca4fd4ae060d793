//! What a request is refused for, and how much work it is.

use crate::engine::Counts;
use crate::http::api::pipeline;
use crate::http::api::pipeline::ANSWER_HEAD;
use crate::http::api::pipeline::INDEX_BYTES;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::RankResponse;
use crate::http::api::rank::request::BoostRule;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::registry::models::Models;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::CandidateId;
use crate::http::request::fields::Count;
use crate::http::request::fields::MeasureName;
use crate::http::request::json;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
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
        let multiplied = self.boost_by == Some(BoostRule::Multiply);
        for (index, candidate) in self.candidates.items.iter().enumerate() {
            if multiplied && candidate.boost().is_some_and(|boost| boost < 0.0) {
                let detail =
                    "a score is multiplied by a boost of 0 or more; `boost_by` may also be `add`";
                return Err(ApiError::at(
                    Code::OutOfRange,
                    format!("/candidates/{index}/boost"),
                    detail,
                ));
            }
            if candidate.scores().is_some() && !uses_scores {
                let detail = "nothing in the question uses `scores`";
                return Err(ApiError::at(
                    Code::InvalidField,
                    format!("/candidates/{index}/scores"),
                    detail,
                ));
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
        let length = self.candidates.items.len();
        let wanted = self.top_k.map_or(length, |Count(most)| most.min(length));
        let (all, longest) = self
            .candidates
            .items
            .iter()
            .map(bytes_of)
            .fold((0, 0), |(all, longest), bytes| (all + bytes, bytes.max(longest)));
        let share = if self.coverage == Some(true) { SHARE_BYTES } else { 0 };
        let each = RESULT_BYTES + NUMBER_BYTES + INDEX_BYTES + share;
        ANSWER_HEAD
            .saturating_add(wanted.saturating_mul(each))
            .saturating_add(longest.saturating_mul(wanted).min(all))
    }
}

impl Question for RankRequest<'_> {
    type In<'b> = RankRequest<'b>;
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<RankRequest<'b>, ApiError> {
        json::read_object(body)
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let (length, limit) = (self.candidates.length, app.settings.max_candidates);
        pipeline::check_length("/candidates", "candidates", length, ("max_candidates", limit))?;
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            oov: self.oov,
            truncate: self.truncate,
            coverage: self.coverage,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let resolved = self.fused(selection.resolve_ranking(models)?)?;
        self.check_extras(&resolved, app)?;
        resolved.model.engine.check(&resolved.query)?;
        self.least(&resolved)?;
        let query = self.query.as_ref();
        let contenders = self.contenders();
        let texts = contenders.each().map(AsRef::as_ref);
        let bytes = query.len() + texts.clone().map(str::len).sum::<usize>();
        let only_best = self.top_k.is_some() || self.min_score.is_some();
        let multiplications = resolved.multiplications_of_ranking(query, texts, only_best);
        let answer = self.answer_bytes();
        let plan = Plan::at_least(resolved, length, bytes, multiplications, app)?;
        plan.answering(answer, "/candidates", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let (ranking, options, counts) = self.ranking(plan, app, work)?;
        let results = self.results(&ranking, &options);
        answer.write_json(&RankResponse::of(&ranking, results, &plan.resolved))?;
        Ok(counts)
    }
}
