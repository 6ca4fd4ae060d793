//! A question whose candidates are the items of a collection, or stand in the request as ever.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::OnceLock;

use crate::collection;
use crate::collection::Collection;
use crate::collection::Filter;
use crate::collection::Item;
use crate::engine::Counts;
use crate::http::api::collections::items::oldest;
use crate::http::api::collections::refusal;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::items::ItemRanking;
use crate::http::api::rank::plan::Told;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::observe::rank_parts::RankPart;
use crate::http::registry::models::Models;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::CandidateId;
use crate::http::request::fields::Count;
use crate::http::request::fields::DislikedText;
use crate::http::request::fields::LikedText;
use crate::http::request::fields::List;
use crate::http::request::fields::Text;
use crate::http::request::json;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Results of a collection unless a request says otherwise.
const RESULTS: usize = 10;

/// A question to `/rank`.
pub(crate) struct Ranked<'b> {
    request: RankRequest<'b>,
    /// What was found in the collection, once the question was weighed.
    held: OnceLock<Held>,
}

/// What a question finds in a collection.
pub(super) struct Held {
    /// The collection.
    collection: Arc<Collection>,
    /// The items that are ranked, with their numbers.
    pub(super) items: Vec<(u64, Arc<Item>)>,
    /// The items that are liked and disliked, by their places in the request.
    liked: Vec<Option<Arc<Item>>>,
    disliked: Vec<Option<Arc<Item>>>,
}

impl Held {
    /// What is asked of a collection.
    fn of(request: &RankRequest<'_>, name: &str, app: &App) -> Result<Self, ApiError> {
        let collection = app.collections.get(name).map_err(|_| {
            let detail = "there is no collection of this name; GET /collections lists them";
            ApiError::at(Code::UnknownCollection, "/collection", detail)
        })?;
        let now = collection::now();
        let oldest = oldest(request.within.as_deref(), now)?;
        let filter = request.filter.as_ref().map(Filter::read).transpose();
        let filter = filter.map_err(|problem| refusal::of_filter(&problem, "/filter"))?;
        let filter = filter.unwrap_or_default();
        let find = |list: Vec<Option<Cow<'_, str>>>, field: &str| {
            let find = |(place, id): (usize, Option<Cow<'_, str>>)| {
                let find = |id: Cow<'_, str>| item(&collection, &id, now, field, place);
                id.map(find).transpose()
            };
            list.into_iter().enumerate().map(find).collect::<Result<Vec<_>, ApiError>>()
        };
        let liked = request.like.iter().flat_map(|list| &list.items);
        let liked = liked.map(|liked| liked.id.as_ref().map(CandidateId::digits)).collect();
        let disliked = request.unlike.iter().flat_map(|list| &list.items);
        let disliked = disliked.map(|one| one.0.id.as_ref().map(CandidateId::digits)).collect();
        let (liked, disliked) = (find(liked, "like")?, find(disliked, "unlike")?);
        // What is liked is known already, and what is excluded is not wanted.
        let named = liked.iter().chain(&disliked).flatten().map(|item| Cow::from(&*item.id));
        let excluded = request.exclude.iter().flat_map(|list| &list.items);
        let left_out: HashSet<Cow<'_, str>> =
            named.chain(excluded.map(CandidateId::digits)).collect();
        let view = collection.view(now);
        let items = view.numbered().filter(|(_, item)| {
            oldest.is_none_or(|oldest| item.time >= oldest)
                && (filter.is_empty() || filter.admits(&item.attributes))
                && (left_out.is_empty() || !left_out.contains(&*item.id))
        });
        let items = items.map(|(number, item)| (number, Arc::clone(item))).collect();
        drop(left_out);
        Ok(Self { collection, items, liked, disliked })
    }
}

/// An item that a request names at a place of a field.
fn item(
    collection: &Collection,
    id: &str,
    now: i64,
    field: &str,
    place: usize,
) -> Result<Arc<Item>, ApiError> {
    collection.get(id, now).ok_or_else(|| {
        let detail = format!("{field}[{place}]: the collection has no item of this name");
        ApiError::at(Code::UnknownItem, format!("/{field}/{place}/id"), detail)
    })
}

