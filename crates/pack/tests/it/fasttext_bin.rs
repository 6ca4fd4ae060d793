//! Binary fastText models: a tiny one built here, read whole, then broken in every way.

use cognate::model::subword::NGrams;
use cognate_pack::readers::fasttext_bin::FastTextReader;
use cognate_pack::readers::positioned::Source;
use cognate_pack::readers::{Budget, Place, ReadError, Subword, VectorReader};
use proptest::prelude::*;

const DIMS: usize = 3;

/// The numbers of a model file. Every field is what the file says, true or not.
#[derive(Clone)]
struct Model {
    version: i32,
    arguments: [i32; 12],
    entries: i32,
    words: i32,
    labels: i32,
    pruned: i64,
    dictionary: Vec<(&'static str, i64, u8)>,
    quantised: u8,
    rows: i64,
    columns: i64,
}

/// Where things stand in the bytes of `Model::tiny`.
const BUCKET_AT: usize = 40;
const ENTRIES_AT: usize = 64;
const TOKENS_AT: usize = 76;
const DICTIONARY_AT: usize = 92;

impl Model {
    fn tiny() -> Self {
        let dictionary = vec![("</s>", 9, 0), ("cat", 7, 0), ("größe", 2, 0), ("__label__x", 1, 1)];
        Self {
            version: 12,
            // dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, rate
            arguments: [DIMS as i32, 5, 5, 1, 5, 1, 2, 2, 10, 2, 4, 100],
            entries: 4,
            words: 3,
            labels: 1,
            pruned: -1,
            dictionary,
            quantised: 0,
            rows: 13,
            columns: DIMS as i64,
        }
    }

    fn without_label(mut self) -> Self {
        (self.entries, self.labels) = (3, 0);
        self.dictionary.truncate(3);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut number = |value: i32| out.extend(value.to_le_bytes());
        number(793_712_314);
        number(self.version);
        self.arguments.iter().copied().for_each(&mut number);
        out.extend(0.0001f64.to_le_bytes());
        for value in [self.entries, self.words, self.labels] {
            out.extend(value.to_le_bytes());
        }
        out.extend(404i64.to_le_bytes());
        out.extend(self.pruned.to_le_bytes());
        for (word, count, kind) in &self.dictionary {
            out.extend(word.as_bytes());
            out.push(0);
            out.extend(count.to_le_bytes());
            out.push(*kind);
        }
        out.push(self.quantised);
        out.extend(self.rows.to_le_bytes());
        out.extend(self.columns.to_le_bytes());
        for row in 0..13 {
            (0..DIMS).for_each(|column| out.extend(cell(row, column).to_le_bytes()));
        }
        out.push(0);
        let output = (2i64, DIMS as i64);
        out.extend(output.0.to_le_bytes());
        out.extend(output.1.to_le_bytes());
        out.extend([0; 2 * DIMS * 4]);
        out
    }
}

fn cell(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 3 + row * row * column) % 11) as f32 * 0.25 - 1.25
}

fn open(bytes: Vec<u8>) -> Result<FastTextReader, ReadError> {
    FastTextReader::over(Source::memory("tiny.bin", bytes), Budget::DEFAULT)
}

fn refusal(bytes: Vec<u8>) -> String {
    open(bytes).expect_err("this file is broken").to_string()
}

/// Every row, and the rows of the buckets behind them, or the first error.
fn read_all(bytes: Vec<u8>) -> Result<usize, ReadError> {
    let mut reader = open(bytes)?;
    let (mut word, mut row, mut rows) = (Vec::new(), vec![0.0; reader.dims()], 0);
    while reader.next_row(&mut word, &mut row)? {
        rows += 1;
    }
    while reader.next_bucket(&mut row)? {
        rows += 1;
    }
    Ok(rows)
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(found.len() == expected.len() && close, "found {found:?}, expected {expected:?}");
}

