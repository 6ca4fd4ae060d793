//! The forward pass of BERT (Devlin et al. 2019) and MPNet (Song et al. 2020) encoders over texts
//! with equal numbers of tokens, so that neither padding nor masks are needed.

use candle_core::{D, Device, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};
use cognate_train::TrainError;

use crate::teacher::folder::{Kind, MPNET_BUCKETS, Pooling, Shape, TensorSource};
use crate::teacher::gelu::gelu;

type Result<T> = std::result::Result<T, candle_core::Error>;

/// A matrix product with an offset.
struct Linear {
    /// Transposed: rows of the input are multiplied by its columns.
    weight: Tensor,
    offset: Tensor,
}

impl Linear {
    fn apply(&self, rows: &Tensor) -> Result<Tensor> {
        rows.matmul(&self.weight)?.broadcast_add(&self.offset)
    }
}

/// Normalises rows to mean 0 and variance 1, then scales and shifts them.
struct Norm {
    scale: Tensor,
    shift: Tensor,
    epsilon: f32,
}

impl Norm {
    fn apply(&self, rows: &Tensor) -> Result<Tensor> {
        layer_norm(rows, &self.scale, &self.shift, self.epsilon)
    }
}

struct Layer {
    /// Queries, keys and values as one product.
    attention: Linear,
    joined: Linear,
    after_attention: Norm,
    inner: Linear,
    outer: Linear,
    after: Norm,
}

pub(super) struct Encoder {
    shape: Shape,
    words: Tensor,
    positions: Tensor,
    /// The segment embedding, which every token of a BERT text gets.
    segment: Option<Tensor>,
    norm: Norm,
    layers: Vec<Layer>,
    /// For each bucket of relative distances, the attention bias of each head.
    distances: Option<Tensor>,
    device: Device,
}

impl Encoder {
    pub(super) fn new(
        shape: &Shape,
        tensors: &dyn TensorSource,
        device: &Device,
    ) -> std::result::Result<Self, TrainError> {
        let hidden = shape.hidden;
        let table =
            |name: &str, rows| tensors.take(&format!("embeddings.{name}.weight"), &[rows, hidden]);
        let segment = match shape.kind {
            Kind::Mpnet => None,
            Kind::Bert => Some(table("token_type_embeddings", shape.segments)?.get(0)?),
        };
        let distances = match shape.kind {
            Kind::Bert => None,
            Kind::Mpnet => {
                let name = "encoder.relative_attention_bias.weight";
                Some(tensors.take(name, &[MPNET_BUCKETS, shape.heads])?)
            }
        };
        let mut layers = Vec::with_capacity(shape.layers);
        for at in 0..shape.layers {
            layers.push(Layer::new(shape, tensors, at)?);
        }
        Ok(Self {
            words: table("word_embeddings", shape.entries)?,
            positions: table("position_embeddings", shape.positions)?,
            segment,
            norm: norm(shape, tensors, "embeddings.LayerNorm")?,
            layers,
            distances,
            shape: shape.clone(),
            device: device.clone(),
        })
    }

    /// The vectors of texts, one row each. `ids` are the tokens of texts with `length` tokens each.
    pub(super) fn encode(&self, ids: &[u32], length: usize) -> Result<Vec<f32>> {
        let hidden = self.shape.hidden;
        let texts = ids.len() / length;
        let ids = Tensor::from_slice(ids, (texts * length,), &self.device)?;
        let mut places = self.positions.narrow(0, self.shape.first_position, length)?;
        if let Some(segment) = &self.segment {
            places = places.broadcast_add(segment)?;
        }
        let words = self.words.index_select(&ids, 0)?.reshape((texts, length, hidden))?;
        let rows = words.broadcast_add(&places)?.reshape((texts * length, hidden))?;
        let mut rows = self.norm.apply(&rows)?;
        let bias = self.bias(length)?;
        for layer in &self.layers {
            rows = layer.apply(&rows, (texts, length, self.shape.heads), bias.as_ref())?;
        }
        let rows = rows.reshape((texts, length, hidden))?;
        let pooled = match self.shape.pooling {
            Pooling::Mean => rows.mean(1)?,
            Pooling::First => rows.narrow(1, 0, 1)?.squeeze(1)?,
            Pooling::Max => rows.max(1)?,
        };
        pooled.flatten_all()?.to_vec1()
    }

    /// The attention bias by relative distance: for each head a matrix of tokens by tokens.
    fn bias(&self, length: usize) -> Result<Option<Tensor>> {
        let Some(distances) = &self.distances else { return Ok(None) };
        let mut buckets = Vec::with_capacity(length * length);
        for from in 0..length {
            buckets.extend((0..length).map(|to| bucket(from, to)));
        }
        let buckets = Tensor::from_vec(buckets, (length * length,), &self.device)?;
        let rows = distances.index_select(&buckets, 0)?;
        let bias = rows.t()?.reshape((1, self.shape.heads, length, length))?.contiguous()?;
        Ok(Some(bias))
    }
}

