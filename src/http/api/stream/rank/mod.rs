//! `POST /rank` as lines: a question, then candidates in; the best of them out at the end, and last
//! what was counted.

mod best;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::Serialize;
use tokio::time::Instant;
use tokio::time::timeout_at;

use crate::engine::Counts;
use crate::engine::Place;
use crate::engine::QueryError;
use crate::engine::RankOptions;
use crate::engine::Reason;
use crate::http::api::stream::Opening;
use crate::http::api::stream::Question;
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::LineId;
use crate::http::api::stream::line::TextLine;
use crate::http::api::stream::line::parse;
use crate::http::api::stream::line::write;
use crate::http::api::stream::lines::Line;
use crate::http::api::stream::lines::Lines;
use crate::http::api::stream::rank::best::Best;
use crate::http::api::stream::rank::best::Held;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::request::body;
use crate::http::request::cost::estimate;
use crate::http::request::fields::Count;
use crate::http::request::fields::MeasureName;
use crate::http::request::fields::ModelName;
use crate::http::request::fields::RankMethod;
use crate::http::request::fields::Text;
use crate::http::request::json;
use crate::http::request::query::OovPolicy;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::request::threshold::Cutoff;
use crate::http::request::threshold::Threshold;
use crate::http::work::pool;

/// Bytes of results that are written at once.
const PIECE: usize = 32 << 10;

/// The first line: the body of `POST /rank` without its candidates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine<'b> {
    #[serde(borrow)]
    query: Text<'b>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    #[serde(borrow)]
    method: Option<RankMethod<'b>>,
    measure: Option<MeasureName>,
    top_k: Option<Count>,
    min_score: Option<Threshold>,
    return_text: Option<bool>,
    oov: Option<OovPolicy>,
    truncate: Option<bool>,
}

/// How candidates are ranked, and the best so far.
struct Candidates {
    resolved: Resolved,
    query: String,
    options: RankOptions,
    return_text: bool,
    best: Mutex<Best>,
}

/// Answers a stream of candidates.
pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let opening = Opening::of(app, &request)?;
    body::no_settings(request.uri())?;
    let place = opening.place()?;
    let (mut body, mut lines) = (request.into_body(), Lines::default());
    let patience = Duration::from_secs(opening.app.settings.body_timeout_s);
    let first = first_line(&mut body, &mut lines, Instant::now() + patience).await?;
    let question = Candidates::of(&opening.app, &first).map_err(of_first_line)?;
    question.check_query(&opening.app).await.map_err(of_first_line)?;
    Ok(opening.answer(question, place, body, lines))
}

/// The first line that is not white space.
async fn first_line(body: &mut Body, lines: &mut Lines, until: Instant) -> Result<Line, ApiError> {
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
            Some(Err(_)) => return Err(body::broken()),
            None => lines.finish(),
        }
    }
}

/// A fault of the question, as the client finds it.
fn of_first_line(error: ApiError) -> ApiError {
    ApiError {
        detail: format!("in the first line, the question: {}", error.detail).into(),
        ..error
    }
}

impl Candidates {
    fn of(app: &App, first: &Line) -> Result<Self, ApiError> {
        // One that is too long is refused as every line.
        let bytes = first.bytes.as_deref();
        let asked: FirstLine<'_> = bytes.map_or_else(|| parse(None), json::read_object)?;
        let selection = Selection {
            measure: asked.measure.map(|MeasureName(measure)| measure),
            oov: asked.oov,
            truncate: asked.truncate,
            ..Selection::named(asked.model.as_ref(), asked.method.as_ref())
        };
        let resolved = selection.resolve_ranking(&app.models())?;
        let engine = &resolved.model.engine;
        engine.check(&resolved.query)?;
        let method = resolved.query.method;
        if resolved.fused.is_some() || !engine.ranks_in_parts(method) {
            let detail = format!(
                "{} scores each candidate by all others, which a stream does not keep: send them as \
                 JSON, or choose another method",
                resolved.method_name()
            );
            return Err(ApiError::at(Code::InvalidField, "/method", detail));
        }
        let least = asked.min_score.map(|score| score.resolve(&resolved, "/min_score"));
        let most = app.settings.max_candidates;
        let wanted = asked.top_k.map_or(most, |Count(wanted)| wanted);
        if wanted > most {
            return Err(ApiError::beyond(Code::TooManyItems, "/top_k", "results", most, wanted));
        }
        let options = RankOptions {
            query: resolved.query,
            top_k: Some(wanted),
            min_score: least.transpose()?.map(Cutoff::least),
        };
        let best = Mutex::new(Best::new(options, app.unsent.growing()));
        let return_text = asked.return_text.unwrap_or(false);
        let query = asked.query.as_ref().to_owned();
        Ok(Self { resolved, query, options, return_text, best })
    }

    /// Refuses a query that cannot be asked, before anything is answered.
    async fn check_query(&self, app: &App) -> Result<(), ApiError> {
        let (model, query) = (Arc::clone(&self.resolved.model), self.query.clone());
        let options = self.options;
        let patience = Duration::from_millis(app.settings.compute_deadline_ms);
        let deadline = std::time::Instant::now() + patience;
        let check =
            move |_: &pool::JobContext| Ok(model.engine.rank_session(&query, &options, |_| ())?);
        app.compute
            .run(deadline, &app.metrics, check)
            .await
            .unwrap_or_else(|| Err(pool::queue_full()))
    }

