//! What is made of the candidates that are held once all are known, as it is made of a list.

use std::borrow::Cow;

use cognate::engine::{Ranked, Ranking};

use crate::http::api::rank::Placed;
use crate::http::api::stream::rank::best::{Folded, Held, More};
use crate::http::api::stream::rank::first_line::FirstQuestion;
use crate::http::error::ApiError;
use crate::http::request::fields::{Candidate, Count, Text};
use crate::http::work::pool::JobContext;

/// The page of the candidates that are held, best first, the unscored last.
pub(super) fn page(
    first: &FirstQuestion,
    held: Vec<Held>,
    work: &JobContext,
) -> Result<Vec<Held>, ApiError> {
    let text = |held: &Held| held.text.as_deref().unwrap_or_default().to_owned();
    let candidates = held.iter().map(|held| Candidate::Text(Text(Cow::Owned(text(held)))));
    let request = first.request(candidates.collect())?;
    let scored = held.iter().enumerate();
    let scored = scored.filter_map(|(index, held)| Some(Ranked { index, score: held.score? }));
    let measure = first.resolved.measure();
    let ranking = Ranking { measure, results: scored.collect(), ..Ranking::default() };
    let unscored = held.iter().filter(|held| held.score.is_none()).count();
    let page = request.page(ranking, first.options, &request.asked()?, &first.resolved, work)?;
    let most = request.top_k.map_or(usize::MAX, |Count(most)| most);
    let (placed, passed_over) = page.placed(first.offset);
    let all = held.len();
    let mut held: Vec<Option<Held>> = held.into_iter().map(Some).collect();
    let folded = |held: &[Option<Held>], placed: &Placed| {
        let folded = placed.duplicates.iter().filter_map(|duplicate| {
            let other = held.get(duplicate.ranked.index)?.as_ref()?;
            let (score, similarity) = (duplicate.ranked.score, duplicate.similarity);
            Some(Folded { index: other.index, id: other.id.clone(), score, similarity })
        });
        folded.collect::<Vec<_>>()
    };
    let mut told = Vec::with_capacity(placed.len());
    for placed in placed.into_iter().take(most) {
        let duplicates = folded(&held, &placed);
        let Some(mut result) = held.get_mut(placed.index).and_then(Option::take) else { continue };
        let Placed { like, words, .. } = placed;
        result.more = Some(Box::new(More { duplicates, like, words }));
        told.push(result);
    }
    // Those without a score follow, where everything is wanted.
    let rest = held.drain(all - unscored..).flatten();
    let left = first.offset - passed_over;
    told.extend(rest.skip(left).take(most.saturating_sub(told.len())));
    Ok(told)
}
