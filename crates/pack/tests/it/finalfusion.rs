//! finalfusion files: three from the project's own writer, and one built here to be broken.

use cognate::model::subword::NGrams;
use cognate_pack::readers::finalfusion::FinalfusionReader;
use cognate_pack::readers::positioned::Source;
use cognate_pack::readers::{Budget, Place, ReadError, Subword, VectorReader};
use proptest::prelude::*;

const SIMPLE: &[u8] = include_bytes!("../data/finalfusion/simple.fifu");
const FASTTEXT: &[u8] = include_bytes!("../data/finalfusion/fasttext.fifu");
const HASHED: &[u8] = include_bytes!("../data/finalfusion/hashed.fifu");

fn open(bytes: &[u8]) -> Result<FinalfusionReader, ReadError> {
    FinalfusionReader::over(Source::memory("tiny.fifu", bytes.to_vec()), Budget::DEFAULT)
}

fn refusal(bytes: &[u8]) -> String {
    open(bytes).expect_err("this file is broken").to_string()
}

type Rows = Vec<Vec<f32>>;

/// All words, their rows and the rows of the buckets.
fn read_all(bytes: &[u8]) -> Result<(Vec<String>, Rows, Rows), ReadError> {
    let mut reader = open(bytes)?;
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    let (mut words, mut rows, mut buckets) = (Vec::new(), Vec::new(), Vec::new());
    while reader.next_row(&mut word, &mut row)? {
        words.push(String::from_utf8_lossy(&word).into_owned());
        rows.push(row.clone());
    }
    while reader.next_bucket(&mut row)? {
        buckets.push(row.clone());
    }
    let (read, all) = reader.progress();
    assert_eq!(read, all);
    Ok((words, rows, buckets))
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(found.len() == expected.len() && close, "found {found:?}, expected {expected:?}");
}

#[test]
fn rows_come_with_the_length_they_had_before_they_were_stored() {
    let before: [(&[u8], [[f32; 3]; 4]); 3] = [
        (
            SIMPLE,
            [
                [0.0012301534, 0.29874554, -0.27413785],
                [-0.89059186, -0.4546708, -0.9916465],
                [0.0601436, 1.3402152, -0.4922065],
                [-0.6204749, 0.48984206, 0.356887],
            ],
        ),
        (
            FASTTEXT,
            [
                [0.10541425, -0.930468, -0.029251823],
                [0.6953032, -1.3442146, -0.45761576],
                [-1.9012227, -1.2895378, -1.841735],
                [-0.23509113, -1.2674465, 0.27126434],
            ],
        ),
        (
            HASHED,
            [
                [-1.5471447, 0.8593827, 0.119354025],
                [-0.6414704, 2.0004165, 0.7622597],
                [-1.1992888, 0.07451623, 0.5766896],
                [-0.18878213, 0.68291026, -0.06651732],
            ],
        ),
    ];
    for (bytes, expected) in before {
        let (words, rows, _) = read_all(bytes).unwrap();
        assert_eq!(words, ["the", "größe", "日本", "New York"]);
        for (found, expected) in rows.iter().zip(&expected) {
            assert_close(found, expected);
        }
    }
}

#[test]
fn a_word_never_seen_gets_the_direction_that_the_writer_gives_it() {
    let expected = Subword::NGrams { min: 2, max: 4, buckets: 7 };
    assert_eq!(open(FASTTEXT).unwrap().subword(), Some(expected));
    let (_, _, buckets) = read_all(FASTTEXT).unwrap();
    assert_eq!(buckets.len(), 7);
    let mut sum = [0.0f32; 3];
    for id in (NGrams { min: 2, max: 4, buckets: 7 }).ids(b"tomcat") {
        sum.iter_mut().zip(&buckets[id as usize]).for_each(|(sum, value)| *sum += value);
    }
    let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    assert_close(&sum.map(|value| value / norm), &[-0.66492194, 0.26722085, -0.6974753]);
}

#[test]
fn n_grams_under_another_hash_are_left_out_and_this_is_said() {
    let reader = open(HASHED).unwrap();
    assert_eq!(reader.subword(), None);
    assert!(reader.left_out().is_some_and(|what| what.contains("own hash")));
    assert!(read_all(HASHED).unwrap().2.is_empty());
    assert_eq!(open(SIMPLE).unwrap().left_out(), None);
    assert_eq!(open(FASTTEXT).unwrap().left_out(), None);
}

