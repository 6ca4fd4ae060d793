//! `POST /collections/{name}/match`: finds for each text in turn its nearest items and its event,
//! and then adds it.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::{Counts, Opposites};
use cognate::methods::Method;
use cognate::window::options::{Least, Options};
use cognate::window::stream::{AddPolicy, Settings};
use cognate::window::usual::Preset;
use cognate_collections::{Item, ItemProblem};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::api::collections::answers::{Against, MatchedEntry, is_none_of_them};
use crate::http::api::collections::call::Named;
use crate::http::api::collections::items::{ItemRequest, item_at};
use crate::http::api::collections::match_options::{Effort, MatchParameters, Matching};
use crate::http::api::collections::{call, item};
use crate::http::api::cost::Cost;
use crate::http::api::pipeline::{ANSWER_HEAD, Endpoint};
use crate::http::api::question::{
    AnyAsk, AnyPlanned, Ask, BoxFuture, PlanContext, Planned, Threads,
};
use crate::http::api::stream::Failure;
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::openapi::refusals::{COLLECTION, LIST, QUESTION, WRITE, refusals};
use crate::http::request::fields::{
    Count, List, ModelName, OpposedPolicy, Pool, Score, Share, VectorMethod,
};
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Threshold;
use crate::http::request::{body, json};
use crate::http::work::admission::Permit;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Answer;

/// The body of `POST /collections/{name}/match`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct MatchRequest<'b> {
    /// The texts, each with an `id` of its own. A text that the collection has already gets the answer
    /// that it had when it was matched.
    #[schema(value_type = Vec<ItemRequest>, min_items = 1, max_items = 10000)]
    items: List<&'b RawValue>,
    model: Option<ModelName<'b>>,
    /// The method whose vectors find the nearest items; default: `avg-cos`.
    method: Option<VectorMethod<'b>>,
    /// The kind of stream, which sets the defaults: `topics` of any size among noise, or `stories` of a few
    /// posts each; default: `topics`.
    preset: Option<Preset>,
    /// A method that scores the nearest items again, or `none`; default: for topics `same-event` where
    /// the model was fitted for it, else `coverage`.
    #[schema(value_type = Option<String>)]
    second: Option<std::borrow::Cow<'b, str>>,
    /// How many items before a text it is matched against; default: 2000.
    last: Option<Count>,
    /// None of them that is earlier or later than the text by more than this, as `24h`.
    within: Option<String>,
    /// The least score at which a text is near an item and belongs to its event; `min_score` is the same.
    #[serde(alias = "min_score")]
    threshold: Option<Threshold>,
    /// How many of the nearest items are looked at; default: 16.
    nearest: Option<Pool>,
    /// How many items of an event must speak for it on average; default: 4. An event with fewer items in
    /// the window needs only these, and no event needs more than `nearest`.
    votes: Option<Pool>,
    /// The share of an event's score that is the cosine to the mean of its last texts, from 0 to 1;
    /// default: 0.
    centre: Option<Share>,
    /// The least score at which a text is a duplicate of its nearest, whose event it joins; default: the
    /// highest of the method, which is that of the same words.
    duplicate_score: Option<Score>,
    /// What is done with items that are opposed to a text. With `drop` they are not among its nearest:
    /// they do not speak for an event, and it is a duplicate of none of them.
    opposes: Option<OpposedPolicy>,
    /// Which opposed items `drop` leaves out. Default: `without_names`, all but items that differ in a name
    /// alone; `count`: all.
    opposites: Option<Opposites>,
    /// Which texts are added; default: all.
    add: Option<AddPolicy>,
    /// Whether texts whose names the collection has are matched anew and take the places of those. Without
    /// it another text under such a name is refused.
    replace: Option<bool>,
    /// A filter, as in `/rank`, of the items that texts are matched against; it must admit the added texts.
    #[schema(value_type = Option<Object>)]
    filter: Option<&'b RawValue>,
    /// Whether each answer says why the text has its event.
    explain: Option<bool>,
}

/// Texts that were matched.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MatchResponse<'m> {
    /// The model's name.
    model: &'m str,
    /// The method whose vectors found the nearest.
    method: &'static str,
    /// The method that scored them once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<&'static str>,
    /// The least score of those that are near.
    threshold: f32,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'m str,
    /// One a text, in order.
    results: Vec<MatchResult<'m>>,
    /// How many of them are too old for the collection's `ttl`.
    #[serde(skip_serializing_if = "is_none_of_them")]
    expired: usize,
    /// Items that left: there are newer ones, or the collection's clock went on past their `ttl`.
    #[serde(skip_serializing_if = "is_none_of_them")]
    left: usize,
}

