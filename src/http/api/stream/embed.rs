//! `POST /embed` as lines: a text in, its vector out.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::{Counts, Embeddings, Reason};
use serde::Serialize;

use crate::http::api::embed::{
    EmbedParameters, Encoding, UnknownVector, Vector, resolve, set_length_1,
};
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, TextLine, parse, write};
use crate::http::api::stream::{LineQuestion, Opening, settings};
use crate::http::app::App;
use crate::http::error::{ApiError, Pointer, Segment};
use crate::http::request::query::{OovPolicy, Resolved, Selection, WRITING, estimate};
use crate::http::work::pool::JobContext;
use crate::http::work::pool::items_per_part;

struct Texts {
    resolved: Resolved,
    dims: usize,
    encoding: Encoding,
    normalize: bool,
    unknown: UnknownVector,
}

pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let opening = Opening::of(app, &request)?;
    let names = "model, method, normalize, encoding, oov, unknown and truncate";
    let asked: EmbedParameters = settings(request.uri(), names)?;
    let unknown = asked.unknown.unwrap_or_default();
    let refuse = unknown == UnknownVector::Error;
    let selection = Selection {
        oov: if refuse { Some(OovPolicy::Error) } else { asked.oov },
        truncate: asked.truncate,
        ..Selection::named(asked.model.as_ref(), asked.method.as_ref())
    };
    let (resolved, dims) = resolve(&selection, &opening.app.models())?;
    let (encoding, normalize) =
        (asked.encoding.unwrap_or_default(), asked.normalize.unwrap_or(false));
    let place = opening.place()?;
    let question = Texts { resolved, dims, encoding, normalize, unknown };
    Ok(opening.answer(question, place, request.into_body(), Lines::default()))
}

#[derive(Serialize)]
struct Embedded<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'l>>,
    /// None for a text without a known word.
    embedding: Option<Vector>,
    tokens: usize,
    /// Number of tokens that a word was found for.
    known: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl LineQuestion for Texts {
    type Item<'b> = TextLine<'b>;
    type Answers = Embeddings;
    type Kept = ();

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.resolved)
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<TextLine<'b>, ApiError> {
        parse(line)
    }

    fn id<'i>(item: &'i TextLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn per_part(&self, items: &[&TextLine<'_>]) -> usize {
        let writing = (self.dims as u64).saturating_mul(WRITING);
        let each = |item: &&TextLine<'_>| {
            let text = AsRef::<str>::as_ref(*item);
            let scoring = self.resolved.multiplications(text, "");
            estimate(text.len(), scoring.saturating_add(writing))
        };
        items_per_part(items.len(), items.iter().map(each).fold(0, u64::saturating_add))
    }

    fn ask(&self, items: &[&TextLine<'_>], _: &JobContext) -> Result<Embeddings, ApiError> {
        Ok(self.resolved.model.engine.embed(items, &self.resolved.query)?)
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
        let model = self.resolved.model.engine.model();
        let vector = answers.vectors.get(place).cloned().flatten();
        let mut vector = vector.or_else(|| self.unknown.vector(item.as_ref(), self.dims, model));
        if let Some(vector) = vector.as_mut().filter(|_| self.normalize) {
            set_length_1(vector);
        }
        let unscored = answers.unscored.binary_search(&place).ok();
        let embedded = Embedded {
            id: item.id,
            embedding: vector.map(|vector| self.encoding.write(vector)),
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
