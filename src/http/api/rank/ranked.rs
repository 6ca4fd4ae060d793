//! A question to `/rank` about candidates of the request or about the items of a collection.

use cognate::engine::rank::{Asked, Question};
use cognate::engine::{Candidates, Counts};
use cognate_collections::rank::RankedItem;

use crate::http::api::cost::Cost;
use crate::http::api::pipeline::{Endpoint, NUMBER_BYTES};
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, PlanContext, Planned, Threads};
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::fused::runs;
use crate::http::api::rank::held::Held;
use crate::http::api::rank::item_ranking::ItemRanking;
use crate::http::api::rank::response::{RankResponse, RankedCandidate, RankingsResponse};
use crate::http::api::rank::run::{compute, weigh};
use crate::http::api::rank::texts::TEXT_BYTES;
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer, Result, Segment};
use crate::http::observe::metrics::RankPart;
use crate::http::request::fields::{Candidate, CandidateId};
use crate::http::request::json;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes that an answer adds around an id: `"id":"",`.
const ID_BYTES: usize = 8;
/// Bytes that an answer adds before a candidate's data: `,"data":`.
const DATA_BYTES: usize = 8;

pub(crate) struct Ranked<'b> {
    request: RankRequest<'b>,
    caller: Caller,
}

impl<'b> Ranked<'b> {
    pub(super) fn new(request: RankRequest<'b>, caller: Caller) -> Self {
        Self { request, caller }
    }
}

struct PlannedRanking<'b> {
    request: RankRequest<'b>,
    question: Question<'b>,
    resolved: Resolved,
    cost: Cost,
    /// The collection's items, if a collection is ranked.
    held: Option<Held>,
}

/// An item's error has no position in the body, so it is reported as an error of the collection.
fn of_items(mut error: ApiError) -> ApiError {
    for fault in &mut error.faults {
        if let [Segment::Field("candidates"), ..] = fault.pointer.segments() {
            fault.pointer = "/collection".into();
        }
    }
    error
}

impl Endpoint for Ranked<'_> {
    type Address = Caller;

    fn read<'b>(body: &'b [u8], caller: &Caller) -> Result<AnyAsk<'b>> {
        Ok(Box::new(Ranked::new(json::read_object(body)?, caller.clone())))
    }
}

impl Ask for Ranked<'_> {
    fn collection(&self) -> Option<&str> {
        self.request.collection.as_deref()
    }

    /// Searching a large collection holds a thread for longer than the runtime can spare.
    fn threads(&self, app: &App) -> Threads {
        match (self.request.collection.is_some(), app.collections.is_remote()) {
            (false, _) => Threads::Here,
            (true, false) => Threads::Pool,
            (true, true) => Threads::Waiting,
        }
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let Self { request, caller } = *self;
        if request.collection.is_some() && request.candidates.is_some() {
            let detail = "give either `candidates` or `collection`";
            return Err(ApiError::at(Code::InvalidField, "/candidates", detail));
        }
        let planned = match &request.collection {
            Some(name) => plan_items(&request, (&caller, name), context).map_err(of_items),
            None => plan_candidates(&request, context),
        };
        let planned = planned.map_err(|error| error.renamed(|at| place(&request, at)));
        let (question, resolved, cost, held) = planned?;
        Ok(Box::new(PlannedRanking { request, question, resolved, cost, held }))
    }
}

type Plan<'b> = (Question<'b>, Resolved, Cost, Option<Held>);

fn plan_items<'b>(
    request: &RankRequest<'b>,
    (caller, name): (&Caller, &str),
    context: &PlanContext<'_>,
) -> Result<Plan<'b>> {
    let app = context.app;
    if let Some(list) = &request.exclude {
        let (most, length) = (app.settings.max_candidates, list.length);
        if length > most {
            let (code, what) = (Code::TooManyItems, "ids to exclude");
            return Err(ApiError::beyond(code, "/exclude", what, most, length));
        }
    }
    let resolved = request.resolve(context.models)?;
    request.check_extras(&resolved, app)?;
    let engine = &resolved.model.engine;
    engine.check(&resolved.query)?;
    let (question, held) = Held::new(request, &resolved, (caller, name), (app, context.job))?;
    let cost = {
        let (items, kept) = (held.found.ranked(), held.ranks_kept(&question, engine));
        let bytes_of = |RankedItem(item): &RankedItem<'_>| {
            let data = item.data.as_deref().map(|data| data.get());
            result_bytes(request, &item.text, Some(item.id.len()), data)
        };
        weigh(&question, &Candidates::new(&items), &resolved, (bytes_of, kept), app)?
    };
    Ok((question, resolved, cost, Some(held)))
}

