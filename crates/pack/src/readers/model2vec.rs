//! Folders of model2vec and of sentence-transformers' static models: vectors of a tokenizer's entries,
//! distilled from a transformer.
//!
//! `model.safetensors` holds `embeddings` or `embedding.weight` (rows x dims) and, in smaller models, `weights` (entries)
//! and `mapping` (entries): the vector of entry `t` is `weights[t] * embeddings[mapping[t]]`.
//! `tokenizer.json` holds the entries. Special tokens and the one for unknown text are no words.
//!
//! * WordPiece: every entry is a word, continuations keep their `##`, and [`Subword::WordPiece`](super::Subword::WordPiece)
//!   segments words that are not listed.
//! * Unigram: every entry is a word or a piece of one, named as [`unigram`](cognate::model::unigram) says,
//!   and [`Subword::Unigram`](super::Subword::Unigram) cuts words that are not listed by the entries' scores.
//!   It needs Metaspace, which marks where words begin; byte_fallback is refused.
//! * WordLevel: every entry is a word. BPE is refused: its entries are encoded bytes.
//!
//! int8 models have no scale, so their numbers are returned as whole numbers; every row has the same
//! factor, which does not change a cosine. Texts are not known here: `text` normalises and splits them,
//! whatever the tokenizer did in training.

#[cfg(feature = "model2vec")]
mod folder;

#[cfg(feature = "model2vec")]
pub use folder::{Model2VecReader, Settings};

use std::path::{Path, PathBuf};

use cognate_files::input::shown;

use super::{Info, Mark, Opened, ReadError, Result, STATIC_FOLDER, Source};

pub(crate) const INFO: Info = Info { name: "model2vec", mark: Mark::Folder };

/// Files that every folder has, both itself or both in its [`STATIC_FOLDER`].
const NEEDED: [&str; 2] = ["tokenizer.json", "model.safetensors"];
/// Most names of other files in a message.
const NAMED: usize = 5;

/// Refuses a folder of something else, and says what is in it.
fn check_folder(folder: &Path) -> Result<()> {
    let places = [folder.to_owned(), folder.join(STATIC_FOLDER)];
    let has_all = |place: &PathBuf| NEEDED.iter().all(|name| place.join(name).exists());
    if !folder.is_dir() || places.iter().any(has_all) {
        return Ok(());
    }
    let failed = |source| ReadError::Io { path: folder.to_owned(), source };
    let names = folder.read_dir().and_then(|entries| {
        entries.map(|entry| Ok(shown(entry?.file_name().as_encoded_bytes()))).collect()
    });
    let mut names: Vec<String> = names.map_err(failed)?;
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let found = match (names.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    };
    let problem = format!(
        "a folder is read as a model2vec one, with {} in it or in its {STATIC_FOLDER}; found {found}",
        NEEDED.join(" and ")
    );
    Err(ReadError::Unsupported { path: folder.to_owned(), problem })
}

#[cfg(feature = "model2vec")]
pub(super) fn open(source: &Source) -> Opened {
    check_folder(&source.path)?;
    Ok(Box::new(Model2VecReader::open(&source.path, source.budget)?))
}

/// Refuses to open a folder: this build lacks the feature.
#[cfg(not(feature = "model2vec"))]
pub(super) fn open(source: &Source) -> Opened {
    check_folder(&source.path)?;
    Err(ReadError::Unsupported {
        path: source.path.clone(),
        problem: "model2vec folders are read by a build with `--features model2vec`".to_owned(),
    })
}
