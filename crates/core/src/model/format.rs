//! The bytes of a model file: a strict profile of safetensors, checked before it is believed.
//!
//! Slices in, offsets out: no files, no mapping. This table is the format's only description.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `N`, little endian; `8 + N` is a multiple of 64, `N` at most 1 MiB |
//! | 8..8+N | header: JSON, then spaces |
//! | 8+N.. | tensors, one after another without holes, each starting at a multiple of 64 |
//!
//! Tensors stand in this order, in the header and in the data; those marked `?` may be absent:
//!
//! | tensor | type and shape | what |
//! |---|---|---|
//! | `vectors` | F32, F16 or I8 `[V, D]` | a row a word, most frequent word first |
//! | `scales`? | F32 `[V]` | with I8 only: row × scale is the vector |
//! | `vocab_bytes` | U8 `[B]` | the words' UTF-8, one after another |
//! | `vocab_offsets` | U64 `[V + 1]` | word `i` is bytes `offsets[i]..offsets[i+1]` |
//! | `vocab_index` | U32 `[2^k, 2]` | open addressing: (tag, word id), see `vocabulary.rs` |
//! | `counts`? | U64 `[V]` | occurrences in a corpus of `tokens` tokens, 0 for not seen |
//! | `df`? | U32 `[V]` | documents of `documents` that hold the word |
//! | `idf`? | F32 `[V]` | what the idf methods multiply by |
//! | `section.<name>.<tensor>` | any | what trained methods add, and pieces of words, sorted by name |
//!
//! Between two of them may stand `_pad0`, `_pad1`, … : U8, zeros, shorter than 64 bytes.
//!
//! `__metadata__` holds strings: `format` = `cognate/1`, `dim`, `vocab`, `max_probe`,
//! `normalisation` and `unknown` (JSON), `frequency`, `auto_method`, `licence`, `languages`,
//! `documents`, `tokens`, `idf_unknown`, `created_by`, `source_digest`, `section.<name>` (JSON) for a section's
//! settings, `b3.<tensor>` = BLAKE3 of its bytes for every tensor but padding, and `b3.header` =
//! BLAKE3 of the header with that value replaced by 64 zeros. The first 16 digits of `b3.header`
//! are the model's fingerprint: they change with every byte of every tensor.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::model::error::FormatError;
pub(crate) use crate::model::error::shorten;
use crate::model::header::{RawHeader, read_header};
pub use crate::model::options::Limits;
use crate::model::profile;
pub use crate::model::vectors::{Dtype, Tensor};

/// The value of `format` that this version writes and reads.
pub const FORMAT: &str = "cognate/1";
/// Every tensor starts at a multiple of this, so that rows can be read by the widest registers.
pub const ALIGNMENT: u64 = 64;
/// Bytes of the length that precedes the header.
pub const PREFIX: u64 = 8;
/// The metadata key of the method that `auto` chooses.
pub const AUTO_METHOD: &str = "auto_method";
/// The metadata key of the languages whose texts the vectors are for: their codes in ISO 639-1,
/// with a space between two.
pub const LANGUAGES: &str = "languages";
/// The name that padding tensors begin with.
pub const PADDING: &str = "_pad";

/// An accepted header: everything in it has been checked against the size of the file.
#[derive(Debug, Clone)]
pub struct Header {
    /// Tensors in file order, without padding.
    pub tensors: Vec<Tensor>,
    /// Padding, which must be zero.
    pub padding: Vec<Range<usize>>,
    /// The metadata strings.
    pub metadata: BTreeMap<String, String>,
    /// Words.
    pub words: u64,
    /// Dimensions.
    pub dims: u64,
    /// BLAKE3 of the header.
    pub digest: String,
}

impl Header {
    /// Checks the header in `file`, whose tensors are looked at by `check.rs`.
    pub fn read(file: &[u8], limits: &Limits) -> Result<Self, FormatError> {
        let (json, data_start) = header_bytes(file, limits)?;
        let raw = read_header(json)?;
        let version = raw.metadata.get("format").map(String::as_str).unwrap_or("none");
        if version != FORMAT {
            return Err(FormatError::Version { expected: FORMAT, got: shorten(version) });
        }
        let digest = check_digest(json, &raw.metadata)?;
        let words = number(&raw.metadata, "vocab", 1, limits.words)?;
        let dims = number(&raw.metadata, "dim", 1, limits.dims)?;
        number(&raw.metadata, "max_probe", 0, u64::from(limits.max_probe))?;
        let (tensors, padding) = place(&raw, file.len() as u64, data_start)?;
        let header = Self { tensors, padding, metadata: raw.metadata, words, dims, digest };
        profile::check(&header.tensors, header.words, header.dims)?;
        Ok(header)
    }

    /// The first 16 digits of the header's digest.
    pub fn fingerprint(&self) -> &str {
        self.digest.get(..16).unwrap_or(&self.digest)
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// A number from the metadata that may be absent.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, FormatError> {
        let Some(text) = self.metadata.get(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| FormatError::Metadata {
            key: key.to_owned(),
            expected: "a number".to_owned(),
            got: shorten(text),
        })
    }
}

