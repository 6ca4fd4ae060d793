//! `POST /collections/{name}/match` as lines: an item in, its match out, while others are still
//! being sent.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::Counts;
use cognate::window::BATCH;
use cognate::window::stream::AddPolicy;
use cognate_collections::{Item, Matched};

use crate::http::api::collections::answers::{Against, POST_WORDS};
use crate::http::api::collections::call::MatchRefusal;
use crate::http::api::collections::items::ItemRequest;
use crate::http::api::collections::match_options::{Effort, MatchParameters, Matching};
use crate::http::api::collections::{MatchedEntry, call};
use crate::http::api::stream::job::{ENOUGH, Part};
use crate::http::api::stream::line::{Line, LineId, Lines, id_of, parse, write};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::error::{Code, Result};
use crate::http::request::json;
use crate::http::request::query::{Resolved, estimate};
use crate::http::work::pool::{JobContext, items_per_part};
use crate::http::work::turns::Turn;

/// Largest product of window and texts that are matched together: scanning it takes some tens of
/// milliseconds.
const MAX_TOGETHER: usize = 200_000;

struct Items {
    against: Against,
    matching: Matching,
}

pub(crate) fn answer(against: Against, request: Request) -> Result<Response> {
    let opening = Opening::new(Arc::clone(&against.call.app), &request)?;
    let asked: MatchParameters = json::read_query(request.uri())?;
    let matching = asked.matching(&opening.app.models())?;
    against.check(&matching.how)?;
    let place = opening.place()?;
    let items = Items { against, matching };
    Ok(opening.answer(items, place, request.into_body(), Lines::default()))
}

struct LineItem(Item);

impl Items {
    /// Matches items of different names; a refused item does not stop the others.
    fn follow(&self, run: &[&LineItem], work: &JobContext) -> Vec<Result<Matched>> {
        let (mut left, mut refused) = (run.to_vec(), Vec::new());
        let matched = loop {
            let items = left.iter().map(|LineItem(item)| item.clone()).collect();
            match self.against.follow(&self.matching, items, work) {
                Err(MatchRefusal::OtherText(place)) if place < left.len() => {
                    refused.push(place);
                    left.remove(place);
                }
                Err(refusal) => break Err(call::of_match(refusal, |index| index)),
                Ok(matched) => break Ok(matched),
            }
        };
        let mut answers: Vec<Result<Matched>> = match matched {
            Ok(matched) => matched.into_iter().map(Ok).collect(),
            Err(error) => left.iter().map(|_| Err(error.clone())).collect(),
        };
        // Each index counts only the items that are left, so the last item taken out goes back
        // first.
        for place in refused.into_iter().rev() {
            answers.insert(place, Err(call::other_text("")));
        }
        answers
    }
}

impl LineQuestion for Items {
    type Item<'b> = LineItem;
    type Answers = Vec<Result<Matched>>;
    type Kept = ();

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.matching.resolved)
    }

    fn read(&self, line: Option<&[u8]>) -> Result<LineItem> {
        let ItemRequest(item) = parse(line)?;
        let item = item.into_item(cognate_collections::now());
        let text_bytes = self.against.collection().limits().text_bytes;
        let checked = self.matching.how.check(&item, text_bytes);
        checked.map_err(|problem| call::of_item(&problem, ""))?;
        Ok(LineItem(item))
    }

    /// The answer names an item by its own id.
    fn id<'i>(_: &'i LineItem) -> Option<LineId<'i>> {
        None
    }

    fn waits(&self, app: &App) -> bool {
        app.collections.is_remote()
    }

    async fn turn(&self) -> Result<Option<Turn>> {
        match self.matching.how.add {
            AddPolicy::None => Ok(None),
            AddPolicy::All | AddPolicy::New => self.against.turn().await.map(Some),
        }
    }

    fn wait_durable(&self) -> impl Future<Output = Result<()>> + Send {
        self.against.wait_durable()
    }

    /// One scan of the window serves a batch of texts. Over a very large window a batch would take
    /// too long, and so would a second scoring of all of them if it is costly; long answers of a batch
    /// would take too much memory.
    fn per_part(&self, items: &[&LineItem]) -> usize {
        let texts = || items.iter().map(|LineItem(item)| &*item.text);
        let effort = Effort::new(&self.matching, POST_WORDS, texts());
        let bytes = texts().map(str::len).sum();
        let fits = |work: u64| items_per_part(items.len(), estimate(bytes, work));
        let shares_scan = self.matching.how.stream.limits.last <= MAX_TOGETHER;
        let least = if shares_scan { fits(effort.second()).min(BATCH) } else { 1 };
        fits(effort.bounds()[1]).max(least).min((4 * ENOUGH / self.matching.answer_bytes()).max(1))
    }

    /// Matched items are already added and are never matched again, so an error is the answer of
    /// the items that it concerns.
    fn ask(&self, items: &[&LineItem], work: &JobContext) -> Result<Self::Answers> {
        let mut answers = Vec::with_capacity(items.len());
        let mut rest = items;
        while !rest.is_empty() {
            // A repeated name is matched after the earlier item was added.
            let mut names = HashSet::new();
            let fresh = rest.iter().take_while(|LineItem(item)| names.insert(&item.id)).count();
            let (run, after) = rest.split_at(fresh.max(1));
            rest = after;
            answers.extend(self.follow(run, work));
        }
        // If none was matched in time, nothing was changed: the question may be repeated.
        let is_late = |answer: &Result<Matched>| {
            answer.as_ref().is_err_and(|error| error.code == Code::DeadlineExceeded)
        };
        match answers.first() {
            Some(Err(error)) if answers.iter().all(is_late) => Err(error.clone()),
            _ => Ok(answers),
        }
    }

    /// Returns no counts: texts were counted when they were matched.
    fn counts(_: &Self::Answers) -> Counts {
        Counts::default()
    }

    fn write(
        &self,
        line: &Line,
        LineItem(item): &LineItem,
        answers: &Self::Answers,
        place: usize,
        part: &mut Part<()>,
    ) {
        match answers.get(place) {
            Some(Ok(matched)) => write(&mut part.answer, &MatchedEntry::new(&item.id, matched)),
            Some(Err(error)) => {
                part.refused += 1;
                part.fail(line.number, id_of(line), error);
            }
            None => {}
        }
    }
}
