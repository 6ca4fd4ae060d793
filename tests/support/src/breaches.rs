//! Model files that break one rule each, and the error that each must be refused by.

use std::collections::BTreeMap;

use cognate::model::FormatError;
use cognate::model::format::Dtype;

pub struct Crafted {
    metadata: BTreeMap<String, String>,
    entries: Vec<(String, String, Vec<u64>, u64, u64)>,
    data: Vec<u8>,
}

impl Crafted {
    /// The tiny model, sound.
    pub fn tiny() -> Self {
        let bytes = crate::tiny(Dtype::I8);
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let mut crafted = Self {
            metadata: BTreeMap::new(),
            entries: Vec::new(),
            data: bytes[8 + length..].to_vec(),
        };
        for (name, value) in json.as_object().unwrap() {
            if name == "__metadata__" {
                crafted.metadata = serde_json::from_value(value.clone()).unwrap();
                continue;
            }
            let offsets = &value["data_offsets"];
            crafted.entries.push((
                name.clone(),
                value["dtype"].as_str().unwrap().to_owned(),
                serde_json::from_value(value["shape"].clone()).unwrap(),
                offsets[0].as_u64().unwrap(),
                offsets[1].as_u64().unwrap(),
            ));
        }
        crafted.entries.sort_by_key(|entry| entry.3);
        crafted
    }

    pub fn entry(&mut self, name: &str) -> &mut (String, String, Vec<u64>, u64, u64) {
        self.entries.iter_mut().find(|entry| entry.0 == name).unwrap()
    }

    pub fn data_of(&mut self, name: &str) -> &mut [u8] {
        let (_, _, _, from, to) = *self.entry(name);
        &mut self.data[from as usize..to as usize]
    }

    /// The file with true digests, unless `seal` is off.
    pub fn bytes(mut self, seal: bool) -> Vec<u8> {
        let zeros = "0".repeat(64);
        if seal {
            for (name, _, _, from, to) in &self.entries {
                let range =
                    (*from as usize).min(self.data.len())..(*to as usize).min(self.data.len());
                let bytes = self.data.get(range).unwrap_or(&[]);
                if !name.starts_with("_pad") {
                    let digest = blake3::hash(bytes).to_hex().to_string();
                    self.metadata.insert(format!("b3.{name}"), digest);
                }
            }
        }
        self.metadata.insert("b3.header".to_owned(), zeros.clone());
        let mut json = format!("{{\"__metadata__\":{}", serde_json::json!(self.metadata));
        for (name, dtype, shape, from, to) in &self.entries {
            json += &format!(
                ",{}:{{\"dtype\":\"{dtype}\",\"shape\":{},\"data_offsets\":[{from},{to}]}}",
                serde_json::json!(name),
                serde_json::json!(shape),
            );
        }
        json.push('}');
        raw(&json, &self.data)
    }
}

/// Length, padded header with its own digest, data.
pub fn raw(json: &str, data: &[u8]) -> Vec<u8> {
    let mut header = json.as_bytes().to_vec();
    header.resize((header.len() + 8).next_multiple_of(64) - 8, b' ');
    let digest = blake3::hash(&header).to_hex();
    let key = b"\"b3.header\":\"";
    if let Some(at) = header.windows(key.len()).position(|window| window == key) {
        header[at + key.len()..at + key.len() + 64].copy_from_slice(digest.as_bytes());
    }
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(data);
    file
}

