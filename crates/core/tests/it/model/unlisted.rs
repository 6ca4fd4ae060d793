//! Rules for unlisted words that stand in a section of the model file: what they make of a word, and which
//! tables of theirs are refused.

use cognate::model::format::Dtype;
use cognate::model::phrase::Found;
use cognate::model::subword::NGrams;
use cognate::model::writer::{Draft, Table};
use cognate::model::{FormatError, Model, ModelError};
use cognate_testing as support;
use cognate_testing::DIMS;

const BUCKETS: usize = 8;
const RULE: &str = r#"{"kind":"n-grams","min":3,"max":4,"buckets":8}"#;
const WORD: &str = "unlisted";

/// The tiny model with this section for unlisted words, written and opened.
fn with_rule(settings: &str, tables: Vec<Table<'_>>) -> Result<Model, FormatError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let model = support::tiny_model();
    let mut draft = Draft::from_model(&model);
    draft.metadata.insert("unknown".to_owned(), r#"{"policy":"subword"}"#.to_owned());
    draft.set_section("subword", settings.to_owned(), tables);
    draft.write(&path).unwrap();
    Model::open(&path, &support::full()).map_err(|error| match error {
        ModelError::Format { source, .. } => source,
        other => panic!("{other}"),
    })
}

fn rows() -> Vec<f32> {
    (0..BUCKETS * DIMS).map(|at| (at * at % 31) as f32 - 15.0).collect()
}

/// The row that the model makes of [`WORD`].
fn made(model: &Model) -> Vec<f32> {
    let phrase = model.phrase(WORD);
    let found: Vec<Found> = phrase.origins().map(|origin| origin.found).collect();
    assert_eq!(found, [Found::NGrams]);
    let mut row = vec![0.0; DIMS];
    phrase.row(phrase.words()[0]).copy_to(&mut row);
    row
}

/// The mean of the rows of the n-grams of [`WORD`] whose buckets are kept.
fn mean(is_kept: impl Fn(u64) -> bool) -> Vec<f32> {
    let rule = NGrams { min: 3, max: 4, buckets: BUCKETS as u64 };
    let ids: Vec<u64> = rule.ids(WORD.as_bytes()).filter(|&id| is_kept(id)).collect();
    let rows = rows();
    let sum = |at: usize| ids.iter().map(|&id| rows[id as usize * DIMS + at]).sum::<f32>();
    (0..DIMS).map(|at| sum(at) / ids.len() as f32).collect()
}

#[test]
fn a_word_gets_the_mean_of_the_rows_of_its_n_grams() {
    let rows = rows();
    let all = Table::new("buckets", Dtype::F32, &[BUCKETS, DIMS], &rows);
    assert_eq!(made(&with_rule(RULE, vec![all]).unwrap()), mean(|_| true));
    let bytes: Vec<i8> = rows.iter().map(|&value| value as i8).collect();
    let scales = [1.0_f32; BUCKETS];
    let of_bytes = vec![
        Table::new("buckets", Dtype::I8, &[BUCKETS, DIMS], &bytes),
        Table::new("scales", Dtype::F32, &[BUCKETS], &scales),
    ];
    assert_eq!(made(&with_rule(RULE, of_bytes).unwrap()), mean(|_| true));
    let kept = [1_u32, 4, 7];
    let chosen: Vec<f32> =
        kept.iter().flat_map(|&at| &rows[at as usize * DIMS..][..DIMS]).copied().collect();
    let some = vec![
        Table::new("buckets", Dtype::F32, &[kept.len(), DIMS], &chosen),
        Table::new("kept", Dtype::U32, &[kept.len()], &kept),
    ];
    let model = with_rule(RULE, some).unwrap();
    assert_eq!(made(&model), mean(|id| kept.contains(&(id as u32))));
}

#[test]
fn tables_of_n_grams_that_do_not_fit_are_refused_by_name() {
    let (rows, bytes, scales) = (rows(), [1_i8; BUCKETS * DIMS], [1.0_f32; BUCKETS]);
    let long = [1e16_f32; BUCKETS * DIMS];
    let of_rows = |shape: &[usize; 2]| {
        let rows = &rows[..shape.iter().product()];
        Table::new("buckets", Dtype::F32, shape, rows)
    };
    let whole = || of_rows(&[BUCKETS, DIMS]);
    let of_bytes = || Table::new("buckets", Dtype::I8, &[BUCKETS, DIMS], &bytes);
    let scales_of = |count: usize| Table::new("scales", Dtype::F32, &[count], &scales[..count]);
    let wrong = [0_u32; BUCKETS];
    let wrong_scales = Table::new("scales", Dtype::U32, &[BUCKETS], &wrong);
    let shape = |error: FormatError| matches!(error, FormatError::Shape { name, .. } if name == "section.subword.buckets");
    for (tables, what) in [
        (vec![of_rows(&[BUCKETS - 1, DIMS])], "a row too few"),
        (vec![of_rows(&[BUCKETS, DIMS - 1])], "a dimension too few"),
        (vec![whole(), scales_of(BUCKETS)], "scales of floats"),
        (vec![of_bytes()], "bytes without scales"),
        (vec![of_bytes(), scales_of(BUCKETS - 1)], "a scale too few"),
        (vec![of_bytes(), wrong_scales], "scales that are no floats"),
    ] {
        assert!(shape(with_rule(RULE, tables).unwrap_err()), "{what}");
    }
    let none = RULE.replace("\"buckets\":8", "\"buckets\":0");
    assert!(shape(with_rule(&none, vec![of_rows(&[0, DIMS])]).unwrap_err()), "no row");
    for kept in [[1_u32, 1], [4, 1], [1, BUCKETS as u32]] {
        let tables = vec![of_rows(&[2, DIMS]), Table::new("kept", Dtype::U32, &[2], &kept)];
        let error = with_rule(RULE, tables).unwrap_err();
        assert!(matches!(error, FormatError::UnexpectedTensor { .. }), "{kept:?}: {error}");
    }
    let long = vec![Table::new("buckets", Dtype::F32, &[BUCKETS, DIMS], &long)];
    let error = with_rule(RULE, long).unwrap_err();
    assert!(matches!(error, FormatError::Length { row: 0, .. }), "{error}");
}

#[test]
fn scores_of_pieces_must_be_finite() {
    let with_scores = |unknown: &str, odd: f64| {
        let mut scores = [(-2.0_f64).to_bits(); support::WORDS.len()];
        scores[1] = odd.to_bits();
        let settings = format!(r#"{{"kind":"unigram","unknown_score":{unknown},"longest":16}}"#);
        with_rule(&settings, vec![Table::new("scores", Dtype::U64, &[scores.len()], &scores)])
    };
    assert!(with_scores("-20.0", -3.0).is_ok());
    for odd in [f64::NAN, f64::INFINITY] {
        let error = with_scores("-20.0", odd).unwrap_err();
        assert!(matches!(error, FormatError::Metadata { .. }), "{error}");
    }
}
