//! `POST /collections/{name}/match`: for each text in turn its nearest items, its event, and then it is
//! added.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine::{Counts, Query};
use cognate::methods::{Info, Kind, Method};
use cognate::window::events::Rule;
use cognate::window::stream::{AddPolicy, Settings};
use cognate::window::{Limits, usual};
use cognate_collections::{Item, MatchOptions};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::api::collections::answers::{Against, MatchedEntry};
use crate::http::api::collections::call::Named;
use crate::http::api::collections::items::{ItemRequest, item_at, within};
use crate::http::api::collections::{call, item};
use crate::http::api::pipeline::{
    ANSWER_HEAD, AnyQuestion, BoxFuture, Endpoint, NUMBER_BYTES, Plan, Question,
};
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{
    Count, List, ModelName, OpposedPolicy, Pool, Score, Share, VectorMethod,
};
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::threshold::Threshold;
use crate::http::request::{body, json};
use crate::http::work::admission::Permit;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Answer;

/// Bytes of the answer to a text beside ids and scores.
const MATCHED_BYTES: usize = 80;
/// Products of bytes that take as long as one of numbers.
const BYTES_A_NUMBER: u64 = 4;
/// The word for no second method.
const NO_SECOND: &str = "none";

/// The options of a match, from a body or a query string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted<'w> {
    pub(crate) model: Option<&'w str>,
    pub(crate) method: Option<&'w str>,
    pub(crate) second: Option<&'w str>,
    pub(crate) last: Option<usize>,
    pub(crate) within: Option<&'w str>,
    pub(crate) threshold: Option<Threshold>,
    pub(crate) nearest: Option<usize>,
    pub(crate) votes: Option<usize>,
    pub(crate) centre: Option<f64>,
    pub(crate) duplicate_score: Option<f64>,
    pub(crate) opposes: Option<OpposedPolicy>,
    pub(crate) add: Option<AddRule>,
    pub(crate) replace: bool,
}

/// Which texts are added to the collection once they are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AddRule {
    /// All of them.
    All,
    /// Those that are duplicates of none.
    New,
    /// None: they are looked up, each as if it were the next.
    None,
}

impl Wanted<'_> {
    /// The model that answers, and how.
    pub(crate) fn resolve(
        &self,
        app: &App,
        models: &Models,
    ) -> Result<(Resolved, MatchOptions), ApiError> {
        let method = self.method.or(Some(Method::AvgCos.name()));
        let resolved = Selection { model: self.model, method, ..Selection::default() };
        let resolved = resolved.resolve(models)?;
        let engine = &resolved.model.engine;
        engine.embedding_dims(resolved.query.method)?;
        let second = match self.second.unwrap_or(usual::SECOND) {
            NO_SECOND => None,
            name => {
                let named = engine.method(name).map_err(ApiError::from);
                Some(named.map_err(|error| error.renamed(|it| it.renamed("method", "/second")))?)
            }
        };
        if let Some(second) = second {
            if second.info().kind == Kind::Ranker {
                let detail = "a method that only ranks does not say how alike two texts are";
                return Err(ApiError::at(Code::MethodOnlyRanks, "/second", detail));
            }
            let checked = engine.check(&Query::new(second)).map_err(ApiError::from);
            checked.map_err(|error| error.renamed(|it| it.renamed("method", "/second")))?;
        }
        let drop_opposed = self.opposes == Some(OpposedPolicy::Drop);
        if drop_opposed {
            resolved.check_tells_opposites("/opposes")?;
        }
        let scoring = second.unwrap_or(resolved.query.method);
        let last = self.last.unwrap_or(usual::LAST);
        let most = app.settings.max_window;
        if last == 0 || last > most {
            let detail = format!("expected a number from 1 to {most} (setting `max_window`)");
            return Err(ApiError::at(Code::OutOfRange, "/last", detail));
        }
        let threshold = self.threshold(scoring, &resolved)?;
        let votes = self.votes.unwrap_or(usual::VOTES);
        let duplicate = match self.duplicate_score {
            Some(score) => {
                check_score(score, scoring, "/duplicate_score")?;
                score as f32
            }
            None => usual::duplicate(scoring),
        };
        let centre = self.centre.map_or(usual::CENTRE, |centre| centre as f32);
        if !(0.0..=1.0).contains(&centre) {
            let detail = "expected a number from 0 to 1";
            return Err(ApiError::at(Code::OutOfRange, "/centre", detail));
        }
        let rule = Rule { threshold, votes, centre, duplicate };
        let stream = Settings {
            method: resolved.query.method,
            second,
            nearest: self.nearest.unwrap_or(usual::NEAREST),
            floor: usual::FLOOR,
            drop_opposed,
            rule,
            limits: Limits { last, within: within(self.within)? },
        };
        let add = match self.add {
            None | Some(AddRule::All) => AddPolicy::All,
            Some(AddRule::New) => AddPolicy::New,
            Some(AddRule::None) => AddPolicy::None,
        };
        Ok((resolved, MatchOptions { stream, add, replace: self.replace }))
    }

    /// The least score at which a text joins an event or is a duplicate.
    fn threshold(&self, scoring: Method, resolved: &Resolved) -> Result<f32, ApiError> {
        let Some(threshold) = self.threshold else {
            return usual::threshold(scoring).ok_or_else(|| {
                let detail = format!(
                    "no usual `threshold` is known for {}: say one, or \"calibrated\"",
                    scoring.name()
                );
                ApiError::at(Code::NotCalibrated, "/threshold", detail)
            });
        };
        if let Threshold::Number(Score(number)) = threshold {
            check_score(number, scoring, "/threshold")?;
        }
        let query = Query::new(scoring);
        let model = Arc::clone(&resolved.model);
        let by_scoring = Resolved { model, query, fused: None };
        Ok(threshold.resolve(&by_scoring, "/threshold")?.least)
    }
}

