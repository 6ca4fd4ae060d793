//! A foreign safetensors file with one matrix of floats, whose words stand in a second file.
//!
//! Of the header only the wanted tensor is kept. The format's own library keeps a map of all of
//! them, at up to 35 bytes of memory a byte of header, which a file of nothing but header could
//! turn against us. What lies between the tensors is not looked at. Our own model files have a
//! stricter profile, which is not known here.

use std::fmt;

use safetensors::Dtype;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::format::Source;
use super::input::{Input, shown};
use super::matrix::{MatrixReader, Number, Shape};
use super::{Info, Mark, Opened, Place, ReadError};

/// Longest header read, the same as the format's own bound.
const HEADER_BYTES: u64 = 100_000_000;

/// Names that a matrix of word vectors has, most likely first.
const NAMES: [&str; 2] = ["vectors", "embeddings"];

/// Most names listed in a message.
const LISTED: usize = 8;

/// How it is called and recognised: its header is JSON, and fits into the file.
pub(crate) const INFO: Info = Info { name: "safetensors", mark: Mark::Bytes(begins_with_header) };

fn begins_with_header(first: &[u8], size: Option<u64>) -> bool {
    let Some((length, [b'{', ..])) = first.split_first_chunk() else { return false };
    size.is_some_and(|size| u64::from_le_bytes(*length) < size)
}

/// Opens a matrix and its words.
pub(super) fn open(source: &Source) -> Opened {
    let mut input = Input::open(&source.path)?;
    let shape = find_matrix(&mut input, source.tensor.as_deref())?;
    Ok(Box::new(MatrixReader::new(input, source.words()?, shape, source.budget)?))
}

/// Reads the header, checks it against the file's size, and leaves `input` at the first number of
/// the matrix `tensor`; if none is named, of the one called `vectors`, `embeddings`, or else of the
/// only one in the file.
pub fn find_matrix(input: &mut Input, tensor: Option<&str>) -> Result<Shape, ReadError> {
    if let Some(packing) = input.packing() {
        return Err(input.unsupported(format!("packed with {packing}; unpack it first")));
    }
    let header = read_header(input, Search { wanted: tensor })?;
    let (promised, left) = (header.end, input.bytes_left().unwrap_or(0));
    if promised != left {
        let problem = format!("the header describes {promised} bytes of tensors, {left} follow");
        return Err(input.malformed(Place::Byte(input.position()), problem));
    }
    let (name, entry) = header.chosen(tensor).map_err(|problem| input.unsupported(problem))?;
    let shape = entry.shape(&name).map_err(|problem| input.unsupported(problem))?;
    let (begin, end) = entry.data_offsets;
    if end.checked_sub(begin) != shape.bytes() {
        let Shape { rows, dims, number } = shape;
        let problem = format!(
            "in the header: the tensor {} has {rows} rows of {dims} numbers ({number:?}), but \
             reaches from byte {begin} to {end}",
            shown(name.as_bytes())
        );
        return Err(input.malformed(Place::Byte(8), problem));
    }
    input.skip(begin)?;
    Ok(shape)
}

/// The header, whose length must agree with the file's size before it is read.
fn read_header(input: &mut Input, search: Search<'_>) -> Result<Header, ReadError> {
    let length = match input.read_exact(8, "the header's length")?.as_chunks().0 {
        [bytes] => u64::from_le_bytes(*bytes),
        _ => 0,
    };
    let left = input.bytes_left().unwrap_or(0);
    let bytes = match usize::try_from(length) {
        Ok(bytes) if length <= left.min(HEADER_BYTES) => bytes,
        _ => {
            let problem = format!(
                "a header of {length} bytes; at most {HEADER_BYTES} are read, and {left} follow"
            );
            return Err(input.malformed(Place::Byte(0), problem));
        }
    };
    let mut json = serde_json::Deserializer::from_slice(input.read_exact(bytes, "the header")?);
    let parsed = search.deserialize(&mut json).and_then(|header| json.end().map(|()| header));
    parsed.map_err(|error| input.malformed(Place::Byte(8), format!("in the header: {error}")))
}