#[test]
fn words_come_with_counts_and_the_mean_of_their_rows_and_labels_do_not_come() {
    let mut reader = open(Model::tiny().bytes()).unwrap();
    assert_eq!((reader.dims(), reader.rows_hint()), (DIMS, Some(3)));
    let expected = Subword::NGrams { min: 2, max: 4, buckets: 10 };
    assert_eq!(reader.subword(), Some(expected));
    let (mut word, mut row) = (b"left over".to_vec(), [0.0; DIMS]);

    assert!(reader.next_row(&mut word, &mut row).unwrap());
    assert_eq!((word.as_slice(), reader.count()), (&b"</s>"[..], Some(9)));
    assert_eq!(reader.place(), Place::Byte(DICTIONARY_AT as u64));
    assert_eq!(row, [0, 1, 2].map(|column| cell(0, column)), "its own row and no n-gram");

    // The vectors of the next two are gensim's for the same bytes.
    assert!(reader.next_row(&mut word, &mut row).unwrap());
    assert_eq!((word.as_slice(), reader.count()), (&b"cat"[..], Some(7)));
    assert_close(&row, &CAT);
    assert!(reader.next_row(&mut word, &mut row).unwrap());
    assert_eq!((word.as_slice(), reader.count()), ("größe".as_bytes(), Some(2)));
    assert_close(&row, &GROESSE);

    assert!(!reader.next_row(&mut word, &mut row).unwrap(), "a label is not a word");
    for bucket in 0..10 {
        assert!(reader.next_bucket(&mut row).unwrap());
        assert_eq!(row, [0, 1, 2].map(|column| cell(3 + bucket, column)));
    }
    assert!(!reader.next_bucket(&mut row).unwrap());
    let (read, all) = reader.progress();
    assert_eq!(read, all);
}

const CAT: [f32; DIMS] = [-0.075, -0.325, -0.575];
const GROESSE: [f32; DIMS] = [-0.09375, -0.328125, -0.390625];
/// `tomcat` and `日本` are not in the dictionary.
const TOMCAT: [f32; DIMS] = [0.041666668, -0.625, -0.6805556];
const JAPAN: [f32; DIMS] = [0.0, 0.083333336, -0.75];

#[test]
fn a_word_never_seen_gets_the_vector_that_gensim_gives_it() {
    let rule = NGrams { min: 2, max: 4, buckets: 10 };
    for (word, expected) in [("tomcat", TOMCAT), ("日本", JAPAN)] {
        let ids: Vec<u64> = rule.ids(word.as_bytes()).collect();
        let mean = [0, 1, 2].map(|column| {
            let sum: f32 = ids.iter().map(|&id| cell(3 + id as usize, column)).sum();
            sum / ids.len() as f32
        });
        assert_close(&mean, &expected);
    }
}

#[test]
fn without_n_grams_a_word_is_its_own_row_and_there_are_no_buckets_to_read() {
    let [mut no_lengths, mut supervised_11] = [Model::tiny(), Model::tiny()];
    no_lengths.arguments[9..11].fill(0);
    (supervised_11.version, supervised_11.arguments[7]) = (11, 3);
    for model in [no_lengths, supervised_11] {
        let mut reader = open(model.bytes()).unwrap();
        assert_eq!(reader.subword(), None);
        let (mut word, mut row) = (Vec::new(), [0.0; DIMS]);
        for index in 0..3 {
            assert!(reader.next_row(&mut word, &mut row).unwrap());
            assert_eq!(row, [0, 1, 2].map(|column| cell(index, column)));
        }
        assert!(!reader.next_bucket(&mut row).unwrap());
    }
    // Supervised models of version 12 do have n-grams if they say so.
    let mut supervised_12 = Model::tiny();
    supervised_12.arguments[7] = 3;
    assert!(open(supervised_12.bytes()).unwrap().subword().is_some());
}

