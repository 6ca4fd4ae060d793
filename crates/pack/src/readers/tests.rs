//! Tests of all readers with small generated files, with damaged files, and with real files if the
//! shared data exists.
//!
//! The cases are those that broke other importers.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::input::Input;
use super::{Place, ReadError, VectorReader};
use crate::readers::format::{detect, open, recognise};
use crate::readers::matrix::MatrixReader;
use crate::readers::text::TextReader;
use crate::readers::word2vec_bin::Word2VecBinReader;
use crate::readers::{Budget, Format, Source, npy, safetensors, text};

/// A row as a test writes it down.
pub(super) type Row = (String, Vec<f32>);

pub(super) fn bytes(bytes: impl AsRef<[u8]>) -> Input {
    Input::from_bytes("memory", bytes.as_ref().to_vec()).unwrap()
}

/// Every row of the file, or the first error. Words that are not UTF-8 are escaped.
pub(super) fn all<R: VectorReader>(reader: Result<R, ReadError>) -> Result<Vec<Row>, ReadError> {
    let mut reader = reader?;
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    let mut rows = Vec::new();
    while reader.next_row(&mut word, &mut row)? {
        let word = match std::str::from_utf8(&word) {
            Ok(word) => word.to_owned(),
            Err(_) => word.escape_ascii().to_string(),
        };
        rows.push((word, row.clone()));
    }
    Ok(rows)
}

/// The message of the error that reading must end in.
pub(super) fn fault<R: VectorReader>(reader: Result<R, ReadError>) -> String {
    all(reader).expect_err("a fault").to_string()
}

pub(super) fn row(word: &str, numbers: &[f32]) -> Row {
    (word.to_owned(), numbers.to_vec())
}

#[track_caller]
pub(super) fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

/// Lets [`all`] accept what `open` returns.
impl VectorReader for Box<dyn VectorReader> {
    fn dims(&self) -> usize {
        self.as_ref().dims()
    }
    fn rows_hint(&self) -> Option<u64> {
        self.as_ref().rows_hint()
    }
    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        self.as_mut().next_row(word, row)
    }
    fn place(&self) -> Place {
        self.as_ref().place()
    }
    fn digest(&mut self) -> Result<String, ReadError> {
        self.as_mut().digest()
    }
    fn progress(&self) -> (u64, u64) {
        self.as_ref().progress()
    }
}

/// Reads the same bytes with every reader. The test is that this returns.
fn read_all_ways(file: &[u8]) {
    let budget = Budget { words: 100, dims: 64, word_bytes: 32 };
    let words = || bytes("the\nof\n");
    let _ = recognise(&mut bytes(file));
    let _ = all(text::open(bytes(file), budget));
    let _ = all(TextReader::with_header(bytes(file), budget));
    let _ = all(TextReader::without_header(bytes(file), budget));
    let _ = all(Word2VecBinReader::new(bytes(file), budget));
    let mut input = bytes(file);
    if let Ok(shape) = npy::find_matrix(&mut input) {
        let _ = all(MatrixReader::new(input, words(), shape, budget));
    }
    let mut input = bytes(file);
    if let Ok(shape) = safetensors::find_matrix(&mut input, None) {
        let _ = all(MatrixReader::new(input, words(), shape, budget));
    }
}

fn examples() -> Vec<Vec<u8>> {
    let numbers = [1.0_f32, -2.0, 0.5, f32::MAX].map(f32::to_le_bytes).concat();
    let (first, second) = numbers.split_at(8);
    let text = b"2 2\nthe 0.5 -1e3\n. of nan 1e999\n".to_vec();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&text).unwrap();
    let npy = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n".as_slice();
    let tensors = br#"{"vectors":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#.as_slice();
    vec![
        text[4..].to_vec(),
        compress_to_vec(text.repeat(20).as_slice(), CompressionLevel::Fastest),
        gzip.finish().unwrap(),
        text,
        [b"2 2\nthe ", first, b"\nof ", second, b"\n"].concat(),
        [b"\x93NUMPY\x01\0", [npy.len() as u8, 0].as_slice(), npy, &numbers].concat(),
        [&(tensors.len() as u64).to_le_bytes(), tensors, &numbers].concat(),
    ]
}

#[test]
fn every_prefix_of_every_format_is_survived() {
    for file in examples() {
        for length in 0..=file.len() {
            read_all_ways(&file[..length]);
        }
    }
}

proptest! {
    #[test]
    fn every_changed_byte_is_survived(
        which in 0..7_usize,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut file = examples().swap_remove(which);
        let at = at.index(file.len());
        file[at] = byte;
        read_all_ways(&file);
    }

    #[test]
    fn bytes_of_no_meaning_are_survived(
        which in 0..7_usize,
        kept in 0..24_usize,
        noise in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let file = examples().swap_remove(which);
        read_all_ways(&[&file[..kept], noise.as_slice()].concat());
    }
}

