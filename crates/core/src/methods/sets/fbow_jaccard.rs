//! Fuzzy bag-of-words over a fixed universe (Zhelezniak et al. 2019, section 3): the principal
//! axes of the vocabulary, or the centroids of its clusters, stored with the model.
//!
//! `m_X(k) = max(0, max over words w of X of v(w) · u_k)`, score
//! `Σ min(m_X, m_Y) / Σ max(m_X, m_Y)`.
//!
//! Axes are those of principal component analysis proper: directions of spread **about the mean**
//! of the vocabulary. About zero the first axis would be little more than that mean, to which
//! every word belongs. Words themselves are multiplied with the axes uncentred, as everywhere in
//! the family, and an axis stands for one of its two directions: that in which its largest
//! component is positive.

use std::num::NonZeroUsize;

use cognate_kernels::linalg::{About, KMeans, Moments};
use cognate_kernels::vector::Row;
use cognate_kernels::{linalg, vector};
use serde::Serialize;

use crate::choice::choice;
use crate::methods::info::BLOCK;
use crate::methods::sets::fuzzy;
use crate::methods::sets::fuzzy::FixedUniverse;
use crate::methods::{Cost, Fitted, Info, Loaded, Scorer, unavailable};
use crate::model::{LONGEST, Model};

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "Fuzzy sets over a universe stored with the model, compared by Jaccard's ratio.",
    paper: "Zhelezniak et al. 2019",
    range: (0.0, 1.0),
    ..Info::new("fbow-jaccard")
};

const SECTION: &str = "universe";

/// Each word with each member of the universe, which is also read once a text. Universes have from
/// half as many members as vectors have dimensions to as many.
const COST: Cost = Cost {
    pair: |n, m, d| (n + m + 4) * products(d),
    candidate: |n, m, d| n * products(d) / BLOCK + (m + 2) * products(d),
    bound: None,
};

const fn products(d: u64) -> u64 {
    d * d * 3 / 4
}

pub(crate) fn load(model: &Model) -> Loaded {
    let Some(section) = model.section(SECTION) else {
        let remedy = "add one with `cognate fit MODEL --universe axes:100`";
        return unavailable("the model has no fixed universe", remedy);
    };
    let rows = section.floats_shaped("rows", &[None, Some(model.dims() as u64)])?;
    let long = |row: &[f32]| vector::norm(Row::F32(row)) > LONGEST;
    if rows.chunks_exact(model.dims()).any(long) {
        return Err(section.broken(format!("a row is longer than {LONGEST:e}")));
    }
    let universe = fuzzy::Universe::Rows(rows.to_vec());
    Ok(Ok(Scorer::Compare(Box::new(FixedUniverse { universe, unit: false }))))
}

/// The members of a universe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Universe {
    /// Principal axes of the vocabulary.
    Axes,
    /// Centroids of its clusters.
    Centroids,
}

choice!(Universe { Axes = "axes", Centroids = "centroids" });

#[derive(Serialize)]
struct Made {
    kind: Universe,
    size: usize,
    seed: u64,
}

/// Most words that are clustered, the first and so the most frequent: the search holds them all in
/// memory at once.
const CLUSTERED_WORDS: usize = 100_000;
/// Updates after which centroids hardly move any more.
const UPDATES: usize = 50;

/// Makes a universe of the vocabulary, of `size` members, or of all axes or words if these are
/// fewer. `seed` is for the start of clusters; axes need none.
pub fn fit(model: &Model, kind: Universe, size: usize, seed: u64) -> Fitted {
    let (vectors, size) = (model.vectors(), size.max(1));
    let dims = vectors.dims();
    let rows = match kind {
        Universe::Axes => {
            let mut moments = Moments::new(dims);
            let mut wide = vec![0.0; dims];
            each_row(model, vectors.len(), |row| {
                row.copy_to(&mut wide);
                moments.add(&wide);
            });
            linalg::principal_axes(&moments, size, About::Mean).to_rows()
        }
        Universe::Centroids => {
            let words = vectors.len().min(CLUSTERED_WORDS);
            let mut table = Vec::with_capacity(words.saturating_mul(dims));
            each_row(model, words, |row| {
                let start = table.len();
                table.resize(start + dims, 0.0);
                row.copy_to(&mut table[start..]);
            });
            let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            let search = KMeans { clusters: size, seed, max_iterations: UPDATES, threads };
            search.fit(&table, dims).centroids
        }
    };
    let size = rows.len() / dims;
    // Three plain values always have a JSON form.
    let settings = serde_json::to_string(&Made { kind, size, seed }).unwrap_or_default();
    Fitted {
        section: SECTION,
        settings,
        tensors: vec![("rows", vec![size, dims], rows)],
        bytes: Vec::new(),
    }
}

/// Calls `visit` with the first `words` rows of the vocabulary, in their order.
fn each_row(model: &Model, words: usize, visit: impl FnMut(Row<'_>)) {
    let ids = 0..u32::try_from(words).unwrap_or(u32::MAX);
    ids.filter_map(|id| model.vectors().row(id)).for_each(visit);
}
