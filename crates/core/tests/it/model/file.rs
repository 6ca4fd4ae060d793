//! The model file: what is written comes back, and what is wrong is refused by name.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

use cognate::model::format::Dtype;
use cognate::model::phrase::Found;
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Table};
use cognate::model::{FileState, Model, ModelError, OpenOptions, Storage, Verify};
use cognate_testing as support;

#[test]
fn what_is_written_comes_back() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::I8] {
        let bytes = support::tiny(dtype);
        let model = Model::from_bytes(&bytes, &support::full()).unwrap();
        // The safetensors readers of our users must accept every file that we accept.
        let others = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        for (tensor, bytes) in model.tensors() {
            assert_eq!(others.tensor(&tensor.name).unwrap().data(), bytes, "{}", tensor.name);
        }
        let vocabulary = model.vocabulary();
        assert_eq!(vocabulary.words().collect::<Vec<_>>(), support::WORDS);
        assert_eq!(model.dtype(), dtype);
        assert_eq!(vocabulary.counts.unwrap()[1], 500);
        assert_eq!(vocabulary.idf(None), Some(8.5));
        let mut row = vec![0.0; support::DIMS];
        for (id, word) in support::WORDS.iter().enumerate() {
            assert_eq!(vocabulary.lookup(word), Some(id as u32));
            model.vectors().row(id as u32).unwrap().copy_to(&mut row);
            let step = if dtype == Dtype::I8 { 1.0 / 40.0 } else { 1e-3 };
            for (got, expected) in row.iter().zip(support::row_of(word)) {
                assert!((got - expected).abs() <= step, "{word}: {got} for {expected}");
            }
        }
        assert_eq!(vocabulary.lookup("absent"), None);
        assert_eq!(model.sections(), ["example"].into());
        let section = model.section("example").unwrap();
        assert_eq!(section.settings, "{\"kind\":\"test\"}");
        assert_eq!(section.floats("weights"), Some(&[0.9, 0.5, 0.2][..]));
    }
}

#[test]
fn packing_twice_gives_the_same_bytes_and_a_change_another_fingerprint() {
    assert_eq!(support::tiny(Dtype::F32), support::tiny(Dtype::F32));
    let fingerprint = |dtype| {
        let model = Model::from_bytes(&support::tiny(dtype), &support::full()).unwrap();
        model.fingerprint().to_owned()
    };
    assert_eq!(fingerprint(Dtype::F32).len(), 16);
    assert_ne!(fingerprint(Dtype::F32), fingerprint(Dtype::F16));
}

#[test]
fn a_section_is_added_without_touching_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let model = support::tiny_model();
    let axes = [0.25_f32; 40];
    let mut draft = Draft::from_model(&model);
    let tables = vec![
        Table::new("axes", Dtype::F32, &[2, 20], &axes),
        Table::new::<f32>("none", Dtype::F32, &[0], &[]),
    ];
    draft.set_section("components", "{\"sentences\":9}".to_owned(), tables);
    let written = draft.write(&path).unwrap();
    for storage in [Storage::Map, Storage::Copy] {
        let options = OpenOptions { storage, ..support::full() };
        let extended = Model::open(&path, &options).unwrap();
        assert_eq!(extended.fingerprint(), written.fingerprint);
        assert_eq!(extended.digest(), written.digest);
        assert_eq!(extended.sections(), ["components", "example"].into());
        assert_eq!(extended.section("components").unwrap().floats("axes"), Some(&axes[..]));
        assert_eq!(extended.section("components").unwrap().floats("none"), Some(&[][..]));
        assert_eq!(extended.vocabulary().words().count(), support::WORDS.len());
        let old: BTreeMap<_, _> = model.tensors().map(|(t, bytes)| (&t.name, bytes)).collect();
        for (tensor, bytes) in extended.tensors().filter(|(t, _)| !t.name.contains("components")) {
            assert_eq!(old[&tensor.name], bytes, "{}", tensor.name);
        }
    }
    let digest = blake3::hash(&std::fs::read(&path).unwrap()).to_hex();
    assert_eq!(written.digest, digest.as_str());
}

