//! Damaged model files: cut short at every byte, and with single bits turned over.

use std::os::unix::fs::FileExt;

use cognate::model::format::Dtype;
use cognate::model::{Model, Phrase};
use cognate_testing as support;
use cognate_testing::Chance;

/// Whatever a damaged model accepted by its structure gives out must be within bounds.
fn touch(model: &Model) {
    let vocabulary = model.vocabulary();
    for id in 0..vocabulary.len() as u32 + 2 {
        let _ = (vocabulary.word(id), vocabulary.idf(Some(id)), vocabulary.probability(id));
        let _ = model.vectors().row(id);
    }
    let mut phrase = Phrase::new(model);
    phrase.read("The quakes hit O'Neill's new city xyzzy!");
    let mut sum = vec![0.0; model.dims()];
    for &word in phrase.words() {
        cognate_kernels::vector::add_scaled(&mut sum, 1.0, phrase.row(word));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::I8] {
        let bytes = support::tiny(dtype);
        for length in 0..bytes.len() {
            for options in [support::full(), support::structure()] {
                let opened = Model::from_bytes(&bytes[..length], &options);
                assert!(opened.is_err(), "{length} of {} bytes were accepted", bytes.len());
            }
        }
        Model::from_bytes(&bytes, &support::full()).unwrap();
    }
}

#[test]
fn every_turned_bit_is_found_by_full_verification() {
    let seed = 20_261_121;
    println!("seed {seed}");
    let mut chance = Chance(seed);
    let bytes = support::tiny(Dtype::F16);
    let mut damaged = bytes.clone();
    for round in 0..100_000 {
        let (place, bit) = (chance.below(bytes.len()), chance.below(8));
        damaged[place] ^= 1 << bit;
        let opened = Model::from_bytes(&damaged, &support::full());
        assert!(opened.is_err(), "round {round}: bit {bit} of byte {place} went unseen");
        damaged[place] = bytes[place];
    }
}

#[test]
fn a_turned_bit_seen_by_structure_alone_harms_nobody() {
    let mut chance = Chance(7);
    for dtype in [Dtype::F32, Dtype::I8] {
        let bytes = support::tiny(dtype);
        let mut damaged = bytes.clone();
        let mut accepted = 0;
        for _ in 0..20_000 {
            let (place, bit) = (chance.below(bytes.len()), chance.below(8));
            damaged[place] ^= 1 << bit;
            if let Ok(model) = Model::from_bytes(&damaged, &support::structure()) {
                accepted += 1;
                touch(&model);
            }
            damaged[place] = bytes[place];
        }
        assert!(accepted > 1000, "only {accepted} of 20,000: is the structure check reading all?");
    }
}

#[test]
fn a_turned_bit_is_found_in_a_mapped_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, support::tiny(Dtype::F32)).unwrap();
    let options = support::full();
    Model::open(&path, &options).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut chance = Chance(11);
    for round in 0..support::rounds(4, 1000) {
        let (place, bit) = (chance.below(length as usize) as u64, chance.below(8));
        let mut byte = [0];
        file.read_exact_at(&mut byte, place).unwrap();
        file.write_all_at(&[byte[0] ^ 1 << bit], place).unwrap();
        let opened = Model::open(&path, &options);
        assert!(opened.is_err(), "round {round}: bit {bit} of byte {place} went unseen");
        file.write_all_at(&byte, place).unwrap();
    }
}
