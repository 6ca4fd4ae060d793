//! Smooth inverse frequency: the mean of word vectors, each weighted by how rare its word is, and
//! the same without the direction that all sentences share (Arora et al. 2017, algorithm 1).
//!
//! `sif`: `x = (1/n) Σ a/(a + p(w_i)) v(w_i)`, `a = 10⁻³`. `sif-pca`: `x − u uᵀx`.
//!
//! Departure: the paper finds `u` in the sentences it is about to score; here it is fitted once, on
//! sentences of the user's choice, and stored with the model, so that a score never depends on
//! what else was asked. As in the authors' code `u` is the first singular vector of the sentence
//! vectors as they are, not about their mean.

use cognate_kernels::linalg;
use cognate_kernels::linalg::{About, Moments};

use crate::methods::common::{unit_rows, words_met};
use crate::methods::means::weighted_sum;
use crate::methods::{Cost, Fitted, Info, Loaded, Measure, Scorer, Unfittable};
use crate::model::{Model, Phrase};

/// The section that holds the direction that sentences share: tensor `component`, F32 `[1, d]`.
const SECTION: &str = "sif-pca";

/// Taking the direction away is as much work for a text of any length.
const COST: Cost = Cost {
    pair: |n, m, d| (n + m + 2 * PROJECTION) * d,
    candidate: |_, m, d| (m + PROJECTION) * d,
    bound: None,
};

/// Words that take as long to add up.
const PROJECTION: u64 = 40;

fn coefficients(phrase: &Phrase<'_>) -> Vec<f32> {
    weighted_sum::coefficients(phrase, |word| unit_rows::sif_weight(phrase, word))
}

/// The weighted mean.
pub mod weighted {
    use super::*;

    pub(crate) const INFO: Info = Info {
        summary: "Mean of the words' vectors, each weighted by how rare its word is, compared by \
                  cosine.",
        paper: "Arora et al. 2017",
        range: (-1.0, 1.0),
        embeds: true,
        weights_frequency: true,
        ..Info::new("sif")
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let scorer = |()| weighted_sum::scorer(Measure::Cosine, coefficients);
        Ok(words_met::need_counts(model).map(scorer))
    }
}

/// The weighted mean without the direction that all sentences share.
pub mod pca {
    use super::*;
    use crate::methods::{Embed, unavailable};

    pub(crate) const INFO: Info = Info {
        name: "sif-pca",
        cost: COST,
        summary: "As sif, without the direction that all sentences share.",
        ..weighted::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        if let Err(reason) = words_met::need_counts(model) {
            return Ok(Err(reason));
        }
        let Some(section) = model.section(SECTION) else {
            let remedy = "add them with `cognate fit MODEL --components FILE`";
            return unavailable("the model has no components", remedy);
        };
        let dims = model.dims() as u64;
        let component = section.floats_shaped("component", &[Some(1), Some(dims)])?.to_vec();
        Ok(Ok(Scorer::Embed(Box::new(Projected { component }))))
    }

    struct Projected {
        component: Vec<f32>,
    }

    impl Embed for Projected {
        fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
            weighted_sum::add_up(phrase, &coefficients(phrase), out);
            linalg::remove(&self.component, out);
        }

        fn shares(&self, phrase: &Phrase<'_>, other: &[f32], shares: &mut [f32]) -> bool {
            // Projecting either vector makes no difference to their product.
            let mut projected = other.to_vec();
            linalg::remove(&self.component, &mut projected);
            weighted_sum::take_apart(phrase, &coefficients(phrase), &projected, shares);
            true
        }
    }
}

#[derive(Debug, serde::Serialize)]
struct Made {
    a: f64,
    sentences: u64,
    /// The share of the sentence vectors' squared length along the component.
    share: f64,
}

/// Fits the direction that sentences share. `each` is called once and passes every sentence to the
/// function that it is given. Memory does not grow with the number of sentences.
pub fn fit<E: From<Unfittable>>(
    model: &Model,
    mut each: impl FnMut(&mut dyn FnMut(&str)) -> Result<(), E>,
) -> Result<Fitted, E> {
    if let Err(reason) = words_met::need_counts(model) {
        return Err(Unfittable { section: SECTION, problem: reason.to_string() }.into());
    }
    let dims = model.dims();
    let mut moments = Moments::new(dims);
    let mut phrase = Phrase::new(model);
    let (mut vector, mut sentences) = (vec![0.0; dims], 0_u64);
    each(&mut |sentence| {
        phrase.read(sentence);
        vector.fill(0.0);
        weighted_sum::add_up(&phrase, &coefficients(&phrase), &mut vector);
        if !phrase.words().is_empty() && vector.iter().all(|value| value.is_finite()) {
            moments.add(&vector);
            sentences = sentences.saturating_add(1);
        }
    })?;
    let axes = linalg::principal_axes(&moments, dims, About::Origin);
    let along = axes.shares().first().copied().unwrap_or(0.0);
    if along <= 0.0 {
        let problem = "no sentence has a known word".to_owned();
        return Err(Unfittable { section: SECTION, problem }.into());
    }
    let component = axes.to_rows().into_iter().take(dims).collect();
    let made = Made { a: unit_rows::SIF_A, sentences, share: along };
    Ok(Fitted {
        section: SECTION,
        settings: serde_json::json!(made).to_string(),
        tensors: vec![("component", vec![1, dims], component)],
        bytes: Vec::new(),
    })
}
