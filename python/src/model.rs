//! A model as Python holds it: the engine, and how many threads large questions take.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use cognate::Engine;
use cognate::engine::{Least, Place, RankOptions};
use cognate::model::OpenOptions;
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::answer::ArrowArray;
use crate::asked::{Asked, Question, Unscored};
use crate::column::{Column, text};
use crate::embed::Stand;
use crate::error::Problem;
use crate::explain::Explained;
use crate::methods::MethodInfo;
use crate::rank::{AskedFor, Candidates};
use crate::work::Crew;
use crate::{embed, error, methods, pairs, rank};

/// An opened model.
#[pyclass(frozen, name = "Model", module = "cognate_text._native")]
pub(crate) struct NativeModel {
    engine: Arc<Engine>,
    threads: usize,
}

/// Places and scores, a row a query.
type BestOfEach<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// Scores, and for each row without one of its own the reason.
type WithReasons<'py> = (Bound<'py, PyArray1<f32>>, BTreeMap<usize, &'static str>);

/// The least score that is wanted, as Python has it.
#[derive(FromPyObject)]
pub(crate) enum Cutoff {
    Number(f64),
    Word(String),
}

impl Cutoff {
    /// The least score, which is passed as the argument `name`.
    pub(crate) fn least(&self, name: &str) -> Result<Least, Problem> {
        match self {
            Self::Number(number) if number.is_nan() => {
                Err(Problem::setting(name, "a number", "nan"))
            }
            Self::Number(number) => Ok(Least::Number(*number)),
            Self::Word(word) => Least::named(word).map_err(Problem::unexpected(name)),
        }
    }
}

fn of_pair(place: Place) -> (&'static str, Option<usize>) {
    match place {
        Place::Pair(_, 0) => ("a", None),
        _ => ("b", None),
    }
}

pub(crate) fn of_rows(place: Place) -> (&'static str, Option<usize>) {
    match place {
        Place::Pair(row, 0) => ("a", Some(row)),
        Place::Pair(row, _) => ("b", Some(row)),
        Place::Text(row) => ("texts", Some(row)),
        Place::Candidate(row) => ("candidates", Some(row)),
        Place::Query => ("query", None),
        Place::QueryOf(row) => ("queries", Some(row)),
        Place::Liked(row) => ("like", Some(row)),
        Place::Disliked(row) => ("unlike", Some(row)),
    }
}

fn of_matrix(place: Place) -> (&'static str, Option<usize>) {
    match place {
        Place::Candidate(row) => ("choices", Some(row)),
        other => of_rows(other),
    }
}

impl NativeModel {
    /// The engine, for what outlives a question.
    pub(crate) fn shared(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    pub(crate) fn workers(&self) -> (&Engine, usize) {
        (&self.engine, self.threads)
    }

    fn crew<'p>(&self, progress: Option<&'p Py<PyAny>>) -> (&Engine, Crew<'p>) {
        (&self.engine, Crew { threads: self.threads, progress })
    }

    fn question(&self, asked: &Asked) -> Result<Question, Problem> {
        asked.of(&self.engine)
    }

    /// What is asked of candidates, with the least score of either kind.
    fn options(
        &self,
        question: &Question,
        top_k: Option<usize>,
        cutoff: Option<Cutoff>,
    ) -> Result<RankOptions, Problem> {
        let min_score = cutoff.map(|cutoff| self.least(question, "score_cutoff", cutoff));
        let mut options = RankOptions::all(question.query);
        (options.top_k, options.min_score) = (top_k, min_score.transpose()?);
        Ok(options)
    }

    /// The score that a cutoff comes to, which is passed as the argument `name`.
    fn least(&self, question: &Question, name: &str, cutoff: Cutoff) -> Result<f32, Problem> {
        Ok(cutoff.least(name)?.resolve(&self.engine, &question.query)?.least)
    }

