//! model2vec folders: tiny ones built here, in every layout that is read, and broken ones.

use cognate_pack::readers::model2vec::{Model2VecReader, Settings};
use cognate_pack::readers::positioned::Source;
use cognate_pack::readers::{Budget, ReadError, Subword, VectorReader};
use proptest::prelude::*;

const CONFIG: &str = r#"{"model_type": "model2vec", "normalize": false}"#;

fn tokenizer(model: &str) -> String {
    let special = [(0, "[PAD]"), (1, "[UNK]")].map(|(id, content)| {
        format!(
            r#"{{"id": {id}, "content": "{content}", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true}}"#
        )
    });
    format!(
        r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{}],
            "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
            "model": {model}}}"#,
        special.join(", ")
    )
}

fn wordpiece() -> String {
    tokenizer(
        r###"{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "cat": 2, "##s": 3, "größe": 4}}"###,
    )
}

fn unigram() -> String {
    let marked = r#""pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
                    "prepend_scheme": "always", "split": true}"#;
    let tokenizer = tokenizer(
        r#"{"type": "Unigram", "unk_id": 1, "byte_fallback": false,
            "vocab": [["[PAD]", -9.0], ["[UNK]", -9.0], ["▁cat", -2.0], ["s", -3.0], ["▁", -4.0]]}"#,
    );
    tokenizer.replace(r#""pre_tokenizer": null"#, marked)
}

/// A safetensors file: name, type, shape as JSON, bytes.
fn tensors(parts: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut data) = (Vec::new(), Vec::<u8>::new());
    for (name, dtype, shape, bytes) in parts {
        let begin = data.len();
        data.extend(bytes);
        header.push(format!(
            r#""{name}": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": [{begin}, {}]}}"#,
            data.len()
        ));
    }
    let header = format!("{{{}}}", header.join(", "));
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Five rows of two.
const ROWS: [f32; 10] = [9.0, 9.0, 8.0, 8.0, 0.5, -1.0, 0.25, 2.0, -3.0, 1.5];

fn plain() -> Vec<u8> {
    tensors(&[("embeddings", "F32", "[5, 2]", f32s(&ROWS))])
}

/// Two rows for five entries.
fn mapped(mapping: &[i32]) -> Vec<u8> {
    let weights = [1.0f64, 1.0, 2.0, 0.5, -1.0];
    tensors(&[
        ("weights", "F64", "[5]", weights.iter().flat_map(|value| value.to_le_bytes()).collect()),
        ("embeddings", "F32", "[2, 2]", f32s(&[1.0, 2.0, 3.0, 4.0])),
        ("mapping", "I32", "[5]", mapping.iter().flat_map(|row| row.to_le_bytes()).collect()),
    ])
}

fn open(tensors: Vec<u8>, tokenizer: &str, config: &str) -> Result<Model2VecReader, ReadError> {
    let [tokenizer, config] = [("tokenizer.json", tokenizer), ("config.json", config)]
        .map(|(name, text)| Source::memory(name, text.as_bytes().to_vec()));
    let tensors = Source::memory("model.safetensors", tensors);
    Model2VecReader::over(tensors, &tokenizer, Some(&config), Budget::DEFAULT)
}

type Rows = Vec<(String, Vec<f32>)>;

fn read_all(mut reader: Model2VecReader) -> Result<Rows, ReadError> {
    let (mut word, mut row, mut rows) = (Vec::new(), vec![0.0; reader.dims()], Vec::new());
    while reader.next_row(&mut word, &mut row)? {
        rows.push((String::from_utf8(word.clone()).expect("JSON strings are UTF-8"), row.clone()));
    }
    assert_eq!(reader.rows_hint(), Some(rows.len() as u64));
    Ok(rows)
}

