//! The second half of the convolution as one operation: for each window the products of its words
//! with the kernels' taps are scaled and summed, rectified, and the maximum of each kernel is kept.
//!
//! Products depend only on the word, so they are computed once for each distinct word of a batch;
//! positions hold indices of words. The scales make attention cheap: in a post weighted for a query
//! word, each product is the unweighted one times its position's weight, so all words of a query
//! share the products of a post. The same computation with tensors ([`composed`]) takes a dozen
//! passes over a table of query words × windows × kernels; here it takes one, and the backward pass
//! only touches the windows with the maximum.

use std::ops::Range;
use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Storage, Tensor};
use rayon::prelude::*;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub struct Positions<'p> {
    pub places: &'p [u32],
    pub lengths: &'p [usize],
}

/// The maximum of each kernel over the windows of each text.
///
/// `products` are `[words, taps × kernels]`, `scales` `[texts, asking, positions]` or `None` if
/// every position has weight 1, `bias` `[kernels]`. The result is `[texts, asking, kernels]`.
pub(super) fn pool(
    products: &Tensor,
    positions: Positions<'_>,
    scales: Option<&Tensor>,
    bias: &Tensor,
    taps: usize,
) -> Result<Tensor> {
    if !products.device().is_cpu() {
        return composed(products, positions, scales, bias, taps);
    }
    let none = Tensor::zeros((1, 1, 1), products.dtype(), products.device())?;
    let op = Pool {
        places: positions.places.to_vec(),
        lengths: positions.lengths.to_vec(),
        taps,
        scaled: scales.is_some(),
        largest: OnceLock::new(),
    };
    let scales = scales.unwrap_or(&none).contiguous()?;
    products.contiguous()?.apply_op3(&scales, &bias.contiguous()?, op)
}

struct Pool {
    places: Vec<u32>,
    lengths: Vec<usize>,
    taps: usize,
    scaled: bool,
    /// For each text, query word and kernel: the window with the maximum.
    largest: OnceLock<Vec<u32>>,
}

#[derive(Clone, Copy)]
struct Sizes {
    positions: usize,
    asking: usize,
    taps: usize,
    kernels: usize,
}

impl Sizes {
    fn taps_on(&self, at: usize, length: usize) -> (Range<usize>, usize) {
        // The window `at` begins `taps − 1` positions before position `at`.
        let before = (self.taps - 1).saturating_sub(at);
        let first = (at + before).saturating_sub(self.taps - 1);
        let end = self.taps.min(before + length.saturating_sub(first));
        (before..end.max(before), first)
    }
}

impl Pool {
    fn sizes(&self, products: &Shape, scales: &Shape) -> Result<Sizes> {
        let (_, width) = products.dims2()?;
        let asking = if self.scaled { scales.dims3()?.1 } else { 1 };
        let positions = self.places.len() / self.lengths.len().max(1);
        Ok(Sizes { positions, asking, taps: self.taps, kernels: width / self.taps })
    }

    fn text(&self, text: usize, sizes: &Sizes) -> &[u32] {
        let from = text * sizes.positions;
        &self.places[from..from + self.lengths[text]]
    }
}

fn floats<'s>(storage: &'s CpuStorage, layout: &Layout) -> Result<&'s [f32]> {
    let Some((from, to)) = layout.contiguous_offsets() else {
        candle_core::bail!("expected a contiguous tensor");
    };
    Ok(&storage.as_slice::<f32>()?[from..to])
}