/// Writes chunks as the format's description has them, around contents that may be wrong.
struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        let mut out = b"FiFu".to_vec();
        // Version 0, and no promise of any chunk.
        out.extend([0; 8]);
        Self(out)
    }

    fn chunk(mut self, kind: u32, contents: &[u8]) -> Self {
        self.0.extend(kind.to_le_bytes());
        self.0.extend((contents.len() as u64).to_le_bytes());
        self.0.extend(contents);
        self
    }

    fn words(self, kind: u32, numbers: &[u32], words: &[&str]) -> Self {
        let mut contents = (words.len() as u64).to_le_bytes().to_vec();
        numbers.iter().for_each(|number| contents.extend(number.to_le_bytes()));
        for word in words {
            contents.extend((word.len() as u32).to_le_bytes());
            contents.extend(word.as_bytes());
        }
        self.chunk(kind, &contents)
    }

    /// A matrix, or norms where there are no columns.
    fn floats(self, kind: u32, rows: u64, columns: Option<u32>, floats: &[f32]) -> Self {
        let mut contents = rows.to_le_bytes().to_vec();
        contents.extend(columns.iter().flat_map(|columns| columns.to_le_bytes()));
        contents.extend(10u32.to_le_bytes());
        let position = self.0.len() + 12 + contents.len();
        contents.extend(vec![0; 4 - position % 4]);
        floats.iter().for_each(|value| contents.extend(value.to_le_bytes()));
        self.chunk(kind, &contents)
    }
}

fn two_words() -> Writer {
    Writer::new().words(1, &[], &["a", "bc"])
}

#[test]
fn without_norms_rows_come_as_they_stand_wherever_the_padding_puts_them() {
    for metadata in ["", "a", "ab", "abc"] {
        let floats = [0.6, 0.8, f32::NAN, 0.0];
        let file = Writer::new().chunk(5, metadata.as_bytes()).words(1, &[], &["a", "bc"]);
        let file = file.floats(2, 2, Some(2), &floats).0;
        let (words, rows, _) = read_all(&file).unwrap();
        assert_eq!(words, ["a", "bc"]);
        assert_eq!(rows[0], [0.6, 0.8]);
        assert!(rows[1][0].is_nan(), "what to do with NaN is not the reader's business");
    }
}

#[test]
fn listed_n_grams_are_left_out_and_words_are_not() {
    let mut contents = 1u64.to_le_bytes().to_vec();
    contents.extend(1u64.to_le_bytes());
    [2u32, 3].iter().for_each(|number| contents.extend(number.to_le_bytes()));
    contents.extend([1, 0, 0, 0, b'a']);
    contents.extend([2, 0, 0, 0, b'<', b'a', 0, 0, 0, 0, 0, 0, 0, 0]);
    let file = Writer::new().chunk(8, &contents).floats(2, 2, Some(1), &[0.5, 0.25]).0;
    let reader = open(&file).unwrap();
    assert!(reader.left_out().is_some_and(|what| what.contains("listed")));
    let (words, rows, buckets) = read_all(&file).unwrap();
    assert_eq!((words, rows, buckets), (vec!["a".into()], vec![vec![0.5]], vec![]));
}

#[test]
fn the_place_of_a_row_is_that_of_its_word() {
    let file = two_words().floats(2, 2, Some(1), &[1.0, 2.0]).0;
    let mut reader = open(&file).unwrap();
    let (mut word, mut row) = (Vec::new(), [0.0]);
    // Header of 12 bytes, chunk head of 12, the number of words, then 4 + 1 for the first.
    for expected in [32, 37] {
        assert!(reader.next_row(&mut word, &mut row).unwrap());
        assert_eq!(reader.place(), Place::Byte(expected));
    }
    assert!(!reader.next_row(&mut word, &mut row).unwrap());
}