/// What was found of a text; or why it was not matched, where it is empty or too long.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum MatchResult<'m> {
    Matched(MatchedEntry<'m>),
    Refused(RefusedEntry<'m>),
}

/// A text that was not matched.
#[derive(Debug, Serialize, ToSchema)]
struct RefusedEntry<'m> {
    /// The id.
    id: &'m str,
    /// Why.
    error: Failure<'m>,
}

impl MatchRequest<'_> {
    fn options(&self) -> Result<Options<'_>> {
        Ok(Options {
            preset: self.preset,
            method: self.method.as_ref().map(AsRef::as_ref),
            second: self.second.as_deref(),
            last: self.last.map(|Count(last)| last),
            within: call::within(self.within.as_deref())?,
            threshold: self.threshold.map(Least::from),
            nearest: self.nearest.map(|Pool(nearest)| nearest),
            votes: self.votes.map(|Pool(votes)| votes),
            centre: self.centre.map(|Share(centre)| centre),
            duplicate_score: self.duplicate_score.map(|Score(score)| score),
            drop_opposed: self.opposes == Some(OpposedPolicy::Drop),
            opposites: self.opposites,
        })
    }
}

struct MatchQuestion<'b> {
    against: Arc<Against>,
    request: MatchRequest<'b>,
}

impl Endpoint for MatchQuestion<'_> {
    type Address = Arc<Against>;

    fn read<'b>(body: &'b [u8], against: &Arc<Against>) -> Result<AnyAsk<'b>> {
        let (request, against) = (json::read_object(body)?, Arc::clone(against));
        Ok(Box::new(MatchQuestion { against, request }))
    }
}

impl Ask for MatchQuestion<'_> {
    /// A match may wait for the collection's writer and for a disk, or for another machine.
    fn threads(&self, app: &App) -> Threads {
        if app.collections.is_remote() { Threads::Waiting } else { Threads::Pool }
    }

    /// A match that adds nothing waits for nobody, and a caller that may not write blocks nobody.
    fn turn(&self) -> Option<BoxFuture<Result<Turn>>> {
        if self.request.add == Some(AddPolicy::None) {
            return None;
        }
        let (against, add) = (Arc::clone(&self.against), self.request.add.unwrap_or_default());
        Some(Box::pin(async move {
            against.check_adds(add)?;
            against.turn().await
        }))
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let Self { against, request } = *self;
        let (app, list) = (context.app, &request.items);
        let limit = ("max_texts", app.settings.max_texts);
        pipeline::check_length("/items", "items", list.length, limit)?;
        let model = request.model.as_ref().map(AsRef::as_ref);
        let items = (call::filter(request.filter.map(RawValue::get))?, request.add);
        let (options, switches) = (request.options()?, [request.explain, request.replace]);
        let matching = Matching::new(model, &options, context.models, items, switches)?;
        against.check(&matching.how)?;
        let each = list.items.iter().enumerate().map(item_at);
        let text_bytes = against.collection().limits().text_bytes;
        let mut units = None;
        let pay = |more| item::pay_beside(app, &mut units, more, list.length);
        let mut refused = Vec::new();
        // A text without words is no error of the request, and does not block others.
        let refuse = |at, id: Box<str>, problem: &ItemProblem| match problem.field {
            "/text" => {
                refused.push((at, id, call::of_item(problem, "")));
                Ok(())
            }
            _ => Err(call::of_item(problem, Pointer::from("/items").index(at))),
        };
        let size = (list.length, text_bytes);
        let items = item::parse(each, size, cognate_collections::now(), pay, refuse)?;
        let bytes = items.iter().map(|item| item.text.len()).sum();
        let words = against.words(&matching.resolved)?;
        let work = Effort::new(&matching, words, items.iter().map(|item| &*item.text)).bounds();
        let answer = ANSWER_HEAD + list.length * matching.answer_bytes();
        let cost = Cost::new(&matching.resolved, list.length, bytes, work, app)?;
        let cost = cost.answering(answer, "/items", app)?;
        Ok(Box::new(PlannedMatch { against, matching, items, refused, cost, _units: units }))
    }
}