    fn pair_rows(
        &self,
        py: Python<'_>,
        (a, b): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
        (asked, threshold): (&Asked, Option<Cutoff>),
        fill: f32,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<pairs::Scored> {
        let (a, b) = (Column::new(a, "a")?, Column::new(b, "b")?);
        let (a, b) = (a.texts()?, b.texts()?);
        if a.len() != b.len() {
            let (one, other) = (a.len(), b.len());
            let message =
                format!("a has {one} texts and b has {other}; pairs need as many of both");
            return Err(PyValueError::new_err(message));
        }
        let answer = || {
            let mut question = self.question(asked)?;
            let least = threshold.map(|cutoff| self.least(&question, "threshold", cutoff));
            question.query.threshold = least.transpose()?;
            pairs::check(&self.engine, &question)?;
            pairs::rows(py, self.crew(progress), (&a, &b), &question, fill)
        };
        answer().map_err(|problem| problem.raise(py, of_rows))
    }

    fn vector_rows(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        (asked, unknown, normalize): (&Asked, &str, bool),
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<(Array2<f32>, Vec<bool>)> {
        let column = Column::new(texts, "texts")?;
        let texts = column.texts()?;
        let answer = || {
            let stand = Stand::named(unknown)?;
            let question = asked.of_vectors(&self.engine)?;
            embed::rows(py, self.crew(progress), &texts, &question, (stand, normalize))
        };
        answer().map_err(|problem| problem.raise(py, of_rows))
    }
}

#[pymethods]
impl NativeModel {
    /// Opens a model file, mapped: all processes of a machine share its memory.
    #[new]
    fn open(py: Python<'_>, path: PathBuf, threads: Option<i64>) -> PyResult<Self> {
        let opened = py.detach(|| Engine::open(&path, &OpenOptions::default()));
        let engine = opened.map_err(|error| error::of_model(py, &error))?;
        let threads = match threads {
            Some(threads @ ..1) => {
                let message = format!("threads: expected at least 1, got {threads}");
                return Err(PyValueError::new_err(message));
            }
            Some(threads) => usize::try_from(threads).unwrap_or(usize::MAX),
            None => available_parallelism().map_or(1, NonZeroUsize::get),
        };
        Ok(Self { engine: Arc::new(engine), threads })
    }

    #[getter]
    fn fingerprint(&self) -> &str {
        self.engine.model().fingerprint()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.engine.model().path().to_owned()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.threads
    }

    #[getter]
    fn dims(&self) -> usize {
        self.engine.model().dims()
    }

    #[getter]
    fn words(&self) -> usize {
        self.engine.model().vocabulary().len()
    }

    #[getter]
    fn auto(&self) -> &'static str {
        self.engine.auto().name()
    }

    #[getter]
    fn auto_embedding(&self) -> &'static str {
        self.engine.auto_embedding().name()
    }

    fn methods(&self) -> Vec<MethodInfo> {
        methods::all(&self.engine)
    }

    fn embedding_dims(&self, py: Python<'_>, asked: Asked) -> PyResult<usize> {
        let dims = || {
            let question = asked.of_vectors(&self.engine)?;
            Ok(self.engine.embedding_dims(question.query.method)?)
        };
        dims().map_err(|problem: Problem| problem.raise(py, of_rows))
    }

    fn threshold(&self, py: Python<'_>, asked: Asked) -> PyResult<f32> {
        let found = || {
            let query = self.question(&asked)?.query;
            Ok(Least::Calibrated.resolve(&self.engine, &query)?.least)
        };
        found().map_err(|problem: Problem| problem.raise(py, of_rows))
    }

    fn similarity(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        asked: Asked,
    ) -> PyResult<Option<f32>> {
        let (a, b) = (text(a, "a")?, text(b, "b")?);
        let scored = self
            .question(&asked)
            .and_then(|question| pairs::one(py, &self.engine, (&a, &b), &question));
        scored.map_err(|problem| problem.raise(py, of_pair))
    }

