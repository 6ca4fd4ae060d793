//! `POST /embed` as lines: a text in, its vector out.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::{Counts, Embeddings, Reason};
use serde::Serialize;

use crate::http::api::embed::{EmbedParameters, Embedding, Foreign, Vector};
use crate::http::api::question::Asked;
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, TextLine, parse, write};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::error::{Pointer, Result, Segment};
use crate::http::request::json;
use crate::http::request::query::{Resolved, Selection};
use crate::http::work::pool::JobContext;

pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response> {
    let opening = Opening::new(app, &request)?;
    let mut asked: EmbedParameters = json::read_query(request.uri())?;
    let (model, method) = (asked.model.take(), asked.method.take());
    let selection = Selection::named(model.as_ref(), method.as_ref());
    let models = opening.app.models();
    let question = Embedding::new(selection, asked, Foreign::default(), &models)?;
    let place = opening.place()?;
    Ok(opening.answer(question, place, request.into_body(), Lines::default()))
}

#[derive(Serialize)]
struct Embedded<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'l>>,
    /// `None` for a text without a known word.
    embedding: Option<Vector<'l>>,
    tokens: usize,
    known: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl LineQuestion for Embedding {
    type Item<'b> = TextLine<'b>;
    type Answers = Embeddings;
    type Kept = ();

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.resolved)
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<TextLine<'b>> {
        parse(line)
    }

    fn id<'i>(item: &'i TextLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn per_part(&self, items: &[&TextLine<'_>]) -> usize {
        Asked::per_part(self, items)
    }

    fn ask(&self, items: &[&TextLine<'_>], _: &JobContext) -> Result<Embeddings> {
        Ok(Asked::ask(self, items)?)
    }

    fn counts(answers: &Embeddings) -> Counts {
        answers.counts
    }

    fn write(
        &self,
        _: &Line,
        item: &TextLine<'_>,
        answers: &Embeddings,
        place: usize,
        part: &mut Part<()>,
    ) {
        let unscored = answers.unscored.binary_search(&place).ok();
        let embedded = Embedded {
            id: item.id,
            embedding: answers.get(place).map(|vector| self.encoding.write(vector)),
            tokens: answers.tokens.get(place).copied().unwrap_or(0),
            known: answers.known.get(place).copied().unwrap_or(0),
            reason: unscored.and_then(|at| answers.reasons.get(at).copied()),
            truncated: answers.truncated.binary_search(&place).is_ok(),
        };
        write(&mut part.answer, &embedded);
    }

    fn pointer_in_line(pointer: Pointer) -> Pointer {
        match pointer.segments() {
            [Segment::Field("texts"), Segment::Index(_)] => "/text".into(),
            _ => pointer,
        }
    }
}
