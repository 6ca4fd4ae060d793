//! However a file is cut or changed, reading ends in rows or in a typed error, never in a panic.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{all, bytes};
use crate::readers::format::recognise;
use crate::readers::matrix::MatrixReader;
use crate::readers::text::{GloveTextReader, Word2VecTextReader};
use crate::readers::word2vec_bin::Word2VecBinReader;
use crate::readers::{Budget, npy, safetensors, text};

/// Every reader over the same bytes, whichever they were meant for. Only that this returns counts.
fn read_all_ways(file: &[u8]) {
    let budget = Budget { words: 100, dims: 64, word_bytes: 32 };
    let words = || bytes("the\nof\n");
    let _ = recognise(&mut bytes(file));
    let _ = all(text::open(bytes(file), budget));
    let _ = all(Word2VecTextReader::new(bytes(file), budget));
    let _ = all(GloveTextReader::new(bytes(file), budget));
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