#[test]
fn a_text_is_looked_up_with_the_rules_of_the_model() {
    let model = support::tiny_model();
    let phrase = model.phrase("Quakes hit O'Neill's CITY, 2024");
    let words = phrase.origins().zip(phrase.words()).map(|(origin, &word)| {
        let name = phrase.id(word).map_or("-", |id| model.vocabulary().word(id));
        (origin.token, name, origin.found)
    });
    let found: Vec<_> = words.collect();
    let expected = [
        (0, "quake", Found::Stem),
        (1, "-", Found::Hash),
        (2, "o'neill", Found::Stem),
        (3, "city", Found::Listed),
        (4, "-", Found::Hash),
    ];
    assert_eq!(found, expected);
    assert!(phrase.unknown().is_empty());
    let hashed = phrase.words()[4];
    let mut row = vec![0.0; support::DIMS];
    phrase.row(hashed).copy_to(&mut row);
    let mut expected = vec![0.0; support::DIMS];
    cognate::model::unknown::hash_vector("2024", 0.9, &mut expected);
    assert_eq!(row, expected);
    let mut phrase = phrase;
    phrase.keep_tokens_alone();
    assert!(phrase.words().is_empty() && phrase.bag().is_empty());
    assert_eq!(phrase.tokens().len(), 5);
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(status.success());
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let ring = folder.path().join("ring");
    std::os::unix::fs::symlink(&ring, &ring).unwrap();
    let open = |path: &std::path::Path| Model::open(path, &support::full()).unwrap_err();
    assert!(matches!(open(&pipe), ModelError::NotAFile { found: "pipe", .. }));
    assert!(matches!(open(folder.path()), ModelError::NotAFile { found: "directory", .. }));
    assert!(matches!(open("/dev/zero".as_ref()), ModelError::NotAFile { found: "device", .. }));
    assert!(matches!(open(&empty), ModelError::Size { got: 0, .. }));
    assert!(matches!(open(&ring), ModelError::Io { .. }));
    assert!(matches!(open(&folder.path().join("absent")), ModelError::Io { .. }));
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, support::tiny(Dtype::F32)).unwrap();
    let mut options = OpenOptions { verify: Verify::Structure, ..OpenOptions::default() };
    options.limits.model_bytes = 100;
    let error = Model::open(&path, &options).unwrap_err();
    assert!(matches!(error, ModelError::Size { most: 100, .. }), "{error}");
    options.limits.model_bytes = 1 << 20;
    options.limits.words = 3;
    assert!(Model::open(&path, &options).is_err());
}

#[test]
fn a_copied_model_does_not_notice_that_its_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, support::tiny(Dtype::F32)).unwrap();
    let model =
        Model::open(&path, &OpenOptions { storage: Storage::Copy, ..support::full() }).unwrap();
    std::fs::write(&path, vec![0xaa; 1000]).unwrap();
    assert_eq!(model.vocabulary().lookup("earthquake"), Some(4));
    assert!(!model.untouched() && !model.damaged());
    assert_eq!(model.look_again(), FileState::Same);
}

#[test]
fn a_mapped_model_notices_which_writes_changed_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let bytes = support::tiny(Dtype::I8);
    std::fs::write(&path, &bytes).unwrap();
    let model = Model::open(&path, &support::full()).unwrap();
    assert_eq!(model.bytes(), bytes.len() as u64);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let mut written = std::time::SystemTime::UNIX_EPOCH;
    let mut write = |at: usize, byte: u8| {
        file.write_all_at(&[byte], at as u64).unwrap();
        written += std::time::Duration::from_secs(1);
        file.set_modified(written).unwrap();
        assert!(!model.untouched());
        let state = model.look_again();
        assert!(model.untouched());
        (state, model.damaged(), model.look_again())
    };
    let sound = (FileState::Sound, false, FileState::Same);
    let damaged = (FileState::Damaged, true, FileState::Same);
    let vectors = model.tensors().next().unwrap().0.range.start;
    // In the header, in the first tensor, in padding, in the last tensor.
    let padding = model.tensors().next().unwrap().0.range.end;
    for at in [100, vectors, padding, bytes.len() - 1] {
        assert_eq!(write(at, bytes[at]), sound, "byte {at}");
        assert_eq!(write(at, bytes[at] ^ 1), damaged, "byte {at}");
        assert_eq!(write(at, bytes[at] ^ 2), (FileState::Same, true, FileState::Same));
        assert_eq!(write(at, bytes[at]), sound, "byte {at}");
    }
    file.set_len(bytes.len() as u64 + 1).unwrap();
    assert_eq!((model.look_again(), model.damaged()), (FileState::Damaged, true));
}

