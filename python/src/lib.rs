//! `cognate._native`: cognate's library as Python sees it, for NumPy and Arrow.
//!
//! Python's own side (`lib/cognate_text`) checks what users write and gives answers their shape; this
//! side turns columns into texts, asks the engine with the interpreter let go, and turns numbers
//! into arrays. It knows neither pandas nor any other library by name, and computes no score.

mod answer;
mod asked;
mod column;
mod dedupe;
mod embed;
mod error;
mod events;
mod explain;
mod methods;
mod model;
mod pairs;
mod rank;
mod steps;
mod work;

/// The part of the package `cognate` that is compiled.
// Everything shared between threads is immutable or behind a lock, so no interpreter lock is needed.
#[pyo3::pymodule(name = "_native", gil_used = false)]
mod native {
    use cognate::engine::Likes;
    use cognate::window::usual;
    use cognate::window::usual::Preset;
    use cognate_files::instant;

    // What is taken where a caller says nothing else.
    #[pymodule_export]
    const CENTRE: f32 = usual::CENTRE;
    #[pymodule_export]
    const DUPLICATES: f64 = usual::DUPLICATES;
    #[pymodule_export]
    const LAST: usize = usual::LAST;
    #[pymodule_export]
    const METHOD: &str = usual::METHOD;
    #[pymodule_export]
    const NEAREST: usize = usual::NEAREST;
    #[pymodule_export]
    const PRESET: &str = Preset::Topics.name();
    #[pymodule_export]
    const UNLIKE_WEIGHT: f32 = Likes::UNLIKE_WEIGHT.get();
    #[pymodule_export]
    const VOTES: usize = usual::VOTES;

    // What texts can say for a time and for a span of time, for messages.
    #[pymodule_export]
    const INSTANTS: &str = instant::FORMS;
    #[pymodule_export]
    const SPANS: &str = instant::SPANS;

    #[pymodule_export]
    use crate::answer::ArrowArray;
    #[pymodule_export]
    use crate::dedupe::near_duplicates;
    #[pymodule_export]
    use crate::events::NativeDetector;
    #[pymodule_export]
    use crate::events::milliseconds;
    #[pymodule_export]
    use crate::events::span;
    #[pymodule_export]
    use crate::model::NativeModel;
    #[pymodule_export]
    use crate::steps::Matcher;
    #[pymodule_export]
    use crate::steps::Steps;
    #[pymodule_export]
    use crate::steps::stand_for;
}
