//! Model files that break one rule each are refused by the name of the rule.

use cognate::model::{FormatError, Model, ModelError};
use cognate_testing as support;
use cognate_testing::allocation;
use cognate_testing::breaches::{BREACHES, Crafted, raw};

fn refusal(bytes: &[u8]) -> FormatError {
    let (opened, peak) = allocation::peak_of(|| Model::from_bytes(bytes, &support::full()));
    assert!(peak <= 2 * bytes.len() as u64 + (16 << 20), "{peak} bytes held for {}", bytes.len());
    match opened {
        Err(ModelError::Format { source, .. }) => source,
        Err(other) => panic!("expected a format error, got {other}"),
        Ok(_) => panic!("a broken file was accepted"),
    }
}

#[test]
fn the_crafted_file_is_sound_until_it_is_broken() {
    Model::from_bytes(&Crafted::tiny().bytes(true), &support::full()).unwrap();
}

#[test]
fn every_broken_rule_is_refused_by_name() {
    for (what, breach, expected) in BREACHES {
        let mut crafted = Crafted::tiny();
        breach(&mut crafted);
        let error = refusal(&crafted.bytes(true));
        assert!(expected(&error), "{what}: {error:?}");
        assert!(error.to_string().len() < 600, "{what}: {error}");
    }
}

#[test]
fn a_header_that_is_no_header_is_refused() {
    let data = [0_u8; 64];
    let long_key = "k".repeat(100_000);
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("zeros", vec![0; 256]),
        ("length u64::MAX", [&u64::MAX.to_le_bytes()[..], &data].concat()),
        ("length 2^63", [&(1_u64 << 63).to_le_bytes()[..], &data].concat()),
        ("length beyond the file", [&120_u64.to_le_bytes()[..], &data].concat()),
        ("length off by one", [&57_u64.to_le_bytes()[..], &data].concat()),
        ("an ELF file", [&b"\x7fELF\x02\x01\x01\0"[..], &data].concat()),
        ("no JSON", raw("hello", &data)),
        ("a list", raw("[1,2,3]", &data)),
        ("an open brace", raw("{", &data)),
        ("a deep nest", raw(&format!("{{\"a\":{}", "[".repeat(60_000)), &data)),
        ("empty", raw("{}", &data)),
        ("a key twice", raw("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", &data)),
        ("metadata twice", raw("{\"__metadata__\":{},\"__metadata__\":{}}", &data)),
        (
            "a long key twice",
            raw(
                &format!("{{\"__metadata__\":{{\"{long_key}\":\"\",\"{long_key}\":\"\"}}}}"),
                &data,
            ),
        ),
        ("metadata of numbers", raw("{\"__metadata__\":{\"dim\":3}}", &data)),
        (
            "an unknown field",
            raw(
                "{\"vectors\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}",
                &data,
            ),
        ),
        (
            "a negative shape",
            raw("{\"vectors\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", &data),
        ),
        (
            "a fractional offset",
            raw("{\"vectors\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.5]}}", &data),
        ),
        ("two mebibytes of spaces", raw(&format!("{{}}{}", " ".repeat(2 << 20)), &data)),
    ];
    for (what, bytes) in table {
        let error = refusal(&bytes);
        assert!(error.to_string().len() < 600, "{what}: {error}");
    }
    let off_by_one = refusal(&[&57_u64.to_le_bytes()[..], &data].concat());
    assert!(matches!(off_by_one, FormatError::HeaderLength { .. }), "{off_by_one}");
    let tensor = "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
    let tensors = format!("{{{tensor},{tensor}}}");
    for (name, header) in [
        ("a", "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"),
        ("__metadata__", "{\"__metadata__\":{},\"__metadata__\":{}}"),
        ("t", tensors.as_str()),
    ] {
        assert_eq!(refusal(&raw(header, &data)), FormatError::Duplicate { name: name.to_owned() });
    }
}

#[test]
fn tables_that_would_lead_a_look_up_astray_are_refused_by_structure_alone() {
    for (what, breach, _) in BREACHES {
        let mut crafted = Crafted::tiny();
        breach(&mut crafted);
        let bytes = crafted.bytes(true);
        // Only a look-up of every word tells this one.
        let is_sound = *what == "a word that is not where it is looked for";
        if matches!(refusal(&bytes), FormatError::Vocabulary { .. }) {
            let opened = Model::from_bytes(&bytes, &support::structure());
            assert_eq!(opened.is_ok(), is_sound, "{what}");
        }
    }
}

#[test]
fn a_header_without_its_own_digest_is_refused() {
    let mut bytes = Crafted::tiny().bytes(true);
    let key = b"\"b3.header\"";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at..at + key.len()].copy_from_slice(b"\"b3.heade_\"");
    let error = refusal(&bytes);
    assert!(matches!(&error, FormatError::Digest { name, .. } if name == "header"), "{error}");
}

#[test]
fn a_wrong_digest_names_what_is_damaged() {
    let mut crafted = Crafted::tiny();
    crafted.data_of("vectors")[0] ^= 1;
    let error = refusal(&crafted.bytes(false));
    assert!(matches!(&error, FormatError::Digest { name, .. } if name == "vectors"), "{error}");
}

#[test]
fn rows_that_were_not_checked_are_known_to_be_unsound() {
    let mut crafted = Crafted::tiny();
    // The scale of the second word.
    crafted.data_of("scales")[4..8].copy_from_slice(&1e16_f32.to_le_bytes());
    let model = Model::from_bytes(&crafted.bytes(true), &support::structure()).unwrap();
    let is_sound = |text: &str| model.phrase(text).has_sound_rows();
    assert!(is_sound("the city") && is_sound(""));
    assert!(!is_sound("quake") && !is_sound("the quake"));
}
