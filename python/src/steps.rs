//! The search for near-duplicates in steps, for texts that lie on many machines: each step looks at
//! the texts at hand, and what the machines tell each other between steps is plain numbers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cognate::Engine;
use cognate_rows::dedupe;
use cognate_rows::dedupe::steps::drawn;
use cognate_rows::dedupe::{
    Block, Blocks, Buckets, Centres, DedupeError, Judge, Match, Member, Search, WordCounts,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::asked::Asked;
use crate::column::Column;
use crate::dedupe::Sought;
use crate::error::Problem;
use crate::model::{NativeModel, of_rows};

/// The state of a search in one process.
#[pyclass(frozen, module = "cognate_text._native")]
pub(crate) struct Steps {
    engine: Arc<Engine>,
    search: Search,
    /// 32 MiB, for the steps that count.
    counts: OnceLock<WordCounts>,
    buckets: OnceLock<Buckets>,
}

/// Matches by earlier number, later number and score.
type Matches<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// Centres of buckets: the cells, how many centres each has, and the centres.
type Numbers<'py> =
    (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

impl Steps {
    fn counts(&self) -> &WordCounts {
        self.counts.get_or_init(WordCounts::default)
    }

    fn judge(&self) -> Result<Judge<'_>, Problem> {
        Ok(Judge::new(&self.engine, &self.search)?)
    }

    /// Does a step over texts with the interpreter let go; a missing text has no words.
    fn with_texts<R: Send>(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        step: impl FnOnce(&Judge<'_>, &[&str]) -> Result<R, DedupeError> + Send,
    ) -> PyResult<R> {
        let column = Column::new(texts, "texts")?;
        let texts: Vec<&str> = column.texts()?.into_iter().map(Option::unwrap_or_default).collect();
        let done = py.detach(|| Ok::<_, Problem>(step(&self.judge()?, &texts)?));
        done.map_err(|problem| problem.raise(py, of_rows))
    }

    fn matches(&self, blocks: &[Block]) -> Result<Vec<Match>, Problem> {
        let (judge, mut all) = (self.judge()?, Vec::new());
        for (key, members) in blocks {
            all.extend(judge.matches(*key, members)?.0);
        }
        Ok(all)
    }
}

#[pymethods]
impl Steps {
    #[new]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, NativeModel>,
        sought: Sought,
        asked: Asked,
    ) -> PyResult<Self> {
        let engine = model.get().shared();
        let search = sought.search(&asked, &engine);
        let search = search.map_err(|problem| problem.raise(py, of_rows))?;
        let (counts, buckets) = (OnceLock::new(), OnceLock::new());
        let steps = Self { engine, search, counts, buckets };
        // Invalid options are refused before any text is read.
        steps.judge().map_err(|problem| problem.raise(py, of_rows))?;
        Ok(steps)
    }

    /// A digest of each text that those of the same tokens share; nothing for a text without tokens.
    fn digests<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let digests = self.with_texts(py, texts, |judge, texts| Ok(judge.digests(texts)))?;
        let bytes = |digest: u128| PyBytes::new(py, &digest.to_be_bytes());
        Ok(digests.into_iter().map(|digest| digest.map(bytes)).collect())
    }

    /// Counts the words of texts.
    fn count(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with_texts(py, texts, |judge, texts| {
            judge.count(texts, self.counts());
            Ok(())
        })
    }

    /// The counters that counted anything, and what they counted.
    fn counted<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>) {
        let (counters, counts): (Vec<u32>, Vec<u32>) = self.counts().counted().unzip();
        (PyArray1::from_vec(py, counters), PyArray1::from_vec(py, counts))
    }

    /// Adds what other processes counted.
    fn add_counts(
        &self,
        counters: PyReadonlyArray1<'_, u32>,
        counts: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        for (&counter, &count) in counters.as_slice()?.iter().zip(counts.as_slice()?) {
            self.counts().add(counter, count);
        }
        Ok(())
    }

    /// Returns which of these texts' numbers are in the sample of `distinct` texts.
    #[staticmethod]
    fn drawn<'py>(
        py: Python<'py>,
        numbers: PyReadonlyArray1<'_, u32>,
        distinct: u64,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let drawn = numbers.as_slice()?.iter().map(|&number| drawn(number, distinct));
        Ok(PyArray1::from_iter(py, drawn))
    }

    /// The vectors of texts at length 1, one after the other; zeros for a text without.
    fn vectors<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let rows = self.with_texts(py, texts, |judge, texts| {
            judge.vectors_of(texts).map_err(DedupeError::Query)
        })?;
        Ok(PyArray1::from_vec(py, rows))
    }

    /// Returns the dimensions of the vectors.
    #[getter]
    fn dims(&self, py: Python<'_>) -> PyResult<usize> {
        self.judge().map(|judge| judge.dims()).map_err(|problem| problem.raise(py, of_rows))
    }

    /// Buckets for so many different texts, by the vectors of a sample of them.
    fn learn<'py>(
        &self,
        py: Python<'py>,
        sample: PyReadonlyArray1<'py, f32>,
        distinct: u64,
        threads: usize,
    ) -> PyResult<Numbers<'py>> {
        let (sample, dims) = (sample.as_slice()?.to_vec(), self.dims(py)?);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let learnt = py.detach(|| pool.install(|| Centres::new(&sample, dims, distinct)));
        Ok((
            PyArray1::from_vec(py, learnt.cells),
            PyArray1::from_vec(py, learnt.counts),
            PyArray1::from_vec(py, learnt.centres),
        ))
    }

    /// Takes over what was learnt elsewhere.
    fn set_buckets(
        &self,
        py: Python<'_>,
        cells: PyReadonlyArray1<'_, f32>,
        counts: PyReadonlyArray1<'_, u32>,
        centres: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<()> {
        let centres = Centres {
            cells: cells.as_slice()?.to_vec(),
            counts: counts.as_slice()?.to_vec(),
            centres: centres.as_slice()?.to_vec(),
        };
        let taken = self.buckets.set(Buckets::new(&centres, self.dims(py)?));
        taken.map_err(|_| PyValueError::new_err("the buckets are set already"))
    }

    /// The keys that each text is compared by, eight bytes each.
    fn keys<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let missing = || PyValueError::new_err("the buckets are not set");
        let buckets = self.buckets.get().ok_or_else(missing)?;
        let keys = self.with_texts(py, texts, |judge, texts| {
            judge.keys(texts, self.counts(), buckets).map_err(DedupeError::Query)
        })?;
        let bytes = |own: Vec<u64>| {
            PyBytes::new(py, &own.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
        };
        Ok(keys.into_iter().map(bytes).collect())
    }
}

