//! `POST /rank` as lines: a question, then candidates in; at the end the best of them out, and last
//! the counts.

mod best;
mod first_line;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use cognate::engine::rank::{Pages, Session};
use cognate::engine::{Candidates, Counts, Ranking, Reason, UnscoredLikes};
use http_body_util::BodyExt;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, parse, write};
use crate::http::api::stream::rank::best::{Best, Held};
use crate::http::api::stream::rank::first_line::{CandidateLine, FirstQuestion};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::auth::client::Client;
use crate::http::error::{ApiError, Code, Pointer, Result, Segment};
use crate::http::request::body;
use crate::http::request::fields::CallersData;
use crate::http::request::query::{Resolved, estimate};
use crate::http::work::pool;
use crate::http::work::pool::items_per_part;

/// Bytes of results that are written at once.
const PIECE: usize = 32 << 10;

struct Ranker {
    first: Arc<FirstQuestion>,
    passed: UnscoredLikes,
    best: Mutex<Best>,
}

pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response> {
    let opening = Opening::new(app, &request)?;
    body::no_settings(request.uri())?;
    let place = opening.place()?;
    let (mut body, mut lines) = (request.into_body(), Lines::default());
    let patience = Duration::from_secs(opening.app.settings.body_timeout_s);
    let first = first_line(&mut body, &mut lines, Instant::now() + patience).await?;
    let client = &opening.caller.client;
    let question = Ranker::new(&opening.app, client, first).await.map_err(of_first_line)?;
    Ok(opening.answer(question, place, body, lines))
}

/// The first line that is not white space.
async fn first_line(body: &mut Body, lines: &mut Lines, until: Instant) -> Result<Line> {
    loop {
        let batch = lines.take(1);
        if let Some(line) = batch.lines.into_iter().next() {
            return Ok(line);
        }
        if batch.passed > 0 {
            continue;
        }
        if lines.is_finished() {
            let detail = "the first line, which holds the question, is missing";
            return Err(ApiError::at(Code::InvalidField, "", detail));
        }
        let frame = timeout_at(until, body.frame()).await.map_err(|_| {
            let detail = "the first line did not arrive in time (setting `body_timeout_s`)";
            ApiError::new(Code::RequestTimeout, detail)
        })?;
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    lines.push(data);
                }
            }
            Some(Err(error)) => return Err(body::refused(error)),
            None => lines.finish(),
        }
    }
}

/// An error of the question, with the position in the first line.
fn of_first_line(error: ApiError) -> ApiError {
    ApiError {
        detail: format!("in the first line, the question: {}", error.detail).into(),
        ..error
    }
}

impl Ranker {
    /// Plans the question of the first line.
    async fn new(app: &App, client: &Client, first: Line) -> Result<Self> {
        // A first line that is too long is refused like any other.
        let bytes = first.bytes.map_or_else(|| parse(None), Ok)?;
        let first = Arc::new(FirstQuestion::read(app, &bytes)?);
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let deadline = std::time::Instant::now() + patience;
        let asked = Arc::clone(&first);
        // Texts that cannot be scored are refused before anything is answered.
        let check = move |_: &pool::JobContext| {
            let (engine, none) = (&asked.resolved.model.engine, Candidates::<&str>::new(&[]));
            let nothing = |session: &mut Session<'_>| session.run(0..0, || true);
            Ok(engine.rank_session(&asked.question, &none, nothing)??.unscored().clone())
        };
        let checked = app.compute.run(client, deadline, &app.metrics, check).await;
        let passed = checked.unwrap_or_else(Err)?;
        let memory = app.unsent.of(client).growing();
        let best = Mutex::new(Best::new(first.most, first.question.min_score, memory));
        Ok(Self { first, passed, best })
    }

    fn best(&self) -> MutexGuard<'_, Best> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Standing {
    Excluded,
    /// The candidate's score is below the best so far.
    Beaten,
    Scored(f32),
    Unscored(Reason),
}

struct Standings {
    each: Vec<Standing>,
    ranking: Ranking,
}

#[derive(Default)]
struct Kept {
    held: Vec<Held>,
    excluded: u64,
    unscored: u64,
    truncated: u64,
    query_truncated: bool,
    query_known: Option<f32>,
}