/// Refuses a score that a method never gives.
fn check_score(score: f64, method: Method, pointer: &'static str) -> Result<(), ApiError> {
    let Info { name, range: (least, most), .. } = method.info();
    if (f64::from(*least)..=f64::from(*most)).contains(&score) {
        return Ok(());
    }
    let detail = format!("expected a number from {least} to {most}, as scores of {name} are");
    Err(ApiError::at(Code::OutOfRange, pointer, detail))
}

/// Multiplications that matching some texts takes, roughly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort {
    /// To look through the window for their nearest, which many texts share.
    scan: u64,
    /// To score the nearest once more, at least and at most.
    second: [u64; 2],
}

impl Effort {
    /// The work of matching texts against items of so many words each.
    pub(crate) fn of<'t>(
        how: &MatchOptions,
        resolved: &Resolved,
        words: u64,
        texts: impl Iterator<Item = &'t str>,
    ) -> Self {
        let Settings { second, nearest, limits, .. } = how.stream;
        let dims = resolved.model.engine.model().dims() as u64;
        let scan = (limits.last as u64).saturating_mul(dims) / BYTES_A_NUMBER;
        let again = |text: &str| {
            let Some(cost) = second.map(|method| &method.info().cost) else { return [0; 2] };
            let each = |cost: fn(u64, u64, u64) -> u64| cost(resolved.words(text), words, dims);
            // Words that repeat make less work than the costs of optimal transport say.
            let both = [each(cost.bound.unwrap_or(cost.candidate)), each(cost.candidate)];
            both.map(|each| each.saturating_mul(nearest as u64))
        };
        texts.fold(Self::default(), |sum, text| {
            let ([least, most], [one, other]) = (sum.second, again(text));
            Self {
                scan: sum.scan.saturating_add(scan),
                second: [least.saturating_add(one), most.saturating_add(other)],
            }
        })
    }

    /// All of it, at least and at most.
    pub(crate) fn bounds(self) -> [u64; 2] {
        self.second.map(|second| self.scan.saturating_add(second))
    }

    /// That of the second look, at most.
    pub(crate) fn second(self) -> u64 {
        self.second[1]
    }
}

