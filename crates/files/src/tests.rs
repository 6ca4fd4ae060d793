//! Files are read to their end, unpacked or not; what is no file, or too long, is refused.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::ReadError;
use crate::input::Input;

fn bytes(bytes: impl AsRef<[u8]>) -> Input {
    Input::from_bytes("memory", bytes.as_ref().to_vec()).unwrap()
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

fn lines(mut input: Input) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut lines = Vec::new();
    while let Some(line) = input.read_line_bounded(1 << 20)? {
        lines.push(line.to_vec());
    }
    Ok(lines)
}

#[test]
fn packed_files_read_like_plain_ones_whatever_they_are_called() {
    let text: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
    let plain = lines(bytes(&text)).unwrap();
    assert_eq!(plain.len(), 100_000);
    let folder = tempfile::tempdir().unwrap();
    for (packing, packed) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
        let path = folder.path().join("renamed.txt");
        std::fs::write(&path, &packed).unwrap();
        let mut input = Input::open(&path).unwrap();
        assert_eq!((input.packing(), input.bytes_left()), (Some(packing), None));
        assert_eq!(input.progress().1, packed.len() as u64, "counted as the file is stored");
        input.read_line_bounded(99).unwrap();
        let (early, total) = input.progress();
        assert!(early > 0 && early <= total);
        while input.read_line_bounded(99).unwrap().is_some() {}
        assert_eq!(input.progress(), (total, total), "{packing} is used up to its last byte");
        assert_eq!(lines(Input::open(&path).unwrap()).unwrap(), plain);
    }
}

#[test]
fn several_packed_parts_in_one_file_are_one_text() {
    let gz = [gzip(b"one\n"), gzip(b"two\n")].concat();
    let skippable = b"\x5e\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    let zst = [skippable.clone(), zstd(b"one\n"), skippable, zstd(b"two\n")].concat();
    for packed in [gz, zst] {
        assert_eq!(lines(bytes(&packed)).unwrap(), [b"one", b"two"]);
    }
}

#[test]
fn a_packed_file_cut_anywhere_is_named_as_damaged() {
    for (name, packed) in [("gzip", gzip(b"one\ntwo\n")), ("zstd", zstd(b"one\ntwo\n"))] {
        for length in 4..packed.len() {
            let fault = lines(bytes(&packed[..length])).unwrap_err().to_string();
            says(&fault, &["memory, byte", "damaged", name]);
        }
    }
}

#[test]
fn a_zstd_frame_that_would_take_much_memory_is_refused_with_a_way_out() {
    // Descriptor 0, then a window of 2^(10 + 17) bytes; 2^(10 + 13) is the most.
    let fault = lines(bytes(b"\x28\xb5\x2f\xfd\x00\x88")).unwrap_err().to_string();
    says(&fault, &["zstd", "134217728", "8388608", "-19"]);
}

#[test]
fn folders_devices_and_pipes_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo makes a pipe");
    for path in [folder.path(), Path::new("/dev/zero"), &pipe] {
        let Err(refusal) = Input::open(path) else { panic!("{path:?} was opened") };
        assert!(matches!(refusal, ReadError::Unsupported { .. }), "{refusal}");
        says(&refusal.to_string(), &["not a regular file"]);
    }
    let missing = Input::open(&folder.path().join("missing")).err();
    assert!(matches!(missing, Some(ReadError::Io { .. })));
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let mut input = bytes("four\r\nfour\nfive5\nx");
    for _ in 0..2 {
        assert_eq!(input.read_line_bounded(4).unwrap(), Some(b"four".as_slice()));
    }
    assert_eq!(input.peek_line(4).unwrap(), None);
    let fault = input.read_line_bounded(4).unwrap_err().to_string();
    assert_eq!(fault, "memory, line 3: the line is longer than 4 bytes");
    assert_eq!(input.read_line_bounded(5).unwrap(), Some(b"five5".as_slice()));
    assert_eq!(input.peek_line(5).unwrap(), Some(b"x".as_slice()));
    assert_eq!(input.read_line_bounded(5).unwrap(), Some(b"x".as_slice()), "without line end");
    assert_eq!(input.read_line_bounded(5).unwrap(), None);
    assert_eq!(input.lines(), 4);
}

#[test]
fn short_bytes_are_named_by_their_offset() {
    let mut input = bytes("word rest");
    assert_eq!(input.read_until(b' ', 4, "a word").unwrap(), b"word");
    let fault = input.read_exact(5, "numbers").unwrap_err().to_string();
    assert_eq!(fault, "memory, byte 5: expected 5 bytes of numbers, found 4");
    let fault = input.read_until(b' ', 3, "a word").unwrap_err().to_string();
    assert_eq!(fault, "memory, byte 5: a word is not ended within 3 bytes");
    let fault = input.read_until(b' ', 4, "a word").unwrap_err().to_string();
    assert_eq!(fault, "memory, byte 5: the file ends 4 bytes into a word");
    input.skip(3).unwrap();
    assert_eq!(input.read_exact(1, "a letter").unwrap(), b"t");
    assert!(input.skip(1).is_err());
}

#[test]
fn bytes_are_passed_over_in_plain_and_in_packed_files() {
    let text: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    for stored in [text.clone(), gzip(&text), zstd(&text)] {
        let mut input = bytes(&stored);
        input.read_exact(10, "the beginning").unwrap();
        input.skip(900_000).unwrap();
        assert_eq!(input.position(), 900_010);
        assert_eq!(input.read_exact(9, "the end").unwrap(), &text[900_010..900_019]);
        assert!(input.skip(u64::MAX).is_err());
    }
}

/// Whether nothing was read, a part, passed over or all: the digest is that of the stored bytes.
#[test]
fn a_file_has_one_digest_however_much_of_it_was_read() {
    let text: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    for stored in [text.clone(), gzip(&text), zstd(&text)] {
        let expected = blake3::hash(&stored).to_hex();
        let uses: [fn(&mut Input); 4] = [
            |_| {},
            |input| assert_eq!(input.read_exact(300_000, "a part").unwrap().len(), 300_000),
            |input| input.skip(700_000).unwrap(),
            |input| input.skip(1_000_000).unwrap(),
        ];
        for used in uses {
            let mut input = bytes(&stored);
            used(&mut input);
            assert_eq!(input.digest().unwrap(), expected.as_str());
            assert!(input.peek(1).unwrap().is_empty(), "nothing is left to read");
        }
    }
}

proptest! {
    #[test]
    fn lines_come_back_as_they_were_split(
        parts in prop::collection::vec("[a-z\u{85}\u{a0}]{0,300}", 0..40),
        ended in any::<bool>(),
    ) {
        let mut text = parts.join("\n");
        let mut expected: Vec<Vec<u8>> = parts.into_iter().map(String::into_bytes).collect();
        if ended {
            text.push('\n');
            expected = if expected.is_empty() { vec![vec![]] } else { expected };
        } else if expected.last().is_some_and(Vec::is_empty) {
            expected.pop();
        }
        prop_assert_eq!(lines(bytes(&text)).unwrap(), expected.clone());
        prop_assert_eq!(lines(bytes(gzip(text.as_bytes()))).unwrap(), expected);
    }
}
