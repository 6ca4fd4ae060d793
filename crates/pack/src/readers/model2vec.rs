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

use super::{Info, Mark, Opened, Source};

pub(crate) const INFO: Info = Info { name: "model2vec", mark: Mark::Folder };

#[cfg(feature = "model2vec")]
pub(super) fn open(source: &Source) -> Opened {
    Ok(Box::new(Model2VecReader::open(&source.path, source.budget)?))
}

/// Refuses to open a folder: this build lacks the feature.
#[cfg(not(feature = "model2vec"))]
pub(super) fn open(source: &Source) -> Opened {
    Err(super::ReadError::Unsupported {
        path: source.path.clone(),
        problem: "model2vec folders are read by a build with `--features model2vec`".to_owned(),
    })
}
