//! A straightforward port of the papers' code, as one would first write it: words in a hash map,
//! a vector of strings a text, loops over slices.

use std::collections::HashMap;

use crate::ground::Vectors;

/// Words and their vectors.
pub struct Port(HashMap<String, Vec<f32>>);

/// The tokens of a text.
pub fn tokens(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Port {
    pub fn new(vectors: &Vectors) -> Self {
        let rows = vectors.rows.chunks_exact(vectors.dims).map(<[f32]>::to_vec);
        Self(vectors.words.iter().cloned().zip(rows).collect())
    }

    fn rows(&self, text: &str) -> Vec<&Vec<f32>> {
        tokens(text).iter().filter_map(|token| self.0.get(token)).collect()
    }

    /// The cosine of the means.
    pub fn avg_cos(&self, a: &str, b: &str) -> f32 {
        let mean = |text: &str| {
            let rows = self.rows(text);
            let dims = rows.first().map_or(0, |row| row.len());
            let mut mean = vec![0.0; dims];
            for row in &rows {
                for (sum, value) in mean.iter_mut().zip(row.iter()) {
                    *sum += value / rows.len() as f32;
                }
            }
            mean
        };
        let (a, b) = (mean(a), mean(b));
        let lengths = dot(&a, &a).sqrt() * dot(&b, &b).sqrt();
        if lengths > 0.0 { dot(&a, &b) / lengths } else { 0.0 }
    }

    /// DynaMax-Jaccard.
    pub fn dynamax(&self, a: &str, b: &str) -> f32 {
        dynamax(&self.rows(a), &self.rows(b))
    }
}

/// DynaMax-Jaccard of rows.
pub fn dynamax(a: &[&Vec<f32>], b: &[&Vec<f32>]) -> f32 {
    let membership = |rows: &[&Vec<f32>], word: &[f32]| {
        rows.iter().map(|row| dot(row, word)).fold(0.0, f32::max)
    };
    let (mut least, mut most) = (0.0, 0.0);
    for word in a.iter().chain(b) {
        let (of_a, of_b) = (membership(a, word), membership(b, word));
        least += of_a.min(of_b);
        most += of_a.max(of_b);
    }
    if most > 0.0 { least / most } else { 0.0 }
}
