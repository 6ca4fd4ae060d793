//! Folders whose entries have scores, packed and opened: words fall into the pieces that the tokenizers
//! library finds.

use std::fmt::Write;
use std::path::Path;

use cognate::Model;
use cognate_kernels::random::SplitMix64;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tokenizers::Tokenizer;

use crate::support;
use crate::support::command::{cognate, stderr};

/// Letters and, so that characters take more than a byte, others.
const LETTERS: [&str; 5] = ["a", "b", "c", "é", "語"];

/// A draw below `most`.
fn below(draws: &mut SplitMix64, most: u64) -> usize {
    (draws.word() % most) as usize
}

fn drawn(draws: &mut SplitMix64, most: u64) -> String {
    let length = 1 + below(draws, most);
    (0..length).map(|_| LETTERS[below(draws, LETTERS.len() as u64)]).collect()
}

/// Writes a folder of entries with drawn scores; the row of entry 7 is 7, 1.
fn write_folder(folder: &Path, seed: u64) {
    let mut draws = SplitMix64::seeded(seed);
    let mut entries = vec!["[PAD]".to_owned(), "[UNK]".to_owned(), "▁".to_owned()];
    while entries.len() < 60 {
        let mark = if below(&mut draws, 2) == 0 { "▁" } else { "" };
        let entry = format!("{mark}{}", drawn(&mut draws, 4));
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    let (mut vocabulary, mut rows) = (String::new(), Vec::new());
    for (id, entry) in entries.iter().enumerate() {
        // Few different scores, so that ways to cut a word are often equally good.
        let score = -(below(&mut draws, 8) as f64) / 10.0 - 1.0;
        let comma = if id == 0 { "" } else { ", " };
        write!(vocabulary, "{comma}[\"{entry}\", {score}]").unwrap();
        rows.extend([id as f32, 1.0].iter().flat_map(|value| value.to_le_bytes()));
    }
    let special = [(0, "[PAD]"), (1, "[UNK]")].map(|(id, content)| {
        format!(
            r#"{{"id": {id}, "content": "{content}", "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true}}"#
        )
    });
    let tokenizer = format!(
        r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{}],
            "normalizer": null, "pre_tokenizer": {{"type": "Metaspace", "replacement": "▁",
            "prepend_scheme": "always", "split": true}}, "post_processor": null, "decoder": null,
            "model": {{"type": "Unigram", "unk_id": 1, "byte_fallback": false,
            "vocab": [{vocabulary}]}}}}"#,
        special.join(", ")
    );
    std::fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
    let table = TensorView::new(Dtype::F32, vec![entries.len(), 2], &rows).unwrap();
    let tensors = safetensors::serialize([("embedding.weight", table)], None).unwrap();
    std::fs::write(folder.join("model.safetensors"), tensors).unwrap();
}

#[test]
fn words_fall_into_the_pieces_that_the_library_finds() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        // The layout of sentence-transformers, without any settings.
        let inner = folder.path().join("0_StaticEmbedding");
        std::fs::create_dir(&inner).unwrap();
        write_folder(&inner, seed);
        let path = folder.path().join("m.safetensors");
        // Rules that leave letters alone.
        let arguments = ["pack", ".", "-o", "m.safetensors", "--normalisation", "deboom"];
        let output = cognate(folder.path(), &[], &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let model = Model::open(&path, &support::full()).unwrap();
        let reference = Tokenizer::from_file(inner.join("tokenizer.json")).unwrap();
        let mut draws = SplitMix64::seeded(seed + 100);
        let (mut cut, mut unknown) = (0, 0);
        for _ in 0..400 {
            let word = drawn(&mut draws, 9) + if below(&mut draws, 9) == 0 { "x" } else { "" };
            let phrase = model.phrase(&word);
            let mut row = [0.0; 2];
            let found: Vec<u32> = phrase
                .words()
                .iter()
                .map(|&word| {
                    phrase.row(word).copy_to(&mut row);
                    row[0] as u32
                })
                .collect();
            let expected = reference.encode(word.as_str(), false).unwrap();
            let known: Vec<u32> =
                expected.get_ids().iter().copied().filter(|&id| id != 1).collect();
            assert_eq!(found, known, "{word} of seed {seed}: {:?}", expected.get_tokens());
            cut += usize::from(found.len() > 1);
            unknown += usize::from(known.len() < expected.len());
        }
        assert!(cut > 200 && unknown > 20, "{cut} words in pieces, {unknown} with unknown parts");
    }
}

#[test]
fn scores_that_are_missing_or_no_numbers_are_refused() {
    use cognate::model::Unknown;
    use cognate::model::format::Dtype;
    use cognate::model::unlisted::{SUBWORD_SECTION, SubwordRule};
    use cognate::model::writer::{Draft, Table};

    let tiny = support::tiny_model();
    let refusal = |scores: Option<&[f64]>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.safetensors");
        let mut draft = Draft::from_model(&tiny);
        let unknown = serde_json::to_string(&Unknown::Subword).unwrap();
        draft.metadata.insert("unknown".to_owned(), unknown);
        let rule = SubwordRule::Unigram { unknown_score: -20.0, longest: 9 };
        let rule = serde_json::to_string(&rule).unwrap();
        let tables = scores.map(|scores| Table::new("scores", Dtype::U64, &[scores.len()], scores));
        draft.set_section(SUBWORD_SECTION, rule, tables.into_iter().collect());
        draft.write(&path).unwrap();
        Model::open(&path, &support::full()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(refusal(Some(&[-1.0; support::WORDS.len()])), Ok(()));
    let message = |scores| refusal(scores).unwrap_err();
    assert!(message(None).contains("section.subword.scores"), "{}", message(None));
    let short: &[f64] = &[-1.0; 3];
    assert!(message(Some(short)).contains("section.subword.scores"), "{}", message(Some(short)));
    let endless: &[f64] = &[f64::NEG_INFINITY; support::WORDS.len()];
    assert!(message(Some(endless)).contains("finite scores"), "{}", message(Some(endless)));
}