    fn best(&self) -> MutexGuard<'_, Best> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Standing {
    /// It is not among the best.
    Beaten,
    Scored(f32),
    Unscored(Reason),
}

/// What the engine answers to some candidates.
struct Standings {
    /// One a candidate.
    each: Vec<Standing>,
    truncated: Vec<usize>,
    query_truncated: bool,
    counts: Counts,
}

/// What some candidates leave for the end.
#[derive(Default)]
struct Kept {
    held: Vec<Held>,
    unscored: u64,
    truncated: u64,
    query_truncated: bool,
}

/// The last line: what the results were chosen from.
#[derive(Serialize)]
struct Summary<'s> {
    model: &'s str,
    method: &'static str,
    measure: &'static str,
    fingerprint: &'s str,
    /// Lines after the first that are not blank.
    candidates: u64,
    /// Those that cannot be scored.
    unscored: u64,
    /// Those that were cut.
    truncated: u64,
    /// Those that were answered by an error.
    failed: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    query_truncated: bool,
}

impl Question for Candidates {
    type Item<'b> = TextLine<'b>;
    type Answers = Standings;
    type Kept = Kept;

    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<TextLine<'b>, ApiError> {
        parse(line)
    }

    fn id<'i>(item: &'i TextLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn nanos(&self, items: &[&TextLine<'_>]) -> u64 {
        let texts = items.iter().map(|item| AsRef::<str>::as_ref(*item));
        let bytes = texts.clone().map(str::len).sum();
        let [_, most] = self.resolved.multiplications_of_ranking(&self.query, texts, true);
        estimate(bytes, most)
    }

    fn ask(&self, items: &[&TextLine<'_>]) -> Result<Standings, QueryError> {
        let floor = self.best().floor();
        let options = RankOptions { min_score: floor, ..self.options };
        let ranking = self.resolved.model.engine.rank_best(&self.query, items, &options)?;
        let mut each = vec![Standing::Beaten; items.len()];
        let mut set = |index: usize, standing| {
            if let Some(place) = each.get_mut(index) {
                *place = standing;
            }
        };
        ranking.results.iter().for_each(|one| set(one.index, Standing::Scored(one.score)));
        let unscored = ranking.unscored.iter().zip(&ranking.reasons);
        unscored.for_each(|(&index, &reason)| set(index, Standing::Unscored(reason)));
        Ok(Standings {
            each,
            truncated: ranking.truncated,
            query_truncated: ranking.query_truncated,
            counts: ranking.counts,
        })
    }

    fn counts(answers: &Standings) -> Counts {
        answers.counts
    }

    fn write(
        &self,
        line: &Line,
        item: &TextLine<'_>,
        answers: &Standings,
        place: usize,
        part: &mut Part<Kept>,
    ) {
        let kept = &mut part.kept;
        kept.query_truncated = answers.query_truncated;
        kept.truncated += u64::from(answers.truncated.binary_search(&place).is_ok());
        let (score, reason) = match answers.each.get(place) {
            Some(&Standing::Scored(score)) => (Some(score), None),
            Some(&Standing::Unscored(reason)) => {
                kept.unscored += 1;
                // As in a list, a least score leaves these out.
                if self.options.min_score.is_some() {
                    return;
                }
                (None, Some(reason))
            }
            Some(Standing::Beaten) | None => return,
        };
        kept.held.push(Held {
            // The first line is the question.
            index: line.place.saturating_sub(1),
            id: item.id.map(LineId::written),
            score,
            reason,
            text: self.return_text.then(|| item.as_ref().into()),
        });
    }

    fn locate(&self, error: ApiError) -> ApiError {
        error.moved(Place::Candidate(0), "text", "/text")
    }

    fn keep(&self, part: &mut Part<Kept>) -> Result<(), ApiError> {
        let kept = std::mem::take(&mut part.kept);
        let mut best = self.best();
        best.candidates += part.lines as u64;
        best.failed += (part.lines - part.sound) as u64;
        best.unscored += kept.unscored;
        best.truncated += kept.truncated;
        best.query_truncated |= kept.query_truncated;
        best.take(kept.held)
    }

    fn conclude(&self) -> Option<Vec<u8>> {
        let mut best = self.best();
        let mut piece = Vec::new();
        while piece.len() < PIECE {
            match best.next() {
                Some(held) => held.write(&mut piece),
                None if best.is_told => break,
                None => {
                    best.is_told = true;
                    let summary = Summary {
                        model: &self.resolved.model.name,
                        method: self.resolved.query.method.name(),
                        measure: self.resolved.measure().name(),
                        fingerprint: self.resolved.model.engine.model().fingerprint(),
                        candidates: best.candidates,
                        unscored: best.unscored,
                        truncated: best.truncated,
                        failed: best.failed,
                        query_truncated: best.query_truncated,
                    };
                    write(&mut piece, &summary);
                }
            }
        }
        (!piece.is_empty()).then_some(piece)
    }
}