fn rows_of(tensors: Vec<u8>) -> Vec<Vec<f32>> {
    let rows = read_all(open(tensors, &wordpiece(), CONFIG).unwrap()).unwrap();
    rows.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn wordpiece_entries_come_in_order_of_their_ids_without_the_special_ones() {
    let reader = open(plain(), &wordpiece(), CONFIG).unwrap();
    assert_eq!(reader.subword(), Some(Subword::WordPiece { prefix: "##".into() }));
    assert_eq!(reader.settings(), Settings { normalize: false, max_length: Some(512) });
    let expected = [("cat", [0.5, -1.0]), ("##s", [0.25, 2.0]), ("größe", [-3.0, 1.5])];
    assert_eq!(read_all(reader).unwrap(), expected.map(|(word, row)| (word.into(), row.to_vec())));
    // The defaults of model2vec 0.10 for Python, and texts of any length where it says so.
    let settings = |config: &str| open(plain(), &wordpiece(), config).unwrap().settings();
    assert_eq!(settings("{}"), Settings { normalize: false, max_length: Some(512) });
    let long = r#"{"normalize": true, "max_length": null}"#;
    assert_eq!(settings(long), Settings { normalize: true, max_length: None });
}

#[test]
fn unigram_entries_are_words_where_they_stand_for_one_and_pieces_elsewhere() {
    let reader = open(plain(), &unigram(), CONFIG).unwrap();
    // A character that is no entry costs 10 more than the least score, that of the special tokens.
    assert_eq!(reader.subword(), Some(Subword::Unigram { unknown_score: -19.0, longest: 6 }));
    let expected = [("cat", [0.5, -1.0]), ("##s", [0.25, 2.0]), ("▁", [-3.0, 1.5])];
    assert_eq!(read_all(reader).unwrap(), expected.map(|(word, row)| (word.into(), row.to_vec())));
}

#[test]
fn numbers_of_every_width_are_read() {
    let halves: Vec<u8> =
        ROWS.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect();
    let expected = [[0.5, -1.0], [0.25, 2.0], [-3.0, 1.5]];
    assert_eq!(rows_of(tensors(&[("embeddings", "F16", "[5, 2]", halves)])), expected);
    let small = [9, 9, 8, 8, 127, -128, 0, 1, -1, 2].map(|value: i8| value.cast_unsigned());
    let small = tensors(&[("embeddings", "I8", "[5, 2]", small.to_vec())]);
    assert_eq!(rows_of(small), [[127.0, -128.0], [0.0, 1.0], [-1.0, 2.0]]);
}

#[test]
fn the_row_of_an_entry_is_its_weight_times_the_row_it_is_mapped_to() {
    let expected = [[6.0, 8.0], [0.5, 1.0], [-3.0, -4.0]];
    assert_eq!(rows_of(mapped(&[0, 0, 1, 0, 1])), expected);
    let weights = f32s(&[1.0, 1.0, 2.0, 4.0, -1.0]);
    let weighted = tensors(&[
        ("embeddings", "F32", "[5, 2]", f32s(&ROWS)),
        ("weights", "F32", "[5]", weights),
    ]);
    assert_eq!(rows_of(weighted), [[1.0, -2.0], [1.0, 8.0], [3.0, -1.5]]);
    let wide: Vec<u8> = [0i64, 0, 1, 0, 1].iter().flat_map(|row| row.to_le_bytes()).collect();
    let unweighted = tensors(&[
        ("embeddings", "F32", "[2, 2]", f32s(&[1.0, 2.0, 3.0, 4.0])),
        ("mapping", "I64", "[5]", wide),
    ]);
    assert_eq!(rows_of(unweighted), [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn a_mapping_that_leads_nowhere_is_an_error_at_its_place() {
    for row in [2, -1, i32::MAX, i32::MIN] {
        let reader = open(mapped(&[0, 0, 1, row, 1]), &wordpiece(), CONFIG).unwrap();
        let message = read_all(reader).unwrap_err().to_string();
        assert!(message.contains(&format!("expected a row below 2, found {row}")), "{message}");
    }
}

/// Valid JSON on which `tokenizers` 0.22 panics: the map is too short to hold its own length.
const PRECOMPILED: &str =
    r#""normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}"#;

#[test]
fn what_is_not_read_is_refused_with_the_file_and_the_reason() {
    let bpe = tokenizer(r#"{"type": "BPE", "vocab": {"[PAD]": 0, "[UNK]": 1}, "merges": []}"#);
    let panics = wordpiece().replace(r#""normalizer": null"#, PRECOMPILED);
    let column = || f32s(&[1.0; 5]);
    let with = |name, dtype, shape, bytes| {
        tensors(&[("embeddings", "F32", "[5, 2]", f32s(&ROWS)), (name, dtype, shape, bytes)])
    };
    let mut long_header = plain();
    long_header[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut more_data = plain();
    more_data.push(0);
    let only = |name, shape, count| tensors(&[(name, "F32", shape, f32s(&ROWS[..count]))]);
    let word = wordpiece();
    let unmarked = unigram().replace("\"Metaspace\"", "\"Nothing\"");
    let unmarked = unmarked.replace(
        r#"{"type": "Nothing", "replacement": "▁",
                    "prepend_scheme": "always", "split": true}"#,
        "null",
    );
    let bytes = unigram().replace(r#""byte_fallback": false"#, r#""byte_fallback": true"#);
    let spanning = unigram().replace("▁cat", "▁cat▁s");
    let cases: [(Vec<u8>, &str, &str, &str); 17] = [
        (plain(), &spanning, CONFIG, "entries over several words (\"▁cat▁s\")"),
        (plain(), &unmarked, CONFIG, "a Unigram tokenizer without Metaspace"),
        (plain(), &bytes, CONFIG, "byte_fallback"),
        (plain(), bpe.as_str(), CONFIG, "a BPE tokenizer"),
        (plain(), &panics, CONFIG, "tokenizers library gives up on"),
        (plain(), "{}", CONFIG, "tokenizer.json, byte 0: expected a tokenizer"),
        (plain(), &word, "[", "config.json, byte 0: expected a model2vec config"),
        (long_header, &word, CONFIG, "a header of 18446744073709551615 bytes"),
        (more_data, &word, CONFIG, "expected 40 bytes of data, found 41"),
        (only("vectors", "[5, 2]", 10), &word, CONFIG, "a tensor `embeddings`, found none"),
        (only("embeddings", "[10]", 10), &word, CONFIG, "two dimensions, found [10]"),
        (only("embeddings", "[5, 0]", 0), &word, CONFIG, "1 to 4096 numbers, found 0"),
        (only("embeddings", "[4, 2]", 8), &word, CONFIG, "has id 4, but there are 4 vectors"),
        (with("weights", "F32", "[4]", f32s(&[1.0; 4])), &word, CONFIG, "expected 5 weights"),
        (with("weights", "I32", "[5]", column()), &word, CONFIG, "`weights` of type I32"),
        (with("mapping", "F32", "[5]", column()), &word, CONFIG, "`mapping` of type F32"),
        (with("mapping", "I32", "[5, 1]", column()), &word, CONFIG, "`mapping` in one row"),
    ];
    for (tensors, tokenizer, config, expected) in cases {
        let message = open(tensors, tokenizer, config).unwrap_err().to_string();
        assert!(message.contains(expected), "expected {expected:?} in {message:?}");
    }
}

#[test]
fn every_truncation_of_any_of_the_files_is_an_error() {
    let (tensors, tokenizer) = (mapped(&[0, 0, 1, 0, 1]), wordpiece());
    for length in 0..tensors.len() {
        assert!(open(tensors[..length].to_vec(), &tokenizer, CONFIG).is_err(), "cut to {length}");
    }
    for (length, _) in tokenizer.char_indices() {
        assert!(open(plain(), &tokenizer[..length], CONFIG).is_err(), "cut to {length}");
    }
    for length in 0..CONFIG.len() {
        assert!(open(plain(), &tokenizer, &CONFIG[..length]).is_err(), "cut to {length}");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_gives_rows_or_an_error(
        file in 0usize..4, at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let mut tensors = mapped(&[0, 0, 1, 0, 1]);
        let mut tokenizers = [wordpiece(), unigram()].map(String::into_bytes);
        let mut config = CONFIG.as_bytes().to_vec();
        let changed = match file {
            0 => &mut tensors,
            1 | 2 => &mut tokenizers[file - 1],
            _ => &mut config,
        };
        let at = at.index(changed.len());
        changed[at] = byte;
        let [wordpiece, unigram] = tokenizers;
        let tokenizer = if file == 2 { unigram } else { wordpiece };
        let reader = Model2VecReader::over(
            Source::memory("model.safetensors", tensors),
            &Source::memory("tokenizer.json", tokenizer),
            Some(&Source::memory("config.json", config)),
            Budget::DEFAULT,
        );
        if let Ok(rows) = reader.and_then(read_all) {
            prop_assert!(rows.len() <= 5);
        }
    }
}