/// Texts as they come in the order of keys and numbers, compared block by block.
#[pyclass(frozen, module = "cognate_text._native")]
pub(crate) struct Matcher {
    steps: Py<Steps>,
    blocks: Mutex<Blocks>,
}

impl Matcher {
    fn found<'py>(&self, py: Python<'py>, whole: Vec<Block>) -> PyResult<Matches<'py>> {
        let steps = self.steps.get();
        let found = py.detach(|| steps.matches(&whole));
        let found = found.map_err(|problem| problem.raise(py, of_rows))?;
        Ok((
            PyArray1::from_iter(py, found.iter().map(|found| found.earlier)),
            PyArray1::from_iter(py, found.iter().map(|found| found.later)),
            PyArray1::from_iter(py, found.iter().map(|found| found.score)),
        ))
    }
}

#[pymethods]
impl Matcher {
    #[new]
    fn new(steps: Py<Steps>) -> Self {
        Self { steps, blocks: Mutex::default() }
    }

    /// Takes rows: the key of each, the number of its text, all keys of the text, and the text. Gives
    /// the matches of the blocks that are whole.
    fn push<'py>(
        &self,
        py: Python<'py>,
        keys: PyReadonlyArray1<'py, i64>,
        numbers: PyReadonlyArray1<'py, u32>,
        all_keys: Vec<Bound<'py, PyBytes>>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Matches<'py>> {
        let column = Column::new(texts, "texts")?;
        let rows = keys.as_slice()?.iter().zip(numbers.as_slice()?).zip(all_keys);
        let mut whole = Vec::new();
        {
            let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            for (((&key, &id), all), text) in rows.zip(column.texts()?) {
                let own = all.as_bytes().as_chunks::<8>().0.iter();
                let keys = own.map(|key| u64::from_le_bytes(*key)).collect();
                let text = text.unwrap_or_default().to_owned();
                whole.extend(blocks.push(key.cast_unsigned(), Member { id, keys, text }));
            }
        }
        self.found(py, whole)
    }

    /// The matches of the last block.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Matches<'py>> {
        let last = self.blocks.lock().unwrap_or_else(PoisonError::into_inner).finish();
        self.found(py, last.into_iter().collect())
    }
}

/// For each text the number of its representative, and its score with it.
type Standing<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// Returns for each text its representative, the text itself if it has none, and its score with it.
#[pyfunction]
pub(crate) fn stand_for<'py>(
    py: Python<'py>,
    texts: u32,
    earlier: PyReadonlyArray1<'py, u32>,
    later: PyReadonlyArray1<'py, u32>,
    scores: PyReadonlyArray1<'py, f32>,
) -> PyResult<Standing<'py>> {
    let pairs = earlier.as_slice()?.iter().zip(later.as_slice()?).zip(scores.as_slice()?);
    let of = |((&earlier, &later), &score)| Match { earlier, later, score, shared: String::new() };
    let matches: Vec<Match> = pairs.map(of).collect();
    let stands = py.detach(|| dedupe::stand_for(texts, &matches))?;
    let (of, scores): (Vec<u32>, Vec<f32>) = stands.into_iter().unzip();
    Ok((PyArray1::from_vec(py, of), PyArray1::from_vec(py, scores)))
}
