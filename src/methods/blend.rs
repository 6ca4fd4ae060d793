//! A blend of two views that err differently: the mean of all words, and the best partner of each
//! (our own; the single best score on every set of vectors tried).
//!
//! `w · avg-cos + (1 − w) · dynamax-weighted`, `w = 0.5` unless the settings of the model's section
//! say otherwise: `{"weight": 0.5}`. It can do what its parts can: it is unavailable when one is.

use serde::Deserialize;

use crate::kernels::vector;
use crate::kernels::vector::Row;
use crate::methods::Compare;
use crate::methods::Cost;
use crate::methods::Embed;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Loaded;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::Shares;
use crate::methods::common::cosine;
use crate::methods::means::avg_cos;
use crate::methods::sets::dynamax_weighted;
use crate::methods::unavailable;
use crate::model::Model;
use crate::model::Phrase;

/// What is to be known of it.
pub const INFO: Info = Info {
    name: "blend",
    kind: Kind::Similarity,
    cost: COST,
    summary: "The mean of avg-cos and dynamax-weighted.",
    paper: "Kenter et al. 2016; Zhelezniak et al. 2019",
    range: (-1.0, 1.0),
    reads: Reads::Words,
    embeds: false,
    weights_frequency: false,
};

const COST: Cost = Cost {
    pair: |n, m, d| (Cost::SUM.pair)(n, m, d) + (dynamax_weighted::COST.pair)(n, m, d),
    candidate: |n, m, d| {
        (Cost::SUM.candidate)(n, m, d) + (dynamax_weighted::COST.candidate)(n, m, d)
    },
    bound: None,
};

/// The section whose settings hold the weight.
pub const SECTION: &str = "blend";

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    weight: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { weight: 0.5 }
    }
}

/// Needs what its parts need.
pub fn load(model: &Model) -> Loaded {
    let Settings { weight } = model.section_settings(SECTION)?;
    if !(0.0..=1.0).contains(&weight) {
        let problem = format!("expected a weight from 0 to 1, got {weight}");
        return Err(model.broken_section(SECTION, problem));
    }
    let (mean, sets) = match (avg_cos::load(model)?, dynamax_weighted::load(model)?) {
        (Ok(Scorer::Embed(mean)), Ok(Scorer::Compare(sets))) => (mean, sets),
        (Err(missing), _) | (_, Err(missing)) => return Ok(Err(missing)),
        // The parts are of these kinds by their own files.
        _ => return unavailable("the parts of the blend are of other kinds", "report this"),
    };
    Ok(Ok(Scorer::Compare(Box::new(Blend { weight, mean, sets }))))
}

struct Blend {
    weight: f32,
    mean: Box<dyn Embed>,
    sets: Box<dyn Compare>,
}

impl Blend {
    fn mix(&self, cosine: f32, sets: f32) -> f32 {
        (self.weight * cosine + (1.0 - self.weight) * sets).clamp(-1.0, 1.0)
    }

    fn embed(&self, phrase: &Phrase<'_>, out: &mut Vec<f32>) {
        out.clear();
        out.resize(self.mean.dims(phrase.model().vectors().dims()), 0.0);
        self.mean.embed(phrase, out);
    }
}

impl Compare for Blend {
    fn compare(
        &self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.sets.compare(one, many, out, scratch);
        self.embed(one, &mut scratch.vectors[0]);
        for (other, score) in many.iter().zip(out) {
            if one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            self.embed(other, &mut scratch.vectors[1]);
            let [one, other] = &scratch.vectors;
            *score = self.mix(vector::cosine(Row::F32(one), Row::F32(other)), *score);
        }
    }

    /// The shares of either part, mixed as the parts are; memberships are those of the sets.
    fn shares(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> Option<Shares> {
        let mut shares = self.sets.shares(one, other, scratch)?;
        self.embed(one, &mut scratch.vectors[0]);
        self.embed(other, &mut scratch.vectors[1]);
        let vectors = [scratch.vectors[0].as_slice(), scratch.vectors[1].as_slice()];
        // Means without length have cosine 0, to which no word adds anything.
        let of_mean = cosine::shares(self.mean.as_ref(), [one, other], vectors);
        let of_mean = of_mean.unwrap_or_else(|| Shares {
            one: vec![0.0; shares.one.len()],
            other: vec![0.0; shares.other.len()],
            memberships: None,
        });
        let sides = [(&mut shares.one, of_mean.one), (&mut shares.other, of_mean.other)];
        for (side, of_mean) in sides {
            for (share, of_mean) in side.iter_mut().zip(of_mean) {
                *share = self.weight * of_mean + (1.0 - self.weight) * *share;
            }
        }
        Some(shares)
    }
}
