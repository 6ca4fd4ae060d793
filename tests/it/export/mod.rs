//! Models written for other libraries.

mod folder;
mod golden;
#[cfg(feature = "model2vec")]
mod tokenizer;
