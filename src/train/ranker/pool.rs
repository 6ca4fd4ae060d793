//! The convolution's second half in one step: the products of each position with the taps of the
//! kernels are scaled, added up window by window, rectified, and the largest of each kernel is kept.
//!
//! The scales are what makes attention cheap: a window whose positions are weighted for a query word
//! has the same products as without weights, each times its position's weight, so that all words of
//! a query share the products of a post. Written with tensors ([`composed`]) the same takes a dozen
//! passes over a table of queries' words × windows × kernels; here it takes one, and a step back
//! only touches the windows that were the largest.

use std::ops::Range;
use std::sync::OnceLock;

use candle_core::CpuStorage;
use candle_core::CustomOp3;
use candle_core::Layout;
use candle_core::Result;
use candle_core::Shape;
use candle_core::Storage;
use candle_core::Tensor;
use rayon::prelude::*;

/// No window is above 0.
const NONE: u32 = u32::MAX;

/// The largest of each kernel over the windows of each text.
///
/// `products` are `[texts, positions, taps × kernels]`, `scales` `[texts, words, positions]` or
/// nothing where every position counts in full, `bias` `[kernels]`; `lengths` says how many
/// positions of each text are no padding. The outcome is `[texts, words, kernels]`.
pub(super) fn pool(
    products: &Tensor,
    scales: Option<&Tensor>,
    bias: &Tensor,
    lengths: &[usize],
    taps: usize,
) -> Result<Tensor> {
    if !products.device().is_cpu() {
        return composed(products, scales, bias, lengths, taps);
    }
    let none = Tensor::zeros((1, 1, 1), products.dtype(), products.device())?;
    let op = Pool {
        lengths: lengths.to_vec(),
        taps,
        scaled: scales.is_some(),
        largest: OnceLock::new(),
    };
    let scales = scales.unwrap_or(&none).contiguous()?;
    products.contiguous()?.apply_op3(&scales, &bias.contiguous()?, op)
}

struct Pool {
    lengths: Vec<usize>,
    taps: usize,
    scaled: bool,
    /// For each text, word and kernel the window that was the largest.
    largest: OnceLock<Vec<u32>>,
}

/// Sizes of one call.
#[derive(Clone, Copy)]
struct Sizes {
    positions: usize,
    words: usize,
    taps: usize,
    kernels: usize,
}

impl Sizes {
    /// The taps of the window `at` that stand on a position, and the first such position.
    fn taps_on(&self, at: usize, length: usize) -> (Range<usize>, usize) {
        // The window `at` begins `taps − 1` positions before position `at`.
        let before = (self.taps - 1).saturating_sub(at);
        let first = (at + before).saturating_sub(self.taps - 1);
        let end = self.taps.min(before + length.saturating_sub(first));
        (before..end.max(before), first)
    }
}

impl Pool {
    fn sizes(&self, products: &Shape, scales: &Shape) -> Result<(usize, Sizes)> {
        let (texts, positions, width) = products.dims3()?;
        let words = if self.scaled { scales.dims3()?.1 } else { 1 };
        let kernels = width / self.taps;
        Ok((texts, Sizes { positions, words, taps: self.taps, kernels }))
    }
}

