//! The first line of a stream of candidates: the question, which is the body of `POST /rank`
//! without its candidates.

use std::collections::HashSet;

use cognate::engine::rank::{Pages, Question};
use cognate::engine::{BoostBy, Candidates, PageOptions, Query, Ranked, Ranking};
use serde::Deserialize;

use crate::http::api::rank::{NEGATIVE_BOOST, RankRequest, UNUSED_SCORES};
use crate::http::api::stream::line::LineId;
use crate::http::api::stream::rank::best::{Folded, Held, More};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};
use crate::http::request::fields::{CallersData, CallersScores, CandidateId, Score, Text, forms};
use crate::http::request::json;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;

pub(super) struct FirstQuestion {
    pub(super) resolved: Resolved,
    /// The question for the candidates that are stored at the end.
    pub(super) question: Question<'static>,
    /// Most candidates that are stored for it.
    pub(super) most: usize,
    pub(super) return_text: bool,
    by: BoostBy,
    /// Whether candidates that are opposed to the query are left out.
    drop_opposed: bool,
    /// Whether the results are merged, varied or explained, and not only sorted.
    pub(super) makes_pages: bool,
    exclude: HashSet<CandidateId<'static>>,
}

impl FirstQuestion {
    pub(super) fn read(app: &App, line: &[u8]) -> Result<Self> {
        let request: RankRequest<'_> = json::read_object(line)?;
        request.check_first_line()?;
        let asked = request.asked(None)?.owned();
        request.check_lengths(app)?;
        let resolved = request.resolve(&app.models())?;
        let engine = &resolved.model.engine;
        engine.check(&resolved.query)?;
        if resolved.fused.is_some() || !engine.ranks_in_parts(resolved.query.method) {
            let detail = format!(
                "{} scores each candidate by all others, which a stream does not keep: send them as \
                 JSON, or choose another method",
                resolved.method_name()
            );
            return Err(ApiError::at(Code::InvalidField, "/method", detail));
        }
        let mut question = request.question(asked, &resolved)?;
        let (most, page) = (app.settings.max_candidates, &mut question.page);
        let wanted = page.end().unwrap_or(most);
        if wanted > most {
            let field = if request.offset.is_some() { "/offset" } else { "/top_k" };
            return Err(ApiError::beyond(Code::TooManyItems, field, "results", most, wanted));
        }
        // Opposed candidates are left out as they arrive, and take no slots.
        let drop_opposed = std::mem::take(&mut page.drop_opposed);
        let names = request.exclude.iter().flat_map(|list| &list.items);
        request.parts().for_each(|part| app.metrics.ranked_with(part));
        Ok(Self {
            most: page.needed().unwrap_or(most),
            return_text: request.return_text.unwrap_or(false),
            by: request.boost_by.unwrap_or_default().into(),
            drop_opposed,
            makes_pages: page.collapse.is_some()
                || page.diversify.is_some()
                || page.explain
                || resolved.query.opposes
                || resolved.query.threshold.is_some(),
            exclude: names.cloned().map(CandidateId::into_owned).collect(),
            question,
            resolved,
        })
    }

    /// The question for candidates before all are known: those that reach a score.
    pub(super) fn of_some(&self, floor: Option<f32>) -> Question<'_> {
        let query = Query { opposes: false, threshold: None, ..self.question.query };
        // Where opposed candidates are dropped, candidates after the first `top_k` take their places.
        let top_k = Some(self.most).filter(|_| !self.drop_opposed);
        let page = PageOptions { top_k, drop_opposed: self.drop_opposed, ..PageOptions::default() };
        let asked = self.question.asked.borrowed();
        Question { min_score: floor, page, ..Question::new(asked, query) }
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.question.asked.texts().map(|(_, text)| text)
    }

    /// Candidates without excluded ones, and with their boosts.
    pub(super) fn candidates<'c, 'b>(
        &self,
        items: &'c [&'c CandidateLine<'b>],
    ) -> Candidates<'c, &'c CandidateLine<'b>> {
        let all = Candidates::new(items);
        let excludes = items.iter().any(|item| item.is_excluded);
        let ranked = if excludes { all.without(|item| item.is_excluded) } else { all };
        ranked.boosted(self.by, |item| item.boost)
    }

    /// Refuses fields of a candidate that cannot be used.
    pub(super) fn check(&self, candidate: &CandidateLine<'_>) -> Result<()> {
        if self.by == BoostBy::Multiply && candidate.boost.is_some_and(|boost| boost < 0.0) {
            return Err(ApiError::at(Code::OutOfRange, "/boost", NEGATIVE_BOOST));
        }
        if candidate.scores.is_some() {
            return Err(ApiError::at(Code::InvalidField, "/scores", UNUSED_SCORES));
        }
        Ok(())
    }

    /// Whether a candidate of this name is excluded.
    pub(super) fn excludes(&self, name: Option<LineId<'_>>) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let name = name.and_then(|name| {
            // A number that cannot be a name in a list is never excluded.
            serde_json::from_str::<CandidateId<'_>>(name.as_written())
                .ok()
                .map(CandidateId::into_owned)
        });
        name.is_some_and(|name| self.exclude.contains(&name))
    }
}

