//! Unsupervised smooth inverse frequency (Ethayarajh 2018, section 4, equations 3 to 7).
//!
//! A word weighs `a / (p(w) + a/2)` with `a = (1 − α)/(αZ)`, `Z = V/2`, where `V` is the number of
//! counted words and `α` the share of them with `p(w) > 1 − (1 − 1/V)^n̄`, those that a random text
//! of the usual length `n̄` is expected to hold. Each dimension is divided by its norm over the
//! words of the text (a repeated one as often as it occurs), the weighted vectors are averaged, and
//! of each of the first five components `u_i` of a corpus the share `λ_i = σ_i² / Σ σ²` is taken
//! away: `x − Σ λ_i u_i u_iᵀx`.
//!
//! Departures: components and constants are fitted once, on sentences of the user's choice, and
//! stored with the model; `n̄` is measured there, in known words. A dimension that is 0 in every
//! word stays 0. So that `a` is finite and above 0 whatever the counts, `α` is held at least one
//! word of the vocabulary away from 0 and from 1.

use cognate_kernels::linalg::{About, Moments};
use cognate_kernels::{elementary, linalg};

use crate::methods::common::words_met;
use crate::methods::means::weighted_sum;
use crate::methods::{Cost, Embed, Fitted, Info, Loaded, Scorer, Unfittable, unavailable};
use crate::model::{Model, Phrase};

pub(crate) const INFO: Info = Info {
    cost: COST,
    summary: "Mean of the words' vectors, scaled by dimension and weighted by how rare each word \
              is, without most of what all sentences share.",
    paper: "Ethayarajh 2018",
    range: (-1.0, 1.0),
    embeds: true,
    weights_frequency: true,
    ..Info::new("usif")
};

/// Dimensions are scaled with each word; taking the components away is as much work for a text of
/// any length.
const COST: Cost = Cost {
    pair: |n, m, d| (16 * (n + m) + 2 * PROJECTION) * d,
    candidate: |_, m, d| (16 * m + PROJECTION) * d,
    bound: None,
};

/// Words that take as long to add up.
const PROJECTION: u64 = 320;

/// The section that holds constants and components: settings as in [`Settings`], tensors `axes`,
/// F32 `[5, d]`, and `factors`, F32 `[5]`.
const SECTION: &str = "usif";

const COMPONENTS: usize = 5;

/// The constants and their sources.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// The constant of the word weights.
    pub a: f64,
    /// The share of words that a text is expected to hold.
    pub alpha: f64,
    /// Known words of a sentence, on average.
    pub mean_length: f64,
    /// Sentences with a known word.
    pub sentences: u64,
}

pub(crate) fn load(model: &Model) -> Loaded {
    if let Err(reason) = words_met::need_counts(model) {
        return Ok(Err(reason));
    }
    let Some(section) = model.section(SECTION) else {
        let remedy = "add them with `cognate fit MODEL --components FILE`";
        return unavailable("the model has no components", remedy);
    };
    let a = section.parse_settings::<Settings>()?.a;
    if !(a.is_finite() && a > 0.0) {
        return Err(section.broken(format!("settings: expected `a` above 0, got {a}")));
    }
    let dims = model.dims() as u64;
    let count = Some(COMPONENTS as u64);
    let axes = section.floats_shaped("axes", &[count, Some(dims)])?.to_vec();
    let factors = section.floats_shaped("factors", &[count])?.to_vec();
    Ok(Ok(Scorer::Embed(Box::new(Usif { weights: Weights { a }, axes, factors }))))
}

struct Usif {
    weights: Weights,
    axes: Vec<f32>,
    factors: Vec<f32>,
}

#[derive(Debug, Clone, Copy)]
struct Weights {
    a: f64,
}

impl Weights {
    fn coefficients(self, phrase: &Phrase<'_>) -> Vec<f32> {
        let weight = |probability: f64| (self.a / (probability + self.a / 2.0)) as f32;
        weighted_sum::coefficients(phrase, |word| weight(phrase.probability(word)))
    }

    fn mean(self, phrase: &Phrase<'_>, out: &mut [f32]) {
        weighted_sum::add_up(phrase, &self.coefficients(phrase), out);
        scale(out, &norms(phrase));
    }

