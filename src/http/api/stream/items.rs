//! `POST /collections/{name}/items` as lines: an item a line, added while others are still being sent.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::Counts;
use cognate_collections::{Applied, Item};
use serde::Serialize;

use crate::http::api::collections::answers::{Against, Changed};
use crate::http::api::collections::call;
use crate::http::api::collections::items::ItemRequest;
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, parse, write};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::request::body;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;

pub(crate) fn answer(against: Against, request: Request) -> Result<Response, ApiError> {
    let opening = Opening::of(Arc::clone(&against.call.app), &request)?;
    body::no_settings(request.uri())?;
    let place = opening.place()?;
    let items = Items { against, told: Mutex::default() };
    Ok(opening.answer(items, place, request.into_body(), Lines::default()))
}

struct Items {
    against: Against,
    told: Mutex<Told>,
}

/// What is told of the whole stream at its end.
#[derive(Default)]
struct Told {
    applied: Applied,
    failed: usize,
    is_told: bool,
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    changed: Changed,
    /// Lines that were answered by an error.
    #[serde(skip_serializing_if = "is_zero")]
    failed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What became of some lines that are written together.
#[derive(Default)]
struct Kept {
    applied: Applied,
    /// Why none of them was written.
    refused: Option<ApiError>,
}

impl LineQuestion for Items {
    type Item<'b> = Item;
    type Answers = Result<Applied, ApiError>;
    type Kept = Kept;

    fn resolved(&self) -> Option<&Resolved> {
        None
    }

    fn read(&self, line: Option<&[u8]>) -> Result<Item, ApiError> {
        let ItemRequest(item) = parse(line)?;
        let item = item.into_item(cognate_collections::now());
        let checked = item.check(self.against.collection().limits().text_bytes);
        checked.map_err(|problem| call::of_item(&problem, ""))?;
        Ok(item)
    }

    /// The answer to a faulty line finds the id by itself.
    fn id<'i>(_: &'i Item) -> Option<LineId<'i>> {
        None
    }

    fn waits(&self, app: &App) -> bool {
        app.collections.is_remote()
    }

    async fn turn(&self) -> Result<Option<Turn>, ApiError> {
        self.against.turn().await.map(Some)
    }

    fn wait_durable(&self) -> impl Future<Output = Result<(), ApiError>> + Send {
        self.against.wait_durable()
    }

    /// Whatever was read is written at once.
    fn per_part(&self, _: &[&Item]) -> usize {
        usize::MAX
    }

    fn ask(&self, items: &[&Item], _: &JobContext) -> Result<Self::Answers, ApiError> {
        let items = items.iter().copied().cloned().collect();
        Ok(self.against.put(items))
    }

    fn counts(_: &Self::Answers) -> Counts {
        Counts::default()
    }

    fn write(
        &self,
        _: &Line,
        _: &Item,
        answers: &Self::Answers,
        place: usize,
        part: &mut Part<Kept>,
    ) {
        // The first speaks for all that were written together.
        match answers {
            _ if place > 0 => {}
            Ok(applied) => part.kept.applied = part.kept.applied.and(*applied),
            Err(error) => part.kept.refused = Some(error.clone()),
        }
    }

    /// What refuses whole items that were read would refuse those after them, too, so the stream ends.
    fn keep(&self, part: &mut Part<Kept>) -> Result<(), ApiError> {
        let Kept { applied, refused } = std::mem::take(&mut part.kept);
        if let Some(error) = refused {
            return Err(error);
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.applied = told.applied.and(applied);
        told.failed += part.lines - part.sound;
        Ok(())
    }

    fn conclude(&self) -> Option<Vec<u8>> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut told.is_told, true) {
            return None;
        }
        let mut line = Vec::new();
        let (changed, failed) = (Changed::from(told.applied), told.failed);
        write(&mut line, &Summary { changed, failed });
        Some(line)
    }
}
