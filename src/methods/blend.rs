//! A blend of two views that err differently: the mean of all words, and the best partner of each
//! (our own; the single best score on every set of vectors tried).
//!
//! `w · avg-cos + (1 − w) · dynamax-weighted`, `w = 0.5` unless the settings of the model's section
//! say otherwise: `{"weight": 0.5}`. It can do what its parts can: it is unavailable when one is.

use serde::Deserialize;

use crate::kernels::vector;
use crate::kernels::vector::Row;
use crate::methods::Against;
use crate::methods::Compare;
use crate::methods::Cost;
use crate::methods::Info;
use crate::methods::Kind;
use crate::methods::Loaded;
use crate::methods::Reads;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::Shares;
use crate::methods::common::cosine;
use crate::methods::means::avg_cos::Mean;
use crate::methods::scorer::embed;
use crate::methods::sets::dynamax_weighted;
use crate::methods::sets::dynamax_weighted::Weighted;
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
    let sets = dynamax_weighted::method(model)?;
    Ok(Ok(Scorer::Compare(Box::new(Blend { weight, mean: Mean, sets }))))
}

struct Blend {
    weight: f32,
    mean: Mean,
    sets: Weighted,
}

impl Compare for Blend {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let mut vectors = std::mem::take(&mut scratch.vectors);
        embed(&self.mean, one, &mut vectors[0]);
        Prepared { method: self, one, sets: self.sets.against(one, scratch), vectors }
    }
}

/// A text prepared for both parts.
struct Prepared<'q> {
    method: &'q Blend,
    one: &'q Phrase<'q>,
    sets: dynamax_weighted::Prepared<'q>,
    /// The text's mean, and room for another.
    vectors: [Vec<f32>; 2],
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], scratch: &mut Scratch) {
        self.sets.score(many, out, scratch);
        let weight = self.method.weight;
        for (other, score) in many.iter().zip(out) {
            if self.one.same_bag(other) {
                *score = 1.0;
                continue;
            }
            embed(&self.method.mean, other, &mut self.vectors[1]);
            let [one, other] = &self.vectors;
            let cosine = vector::cosine(Row::F32(one), Row::F32(other));
            *score = (weight * cosine + (1.0 - weight) * *score).clamp(-1.0, 1.0);
        }
    }

    /// The shares of either part, mixed as the parts are; memberships are those of the sets.
    fn shares(&mut self, other: &Phrase<'_>, scratch: &mut Scratch) -> Option<Shares> {
        let mut shares = self.sets.shares(other, scratch)?;
        embed(&self.method.mean, other, &mut self.vectors[1]);
        let vectors = [self.vectors[0].as_slice(), self.vectors[1].as_slice()];
        // Means without length have cosine 0, to which no word adds anything.
        let of_mean = cosine::shares(&self.method.mean, [self.one, other], vectors);
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
        scratch.vectors = std::mem::take(&mut self.vectors);
    }
}
