//! One text against many, or many against many.

use std::sync::{Mutex, PoisonError};

use cognate::Engine;
use cognate::engine::rank::{Asked, Partial, Question, Session};
use cognate::engine::{
    Diversify, Liked, Likes, PageOptions, Parts, Place, Query, QueryError, RankOptions, Weight,
};
use cognate::window::usual;
use numpy::ndarray::{Array2, Axis};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::column::OwnText;
use crate::error::Problem;
use crate::work;
use crate::work::Crew;

/// Number of candidates that a thread takes at once: a few milliseconds' work, so that the cost of
/// preparing the query is shared by many candidates.
const PER_PART: usize = 4096;

/// Queries that a thread takes at once: each reads all candidates, which many queries share.
const QUERIES: usize = 256;

/// What stands for a candidate where a query has fewer than were asked for.
const NOBODY: i64 = -1;

/// The candidates that are not missing, and their indexes in the caller's list.
pub(crate) struct Candidates<'t> {
    texts: Vec<&'t str>,
    places: Vec<usize>,
    all: usize,
}

impl<'t> Candidates<'t> {
    pub(crate) fn new(column: &[Option<&'t str>]) -> Self {
        let present = column.iter().enumerate().filter_map(|(at, text)| Some((at, (*text)?)));
        let (places, texts) = present.unzip();
        Self { texts, places, all: column.len() }
    }

    /// Where the candidate with this index among those present stood.
    fn place(&self, index: usize) -> usize {
        self.places.get(index).copied().unwrap_or(index)
    }

    fn missing(&self) -> impl Iterator<Item = usize> {
        let mut present = self.places.iter().copied().peekable();
        (0..self.all).filter(move |at| present.next_if_eq(at).is_none())
    }

    /// The same error, with its place among all candidates.
    fn restore(&self, error: QueryError) -> QueryError {
        match error.place() {
            Some(Place::Candidate(at)) => error.placed(Place::Candidate(self.place(at))),
            _ => error,
        }
    }
}

/// What candidates are ranked for, as Python passes it: a query, or liked texts with their weights,
/// disliked ones, what is made of several, and what a disliked text counts; then what a score counts
/// against likeness to those before it, where results are to differ; and the least share of the query's words
/// that must be known.
#[derive(FromPyObject)]
pub(crate) struct AskedFor {
    #[pyo3(item)]
    query: Option<OwnText>,
    #[pyo3(item)]
    like: Vec<(OwnText, f32)>,
    #[pyo3(item)]
    unlike: Vec<OwnText>,
    #[pyo3(item)]
    strategy: String,
    #[pyo3(item)]
    unlike_weight: f32,
    #[pyo3(item)]
    diversify: Option<f64>,
    #[pyo3(item)]
    min_known: f64,
}

/// A candidate, its score, and with a threshold whether it is related to the query.
type FoundOne = (usize, Option<f32>, Option<bool>);

/// A ranking as Python takes it: candidates, and the share of the query's words that are known where not all
/// are.
pub(crate) type Found = (Vec<FoundOne>, Option<f32>);

impl AskedFor {
    fn likes(&self) -> Result<Likes<'_>, Problem> {
        let weight = |name: &str, number: f32| {
            let wrong = || Problem::setting(name, Weight::EXPECTED, &number.to_string());
            Weight::new(number).ok_or_else(wrong)
        };
        let liked = self.like.iter().map(|(text, number)| {
            Ok(Liked { text: text.0.as_str().into(), weight: weight("like", *number)? })
        });
        Ok(Likes {
            liked: liked.collect::<Result<_, Problem>>()?,
            disliked: self.unlike.iter().map(|text| text.0.as_str().into()).collect(),
            strategy: self.strategy.parse().map_err(Problem::unexpected("strategy"))?,
            unlike_weight: weight("unlike_weight", self.unlike_weight)?,
        })
    }
}

