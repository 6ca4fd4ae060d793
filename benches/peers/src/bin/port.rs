//! What one would write in an afternoon: a `HashMap` of words to vectors, texts cut into owned
//! tokens, and the formulas as they stand in the papers: `port VECTORS.npy VOCABULARY PAIRS`.

use std::collections::HashMap;
use std::fs;

use cognate_peers::{Turn, arguments, cosine, dot, take_turns};

type Vectors = HashMap<String, Vec<f32>>;
type Text<'v> = [&'v Vec<f32>];

fn main() {
    let [matrix, vocabulary, pairs] = arguments(["VECTORS", "VOCABULARY", "PAIRS"]);
    let vectors = load(&matrix, &vocabulary);
    take_turns(&pairs, |method, pairs| {
        let compare: fn(&Text<'_>, &Text<'_>) -> f32 = match method {
            "avg-cos" => avg_cos,
            "dynamax-jaccard" => dynamax_jaccard,
            _ => return None,
        };
        let read = |text: &str| rows(&vectors, text);
        Some(Turn::scoring(|| pairs.iter().map(|(a, b)| compare(&read(a), &read(b))).collect()))
    });
}

/// Reads rows of f32 behind the header of an `.npy` file of version 1, and their words.
fn load(matrix: &str, vocabulary: &str) -> Vectors {
    let bytes = fs::read(matrix).expect("the vectors are readable");
    let data = &bytes[10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))..];
    let words = fs::read_to_string(vocabulary).expect("the vocabulary is readable");
    let width = data.len() / words.lines().count();
    let row = |bytes: &[u8]| -> Vec<f32> {
        let numbers = bytes.chunks_exact(4);
        numbers.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
    };
    words.lines().map(str::to_owned).zip(data.chunks_exact(width).map(row)).collect()
}

fn tokenise(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let tokens = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    tokens.filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

fn rows<'v>(vectors: &'v Vectors, text: &str) -> Vec<&'v Vec<f32>> {
    tokenise(text).iter().filter_map(|token| vectors.get(token)).collect()
}

fn avg_cos(one: &Text<'_>, other: &Text<'_>) -> f32 {
    if one.is_empty() || other.is_empty() { 0.0 } else { cosine(&mean(one), &mean(other)) }
}

fn mean(rows: &Text<'_>) -> Vec<f32> {
    let mut mean = vec![0.0; rows[0].len()];
    for row in rows {
        for (sum, value) in mean.iter_mut().zip(row.iter()) {
            *sum += value;
        }
    }
    mean.iter_mut().for_each(|sum| *sum /= rows.len() as f32);
    mean
}

fn dynamax_jaccard(one: &Text<'_>, other: &Text<'_>) -> f32 {
    let universe: Vec<&Vec<f32>> = one.iter().chain(other).copied().collect();
    let (of_one, of_other) = (memberships(one, &universe), memberships(other, &universe));
    let both = || of_one.iter().zip(&of_other);
    let intersection: f32 = both().map(|(a, b)| a.min(*b)).sum();
    let union: f32 = both().map(|(a, b)| a.max(*b)).sum();
    if one.is_empty() || other.is_empty() || union == 0.0 { 0.0 } else { intersection / union }
}

/// A text's membership in each word of the universe: its best product with it, never below 0.
fn memberships(text: &Text<'_>, universe: &Text<'_>) -> Vec<f32> {
    let best = |word: &&Vec<f32>| text.iter().map(|row| dot(row, word)).fold(0.0, f32::max);
    universe.iter().map(best).collect()
}
