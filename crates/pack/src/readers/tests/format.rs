//! A file is what its bytes say; its name only settles what they leave open.

use super::{all, row, says};
use crate::readers::format::{Source, detect, open, recognise};
use crate::readers::input::Input;
use crate::readers::{Format, ReadError};

fn recognised(name: &str, bytes: &[u8]) -> Result<Format, ReadError> {
    recognise(&mut Input::from_bytes(name, bytes.to_vec()).unwrap())
}

#[test]
fn formats_are_told_by_their_first_bytes() {
    // Its length of 640 bytes begins as a pickle does.
    let long = [&640_u64.to_le_bytes()[..], b"{\"a\":0}", &[b' '; 640]].concat();
    for (name, bytes, format) in [
        ("x", b"\x93NUMPY\x01\0".as_slice(), Format::Npy),
        ("x.txt", b"\x93NUMPY\x01\0", Format::Npy),
        ("x", b"FiFu\0\0\0\0", Format::Finalfusion),
        ("x.bin", b"\xba\x16\x4f\x2f\x0c\0\0\0", Format::FastText),
        ("x", b"\x02\0\0\0\0\0\0\0{}", Format::Safetensors),
        ("x", b"2 2\nthe 1 2\nof 1 2\n", Format::Word2VecText),
        ("x.bin", b"2 2\nthe 1 2\nof 1 2\n", Format::Word2VecText),
        ("x", b"\xef\xbb\xbf2 2\nthe 1 2\nof 1 2\n", Format::Word2VecText),
        ("x", b"1 1\nthe \x01\x02\x03\x04", Format::Word2VecBin),
        ("x.txt", b"1 1\nthe one\n", Format::Word2VecText),
        ("x.vec.gz", b"1 1\nthe one\n", Format::Word2VecText),
        ("x", b"the 1 2\nof 1 2\n", Format::Glove),
        ("x.glove", b"the one\n", Format::Glove),
        ("x", &long, Format::Safetensors),
    ] {
        assert_eq!(recognised(name, bytes).unwrap(), format, "{name}: {}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_not_read_says_what_it_is() {
    let refusal = |name: &str, bytes: &[u8]| recognised(name, bytes).unwrap_err().to_string();
    says(&refusal("x.npz", b"PK\x03\x04"), &["zip", "unpack"]);
    says(&refusal("x.model", b"\x80\x04\x95"), &["pickle", "save_word2vec_format"]);
    says(&refusal("x", b""), &["empty"]);
    says(&refusal("x.bin", b"\x0a\0\0\0\x05\0\0\0"), &["no known format", "fasttext", "2017"]);
}

#[test]
fn names_on_the_command_line_lead_back_to_their_format() {
    for &format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    says(&"gensim".parse::<Format>().unwrap_err().to_string(), &["`gensim`", "word2vec-text, "]);
}

#[test]
fn a_folder_is_model2vec_and_a_missing_file_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(detect(folder.path()).unwrap(), Format::Model2Vec);
    assert!(matches!(detect(&folder.path().join("none")), Err(ReadError::Io { .. })));
}

#[test]
fn a_matrix_finds_its_vocabulary_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.v1.npy");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}";
    let file = [b"\x93NUMPY\x01\0\x39\0", header.as_bytes(), &2.5_f32.to_le_bytes()].concat();
    std::fs::write(&path, file).unwrap();
    let mut source = Source::at(&path);
    says(&open(&source).err().unwrap().to_string(), &["without words", "vocab.txt"]);
    let first = |source: &Source| all(open(source)).unwrap()[0].clone();
    std::fs::write(folder.path().join("vocab.txt"), "shared\n").unwrap();
    assert_eq!(first(&source), row("shared", &[2.5]));
    std::fs::write(folder.path().join("tiny.v1.vocab.txt"), "own\n").unwrap();
    assert_eq!(first(&source), row("own", &[2.5]));
    std::fs::write(folder.path().join("named"), "named\n").unwrap();
    source.vocabulary = Some(folder.path().join("named"));
    assert_eq!(first(&source), row("named", &[2.5]));
    source.format = Some(Format::Glove);
    says(&open(&source).err().unwrap().to_string(), &["line 1"]);
}
