//! Which tensor of a foreign file is taken, and that its header is believed in nothing.

use super::{all, bytes, row, says};
use crate::readers::Budget;
use crate::readers::matrix::{MatrixReader, Number, Shape};
use crate::readers::safetensors::find_matrix;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A header of tensors (name, kind, shape, bytes), one behind the other.
fn tensors(list: &[(&str, &str, &str, usize)]) -> Vec<u8> {
    let mut end = 0;
    let entries: Vec<String> = list
        .iter()
        .map(|(name, kind, shape, bytes)| {
            let begin = end;
            end += bytes;
            format!(
                r#""{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":[{begin},{end}]}}"#
            )
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    file(&header, &(0..end).map(|at| at as u8).collect::<Vec<u8>>())
}

fn refusal(file: Vec<u8>, tensor: Option<&str>) -> String {
    find_matrix(&mut bytes(file), tensor).unwrap_err().to_string()
}

#[test]
fn the_matrix_is_found_by_name_by_custom_or_by_being_the_only_one() {
    let list = [
        ("bias", "F32", "[2]", 8),
        ("embeddings", "F16", "[2,3]", 12),
        ("other", "BF16", "[4,1]", 8),
        ("vectors", "F32", "[1,2]", 8),
    ];
    let find = |list: &[_], tensor| {
        let mut input = bytes(tensors(list));
        let shape = find_matrix(&mut input, tensor).unwrap();
        (shape, input.read_exact(1, "a byte").unwrap()[0])
    };
    let shape = |number, rows, dims| Shape { number, rows, dims };
    assert_eq!(find(&list, None), (shape(Number::F32, 1, 2), 28));
    assert_eq!(find(&list[..3], None), (shape(Number::F16, 2, 3), 8));
    assert_eq!(find(&list[2..3], None), (shape(Number::Bf16, 4, 1), 0));
    assert_eq!(find(&list, Some("other")), (shape(Number::Bf16, 4, 1), 20));
}

#[test]
fn rows_are_read_with_their_words() {
    let header =
        r#"{"__metadata__":{"of":"x"},"w":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}"#;
    let halves = [0x3c00_u16, 0xc000, 0x3800, 0x7e00].map(u16::to_le_bytes).concat();
    let mut input = bytes(file(header, &halves));
    let shape = find_matrix(&mut input, None).unwrap();
    let rows = all(MatrixReader::new(input, bytes("the\nof\n"), shape, Budget::DEFAULT)).unwrap();
    assert_eq!(rows[0], row("the", &[1.0, -2.0]));
    assert!(rows[1].1[0] == 0.5 && rows[1].1[1].is_nan());
}

#[test]
fn a_file_without_one_clear_matrix_says_what_it_holds() {
    let one = ("bias", "F32", "[2]", 8);
    says(&refusal(tensors(&[one]), None), &["no tensor is a matrix", "`bias`"]);
    says(&refusal(tensors(&[one]), Some("bias")), &["`bias` has 1 dimensions"]);
    says(&refusal(tensors(&[one]), Some("else")), &["no tensor is called `else`", "`bias`"]);
    let two = [("a", "F32", "[1,2]", 8), ("b", "F32", "[1,2]", 8)];
    says(&refusal(tensors(&two), None), &["several", "`a`, `b`"]);
    for (kind, bytes) in [("I8", 2), ("F64", 16), ("U16", 4)] {
        let file = tensors(&[("vectors", kind, "[1,2]", bytes)]);
        says(&refusal(file, None), &["`vectors`", kind, "F32, F16 and BF16"]);
    }
    let twice = [("vectors", "F32", "[1,2]", 8), ("vectors", "F32", "[1,2]", 8)];
    says(&refusal(tensors(&twice), None), &["byte 8", "twice"]);
    let many: Vec<String> = (0..20).map(|index| format!("bias{index}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "F32", "[1]", 4)).collect();
    says(&refusal(tensors(&many), None), &["`bias7`, and 12 more"]);
}

#[test]
fn a_header_is_measured_against_the_file_before_it_is_read() {
    for length in [u64::MAX, 1 << 60, 100_000_001, 50_000_000, 3] {
        let file = [length.to_le_bytes().as_slice(), b"{}"].concat();
        says(&refusal(file, None), &["byte 0", "a header of", "2 follow"]);
    }
    says(&refusal(vec![2, 0, 0], None), &["expected 8 bytes of the header's length, found 3"]);
    says(&refusal(file("{nonsense}", b""), None), &["byte 8", "the header"]);
    for shape in ["[1000000000000000000,1000000000]", "[1,3]", "[-1,2]"] {
        says(&refusal(tensors(&[("vectors", "F32", shape, 8)]), None), &["byte 8", "the header"]);
    }
    let mut long = tensors(&[("vectors", "F32", "[1,2]", 8)]);
    long.push(0);
    says(&refusal(long.clone(), None), &["8 bytes of tensors, 9 follow"]);
    long.truncate(long.len() - 2);
    says(&refusal(long, None), &["8 bytes of tensors, 7 follow"]);
}
