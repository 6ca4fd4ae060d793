//! What can find the nearest of a text: vectors, vectors with a second look, and two references.

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::window::stream::look_again;
use cognate::window::{Entry, Limits, Near, Window};
use rayon::prelude::*;

use crate::EvalError;
use crate::events::stream::Labelled;
use crate::events::{EventsOptions, reference, unit};

/// The method whose vectors find the nearest.
const VECTORS: Method = Method::AvgCos;
/// The least cosine of a text that is asked.
const FLOOR: f32 = 0.2;

/// What finds the nearest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Contender {
    Vectors,
    /// That, scored once more.
    Second(Method),
    /// The cosine of counts weighted by how rare a word is in the stream.
    TfIdf,
    /// Shared minima of hashes.
    MinHash,
}

impl Contender {
    pub(super) fn all(engine: &Engine, options: &EventsOptions) -> Result<Vec<Self>, EvalError> {
        let mut all = Vec::new();
        for name in &options.seconds {
            if name == "none" {
                all.push(Self::Vectors);
                continue;
            }
            let named =
                engine.method(name).map_err(|error| EvalError::Options(error.to_string()))?;
            engine
                .check(&Query::new(named))
                .map_err(|error| EvalError::Options(error.to_string()))?;
            all.push(Self::Second(named));
        }
        if options.references {
            all.extend([Self::TfIdf, Self::MinHash]);
        }
        Ok(all)
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Vectors => VECTORS.name().to_owned(),
            Self::Second(method) => format!("{}, then {}", VECTORS.name(), method.name()),
            Self::TfIdf => "tf-idf".to_owned(),
            Self::MinHash => "MinHash".to_owned(),
        }
    }

    pub(super) fn has_vectors(self) -> bool {
        matches!(self, Self::Vectors | Self::Second(_))
    }

    /// Thresholds that are tried, in steps of 0.03.
    pub(super) fn steps(self) -> std::ops::RangeInclusive<u32> {
        if self.has_vectors() { 10..=20 } else { 2..=20 }
    }

    /// The nearest of each text before it.
    pub(super) fn nearest(
        self,
        engine: &Engine,
        stream: &Labelled,
        vectors: &[Option<Vec<f32>>],
        options: &EventsOptions,
    ) -> Result<Vec<Vec<Near>>, EvalError> {
        let (last, most) = (options.last, options.nearest);
        match self {
            Self::TfIdf => Ok(reference::tf_idf(engine, &stream.texts, last, most)),
            Self::MinHash => Ok(reference::min_hash(engine, &stream.texts, last, most)),
            Self::Vectors => Ok(by_vectors(vectors, last, most)),
            Self::Second(method) => {
                let near = by_vectors(vectors, last, most);
                let text_of = |number: u64| {
                    stream.texts.get(usize::try_from(number).ok()?).map(String::as_str)
                };
                let both = stream.texts.par_iter().zip(&near);
                let again =
                    both.map(|(text, near)| look_again(engine, method, text, near, text_of));
                again.collect::<Result<_, _>>().map_err(refused)
            }
        }
    }
}

fn refused(source: cognate::engine::QueryError) -> EvalError {
    EvalError::Query { file: "the stream".to_owned(), source }
}

fn by_vectors(vectors: &[Option<Vec<f32>>], last: usize, most: usize) -> Vec<Vec<Near>> {
    let dims = vectors.iter().flatten().map(Vec::len).next().unwrap_or(1);
    let mut window = Window::new(dims, Limits { last, within: None });
    let entries = vectors.iter().map(|vector| Entry { time: 0, vector: vector.as_deref() });
    let entries: Vec<Entry<'_>> = entries.collect();
    window.follow(&entries, most, FLOOR)
}

/// The vectors of the texts of a stream.
pub(super) fn vectors(
    engine: &Engine,
    stream: &Labelled,
) -> Result<Vec<Option<Vec<f32>>>, EvalError> {
    let query = Query { truncate: true, ..Query::new(VECTORS) };
    let embedded = engine.embed(&stream.texts, &query).map_err(refused)?;
    Ok(embedded.vectors.into_iter().map(|vector| vector.and_then(unit)).collect())
}