#[test]
fn what_the_format_forbids_is_refused_with_its_place_and_what_was_found() {
    type Break = fn(&mut Model);
    let cases: [(Break, &str); 19] = [
        (|m| m.version = 13, "version 11 or 12 is expected, found 13"),
        (|m| m.arguments[0] = -1, "byte 8: expected dim between 1 and 2147483647, found -1"),
        (|m| m.arguments[0] = i32::MAX, "2147483647 dimensions, at most 4096"),
        (|m| m.arguments[6] = 5, "expected loss between 1 and 4, found 5"),
        (|m| m.arguments[7] = 0, "expected model between 1 and 3, found 0"),
        (|m| m.arguments[8] = -5, "byte 40: expected bucket between"),
        (|m| m.arguments[8] = i32::MAX, "input matrix of 2147483650 x 3"),
        (|m| m.arguments[10] = i32::MAX, "n-grams of 2147483647 characters"),
        (|m| m.entries = 5, "expected 5 entries, found 3 words and 1 labels"),
        (|m| (m.words, m.labels) = (i32::MAX, i32::MAX), "2147483647 labels"),
        (|m| (m.entries, m.words) = (i32::MAX, i32::MAX - 1), "words, at most 5000000"),
        (|m| (m.entries, m.labels) = (1_000_003, 1_000_000), "1000003 dictionary entries cannot"),
        (|m| m.pruned = -2, "byte 84: expected -1"),
        (|m| m.pruned = 100_000, "4 dictionary entries and 100000 n-grams cannot"),
        (|m| m.pruned = 2, "expected a bucket below 10 and a row below 2, found"),
        (|m| m.quantised = 1, "expected whether lengths are quantised, 0 or 1"),
        (|m| m.quantised = 2, "0 or 1, found 2"),
        (|m| m.dictionary[1].1 = -7, "expected a word's count, found -7"),
        (|m| m.dictionary[1].2 = 1, "expected kind 0 for entry 1, found 1"),
    ];
    for (index, (change, expected)) in cases.into_iter().enumerate() {
        let mut model = Model::tiny();
        change(&mut model);
        let message = refusal(model.bytes());
        assert!(message.starts_with("tiny.bin"), "{message}");
        assert!(message.contains(expected), "case {index}: {message}");
    }
}

#[test]
fn a_matrix_of_the_wrong_shape_or_beyond_the_file_is_refused() {
    for (rows, columns) in [(12, 3), (13, 4), (-1, 3), (i64::MAX, i64::MAX), (13, i64::MIN)] {
        let mut model = Model::tiny();
        (model.rows, model.columns) = (rows, columns);
        assert!(refusal(model.bytes()).contains("expected an input matrix of 13 x 3"));
    }
    // As many buckets as the header promises, but no bytes behind them.
    let mut model = Model::tiny();
    (model.arguments[8], model.rows) = (i32::MAX, i64::from(i32::MAX) + 3);
    let message = refusal(model.bytes());
    assert!(message.contains("cannot fit in the"), "{message}");
}

#[test]
fn a_word_without_an_end_is_given_up_after_the_longest_word_allowed() {
    let mut bytes = Model::tiny().bytes();
    bytes.truncate(DICTIONARY_AT);
    bytes.extend([b'a'; 5000]);
    assert!(refusal(bytes).contains("byte 92: a word does not end within 1024 bytes"));
}

#[test]
fn numbers_that_must_not_be_negative_are_looked_at() {
    let mut bytes = Model::tiny().bytes();
    bytes[TOKENS_AT..TOKENS_AT + 8].copy_from_slice(&(-1i64).to_le_bytes());
    assert!(refusal(bytes).contains("byte 76: expected a number of tokens, found -1"));
    for at in [ENTRIES_AT, ENTRIES_AT + 4, ENTRIES_AT + 8, BUCKET_AT] {
        let mut bytes = Model::tiny().bytes();
        bytes[at..at + 4].copy_from_slice(&i32::MIN.to_le_bytes());
        assert!(refusal(bytes).contains(&format!("byte {at}: ")));
    }
}

#[test]
fn every_truncation_is_an_error() {
    let whole = Model::tiny().without_label().bytes();
    assert_eq!(read_all(whole.clone()).unwrap(), 13);
    for length in 0..whole.len() {
        assert!(read_all(whole[..length].to_vec()).is_err(), "cut to {length} bytes");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_gives_rows_or_an_error(at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = Model::tiny().bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(rows) = read_all(bytes) {
            prop_assert!(rows <= 13);
        }
    }

    #[test]
    fn changed_header_numbers_give_rows_or_an_error(
        changes in proptest::collection::vec((0usize..24, any::<i32>()), 1..4),
    ) {
        let mut bytes = Model::tiny().bytes();
        for (index, value) in changes {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&value.to_le_bytes());
        }
        let _ = read_all(bytes);
    }
}
