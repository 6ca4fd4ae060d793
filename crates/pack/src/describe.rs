//! What a model file says of itself: metadata, counts and the rule for unlisted words.

use std::io;

use cognate::model::format::{AUTO_METHOD, Dtype};
use cognate::model::unlisted::SUBWORD_SECTION;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, Unknown};
use cognate::text::Normalisation;

use crate::matrix::Matrix;
use crate::readers::Subword;
use crate::{PackError, PackOptions};

/// Fills in everything of the metadata that is not a size. `digest` is that of the source.
pub(crate) fn describe(
    draft: &mut Draft<'_>,
    options: &PackOptions,
    unknown: &Unknown,
    dims: usize,
    digest: String,
) -> Result<(), PackError> {
    let json = |what: &str, text: serde_json::Result<String>| {
        text.map_err(|error| PackError::Options(format!("{what}: {error}")))
    };
    let mut set = |key: &str, value: String| draft.metadata.insert(key.to_owned(), value);
    set("dim", dims.to_string());
    set("normalisation", json("normalisation", serde_json::to_string(&options.normalisation))?);
    set("unknown", json("unknown", serde_json::to_string(unknown))?);
    set("frequency", options.frequency.name().to_owned());
    set("created_by", concat!("cognate ", env!("CARGO_PKG_VERSION")).to_owned());
    set("source_digest", digest);
    if let Some(licence) = &options.licence {
        set("licence", licence.clone());
    }
    if let Some(method) = &options.auto_method {
        set(AUTO_METHOD, method.clone());
    }
    Ok(())
}

/// Adds the section that says how unlisted words get a vector.
pub(crate) fn push_subword<'a>(
    draft: &mut Draft<'a>,
    rule: Subword,
    buckets: &'a Matrix<'_>,
    scores: &'a [f64],
    kept: Option<&'a [u32]>,
) -> io::Result<()> {
    let (settings, tables) = match rule {
        Subword::NGrams { .. } => {
            let mut tables = buckets.tables("buckets", "scales");
            tables.extend(kept.map(|kept| Table::of("kept", Dtype::U32, &[kept.len()], kept)));
            (rule, tables)
        }
        Subword::WordPiece { .. } => (rule, Vec::new()),
        Subword::Unigram { .. } => {
            (rule, vec![Table::of("scores", Dtype::U64, &[scores.len()], scores)])
        }
    };
    draft.set_section(SUBWORD_SECTION, serde_json::to_string(&settings)?, tables);
    Ok(())
}

/// Words that the vectors of a family list and others do not, with a word that they must lack.
struct Sign {
    preset: &'static str,
    listed: [&'static str; 2],
    lacking: Option<&'static str>,
}

/// The first that holds counts, so the most telling stand first.
const SIGNS: [Sign; 5] = [
    Sign { preset: "glove-twitter", listed: ["<user>", "<hashtag>"], lacking: None },
    Sign { preset: "bert", listed: ["[UNK]", "[CLS]"], lacking: None },
    Sign { preset: "word2vec-news", listed: ["##", "The"], lacking: None },
    Sign { preset: "glove-6b", listed: ["'s", "n't"], lacking: Some("The") },
    Sign { preset: "fasttext", listed: ["the", "The"], lacking: None },
];

/// What to look at before the model is used, a sentence each. Rules other than the default are taken
/// as chosen with care.
pub fn hints(model: &Model) -> Vec<String> {
    let listed = |word: &str| model.vocabulary().lookup(word).is_some();
    let mut hints = Vec::new();
    if Normalisation::preset("plain").as_ref() == Some(model.normalisation()) {
        let found = SIGNS
            .iter()
            .find(|sign| sign.listed.into_iter().all(listed) && !sign.lacking.is_some_and(listed));
        if let Some(Sign { preset, listed: [one, other], .. }) = found {
            hints.push(format!(
                "the words `{one}` and `{other}` suggest --normalisation {preset}; the default, \
                 plain, cuts texts otherwise and does not find such words"
            ));
        }
    }
    if model.vectors().dims() == 1 {
        hints.push(
            "one number a word is no vector; a table of counts goes with --counts".to_owned(),
        );
    }
    hints
}
