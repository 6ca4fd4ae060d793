//! A question to `/rank` about candidates of the request or about the items of a collection.

use std::sync::OnceLock;

use cognate::engine::Counts;
use cognate_collections::Cancellation;

use crate::http::api::collections::call;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::AnyAsk;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::held::Held;
use crate::http::api::rank::item_ranking::ItemRanking;
use crate::http::api::rank::plan::Computed;
use crate::http::api::rank::read_as::ReadAs;
use crate::http::api::unplanned::{Plan, Question, unplanned};
use crate::http::app::App;
use crate::http::auth::access::Caller;
use crate::http::error::{ApiError, Code, Pointer, Segment};
use crate::http::observe::metrics::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::json;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// A question to `/rank`.
pub(crate) struct Ranked<'b> {
    request: RankRequest<'b>,
    caller: Caller,
    /// Whether some query for candidates of the request is read as other words, if there are any.
    guesses: OnceLock<bool>,
    /// The items found in the collection, once they were looked up.
    held: OnceLock<Held>,
}

/// What is told by the vectors of the items, which are kept for the next question; by their texts where
/// there is no memory for them.
fn told_of_kept(
    asked: &RankRequest<'_>,
    held: &Held,
    plan: &Plan,
    (app, work): (&App, &JobContext),
) -> Result<Computed, ApiError> {
    let (engine, method) = (&plan.resolved.model.engine, plan.resolved.query.method);
    let is_cancelled = || work.check().is_err();
    let cancel = Cancellation::when(&is_cancelled);
    let vectors = held.collection.vectors(engine, method, &held.items, cancel);
    let vectors = vectors.map_err(|error| call::of_choice(error, call::of_named, work))?;
    let kept = vectors.as_ref().and_then(|vectors| {
        held.items.iter().map(|(number, _)| vectors.of(*number)).collect::<Option<Vec<_>>>()
    });
    asked.told(plan, app, work, kept.as_deref())
}

/// A fault of an item has no place in the body, so it is a fault of the collection.
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

    fn read<'b>(body: &'b [u8], caller: &Caller) -> Result<AnyAsk<'b>, ApiError> {
        let (request, caller) = (json::read_object(body)?, caller.clone());
        let (guesses, held) = (OnceLock::new(), OnceLock::new());
        Ok(unplanned(Ranked { request, caller, guesses, held }))
    }
}

impl Question for Ranked<'_> {
    fn waits(&self, app: &App) -> bool {
        self.request.collection.is_some() && app.collections.is_remote()
    }

    /// Looking through a large collection holds a thread for longer than the runtime can spare.
    fn is_long(&self) -> bool {
        self.request.collection.is_some()
    }

    fn collection(&self) -> Option<&str> {
        self.request.collection.as_deref()
    }

    fn look_up(&self, app: &App, models: &Models, work: &JobContext) -> Result<(), ApiError> {
        let Some(name) = &self.request.collection else { return Ok(()) };
        if self.request.candidates.is_some() {
            let detail = "give either `candidates` or `collection`";
            return Err(ApiError::at(Code::InvalidField, "/candidates", detail));
        }
        if let Some(list) = &self.request.exclude {
            let (most, length) = (app.settings.max_candidates, list.length);
            if length > most {
                let (code, what) = (Code::TooManyItems, "ids to exclude");
                return Err(ApiError::beyond(code, "/exclude", what, most, length));
            }
        }
        let held = Held::of(&self.request, (&self.caller, name), (app, models, work))?;
        // A question is looked up once.
        let _ = self.held.set(held);
        Ok(())
    }

    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        self.request.pointer_in_body(pointer)
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        match self.held.get() {
            Some(held) => self.request.over(held).plan(app, models).map_err(of_items),
            None => {
                let plan = self.request.plan(app, models)?;
                let texts = self.request.candidates().iter().map(AsRef::<str>::as_ref);
                let bytes = || texts.map(str::len).sum();
                let guessing = self.request.guessing(&plan.resolved, bytes, app);
                // A question is planned once.
                let _ = self.guesses.set(guessing.is_some());
                match guessing {
                    Some(work) => plan.heavier(work, app),
                    None => Ok(plan),
                }
            }
        }
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let Some(held) = self.held.get() else {
            let candidates = self.request.candidates().iter().map(AsRef::as_ref);
            let read_as = match self.guesses.get() {
                Some(true) => self.request.read_as(&plan.resolved, candidates),
                _ => ReadAs::new(),
            };
            let told = match &*read_as {
                [] => self.request.told(plan, app, work, None)?,
                read_as => self.request.reading(read_as).told(plan, app, work, None)?,
            };
            return self.request.tell(&told, &read_as, plan, answer);
        };
        app.metrics.ranked_with(RankPart::Collection);
        if held.shortlist.is_some() {
            app.metrics.ranked_with(RankPart::Shortlist);
        }
        let asked = self.request.over(held);
        let told = match asked.keeps_vectors(&plan.resolved) {
            false => asked.told(plan, app, work, None),
            true => told_of_kept(&asked, held, plan, (app, work)),
        };
        let told = told.map_err(of_items)?;
        let return_text = asked.return_text.unwrap_or(false);
        let name = self.request.collection.as_deref().unwrap_or_default();
        let ranking = ItemRanking::of(
            &told,
            held,
            &plan.resolved,
            (name, return_text),
            asked.queries.is_some(),
        );
        answer.write_json(&ranking)?;
        Ok(told.counts)
    }
}