/// The body of `POST /collections/{name}/match`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchRequest<'b> {
    /// The texts, each with a name of its own. One that the collection has already has the answer that it
    /// had when it was matched.
    #[serde(borrow)]
    #[schema(value_type = Vec<ItemRequest>, min_items = 1, max_items = 10000)]
    items: List<&'b RawValue>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    /// The method whose vectors find the nearest; `avg-cos` unless this says otherwise.
    #[serde(borrow)]
    method: Option<VectorMethod<'b>>,
    /// A method that scores the nearest once more, or `none`; `coverage` unless this says otherwise.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    second: Option<std::borrow::Cow<'b, str>>,
    /// How many items before a text it is matched against; 2000 unless this says otherwise.
    last: Option<Count>,
    /// None of them that is older than the text by more than this, as `24h`.
    within: Option<String>,
    /// The least score at which a text is near an item and belongs to its event; `min_score` is the same.
    #[serde(alias = "min_score")]
    threshold: Option<Threshold>,
    /// How many of the nearest are looked at; 16 unless this says otherwise.
    nearest: Option<Pool>,
    /// How many items of an event must speak for it on average; 4 unless this says otherwise. An event of
    /// which fewer are in the window needs these, and none needs more than `nearest`.
    votes: Option<Pool>,
    /// The share of an event's score that is the cosine to the mean of its last texts, from 0 to 1; 0
    /// unless this says otherwise.
    centre: Option<Share>,
    /// The least score at which a text is a duplicate of its nearest, whose event it joins; the highest of
    /// the method, which is that of the same words, unless this says otherwise.
    duplicate_score: Option<Score>,
    /// What becomes of items that are opposed to a text. With `drop` they are not among its nearest: they
    /// do not speak for an event, and it is a duplicate of none of them.
    opposes: Option<OpposedPolicy>,
    /// Which texts are added; all unless this says otherwise.
    add: Option<AddRule>,
    /// Whether texts whose names the collection has are matched anew and take the places of those. Without
    /// it another text under such a name is refused.
    replace: Option<bool>,
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
    results: Vec<MatchedEntry<'m>>,
}

pub(crate) struct Matching<'b> {
    against: Arc<Against>,
    request: MatchRequest<'b>,
    /// From when the work is weighed until it is done.
    weighed: Mutex<Option<Weighed>>,
}

/// A match that was weighed.
struct Weighed {
    items: Vec<Item>,
    how: MatchOptions,
    /// The units that the items take beside one each.
    units: Option<Permit>,
}

impl Matching<'_> {
    fn weighed(&self) -> MutexGuard<'_, Option<Weighed>> {
        self.weighed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> Wanted<'_> {
        let request = &self.request;
        Wanted {
            model: request.model.as_ref().map(AsRef::as_ref),
            method: request.method.as_ref().map(AsRef::as_ref),
            second: request.second.as_deref(),
            last: request.last.map(|Count(last)| last),
            within: request.within.as_deref(),
            threshold: request.threshold,
            nearest: request.nearest.map(|Pool(nearest)| nearest),
            votes: request.votes.map(|Pool(votes)| votes),
            centre: request.centre.map(|Share(centre)| centre),
            duplicate_score: request.duplicate_score.map(|Score(score)| score),
            opposes: request.opposes,
            add: request.add,
            replace: request.replace.unwrap_or(false),
        }
    }
}

impl Endpoint for Matching<'_> {
    type Address = Arc<Against>;

    fn may_wait(_: &App) -> bool {
        true
    }

    fn read<'b>(body: &'b [u8], against: &Arc<Against>) -> Result<AnyQuestion<'b>, ApiError> {
        let request = json::read_object(body)?;
        let against = Arc::clone(against);
        Ok(Box::new(Matching { against, request, weighed: Mutex::default() }))
    }
}

