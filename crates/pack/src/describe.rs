//! What a model file says of itself: metadata, counts and the rule for unlisted words.

use std::io;

use cognate::model::Unknown;
use cognate::model::format::{AUTO_METHOD, Dtype};
use cognate::model::unlisted::SUBWORD_SECTION;
use cognate::model::writer::{Draft, Table};

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
