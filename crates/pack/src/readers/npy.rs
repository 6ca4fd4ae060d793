//! NumPy's `.npy`: one array in a file, here a matrix whose words are in a second file.
//!
//! The header is a Python dictionary. It is parsed by a grammar for what NumPy writes and never
//! evaluated. Arrays of Python objects, which are pickled programs, are refused, and so are `.npz`
//! archives.

use super::input::{Input, shown};
use super::matrix::{MatrixReader, Number, Shape};
use super::{Info, Mark, Opened, Place, Result, Source};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum bytes of a header. NumPy writes 118 bytes for a matrix.
const HEADER_BYTES: usize = 64 << 10;

pub(crate) const INFO: Info =
    Info { name: "npy", mark: Mark::Bytes(|first, _| first.starts_with(MAGIC)) };

pub(super) fn open(source: &Source) -> Opened {
    let mut input = Input::open(&source.path)?;
    let shape = find_matrix(&mut input)?;
    Ok(Box::new(MatrixReader::new(input, source.words()?, shape, source.budget)?))
}

pub fn find_matrix(input: &mut Input) -> Result<Shape> {
    if input.peek(4)? == b"PK\x03\x04" {
        return Err(input.unsupported(
            "a .npz or zip archive; unpack it, or store the array alone with numpy.save",
        ));
    }
    if let Some(packing) = input.packing() {
        return Err(input.unsupported(format!("packed with {packing}; unpack it first")));
    }
    if !input.skip_prefix(MAGIC)? {
        let problem = format!("expected the magic of a .npy file, found {}", shown(input.peek(6)?));
        return Err(input.malformed(Place::Byte(0), problem));
    }
    let (major, minor) = match input.read_exact(2, "the format's version")? {
        [major, minor] => (*major, *minor),
        _ => (0, 0),
    };
    let length = match major {
        1 => little_endian(input.read_exact(2, "the header's length")?),
        2 | 3 => little_endian(input.read_exact(4, "the header's length")?),
        _ => return Err(input.unsupported(format!("version {major}.{minor} of the .npy format"))),
    };
    let began = input.position();
    if length > HEADER_BYTES {
        let problem = format!("a header of {length} bytes, more than {HEADER_BYTES}");
        return Err(input.malformed(Place::Byte(began), problem));
    }
    let shape = match Grammar::new(input.read_exact(length, "the header")?).dictionary() {
        Ok(shape) => shape,
        Err(Refusal::Malformed { at, problem }) => {
            let place = Place::Byte(began.saturating_add(at as u64));
            return Err(input.malformed(place, problem));
        }
        Err(Refusal::Unsupported(problem)) => return Err(input.unsupported(problem)),
    };
    let (promised, left) = (shape.bytes(), input.bytes_left());
    if promised != left {
        let Shape { rows, dims, number } = shape;
        let problem = format!(
            "the header promises {rows} rows of {dims} numbers ({number:?}), which are not the \
             {} bytes that follow",
            left.unwrap_or(0)
        );
        return Err(input.malformed(Place::Byte(input.position()), problem));
    }
    Ok(shape)
}

fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}

enum Refusal {
    Malformed { at: usize, problem: String },
    Unsupported(String),
}

struct Grammar<'h> {
    text: &'h [u8],
    at: usize,
}

impl<'h> Grammar<'h> {
    fn new(text: &'h [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (2000, 100), }`, keys in any order.
    fn dictionary(mut self) -> Result<Shape, Refusal> {
        let (mut number, mut by_column, mut extent) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let repeated = match key {
                b"descr" => number.replace(self.number()?).is_some(),
                b"fortran_order" => by_column.replace(self.truth()?).is_some(),
                b"shape" => extent.replace(self.extent()?).is_some(),
                _ => return Err(self.fault(format!("the unknown key {}", shown(key)))),
            };
            if repeated {
                return Err(self.fault(format!("the key {} twice", shown(key))));
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.fault("something after the dictionary"));
        }
        let (Some(number), Some(by_column), Some([rows, dims])) = (number, by_column, extent)
        else {
            return Err(self.fault("expected the keys descr, fortran_order and shape"));
        };
        if by_column {
            return Err(Refusal::Unsupported(
                "an array in Fortran order (by column); store numpy.ascontiguousarray of it".into(),
            ));
        }
        Ok(Shape { number, rows, dims })
    }