fn plan_candidates<'b>(request: &RankRequest<'b>, context: &PlanContext<'_>) -> Result<Plan<'b>> {
    let app = context.app;
    request.check_candidates(app)?;
    let asked = request.asked(None)?;
    request.check_lengths(app)?;
    let resolved = request.resolve(context.models)?;
    request.check_extras(&resolved, app)?;
    let engine = &resolved.model.engine;
    engine.check(&resolved.query)?;
    let question = request.question(asked, &resolved)?;
    let bytes_of = |candidate: &Candidate<'_>| {
        let id = candidate.id().map(|id| match id {
            CandidateId::Text(id) => id.len(),
            CandidateId::Number(_) => NUMBER_BYTES,
        });
        let data = candidate.data().map(|data| data.written());
        result_bytes(request, candidate.as_ref(), id, data)
    };
    let candidates = request.ranked_candidates();
    let cost = weigh(&question, &candidates, &resolved, (bytes_of, false), app)?;
    drop(candidates);
    Ok((question, resolved, cost, None))
}

fn result_bytes(
    request: &RankRequest<'_>,
    text: &str,
    id: Option<usize>,
    data: Option<&str>,
) -> usize {
    let with_text = request.return_text.unwrap_or(false);
    let text = if with_text { TEXT_BYTES + text.len() } else { 0 };
    let data = data.map_or(0, |data| DATA_BYTES + data.len());
    text + data + id.map_or(0, |id| ID_BYTES + id)
}

/// The text of a candidate or a liked text given as an object is in the field `text`.
fn place(request: &RankRequest<'_>, pointer: Pointer) -> Pointer {
    let is_object = match *pointer.segments() {
        [Segment::Field("candidates"), Segment::Index(index)] => {
            matches!(request.candidates().get(index), Some(Candidate::Named(_)))
        }
        [Segment::Field("like"), Segment::Index(index)] => {
            request.liked().get(index).is_some_and(|liked| liked.named)
        }
        _ => false,
    };
    if is_object { pointer.field("text") } else { pointer }
}

impl Planned for PlannedRanking<'_> {
    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn answer(
        self: Box<Self>,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        self.request.parts().for_each(|part| app.metrics.ranked_with(part));
        let answered = match &self.held {
            Some(held) => self.answer_items(held, app, job, answer).map_err(of_items),
            None => self.answer_candidates(app, job, answer),
        };
        answered.map_err(|error| error.renamed(|at| place(&self.request, at)))
    }
}

impl PlannedRanking<'_> {
    fn answer_items(
        &self,
        held: &Held,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        let Self { request, question, resolved, cost, .. } = self;
        app.metrics.ranked_with(RankPart::Collection);
        if held.found.shortlist.is_some() {
            app.metrics.ranked_with(RankPart::Shortlist);
        }
        let made = held.pages(request, question, (resolved, cost), (app, job))?;
        let name = request.collection.as_deref().unwrap_or_default();
        let shown = (name, request.return_text.unwrap_or(false));
        answer.write_json(&ItemRanking::new(&made, held, resolved, shown, &question.asked))?;
        Ok(made.counts)
    }

    fn answer_candidates(
        &self,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        let Self { request, question, resolved, cost, .. } = self;
        let mut candidates = request.ranked_candidates();
        if let Some(fusion) = &question.fusion {
            let runs = runs(fusion, &candidates)?;
            candidates = candidates.with_runs(runs);
        }
        let planned = (resolved, cost, app.settings.tokens_total);
        let made = compute(question, &candidates, planned, app, job)?;
        let (all, with_text) = (request.candidates(), request.return_text.unwrap_or(false));
        let candidate = |index: usize| {
            let candidate = all.get(index);
            (candidate.filter(|_| with_text).map(AsRef::as_ref), candidate)
        };
        if matches!(question.asked, Asked::Each(_)) {
            let each = made.pages.iter().map(|page| (page, RankedCandidate::all(page, candidate)));
            answer.write_json(&RankingsResponse::new(each, resolved))?;
        } else if let Some(page) = made.one() {
            let results = RankedCandidate::all(page, candidate);
            answer.write_json(&RankResponse::new(page, results, &made.unscored, resolved))?;
        }
        Ok(made.counts)
    }
}