    fn cpdist<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        asked: Asked,
        fill: f32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_vec(
            py,
            self.pair_rows(py, (a, b), (&asked, None), fill, progress.as_ref())?.scores,
        ))
    }

    /// The scores, and for each row without one of its own the reason.
    fn cpdist_full<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        asked: Asked,
        fill: f32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<WithReasons<'py>> {
        let scored = self.pair_rows(py, (a, b), (&asked, None), fill, progress.as_ref())?;
        let unscored: BTreeMap<_, _> = scored.unscored.into_iter().collect();
        let reason = |row: usize| match unscored.get(&row) {
            Some(reason) => Some(reason.name()),
            None => (scored.valid.get(row) == Some(&false)).then_some("missing"),
        };
        let reasons = (0..scored.valid.len()).filter_map(|row| Some((row, reason(row)?)));
        let reasons = reasons.collect();
        Ok((PyArray1::from_vec(py, scored.scores), reasons))
    }

    fn related<'py>(
        &self,
        py: Python<'py>,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        asked: Asked,
        threshold: Cutoff,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let scored = self.pair_rows(py, (a, b), (&asked, Some(threshold)), 0.0, None)?;
        Ok(PyArray1::from_vec(py, scored.related))
    }

    fn cpdist_arrow(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        asked: Asked,
    ) -> PyResult<ArrowArray> {
        let scored = self.pair_rows(py, (a, b), (&asked, None), 0.0, None)?;
        Ok(ArrowArray::numbers(scored.scores, scored.valid))
    }

    fn embed<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        asked: Asked,
        unknown: &str,
        normalize: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let asked = (&asked, unknown, normalize);
        let (vectors, _) = self.vector_rows(py, texts, asked, progress.as_ref())?;
        Ok(vectors.into_pyarray(py))
    }

    fn embed_arrow(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        asked: Asked,
        unknown: &str,
        normalize: bool,
    ) -> PyResult<ArrowArray> {
        let (vectors, valid) = self.vector_rows(py, texts, (&asked, unknown, normalize), None)?;
        ArrowArray::vectors(vectors, valid)
    }

    fn cdist<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyAny>,
        choices: &Bound<'py, PyAny>,
        asked: Asked,
        fill: f32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (queries, choices) =
            (Column::new(queries, "queries")?, Column::new(choices, "choices")?);
        let (queries, choices) = (queries.texts()?, choices.texts()?);
        let answer = || {
            let question = self.question(&asked)?;
            let fill = (fill, question.unscored == Unscored::Missing);
            let candidates = Candidates::new(&choices);
            rank::matrix(
                py,
                self.crew(progress.as_ref()),
                &queries,
                &candidates,
                &question.query,
                fill,
            )
        };
        let scores = answer().map_err(|problem| problem.raise(py, of_matrix))?;
        Ok(scores.into_pyarray(py))
    }

    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn cdist_best<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyAny>,
        choices: &Bound<'py, PyAny>,
        top_k: usize,
        score_cutoff: Option<Cutoff>,
        shortlist: Option<usize>,
        asked: Asked,
        fill: f32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<BestOfEach<'py>> {
        let (queries, choices) =
            (Column::new(queries, "queries")?, Column::new(choices, "choices")?);
        let (queries, choices) = (queries.texts()?, choices.texts()?);
        let answer = || {
            let question = self.question(&asked)?;
            let options = self.options(&question, Some(top_k), score_cutoff)?;
            let candidates = Candidates::new(&choices);
            rank::best(
                py,
                self.crew(progress.as_ref()),
                &queries,
                &candidates,
                &options,
                (fill, shortlist),
            )
        };
        let (indexes, scores) = answer().map_err(|problem| problem.raise(py, of_matrix))?;
        Ok((indexes.into_pyarray(py), scores.into_pyarray(py)))
    }

    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn rank(
        &self,
        py: Python<'_>,
        asked_for: AskedFor,
        candidates: &Bound<'_, PyAny>,
        top_k: Option<usize>,
        min_score: Option<Cutoff>,
        threshold: Option<Cutoff>,
        asked: Asked,
    ) -> PyResult<rank::Found> {
        let column = Column::new(candidates, "candidates")?;
        let texts = column.texts()?;
        let answer = || {
            let question = self.question(&asked)?;
            let mut options = self.options(&question, top_k, min_score)?;
            let least = threshold.map(|cutoff| self.least(&question, "threshold", cutoff));
            options.query.threshold = least.transpose()?;
            rank::one(py, self.crew(None), &asked_for, &Candidates::new(&texts), &options)
        };
        answer().map_err(|problem| problem.raise(py, of_rows))
    }

    fn explain(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        asked: Asked,
    ) -> PyResult<Explained> {
        let (a, b) = (text(a, "a")?, text(b, "b")?);
        let explained = || {
            let question = self.question(&asked)?;
            let names =
                (question.query.method.name(), self.engine.measure_of(&question.query).name());
            let explained = py.detach(|| self.engine.explain(&a, &b, &question.query));
            Ok::<_, Problem>(Explained::new(explained?, (&a, &b), names))
        };
        explained().map_err(|problem| problem.raise(py, of_pair))
    }

    /// Whether somebody wrote to the mapped file, so that scores may be wrong.
    fn damaged(&self) -> bool {
        self.engine.model().look_again();
        self.engine.model().damaged()
    }
}