fn header_bytes<'a>(file: &'a [u8], limits: &Limits) -> Result<(&'a [u8], u64), FormatError> {
    let size = file.len() as u64;
    let Some(prefix) = file.first_chunk::<8>() else {
        return Err(FormatError::HeaderLength { most: 0, got: size });
    };
    let length = u64::from_le_bytes(*prefix);
    let most = limits.header_bytes.min(size.saturating_sub(PREFIX));
    let wrong = FormatError::HeaderLength { most, got: length };
    let data_start = match length.checked_add(PREFIX) {
        Some(end) if length <= most && end.is_multiple_of(ALIGNMENT) => end,
        _ => return Err(wrong),
    };
    match file.get(PREFIX as usize..data_start as usize) {
        Some(json) => Ok((json, data_start)),
        None => Err(wrong),
    }
}

/// Placeholder for the header's own digest while the digest is computed.
pub(crate) const NO_DIGEST: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";
pub(crate) const HEADER_DIGEST: &str = "b3.header";

/// BLAKE3 of a header with its own digest read as zeros. `None` if the header has no digest.
pub(crate) fn digest_of_header(json: &[u8]) -> Option<String> {
    // A quote inside a JSON string is escaped, so these bytes can only be the key and its value.
    let key = format!("\"{HEADER_DIGEST}\":\"");
    let start = json.windows(key.len()).position(|window| window == key.as_bytes())? + key.len();
    let end = start + NO_DIGEST.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update(json.get(..start)?);
    hasher.update(NO_DIGEST.as_bytes());
    hasher.update(json.get(end..)?);
    Some(hasher.finalize().to_hex().to_string())
}

fn check_digest(json: &[u8], metadata: &BTreeMap<String, String>) -> Result<String, FormatError> {
    let stated = metadata.get(HEADER_DIGEST).cloned().unwrap_or_default();
    let got = digest_of_header(json).unwrap_or_default();
    if stated.is_empty() || stated != got {
        return Err(FormatError::Digest {
            name: "header".to_owned(),
            expected: shorten(&stated),
            got,
        });
    }
    Ok(got)
}

fn number(
    metadata: &BTreeMap<String, String>,
    key: &str,
    least: u64,
    most: u64,
) -> Result<u64, FormatError> {
    let text = metadata.get(key).map(String::as_str).unwrap_or("nothing");
    match text.parse::<u64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(FormatError::Metadata {
            key: key.to_owned(),
            expected: format!("a number from {least} to {most}"),
            got: shorten(text),
        }),
    }
}

type Placed = (Vec<Tensor>, Vec<Range<usize>>);

/// Checks that tensors follow each other without holes to the last byte of the file, each as long
/// as its shape says and starting where it must.
fn place(raw: &RawHeader, size: u64, data_start: u64) -> Result<Placed, FormatError> {
    let (mut tensors, mut padding) = (Vec::new(), Vec::new());
    let mut end = 0;
    for (name, entry) in &raw.tensors {
        let [from, to] = entry.data_offsets;
        let extent = |expected: String, got: String| FormatError::Extent {
            name: shorten(name),
            expected,
            got,
        };
        if from != end || to < from {
            return Err(extent(format!("to start at {end}"), format!("{from}..{to}")));
        }
        let bytes = entry.shape.iter().try_fold(entry.dtype.bytes(), |n, &d| n.checked_mul(d));
        if bytes != Some(to - from) {
            let expected = format!("as many as {} {:?} needs", entry.dtype.name(), entry.shape);
            return Err(extent(expected, (to - from).to_string()));
        }
        let (start, stop) = match (data_start.checked_add(from), data_start.checked_add(to)) {
            (Some(start), Some(stop)) if stop <= size => (start as usize, stop as usize),
            _ => {
                return Err(extent(format!("within a file of {size}"), format!("{from}..{to}")));
            }
        };
        if *name == format!("{PADDING}{}", padding.len()) {
            if entry.dtype != Dtype::U8 || to - from >= ALIGNMENT {
                return Err(extent(
                    "fewer than 64 bytes of U8".to_owned(),
                    format!("{from}..{to}"),
                ));
            }
            padding.push(start..stop);
        } else {
            if !from.is_multiple_of(ALIGNMENT) {
                return Err(extent("to start at a multiple of 64".to_owned(), from.to_string()));
            }
            let digest = raw.metadata.get(&format!("b3.{name}")).cloned().ok_or_else(|| {
                FormatError::Metadata {
                    key: format!("b3.{}", shorten(name)),
                    expected: "a digest".to_owned(),
                    got: "nothing".to_owned(),
                }
            })?;
            tensors.push(Tensor {
                name: name.clone(),
                dtype: entry.dtype,
                shape: entry.shape.clone(),
                range: start..stop,
                digest,
            });
        }
        end = to;
    }
    if data_start.checked_add(end) != Some(size) {
        return Err(FormatError::Extent {
            name: "last tensor".to_owned(),
            expected: format!("to end with the file at {}", size.saturating_sub(data_start)),
            got: end.to_string(),
        });
    }
    Ok((tensors, padding))
}
