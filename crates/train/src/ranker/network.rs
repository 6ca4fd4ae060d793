//! The network during training: parameters with gradients, and the forward pass over a batch of
//! queries and posts.
//!
//! The convolution is one matrix product of the batch's distinct word vectors with all taps of all
//! kernels, followed by [`pool`]. Batch normalisation keeps running statistics; the model file
//! stores them as one scale and one shift.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use cognate::methods::ranker::{Encoder, Shape};
use cognate_kernels::random::Random;

use crate::ranker::data::{Batch, PaddedTexts};
use crate::ranker::pool::pool;
use crate::sampling;

/// Share of the running statistics that each batch replaces.
const MOMENTUM: f64 = 0.1;
/// Added to a variance, to avoid a division by zero for a unit that never changes.
const EPSILON: f64 = 1e-5;
/// Added to a squared length, so that padding has a gradient of zero.
const SHORTEST: f64 = 1e-24;

pub struct Network {
    pub(super) shape: Shape,
    device: Device,
    pub parameters: Vec<(&'static str, Var)>,
    pub running: [Vec<f32>; 2],
}

pub type Stored = (&'static str, Vec<usize>, Vec<f32>);

pub enum Mode<'m> {
    Train(&'m [f32]),
    Judge,
}

impl Network {
    /// A network with random parameters, each layer uniform within `1 / √inputs`.
    pub fn new(shape: Shape, device: &Device, random: &mut Random) -> Result<Self> {
        let mut parameters = Vec::new();
        let mut inputs = 1;
        for (name, sides) in shape.tensors() {
            inputs = match sides.as_slice() {
                [taps, _, dims] => taps * dims,
                [_, inputs] => *inputs,
                // The bias of a layer is drawn in the range of its weights.
                _ => inputs,
            };
            let bound = 1.0 / (inputs as f64).sqrt();
            let mut draw = || ((2.0 * sampling::share(random) - 1.0) * bound) as f32;
            let count = sides.iter().product();
            let numbers: Vec<f32> = match name {
                "norm.scale" => vec![1.0; count],
                "norm.shift" => vec![0.0; count],
                _ => (0..count).map(|_| draw()).collect(),
            };
            parameters.push((name, Var::from_vec(numbers, sides, device)?));
        }
        let running = [vec![0.0; shape.joint], vec![1.0; shape.joint]];
        Ok(Self { shape, device: device.clone(), parameters, running })
    }

    /// All numbers that a step may change, one after another.
    pub fn numbers(&self) -> Result<Vec<f32>> {
        let mut numbers = Vec::new();
        for (_, parameter) in &self.parameters {
            numbers.extend(parameter.flatten_all()?.to_vec1::<f32>()?);
        }
        numbers.extend(self.running.iter().flatten());
        Ok(numbers)
    }

    pub fn set_numbers(&mut self, mut numbers: &[f32]) -> Result<()> {
        for (name, parameter) in &self.parameters {
            let Some((own, rest)) = numbers.split_at_checked(parameter.elem_count()) else {
                candle_core::bail!("no numbers for {name}");
            };
            parameter.set(&Tensor::from_slice(own, parameter.shape(), &self.device)?)?;
            numbers = rest;
        }
        let joint = self.shape.joint;
        if numbers.len() != 2 * joint {
            candle_core::bail!("{} numbers for the running statistics", numbers.len());
        }
        self.running = [numbers[..joint].to_vec(), numbers[joint..].to_vec()];
        Ok(())
    }

    fn parameter(&self, name: &str) -> Result<&Tensor> {
        match self.parameters.iter().find(|(known, _)| *known == name) {
            Some((_, parameter)) => Ok(parameter.as_tensor()),
            None => candle_core::bail!("no parameter {name}"),
        }
    }

    fn layer(&self, rows: &Tensor, [weight, offset]: [&str; 2]) -> Result<Tensor> {
        rows.matmul(&self.parameter(weight)?.t()?)?.broadcast_add(self.parameter(offset)?)
    }

    fn products(&self, rows: &Tensor, kernels: &str) -> Result<Tensor> {
        let kernels = self.parameter(kernels)?;
        let (taps, count, dims) = kernels.dims3()?;
        rows.matmul(&kernels.reshape((taps * count, dims))?.t()?)
    }

    /// The general encoder: the products of the texts' words, encoded to `[texts, hidden]`.
    fn general(&self, products: &Tensor, texts: &PaddedTexts) -> Result<Tensor> {
        let bias = self.parameter("general.bias")?;
        let pooled = pool(products, texts.positions(), None, bias, self.shape.kernel)?;
        self.layer(&pooled.squeeze(1)?, ["general.weight", "general.offset"])?.relu()
    }

    /// The attention encoder: posts encoded for each query word, `[examples × words, kernels]`.
    fn attended(&self, rows: &Tensor, batch: &Batch) -> Result<Tensor> {
        let bias = self.parameter("attention.bias")?;
        let taps = self.shape.kernel;
        if self.shape.encoder == Encoder::Qatt {
            let met = batch.word_pairs();
            let [asking, answering] = met.words.map(|words| Tensor::new(words, &self.device));
            let gated = (rows.index_select(&asking?, 0)? * rows.index_select(&answering?, 0)?)?;
            let products = self.products(&gated, "attention.kernels")?;
            return pool(&products, met.texts.positions(), None, bias, taps)?.squeeze(1);
        }
        let rows_of = |texts: &PaddedTexts, unit: &Tensor| {
            let places = Tensor::new(texts.places.as_slice(), &self.device)?;
            unit.index_select(&places, 0)?.reshape((texts.lengths.len(), texts.width, ()))
        };
        let unit = unit(rows)?;
        let asked = Tensor::new(batch.query_of.as_slice(), &self.device)?;
        let queries = rows_of(&batch.queries, &unit)?.index_select(&asked, 0)?;
        let cosines = queries.matmul(&rows_of(&batch.posts, &unit)?.t()?)?;
        let products = self.products(rows, "attention.kernels")?;
        pool(&products, batch.posts.positions(), Some(&cosines), bias, taps)?.flatten(0, 1)
    }

    /// The logits of a batch, `[examples, 2]`, from the rows of its words.
    pub fn forward(&mut self, rows: &Tensor, batch: &Batch, mode: Mode<'_>) -> Result<Tensor> {
        let products = self.products(rows, "general.kernels")?;
        let asked = Tensor::new(batch.query_of.as_slice(), &self.device)?;
        let query = self.general(&products, &batch.queries)?.index_select(&asked, 0)?;
        let mut joined = vec![query, self.general(&products, &batch.posts)?];
        if self.shape.encoder != Encoder::Bicnn {
            let (examples, words) = (batch.query_of.len(), batch.queries.width);
            let found = self.attended(rows, batch)?;
            let each = self.layer(&found, ["attention.weight", "attention.offset"])?.relu()?;
            let each = each.reshape((examples, words, ()))?;
            let shares = Tensor::from_vec(batch.shares(), (examples, 1, words), &self.device)?;
            joined.push(shares.matmul(&each)?.squeeze(1)?);
        }
        let joint = Tensor::cat(&joined, 1)?;
        let joint = self.layer(&joint, ["joint.weight", "joint.offset"])?.relu()?;
        let mut joint = self.normalised(&joint, matches!(mode, Mode::Train(_)))?;
        if let Mode::Train(kept) = mode {
            joint = (joint.clone() * Tensor::from_slice(kept, joint.shape(), &self.device)?)?;
        }
        self.layer(&joint, ["output.weight", "output.offset"])
    }

    fn normalised(&mut self, joint: &Tensor, train: bool) -> Result<Tensor> {
        let [mean, variance] = if train {
            let examples = joint.dim(0)?;
            let mean = joint.mean_keepdim(0)?;
            let variance = joint.broadcast_sub(&mean)?.sqr()?.mean_keepdim(0)?;
            // Running statistics estimate the variance of the population, so it is made unbiased.
            let unbiased = examples as f64 / (examples as f64 - 1.0).max(1.0);
            for (running, now) in
                self.running.iter_mut().zip([mean.clone(), (&variance * unbiased)?])
            {
                for (running, now) in running.iter_mut().zip(now.flatten_all()?.to_vec1::<f32>()?) {
                    *running += MOMENTUM as f32 * (now - *running);
                }
            }
            [mean, variance]
        } else {
            let row =
                |numbers: &[f32]| Tensor::from_slice(numbers, (1, numbers.len()), &self.device);
            [row(&self.running[0])?, row(&self.running[1])?]
        };
        joint
            .broadcast_sub(&mean)?
            .broadcast_div(&(variance + EPSILON)?.sqrt()?)?
            .broadcast_mul(self.parameter("norm.scale")?)?
            .broadcast_add(self.parameter("norm.shift")?)
    }

    /// Parameters in the form of the model file: batch normalisation as one scale and one shift.
    pub fn stored(&self) -> Result<Vec<Stored>> {
        let mut stored = Vec::new();
        for (name, parameter) in &self.parameters {
            let numbers = parameter.flatten_all()?.to_vec1::<f32>()?;
            stored.push((*name, parameter.dims().to_vec(), numbers));
        }
        let [mean, variance] = &self.running;
        let place = |name: &str| stored.iter().position(|(known, ..)| *known == name);
        let (Some(scale), Some(shift)) = (place("norm.scale"), place("norm.shift")) else {
            candle_core::bail!("no batch normalisation");
        };
        for unit in 0..mean.len() {
            let deviation = (f64::from(variance[unit]) + EPSILON).sqrt();
            let folded = f64::from(stored[scale].2[unit]) / deviation;
            stored[scale].2[unit] = folded as f32;
            stored[shift].2[unit] -= (folded * f64::from(mean[unit])) as f32;
        }
        Ok(stored)
    }
}

fn unit(rows: &Tensor) -> Result<Tensor> {
    let squares = rows.to_dtype(DType::F32)?.sqr()?.sum_keepdim(D::Minus1)?;
    rows.broadcast_div(&(squares + SHORTEST)?.sqrt()?)
}
