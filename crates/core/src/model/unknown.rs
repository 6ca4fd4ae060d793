//! What becomes of a token that is not in the vocabulary: rules stored with the vectors, because
//! they are part of what the vectors were made for.
//!
//! Rules see strings and answer with strings or numbers; looking words up is the phrase's part.

use cognate_kernels::random::SplitMix64;
use serde::{Deserialize, Serialize};

/// The model's policy for words it does not know.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Unknown {
    /// Leave them out, as the papers do.
    #[default]
    Skip,
    /// Build a vector from parts of the word, by the rule in the section `subword`.
    Subword,
    /// Try the stem, then the parts around apostrophes, then the model's pieces of words, then a
    /// vector made from the word's hash, so that an unknown name at least matches itself.
    Fallback(Fallback),
}

/// The rules of [`Unknown::Fallback`], tried in the order of the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fallback {
    /// (suffix, replacement): the first rule that leads to a known word wins.
    pub suffixes: Vec<(String, String)>,
    /// Fewest characters left when a suffix is taken off.
    pub min_stem: usize,
    /// Whether a word with an apostrophe falls back on its known parts.
    pub parts: bool,
    /// Length of the vector made from the section `pieces`, for a word without digits; none is made
    /// when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece_norm: Option<f32>,
    /// Length of the vector made from a hash; none is made when it is absent.
    pub hash_norm: Option<f32>,
}

impl Fallback {
    /// The rules that the default vectors were measured with, for vectors whose rarer half has
    /// words of median length `norm`.
    pub fn english(norm: f32) -> Self {
        let rules = [
            ("'s", ""),
            ("ies", "y"),
            ("es", ""),
            ("s", ""),
            ("ed", ""),
            ("ed", "e"),
            ("ing", ""),
            ("ing", "e"),
            ("ly", ""),
            ("er", ""),
            ("er", "e"),
            ("est", ""),
            ("ness", ""),
            ("ers", ""),
        ];
        Self {
            suffixes: rules.map(|(suffix, end)| (suffix.to_owned(), end.to_owned())).to_vec(),
            min_stem: 3,
            parts: true,
            piece_norm: None,
            hash_norm: Some(norm),
        }
    }

    /// The words that `word` may be an inflection of, best first, each written into `buffer` and
    /// offered to `known` until that accepts one.
    pub fn stem<T>(
        &self,
        word: &str,
        buffer: &mut String,
        mut known: impl FnMut(&str) -> Option<T>,
    ) -> Option<T> {
        let last = word.as_bytes().last();
        self.suffixes.iter().find_map(|(suffix, end)| {
            // One byte rules out most suffixes.
            if suffix.as_bytes().last().is_some_and(|byte| Some(byte) != last) {
                return None;
            }
            let stem = word.strip_suffix(suffix.as_str())?;
            if stem.chars().take(self.min_stem).count() < self.min_stem {
                return None;
            }
            buffer.clear();
            buffer.push_str(stem);
            buffer.push_str(end);
            known(buffer)
        })
    }
}

/// 64-bit FNV-1a, the seed of a word's hash vector.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes the hash vector of a word: length `norm`, every component of equal size, signs from a
/// splitmix64 stream seeded by the word's FNV-1a, 64 dimensions an output, lowest bit first.
pub fn hash_vector(word: &str, norm: f32, out: &mut [f32]) {
    let component = (f64::from(norm) / (out.len().max(1) as f64).sqrt()) as f32;
    let mut signs = SplitMix64::seeded(fnv1a(word.as_bytes()));
    for block in out.chunks_mut(64) {
        let bits = signs.word();
        for (place, value) in block.iter_mut().enumerate() {
            *value = if (bits >> place) & 1 == 1 { component } else { -component };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_vectors_are_those_of_the_default_vectors() {
        // Check values of the published rules: hash, first 16 signs, signs 64 to 79.
        let table = [
            ("covid", 0xaa26_cd8e_4058_b50e, "+++--+-++-------", "+-++++---+--++-+"),
            ("xqzzt", 0x05a9_52c4_31cf_8606, "---+-++--+++--+-", "++-+----++-+----"),
            ("12345", 0xe575_e888_3c0f_89f8, "++-+-+---++---+-", "+++--+--+--+---+"),
            ("naïveté", 0x5253_2b3b_3dce_5899, "----+++--+--+-++", "++-+++--++++--++"),
        ];
        for (word, hash, head, second) in table {
            assert_eq!(fnv1a(word.as_bytes()), hash, "{word}");
            let mut vector = [0.0; 256];
            hash_vector(word, 0.9128, &mut vector);
            let signs: String = vector.iter().map(|&v| if v > 0.0 { '+' } else { '-' }).collect();
            assert_eq!(signs[..16], *head, "{word}");
            assert_eq!(signs[64..80], *second, "{word}");
            let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
            assert!((norm - 0.9128).abs() < 1e-5, "{norm}");
        }
    }

    #[test]
    fn stems_follow_the_rules_in_order() {
        let rules = Fallback::english(1.0);
        let vocabulary = ["quake", "city", "hope", "hop", "big", "o'neill", "dress"];
        let check = |word: &str, expected: Option<&str>| {
            let known = |stem: &str| vocabulary.iter().find(|&&w| w == stem).copied();
            assert_eq!(rules.stem(word, &mut String::new(), known), expected, "{word}");
        };
        check("quakes", Some("quake"));
        check("cities", Some("city"));
        check("hoping", Some("hop"));
        check("hoped", Some("hop"));
        check("o'neill's", Some("o'neill"));
        check("dresses", Some("dress"));
        check("bigly", Some("big"));
        check("bus", None);
    }
}