struct PlannedMatch {
    against: Arc<Against>,
    matching: Matching,
    items: Vec<Item>,
    /// The indices and ids of texts that are not matched, and why.
    refused: Vec<(usize, Box<str>, ApiError)>,
    cost: Cost,
    /// The units that the items take beyond one each.
    _units: Option<Permit>,
}

impl Planned for PlannedMatch {
    fn resolved(&self) -> &Resolved {
        &self.matching.resolved
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn answer(
        self: Box<Self>,
        _: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        job.check()?;
        let Self { against, matching, items, refused, _units, .. } = *self;
        let ids: Vec<Box<str>> = items.iter().map(|item| item.id.clone()).collect();
        let matched = against.follow(&matching, items, job).map_err(|refusal| {
            let place = |index| {
                refused.iter().fold(index, |at, (place, ..)| at + usize::from(*place <= at))
            };
            call::of_match(refusal, place)
        })?;
        let (mut left_out, mut found) = (refused.iter().peekable(), ids.iter().zip(&matched));
        let results = (0..ids.len() + refused.len()).filter_map(|at| {
            if let Some((_, id, error)) = left_out.next_if(|(place, ..)| *place == at) {
                return Some(MatchResult::Refused(RefusedEntry { id, error: error.into() }));
            }
            let (id, one) = found.next()?;
            let mut entry = MatchedEntry::new(id, one);
            // Reported once, for all of them together.
            entry.left = 0;
            Some(MatchResult::Matched(entry))
        });
        let Settings { method, second, rule, .. } = matching.how.stream;
        answer.write_json(&MatchResponse {
            model: &matching.resolved.model.name,
            method: method.name(),
            second: second.map(Method::name),
            threshold: rule.threshold,
            fingerprint: matching.resolved.model.engine.model().fingerprint(),
            results: results.collect(),
            expired: matched.iter().filter(|one| one.expired).count(),
            left: matched.iter().map(|one| one.left).sum(),
        })?;
        // They were counted when they were matched.
        Ok(Counts::default())
    }
}

refusals!(
    MatchRefusals: QUESTION, LIST, &[Code::MethodCannotEmbed],
    &[Code::MethodOnlyRanks, Code::NotCalibrated, Code::OtherText, Code::CollectionFull],
    WRITE, COLLECTION
);

/// Finds for each text in turn the nearest earlier items and its event, then adds the text.
///
/// What is found is what `cognate events` finds: the nearest among the last items by the cosine of their
/// vectors, exactly, scored once more by a second method; the text joins the event that they speak for,
/// or begins one. All texts of a request are added, or none; one that is empty or too long is answered by
/// its own `error`, and the others are matched. A request whose answer was lost is sent
/// again: a text that was matched before has the answer that it had then, and nothing is changed.
///
/// A body of `application/x-ndjson` is a stream of any length: an item a line, and for each at once a
/// line with what was found of it. Its settings, and no others, stand in the query string. Needs a key of the scope
/// `collection`, where keys are set; with `"add": "none"`, which changes nothing, any key that reaches the
/// collection.
#[utoipa::path(
    post,
    path = "/collections/{name}/match",
    tag = "collections",
    operation_id = "match",
    params(
        ("name" = String, Path, description = "The collection"),
        MatchParameters,
    ),
    request_body(content(
        (MatchRequest<'_> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "What was found", content(
            (MatchResponse<'_> = "application/json"),
            (String = "application/x-ndjson"),
        )),
        MatchRefusals,
    ),
)]
pub(crate) async fn matching(
    Named { call, collection, .. }: Named,
    request: Request,
) -> Result<Response> {
    let app = Arc::clone(&call.app);
    if body::is_lines(request.headers()) {
        if app.collections.is_remote() {
            // Otherwise every line would be answered that the collection is unknown.
            let asked = Arc::clone(&collection);
            let look = call
                .again()
                .look_up(move |_| Ok(asked.find(&[], cognate_collections::now()).map(drop)?));
            look.await.inspect_err(|error| app.metrics.write_refused(collection.name(), error))?;
        }
        return stream::matching::answer(Against::new(call, collection), request);
    }
    let against = Arc::new(Against::new(call, collection));
    let answer = pipeline::answer::<MatchQuestion<'_>>(app, Arc::clone(&against), request).await?;
    // Items are written by now; the answer waits until they are durable.
    against.wait_durable().await?;
    Ok(answer)
}
