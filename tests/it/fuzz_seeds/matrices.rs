//! Seeds for matrices without words: NumPy's and safetensors.

use super::Seed;

const NUMBERS: [u8; 24] = [0x3f; 24];

fn npy(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut file = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    match version {
        1 => file.extend((dictionary.len() as u16).to_le_bytes()),
        _ => file.extend((dictionary.len() as u32).to_le_bytes()),
    }
    file.extend(dictionary.bytes());
    file.extend(data);
    file
}

fn npy_seeds() -> Vec<Seed> {
    let array = |descr: &str, order: &str, shape: &str| {
        npy(
            1,
            &format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}   \n"),
            &NUMBERS,
        )
    };
    let plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    let mut length = npy(2, "", b"");
    length[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let named = [
        ("singles", array("'<f4'", "False", "(3, 2)")),
        ("halves", array("'<f2'", "False", "(6, 2)")),
        ("doubles", array("'<f8'", "False", "(3, 1)")),
        ("version-2", npy(2, plain, &NUMBERS)),
        ("version-3", npy(3, plain, &NUMBERS)),
        ("version-4", npy(4, plain, &NUMBERS)),
        (
            "python-2",
            npy(1, "{\"shape\":(3L,2L),\"fortran_order\":False,\"descr\":\"<f4\"}", &NUMBERS),
        ),
        ("by-column", array("'<f4'", "True", "(3, 2)")),
        ("objects", array("'|O'", "False", "(3, 2)")),
        ("records", array("[('a', '<f4')]", "False", "(3, 2)")),
        ("big-endian", array("'>f4'", "False", "(3, 2)")),
        ("one-axis", array("'<f4'", "False", "(6,)")),
        ("three-axes", array("'<f4'", "False", "(3, 2, 1)")),
        ("no-axes", array("'<f4'", "False", "()")),
        ("no-rows", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2)}", b"")),
        ("no-columns", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0)}", b"")),
        ("shape-absurd", array("'<f4'", "False", "(1000000000000000000, 1000000000)")),
        ("shape-wrapping", array("'<f4'", "False", "(4294967296, 4294967296)")),
        ("shape-overflow", array("'<f4'", "False", "(99999999999999999999, 2)")),
        ("shape-negative", array("'<f4'", "False", "(-3, 2)")),
        ("key-twice", npy(1, "{'descr': '<f4', 'descr': '<f4'}", &NUMBERS)),
        ("key-unknown", npy(1, "{'descr': '<f4', 'more': 1}", &NUMBERS)),
        ("code", npy(1, "{'descr': eval('<f4')}", &NUMBERS)),
        ("no-end", npy(1, "{'descr': '<f4", &NUMBERS)),
        ("header-beyond", length),
        ("zip", b"PK\x03\x04 and more".to_vec()),
        ("cut", npy(1, plain, &NUMBERS[..20])),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("import_npy", name, file)).into()
}

fn tensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn tensor(name: &str, dtype: &str, shape: &str, from: u64, to: u64) -> String {
    format!("\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{from},{to}]}}")
}

fn safetensors_seeds() -> Vec<Seed> {
    let one = |dtype: &str, shape: &str, from: u64, to: u64| {
        tensors(&format!("{{{}}}", tensor("vectors", dtype, shape, from, to)), &NUMBERS)
    };
    let many = |list: &[String]| tensors(&format!("{{{}}}", list.join(",")), &NUMBERS);
    let named = [
        ("singles", one("F32", "[3,2]", 0, 24)),
        ("halves", one("F16", "[6,2]", 0, 24)),
        ("brain-halves", one("BF16", "[4,3]", 0, 24)),
        ("doubles", one("F64", "[3,1]", 0, 24)),
        ("bytes", one("I8", "[12,2]", 0, 24)),
        ("unknown-numbers", one("X9", "[12,2]", 0, 24)),
        ("one-axis", one("F32", "[6]", 0, 24)),
        ("no-rows", one("F32", "[0,2]", 24, 24)),
        ("no-columns", one("F32", "[3,0]", 24, 24)),
        ("shape-absurd", one("F32", "[1000000000000000000,1000000000]", 0, 24)),
        ("shape-wrapping", one("F32", "[4294967296,4294967296]", 0, 24)),
        ("shape-overflow", one("F32", "[99999999999999999999,2]", 0, 24)),
        ("shape-negative", one("F32", "[-3,2]", 0, 24)),
        ("offsets-reversed", one("F32", "[3,2]", 24, 0)),
        ("offsets-beyond", one("F32", "[3,2]", 0, u64::MAX)),
        ("offsets-late", one("F32", "[2,2]", 8, 24)),
        (
            "several",
            many(&[
                tensor("bias", "F32", "[2]", 0, 8),
                tensor("embeddings", "F32", "[2,2]", 8, 24),
            ]),
        ),
        (
            "nameless",
            many(&[tensor("a", "F32", "[1,2]", 0, 8), tensor("b", "F32", "[2,2]", 8, 24)]),
        ),
        (
            "twice",
            many(&[
                tensor("vectors", "F32", "[3,2]", 0, 24),
                tensor("vectors", "F32", "[3,2]", 0, 24),
            ]),
        ),
        (
            "overlap",
            many(&[tensor("a", "F32", "[3,2]", 0, 24), tensor("vectors", "F32", "[2,2]", 0, 16)]),
        ),
        (
            "metadata",
            many(&[
                "\"__metadata__\":{\"k\":\"v\"}".into(),
                tensor("vectors", "F32", "[3,2]", 0, 24),
            ]),
        ),
        ("nested", tensors(&"{\"a\":[".repeat(100), &NUMBERS)),
        ("no-json", tensors("{nonsense}", &NUMBERS)),
        ("no-tensors", tensors("{}", b"")),
        ("header-beyond", [&u64::MAX.to_le_bytes()[..], b"{}"].concat()),
        ("header-cut", vec![2, 0, 0]),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("import_safetensors", name, file)).into()
}

pub(super) fn seeds() -> Vec<Seed> {
    [npy_seeds(), safetensors_seeds()].concat()
}
