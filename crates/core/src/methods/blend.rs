//! Blends of two views that err differently: the mean of all words, and the best partner of each
//! (our own).
//!
//! `w · avg-cos + (1 − w) · s`, where `s` is a measure of fuzzy sets: `dynamax-weighted` with
//! `w = 0.5` in [`dynamax`], `coverage` with `w = 0.3` in [`coverage`], unless the settings of the
//! model's section say otherwise: `{"weight": 0.5}`. A blend can do what its parts can: it is
//! unavailable when one is.

use serde::Deserialize;

use crate::methods::common::text_vector::TextVector;
use crate::methods::common::unit_rows;
use crate::methods::means::avg_cos::Mean;
use crate::methods::{
    Against, Compare, Cost, Embed, Info, Loaded, Parts, Scorer, Scratch, Shares, sets,
};
use crate::model::{Model, ModelError, Phrase};

/// The cost of a mean beside that of sets. Costs are plain functions, which capture nothing.
macro_rules! cost {
    ($sets:path) => {
        Cost {
            pair: |n, m, d| (Cost::SUM.pair)(n, m, d) + ($sets.pair)(n, m, d),
            candidate: |n, m, d| (Cost::SUM.candidate)(n, m, d) + ($sets.candidate)(n, m, d),
            bound: None,
        }
    };
}

/// The mean of avg-cos and dynamax-weighted.
pub mod dynamax {
    use super::*;

    pub(crate) const INFO: Info = Info {
        cost: cost!(sets::dynamax_weighted::COST),
        summary: "The mean of avg-cos and dynamax-weighted.",
        paper: "Kenter et al. 2016; Zhelezniak et al. 2019",
        range: (-1.0, 1.0),
        ..Info::new("blend")
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let blend = blend(model, "blend", 0.5, sets::dynamax_weighted::method(model)?)?;
        Ok(Ok(Scorer::Compare(Box::new(blend))))
    }
}

/// The weighted mean of avg-cos and coverage.
pub mod coverage {
    use super::*;

    pub(crate) const INFO: Info = Info {
        cost: cost!(sets::coverage::COST),
        summary: "The weighted mean of avg-cos (0.3) and coverage (0.7).",
        paper: "Kenter et al. 2016; after Zhelezniak et al. 2019",
        range: (-1.0, 1.0),
        ..Info::new("coverage-blend")
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        Ok(Ok(Scorer::Compare(Box::new(method(model)?))))
    }

    /// The blend under the settings that the model names.
    pub(crate) fn method(model: &Model) -> Result<Blend<sets::coverage::Coverage>, ModelError> {
        blend(model, "coverage-blend", 0.3, sets::coverage::method(model)?)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    weight: Option<f32>,
}

/// The blend with `sets` under the weight that the model names, or under `weight`.
fn blend<S>(model: &Model, section: &str, weight: f32, sets: S) -> Result<Blend<S>, ModelError> {
    let settings: Settings = model.section_settings(section)?;
    let weight = settings.weight.unwrap_or(weight);
    if !(0.0..=1.0).contains(&weight) {
        let problem = format!("expected a weight from 0 to 1, got {weight}");
        return Err(model.broken_section(section, problem));
    }
    Ok(Blend { weight, mean: Mean, sets })
}

pub(crate) struct Blend<S> {
    weight: f32,
    mean: Mean,
    sets: S,
}

impl<S: Compare + 'static> Compare for Blend<S> {
    type Against<'q> = Prepared<'q, S>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q, S> {
        let vector = TextVector::new(&self.mean, one, std::mem::take(&mut scratch.vectors));
        Prepared { method: self, sets: self.sets.against(one, scratch), vector }
    }

    fn make_parts<'p>(&self, many: &'p [Phrase<'p>], parts: &mut Parts<'p>, scratch: &mut Scratch) {
        self.sets.make_parts(many, parts, scratch);
        let dims = many.first().map_or(0, |text| text.model().dims());
        parts.vectors = std::mem::take(&mut scratch.prepared_vectors);
        parts.vectors.clear();
        parts.vectors.resize(many.len() * dims, 0.0);
        for (text, vector) in many.iter().zip(parts.vectors.chunks_exact_mut(dims.max(1))) {
            self.mean.embed(text, vector);
        }
    }
}

fn blended(weight: f32, cosine: f32, of_sets: f32) -> f32 {
    (weight * cosine + (1.0 - weight) * of_sets).clamp(-1.0, 1.0)
}

pub(crate) struct Prepared<'q, S: Compare + 'static> {
    method: &'q Blend<S>,
    sets: S::Against<'q>,
    vector: TextVector<'q>,
}

impl<S: Compare> Against for Prepared<'_, S> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        self.sets.score(many, out, scratch);
        let (weight, only) = (self.method.weight, many.len() == 1);
        for (other, score) in many.iter().zip(out) {
            if self.vector.text().same_bag(other) {
                *score = 1.0;
                continue;
            }
            let cosine = self.vector.cosine(other, only, &mut scratch.weights);
            *score = blended(weight, cosine, *score);
        }
    }

    fn score_prepared(
        &mut self,
        many: &[Phrase<'_>],
        parts: &Parts<'_>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.sets.score_prepared(many, parts, out, scratch);
        let weight = self.method.weight;
        let dims = many.first().map_or(0, |text| text.model().dims());
        let vectors = parts.vectors.chunks_exact(dims.max(1));
        for ((other, vector), score) in many.iter().zip(vectors).zip(out) {
            *score = if self.vector.text().same_bag(other) {
                1.0
            } else {
                blended(weight, self.vector.cosine_with(vector), *score)
            };
        }
    }

    /// The shares of either part, mixed as the parts are; memberships are those of the sets.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let mut shares = self.sets.shares(other, scratch)?;
        let one = self.vector.text();
        let vectors = self.vector.with(other);
        // Means without length have cosine 0, to which no word adds anything.
        let of_mean = unit_rows::shares(&self.method.mean, [one, other], vectors);
        let of_mean = of_mean.unwrap_or_else(|| Shares {
            one: vec![0.0; shares.one.len()],
            other: vec![0.0; shares.other.len()],
            memberships: None,
        });
        let weight = self.method.weight;
        let sides = [(&mut shares.one, of_mean.one), (&mut shares.other, of_mean.other)];
        for (side, of_mean) in sides {
            for (share, of_mean) in side.iter_mut().zip(of_mean) {
                *share = weight * of_mean + (1.0 - weight) * *share;
            }
        }
        Some(shares)
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        self.sets.give_back(scratch);
        scratch.vectors = self.vector.take_memory();
    }
}