impl Layer {
    fn new(
        shape: &Shape,
        tensors: &dyn TensorSource,
        at: usize,
    ) -> std::result::Result<Self, TrainError> {
        let (hidden, inner) = (shape.hidden, shape.inner);
        let place = format!("encoder.layer.{at}");
        let parts = match shape.kind {
            Kind::Bert => ["self.query", "self.key", "self.value"],
            Kind::Mpnet => ["attn.q", "attn.k", "attn.v"],
        };
        let (joined, after_attention) = match shape.kind {
            Kind::Bert => ("attention.output.dense", "attention.output.LayerNorm"),
            Kind::Mpnet => ("attention.attn.o", "attention.LayerNorm"),
        };
        let take = |name: &str, shape: &[usize]| tensors.take(&format!("{place}.{name}"), shape);
        let linear = |name: &str, from: usize, to: usize| {
            let weight = take(&format!("{name}.weight"), &[to, from])?.t()?.contiguous()?;
            let offset = take(&format!("{name}.bias"), &[to])?;
            Ok::<_, TrainError>(Linear { weight, offset })
        };
        let (mut weights, mut offsets) = (Vec::new(), Vec::new());
        for part in parts {
            let Linear { weight, offset } = linear(&format!("attention.{part}"), hidden, hidden)?;
            weights.push(weight);
            offsets.push(offset);
        }
        let attention =
            Linear { weight: Tensor::cat(&weights, 1)?, offset: Tensor::cat(&offsets, 0)? };
        Ok(Self {
            attention,
            joined: linear(joined, hidden, hidden)?,
            after_attention: norm(shape, tensors, &format!("{place}.{after_attention}"))?,
            inner: linear("intermediate.dense", hidden, inner)?,
            outer: linear("output.dense", inner, hidden)?,
            after: norm(shape, tensors, &format!("{place}.output.LayerNorm"))?,
        })
    }

    fn apply(
        &self,
        rows: &Tensor,
        (texts, length, heads): (usize, usize, usize),
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        let hidden = rows.dim(D::Minus1)?;
        let each = hidden / heads;
        let parts = self.attention.apply(rows)?;
        let parts = parts.reshape((texts, length, 3, heads, each))?;
        let parts = parts.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (queries, keys, values) = (parts.get(0)?, parts.get(1)?, parts.get(2)?);
        let scale = 1.0 / (each as f64).sqrt();
        let mut scores = (queries.matmul(&keys.t()?)? * scale)?;
        if let Some(bias) = bias {
            scores = scores.broadcast_add(bias)?;
        }
        let attended = softmax_last_dim(&scores)?.matmul(&values)?;
        let attended = attended.transpose(1, 2)?.contiguous()?.reshape((texts * length, hidden))?;
        let rows = self.after_attention.apply(&(rows + self.joined.apply(&attended)?)?)?;
        let inner = gelu(&self.inner.apply(&rows)?)?;
        self.after.apply(&(&rows + self.outer.apply(&inner)?)?)
    }
}

fn norm(
    shape: &Shape,
    tensors: &dyn TensorSource,
    name: &str,
) -> std::result::Result<Norm, TrainError> {
    let scale = tensors.take(&format!("{name}.weight"), &[shape.hidden])?;
    let shift = tensors.take(&format!("{name}.bias"), &[shape.hidden])?;
    Ok(Norm { scale, shift, epsilon: shape.epsilon as f32 })
}

/// The bucket of a relative distance (as in T5, Raffel et al. 2020): half of the buckets are for
/// earlier tokens, half for later ones; of each half, 8 are for distances below 8, the others for
/// ranges that double in two steps, up to 128.
///
/// Logarithms are computed in whole numbers, so that a distance at the edge of a range is in the
/// same bucket on every machine.
fn bucket(from: usize, to: usize) -> u32 {
    const EXACT: usize = MPNET_BUCKETS / 4;
    let half = MPNET_BUCKETS / 2;
    let distance = from.abs_diff(to);
    let within = if distance < EXACT {
        distance
    } else {
        // floor(2 log2(distance / 8)), computed by squaring.
        let steps = (distance * distance / (EXACT * EXACT)).ilog2() as usize;
        (EXACT + steps).min(half - 1)
    };
    (if to > from { half + within } else { within }) as u32
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn distances_have_the_buckets_of_the_published_code() {
        // `relative_position_bucket` of MPNet, 32 buckets, at most 128, from position 200.
        let behind =
            [(0, 0), (1, 1), (7, 7), (8, 8), (11, 8), (12, 9), (15, 9), (16, 10), (22, 10)];
        let further = [(23, 11), (31, 11), (32, 12), (63, 13), (90, 14), (128, 15), (200, 15)];
        for (distance, expected) in behind.into_iter().chain(further) {
            assert_eq!(bucket(200, 200 - distance), expected, "{distance} behind");
            if distance > 0 {
                assert_eq!(bucket(200, 200 + distance), 16 + expected, "{distance} ahead");
            }
        }
    }
}
