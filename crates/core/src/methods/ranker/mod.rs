//! samCNN: a trained network that says how likely a post is relevant to a query
//! (Shi, Rao, Lin 2019, section 3).
//!
//! *BiCNN* encodes query and post apart: a convolution over the words' vectors, zero-padded so that
//! kernels may reach beyond either end, ReLU, the maximum over all windows, a layer with ReLU; `g_q`
//! and `g_p`. *QAtt* and *PAtt* also read the post once for each query word `t`: with kernels
//! `U ⊗ Q_t`, or with each post word weighted by `cos(Q_t, P_j)`, which is not clipped; pooled and
//! through a layer, `h_t`, of which `v` is the mean. A layer with ReLU over `[g_q; g_p; v]`, batch
//! norm (folded to an affine map), and a linear layer to two outputs of which the softmax is taken.
//! The score is `ln p(relevant)`.
//!
//! `ranker-ql` adds what the network cannot see, exact words and how rare they are: query
//! likelihood times a weight `α` that training found on queries it held out.
//!
//! Order of words matters, query and post are not alike, and only listed words are read: vectors
//! that are made for a text were not there when the network was trained.

mod attention;
mod network;
mod section;
#[cfg(test)]
mod tests;
mod words;

pub use attention::{Attended, Attention, MAX_ATTENDED};
pub use section::{
    Encoder, MAX_FILTERS, MAX_HIDDEN, MAX_KERNEL, MAX_WEIGHT, SECTION, Settings, Shape, settings,
};
pub(crate) use words::Work;

use crate::methods::lexical::ql;
use crate::methods::lexical::ql::QueryLikelihood;
use crate::methods::ranker::network::Network;
use crate::methods::ranker::words::RankerBuffers;
use crate::methods::{
    Against, Compare, Cost, Formula, Info, Kind, Loaded, Scorer, Scratch, Unavailable,
};
use crate::model::{Model, ModelError, Phrase};

const REMEDY: &str = "train one with `cognate train ranker`";

/// Sizes that work is estimated by, whatever the network's are: the paper's.
const FILTERS: u64 = 250;
const HIDDEN: u64 = 200;
const JOINT: u64 = 100;
/// Numbers of a word under a set of kernels two words wide.
const TAPS: u64 = 2 * FILTERS;
/// Cost of a window of two words: each number is read, weighted, added and compared.
const A_WINDOW: u64 = 4 * TAPS;
/// One word in this many is in neither table.
const RARE: u64 = 8;

struct Ranker {
    network: Network,
    /// The weight of the query likelihood that is added: `ln p(relevant) + α · ln p(query | post)`.
    likelihood: Option<(QueryLikelihood, f64)>,
}

impl Compare for Ranker {
    type Against<'q> = Prepared<'q>;

    fn against<'q>(&'q self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Prepared<'q> {
        let work = std::mem::take(&mut scratch.ranker);
        let mut memory = RankerBuffers { work, ..RankerBuffers::default() };
        self.network.prepare(one, &mut memory);
        let likelihood = self.likelihood.as_ref();
        let likelihood = likelihood.map(|(likelihood, alpha)| (likelihood.prepare(one), *alpha));
        Prepared { network: &self.network, query: one, memory, likelihood }
    }
}

/// A query encoded by the network, and the products of the posts' words seen so far.
struct Prepared<'q> {
    network: &'q Network,
    query: &'q Phrase<'q>,
    memory: RankerBuffers,
    likelihood: Option<(ql::Prepared<'q>, f64)>,
}

impl Against for Prepared<'_> {
    fn score(&mut self, many: &[Phrase<'_>], out: &mut [f32], _scratch: &mut Scratch) {
        self.network.score(many, out, &mut self.memory);
        if let Some((query, alpha)) = &mut self.likelihood {
            for (post, score) in many.iter().zip(out) {
                *score = (f64::from(*score) + *alpha * query.log_likelihood(post)) as f32;
            }
        }
    }

    fn attention(&mut self, other: &Phrase<'_>, _scratch: &mut Scratch) -> Option<Vec<Attention>> {
        self.network.attention(self.query, other, &mut self.memory)
    }

    fn give_back(&mut self, scratch: &mut Scratch) {
        scratch.ranker = std::mem::take(&mut self.memory.work);
        scratch.ranker.trim();
    }
}