#[test]
fn parts_that_contradict_one_another_are_refused_with_what_was_found() {
    let matrix = |writer: Writer| writer.floats(2, 2, Some(1), &[1.0, 2.0]);
    let subwords = |kind, numbers: &[u32]| matrix(Writer::new().words(kind, numbers, &["a"])).0;
    let mut old = matrix(two_words()).0;
    old[4] = 1;
    let mut many = matrix(two_words()).0;
    many[8..12].fill(0xFF);
    let cases: [(Vec<u8>, &str); 19] = [
        (b"word2vec".to_vec(), "byte 0: expected `FiFu`, found `word`"),
        (old, "version 0 is expected, found 1"),
        (many, "byte 8: expected at most 64 chunks, found 4294967295"),
        (two_words().0, "found no matrix chunk"),
        (matrix(Writer::new()).0, "found no vocabulary chunk"),
        (matrix(two_words()).words(1, &[], &["a"]).0, "found another of kind 1"),
        (matrix(two_words()).chunk(0, &[]).0, "identifier from 1 to 9, found 0"),
        (two_words().chunk(4, &[]).0, "a quantised matrix"),
        (Writer::new().chunk(9, &[]).0, "floret"),
        (two_words().floats(2, 3, Some(1), &[1.0; 3]).0, "found 3 rows, which do not fit the 2"),
        (two_words().floats(2, u64::MAX, Some(2), &[1.0]).0, "a length beyond 64 bits"),
        (two_words().floats(2, 1 << 40, Some(4000), &[1.0]).0, "expected the numbers to end"),
        (two_words().floats(2, 2, Some(0), &[]).0, "expected 1 to 4096 columns, found 0"),
        (two_words().floats(2, 2, Some(4097), &[]).0, "found 4097"),
        (matrix(two_words()).floats(6, 1, None, &[1.0]).0, "expected 2 norms, found 1"),
        (subwords(7, &[3, 6, 100]), "found 2 rows, which do not fit the 1 words"),
        (subwords(3, &[3, 6, 64]), "found 2 rows, which do not fit the 1 words"),
        (subwords(3, &[3, 6, u32::MAX]), "found 2 rows, which do not fit the 1 words"),
        (Writer::new().chunk(1, &u64::MAX.to_le_bytes()).0, "words, at most 5000000 are taken"),
    ];
    for (bytes, expected) in cases {
        let message = refusal(&bytes);
        assert!(message.starts_with("tiny.fifu"), "{message}");
        assert!(message.contains(expected), "expected {expected:?} in {message:?}");
    }
}

#[test]
fn lengths_beyond_what_is_left_are_refused_before_anything_is_reserved() {
    let mut long_chunk = two_words().0;
    long_chunk[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(refusal(&long_chunk).contains("byte 12: expected a chunk of at most the 19 bytes"));
    let mut long_word = two_words().0;
    long_word[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refusal(&long_word).contains("a word of at most 1024 bytes, found 4294967295"));
    let mut many_words = two_words().0;
    many_words[24..32].copy_from_slice(&4_000_000u64.to_le_bytes());
    assert!(refusal(&many_words).contains("before the end"));
    let mut wide = two_words().floats(2, 2, Some(1), &[1.0, 2.0]).0;
    let kind_at = wide.len() - 8 - 4 - 1;
    let kind_at = (kind_at - 3..=kind_at).find(|&at| wide[at..at + 4] == [10, 0, 0, 0]).unwrap();
    wide[kind_at] = 11;
    assert!(refusal(&wide).contains("type 10 (f32), found type 11"));
}

#[test]
fn every_truncation_is_an_error_even_at_the_edge_of_a_chunk() {
    for whole in [SIMPLE, FASTTEXT, HASHED] {
        for length in 0..whole.len() {
            assert!(read_all(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        // The norms are the last chunk: 24 bytes, padding to a multiple of four, four numbers.
        let edge = (whole.len() - 24 - 4 - 16..whole.len()).find(|&at| whole[at] == 6).unwrap();
        let message = refusal(&whole[..edge]);
        assert!(message.contains("no chunk of kind 6, which the header lists"), "{message}");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_gives_rows_or_an_error(
        file in 0usize..3, at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let mut bytes = [SIMPLE, FASTTEXT, HASHED][file].to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((words, rows, buckets)) = read_all(&bytes) {
            prop_assert_eq!(words.len(), rows.len());
            prop_assert!(rows.len() + buckets.len() <= 12);
        }
    }
}
