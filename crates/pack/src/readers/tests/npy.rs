//! The header grammar of `.npy`: what NumPy writes is read, everything else is refused by name.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{bytes, says};
use crate::readers::matrix::{Number, Shape};
use crate::readers::npy::find_matrix;

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
            let dictionary =
                format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 2), }}   \n");
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
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        says(&refusal(1, &dictionary, 24), &["promises", "24 bytes that follow"]);
    }
    let whole = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}", 24);
    for length in 0..whole.len() {
        assert!(find_matrix(&mut bytes(&whole[..length])).is_err(), "cut after {length} bytes");
    }
}