    fn number(&mut self) -> Result<Number, Refusal> {
        if self.peek() == Some(b'[') {
            return Err(Refusal::Unsupported("an array of records; store plain numbers".into()));
        }
        match self.string()? {
            b"<f2" => Ok(Number::F16),
            b"<f4" => Ok(Number::F32),
            b"<f8" => Ok(Number::F64),
            b"|O" | b"O" => Err(Refusal::Unsupported(
                "an array of Python objects, which are pickled programs; store it as float32"
                    .into(),
            )),
            other => Err(Refusal::Unsupported(format!(
                "numbers of the kind {}; only <f2, <f4 and <f8 are read, so store it as float32",
                shown(other)
            ))),
        }
    }

    fn truth(&mut self) -> Result<bool, Refusal> {
        self.peek();
        for (name, value) in [(b"True".as_slice(), true), (b"False", false)] {
            if self.text[self.at..].starts_with(name) {
                self.at += name.len();
                return Ok(value);
            }
        }
        Err(self.fault("expected True or False"))
    }

    fn extent(&mut self) -> Result<[u64; 2], Refusal> {
        let (mut extent, mut axes) = ([0; 2], 0);
        self.expect(b'(')?;
        while !self.accept(b')') {
            let length = self.integer()?;
            if let Some(slot) = extent.get_mut(axes) {
                *slot = length;
            }
            axes += 1;
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        if axes == 2 {
            return Ok(extent);
        }
        Err(Refusal::Unsupported(format!("an array of {axes} dimensions; a matrix has 2")))
    }

    fn integer(&mut self) -> Result<u64, Refusal> {
        self.peek();
        let from = self.at;
        let digits = self.text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.text[from..from + digits];
        let Some(number) = std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok())
        else {
            return Err(self.fault("expected a length below 2^64"));
        };
        self.at += digits;
        // Python 2 wrote long integers with this suffix.
        self.accept(b'L');
        Ok(number)
    }