/// What was looked for and found in a header.
#[derive(Default)]
struct Header {
    /// The named tensor, or the matrix with the likeliest name.
    best: Option<(String, Entry)>,
    /// Matrices without a likely name.
    others: u64,
    /// The first names, for messages.
    names: Vec<String>,
    tensors: u64,
    /// Where the last tensor ends.
    end: u64,
}

impl Header {
    fn chosen(self, wanted: Option<&str>) -> Result<(String, Entry), String> {
        let listing = self.listing();
        match (self.best, wanted) {
            (Some((name, _)), None) if likelihood(&name) == NAMES.len() && self.others > 1 => {
                Err(format!("several tensors are matrices, name one; {listing}"))
            }
            (Some(best), _) => Ok(best),
            (None, Some(wanted)) => {
                Err(format!("no tensor is called {}; {listing}", shown(wanted.as_bytes())))
            }
            (None, None) => Err(format!("no tensor is a matrix; {listing}")),
        }
    }

    fn listing(&self) -> String {
        let more = match self.tensors.saturating_sub(LISTED as u64) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("the file holds: {}{more}", self.names.join(", "))
    }
}

/// How likely a matrix of that name is the wanted one; less is likelier.
fn likelihood(name: &str) -> usize {
    NAMES.into_iter().position(|usual| usual == name).unwrap_or(NAMES.len())
}

/// What the header says of one tensor.
#[derive(Deserialize)]
struct Entry {
    dtype: Dtype,
    shape: Axes,
    data_offsets: (u64, u64),
}

impl Entry {
    fn shape(&self, name: &str) -> Result<Shape, String> {
        let name = shown(name.as_bytes());
        let Axes { count: 2, lengths: [rows, dims] } = self.shape else {
            let count = self.shape.count;
            return Err(format!("the tensor {name} has {count} dimensions, a matrix has 2"));
        };
        let number = match self.dtype {
            Dtype::F16 => Number::F16,
            Dtype::BF16 => Number::Bf16,
            Dtype::F32 => Number::F32,
            other => {
                return Err(format!(
                    "the tensor {name} has numbers of the kind {other:?}; only F32, F16 and BF16 \
                     are read"
                ));
            }
        };
        Ok(Shape { number, rows, dims })
    }
}

/// The lengths of a tensor's axes, of which only a matrix's are kept.
#[derive(Default)]
struct Axes {
    count: usize,
    lengths: [u64; 2],
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lengths;
        impl<'de> Visitor<'de> for Lengths {
            type Value = Axes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the lengths of a tensor's axes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Axes, A::Error> {
                let mut axes = Axes::default();
                while let Some(length) = list.next_element()? {
                    if let Some(slot) = axes.lengths.get_mut(axes.count) {
                        *slot = length;
                    }
                    axes.count = axes.count.saturating_add(1);
                }
                Ok(axes)
            }
        }
        deserializer.deserialize_seq(Lengths)
    }
}

/// Goes through a header and keeps no more than [`Header`].
#[derive(Clone, Copy)]
struct Search<'s> {
    wanted: Option<&'s str>,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = Header;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Header, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut header = Header::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry: Entry = map.next_value()?;
            header.end = header.end.max(entry.data_offsets.1);
            header.tensors = header.tensors.saturating_add(1);
            if header.names.len() < LISTED {
                header.names.push(shown(name.as_bytes()));
            }
            let candidate = match self.wanted {
                Some(wanted) => name == wanted,
                None => entry.shape.count == 2,
            };
            if !candidate {
                continue;
            }
            header.others += u64::from(likelihood(&name) == NAMES.len());
            match &header.best {
                Some((best, _)) if *best == name => {
                    return Err(A::Error::custom("the same tensor twice"));
                }
                Some((best, _)) if likelihood(best) <= likelihood(&name) => {}
                _ => header.best = Some((name, entry)),
            }
        }
        Ok(header)
    }
}
