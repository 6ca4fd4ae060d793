//! Siamese CBOW as one would write it first: an example at a time, every one of its sentences
//! averaged anew, every gradient handed to every word at once.

use cognate_kernels::random::Random;
use cognate_train::vectors::corpus::Corpus;

/// Makes one pass over the corpus with two random other sentences for each example; returns the sum of
/// the losses.
pub fn epoch(corpus: &Corpus, rows: &mut [f32], dims: usize, rate: f32) -> f64 {
    let mut random = Random::seeded(1);
    let mut loss = 0.0;
    for centre in 0..corpus.sentences() {
        let neighbours = [centre.checked_sub(1), Some(centre + 1)].into_iter().flatten();
        let mut sentences = vec![centre];
        sentences.extend(neighbours.filter(|&near| corpus.same_document(centre, near)));
        let wanted = 1.0 / (sentences.len() - 1).max(1) as f64;
        let positives = sentences.len();
        for _ in 0..2 {
            sentences.push(random.below(corpus.sentences()));
        }
        let means: Vec<Vec<f32>> =
            sentences.iter().map(|&at| mean(corpus.sentence(at), rows, dims)).collect();
        let norms: Vec<f32> = means.iter().map(|mean| product(mean, mean).sqrt()).collect();
        let cosine = |at: usize| product(&means[0], &means[at]) / (norms[0] * norms[at]);
        let cosines: Vec<f32> = (1..sentences.len()).map(cosine).collect();
        let total: f64 = cosines.iter().map(|&cosine| f64::from(cosine).exp()).sum();
        let mut own = vec![0.0; dims];
        for (place, &cosine) in cosines.iter().enumerate() {
            let at = place + 1;
            let probability = f64::from(cosine).exp() / total;
            let target = if at < positives { wanted } else { 0.0 };
            loss -= target * probability.ln();
            let slope = (probability - target) as f32;
            let mut gradient = vec![0.0; dims];
            for dim in 0..dims {
                let (a, b) = (means[0][dim] / norms[0], means[at][dim] / norms[at]);
                own[dim] += slope * (b - cosine * a) / norms[0];
                gradient[dim] = slope * (a - cosine * b) / norms[at];
            }
            descend(corpus.sentence(sentences[at]), rows, &gradient, rate);
        }
        descend(corpus.sentence(centre), rows, &own, rate);
    }
    loss
}

fn mean(words: &[u32], rows: &[f32], dims: usize) -> Vec<f32> {
    let mut mean = vec![0.0; dims];
    for &word in words {
        let row = &rows[word as usize * dims..(word as usize + 1) * dims];
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    mean.iter_mut().for_each(|value| *value /= words.len() as f32);
    mean
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn descend(words: &[u32], rows: &mut [f32], gradient: &[f32], rate: f32) {
    let dims = gradient.len();
    let step = rate / words.len() as f32;
    for &word in words {
        let row = &mut rows[word as usize * dims..(word as usize + 1) * dims];
        row.iter_mut().zip(gradient).for_each(|(value, slope)| *value -= step * slope);
    }
}
