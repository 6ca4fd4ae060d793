//! Real files, where the shared data is at hand: four forms of one slice of GloVe agree, and the
//! files that other programs wrote are read through.

use std::path::{Path, PathBuf};

use super::{Row, all};
use crate::readers::Format;
use crate::readers::format::{Source, detect, open};

/// A path in the shared data, unless the data is absent.
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
            // A half keeps eleven bits, so it differs by a 2,048th at most.
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