/// One broken rule: what is done to a sound file, and which variant must come back.
pub type Breach = (&'static str, fn(&mut Crafted), fn(&FormatError) -> bool);

/// Every rule, broken alone.
pub const BREACHES: &[Breach] = &[
    (
        "another version",
        |c| set(c, "format", "cognate/9"),
        |e| matches!(e, FormatError::Version { .. }),
    ),
    (
        "no format",
        |c| drop(c.metadata.remove("format")),
        |e| matches!(e, FormatError::Version { .. }),
    ),
    ("no dim", |c| drop(c.metadata.remove("dim")), |e| is_metadata(e, "dim")),
    ("dim 0", |c| set(c, "dim", "0"), |e| is_metadata(e, "dim")),
    ("dim 2^31", |c| set(c, "dim", "2147483648"), |e| is_metadata(e, "dim")),
    ("dim other than the vectors'", |c| set(c, "dim", "21"), |e| is_shape(e, "vectors")),
    ("vocab 0", |c| set(c, "vocab", "0"), |e| is_metadata(e, "vocab")),
    ("vocab u64::MAX", |c| set(c, "vocab", "18446744073709551615"), |e| is_metadata(e, "vocab")),
    ("vocab -1", |c| set(c, "vocab", "-1"), |e| is_metadata(e, "vocab")),
    ("vocab other than the tables'", |c| set(c, "vocab", "13"), |e| is_shape(e, "vectors")),
    ("max_probe 65", |c| set(c, "max_probe", "65"), |e| is_metadata(e, "max_probe")),
    ("no max_probe", |c| drop(c.metadata.remove("max_probe")), |e| is_metadata(e, "max_probe")),
    (
        "no normalisation",
        |c| drop(c.metadata.remove("normalisation")),
        |e| is_metadata(e, "normalisation"),
    ),
    (
        "odd normalisation",
        |c| set(c, "normalisation", "{\"x\":1}"),
        |e| is_metadata(e, "normalisation"),
    ),
    (
        "odd unknown policy",
        |c| set(c, "unknown", "{\"policy\":\"guess\"}"),
        |e| is_metadata(e, "unknown"),
    ),
    (
        "a hash length that is infinite",
        |c| {
            let rules = r#"{"policy":"fallback","suffixes":[],"min_stem":3,"parts":true,"#;
            set(c, "unknown", &format!("{rules}\"hash_norm\":1e39}}"));
        },
        |e| is_metadata(e, "unknown"),
    ),
    (
        "a hash length that overflows",
        |c| {
            let rules = r#"{"policy":"fallback","suffixes":[],"min_stem":3,"parts":true,"#;
            set(c, "unknown", &format!("{rules}\"hash_norm\":1e20}}"));
        },
        |e| is_metadata(e, "unknown"),
    ),
    ("odd frequency", |c| set(c, "frequency", "often"), |e| is_metadata(e, "frequency")),
    ("tokens no number", |c| set(c, "tokens", "many"), |e| is_metadata(e, "tokens")),
    ("subword without a section", |c| set(c, "unknown", "{\"policy\":\"subword\"}"), is_missing),
    ("no vectors", |c| rename(c, "vectors", "vektors"), is_missing),
    ("no scales", |c| rename(c, "scales", "scale"), is_missing),
    ("no offsets", |c| rename(c, "vocab_offsets", "offsets"), is_missing),
    ("an unknown tensor", |c| rename(c, "idf", "extra"), is_unexpected),
    ("a section without a tensor name", |c| rename(c, "idf", "section.x"), is_unexpected),
    ("sections out of order", |c| rename(c, "idf", "section.zzz.a"), is_unexpected),
    (
        "a foreign type",
        |c| c.entry("vectors").1 = "F64".to_owned(),
        |e| matches!(e, FormatError::HeaderJson { .. }),
    ),
    ("vectors of bytes", |c| c.entry("vectors").1 = "U8".to_owned(), is_missing_or_shape),
    (
        "offsets of floats",
        |c| c.entry("vocab_index").1 = "F32".to_owned(),
        |e| is_shape(e, "vocab_index"),
    ),
    ("a shape that overflows", |c| c.entry("vectors").2 = vec![u64::MAX, 2], is_extent),
    ("a shape of 2^63 rows", |c| c.entry("vectors").2 = vec![1 << 63, 20], is_extent),
    ("a shape that is too large", |c| c.entry("counts").2 = vec![13], is_extent),
    ("three dimensions", |c| c.entry("vectors").2 = vec![12, 4, 5], |e| is_shape(e, "vectors")),
    (
        "offsets the wrong way",
        |c| {
            let e = c.entry("counts");
            std::mem::swap(&mut e.3, &mut e.4);
        },
        is_extent,
    ),
    (
        "offsets beyond the file",
        |c| {
            let e = c.entry("vectors");
            e.4 = u64::MAX;
        },
        is_extent,
    ),
    (
        "an end before the beginning",
        |c| {
            let e = c.entry("counts");
            e.4 = e.3 - 8;
        },
        is_extent,
    ),
    ("a hole before tensors that are whole", open_a_hole, is_extent),
    ("an overlap", |c| c.entry("vocab_bytes").3 -= 64, is_extent),
    ("a hole", |c| c.entry("vocab_bytes").3 += 64, is_extent),
    ("bytes after the last tensor", |c| c.data.extend([0; 64]), is_extent),
    (
        "a last tensor cut short",
        |c| {
            c.data.pop();
        },
        is_extent,
    ),
    ("no data at all", |c| c.data.clear(), is_extent),
    ("padding that is not zero", |c| c.data_of("_pad0")[0] = 1, is_extent),
    ("padding of another type", |c| c.entry("_pad0").1 = "I8".to_owned(), is_extent),
    ("padding under another number", |c| rename(c, "_pad0", "_pad7"), is_unexpected_or_extent),
    (
        "an index that is no power of two",
        |c| c.entry("vocab_index").2 = vec![64, 1],
        |e| is_shape(e, "vocab_index"),
    ),
    ("an index that names no word", |c| fill_index(c, 12), is_vocabulary),
    ("an index that is full", |c| fill_index(c, 3), is_vocabulary),
    ("first offset not 0", |c| c.data_of("vocab_offsets")[0] = 1, is_vocabulary),
    ("offsets that fall", |c| c.data_of("vocab_offsets")[8] = 200, is_vocabulary),
    ("last offset beyond the bytes", |c| c.data_of("vocab_offsets")[96] += 1, is_vocabulary),
    ("words that are not UTF-8", |c| c.data_of("vocab_bytes")[0] = 0xff, is_vocabulary),
    ("a word that begins inside a character", inside_a_character, is_vocabulary),
    (
        "a word that is not where it is looked for",
        |c| c.data_of("vocab_bytes")[0] = b'x',
        is_vocabulary,
    ),
    ("a scale of 0", |c| c.data_of("scales")[..4].fill(0), is_number),
    ("a scale below 0", |c| c.data_of("scales")[3] |= 0x80, is_number),
    (
        "a scale that makes a vector too long",
        |c| c.data_of("scales")[4..8].copy_from_slice(&1e16_f32.to_le_bytes()),
        |e| matches!(e, FormatError::Length { name, row: 1 } if name == "vectors"),
    ),
    (
        "an idf of NaN",
        |c| c.data_of("idf")[..4].copy_from_slice(&f32::NAN.to_le_bytes()),
        is_number,
    ),
    (
        "an infinite weight",
        |c| c.data_of("section.example.weights")[..4].copy_from_slice(&f32::INFINITY.to_le_bytes()),
        is_number,
    ),
];

fn set(crafted: &mut Crafted, key: &str, value: &str) {
    crafted.metadata.insert(key.to_owned(), value.to_owned());
}

fn rename(crafted: &mut Crafted, from: &str, to: &str) {
    crafted.entry(from).0 = to.to_owned();
}

/// Lets every slot of the index name `word`.
fn fill_index(crafted: &mut Crafted, word: u32) {
    for slot in crafted.data_of("vocab_index").chunks_mut(8) {
        slot[4..].copy_from_slice(&word.to_le_bytes());
    }
}

/// Moves every tensor but the first by 64 bytes.
fn open_a_hole(crafted: &mut Crafted) {
    let at = crafted.entries[1].3;
    for entry in crafted.entries.iter_mut().skip(1) {
        (entry.3, entry.4) = (entry.3 + 64, entry.4 + 64);
    }
    crafted.data.splice(at as usize..at as usize, [0; 64]);
}

fn inside_a_character(crafted: &mut Crafted) {
    // `über` is word 8: its first byte goes to the word before it.
    let offset = &mut crafted.data_of("vocab_offsets")[64];
    *offset += 1;
}

fn is_metadata(error: &FormatError, wanted: &str) -> bool {
    matches!(error, FormatError::Metadata { key, .. } if key == wanted)
}

fn is_shape(error: &FormatError, wanted: &str) -> bool {
    matches!(error, FormatError::Shape { name, .. } if name == wanted)
}

fn is_missing(error: &FormatError) -> bool {
    matches!(error, FormatError::MissingTensor { .. })
}

fn is_missing_or_shape(error: &FormatError) -> bool {
    matches!(error, FormatError::MissingTensor { .. } | FormatError::Shape { .. })
}

fn is_unexpected(error: &FormatError) -> bool {
    matches!(error, FormatError::UnexpectedTensor { .. })
}

fn is_unexpected_or_extent(error: &FormatError) -> bool {
    // Under another name it is a tensor in its own right: misaligned, or one too many.
    is_unexpected(error) || is_extent(error) || matches!(error, FormatError::MissingTensor { .. })
}

fn is_extent(error: &FormatError) -> bool {
    matches!(error, FormatError::Extent { .. })
}

fn is_vocabulary(error: &FormatError) -> bool {
    matches!(error, FormatError::Vocabulary { .. })
}

fn is_number(error: &FormatError) -> bool {
    matches!(error, FormatError::Number { .. })
}

/// A file for each breach, for who wants to see them refused elsewhere.
pub fn files() -> impl Iterator<Item = Vec<u8>> {
    BREACHES.iter().map(|(_, breach, _)| {
        let mut crafted = Crafted::tiny();
        breach(&mut crafted);
        crafted.bytes(true)
    })
}