/// A path in the shared data, if it exists.
fn shared(path: &str) -> Option<PathBuf> {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if data.is_dir() {
        return Some(data.join(path));
    }
    eprintln!("the shared data is absent; {path} is not read");
    None
}

fn rows(path: &Path, format: Format) -> Vec<Row> {
    assert_eq!(detect(path).unwrap(), format, "{}", path.display());
    all(open(&Source::at(path))).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn one_slice_in_four_formats_holds_the_same_rows() {
    let Some(folder) = shared("vectors/slice") else {
        return;
    };
    let read = |ending: &str, format| {
        rows(&folder.join(format!("glove.6B.100d.top2000.{ending}")), format)
    };
    let glove = read("glove.txt", Format::Glove);
    assert_eq!(glove.len(), 2000);
    assert_eq!((glove[0].0.as_str(), glove[0].1.len()), ("the", 100));
    assert_eq!(glove[0].1[..3], [-0.038194, -0.24487, 0.72812]);
    for (ending, format) in [
        ("word2vec.txt", Format::Word2VecText),
        ("word2vec.bin", Format::Word2VecBin),
        ("npy", Format::Npy),
    ] {
        assert!(read(ending, format) == glove, "{ending} differs");
    }
}

#[test]
fn files_that_gensim_glove_and_fasttext_wrote_are_read_through() {
    let Some(folder) = shared("fixtures/gensim") else {
        return;
    };
    for (name, format, words, dims, first) in [
        ("euclidean_vectors.bin", Format::Word2VecBin, 2747, 10, "the"),
        ("high_precision.kv.bin", Format::Word2VecBin, 2, 2, "kangaroo.n.01"),
        ("high_precision.kv.txt", Format::Word2VecText, 2, 2, "kangaroo.n.01"),
        ("test_glove.txt", Format::Glove, 76, 50, "the"),
        ("lee_fasttext.vec", Format::Word2VecText, 1762, 10, "the"),
        ("crime-and-punishment.vec", Format::Word2VecText, 291, 5, "\u{438}"),
    ] {
        let rows = rows(&folder.join(name), format);
        assert_eq!((rows.len(), rows[0].1.len(), rows[0].0.as_str()), (words, dims, first));
        assert!(rows.iter().flat_map(|(_, row)| row).all(|number| number.is_finite()), "{name}");
    }
    let text = rows(&folder.join("high_precision.kv.txt"), Format::Word2VecText);
    assert_eq!(text[1].1, [-0.000_854_628_2, 0.000_769_414_26]);
}

#[test]
fn matrices_of_halves_are_read_with_their_words() {
    let Some(folder) = shared("vectors") else {
        return;
    };
    for (name, words, dims) in [
        ("glove.6B.100d.safetensors", 341_479, 100),
        ("glove.6B.50d.top100k.safetensors", 100_000, 50),
        ("default/vectors.safetensors", 75_000, 256),
    ] {
        let path = folder.join(name);
        assert_eq!(detect(&path).unwrap(), Format::Safetensors);
        let mut reader = open(&Source::at(&path)).unwrap();
        assert_eq!((reader.dims(), reader.rows_hint()), (dims, Some(words)), "{name}");
        let (mut word, mut row) = (Vec::new(), vec![0.0; dims]);
        let mut read = 0;
        while reader.next_row(&mut word, &mut row).unwrap() {
            assert!(!word.is_empty() && row.iter().all(|number| number.is_finite()));
            // A half has eleven significant bits, so its relative error is at most 1/2,048.
            let exact = [-0.038194, -0.24487, 0.72812_f32];
            if read == 0 && dims == 100 {
                assert_eq!(word, b"the");
                let near =
                    |(half, exact): (&f32, f32)| ((half - exact) / exact).abs() < 1.0 / 2048.0;
                assert!(row.iter().zip(exact).all(near));
            }
            read += 1;
        }
        assert_eq!(read, words, "{name}");
        let (consumed, total) = reader.progress();
        assert_eq!(consumed, total);
    }
}

#[test]
fn files_of_other_formats_are_recognised() {
    let Some(folder) = shared("fixtures") else {
        return;
    };
    for (name, format) in [
        ("gensim/toy-model.bin", Format::FastText),
        ("gensim/crime-and-punishment.bin", Format::FastText),
        ("model2vec-float32", Format::Model2Vec),
    ] {
        assert_eq!(detect(&folder.join(name)).unwrap(), format);
    }
    for name in ["lee_fasttext.bin", "non_ascii_fasttext.bin", "cp852_fasttext.bin"] {
        let refusal = detect(&folder.join("gensim").join(name)).unwrap_err().to_string();
        assert!(refusal.contains("no known format"), "{refusal}");
    }
}