/// The last line: counts, and the model and method.
#[derive(Serialize)]
struct Summary<'s> {
    model: &'s str,
    method: &'static str,
    measure: &'static str,
    fingerprint: &'s str,
    candidates: u64,
    #[serde(skip_serializing_if = "is_zero")]
    excluded: u64,
    unscored: u64,
    truncated: u64,
    failed: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    query_truncated: bool,
    /// The share of the query's tokens that the model lists, if it does not list all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// Indices of liked texts that count in no score.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    like_unscored: &'s [usize],
    /// Indices of disliked texts that count in no score.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unlike_unscored: &'s [usize],
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl LineQuestion for Ranker {
    type Item<'b> = CandidateLine<'b>;
    type Answers = Standings;
    type Kept = Kept;

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.first.resolved)
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<CandidateLine<'b>> {
        let mut line: CandidateLine<'b> = parse(line)?;
        self.first.check(&line)?;
        line.is_excluded = self.first.excludes(line.id);
        Ok(line)
    }

    fn id<'i>(item: &'i CandidateLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn per_part(&self, items: &[&CandidateLine<'_>]) -> usize {
        let texts = items.iter().map(|item| AsRef::<str>::as_ref(*item));
        let bytes = texts.clone().map(str::len).sum();
        let resolved = &self.first.resolved;
        let [_, most] = resolved.multiplications_of_ranking(self.first.texts(), texts, true);
        items_per_part(items.len(), estimate(bytes, most))
    }

    fn ask(&self, items: &[&CandidateLine<'_>], work: &pool::JobContext) -> Result<Standings> {
        let first = &self.first;
        let engine = &first.resolved.model.engine;
        let question = first.of_some(self.best().floor());
        let candidates = first.candidates(items);
        let all = 0..candidates.ranked().len();
        let run = |session: &mut Session<'_>| session.run(all, || true);
        let ranked = engine.rank_session(&question, &candidates, run)??;
        let Pages { mut pages, .. } =
            engine.pages(&question, &candidates, ranked, || work.check())?;
        let ranking = pages.pop().map(|page| page.ranking).unwrap_or_default();
        let standing = |item: &&CandidateLine<'_>| match item.is_excluded {
            true => Standing::Excluded,
            false => Standing::Beaten,
        };
        let mut each: Vec<Standing> = items.iter().map(standing).collect();
        let results = ranking.results.iter();
        let scored = results.map(|one| (one.index, Standing::Scored(one.score)));
        let unscored = ranking.unscored.iter().zip(&ranking.reasons);
        let unscored = unscored.map(|(&index, &reason)| (index, Standing::Unscored(reason)));
        for (index, standing) in scored.chain(unscored) {
            if let Some(place) = each.get_mut(index) {
                *place = standing;
            }
        }
        Ok(Standings { each, ranking })
    }

    fn counts(answers: &Standings) -> Counts {
        answers.ranking.counts
    }

    fn write(
        &self,
        line: &Line,
        item: &CandidateLine<'_>,
        answers: &Standings,
        place: usize,
        part: &mut Part<Kept>,
    ) {
        let (kept, ranking) = (&mut part.kept, &answers.ranking);
        kept.query_truncated = ranking.query_truncated;
        kept.query_known = ranking.query_known;
        kept.truncated += u64::from(ranking.truncated.binary_search(&place).is_ok());
        let (score, reason) = match answers.each.get(place) {
            Some(&Standing::Scored(score)) => (Some(score), None),
            Some(&Standing::Unscored(reason)) => {
                kept.unscored += 1;
                // As in a body, a least score leaves out unscored candidates.
                if self.first.question.min_score.is_some() {
                    return;
                }
                (None, Some(reason))
            }
            Some(Standing::Excluded) => {
                kept.excluded += 1;
                return;
            }
            Some(Standing::Beaten) | None => return,
        };
        // Texts that are compared with each other at the end are stored.
        let keeps_text = self.first.return_text || self.first.makes_pages;
        kept.held.push(Held {
            // The first line is the question.
            index: line.place.saturating_sub(1),
            id: item.id.map(LineId::written),
            score,
            reason,
            text: keeps_text.then(|| item.as_ref().into()),
            data: item.data.map(CallersData::into_written),
            more: None,
        });
    }

    fn pointer_in_line(pointer: Pointer) -> Pointer {
        match pointer.segments() {
            [Segment::Field("candidates"), Segment::Index(_)] => "/text".into(),
            _ => pointer,
        }
    }

    fn keep(&self, part: &mut Part<Kept>) -> Result<()> {
        let kept = std::mem::take(&mut part.kept);
        let mut best = self.best();
        best.candidates += part.lines as u64;
        best.failed += (part.lines - part.sound) as u64;
        best.excluded += kept.excluded;
        best.unscored += kept.unscored;
        best.truncated += kept.truncated;
        best.query_truncated |= kept.query_truncated;
        best.query_known = best.query_known.or(kept.query_known);
        best.take(kept.held)
    }

    fn is_unfinished(&self) -> bool {
        self.first.makes_pages
    }

    fn finish(&self, work: &pool::JobContext) -> Result<()> {
        let held = self.best().take_out();
        let page = first_line::page(&self.first, held, work)?;
        self.best().tell(page);
        Ok(())
    }

    fn conclude(&self) -> Option<Vec<u8>> {
        let mut best = self.best();
        let mut piece = Vec::new();
        while piece.len() < PIECE {
            match best.next(self.first.question.page.offset) {
                Some(held) => held.write(self.first.return_text, &mut piece),
                None if best.is_told => break,
                None => {
                    best.is_told = true;
                    let resolved = &self.first.resolved;
                    let summary = Summary {
                        model: &resolved.model.name,
                        method: resolved.query.method.name(),
                        measure: resolved.measure().name(),
                        fingerprint: resolved.model.engine.model().fingerprint(),
                        candidates: best.candidates,
                        excluded: best.excluded,
                        unscored: best.unscored,
                        truncated: best.truncated,
                        failed: best.failed,
                        query_truncated: best.query_truncated,
                        query_known: best.query_known,
                        like_unscored: &self.passed.liked,
                        unlike_unscored: &self.passed.disliked,
                    };
                    write(&mut piece, &summary);
                }
            }
        }
        (!piece.is_empty()).then_some(piece)
    }
}