/// The model's network and its settings, or why there is none.
fn stored(model: &Model) -> Result<Result<(Network, Settings), Unavailable>, ModelError> {
    let missing = || Unavailable {
        missing: "the model has no trained ranker".to_owned(),
        remedy: REMEDY.to_owned(),
    };
    let Some(settings) = settings(model)? else { return Ok(Err(missing())) };
    let shape = settings.shape(model.dims());
    let Some(weights) = section::weights(model, shape)? else { return Ok(Err(missing())) };
    Ok(Ok((Network::new(weights, model.vocabulary().len()), settings)))
}

fn load(model: &Model, encoder: Encoder) -> Loaded {
    let found = stored(model)?;
    Ok(found.and_then(|(network, settings)| {
        if settings.encoder == encoder {
            return Ok(Scorer::Compare(Box::new(Ranker { network, likelihood: None })));
        }
        let (has, wanted) = (settings.encoder.name(), encoder.name());
        let missing = format!("the model's ranker was trained for `{has}`, not for `{wanted}`");
        Err(Unavailable { missing, remedy: REMEDY.to_owned() })
    }))
}

/// The kernels' products with the words of a post that are not stored.
const fn words(m: u64, d: u64, kernels: u64) -> u64 {
    m * d * (TAPS * kernels / RARE)
}

/// A maximum over all windows of the post, and the layers above it; again for each query word.
const fn readings(n: u64, m: u64) -> u64 {
    (n + 1) * ((m + 1) * A_WINDOW + FILTERS * HIDDEN + HIDDEN * JOINT)
}

/// The kernels' products with the words of a post times each word of the query. The longer the query,
/// the fewer words are remembered; of a long one, none.
const fn crossed(n: u64, m: u64, d: u64) -> u64 {
    let all = n * m * d * TAPS;
    match n {
        0..=8 => all * 5 / 2 / RARE,
        9..=64 => all * 5 / 2 * n / 64,
        65..=131 => all * 5 / 2,
        _ => all,
    }
}

/// Pairs are only explained, which is work as for a candidate.
const fn cost(candidate: Formula) -> Cost {
    Cost { pair: candidate, candidate, bound: None }
}

/// Encodes query and post separately.
pub mod bicnn {
    use super::*;

    pub(crate) const INFO: Info = Info {
        kind: Kind::Ranker,
        cost: cost(|_, m, d| readings(0, m) + words(m, d, 1)),
        summary: "Trained network over query and post, each encoded by itself; the logarithm of the \
                  chance that the post is relevant.",
        paper: "Shi, Rao, Lin 2019",
        range: (f32::NEG_INFINITY, 0.0),
        ..Info::new("bicnn")
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        super::load(model, Encoder::Bicnn)
    }
}

/// The post also read through kernels made for each query word.
pub mod qatt {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "qatt",
        cost: cost(|n, m, d| readings(n, m) + words(m, d, 1) + crossed(n, m, d)),
        summary: "Trained network that also reads the post through kernels made for each word of \
                  the query.",
        ..bicnn::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        super::load(model, Encoder::Qatt)
    }
}

/// A ranker that also reads the post with each word weighted by its cosine to each query word.
pub mod patt {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "patt",
        cost: cost(|n, m, d| readings(n, m) + words(m, d, 2)),
        summary: "Trained network that also reads the post for each word of the query, with each \
                  word of the post weighted by its cosine to it (samCNN).",
        ..bicnn::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        super::load(model, Encoder::Patt)
    }
}

/// The model's network, whichever it is, beside query likelihood.
pub mod ranker_ql {
    use super::*;

    pub(crate) const INFO: Info = Info {
        name: "ranker-ql",
        cost: cost(|n, m, d| (qatt::INFO.cost.pair)(n, m, d) + (ql::COST.pair)(n, m, d)),
        summary: "The model's trained network plus query likelihood, by the weight that was best \
                  for the queries it was judged by.",
        ..bicnn::INFO
    };

    pub(crate) fn load(model: &Model) -> Loaded {
        let found = stored(model)?;
        Ok(found.and_then(|(network, settings)| {
            let likelihood = Some((QueryLikelihood::new(model)?, settings.alpha));
            Ok(Scorer::Compare(Box::new(Ranker { network, likelihood })))
        }))
    }
}