    /// Sees a vocabulary's counts: `V`, and the share of words that a text of the mean length is
    /// expected to hold.
    fn new(model: &Model, mean_length: f64) -> (Self, f64) {
        let vocabulary = model.vocabulary();
        let ids = 0..u32::try_from(vocabulary.len()).unwrap_or(u32::MAX);
        let probabilities = ids.map(|id| vocabulary.probability(id)).filter(|&p| p > 0.0);
        let probabilities: Vec<f64> = probabilities.collect();
        let words = probabilities.len().max(1) as f64;
        let threshold = 1.0 - elementary::power(1.0 - 1.0 / words, mean_length);
        let frequent = probabilities.iter().filter(|&&p| p > threshold).count() as f64;
        // One word of a vocabulary of one is all and nothing of it.
        let nearest = (1.0 / words).min(0.5);
        let alpha = (frequent / words).clamp(nearest, 1.0 - nearest);
        (Self { a: (1.0 - alpha) / (alpha * 0.5 * words) }, alpha)
    }
}

/// For each dimension its norm over the words of a text.
fn norms(phrase: &Phrase<'_>) -> Vec<f32> {
    let dims = phrase.model().dims();
    let (mut row, mut squares) = (vec![0.0; dims], vec![0.0_f64; dims]);
    for &word in phrase.bag() {
        phrase.row(word).copy_to(&mut row);
        for (square, &value) in squares.iter_mut().zip(&row) {
            *square += f64::from(value) * f64::from(value);
        }
    }
    squares.into_iter().map(|square| square.sqrt() as f32).collect()
}

/// Divides each number by its norm, if there is one.
fn scale(vector: &mut [f32], norms: &[f32]) {
    for (value, &norm) in vector.iter_mut().zip(norms) {
        *value = if norm > 0.0 { *value / norm } else { 0.0 };
    }
}

impl Embed for Usif {
    fn embed(&self, phrase: &Phrase<'_>, out: &mut [f32]) {
        self.weights.mean(phrase, out);
        linalg::remove_scaled(&self.axes, &self.factors, out);
    }

    fn shares(&self, phrase: &Phrase<'_>, other: &[f32], shares: &mut [f32]) -> bool {
        // The axes are orthogonal, so the same may be taken from either vector of a product.
        let mut removed = other.to_vec();
        linalg::remove_scaled(&self.axes, &self.factors, &mut removed);
        scale(&mut removed, &norms(phrase));
        weighted_sum::take_apart(phrase, &self.weights.coefficients(phrase), &removed, shares);
        true
    }
}

/// Fits constants and components. `each` passes every sentence to the function that it is given, and is
/// called twice: weights depend on the sentences' mean length, and components on the weights. Memory does
/// not grow with the number of sentences.
pub fn fit<E: From<Unfittable>>(
    model: &Model,
    mut each: impl FnMut(&mut dyn FnMut(&str)) -> Result<(), E>,
) -> Result<Fitted, E> {
    let unfittable = |problem: String| E::from(Unfittable { section: SECTION, problem });
    if let Err(reason) = words_met::need_counts(model) {
        return Err(unfittable(reason.to_string()));
    }
    let mut phrase = Phrase::new(model);
    let (mut sentences, mut words) = (0_u64, 0_u64);
    each(&mut |sentence| {
        phrase.read(sentence);
        sentences = sentences.saturating_add(u64::from(!phrase.words().is_empty()));
        words = words.saturating_add(phrase.words().len() as u64);
    })?;
    let mean_length = words as f64 / sentences.max(1) as f64;
    let (weights, alpha) = Weights::new(model, mean_length);

    let dims = model.dims();
    let mut moments = Moments::new(dims);
    let mut vector = vec![0.0; dims];
    each(&mut |sentence| {
        phrase.read(sentence);
        vector.fill(0.0);
        weights.mean(&phrase, &mut vector);
        if !phrase.words().is_empty() && vector.iter().all(|value| value.is_finite()) {
            moments.add(&vector);
        }
    })?;
    let components = linalg::principal_axes(&moments, COMPONENTS, About::Origin);
    let mut factors: Vec<f32> = components.shares().iter().map(|&share| share as f32).collect();
    if factors.iter().all(|&factor| factor <= 0.0) {
        return Err(unfittable("no sentence has a known word".to_owned()));
    }
    // Vectors of fewer dimensions than five have no more components; nothing is taken along zeros.
    let mut axes = components.to_rows();
    axes.resize(COMPONENTS * dims, 0.0);
    factors.resize(COMPONENTS, 0.0);
    let settings = Settings { a: weights.a, alpha, mean_length, sentences };
    Ok(Fitted {
        section: SECTION,
        settings: serde_json::json!(settings).to_string(),
        tensors: vec![
            ("axes", vec![COMPONENTS, dims], axes),
            ("factors", vec![COMPONENTS], factors),
        ],
        bytes: Vec::new(),
    })
}
