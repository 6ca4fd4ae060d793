//! `POST` and `PATCH /collections/{name}/items` as lines: an item or a patch per line, written
//! while others are still being sent.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::Counts;
use cognate_collections::{Applied, Item, ItemPatch, NamedPatch};
use serde::Serialize;

use crate::http::api::collections::answers::Against;
use crate::http::api::collections::items::ItemRequest;
use crate::http::api::collections::{answers, call};
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, id_of, parse, write};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::error::{ApiError, Result};
use crate::http::request::body;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;

/// What to do with the items of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Put,
    Patch,
}

pub(crate) fn answer(change: Change, against: Against, request: Request) -> Result<Response> {
    let opening = Opening::new(Arc::clone(&against.call.app), &request)?;
    body::no_settings(request.uri())?;
    let place = opening.place()?;
    let items = Items { change, against, told: Mutex::default() };
    Ok(opening.answer(items, place, request.into_body(), Lines::default()))
}

struct Items {
    change: Change,
    against: Against,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    applied: Applied,
    failed: usize,
    is_told: bool,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    changed: answers::Changed,
    /// Lines that were answered by an error.
    #[serde(skip_serializing_if = "is_zero")]
    failed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

enum Changed {
    Put(Item),
    Patch(Box<str>, ItemPatch),
}

/// The outcome of lines that are written together.
#[derive(Default)]
struct Kept {
    applied: Applied,
    /// Why none of them was written.
    refused: Option<ApiError>,
}

impl LineQuestion for Items {
    type Item<'b> = Changed;
    /// The joint outcome of all, and the errors of single ones; the list is empty if there are
    /// none.
    type Answers = (Result<Applied>, Vec<Option<ApiError>>);
    type Kept = Kept;

    fn resolved(&self) -> Option<&Resolved> {
        None
    }

    fn read(&self, line: Option<&[u8]>) -> Result<Changed> {
        if self.change == Change::Patch {
            let (id, patch): (Box<str>, ItemPatch) = parse::<NamedPatch>(line)?.into();
            return Ok(Changed::Patch(id, patch));
        }
        let ItemRequest(item) = parse(line)?;
        let item = item.into_item(cognate_collections::now());
        let checked = item.check(self.against.collection().limits().text_bytes);
        checked.map_err(|problem| call::of_item(&problem, ""))?;
        Ok(Changed::Put(item))
    }

    /// A faulty line's answer finds the id itself.
    fn id<'i>(_: &'i Changed) -> Option<LineId<'i>> {
        None
    }

    fn waits(&self, app: &App) -> bool {
        app.collections.is_remote()
    }

    async fn turn(&self) -> Result<Option<Turn>> {
        self.against.turn().await.map(Some)
    }

    fn wait_durable(&self) -> impl Future<Output = Result<()>> + Send {
        self.against.wait_durable()
    }

    /// All lines that were read are written at once.
    fn per_part(&self, _: &[&Changed]) -> usize {
        usize::MAX
    }

    fn ask(&self, lines: &[&Changed], _: &JobContext) -> Result<Self::Answers> {
        let (mut items, mut patches) = (Vec::new(), Vec::new());
        for line in lines {
            match line {
                Changed::Put(item) => items.push(item.clone()),
                Changed::Patch(id, patch) => patches.push((id.clone(), patch.clone())),
            }
        }
        Ok(match self.change {
            Change::Put => (self.against.put(items), Vec::new()),
            Change::Patch => match self.against.patch(patches) {
                Ok((applied, refused)) => (Ok(applied), refused),
                Err(error) => (Err(error), Vec::new()),
            },
        })
    }

    fn counts(_: &Self::Answers) -> Counts {
        Counts::default()
    }

    fn write(
        &self,
        line: &Line,
        _: &Changed,
        (answers, refused): &Self::Answers,
        place: usize,
        part: &mut Part<Kept>,
    ) {
        // The first answer has the outcome of all that were written together.
        match answers {
            _ if place > 0 => {}
            Ok(applied) => part.kept.applied = part.kept.applied.and(*applied),
            Err(error) => part.kept.refused = Some(error.clone()),
        }
        if let Some(error) = refused.get(place).and_then(Option::as_ref) {
            part.refused += 1;
            part.fail(line.number, id_of(line), error);
        }
    }

    /// An error that refuses whole valid items would refuse all later ones, so the stream ends.
    fn keep(&self, part: &mut Part<Kept>) -> Result<()> {
        let Kept { applied, refused } = std::mem::take(&mut part.kept);
        if let Some(error) = refused {
            return Err(error);
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.applied = told.applied.and(applied);
        told.failed += part.lines - part.sound + part.refused;
        Ok(())
    }

    fn conclude(&self) -> Option<Vec<u8>> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut told.is_told, true) {
            return None;
        }
        let mut line = Vec::new();
        let (changed, failed) = (answers::Changed::from(told.applied), told.failed);
        write(&mut line, &Summary { changed, failed });
        Some(line)
    }
}