    fn string(&mut self) -> Result<&'h [u8], Refusal> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.fault("expected a string"));
        };
        let text = &self.text[self.at + 1..];
        match text.iter().position(|&byte| byte == quote) {
            Some(length) if !text[..length].contains(&b'\\') => {
                self.at += length + 2;
                Ok(&text[..length])
            }
            _ => Err(self.fault("a string without end, or with an escape")),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Refusal> {
        if self.accept(byte) {
            return Ok(());
        }
        Err(self.fault(format!("expected `{}`", char::from(byte))))
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The next byte after any blanks, which is not consumed.
    fn peek(&mut self) -> Option<u8> {
        let blanks = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
        self.text.get(self.at).copied()
    }

    fn fault(&self, problem: impl Into<String>) -> Refusal {
        let found = shown(&self.text[self.at..]);
        let problem = format!("in the header: {}, found {found}", problem.into());
        Refusal::Malformed { at: self.at, problem }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::readers::matrix::{Number, Shape};
    use crate::readers::tests::{bytes, says};

    fn file(version: u8, dictionary: &str, data: usize) -> Vec<u8> {
        let mut file = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
        let length = dictionary.len() as u32;
        match version {
            1 => file.extend((length as u16).to_le_bytes()),
            _ => file.extend(length.to_le_bytes()),
        }
        file.extend(dictionary.bytes());
        file.resize(file.len() + data, 0);
        file
    }

    fn refusal(version: u8, dictionary: &str, data: usize) -> String {
        find_matrix(&mut bytes(file(version, dictionary, data))).unwrap_err().to_string()
    }

    #[test]
    fn all_three_versions_and_kinds_of_numbers_are_read() {
        for version in 1..=3 {
            for (descr, number, size) in
                [("<f2", Number::F16, 2), ("<f4", Number::F32, 4), ("<f8", Number::F64, 8)]
            {
                let dictionary = format!(
                    "{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 2), }}   \n"
                );
                let mut input = bytes(file(version, &dictionary, 6 * size));
                let shape = find_matrix(&mut input).unwrap();
                assert_eq!(shape, Shape { number, rows: 3, dims: 2 });
                assert_eq!(input.bytes_left(), Some(6 * size as u64), "the numbers are next");
            }
        }
    }

    #[test]
    fn spellings_that_other_writers_use_mean_the_same() {
        for dictionary in [
            "{\"shape\":(3L,2L),\"fortran_order\":False,\"descr\":\"<f4\"}",
            " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 3 , 2 , ) , } ",
        ] {
            assert!(find_matrix(&mut bytes(file(1, dictionary, 24))).is_ok(), "{dictionary}");
        }
    }

    #[test]
    fn other_arrays_are_refused_with_a_way_out() {
        let with = |descr: &str, order: &str, shape: &str| {
            let dictionary =
                format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}");
            refusal(1, &dictionary, 24)
        };
        says(&with("'|O'", "False", "(3, 2)"), &["Python objects", "float32"]);
        says(&with("'>f4'", "False", "(3, 2)"), &["`>f4`", "<f4"]);
        says(&with("'<i4'", "False", "(3, 2)"), &["`<i4`"]);
        says(&with("[('a', '<f4')]", "False", "(3, 2)"), &["records"]);
        says(&with("'<f4'", "True", "(3, 2)"), &["Fortran", "ascontiguousarray"]);
        says(&with("'<f4'", "False", "(6,)"), &["1 dimensions"]);
        says(&with("'<f4'", "False", "()"), &["0 dimensions"]);
        says(&with("'<f4'", "False", "(3, 2, 1)"), &["3 dimensions"]);
        let zip = find_matrix(&mut bytes("PK\x03\x04 and more")).unwrap_err().to_string();
        says(&zip, &["zip", "unpack"]);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"\x93NUMPY").unwrap();
        let packed = find_matrix(&mut bytes(packed.finish().unwrap())).unwrap_err().to_string();
        says(&packed, &["gzip", "unpack"]);
    }

    #[test]
    fn headers_outside_the_grammar_are_named_by_their_byte() {
        let good = "'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)";
        for (dictionary, parts) in [
            (String::new(), ["byte 10", "expected `{`"]),
            ("{".into(), ["byte 11", "expected a string"]),
            (format!("{{{good}"), ["byte 66", "expected `}`"]),
            (format!("{{{good}}} evil()"), ["byte 68", "after the dictionary, found `evil()`"]),
            (format!("{{{good}, {good}}}"), ["byte 82", "the key `descr` twice"]),
            (format!("{{{good}, 'more': 1}}"), ["byte 75", "the unknown key `more`"]),
            ("{'descr': '<f4'}".into(), ["byte 26", "expected the keys"]),
            ("{'descr': eval('<f4')}".into(), ["byte 20", "expected a string, found `eval("]),
            ("{'descr': '<f4".into(), ["byte 20", "without end"]),
            ("{'d\\x65scr': '<f4'}".into(), ["byte 11", "escape"]),
            ("{'fortran_order': 0}".into(), ["byte 28", "True or False"]),
            ("{'shape': (-3, 2)}".into(), ["byte 21", "a length below 2^64, found `-3"]),
            ("{'shape': (99999999999999999999, 2)}".into(), ["byte 21", "a length below 2^64"]),
            ("{'shape': 3}".into(), ["byte 20", "expected `(`"]),
        ] {
            says(&refusal(1, &dictionary, 24), &parts);
        }
        says(&refusal(4, "{}", 0), &["version 4.0"]);
        let text = find_matrix(&mut bytes("2 2\nthe 1 2\n")).unwrap_err().to_string();
        says(&text, &["byte 0", "magic"]);
    }

    #[test]
    fn lengths_are_checked_before_anything_is_reserved() {
        let mut long = file(2, "", 0);
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let long = find_matrix(&mut bytes(long)).unwrap_err().to_string();
        says(&long, &["4294967295 bytes, more than 65536"]);
        for shape in
            ["(3, 3)", "(1, 2)", "(1000000000000000000, 1000000000)", "(4294967296, 4294967296)"]
        {
            let dictionary =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
            says(&refusal(1, &dictionary, 24), &["promises", "24 bytes that follow"]);
        }
        let whole = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", 24);
        for length in 0..whole.len() {
            assert!(find_matrix(&mut bytes(&whole[..length])).is_err(), "cut after {length} bytes");
        }
    }
}