impl CustomOp3 for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn cpu_fwd(
        &self,
        products: &CpuStorage,
        products_layout: &Layout,
        scales: &CpuStorage,
        scales_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sizes = self.sizes(products_layout.shape(), scales_layout.shape())?;
        let texts = self.lengths.len();
        let (products, scales, bias) = (
            floats(products, products_layout)?,
            floats(scales, scales_layout)?,
            floats(bias, bias_layout)?,
        );
        let of_text = sizes.asking * sizes.kernels;
        let mut out = vec![0.0_f32; texts * of_text];
        let mut largest = vec![NONE; texts * of_text];
        let forth = |(text, (out, largest)): (usize, (&mut [f32], &mut [u32]))| {
            let words = self.text(text, &sizes);
            let mut sums = vec![0.0_f32; sizes.kernels];
            let parts = out.chunks_mut(sizes.kernels).zip(largest.chunks_mut(sizes.kernels));
            for (asking, (out, largest)) in parts.enumerate() {
                let from = (text * sizes.asking + asking) * sizes.positions;
                for window in 0..words.len() + sizes.taps - 1 {
                    sums.copy_from_slice(bias);
                    let (taps, first) = sizes.taps_on(window, words.len());
                    for (tap, position) in taps.zip(first..) {
                        let at = (words[position] as usize * sizes.taps + tap) * sizes.kernels;
                        let row = &products[at..at + sizes.kernels];
                        let scale = if self.scaled { scales[from + position] } else { 1.0 };
                        for (sum, product) in sums.iter_mut().zip(row) {
                            *sum += scale * product;
                        }
                    }
                    let best = out.iter_mut().zip(largest.iter_mut());
                    for ((out, largest), &sum) in best.zip(&sums) {
                        let larger = sum > *out;
                        *out = if larger { sum } else { *out };
                        *largest = if larger { window as u32 } else { *largest };
                    }
                }
            }
        };
        out.par_chunks_mut(of_text)
            .zip(largest.par_chunks_mut(of_text))
            .enumerate()
            .for_each(forth);
        // Only the first call sets it, and each operation is called once.
        let _ = self.largest.set(largest);
        Ok((CpuStorage::F32(out), Shape::from((texts, sizes.asking, sizes.kernels))))
    }

    fn bwd(
        &self,
        products: &Tensor,
        scales: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        slope: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let sizes = self.sizes(products.shape(), scales.shape())?;
        let Some(largest) = self.largest.get() else {
            candle_core::bail!("the backward pass came before the forward pass");
        };
        let slope = slope.contiguous()?;
        let device = slope.device().clone();
        let mut to_products = vec![0.0_f32; products.elem_count()];
        let mut to_scales = vec![0.0_f32; if self.scaled { scales.elem_count() } else { 0 }];
        let mut to_bias = vec![0.0_f32; sizes.kernels];
        {
            let (storages, layouts): (Vec<_>, Vec<_>) =
                [products, scales, &slope].map(Tensor::storage_and_layout).into_iter().unzip();
            let mut tables = Vec::with_capacity(3);
            for (storage, layout) in storages.iter().zip(layouts) {
                let Storage::Cpu(storage) = &**storage else {
                    candle_core::bail!("expected a tensor in CPU memory");
                };
                tables.push(floats(storage, layout)?);
            }
            let [products, scales, slope] = tables[..] else { candle_core::bail!("three tables") };
            // Sequential over the texts, because they add to the gradients of the same words.
            let asking = (0..self.lengths.len() * sizes.asking)
                .zip(largest.chunks_exact(sizes.kernels).zip(slope.chunks_exact(sizes.kernels)));
            for (row, (largest, slope)) in asking {
                let words = self.text(row / sizes.asking, &sizes);
                for (kernel, (&window, &slope)) in largest.iter().zip(slope).enumerate() {
                    if window == NONE {
                        continue;
                    }
                    to_bias[kernel] += slope;
                    let (taps, first) = sizes.taps_on(window as usize, words.len());
                    for (tap, position) in taps.zip(first..) {
                        let word = words[position] as usize;
                        let at = (word * sizes.taps + tap) * sizes.kernels + kernel;
                        if self.scaled {
                            let place = row * sizes.positions + position;
                            to_products[at] += slope * scales[place];
                            to_scales[place] += slope * products[at];
                        } else {
                            to_products[at] += slope;
                        }
                    }
                }
            }
        }
        let to_scales = self
            .scaled
            .then(|| Tensor::from_vec(to_scales, scales.shape(), &device))
            .transpose()?;
        Ok((
            Some(Tensor::from_vec(to_products, products.shape(), &device)?),
            to_scales,
            Some(Tensor::from_vec(to_bias, bias.shape(), &device)?),
        ))
    }
}

