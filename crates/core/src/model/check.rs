//! Whether a model's tables hold what they promise: by structure alone, or every byte.
//!
//! Structure is what keeps look-ups within bounds and costs a pass over the vocabulary. Full adds
//! the digest of every tensor, every word found through its own index, and every number finite.

#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::io::Read;

use cognate_kernels::vector;

use crate::choice::choice;
use crate::model::bytes::numbers;
use crate::model::error::FormatError;
use crate::model::format::{Dtype, Header, Tensor};
use crate::model::options::LONGEST;
use crate::model::vectors::Vectors;
use crate::model::vocabulary::{EMPTY, Vocabulary};

/// How thoroughly a model file is checked when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Every byte: digests, numbers, and the structure.
    #[default]
    Full,
    /// The header and the vocabulary's tables; vectors are not read.
    Structure,
}

choice!(Verify { Full = "full", Structure = "structure" });

/// Checks that padding is zero, words are UTF-8 within their bounds, and the index names words.
pub(crate) fn structure(
    file: &[u8],
    header: &Header,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), FormatError> {
    for range in &header.padding {
        if file.get(range.clone()).is_none_or(|bytes| bytes.iter().any(|&byte| byte != 0)) {
            return Err(FormatError::Extent {
                name: "padding".to_owned(),
                expected: "zeros".to_owned(),
                got: format!("other bytes in {range:?}"),
            });
        }
    }
    words("vocabulary", vocabulary)
}

/// Checks that words are UTF-8 within their bounds, and that the index names each of them once.
pub(crate) fn words(table: &'static str, vocabulary: &Vocabulary<'_>) -> Result<(), FormatError> {
    let (bytes, offsets, index) = vocabulary.tables();
    let count = vocabulary.len();
    let words =
        |word: usize, problem| FormatError::Vocabulary { table, word: word as u64, problem };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| words(word_at(offsets, error.valid_up_to()), "its bytes are not UTF-8"))?;
    if offsets.first() != Some(&0) {
        return Err(words(0, "the first word does not begin at 0"));
    }
    if offsets.last() != Some(&(bytes.len() as u64)) {
        return Err(words(count, "the last word does not end with the bytes"));
    }
    for (word, pair) in offsets.windows(2).enumerate() {
        let [from, to] = pair else { continue };
        if from >= to {
            return Err(words(word, "it is empty or ends before it begins"));
        }
        if usize::try_from(*from).is_ok_and(|from| !text.is_char_boundary(from)) {
            return Err(words(word, "it begins inside a character"));
        }
    }
    // The header guarantees more slots than words, so that one is empty if each word has one.
    let mut used = 0;
    for &[_, id] in index {
        if id != EMPTY {
            used += 1;
            if id as usize >= count {
                return Err(words(id as usize, "the index names it, but there is no such word"));
            }
        }
    }
    if used != count {
        return Err(words(used, "the index does not hold every word once"));
    }
    Ok(())
}

fn word_at(offsets: &[u64], byte: usize) -> usize {
    offsets.partition_point(|&offset| offset <= byte as u64).saturating_sub(1)
}

/// Checks that every tensor has its digest.
pub(crate) fn digests(file: &[u8], header: &Header) -> Result<(), FormatError> {
    for tensor in &header.tensors {
        let bytes = file.get(tensor.range.clone()).unwrap_or(&[]);
        let got = blake3::hash(bytes).to_hex().to_string();
        if got != tensor.digest {
            let (name, expected) = (tensor.name.clone(), tensor.digest.clone());
            return Err(FormatError::Digest { name, expected, got });
        }
    }
    Ok(())
}

/// Checks every number and every word's look-up; [`structure`] must have passed.
pub(crate) fn full(
    file: &[u8],
    header: &Header,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), FormatError> {
    for tensor in &header.tensors {
        let bytes = file.get(tensor.range.clone()).unwrap_or(&[]);
        finite(tensor, bytes)?;
        let scales = of_rows(&tensor.name).and_then(|scales| header.tensor(scales));
        let scales = scales.and_then(|scales| file.get(scales.range.clone())).unwrap_or(&[]);
        if of_rows(&tensor.name).is_some() {
            bounded(tensor, bytes, scales, header.dims as usize)?;
        }
    }
    found_by_look_up("vocabulary", vocabulary)
}

/// Checks that every word is found through its own index; [`words`] must have passed.
pub(crate) fn found_by_look_up(
    table: &'static str,
    vocabulary: &Vocabulary<'_>,
) -> Result<(), FormatError> {
    for id in 0..vocabulary.len() {
        let found = vocabulary.word_bytes(id as u32).and_then(|word| vocabulary.lookup_bytes(word));
        if found != Some(id as u32) {
            let problem = "its own look-up does not find it; it may stand twice";
            return Err(FormatError::Vocabulary { table, word: id as u64, problem });
        }
    }
    Ok(())
}

