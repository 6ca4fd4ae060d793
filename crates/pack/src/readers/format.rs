//! Recognises the format of a file, and opens it with the matching reader.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::input::Input;
use super::text::{HEADER_BYTES, count_numbers, is_header, line_bytes};
use super::{Budget, FIRST_BYTES, Format, Lines, Mark, Opened, Place, Result, Source};

impl Format {
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format; known are {known}", known = known())]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.iter().find(|format| format.name() == name);
        named.copied().ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

fn known() -> String {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

pub fn open(source: &Source) -> Opened {
    match source.format {
        Some(format) => format.open(source),
        None => detect(&source.path)?.open(source),
    }
}

pub(crate) fn detect(path: &Path) -> Result<Format> {
    if path.is_dir()
        && let Some(format) = marked(|mark| matches!(mark, Mark::Folder))
    {
        return Ok(format);
    }
    recognise(&mut Input::open(path)?)
}

/// Recognises the format by the first bytes; only if they are ambiguous, by lines and name.
pub fn recognise(input: &mut Input) -> Result<Format> {
    let size = input.bytes_left();
    let first = input.peek(FIRST_BYTES)?;
    let by_bytes = |mark: &Mark| matches!(mark, Mark::Bytes(is) if is(first, size));
    if let Some(format) = marked(by_bytes) {
        return Ok(format);
    }
    match *first {
        [] => return Err(input.malformed(Place::Byte(0), "the file is empty")),
        [b'P', b'K', 0x03, 0x04, ..] => {
            return Err(input.unsupported("a zip archive (.zip or .npz); unpack it first"));
        }
        [0x80, 0x02..=0x05, ..] => {
            return Err(input.unsupported(
                "a Python pickle; store the vectors with gensim's save_word2vec_format",
            ));
        }
        _ => {}
    }
    let lines = Lines::new(input)?;
    let by_lines = |mark: &Mark| matches!(mark, Mark::Lines(are) if are(&lines));
    marked(by_lines).ok_or_else(|| {
        let old = ". A fastText .bin from before 2017 has no magic number and is not read";
        let binary = input.path().extension().is_some_and(|end| end.eq_ignore_ascii_case("bin"));
        let old = if binary { old } else { "" };
        input.unsupported(format!("of no known format; known are {}{old}", known()))
    })
}

fn marked(is: impl Fn(&Mark) -> bool) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| is(&format.info().mark))
}

impl Lines {
    fn new(input: &mut Input) -> Result<Self> {
        input.skip_byte_order_mark()?;
        let header = input.peek_line(HEADER_BYTES)?.is_some_and(is_header);
        if header {
            input.read_line_bounded(HEADER_BYTES)?;
        }
        Ok(Self { header, rows: is_row(input)? || named_text(input.path()) })
    }
}

fn is_row(input: &mut Input) -> Result<bool> {
    let limit = line_bytes(Budget::DEFAULT.dims, Budget::DEFAULT);
    Ok(input.peek_line(limit)?.is_some_and(|line| count_numbers(line) > 0))
}

/// Whether the name, without `.gz` or `.zst`, is that of a text file.
fn named_text(path: &Path) -> bool {
    let packed = ["gz", "zst"].map(Some).contains(&path.extension().and_then(OsStr::to_str));
    let path = if packed { Path::new(path.file_stem().unwrap_or_default()) } else { path };
    ["txt", "vec", "glove"].map(Some).contains(&path.extension().and_then(OsStr::to_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::input::Input;
    use crate::readers::tests::{all, row, says};
    use crate::readers::{Format, ReadError};

    fn recognised(name: &str, bytes: &[u8]) -> Result<Format> {
        recognise(&mut Input::from_bytes(name, bytes.to_vec()).unwrap())
    }

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        // The length, 640 bytes, starts with the byte of a pickle.
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
            assert_eq!(
                recognised(name, bytes).unwrap(),
                format,
                "{name}: {}",
                bytes.escape_ascii()
            );
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
        says(
            &"gensim".parse::<Format>().unwrap_err().to_string(),
            &["`gensim`", "word2vec-text, "],
        );
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
}