fn floats<'s>(storage: &'s CpuStorage, layout: &Layout) -> Result<&'s [f32]> {
    let Some((from, to)) = layout.contiguous_offsets() else {
        candle_core::bail!("expected a table without gaps");
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
        let (texts, sizes) = self.sizes(products_layout.shape(), scales_layout.shape())?;
        let (products, scales, bias) = (
            floats(products, products_layout)?,
            floats(scales, scales_layout)?,
            floats(bias, bias_layout)?,
        );
        let of_text = sizes.words * sizes.kernels;
        let mut out = vec![0.0_f32; texts * of_text];
        let mut largest = vec![NONE; texts * of_text];
        out.par_chunks_mut(of_text).zip(largest.par_chunks_mut(of_text)).enumerate().for_each(
            |(text, (out, largest))| {
                let products =
                    text_of(products, text, sizes.positions * sizes.taps * sizes.kernels);
                let scales = text_of(scales, text, sizes.words * sizes.positions);
                let mut sums = vec![0.0_f32; sizes.kernels];
                for word in 0..sizes.words {
                    let scales = self.scaled.then(|| text_of(scales, word, sizes.positions));
                    let range = word * sizes.kernels..(word + 1) * sizes.kernels;
                    let (out, largest) = (&mut out[range.clone()], &mut largest[range]);
                    for window in 0..self.lengths[text] + sizes.taps - 1 {
                        sums.copy_from_slice(bias);
                        let (taps, first) = sizes.taps_on(window, self.lengths[text]);
                        for (tap, position) in taps.zip(first..) {
                            let at = (position * sizes.taps + tap) * sizes.kernels;
                            let row = &products[at..at + sizes.kernels];
                            let scale = scales.map_or(1.0, |scales| scales[position]);
                            for (sum, product) in sums.iter_mut().zip(row) {
                                *sum += scale * product;
                            }
                        }
                        for ((out, largest), &sum) in
                            out.iter_mut().zip(largest.iter_mut()).zip(&sums)
                        {
                            let larger = sum > *out;
                            *out = if larger { sum } else { *out };
                            *largest = if larger { window as u32 } else { *largest };
                        }
                    }
                }
            },
        );
        // A first call alone is kept, and an operation is called once.
        let _ = self.largest.set(largest);
        Ok((CpuStorage::F32(out), Shape::from((texts, sizes.words, sizes.kernels))))
    }

    fn bwd(
        &self,
        products: &Tensor,
        scales: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        slope: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (texts, sizes) = self.sizes(products.shape(), scales.shape())?;
        let Some(largest) = self.largest.get() else {
            candle_core::bail!("a step back before the step forth");
        };
        let slope = slope.contiguous()?;
        let device = slope.device().clone();
        let of_products = sizes.positions * sizes.taps * sizes.kernels;
        let of_scales = if self.scaled { sizes.words * sizes.positions } else { 0 };
        let mut to_products = vec![0.0_f32; texts * of_products];
        let mut rest: Vec<(Vec<f32>, Vec<f32>)> = Vec::new();
        {
            let (storages, layouts): (Vec<_>, Vec<_>) =
                [products, scales, &slope].map(Tensor::storage_and_layout).into_iter().unzip();
            let mut tables = Vec::with_capacity(3);
            for (storage, layout) in storages.iter().zip(layouts) {
                let Storage::Cpu(storage) = &**storage else {
                    candle_core::bail!("expected a table of the processor's");
                };
                tables.push(floats(storage, layout)?);
            }
            let [products, scales, slope] = tables[..] else { candle_core::bail!("three tables") };
            let back = |(text, to_products): (usize, &mut [f32])| {
                let products = text_of(products, text, of_products);
                let mut to_scales = vec![0.0_f32; of_scales];
                let mut to_bias = vec![0.0_f32; sizes.kernels];
                for word in 0..sizes.words {
                    let of_word = (text * sizes.words + word) * sizes.kernels;
                    for kernel in 0..sizes.kernels {
                        let (window, slope) = (largest[of_word + kernel], slope[of_word + kernel]);
                        if window == NONE {
                            continue;
                        }
                        to_bias[kernel] += slope;
                        let (taps, first) = sizes.taps_on(window as usize, self.lengths[text]);
                        for (tap, position) in taps.zip(first..) {
                            let at = (position * sizes.taps + tap) * sizes.kernels + kernel;
                            if self.scaled {
                                let place = word * sizes.positions + position;
                                to_products[at] += slope * scales[text * of_scales + place];
                                to_scales[place] += slope * products[at];
                            } else {
                                to_products[at] += slope;
                            }
                        }
                    }
                }
                (to_scales, to_bias)
            };
            to_products
                .par_chunks_mut(of_products)
                .enumerate()
                .map(back)
                .collect_into_vec(&mut rest);
        }
        // In the order of the texts, whatever the number of threads.
        let mut to_bias = vec![0.0_f32; sizes.kernels];
        let mut to_scales = Vec::with_capacity(texts * of_scales);
        for (of_scales, of_bias) in rest {
            to_scales.extend(of_scales);
            for (sum, slope) in to_bias.iter_mut().zip(of_bias) {
                *sum += slope;
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

/// The part of a table that belongs to one text, or to one word of it.
fn text_of(table: &[f32], text: usize, size: usize) -> &[f32] {
    // A table of scales that is not asked for has no parts.
    table.get(text * size..(text + 1) * size).unwrap_or_default()
}

/// The same made of tensors, for devices that the one step is not written for.
pub(super) fn composed(
    products: &Tensor,
    scales: Option<&Tensor>,
    bias: &Tensor,
    lengths: &[usize],
    taps: usize,
) -> Result<Tensor> {
    let (texts, positions, width) = products.dims3()?;
    let kernels = width / taps;
    let windows = positions + taps - 1;
    let mut sums: Option<Tensor> = None;
    for tap in 0..taps {
        let mut part = products.narrow(2, tap * kernels, kernels)?.unsqueeze(1)?;
        if let Some(scales) = scales {
            part = part.broadcast_mul(&scales.unsqueeze(3)?)?;
        }
        // Padding must not reach into windows of the text.
        part = part.broadcast_mul(&shown(texts, positions, lengths, 0, products)?)?;
        let part = part.contiguous()?.pad_with_zeros(2, taps - 1 - tap, tap)?;
        sums = Some(match sums {
            Some(sums) => (sums + part)?,
            None => part,
        });
    }
    let Some(sums) = sums else { candle_core::bail!("a kernel without taps") };
    let sums = sums.broadcast_add(bias)?.relu()?;
    sums.broadcast_mul(&shown(texts, windows, lengths, taps - 1, products)?)?.max(2)
}

/// 1 for what is no padding, else 0, as `[texts, 1, positions, 1]`.
fn shown(
    texts: usize,
    positions: usize,
    lengths: &[usize],
    more: usize,
    like: &Tensor,
) -> Result<Tensor> {
    let shown = lengths.iter().flat_map(|&length| {
        (0..positions).map(move |at| if at < length + more { 1.0_f32 } else { 0.0 })
    });
    Tensor::from_vec(shown.collect(), (texts, 1, positions, 1), like.device())
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use candle_core::Var;

    use super::*;
    use crate::metrics::random::Random;
    use crate::train::sampling;

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
        for (taps, words, lengths) in
            [(2, 3, vec![4, 1, 0, 2]), (1, 1, vec![3, 2]), (3, 2, vec![5, 1])]
        {
            let (texts, positions, kernels) = (lengths.len(), 5, 7);
            let products = random(&[texts, positions, taps * kernels], &mut chance);
            let scales = random(&[texts, words, positions], &mut chance);
            let bias = random(&[kernels], &mut chance);
            let toward = random(&[texts, words, kernels], &mut chance);
            for scaled in [Some(scales.as_tensor()), None] {
                let one = pool(&products, scaled, &bias, &lengths, taps).unwrap();
                let many = composed(&products, scaled, &bias, &lengths, taps).unwrap();
                close(&one, &many);
                let slopes = [one, many].map(|outcome| {
                    outcome.broadcast_mul(&toward).unwrap().sum_all().unwrap().backward().unwrap()
                });
                for of in
                    [Some(&products), scaled.map(|_| &scales), Some(&bias)].into_iter().flatten()
                {
                    let [one, many] =
                        [&slopes[0], &slopes[1]].map(|slopes| slopes.get(of).unwrap());
                    close(one, many);
                }
            }
        }
    }
}