#[test]
fn an_update_writes_into_what_others_added_and_not_into_another_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, support::tiny(Dtype::F32)).unwrap();
    let model = Model::open(&path, &support::full()).unwrap();
    let change = |key: &str, value: &str| {
        let mut draft = Draft::from_model(&model);
        draft.metadata.insert(key.to_owned(), value.to_owned());
        draft.set_section("theirs", "{}".to_owned(), Vec::new());
        draft.write(&path).unwrap();
    };
    change("auto_method", "sif");
    let update = Update::new(&model, &path).unwrap();
    assert_eq!(update.model().sections(), ["example", "theirs"].into());
    assert!(!model.metadata().contains_key("auto_method"));
    drop(update);
    let elsewhere = Update::new(&model, &folder.path().join("new.safetensors")).unwrap();
    assert_eq!(elsewhere.model().sections(), ["example"].into());
    drop(elsewhere);
    change("licence", "another");
    assert!(matches!(Update::new(&model, &path), Err(ModelError::Replaced { .. })));
}

#[test]
fn words_met_in_one_model_are_not_taken_for_those_of_another() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
    let models =
        [support::tiny_model(), Model::open(default.as_ref(), &support::structure()).unwrap()];
    for model in [&models[0], &models[1], &models[0]] {
        let phrase = model.phrase("yorks yorks");
        let words = phrase.words().iter().map(|&word| phrase.id(word).unwrap());
        let words: Vec<_> = words.map(|id| model.vocabulary().word(id)).collect();
        assert_eq!(words, ["york", "york"]);
    }
}

/// The first file of each version of the format, kept as it was written then.
#[test]
fn files_of_earlier_versions_still_open() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model/cognate-1.safetensors");
    if std::env::var_os("TEST_COGNATE_BLESS").is_some() && !std::path::Path::new(path).exists() {
        std::fs::write(path, support::tiny(Dtype::I8)).unwrap();
    }
    let model = Model::open(path.as_ref(), &support::full()).unwrap();
    assert_eq!(model.vocabulary().words().collect::<Vec<_>>(), support::WORDS);
    assert_eq!(model.section("example").unwrap().floats("weights"), Some(&[0.9, 0.5, 0.2][..]));
    assert_eq!(model.phrase("the quakes").words().len(), 2);
}

#[test]
fn the_model_of_seven_languages_is_sound_and_states_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/multilingual.safetensors");
    let model = Model::open(path.as_ref(), &support::full()).unwrap();
    assert!(model.bytes() <= 32_000_000, "{} bytes", model.bytes());
    let languages: Vec<&str> = model.languages().collect();
    assert_eq!(languages, ["en", "de", "es", "fr", "it", "nl", "pt"]);
    let phrase = model.phrase("Erdbeben, un terremoto, l'été");
    assert!(phrase.words().iter().all(|&word| phrase.id(word).is_some()));
}

#[test]
fn the_default_model_is_sound_and_small() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
    let model = Model::open(path.as_ref(), &support::full()).unwrap();
    assert!(model.bytes() <= 14_000_000, "{} bytes", model.bytes());
    assert!(model.metadata()["licence"].contains("CC BY-SA"));
    let phrase = model.phrase("Quake hits L.A.!! #NewYork2020 yesssss");
    let names = |&word: &u32| phrase.id(word).map(|id| model.vocabulary().word(id));
    let words = phrase.words().iter().map(names);
    let expected = ["quake", "hits", "la", "new", "york", "2020", "yes"];
    assert_eq!(words.collect::<Vec<_>>(), expected.map(Some));
    let phrase = model.phrase("quakezillaton hits");
    let origins: Vec<_> = phrase.origins().collect();
    assert_eq!(
        origins.iter().map(|origin| origin.found).collect::<Vec<_>>(),
        [Found::Pieces, Found::Listed]
    );
    let pieces: Vec<_> =
        phrase.pieces(origins[0]).iter().map(|piece| piece.trim_start_matches('#')).collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces.concat(), "quakezillaton");
    assert!(phrase.pieces(origins[1]).is_empty());
    assert_eq!(phrase.known_share(), 0.5);
}