/// Candidates for one query or for liked texts, best first; those without a score come last, unless a
/// least score is asked for.
pub(crate) fn one(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    asked: &AskedFor,
    candidates: &Candidates<'_>,
    options: &RankOptions,
) -> Result<Found, Problem> {
    let likes = asked.likes()?;
    if !(0.0..=1.0).contains(&asked.min_known) {
        let got = asked.min_known.to_string();
        return Err(Problem::setting("min_known", "a number from 0 to 1", &got));
    }
    if let Some(lambda) = asked.diversify.filter(|lambda| !(0.0..=1.0).contains(lambda)) {
        let got = lambda.to_string();
        return Err(Problem::setting("diversify", "a number from 0 to 1", &got));
    }
    let diversify = |lambda| Diversify { lambda, ..Diversify::default() };
    let page = PageOptions {
        top_k: options.top_k,
        diversify: asked.diversify.map(diversify),
        ..PageOptions::default()
    };
    let texts: Asked<'_> =
        asked.query.as_ref().map_or_else(|| likes.into(), |text| text.0.as_str().into());
    let query = Query { min_known: asked.min_known as f32, ..options.query };
    let question = Question { min_score: options.min_score, page, ..Question::new(texts, query) };
    let list = cognate::engine::Candidates::new(&candidates.texts);
    let all = candidates.texts.len();
    let per_part = if question.is_in_parts(engine) { PER_PART } else { all.max(1) };
    // A query that cannot be asked is refused whatever there is to rank.
    let count = all.div_ceil(per_part).max(1);
    let ranked = Mutex::new(Vec::new());
    work::each(py, crew, count, 0..count, |number, go_on| {
        let first = number * per_part;
        let part = first..all.min(first + per_part);
        let run = |session: &mut Session<'_>| session.run(part, go_on);
        let part = engine.rank_session(&question, &list, run).and_then(|part| part);
        let part = part.map_err(|error| candidates.restore(error.moved(first)))?;
        ranked.lock().unwrap_or_else(PoisonError::into_inner).push((first, part));
        Ok(())
    })?;
    let mut ranked = ranked.into_inner().unwrap_or_else(PoisonError::into_inner);
    ranked.sort_unstable_by_key(|(first, _)| *first);
    let mut whole = Partial::default();
    for (first, part) in ranked {
        whole.append(part, first);
    }
    let check = || Ok::<_, Problem>(Python::attach(|py| py.check_signals())?);
    let made = py.detach(|| engine.pages(&question, &list, whole, check))?;
    let Some(page) = made.one() else { return Ok(Found::default()) };
    let listed =
        page.results().map(|result| (candidates.place(result.index), result.score, result.related));
    let missing = candidates.missing().filter(|_| options.min_score.is_none());
    let wanted = options.top_k.unwrap_or(usize::MAX);
    let found = listed.chain(missing.map(|at| (at, None, None))).take(wanted).collect();
    Ok((found, page.ranking.query_known))
}

/// Room for an answer, or `MemoryError`.
fn room<T: Clone>(rows: usize, width: usize, fill: T) -> Result<Array2<T>, Problem> {
    let mut room = Vec::new();
    let count = rows.checked_mul(width).filter(|&count| room.try_reserve_exact(count).is_ok());
    let count = count.ok_or_else(|| {
        let gibibytes = rows as f64 * width as f64 * size_of::<T>() as f64 / f64::from(1 << 30);
        Problem::Python(PyMemoryError::new_err(format!(
            "the scores of {rows} queries with {width} choices each take {gibibytes:.1} GiB; top_k keeps \
             the best of each query alone"
        )))
    })?;
    room.resize(count, fill);
    Ok(Array2::from_shape_vec((rows, width), room).expect("there are rows × width numbers"))
}

/// The score of every query with every candidate, a row a query; `fill` where there is none.
pub(crate) fn matrix(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    queries: &[Option<&str>],
    candidates: &Candidates<'_>,
    query: &Query,
    (fill, also_unscored): (f32, bool),
) -> Result<Array2<f32>, Problem> {
    let per_part = per_part(queries, crew.threads);
    let mut scores = room(queries.len(), candidates.all, fill)?;
    let parts = queries.chunks(per_part).zip(scores.axis_chunks_iter_mut(Axis(0), per_part));
    let count = queries.len().div_ceil(per_part);
    work::each(py, crew, count, parts.enumerate(), |(number, (queries, mut rows)), go_on| {
        let asked = Candidates::new(queries);
        let matrix = engine
            .score_matrix(&asked.texts, &candidates.texts, query, go_on)
            .map_err(|error| in_query(candidates.restore(error), &asked, number * per_part))?;
        for (at, own) in matrix.scores.rows().into_iter().enumerate() {
            let mut row = rows.row_mut(asked.place(at));
            for (index, &score) in own.iter().enumerate() {
                if score.is_nan() && also_unscored {
                    continue;
                }
                if let Some(place) = row.get_mut(candidates.place(index)) {
                    *place = if score.is_nan() { 0.0 } else { score };
                }
            }
        }
        Ok(())
    })?;
    Ok(scores)
}

/// Scores of a part of the queries with all candidates that are kept at once, by which a shortlist is found.
const MAX_SHORTLISTED: usize = 16 << 20;

