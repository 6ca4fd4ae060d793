//! What tests of the readers share, and real files if the shared data exists.

use std::path::{Path, PathBuf};

use super::input::Input;
use super::{Format, Opened, Result, Source};
use crate::readers::format::{detect, open};

pub(super) type Row = (String, Vec<f32>);

pub(super) fn bytes(bytes: impl AsRef<[u8]>) -> Input {
    Input::from_bytes("memory", bytes.as_ref().to_vec()).unwrap()
}

pub(super) fn all(reader: Opened) -> Result<Vec<Row>> {
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
pub(super) fn fault(reader: Opened) -> String {
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
