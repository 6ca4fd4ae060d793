//! A foreign safetensors file with one matrix of floats, whose words are in a second file.
//!
//! Only the header's entry for the wanted tensor is kept. The format's own library keeps a map of
//! all entries, up to 35 bytes of memory for a byte of header, which a file with a huge header
//! could exploit. Bytes between the tensors are not checked. The stricter profile of cognate's own
//! model files is not known here.

use std::fmt;

use safetensors::Dtype;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::input::{Input, shown};
use super::matrix::{MatrixReader, Number, Shape};
use super::{Info, Mark, Opened, Place, Result, Source};

/// Maximum bytes of a header, as in the format's own library.
const HEADER_BYTES: u64 = 100_000_000;

const NAMES: [&str; 2] = ["vectors", "embeddings"];

const LISTED: usize = 8;

pub(crate) const INFO: Info = Info { name: "safetensors", mark: Mark::Bytes(begins_with_header) };

fn begins_with_header(first: &[u8], size: Option<u64>) -> bool {
    let Some((length, [b'{', ..])) = first.split_first_chunk() else { return false };
    size.is_some_and(|size| u64::from_le_bytes(*length) < size)
}

pub(super) fn open(source: &Source) -> Opened {
    let mut input = Input::open(&source.path)?;
    let shape = find_matrix(&mut input, source.tensor.as_deref())?;
    Ok(Box::new(MatrixReader::new(input, source.words()?, shape, source.budget)?))
}

/// Reads the header and checks it against the file's size; `input` then stands at the first number
/// of the matrix called `tensor`, or if no name is given of `vectors`, of `embeddings`, or of the
/// only matrix in the file.
pub fn find_matrix(input: &mut Input, tensor: Option<&str>) -> Result<Shape> {
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

fn read_header(input: &mut Input, search: Search<'_>) -> Result<Header> {
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

#[derive(Default)]
struct Header {
    /// The named tensor, or the matrix with the most likely name.
    best: Option<(String, Entry)>,
    /// Number of matrices without a likely name.
    others: u64,
    names: Vec<String>,
    tensors: u64,
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

fn likelihood(name: &str) -> usize {
    NAMES.into_iter().position(|usual| usual == name).unwrap_or(NAMES.len())
}

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

/// The lengths of a tensor's axes; kept only for a matrix.
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

/// Searches a header without keeping more than [`Header`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::Budget;
    use crate::readers::matrix::{MatrixReader, Number, Shape};
    use crate::readers::tests::{all, bytes, row, says};

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn tensors(list: &[(&str, &str, &str, usize)]) -> Vec<u8> {
        let mut end = 0;
        let entries: Vec<String> = list
            .iter()
            .map(|(name, kind, shape, bytes)| {
                let begin = end;
                end += bytes;
                format!(
                    r#""{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":[{begin},{end}]}}"#
                )
            })
            .collect();
        let header = format!("{{{}}}", entries.join(","));
        file(&header, &(0..end).map(|at| at as u8).collect::<Vec<u8>>())
    }

    fn refusal(file: Vec<u8>, tensor: Option<&str>) -> String {
        find_matrix(&mut bytes(file), tensor).unwrap_err().to_string()
    }

    #[test]
    fn the_matrix_is_found_by_name_by_custom_or_by_being_the_only_one() {
        let list = [
            ("bias", "F32", "[2]", 8),
            ("embeddings", "F16", "[2,3]", 12),
            ("other", "BF16", "[4,1]", 8),
            ("vectors", "F32", "[1,2]", 8),
        ];
        let find = |list: &[_], tensor| {
            let mut input = bytes(tensors(list));
            let shape = find_matrix(&mut input, tensor).unwrap();
            (shape, input.read_exact(1, "a byte").unwrap()[0])
        };
        let shape = |number, rows, dims| Shape { number, rows, dims };
        assert_eq!(find(&list, None), (shape(Number::F32, 1, 2), 28));
        assert_eq!(find(&list[..3], None), (shape(Number::F16, 2, 3), 8));
        assert_eq!(find(&list[2..3], None), (shape(Number::Bf16, 4, 1), 0));
        assert_eq!(find(&list, Some("other")), (shape(Number::Bf16, 4, 1), 20));
    }

    #[test]
    fn rows_are_read_with_their_words() {
        let header =
            r#"{"__metadata__":{"of":"x"},"w":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}"#;
        let halves = [0x3c00_u16, 0xc000, 0x3800, 0x7e00].map(u16::to_le_bytes).concat();
        let mut input = bytes(file(header, &halves));
        let shape = find_matrix(&mut input, None).unwrap();
        let reader = MatrixReader::new(input, bytes("the\nof\n"), shape, Budget::DEFAULT).unwrap();
        let rows = all(Ok(Box::new(reader))).unwrap();
        assert_eq!(rows[0], row("the", &[1.0, -2.0]));
        assert!(rows[1].1[0] == 0.5 && rows[1].1[1].is_nan());
    }

    #[test]
    fn a_file_without_one_clear_matrix_says_what_it_holds() {
        let one = ("bias", "F32", "[2]", 8);
        says(&refusal(tensors(&[one]), None), &["no tensor is a matrix", "`bias`"]);
        says(&refusal(tensors(&[one]), Some("bias")), &["`bias` has 1 dimensions"]);
        says(&refusal(tensors(&[one]), Some("else")), &["no tensor is called `else`", "`bias`"]);
        let two = [("a", "F32", "[1,2]", 8), ("b", "F32", "[1,2]", 8)];
        says(&refusal(tensors(&two), None), &["several", "`a`, `b`"]);
        for (kind, bytes) in [("I8", 2), ("F64", 16), ("U16", 4)] {
            let file = tensors(&[("vectors", kind, "[1,2]", bytes)]);
            says(&refusal(file, None), &["`vectors`", kind, "F32, F16 and BF16"]);
        }
        let twice = [("vectors", "F32", "[1,2]", 8), ("vectors", "F32", "[1,2]", 8)];
        says(&refusal(tensors(&twice), None), &["byte 8", "twice"]);
        let many: Vec<String> = (0..20).map(|index| format!("bias{index}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), "F32", "[1]", 4)).collect();
        says(&refusal(tensors(&many), None), &["`bias7`, and 12 more"]);
    }

    #[test]
    fn a_header_is_measured_against_the_file_before_it_is_read() {
        for length in [u64::MAX, 1 << 60, 100_000_001, 50_000_000, 3] {
            let file = [length.to_le_bytes().as_slice(), b"{}"].concat();
            says(&refusal(file, None), &["byte 0", "a header of", "2 follow"]);
        }
        says(&refusal(vec![2, 0, 0], None), &["expected 8 bytes of the header's length, found 3"]);
        says(&refusal(file("{nonsense}", b""), None), &["byte 8", "the header"]);
        for shape in ["[1000000000000000000,1000000000]", "[1,3]", "[-1,2]"] {
            says(
                &refusal(tensors(&[("vectors", "F32", shape, 8)]), None),
                &["byte 8", "the header"],
            );
        }
        let mut long = tensors(&[("vectors", "F32", "[1,2]", 8)]);
        long.push(0);
        says(&refusal(long.clone(), None), &["8 bytes of tensors, 9 follow"]);
        long.truncate(long.len() - 2);
        says(&refusal(long, None), &["8 bytes of tensors, 7 follow"]);
    }
}