pub(super) struct CandidateLine<'b> {
    pub(super) id: Option<LineId<'b>>,
    text: Text<'b>,
    boost: Option<f32>,
    pub(super) data: Option<CallersData<'b>>,
    scores: Option<CallersScores<'b>>,
    pub(super) is_excluded: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
struct Fields<'b> {
    id: Option<LineId<'b>>,
    text: Text<'b>,
    boost: Option<Score>,
    data: Option<CallersData<'b>>,
    scores: Option<CallersScores<'b>>,
}

impl AsRef<str> for CandidateLine<'_> {
    fn as_ref(&self) -> &str {
        self.text.as_ref()
    }
}

impl<'b> CandidateLine<'b> {
    fn new(text: Text<'b>) -> Self {
        Self { id: None, text, boost: None, data: None, scores: None, is_excluded: false }
    }
}

forms!(CandidateLine<'b>: "a string or an object with `text`";
    text(text) => Ok(CandidateLine::new(Text(text)));
    object(Fields { id, text, boost, data, scores } in Fields<'de>) => {
        let boost = boost.map(|Score(boost)| boost as f32);
        Ok(CandidateLine { id, boost, data, scores, ..CandidateLine::new(text) })
    };);

/// The page of the stored candidates, best first, the unscored last.
pub(super) fn page(first: &FirstQuestion, held: Vec<Held>, work: &JobContext) -> Result<Vec<Held>> {
    let texts: Vec<&str> =
        held.iter().map(|held| held.text.as_deref().unwrap_or_default()).collect();
    let scored = held.iter().enumerate();
    let scored = scored.filter_map(|(index, held)| Some(Ranked { index, score: held.score? }));
    let measure = first.resolved.measure();
    let ranking = Ranking { measure, results: scored.collect(), ..Ranking::default() };
    let unscored = held.iter().filter(|held| held.score.is_none()).count();
    let (engine, question) = (&first.resolved.model.engine, &first.question);
    let (texts, check) = (Candidates::new(&texts), || work.check());
    let Pages { pages, .. } = engine.pages(question, &texts, ranking.into(), check)?;
    let Some(page) = pages.first() else { return Ok(Vec::new()) };
    let most = question.page.top_k.unwrap_or(usize::MAX);
    let all = held.len();
    let mut held: Vec<Option<Held>> = held.into_iter().map(Some).collect();
    let mut told = Vec::new();
    for result in page.results().take(most) {
        let duplicates = result.duplicates.iter().filter_map(|duplicate| {
            let other = held.get(duplicate.ranked.index)?.as_ref()?;
            let (score, similarity) = (duplicate.ranked.score, duplicate.similarity);
            Some(Folded { index: other.index, id: other.id.clone(), score, similarity })
        });
        let duplicates = duplicates.collect();
        let Some(mut line) = held.get_mut(result.index).and_then(Option::take) else { continue };
        let (like, words) =
            result.reason.cloned().map(|reason| (reason.like, reason.words)).unzip();
        let (opposes, related) = (result.opposes, result.related);
        let more = More { duplicates, like: like.flatten(), words, opposes, related };
        line.more = Some(Box::new(more));
        told.push(line);
    }
    // Unscored candidates follow, if they are listed.
    let rest = held.drain(all - unscored..).flatten();
    let skipped = question.page.offset.saturating_sub(page.ranking.results.len());
    told.extend(rest.skip(skipped).take(most.saturating_sub(told.len())));
    Ok(told)
}
