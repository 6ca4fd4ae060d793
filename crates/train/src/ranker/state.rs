//! What a run changes as it goes, and how one step changes it.

use candle_core::{Device, Result, Tensor, Var};
use candle_nn::loss::cross_entropy;
use cognate::methods::ranker::Shape;
use cognate_kernels::random::Random;

use crate::ranker::batch::Batch;
use crate::ranker::network::{Mode, Network};
use crate::sampling;

/// How far a step goes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub rate: f64,
    /// The share of the step before that each step repeats.
    pub momentum: f64,
    /// The share of a parameter that each step of rate 1 takes away.
    pub decay: f64,
    /// The share of the joint layer's units left out of a step.
    pub dropout: f64,
    /// Whether the word vectors stay as they are.
    pub freeze: bool,
}

/// The network, the word vectors, and the last step.
pub struct State {
    pub network: Network,
    /// A row a word; the first stands for no word and stays zeros.
    pub rows: Vec<f32>,
    dims: usize,
    device: Device,
    velocity: Vec<Tensor>,
}

/// The numbers of a state, to be kept or gone back to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Numbers {
    pub network: Vec<f32>,
    /// Of the word vectors.
    pub rows: Vec<f32>,
}

impl State {
    /// A new network over given word vectors.
    pub fn new(shape: Shape, rows: Vec<f32>, device: Device, random: &mut Random) -> Result<Self> {
        let network = Network::new(shape, &device, random)?;
        let still = |(_, parameter): &(_, Var)| parameter.zeros_like();
        let velocity = network.parameters.iter().map(still).collect::<Result<Vec<_>>>()?;
        Ok(Self { network, rows, dims: shape.dims, device, velocity })
    }

    /// The rows of a batch's words.
    fn gathered(&self, words: &[u32]) -> Result<Tensor> {
        let mut gathered = Vec::with_capacity(words.len() * self.dims);
        for &word in words {
            let from = word as usize * self.dims;
            gathered.extend_from_slice(&self.rows[from..from + self.dims]);
        }
        Tensor::from_vec(gathered, (words.len(), self.dims), &self.device)
    }

    /// One step down the loss of a batch, which is given back: the mean of `−ln p(label)`.
    ///
    /// Parameters move with momentum and decay. The rows of the batch's words move by the plain
    /// slope, at the rate that momentum amounts to in the long run: a velocity for every word would
    /// have to be looked at in every step.
    pub fn step(&mut self, batch: &Batch, pace: &Pace, random: &mut Random) -> Result<f64> {
        let gathered = self.gathered(&batch.words)?;
        let moving = (!pace.freeze).then(|| Var::from_tensor(&gathered)).transpose()?;
        let rows = moving.as_ref().map_or(&gathered, Var::as_tensor);
        let kept = 1.0 / (1.0 - pace.dropout);
        let units = batch.labels.len() * self.network.joint();
        let factor = |_| if sampling::share(random) < pace.dropout { 0.0 } else { kept as f32 };
        let kept: Vec<f32> = (0..units).map(factor).collect();
        let logits = self.network.forward(rows, batch, Mode::Train(&kept))?;
        let labels = Tensor::new(batch.labels.as_slice(), &self.device)?;
        let loss = cross_entropy(&logits, &labels)?;
        let slopes = loss.backward()?;
        for ((_, parameter), velocity) in self.network.parameters.iter().zip(&mut self.velocity) {
            let Some(slope) = slopes.get(parameter) else { continue };
            let slope = (slope + (parameter.as_tensor() * pace.decay)?)?;
            *velocity = ((&*velocity * pace.momentum)? + slope)?;
            parameter.set(&(parameter.as_tensor() - (&*velocity * pace.rate)?)?)?;
        }
        if let Some(slopes) = moving.as_ref().and_then(|rows| slopes.get(rows)) {
            let rate = (pace.rate / (1.0 - pace.momentum)) as f32;
            let slopes = slopes.flatten_all()?.to_vec1::<f32>()?;
            let of_words = batch.words.iter().zip(slopes.chunks_exact(self.dims));
            for (&word, slopes) in of_words.filter(|(word, _)| **word > 0) {
                let from = word as usize * self.dims;
                for (value, slope) in self.rows[from..from + self.dims].iter_mut().zip(slopes) {
                    *value -= rate * slope;
                }
            }
        }
        Ok(f64::from(loss.to_scalar::<f32>()?))
    }

    /// The logarithm of each example's chance to be relevant.
    pub fn scores(&mut self, batch: &Batch) -> Result<Vec<f32>> {
        let rows = self.gathered(&batch.words)?;
        let logits = self.network.forward(&rows, batch, Mode::Judge)?;
        candle_nn::ops::log_softmax(&logits, 1)?.narrow(1, 1, 1)?.flatten_all()?.to_vec1()
    }

    /// Every number that scores depend on.
    pub fn numbers(&self) -> Result<Numbers> {
        Ok(Numbers { network: self.network.numbers()?, rows: self.rows.clone() })
    }

    /// Goes back to numbers given before.
    pub fn set_numbers(&mut self, numbers: &Numbers) -> Result<()> {
        if numbers.rows.len() != self.rows.len() {
            candle_core::bail!("{} numbers for {} of rows", numbers.rows.len(), self.rows.len());
        }
        self.network.set_numbers(&numbers.network)?;
        self.rows.copy_from_slice(&numbers.rows);
        Ok(())
    }

    /// The last step, one number a parameter's.
    pub fn velocity(&self) -> Result<Vec<f32>> {
        let mut numbers = Vec::new();
        for velocity in &self.velocity {
            numbers.extend(velocity.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(numbers)
    }

    /// Puts back what [`State::velocity`] gave.
    pub fn set_velocity(&mut self, mut numbers: &[f32]) -> Result<()> {
        for velocity in &mut self.velocity {
            let Some((own, rest)) = numbers.split_at_checked(velocity.elem_count()) else {
                candle_core::bail!("too few numbers of the last step");
            };
            *velocity = Tensor::from_slice(own, velocity.shape(), &self.device)?;
            numbers = rest;
        }
        Ok(())
    }
}