/// The same computation with tensors, for devices without the fused operation.
pub(super) fn composed(
    products: &Tensor,
    positions: Positions<'_>,
    scales: Option<&Tensor>,
    bias: &Tensor,
    taps: usize,
) -> Result<Tensor> {
    let lengths = positions.lengths;
    let (texts, width) = (lengths.len(), products.dim(1)? / taps);
    let places = Tensor::new(positions.places, products.device())?;
    let products = products.index_select(&places, 0)?.reshape((texts, (), taps * width))?;
    let positions = products.dim(1)?;
    let mut sums: Option<Tensor> = None;
    for tap in 0..taps {
        let mut part = products.narrow(2, tap * width, width)?.unsqueeze(1)?;
        if let Some(scales) = scales {
            part = part.broadcast_mul(&scales.unsqueeze(3)?)?;
        }
        // Padding must not reach into windows of the text.
        part = part.broadcast_mul(&shown(positions, lengths, 0, &products)?)?;
        let part = part.contiguous()?.pad_with_zeros(2, taps - 1 - tap, tap)?;
        sums = Some(match sums {
            Some(sums) => (sums + part)?,
            None => part,
        });
    }
    let Some(sums) = sums else { candle_core::bail!("a kernel without taps") };
    let sums = sums.broadcast_add(bias)?.relu()?;
    sums.broadcast_mul(&shown(positions + taps - 1, lengths, taps - 1, &products)?)?.max(2)
}

/// 1 for text and 0 for padding, as `[texts, 1, positions, 1]`.
fn shown(positions: usize, lengths: &[usize], more: usize, like: &Tensor) -> Result<Tensor> {
    let shown = lengths.iter().flat_map(|&length| {
        (0..positions).map(move |at| if at < length + more { 1.0_f32 } else { 0.0 })
    });
    Tensor::from_vec(shown.collect(), (lengths.len(), 1, positions, 1), like.device())
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use cognate_kernels::random::Random;

    use super::*;
    use crate::sampling;

    fn random(shape: &[usize], random: &mut Random) -> Var {
        let count = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|_| sampling::normal(random) as f32).collect();
        Var::from_vec(numbers, shape, &Device::Cpu).unwrap()
    }

    fn close(one: &Tensor, other: &Tensor) {
        assert_eq!(one.dims(), other.dims());
        let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (one, other) in flat(one).into_iter().zip(flat(other)) {
            assert!((one - other).abs() < 1e-4, "{one} {other}");
        }
    }

    #[test]
    fn one_step_gives_the_values_and_the_slopes_of_many() {
        let mut chance = Random::seeded(5);
        for (taps, asking, lengths) in
            [(2, 3, vec![4, 1, 0, 2]), (1, 1, vec![3, 2]), (3, 2, vec![5, 1])]
        {
            let (texts, positions, kernels, words) = (lengths.len(), 5, 7, 6);
            let products = random(&[words, taps * kernels], &mut chance);
            let scales = random(&[texts, asking, positions], &mut chance);
            let bias = random(&[kernels], &mut chance);
            let toward = random(&[texts, asking, kernels], &mut chance);
            // No text repeats a word: for equal windows candle's `max` counts the slope twice.
            let mut order: Vec<u32> = (0..words as u32).collect();
            let mut places = Vec::new();
            for _ in 0..texts {
                chance.shuffle(&mut order);
                places.extend_from_slice(&order[..positions]);
            }
            let positions = Positions { places: &places, lengths: &lengths };
            for scaled in [Some(scales.as_tensor()), None] {
                let one = pool(&products, positions, scaled, &bias, taps).unwrap();
                let many = composed(&products, positions, scaled, &bias, taps).unwrap();
                close(&one, &many);
                let slopes = [one, many].map(|outcome| {
                    outcome.broadcast_mul(&toward).unwrap().sum_all().unwrap().backward().unwrap()
                });
                let moved = [Some(&products), scaled.map(|_| &scales), Some(&bias)];
                for of in moved.into_iter().flatten() {
                    let [one, many] =
                        [&slopes[0], &slopes[1]].map(|slopes| slopes.get(of).unwrap());
                    close(one, many);
                }
            }
        }
    }

    #[test]
    fn of_equal_windows_one_has_the_slope() {
        let products = Var::from_vec(vec![2.0_f32], &[1, 1], &Device::Cpu).unwrap();
        let bias = Var::from_vec(vec![0.0_f32], &[1], &Device::Cpu).unwrap();
        let positions = Positions { places: &[0, 0], lengths: &[2] };
        let slopes = pool(&products, positions, None, &bias, 1).unwrap().backward().unwrap();
        close(slopes.get(&products).unwrap(), &products.ones_like().unwrap());
    }
}
