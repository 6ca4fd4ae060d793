//! Models written for other libraries.

mod folder;
#[cfg(feature = "model2vec")]
mod tokenizer;