/// Returns the best candidates of every query and their scores; missing ones are [`NOBODY`] and `fill`. With
/// a shortlist, only that many candidates of each query are scored: the nearest by the vectors of
/// [`usual::METHOD`].
pub(crate) fn best(
    py: Python<'_>,
    (engine, crew): (&Engine, Crew<'_>),
    queries: &[Option<&str>],
    candidates: &Candidates<'_>,
    options: &RankOptions,
    (fill, shortlist): (f32, Option<usize>),
) -> Result<(Array2<i64>, Array2<f32>), Problem> {
    let width = options.top_k.unwrap_or(candidates.all).min(candidates.all);
    let page = PageOptions { top_k: options.top_k, ..PageOptions::default() };
    let mut indexes = room(queries.len(), width, NOBODY)?;
    let mut scores = room(queries.len(), width, fill)?;
    let at_once = shortlist.map_or(usize::MAX, |_| MAX_SHORTLISTED / candidates.texts.len().max(1));
    let per_part = per_part(queries, crew.threads).min(at_once).max(1);
    let rows = indexes.axis_chunks_iter_mut(Axis(0), per_part);
    let rows = rows.zip(scores.axis_chunks_iter_mut(Axis(0), per_part));
    let parts = queries.chunks(per_part).zip(rows).enumerate();
    let count = queries.len().div_ceil(per_part);
    work::each(py, crew, count, parts, |(number, (queries, (mut indexes, mut scores))), go_on| {
        let mut asked = Candidates::new(queries);
        let restore = |error, asked: &Candidates<'_>| {
            in_query(candidates.restore(error), asked, number * per_part)
        };
        // A query that cannot be scored has no best candidate.
        let none: [&str; 0] = [];
        let read = engine.score_matrix(&asked.texts, &none, &options.query, || true);
        let unscored = read.map_err(|error| restore(error, &asked))?.texts;
        for &(at, _) in unscored.iter().rev() {
            asked.texts.remove(at);
            asked.places.remove(at);
        }
        type GoOn<'g> = &'g mut dyn FnMut() -> bool;
        let mut rank =
            |texts: Asked<'_>, first, list: &[&str], among: Option<&[usize]>, go_on: GoOn<'_>| {
                let (min_score, page) = (options.min_score, page);
                let question = Question { min_score, page, ..Question::new(texts, options.query) };
                let list = cognate::engine::Candidates::new(list);
                let run = |session: &mut Session<'_>| session.run(0..list.ranked().len(), go_on);
                let ranked = engine.rank_session(&question, &list, run).and_then(|ranked| ranked);
                let made =
                    ranked.and_then(|ranked| engine.pages(&question, &list, ranked, || Ok(())))?;
                for (at, made) in (first..).zip(&made.pages) {
                    let row = asked.place(at);
                    let places = indexes.row_mut(row).into_iter().zip(scores.row_mut(row));
                    for ((index, score), result) in places.zip(&made.ranking.results) {
                        let at = among.map_or(result.index, |among| among[result.index]);
                        *index = i64::try_from(candidates.place(at)).unwrap_or(NOBODY);
                        *score = result.score;
                    }
                }
                Ok::<_, QueryError>(())
            };
        let Some(length) = shortlist.filter(|&length| length < candidates.texts.len()) else {
            let texts = asked.texts.iter().map(|text| (*text).into()).collect();
            let ranked = rank(Asked::Each(texts), 0, &candidates.texts, None, go_on);
            return ranked.map_err(|error| restore(error, &asked).into());
        };
        let method = engine.method(usual::METHOD)?;
        let Query { refuse_unscored, truncate, .. } = options.query;
        let by_vectors = Query { refuse_unscored, truncate, ..Query::new(method) };
        let near = engine.score_matrix(&asked.texts, &candidates.texts, &by_vectors, &mut *go_on);
        let near = near.map_err(|error| restore(error, &asked))?.scores;
        for (at, row) in near.rows().into_iter().enumerate() {
            let mut among: Vec<usize> =
                (0..row.len()).filter(|&index| !row[index].is_nan()).collect();
            if among.len() > length {
                let best = |one: &usize, other: &usize| {
                    row[*other].total_cmp(&row[*one]).then(one.cmp(other))
                };
                among.select_nth_unstable_by(length, best);
                among.truncate(length);
                // Of equal scores the first candidate is the better one.
                among.sort_unstable();
            }
            let list: Vec<&str> = among.iter().map(|&index| candidates.texts[index]).collect();
            let ranked = rank(asked.texts[at].into(), at, &list, Some(&among), go_on);
            ranked.map_err(|error| restore(error, &asked))?;
        }
        Ok(())
    })?;
    Ok((indexes, scores))
}

/// How many of the queries a thread takes at once, so that all threads have some.
fn per_part(queries: &[Option<&str>], threads: usize) -> usize {
    queries.len().div_ceil(threads.max(1)).clamp(1, QUERIES)
}

/// The same error, with the place of a query among all of them.
fn in_query(error: QueryError, asked: &Candidates<'_>, first: usize) -> QueryError {
    match error.place() {
        Some(Place::QueryOf(at)) => error.placed(Place::QueryOf(first + asked.place(at))),
        _ => error,
    }
}