/// The scales of a tensor whose rows are vectors, if it is one.
fn of_rows(name: &str) -> Option<&'static str> {
    match name {
        "vectors" => Some("scales"),
        "section.subword.buckets" => Some("section.subword.scales"),
        "section.pieces.rows" => Some("section.pieces.scales"),
        _ => None,
    }
}

/// Refuses rows whose norm would overflow. An earlier check found all numbers finite.
fn bounded(tensor: &Tensor, bytes: &[u8], scales: &[u8], dims: usize) -> Result<(), FormatError> {
    let rows = Vectors::new(tensor.dtype, bytes, scales, dims).unwrap_or(Vectors::empty(dims));
    // A row of half-precision numbers is never too long.
    let ids = if tensor.dtype == Dtype::F16 { 0..0 } else { 0..rows.len() as u32 };
    // Zeros times a scale whose square is infinite have no length at all.
    let too_long = |norm: f32| norm.is_nan() || norm > LONGEST;
    // The scale of a row of bytes nearly always says enough: half is more than rounding takes.
    let (scales, most) = (numbers::<f32>(scales).unwrap_or(&[]), 128.0 * (dims as f32).sqrt());
    let short =
        |id: &u32| scales.get(*id as usize).is_some_and(|scale| scale.abs() * most < LONGEST / 2.0);
    let long =
        |id: &u32| !short(id) && rows.row(*id).is_some_and(|row| too_long(vector::norm(row)));
    match ids.into_iter().find(long) {
        Some(row) => Err(FormatError::Length { name: tensor.name.clone(), row: row.into() }),
        None => Ok(()),
    }
}

/// BLAKE3 of the bytes that are no tensor's: the header and the padding.
#[cfg(unix)]
pub(crate) fn digest_between(file: &[u8], header: &Header) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    for tensor in &header.tensors {
        hasher.update(file.get(at..tensor.range.start).unwrap_or(&[]));
        at = tensor.range.end;
    }
    hasher.update(file.get(at..).unwrap_or(&[]));
    hasher.finalize()
}

/// Whether a file consists of the tensors that a header lists, by their digests, and of bytes between them with
/// this hash.
#[cfg(unix)]
pub(crate) fn same_bytes(
    mut file: impl Read,
    header: &Header,
    between: blake3::Hash,
) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    for tensor in &header.tensors {
        let gap = tensor.range.start.saturating_sub(at) as u64;
        hasher.update_reader((&mut file).take(gap))?;
        let mut of_tensor = blake3::Hasher::new();
        of_tensor.update_reader((&mut file).take(tensor.range.len() as u64))?;
        if of_tensor.finalize().to_hex().as_str() != tensor.digest {
            return Ok(false);
        }
        at = tensor.range.end;
    }
    hasher.update_reader(file)?;
    Ok(hasher.finalize() == between)
}

/// Every float finite, every scale above zero.
fn finite(tensor: &Tensor, bytes: &[u8]) -> Result<(), FormatError> {
    let (expected, position) = match tensor.dtype {
        Dtype::F32 => {
            let values = numbers::<f32>(bytes).unwrap_or(&[]);
            if matches!(tensor.name.as_str(), "scales" | "section.pieces.scales") {
                let bad = |scale: &f32| !(scale.is_finite() && *scale > 0.0);
                ("a finite number above 0", values.iter().position(bad))
            } else {
                ("a finite number", values.iter().position(|value| !value.is_finite()))
            }
        }
        Dtype::F16 => {
            let values = numbers::<half::f16>(bytes).unwrap_or(&[]);
            ("a finite number", values.iter().position(|value| !value.is_finite()))
        }
        Dtype::I8 | Dtype::U8 | Dtype::U32 | Dtype::U64 => return Ok(()),
    };
    match position {
        Some(position) => Err(FormatError::Number {
            name: tensor.name.clone(),
            expected,
            position: position as u64,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_bytes_are_as_long_as_their_numbers_and_scale() {
        let (name, digest) = ("vectors".to_owned(), String::new());
        let tensor = Tensor { name, dtype: Dtype::I8, shape: vec![2, 2], range: 0..4, digest };
        let long = |scales: [f32; 2]| {
            let bytes = bytemuck::cast_slice(&[127_i8, 0, 1, -1]);
            match bounded(&tensor, bytes, bytemuck::cast_slice(&scales), 2) {
                Err(FormatError::Length { row, .. }) => Some(row),
                other => other.map(|()| None).unwrap(),
            }
        };
        assert_eq!(long([1.0, 1.0]), None);
        assert_eq!(long([7e12, 7e14]), None, "what a scale allows is not what there is");
        assert_eq!(long([8e12, 1.0]), Some(0));
        assert_eq!(long([1.0, 8e14]), Some(1));
        assert_eq!(long([1.0, f32::MAX]), Some(1));
    }

    #[test]
    fn a_byte_belongs_to_the_word_that_it_lies_in() {
        let words = [0, 1, 2, 3, 4].map(|byte| word_at(&[0, 2, 3, 5], byte));
        assert_eq!(words, [0, 0, 1, 2, 2]);
    }
}