impl<'b> RankRequest<'b> {
    /// The same question with the items of a collection as its candidates.
    fn over<'s>(&'s self, held: &'s Held) -> RankRequest<'s>
    where
        'b: 's,
    {
        let candidate = |(_, item): &'s (u64, Arc<Item>)| {
            Candidate::stored(&item.id, &item.text, item.data.as_deref())
        };
        let candidates: Vec<Candidate<'s>> = held.items.iter().map(candidate).collect();
        let text = |one: LikedText<'s>, item: &'s Option<Arc<Item>>| match item {
            Some(item) => LikedText { text: Text(Cow::Borrowed(&item.text)), id: None, ..one },
            None => one,
        };
        let mut asked: RankRequest<'s> = self.clone();
        if let Some(list) = &mut asked.like {
            let items = std::mem::take(&mut list.items).into_iter().zip(&held.liked);
            list.items = items.map(|(one, item)| text(one, item)).collect();
        }
        if let Some(list) = &mut asked.unlike {
            let items = std::mem::take(&mut list.items).into_iter().zip(&held.disliked);
            list.items = items.map(|(one, item)| DislikedText(text(one.0, item))).collect();
        }
        asked.candidates = Some(List { length: candidates.len(), items: candidates });
        asked.top_k = Some(asked.top_k.unwrap_or(Count(RESULTS)));
        // They were left out when the items were looked up.
        asked.exclude = None;
        asked
    }
}

/// What is told by the vectors of the items, which are kept for the next question; by their texts where
/// there is no memory for them.
fn told_of_kept(
    asked: &RankRequest<'_>,
    held: &Held,
    plan: &Plan,
    (app, work): (&App, &JobContext),
) -> Result<Told, ApiError> {
    let (engine, method) = (&plan.resolved.model.engine, plan.resolved.query.method);
    let vectors = held.collection.vectors(engine, method, &held.items, || work.check())?;
    let kept = vectors.as_ref().and_then(|vectors| {
        held.items.iter().map(|(number, _)| vectors.of(*number)).collect::<Option<Vec<_>>>()
    });
    asked.told(plan, app, work, kept.as_deref())
}

/// A fault of an item stands in no body: the collection is what is at fault.
fn of_items(mut error: ApiError) -> ApiError {
    for fault in &mut error.faults {
        if fault.pointer.starts_with("/candidates") {
            "/collection".clone_into(&mut fault.pointer);
        }
    }
    error
}

impl Question for Ranked<'_> {
    type In<'b> = Ranked<'b>;
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<Ranked<'b>, ApiError> {
        Ok(Ranked { request: json::read_object(body)?, held: OnceLock::new() })
    }

    /// To look through a large collection takes longer than the runtime's threads should be held.
    fn is_long(&self) -> bool {
        self.request.collection.is_some()
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let Some(name) = &self.request.collection else { return self.request.plan(app, models) };
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
        let held = Held::of(&self.request, name, app)?;
        let plan = self.request.over(&held).plan(app, models).map_err(of_items)?;
        // A question is weighed once.
        let _ = self.held.set(held);
        Ok(plan)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let Some(held) = self.held.get() else {
            return self.request.answer(plan, app, work, answer);
        };
        app.metrics.ranked_with(RankPart::Collection);
        let asked = self.request.over(held);
        let told = match asked.keeps_vectors(&plan.resolved) {
            false => asked.told(plan, app, work, None),
            true => told_of_kept(&asked, held, plan, (app, work)),
        };
        let told = told.map_err(of_items)?;
        let return_text = asked.return_text.unwrap_or(false);
        let name = self.request.collection.as_deref().unwrap_or_default();
        let ranking = ItemRanking::of(&told, held, &plan.resolved, (name, return_text), &asked);
        answer.write_json(&ranking)?;
        Ok(told.counts)
    }
}