impl Question for Matching<'_> {
    fn waits(&self, app: &App) -> bool {
        app.collections.is_remote()
    }

    /// Who only looks waits for nobody.
    fn turn(&self, app: &Arc<App>) -> Option<BoxFuture<Result<Turn, ApiError>>> {
        if self.request.add == Some(AddRule::None) {
            return None;
        }
        let (app, against) = (Arc::clone(app), Arc::clone(&self.against));
        Some(Box::pin(async move { against.turn(&app).await }))
    }

    /// A match may wait for the collection's writer and for a disk.
    fn is_long(&self) -> bool {
        true
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let limit = ("max_texts", app.settings.max_texts);
        let items = &self.request.items;
        pipeline::check_length("/items", "items", items.length, limit)?;
        let (resolved, how) = self.wanted().resolve(app, models)?;
        self.against.check_adds(how.add)?;
        let each = items.items.iter().enumerate().map(item_at);
        let text_bytes = self.against.collection().limits().text_bytes;
        let mut units = None;
        let pay = |more| item::pay_beside(app, &mut units, more, items.length);
        let parsed =
            item::parse(each, (items.length, text_bytes), cognate_collections::now(), pay)?;
        let bytes = parsed.iter().map(|item| item.text.len()).sum();
        let words = self.against.words(&resolved, app).map_err(|error| call::of(&error, ""))?;
        let texts = parsed.iter().map(|item| &*item.text);
        let work = Effort::of(&how, &resolved, words, texts).bounds();
        let each = MATCHED_BYTES + how.stream.nearest * (NUMBER_BYTES + 24);
        *self.weighed() = Some(Weighed { items: parsed, how, units });
        let plan = Plan::at_least(resolved, items.length, bytes, work, app)?;
        plan.answering(ANSWER_HEAD + items.length * each, "/items", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        work.check()?;
        let weighed = self.weighed().take();
        let Weighed { items, how, units: _units } = weighed
            .ok_or_else(|| ApiError::internal("a question was answered before it was weighed"))?;
        let ids: Vec<Box<str>> = items.iter().map(|item| item.id.clone()).collect();
        let resolved = &plan.resolved;
        let matched =
            self.against.follow(resolved, &how, items, (app, work)).map_err(call::of_match)?;
        let engine = &resolved.model.engine;
        answer.write_json(&MatchResponse {
            model: &resolved.model.name,
            method: how.stream.method.name(),
            second: how.stream.second.map(Method::name),
            threshold: how.stream.rule.threshold,
            fingerprint: engine.model().fingerprint(),
            results: ids.iter().zip(&matched).map(|(id, one)| MatchedEntry::of(id, one)).collect(),
        })?;
        // They were counted when they were matched.
        Ok(Counts::default())
    }
}

refusals!(
    MatchRefusals: QUESTION,
    LIST,
    &[
        Code::MethodCannotEmbed, Code::MethodOnlyRanks, Code::NotCalibrated, Code::NotFound, Code::OtherText,
        Code::Forbidden, Code::CollectionFull, Code::ReadOnly, Code::Draining, Code::NotWritten, Code::NotReady, Code::DatabaseUnavailable,
    ]
);

/// For each text in turn its nearest items before it and its event; then it is added.
///
/// What is found is what `cognate events` finds: the nearest among the last items by the cosine of their
/// vectors, exactly, scored once more by a second method; the text joins the event that they speak for,
/// or begins one. All texts of a request are added, or none. A request whose answer was lost is sent
/// again: a text that was matched before has the answer that it had then, and nothing is changed.
///
/// A body of `application/x-ndjson` is a stream of any length: an item a line, and for each at once a
/// line with what was found of it. Its settings stand in the query string. Needs a key of the scope
/// `collection`, where keys are set; with `"add": "none"`, which changes nothing, any key that reaches the
/// collection.
#[utoipa::path(
    post,
    path = "/collections/{name}/match",
    tag = "collections",
    operation_id = "match",
    params(
        ("name" = String, Path, description = "The collection"),
        stream::matching::MatchParameters,
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
    State(app): State<Arc<App>>,
    caller: Caller,
    name: Named<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let collection = call::collection(&app, &caller, name)?;
    if body::is_lines(request.headers()) {
        if app.collections.is_remote() {
            // Else every line would be answered that the collection is unknown.
            let asked = Arc::clone(&collection);
            let look = move || asked.find(&[], cognate_collections::now()).map(drop);
            let look = move || look().map_err(|error| call::of(&error, ""));
            call::look_up((&app, &caller), look)
                .await
                .inspect_err(|error| app.metrics.write_refused(collection.name(), error))?;
        }
        return stream::matching::answer(app, Against::of(collection, caller), request).await;
    }
    let against = Arc::new(Against::of(collection, caller));
    let of_app = Arc::clone(&app);
    let answer = pipeline::answer::<Matching<'_>>(of_app, Arc::clone(&against), request).await?;
    // Items are written by now; the answer waits until they are durable.
    against.wait_durable(&app).await?;
    Ok(answer)
}
